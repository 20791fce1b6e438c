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
use serde_json::Value;

use super::places;
use crate::Context;
use crate::account_settings::AccountSettings;
use crate::findings::{Finding, report};
use crate::init::servers;
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

/// An entry of a client that starts a guard.
pub(super) struct GuardEntry {
    pub(super) title: &'static str,
    pub(super) file: PathBuf,
    pub(super) name: String,
    program: String,
}

impl GuardDoctor {
    pub(super) fn run(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        let project = project::root(self.project.as_deref(), context)?;
        let own = self.settings.context(context.config_file.clone())?;
        let entries = entries(own.directories.home());
        let checks = [
            self.environment(&own),
            self.places(&own, &project)?,
            programs(&entries),
            replaced(&entries, &project, own.directories.home()),
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

/// The entries of this user's clients that start a guard.
pub(super) fn entries(home: &Path) -> Vec<GuardEntry> {
    let more = [
        ("Claude Code", home.join(".claude.json"), "mcpServers"),
        ("Codex CLI", home.join(".codex/config.toml"), "mcp_servers"),
        ("Gemini CLI", home.join(".gemini/settings.json"), "mcpServers"),
        ("GitHub Copilot CLI", home.join(".copilot/mcp-config.json"), "mcpServers"),
        ("Qwen Code", home.join(".qwen/settings.json"), "mcpServers"),
        ("opencode", home.join(".config/opencode/opencode.json"), "mcp"),
    ];
    let mut found = Vec::new();
    for (title, file, key) in servers::places(home).chain(more) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let value = match file.extension().is_some_and(|it| it == "toml") {
            true => text.parse::<toml::Table>().ok().and_then(|it| serde_json::to_value(it).ok()),
            false => serde_json::from_str::<Value>(&text).ok(),
        };
        let servers = value.as_ref().and_then(|it| it.get(key)?.as_object());
        for (name, server) in servers.into_iter().flatten() {
            if let Some(program) = guard_program(server) {
                found.push(GuardEntry { title, file: file.clone(), name: name.clone(), program });
            }
        }
    }
    found
}

/// The program of a server's entry, where that is a guard.
fn guard_program(server: &Value) -> Option<String> {
    let command = server.get("command")?;
    let words: Vec<&str> = match command {
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        command => {
            let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
            command.as_str().into_iter().chain(args.filter_map(Value::as_str)).collect()
        }
    };
    let (program, args) = words.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    (name.starts_with("countersign") && args.first() == Some(&"guard"))
        .then(|| (*program).to_owned())
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
