//! The questions that rules ask about a call as what it may be, too: a tool of another server with the same name, or a command
//! in another directory.

use std::path::Path;

use countersign::Decision;
use countersign::decision::Question;
use countersign::deferred::metadata;
use serde_json::Value;

use super::vocabulary::{McpWay, Normal};

/// The demands of a question on its answer, beside certain people.
const DEMANDS: [&str; 2] = [metadata::EVERY_TIME, metadata::APPROVAL_POLICY];

impl Normal {
    /// Takes over the questions about the call as that tool, as questions about the call itself.
    pub(crate) fn doubt_as<'a>(
        &mut self,
        way: &McpWay,
        questions: impl Iterator<Item = &'a Question> + Clone,
    ) {
        let shown = way.shown();
        let titles = questions.clone().filter_map(|it| it.metadata().get(metadata::TITLE));
        self.titles.extend(titles.filter_map(Value::as_str).map(str::to_owned));
        let may_be = |why: &str| format!("it may be `{}`: {why}", shown.escape_debug());
        self.take_over("mcp-name", &shown, may_be, questions);
    }

    /// Takes over the questions about the command in another directory, in which the client's shell may be.
    pub(crate) fn doubt_in<'a>(
        &mut self,
        directory: &Path,
        questions: impl Iterator<Item = &'a Question>,
    ) {
        let directory = directory.to_string_lossy();
        let shown = directory.escape_debug();
        let there = |why: &str| {
            format!("an earlier command may have left the shell in `{shown}`, and there: {why}")
        };
        self.take_over("directory", &directory, there, questions);
    }

    /// Takes over questions with other words. A question with a demand stays one of its own: an approval by anyone else must
    /// not cover it.
    fn take_over<'a>(
        &mut self,
        key: &'static str,
        subject: &str,
        worded: impl Fn(&str) -> String,
        questions: impl Iterator<Item = &'a Question>,
    ) {
        let mut reasons = Vec::new();
        for question in questions {
            let mut asked = Decision::ask(worded(question.reason()))
                .with_key(format!("{key} {subject} {}", question.key()));
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
            self.doubt(key, worded(&reasons.join("; ")));
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
