//! `countersign hook doctor`: whether the installed clients obey the hook.
//!
//! A check has three results: in order, not in order, and unknown. For example, a client that is not logged in makes
//! no call, and that proves nothing about its hooks.
//!
//! | check | finds |
//! |---|---|
//! | version | a client that is older than any that was tested |
//! | tested | a client that is known from its documentation only, until `--live` has proven it on this machine |
//! | configuration | a client without the hook |
//! | program | an entry whose program has been moved, or is a copy of another version |
//! | entry | an entry that is not the one that `install` writes: another limit, fewer tools or events |
//! | rules | rules that do not load, or that allow nothing, so that every call is denied or asked about |
//! | accepted | rules that wait for `rules accept`, so that the stricter of them and the ones before decides |
//! | trust | a switch that turns hooks off, and what Codex does not trust |
//! | once | an entry for the user, and another one for the project |
//! | other hooks | hooks of others before tools, which may change a call that was allowed, also those that skills and agents bring |
//! | project | a file of the project that acts before the hook, or switches it off |
//! | by itself | what a project lets the client run without a call: helpers, hooks of other events, MCP servers |
//! | servers | an MCP server of the project with a name that the rules allow |
//! | places | directories, a store or a person of the entry that the project could have named |
//! | environment | variables that change what commands do, and whether they were there at the installation |
//! | search path | a folder of `PATH` in which tools may put a program in front of those that are found now |
//! | canary | everything else: a denial that is not obeyed, a hook that was not asked |

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use countersign::show::escape;
use countersign_cli::config::LastingProgram;
use countersign_cli::hook::{Client, HookFiles, Installation, Trust};

use super::around::{by_itself, environment, here, others, places, project, servers};
use super::canary::Canary;
use super::install::Configuration;
use super::live::{Session, SessionEnd};
use super::options::Options;
use super::place::{HookPlace, clients};
use super::search_path::search_path;
use crate::Context;
use crate::findings::{Finding, report};
use crate::output::{CommandError, CommandOutput};

/// Check the installation in a client: its version, its configuration, and, with `--live`, that a denial is obeyed.
#[derive(Args)]
pub(crate) struct Doctor {
    /// The client; without one, each that has the hook, with what is not in order
    #[arg(value_parser = clients())]
    client: Option<Client>,
    #[command(flatten)]
    at: HookPlace,
    /// Let the client run, with your account, and have it call a tool that must be denied
    #[arg(long, requires = "client")]
    live: bool,
    /// Let it run in the current directory, with the settings of the project, and not in a directory of its own
    #[arg(long, requires = "live")]
    here: bool,
    /// The program of the client, in place of the one that is found by its name
    #[arg(long, value_name = "PATH", requires = "client")]
    program: Option<PathBuf>,
}

impl Doctor {
    pub(super) fn run(self, context: &Context) -> Result<CommandOutput, CommandError> {
        let Self { client, at, live, here, program } = self;
        let of = |client, program| {
            let place = Configuration { client, at: at.clone() };
            ClientDoctor { place, live, here, program }
        };
        if let Some(client) = client {
            let (checks, canary_is_unknown) = of(client, program).checks(context)?;
            let mut output = report(Some(client.name()), &checks);
            if live && canary_is_unknown {
                output.status = 3;
            }
            return Ok(output);
        }
        let mut all = Vec::new();
        for client in Client::ALL {
            let one = of(client, None);
            // A machine has files of some clients only.
            let Ok(installation) = one.place.installation(context) else { continue };
            if installation.has_entry().unwrap_or(true) {
                all.push((client, one.checks(context)?.0));
            }
        }
        Ok(summary(&all))
    }
}

/// Tells what is not in order with each client that has the hook.
fn summary(all: &[(Client, Vec<Finding>)]) -> CommandOutput {
    if all.is_empty() {
        let text =
            "No client has the hook here: `countersign init` installs it in each that is there";
        return CommandOutput::of(3, Vec::new()).for_people(text);
    }
    let (mut lines, mut texts, mut status) = (Vec::new(), Vec::new(), 0);
    for (client, checks) in all {
        let problems: Vec<_> = checks.iter().filter(|it| it.1 == Some(false)).collect();
        texts.push(match problems.is_empty() {
            true => format!(
                "{}: in order; `countersign hook doctor {client} --live` proves that it obeys",
                client.title()
            ),
            false => {
                status = 3;
                let found = problems.iter().map(|it| format!("\n  {:<14}{}", it.0, it.2));
                format!("{}: PROBLEM{}", client.title(), found.collect::<String>())
            }
        });
        lines.extend(crate::findings::lines(Some(client.name()), checks));
    }
    CommandOutput::of(status, lines).for_people(texts.join("\n"))
}

