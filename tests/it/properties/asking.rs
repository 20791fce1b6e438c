//! D11 over random runs: the questions to people, compared with a model of the rule.

use std::collections::{BTreeMap, BTreeSet};

use countersign::call::AskHistory;
use countersign::{ToolCall, ToolsExt, Turn};
use proptest::prelude::*;

use crate::support::{Recorder, call, cases, stored};

const MAX_REPEATS: u32 = 2;
const MAX_PENDING: usize = 3;

/// How a batch is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Yes,
    No,
    /// A rule says no.
    Policy,
}

/// A response: which of four calls it makes, how they are answered in turn, and whether all is stored in between.
type Response = (Vec<usize>, Vec<Says>, bool);

fn responses() -> impl Strategy<Value = Vec<Response>> {
    let says = prop_oneof![1 => Just(Says::Yes), 4 => Just(Says::No), 1 => Just(Says::Policy)];
    let one =
        (prop::collection::vec(0..4_usize, 1..6), prop::collection::vec(says, 6), any::<bool>());
    prop::collection::vec(one, 1..8)
}

/// Two tools, two arguments each, whose keys come in any order.
fn made(which: usize, at: usize) -> ToolCall {
    let (tool, n) = (["delete", "move"][which / 2], which % 2);
    let args = match at % 2 {
        0 => format!(r#"{{"n":{n},"path":"a"}}"#),
        _ => format!(r#"{{"path":"a","n":{n}.0}}"#),
    };
    call(&format!("c{at}"), tool, args.into())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn people_are_asked_exactly_as_the_rule_says(responses in responses()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let recorder = Recorder::new(["delete", "move"]);
        let turn = Turn::new(recorder.clone().approval_required())
            .max_repeats(MAX_REPEATS)
            .max_pending(MAX_PENDING as u32);
        let mut history = AskHistory::default();
        let mut denied: BTreeMap<usize, u32> = BTreeMap::new();
        for (number, (calls, says, stores)) in responses.iter().enumerate() {
            let turn = turn.clone().of_run("run", number as u32).ask_history(&history);
            let made: Vec<_> = calls.iter().enumerate().map(|(at, which)| made(*which, at)).collect();
            let report = runtime.block_on(turn.run(made)).unwrap();

            // Asked are the first that were not denied too often, each with its count.
            let mut expected = Vec::new();
            for (at, which) in calls.iter().enumerate() {
                let times = denied.get(which).copied().unwrap_or_default();
                if times < MAX_REPEATS && expected.len() < MAX_PENDING {
                    expected.push((format!("c{at}"), times));
                } else {
                    let by = if times < MAX_REPEATS { "max_pending" } else { "max_repeats" };
                    prop_assert_eq!(report.calls()[at].denied_by(), Some(by));
                }
            }
            let Some(mut suspended) = report.into_suspended() else {
                prop_assert!(expected.is_empty());
                continue;
            };
            if *stores {
                suspended = stored(&suspended);
                history = AskHistory::default();
            }
            let requests = suspended.requests();
            let asked: Vec<_> = requests.approvals.iter().map(|call| {
                let times = requests.denied_before(call.id()).map_or(0, |before| before.times());
                (call.id().to_owned(), times)
            }).collect();
            prop_assert_eq!(&asked, &expected);

            let mut answers = requests.answer();
            let mut counted = BTreeSet::new();
            for (id, _) in &asked {
                let at: usize = id[1..].parse().unwrap();
                let which = calls[at];
                answers = match says[at] {
                    Says::Yes => {
                        denied.remove(&which);
                        answers.approve(id).answered_by("ann")
                    }
                    Says::No => {
                        if counted.insert(which) {
                            *denied.entry(which).or_default() += 1;
                        }
                        answers.deny(id, "no").answered_by("ann")
                    }
                    Says::Policy => answers.deny(id, "no").answered_by("policy"),
                };
            }
            let answers = answers.build().unwrap();
            let turn = turn.ask_history(&history);
            let report = runtime.block_on(turn.resume(suspended, answers)).unwrap();
            prop_assert!(report.suspended().is_none());
            for (id, _) in &asked {
                let at: usize = id[1..].parse().unwrap();
                let returned = report.calls()[at].outcome().is_returned();
                prop_assert_eq!(returned, says[at] == Says::Yes);
            }
        }
    }
}
