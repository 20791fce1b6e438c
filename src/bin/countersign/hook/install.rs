//! `countersign hook install` and `uninstall`.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use countersign::error::with_causes;
use countersign::hook::{Client, Environment, Installation, Trust};
use serde_json::json;

use super::options::Options;
pub(super) use super::place::Configuration;
use crate::Context;
use crate::output::{CommandError, CommandOutput};
use crate::seconds::limit;

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
    pub(super) fn uninstall(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        let installation = self.installation(context)?;
        let done =
            installation.uninstall().map_err(|error| CommandError::Store(with_causes(&error)))?;
        let path = installation.path().display();
        let mut text = match done.changed {
            true => format!("Removed the hook from {path}"),
            false => format!("There is no hook in {path}"),
        };
        if done.switched {
            text += "\nAll hooks are switched off again, as they were before the installation";
        }
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
        let options = Options::parse(self.options, context)?.filled(context, &self.place)?;
        let rules = options.check(&self.place)?;
        let state = options.state()?;
        words.extend(options.into_words()?);
        let installation = self.place.installation(context)?.command(words).limit(self.limit);
        let now = match self.place.managed {
            true => Environment::default(),
            false => Environment::of_process(context.directories.home()),
        };
        if !self.place.managed {
            // First, so that a failure leaves no entry whose environment is not known.
            now.record(&Environment::record_in(&state, client))?;
        }
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
        text += &known(&now);
        if done.switched {
            text += "\nAll hooks of this client were switched off, and are on now: `uninstall` switches them off again";
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
        let next = next(&self.place, &installation, done.changed, context);
        text += &format!("\n{next}");
        text += &format!(
            "\n`countersign inbox` is where calls are answered; `countersign hook doctor {client} --live` proves that \
             {client} obeys."
        );
        let line = json!({
            "file": installation.path(), "changed": done.changed, "backup": done.backup, "next": next,
            "switched_on": done.switched, "environment": now.names().collect::<Vec<_>>(),
        });
        Ok(CommandOutput::new(0, line).for_people(text))
    }
}

fn before(backup: &Path) -> String {
    format!("\nThe file as it was before: {}", backup.display())
}

/// Which variables are no reason to ask from now on.
fn known(environment: &Environment) -> String {
    let names = environment.names().map(|name| format!("`{}`", name.escape_debug()));
    let names = names.collect::<Vec<_>>().join(", ");
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "\nThe environment has {names}, which may change what commands do. With these values no call is asked about \
             for that: unset what is not yours, and install the hook again"
        ),
    }
}

/// What the user still has to do.
fn next(
    place: &Configuration,
    installation: &Installation,
    changed: bool,
    context: &Context,
) -> String {
    let restart = "Sessions that are open do not have the hook yet: start them again.".to_owned();
    if place.client != Client::Codex || place.managed {
        return restart;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let is_trusted = installation.trust(context.directories.home(), &here);
    match is_trusted {
        Ok(Trust::Given) => restart,
        _ => format!(
            "The hook is off: Codex runs every tool without asking{} until you trust the hook: open codex, enter \
             /hooks, and trust it. Do so after each change.",
            if changed { ", as the entry has changed," } else { "" }
        ),
    }
}
