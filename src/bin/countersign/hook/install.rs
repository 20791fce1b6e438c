//! `countersign hook install` and `uninstall`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use countersign::error::with_causes;
use countersign::hook::{Client, Installation};
use serde_json::json;

use super::options::Options;
use crate::Context;
use crate::output::{CommandError, CommandOutput};
use crate::seconds::limit;

/// Which configuration of which client.
#[derive(Args)]
pub(crate) struct Configuration {
    /// The client: claude, codex, gemini, copilot or opencode
    pub(super) client: Client,
    /// For all sessions of this user (the default)
    #[arg(long, conflicts_with = "project")]
    pub(super) user: bool,
    /// For the sessions in the current directory
    #[arg(long)]
    pub(super) project: bool,
    /// In this file, for clients that are told to look elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "project"])]
    pub(super) file: Option<PathBuf>,
}

/// Configure a client to call this program before each tool call. A changed file is copied beside itself first.
#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    place: Configuration,
    /// How long the client waits for an answer, and the hook for a person
    #[arg(long, value_name = "SECONDS", value_parser = limit, default_value = "300")]
    limit: Duration,
    /// Options of `countersign hook CLIENT` that the client passes on, after `--`: `-- --rules FILE --store URL`. Relative
    /// paths are those of the current directory, and the rules have to load
    #[arg(last = true)]
    options: Vec<String>,
}

impl Configuration {
    pub(super) fn installation(&self, context: &Context) -> Result<Installation, CommandError> {
        if let Some(file) = &self.file {
            return Ok(Installation::at(self.client, file));
        }
        if self.project {
            let here = std::env::current_dir();
            let here = here.map_err(|error| CommandError::Store(error.to_string()))?;
            return Ok(Installation::of_project(self.client, &here));
        }
        Ok(Installation::of_environment(self.client, context.directories.home()))
    }

    pub(super) fn uninstall(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        let installation = self.installation(context)?;
        let done =
            installation.uninstall().map_err(|error| CommandError::Store(with_causes(&error)))?;
        let path = installation.path().display();
        let mut text = match done.changed {
            true => format!("Removed the hook from {path}"),
            false => format!("There is no hook in {path}"),
        };
        if let Some(backup) = &done.backup {
            text += &before(backup);
        }
        let line =
            json!({"file": installation.path(), "changed": done.changed, "backup": done.backup});
        Ok(CommandOutput::new(0, line).for_people(text))
    }
}

impl Install {
    pub(super) fn run(self, context: &Context) -> Result<CommandOutput, CommandError> {
        let client = self.place.client;
        let program = std::env::current_exe().and_then(|path| path.canonicalize());
        let program = program.map_err(|error| CommandError::Store(error.to_string()))?;
        let mut words =
            vec![program.to_string_lossy().into_owned(), "hook".to_owned(), client.to_string()];
        let options = Options::parse(self.options, context)?;
        let rules = options.check(context)?;
        words.extend(options.into_words()?);
        let installation = self.place.installation(context)?.command(words).limit(self.limit);
        let done =
            installation.install().map_err(|error| CommandError::Store(with_causes(&error)))?;
        let path = installation.path().display();
        let mut text = match done.changed {
            true => format!("Installed the hook of {client} in {path}"),
            false => format!("The hook of {client} is in {path} already"),
        };
        if let Some(backup) = &done.backup {
            text += &before(backup);
        }
        if rules.is_none() {
            let rules = context.directories.config().join("rules.toml");
            text += &format!(
                "\nEvery call is asked about, as there are no rules: they belong in {}, and count \
                 once you run `countersign rules accept`",
                rules.display()
            );
        }
        if rules.is_some_and(|rules| rules.needs_accepting()) {
            text += "\nThe rules were changed since you accepted them, and the stricter of both decides: `countersign rules \
                     accept` shows the difference.";
        }
        if let Some(next) = next(client) {
            text += &format!("\n{next}");
        }
        text += &format!(
            "\n`countersign inbox` is where calls are answered; `countersign hook doctor {client} --live` proves that \
             {client} obeys."
        );
        let line = json!({
            "file": installation.path(), "changed": done.changed, "backup": done.backup, "next": next(client),
        });
        Ok(CommandOutput::new(0, line).for_people(text))
    }
}

fn before(backup: &Path) -> String {
    format!("\nThe file as it was before: {}", backup.display())
}

/// What the user still has to do.
fn next(client: Client) -> Option<&'static str> {
    match client {
        Client::Codex => Some(
            "Codex runs the tool without asking until you trust the hook: open codex, enter /hooks, and trust it. Do so \
             after each change.",
        ),
        Client::Claude | Client::Gemini | Client::Copilot | Client::Opencode => {
            Some("Sessions that are open do not have the hook yet: start them again.")
        }
        _ => None,
    }
}