/// The checks of one client.
struct ClientDoctor {
    place: Configuration,
    live: bool,
    here: bool,
    program: Option<PathBuf>,
}

impl ClientDoctor {
    /// The findings, and `true` if the canary has proven nothing.
    fn checks(&self, context: &Context) -> Result<(Vec<Finding>, bool), CommandError> {
        let client = self.place.client;
        let installation = self.place.installation(context)?;
        let mut checks = vec![self.version()];
        let is_there = match installation.has_entry() {
            Ok(true) => {
                let found = installation.path().display().to_string();
                checks.push(Finding("configuration", Some(true), found));
                checks.push(program(&installation, context));
                checks.push(entry(&installation));
                checks.extend(rules(&installation, &self.place));
                checks.push(trust(&installation, context)?);
                checks.extend(self.twice(&installation, context)?);
                checks.push(others(&installation, context)?);
                checks.push(project(&self.place, context)?);
                checks.push(by_itself(client, context)?);
                checks.extend(servers(&installation, &self.place, context)?);
                checks.push(places(&installation, context)?);
                checks.push(environment(&installation, client, context));
                checks.push(search_path());
                true
            }
            Ok(false) => {
                let found = self.missing(&installation, context)?;
                checks.push(Finding("configuration", Some(false), found));
                false
            }
            Err(error) => {
                checks.push(Finding("configuration", Some(false), error.to_string()));
                false
            }
        };
        let canary = match is_there {
            true if self.live => self.canary(context)?,
            true => Finding(
                "canary",
                None,
                "not proven; `--live` lets the client make a call that must be denied".to_owned(),
            ),
            false => Finding("canary", None, "not tried, as there is no hook".to_owned()),
        };
        checks.extend(self.untested(context));
        let canary_is_unknown = canary.1.is_none();
        checks.push(canary);
        Ok((checks, canary_is_unknown))
    }

    /// Tells whether a client that was never tested has obeyed the hook on this machine. `None` for one that was tested.
    fn untested(&self, context: &Context) -> Option<Finding> {
        if self.place.client.tested_version().is_some() {
            return None;
        }
        Some(match proof(self.place.client, context).exists() {
            true => Finding("tested", Some(true), "`--live` was proven on this machine".to_owned()),
            false => {
                let found = format!("{NOT_TESTED}; run `--live`, which proves it on this machine");
                Finding("tested", None, found)
            }
        })
    }

    fn program(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(|| self.place.client.program().into())
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
        let Some(tested) = tested else {
            let found = version(&text).map_or("unknown".to_owned(), |(found, _)| found);
            return Finding("version", None, format!("{found}; {NOT_TESTED}"));
        };
        let Some((found, numbers)) = version(&text) else {
            return Finding("version", None, format!("unknown; {tested} was tested"));
        };
        let is_old = Some(numbers) < version(tested).map(|it| it.1);
        let note = if is_old { ": older than any that was tested" } else { "" };
        Finding("version", Some(!is_old), format!("{found} ({tested} was tested){note}"))
    }

    /// Checks whether the client has the hook a second time, for the user or for the project.
    fn twice(
        &self,
        installation: &Installation,
        context: &Context,
    ) -> Result<Option<Finding>, CommandError> {
        let (client, state) = (self.place.client, context.directories.state());
        let others = self.place.others(installation, state, context)?;
        let other = others.iter().find(|it| it.has_entry().unwrap_or_default());
        // A client that is told to look elsewhere may read one of the two.
        let named = HookFiles::of(client, state).read();
        let is_named = |it: &Installation| named.iter().any(|file| file == it.path());
        Ok(other.map(|other| match is_named(other) || is_named(installation) {
            true => {
                let found = format!(
                    "{} has the hook, too: where {client} reads both files, both are asked about each call",
                    other.path().display()
                );
                Finding("once", None, found)
            }
            false => {
                let found = format!(
                    "{} has the hook, too: both are asked about each call, and an approval answers one of them. Run \
                     `countersign hook uninstall {client}` for one",
                    other.path().display()
                );
                Finding("once", Some(false), found)
            }
        }))
    }

