//! The questions that rules ask about a call as one of another server's tools, whose name it may have, too.

use countersign::Decision;
use countersign::decision::Question;
use countersign::deferred::metadata;

use super::vocabulary::{McpWay, Normal};

/// The demands of a question on its answer, beside certain people.
const DEMANDS: [&str; 2] = [metadata::EVERY_TIME, metadata::APPROVAL_POLICY];

impl Normal {
    /// Makes the questions about the call as that tool ones about the call itself. A question with a demand stays one of its
    /// own, so that an approval by anyone else does not cover it.
    pub(crate) fn doubt_as<'a>(
        &mut self,
        way: &McpWay,
        questions: impl Iterator<Item = &'a Question>,
    ) {
        let shown = way.shown();
        let may_be = |why: &str| format!("it may be `{}`: {why}", shown.escape_debug());
        let mut reasons = Vec::new();
        for question in questions {
            let mut asked = Decision::ask(may_be(question.reason()))
                .with_key(format!("mcp-name {shown} {}", question.key()));
            let people = question.people();
            let told = question.metadata();
            let demands: Vec<_> =
                DEMANDS.into_iter().filter_map(|key| Some((key, told.get(key)?))).collect();
            if people.is_none() && demands.is_empty() {
                reasons.push(question.reason());
                continue;
            }
            if let Some(people) = people {
                asked = asked.with_people(people);
            }
            for (key, value) in demands {
                asked = asked.with_metadata(key, value.clone());
            }
            self.demands.push(asked);
        }
        if !reasons.is_empty() {
            self.doubt("mcp-name", may_be(&reasons.join("; ")));
        }
    }
}
