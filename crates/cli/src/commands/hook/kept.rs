//! The options of an entry that is there, for the entry that takes its place.
//!
//! You may run `init` again, for another agent or after an update. What you have chosen for an entry stays, unless that run
//! chooses otherwise. We look up the places of the user anew, as they may have changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_cli::hook::Client;

use super::options::{Options, Where};
use super::place::Configuration;
use crate::Context;
use crate::output::CommandError;

/// The options of the hook of a client that is installed for this user; none where there is no hook.
pub(crate) struct KeptOptions {
    options: Options,
    is_there: bool,
}

impl KeptOptions {
    /// The options of the entry. One with options that this program does not know is an error, as they would be lost.
    pub(crate) fn of(client: Client, context: &Context) -> Result<Self, CommandError> {
        let installation = Configuration::of_user(client).installation(context)?;
        let words = installation.installed_command().ok().flatten();
        let words = words.as_ref().and_then(|words| words.get(3..));
        let options = words.map(Options::of_entry).transpose().map_err(|problem| {
            let (client, title) = (client.name(), client.title());
            let problem = problem.lines().next().unwrap_or_default().trim_start_matches("error: ");
            CommandError::Usage(format!(
                "the hook of {title} has options that cannot be read: {problem}. Remove it by `countersign hook uninstall \
                 {client}`, and run this command again"
            ))
        })?;
        let is_there = options.is_some();
        let mut options = match options {
            Some(options) => options,
            None => Options::parse(Vec::new(), context)?,
        };
        let before = options.answering.settings.directories().ok();
        let rules_before = before.map(|it| it.config().join("rules.toml"));
        let rules_now = context.directories.config().join("rules.toml");
        for file in &mut options.answering.rules {
            if Some(&*file) == rules_before.as_ref() {
                file.clone_from(&rules_now);
            }
        }
        // The file of this user need not be there, and is found where it is.
        options.answering.rules.retain(|file| *file != rules_now || file.exists());
        let principal = context.config.principal();
        options.answering.settings = options.answering.settings.without_places(&principal);
        // The event is that of each entry of its own.
        options.answering.event = None;
        options.config = options.config.filter(|_| context.config_file.is_none());
        Ok(Self { options, is_there })
    }

    /// Returns `true` if the client has the hook.
    pub(crate) fn is_there(&self) -> bool {
        self.is_there
    }

    /// The time for which the client waits for an answer.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.options.answering.limit
    }

    /// Without its preset, where another choice takes its place.
    pub(crate) fn without_preset(mut self) -> Self {
        self.options.answering.preset = None;
        self
    }

    /// Without its choice about edits of the project's files.
    pub(crate) fn without_edits(mut self) -> Self {
        let answering = &mut self.options.answering;
        answering.edits = None;
        answering.ask = answering.ask.filter(|ask| *ask != Where::Edits);
        self
    }

    /// With this file of rules, too.
    pub(crate) fn with_rules(mut self, file: &Path) -> Self {
        let rules: &mut Vec<PathBuf> = &mut self.options.answering.rules;
        if rules.iter().all(|known| known != file) {
            rules.insert(0, file.to_owned());
        }
        self
    }

    /// Edits of the project's files are asked about in the client, unless the entry says where a person is asked.
    pub(crate) fn asking_about_edits(mut self) -> Self {
        self.options.answering.ask.get_or_insert(Where::Edits);
        self
    }

    /// The options as words, without the limit.
    pub(crate) fn into_words(self) -> Result<Vec<String>, CommandError> {
        self.options.into_words()
    }
}
