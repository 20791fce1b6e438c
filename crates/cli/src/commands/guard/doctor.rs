//! `countersign guard doctor`: whether the guards of this user decide by what the user has set.
//!
//! | check | finds |
//! |---|---|
//! | environment | a variable that is a setting of other commands, and counts for nothing in a guard |
//! | places | a store, a configuration or a state in this project, whose tools could write it |
//! | program | an entry of a client whose program is found by the search path, which a project can set |
//! | servers | an MCP server of this project with the name of a guarded one, which it replaces |

use std::path::{Path, PathBuf};

use clap::Args;
use countersign::show::escape;
use countersign_cli::hook::{Client, ProjectSettings};

use super::places;
use crate::Context;
use crate::account_settings::AccountSettings;
use crate::findings::{Finding, report};
use crate::guard_entries::{GuardEntry, entries};
use crate::output::{CommandError, CommandOutput};
use crate::project;

/// Check where guards have their settings from, in this directory and with these options.
#[derive(Args)]
#[command(
    after_help = "Exit statuses: 0 everything is in order; 2 bad usage; 3 a problem was found."
)]
pub(super) struct GuardDoctor {
    #[command(flatten)]
    settings: AccountSettings,
    /// The root of the project; by default the working directory
    #[arg(long, value_name = "DIRECTORY")]
    project: Option<PathBuf>,
}

impl GuardDoctor {
    pub(super) fn run(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        let project = project::root(self.project.as_deref(), context)?;
        let own = self.settings.context(context.config_file.clone())?;
        let home = own.directories.home();
        let entries = entries(home).found;
        let checks = [
            self.environment(&own),
            self.places(&own, &project)?,
            programs(&entries),
            replaced(&entries, &project, home),
        ];
        Ok(report(None, &checks))
    }

    fn environment(&self, own: &Context) -> Finding {
        let found = self.settings.without_effect(&own.directories, own.config_file.as_deref());
        let found: Vec<_> = found
            .iter()
            .map(|(name, option)| {
                format!("`{name}` counts for nothing in a guard: give it `{option}`")
            })
            .collect();
        match found.is_empty() {
            true => {
                let found = "no variable here is a setting of other commands";
                Finding("environment", Some(true), found.to_owned())
            }
            false => Finding("environment", Some(false), found.join("; ")),
        }
    }

    fn places(&self, own: &Context, project: &Path) -> Result<Finding, CommandError> {
        let url = self.settings.store()?;
        let within = places::in_project(own, url.as_ref(), project);
        let within: Vec<_> = within
            .iter()
            .map(|(what, place, option)| {
                format!(
                    "{what} {} lies in this project: give another by `{option}`",
                    place.display()
                )
            })
            .collect();
        Ok(match within.is_empty() {
            true => {
                let store = own.config.store_url(&own.directories, url.as_ref());
                let (config, state) = (own.directories.config(), own.directories.state());
                let found = format!(
                    "configuration in {}, state in {}, store {store}, for {}",
                    config.display(),
                    state.display(),
                    own.config.principal()
                );
                Finding("places", Some(true), found)
            }
            false => Finding("places", Some(false), within.join("; ")),
        })
    }
}

fn programs(entries: &[GuardEntry]) -> Finding {
    let bare: Vec<_> = entries
        .iter()
        .filter(|it| Path::new(&it.program).is_relative())
        .map(|it| {
            format!(
                "`{}` in {} ({}) starts `{}` by the search path, which a project can set: write the whole path",
                escape(&it.name),
                it.file.display(),
                it.title,
                escape(&it.program)
            )
        })
        .collect();
    match (entries.is_empty(), bare.is_empty()) {
        (true, _) => {
            let found = "no client of this user starts a guard in a file that is known here";
            Finding("program", None, found.to_owned())
        }
        (false, true) => Finding(
            "program",
            Some(true),
            "each entry has the whole path of its program".to_owned(),
        ),
        (false, false) => Finding("program", Some(false), bare.join("; ")),
    }
}

/// The servers of the project that have the name of a guarded one.
fn replaced(entries: &[GuardEntry], project: &Path, home: &Path) -> Finding {
    let of_project = Client::ALL
        .into_iter()
        .flat_map(|client| ProjectSettings::new(client, project, home).servers());
    let mut same: Vec<_> = of_project
        .filter(|(name, _)| entries.iter().any(|entry| entry.name == *name))
        .map(|(name, file)| {
            format!(
                "{} has a server `{}`, which a client may start in place of your guard",
                file.display(),
                escape(&name)
            )
        })
        .collect();
    same.sort();
    same.dedup();
    match same.is_empty() {
        true => {
            let found = "no server of this project has the name of a guarded one";
            Finding("servers", Some(true), found.to_owned())
        }
        false => Finding("servers", Some(false), same.join("; ")),
    }
}