    /// Says that a file has no hook, and which files that were named have it.
    fn missing(
        &self,
        installation: &Installation,
        context: &Context,
    ) -> Result<String, CommandError> {
        let client = self.place.client;
        let path = installation.path().display();
        let others = self.place.others(installation, context.directories.state(), context)?;
        let named = HookFiles::of(client, context.directories.state()).read();
        let is_there = |it: &&Installation| {
            it.has_entry().unwrap_or_default() && named.iter().any(|file| file == it.path())
        };
        Ok(match others.iter().find(is_there) {
            Some(other) => {
                let other = escape(&other.path().display().to_string());
                format!(
                    "no hook in {path}, and one in {other}: run `countersign hook doctor {client} --file {other}`"
                )
            }
            None => format!("no hook in {path}: run `countersign hook install {client}`"),
        })
    }

    /// Lets the client call a tool that must be denied.
    fn canary(&self, context: &Context) -> Result<Finding, CommandError> {
        let failed = |error: io::Error| CommandError::Store(error.to_string());
        let canary = Canary::set(context.directories.state()).map_err(failed)?;
        let target = canary.target();
        let prompt =
            format!("Run this shell command once, and then stop: touch {}", target.display());
        let client = self.place.client;
        let in_project = self.place.at.project || self.here;
        let directory = if in_project { here()? } else { canary.work() };
        let session = Session { client, program: self.program(), directory, is_own: !in_project };
        // It takes a while, and stdout is for the result.
        eprintln!(
            "{client} is asked to make a call that must be denied, which may take three minutes"
        );
        let called = || target.exists() || canary.was_seen();
        let ended = session.run(&prompt, &canary.log(), called);
        let (ran, seen) = (target.exists(), canary.was_seen());
        let (ok, found) = match (ran, seen, ended) {
            (true, true, _) => {
                (Some(false), "the client asked the hook, and ran the denied call".to_owned())
            }
            (true, false, _) => {
                (Some(false), "the client ran the call without asking the hook".to_owned())
            }
            (false, true, _) => {
                prove(&proof(client, context)).map_err(failed)?;
                (Some(true), "the client asked the hook, and obeyed the denial".to_owned())
            }
            (false, false, Ok((ended, words))) => {
                // A client that has answered the prompt was able to make the call: then the hook was not asked.
                let is_well = matches!(&ended, SessionEnd::Itself(status) if status.success());
                (is_well.then_some(false), no_call(&ended, &words))
            }
            (false, false, Err(error)) => (None, format!("the client cannot be run: {error}")),
        };
        Ok(Finding("canary", ok, found))
    }
}

/// The words about a client that was never run with this hook.
const NOT_TESTED: &str = "not tested: what is known of this client comes from its documentation, and it was never run with this hook";

fn prove(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, "")
}

/// The file that says that a client has obeyed the hook on this machine.
fn proof(client: Client, context: &Context) -> PathBuf {
    context.directories.state().join("proven").join(client.name())
}

/// The finding that nothing is known: no call was seen, and none has changed anything.
fn no_call(ended: &SessionEnd, words: &str) -> String {
    let how = match ended {
        SessionEnd::TooLate => "the client made no call in time".to_owned(),
        SessionEnd::Itself(status) if status.success() => {
            "the client ended well, and neither the hook nor the file saw the call: another program may answer in place of \
             the hook, or the client is not logged in."
                .to_owned()
        }
        SessionEnd::Itself(status) => format!("the client made no call, and failed ({status})"),
    };
    match words {
        "" => how,
        words => format!("{how} Its last words: {words}"),
    }
}

/// Checks whether the client's own files keep it from calling the hook.
fn trust(installation: &Installation, context: &Context) -> Result<Finding, CommandError> {
    let trust = installation.trust(context.directories.home(), &here()?);
    Ok(match trust {
        Ok(Trust::Given) => {
            Finding("trust", Some(true), "no file of the client switches the hook off".to_owned())
        }
        Ok(Trust::Missing(reason)) => Finding("trust", Some(false), reason),
        Ok(_) => Finding("trust", None, "not known".to_owned()),
        Err(error) => Finding("trust", None, error.to_string()),
    })
}

