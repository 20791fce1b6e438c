//! The fingerprint of a pending call, which binds an answer to what was shown (rules A1, A6, L0).
//!
//! | part | without it, an approval would also cover |
//! |---|---|
//! | version of the format | what another version means by the same bytes |
//! | run, response | an equal call of another run, or a later one of this run |
//! | path of agents, call id | an equal call of another agent, or a second one of the response |
//! | identity of the tool | another tool of the same name |
//! | canonical arguments | other arguments |
//! | questions: layer, key, pins | a question that was not shown, or one about other content |
//!
//! Reasons, previews and metadata are not part of the fingerprint: they are for people, and a layer may word them
//! anew. The content of a preview is part of it, by its digest among the pins. We sort the questions, so that a
//! stack whose layers ask in another order has the same fingerprint. We take equal questions once, as two layers
//! that ask the same make one question for a person.
//!
//! A test holds the values, since a change would make every pending call of every user unanswerable.

use serde_json::json;

use crate::args::{Args, ArrayText};
use crate::decision::{Question, QuestionId};

/// The version of the fingerprint's format.
const VERSION: u32 = 1;

/// The address of a call: unique among all calls of all runs, and the same in every process.
pub(crate) struct CallAddress<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) response: u32,
    /// The agents that lead to the call, and its id.
    pub(crate) path: String,
}

impl<'a> CallAddress<'a> {
    pub(crate) fn new(run_id: &'a str, response: u32, agents: &[String], id: &str) -> Self {
        Self { run_id, response, path: [&*agents.join("/"), id].join("/") }
    }
}

/// SHA-256, in hexadecimal, over the canonical JSON of everything that an approval covers: the address of the call, the
/// tool's identity at its gate, the arguments, and the questions.
pub(crate) fn fingerprint(
    address: &CallAddress<'_>,
    tool: &str,
    args: &Args,
    questions: &[Question],
) -> String {
    let mut questions: Vec<_> = questions.iter().map(Question::id).collect();
    questions.sort_unstable();
    questions.dedup();
    let question = |all: ArrayText, (layer, key, pins): QuestionId<'_>| {
        all.array(|question| question.text(layer).text(key).value(&json!(pins)))
    };
    ArrayText::new()
        .number(VERSION)
        .text(address.run_id)
        .number(address.response)
        .text(&address.path)
        .text(tool)
        .object(args.as_map())
        .array(|all| questions.into_iter().fold(all, question))
        .digest()
}

/// The id of a batch. Each call counts with its id, its fingerprint and the number of its deferrals, so that a call
/// that is asked about again makes another batch.
pub(crate) fn batch_id<'a>(
    run_id: &str,
    response: u32,
    calls: impl Iterator<Item = (&'a str, &'a str, u32)>,
) -> String {
    let call = |all: ArrayText, (id, fingerprint, deferrals)| {
        all.array(|call| call.text(id).text(fingerprint).number(deferrals))
    };
    let array = ArrayText::new().number(VERSION).text(run_id).number(response);
    array.array(|all| calls.fold(all, call)).digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(args: &Args, questions: &[Question]) -> String {
        let address = CallAddress::new("run", 2, &["root".to_owned()], "c1");
        fingerprint(&address, "files/delete", args, questions)
    }

    /// Golden vectors: they hold under every feature of serde_json (`.ci/run` tries them), and for ever.
    #[test]
    fn a_fingerprint_is_the_same_in_every_build() {
        let args = Args::parse(
            r#"{"z":1,"a":{"y":[0.1,1e21,18446744073709551615,-1],"b":"é\n"},"f":1.0}"#,
        )
        .unwrap();
        let two = [Question::of("Limit", "large"), Question::of("Files", "delete")];
        assert_eq!(
            args.to_string(),
            "{\"a\":{\"b\":\"é\\n\",\"y\":[0.1,1e+21,18446744073709551615,-1]},\"f\":1,\"z\":1}"
        );
        assert_eq!(
            example(&args, &two),
            "2a63f8e4865bb76263e61410c540733d055fd9aef695fc8f79c30cd428c3e4ae"
        );
        assert_eq!(
            example(&Args::new(), &[]),
            "633a6536083695b82224dddad1a1719d1918730c4804ad696eb80d552a1f3f25"
        );
    }

    #[test]
    fn the_order_of_keys_and_questions_does_not_matter() {
        let one = Args::new().with("a", 1).with("b", 2);
        let other = Args::new().with("b", 2).with("a", 1);
        let questions = [Question::of("A", "x"), Question::of("B", "y")];
        let reversed = [Question::of("B", "y"), Question::of("A", "x")];
        assert_eq!(example(&one, &questions), example(&other, &reversed));
    }

    #[test]
    fn every_part_of_a_pending_call_changes_the_fingerprint() {
        let base = example(&Args::new().with("n", 1), &[Question::of("A", "x")]);
        assert_ne!(base, example(&Args::new().with("n", 2), &[Question::of("A", "x")]));
        assert_ne!(base, example(&Args::new().with("n", 1), &[Question::of("A", "y")]));
        assert_ne!(base, example(&Args::new().with("n", 1), &[Question::of("Ax", "")]));
        let pinned = Question::of("A", "x").with_pin("file", "digest");
        assert_ne!(base, example(&Args::new().with("n", 1), &[pinned]));
    }
}
