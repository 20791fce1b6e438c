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

    /// Takes over the questions about the command in another directory, in which the client's shell may be. Those of the session
    /// begin in `usual`.
    pub(crate) fn doubt_in<'a>(
        &mut self,
        directory: &Path,
        usual: &Path,
        questions: impl Iterator<Item = &'a Question>,
    ) {
        let directory = directory.to_string_lossy();
        let shown = directory.escape_debug();
        let usual = usual.to_string_lossy();
        let usual = usual.escape_debug();
        let there = |why: &str| {
            format!(
                "an earlier command may have left the shell in `{shown}`, and there: {why}; if it is meant for `{usual}`, begin with \
                 `cd {usual} &&`"
            )
        };
        self.take_over("directory", &directory, there, questions);
    }

    /// Takes over questions with other words, each with what it is bound to: an approval is for this subject, and for the files that
    /// were looked at. A question with a demand stays one of its own, as an approval by anyone else must not cover it.
    fn take_over<'a>(
        &mut self,
        key: &'static str,
        subject: &str,
        worded: impl Fn(&str) -> String,
        questions: impl Iterator<Item = &'a Question>,
    ) {
        let demands = |question: &Question| {
            let told = question.metadata();
            DEMANDS.into_iter().any(|it| told.get(it).is_some()) || question.people().is_some()
        };
        let (demanding, others): (Vec<_>, Vec<_>) = questions.partition(|it| demands(it));
        let of = |questions: &[&Question]| {
            let reasons: Vec<_> = questions.iter().map(|it| it.reason()).collect();
            let keys: Vec<_> = questions.iter().map(|it| it.key()).collect();
            let asked = Decision::ask(worded(&reasons.join("; ")))
                .with_key(format!("{key} {subject} {}", keys.join(" ")));
            let pins = questions.iter().flat_map(|it| it.pins());
            pins.fold(asked, |asked, (name, digest)| asked.with_pin(name, digest))
        };
        for question in demanding {
            let people = question.people().into_iter();
            let asked = people.fold(of(&[question]), Decision::with_people);
            let told =
                DEMANDS.into_iter().filter_map(|it| Some((it, question.metadata().get(it)?)));
            let asked =
                told.fold(asked, |asked, (it, value)| asked.with_metadata(it, value.clone()));
            self.demands.push(asked);
        }
        if !others.is_empty() {
            self.demands.push(of(&others));
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