/// Checks that the program that the entry names is there, and is this one where it is a copy.
fn program(installation: &Installation, context: &Context) -> Finding {
    match installation.installed_program() {
        Ok(Some(program)) if is_executable(&program) => {
            let found = program.display().to_string();
            match is_other_copy(&program, context) {
                false => Finding("program", Some(true), found),
                true => {
                    let found =
                        format!("{found} is a copy of another version: install the hook again");
                    Finding("program", None, found)
                }
            }
        }
        Ok(Some(program)) => {
            let found = format!(
                "{} cannot be run, so that each call is denied: install the hook again",
                program.display()
            );
            Finding("program", Some(false), found)
        }
        Ok(None) => Finding("program", None, "the entry was written by hand".to_owned()),
        Err(error) => Finding("program", Some(false), error.to_string()),
    }
}

/// Returns `true` if a program is the copy that `install` has made, and not one of the program that runs.
fn is_other_copy(program: &Path, context: &Context) -> bool {
    let running = std::env::current_exe().and_then(|path| path.canonicalize());
    let state = program.parent().and_then(Path::parent);
    let (Ok(running), Some(state)) = (running, state) else { return false };
    let lasting = LastingProgram::of(&running, context.directories.home(), state);
    lasting.path() == program && !lasting.is_current()
}

/// Checks whether the entry is the one that `install` writes with its options.
fn entry(installation: &Installation) -> Finding {
    match installation.differences() {
        Ok(found) if found.is_empty() => {
            Finding("entry", Some(true), "as `countersign hook install` writes it".to_owned())
        }
        Ok(found) => {
            let found = format!("{}: install the hook again", found.join("; "));
            Finding("entry", Some(false), found)
        }
        Err(error) => Finding("entry", Some(false), error.to_string()),
    }
}

/// Checks whether any call could be allowed, with the options of the entry.
fn rules(installation: &Installation, place: &Configuration) -> Vec<Finding> {
    let words = match installation.installed_command() {
        Ok(Some(words)) => words,
        Ok(None) => {
            return vec![Finding("rules", None, "the entry was written by hand".to_owned())];
        }
        Err(error) => return vec![Finding("rules", Some(false), error.to_string())],
    };
    // The program, `hook`, and the client.
    let options = words.get(3..).unwrap_or_default();
    let loaded = Options::of_entry(options).and_then(|options| {
        options.rules(place).map_err(|error| match error {
            CommandError::Usage(problem) | CommandError::Store(problem) => problem,
        })
    });
    let waits = matches!(&loaded, Ok(Some(rules)) if rules.needs_accepting());
    let (ok, found) = match loaded {
        Ok(Some(rules)) if rules.can_allow() => {
            let files: Vec<_> = rules.files().iter().map(ToString::to_string).collect();
            (true, files.join("; "))
        }
        Ok(Some(_)) => {
            (false, "no rule allows anything: every call is denied or asked about".to_owned())
        }
        Ok(None) => {
            let found = "every call is asked about, as there are no rules: `countersign init` writes some, and \
                         `countersign hook install` with `--preset developer` needs none";
            (false, found.to_owned())
        }
        Err(problem) => (false, format!("every call is denied: {problem}")),
    };
    let mut all = vec![Finding("rules", Some(ok), found)];
    if waits {
        let found = "the rules were changed since you accepted them, and the stricter of both decides: `countersign \
                     rules accept` shows the difference";
        all.push(Finding("accepted", Some(false), found.to_owned()));
    }
    all
}

#[cfg(unix)]
fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    program.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(program: &Path) -> bool {
    program.is_file()
}

/// The first version number in a text, and its parts.
fn version(text: &str) -> Option<(String, Vec<u64>)> {
    // It may be the end of a sentence.
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    words.map(|word| word.trim_matches('.')).find_map(|word| {
        let parts: Option<Vec<u64>> = word.split('.').map(|part| part.parse().ok()).collect();
        parts.filter(|parts| parts.len() >= 2).map(|parts| (word.to_owned(), parts))
    })
}
