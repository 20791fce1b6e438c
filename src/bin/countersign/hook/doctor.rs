//! `countersign hook doctor`: whether the installed clients obey the hook.
//!
//! A check has three results and not two: in order, not in order, and unknown. A client that is not logged in makes no
//! call, which proves nothing about its hooks.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use countersign::hook::Client;
use serde_json::{Value, json};

use super::canary::Canary;
use super::install::Configuration;
use crate::Context;
use crate::output::{CommandError, CommandOutput};

/// Check the installation in a client: its version, its configuration, and, with `--live`, that a denial is obeyed.
#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    place: Configuration,
    /// Let the client run, with your account, and have it call a tool that must be denied
    #[arg(long)]
    live: bool,
    /// The program of the client, in place of the one that is found by its name
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// One thing that was checked: its name, whether it is in order, and what was found.
struct Finding(&'static str, Option<bool>, String);

impl Doctor {
    pub(super) fn run(self, context: &Context) -> Result<CommandOutput, CommandError> {
        let client = self.place.client;
        let installation = self.place.installation(context)?;
        let there = installation.has_entry();
        let mut checks = vec![self.version()];
        checks.push(match &there {
            Ok(true) => {
                Finding("configuration", Some(true), installation.path().display().to_string())
            }
            Ok(false) => Finding(
                "configuration",
                Some(false),
                format!(
                    "no hook in {}: run `countersign hook install {client}`",
                    installation.path().display()
                ),
            ),
            Err(error) => Finding("configuration", Some(false), error.to_string()),
        });
        if client == Client::Codex {
            checks.push(Finding(
                "trust",
                None,
                "Codex keeps it: an untrusted hook is skipped without a word. Look at /hooks in codex".to_owned(),
            ));
        }
        checks.push(match there {
            Ok(true) if self.live => self.canary(context)?,
            Ok(true) => Finding(
                "canary",
                None,
                "not proven; `--live` lets the client make a call that must be denied".to_owned(),
            ),
            _ => Finding("canary", None, "not tried, as there is no hook".to_owned()),
        });
        Ok(report(client, &checks))
    }

    fn program(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(|| self.place.client.name().into())
    }

    fn version(&self) -> Finding {
        let tested = self.place.client.tested_version();
        let output = Command::new(self.program()).arg("--version").stdin(Stdio::null()).output();
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                let program = self.program();
                let found = format!(
                    "`{}` cannot be run ({error}): name the program of the client with `--program`",
                    program.display()
                );
                return Finding("version", Some(false), found);
            }
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some((found, numbers)) = version(&text) else {
            return Finding("version", None, format!("unknown; {tested} was tested"));
        };
        let is_old = Some(numbers) < version(tested).map(|it| it.1);
        let note = if is_old { ": older than any that was tested" } else { "" };
        Finding("version", Some(!is_old), format!("{found} ({tested} was tested){note}"))
    }

    /// Lets the client call a tool that must be denied.
    fn canary(&self, context: &Context) -> Result<Finding, CommandError> {
        let canary = Canary::set(context.directories.state())
            .map_err(|error| CommandError::Store(error.to_string()))?;
        let folder = canary.folder();
        let target = folder.join(canary.marker());
        let prompt =
            format!("Run this shell command once, and then stop: touch {}", target.display());
        let mut command = Command::new(self.program());
        match self.place.client {
            Client::Claude => command.args(["-p", &prompt, "--allowedTools", "Bash"]),
            Client::Codex => command.args(["exec", "--skip-git-repo-check", &prompt]),
            Client::Gemini => command.args(["-p", &prompt, "--approval-mode", "yolo"]),
            Client::Copilot => command.args(["-p", &prompt, "--allow-all-tools"]),
            _ => command.args(["run", &prompt]),
        };
        if self.place.project {
            let here =
                std::env::current_dir().map_err(|error| CommandError::Store(error.to_string()))?;
            command.current_dir(here);
        } else {
            command.current_dir(folder);
        }
        let ended = run_for(command, Duration::from_secs(120));
        let (ran, seen) = (target.exists(), canary.was_seen());
        Ok(match (ran, seen, ended) {
            (true, true, _) => Finding(
                "canary",
                Some(false),
                "the client asked the hook, and ran the denied call".to_owned(),
            ),
            (true, false, _) => Finding(
                "canary",
                Some(false),
                "the client ran the call without asking the hook".to_owned(),
            ),
            (false, true, _) => Finding(
                "canary",
                Some(true),
                "the client asked the hook, and obeyed the denial".to_owned(),
            ),
            (false, false, Ok(true)) => {
                Finding("canary", None, "the client made no call: is it logged in?".to_owned())
            }
            (false, false, Ok(false)) => Finding(
                "canary",
                None,
                "the client made no call and failed or took too long".to_owned(),
            ),
            (false, false, Err(error)) => {
                Finding("canary", None, format!("the client cannot be run: {error}"))
            }
        })
    }
}

/// Whether a program ended well within a time.
fn run_for(mut command: Command, limit: Duration) -> std::io::Result<bool> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The first version number in a text, and its parts.
fn version(text: &str) -> Option<(String, Vec<u64>)> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
        let parts: Option<Vec<u64>> = word.split('.').map(|part| part.parse().ok()).collect();
        parts.filter(|parts| parts.len() >= 2).map(|parts| (word.to_owned(), parts))
    })
}

fn report(client: Client, checks: &[Finding]) -> CommandOutput {
    let word = |ok: Option<bool>| match ok {
        Some(true) => "ok",
        Some(false) => "PROBLEM",
        None => "unknown",
    };
    let lines: Vec<Value> = checks
        .iter()
        .map(|Finding(what, ok, found)| json!({"client": client.name(), "check": what, "ok": ok, "found": found}))
        .collect();
    let text: Vec<_> = checks
        .iter()
        .map(|Finding(what, ok, found)| format!("{what:<14}{:<9}{found}", word(*ok)))
        .collect();
    let status = if checks.iter().any(|check| check.1 == Some(false)) { 3 } else { 0 };
    CommandOutput::of(status, lines).for_people(text.join("\n"))
}
