//! The questions that rules ask about a call as one of another server's tools, whose name it may have, too.

use countersign::Decision;
use countersign::decision::Question;
use countersign::deferred::metadata;
use serde_json::Value;

use super::vocabulary::{McpWay, Normal};

/// The demands of a question on its answer, beside certain people.
const DEMANDS: [&str; 2] = [metadata::EVERY_TIME, metadata::APPROVAL_POLICY];

impl Normal {
    /// Takes over the questions about the call as that tool, as questions about the call itself. A question with a demand
    /// stays one of its own: an approval by anyone else must not cover it.
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
            let title = told.get(metadata::TITLE).and_then(Value::as_str);
            self.titles.extend(title.map(str::to_owned));
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

    /// The template of the line about a call whose server is not known. It is that of the rules about the tools that the
    /// call may be, if they have the same one.
    pub(crate) fn title(&self) -> Option<&str> {
        let (first, others) = self.titles.split_first()?;
        let is_certain = self.server.is_none() && others.iter().all(|it| it == first);
        is_certain.then_some(first)
    }
}
