//! An assistant tidies a folder, and every tool call it makes goes through a permission stack.
//!
//! ```text
//! cargo run -p assistant                       asks you in the terminal
//! cargo run -p assistant -- --approve-all      asks no person
//! cargo run -p assistant -- --help             all the rest
//!
//! cargo run -p assistant --features genai -- --model NAME      asks a real model what to do
//! ```
//!
//! | file | is |
//! |---|---|
//! | `rules.toml` | what the assistant may do: start reading here |
//! | `stack.rs` | the permission stack around it |
//! | `sandbox.rs` | which paths are inside the folder |
//! | `tools.rs` | the tools, on real files |
//! | `model/` | the scripted model, offline and deterministic, and real models (`model/real.rs`) |
//! | `mcp.rs` | the tools of an MCP server, which `--mcp` adds |
//! | `answers.rs` | the handlers: the terminal, a file of answers, or one answer for all calls |
//! | `suspend.rs` | the file of a suspended run |
//! | `report/` | the output, and the table at the end |

mod answers;
mod cli;
#[cfg_attr(not(feature = "mcp"), path = "mcp_absent.rs")]
mod mcp;
mod model;
mod report;
mod sandbox;
mod stack;
mod suspend;
mod tools;
mod workspace;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use countersign::agent::{Run, RunError, RunOutput, RunResult, text};
use countersign::handler::{HandlerChain, Stopped};
use countersign::ledger::{Ledger, MemoryStore};
use countersign::{Agent, DeferredToolHandler as _, DeferredToolResults, SuspendedRun, Tools};

use cli::{Cli, Command, HELP};
use report::{Report, plain, say};
use sandbox::Sandbox;
use suspend::Stored;

const PROMPT: &str = "Tidy up this folder.";

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Cli::read() {
        Ok(Command::Help) => {
            say(HELP);
            Ok(())
        }
        Ok(Command::Run(cli)) => match Session::open(cli).await {
            Ok((session, waiting)) => session.go(waiting).await,
            Err(problem) => Err(Failure::Unusable(problem)),
        },
        Err(problem) => Err(Failure::Unusable(problem)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Unusable(problem)) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
        Err(Failure::Run(problem)) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
        Err(Failure::Stopped(told)) => {
            eprintln!("{told}");
            ExitCode::from(130)
        }
    }
}

enum Failure {
    /// The user's input cannot be used, and nothing has run.
    Unusable(String),
    /// The run ended with an error.
    Run(String),
    /// A person stopped the run while a question was open.
    Stopped(String),
}

/// One process of a run, from a prompt or a file to an answer or a file.
struct Session {
    cli: Cli,
    directory: PathBuf,
    handler: HandlerChain,
    report: Arc<Report>,
    agent: Agent,
    read_only: bool,
}

impl Session {
    /// Checks everything that can be checked before anything runs. Also returns the suspended run, if one is resumed.
    async fn open(cli: Cli) -> Result<(Self, Option<SuspendedRun>), String> {
        let model = match &cli.model {
            Some(name) => Some(model::real::named(name).await?),
            None => None,
        };
        let server = match &cli.mcp {
            Some(command) => Some(mcp::tools(command).await?),
            None => None,
        };
        // For answers in advance, which end with the program. A run that is stored in a file has no ledger.
        let ledger = (cli.suspend.is_none() && cli.resume.is_none())
            .then(|| Ledger::new(MemoryStore::new()).session("assistant"));
        let (handler, note) = answers::handler(&cli, ledger.as_ref())?;
        let stored = cli.resume.as_deref().map(suspend::read).transpose()?;
        let directory = directory(&cli, stored.as_ref())?;
        let sandbox = Sandbox::new(&directory)
            .map_err(|error| format!("cannot work in {}: {error}", directory.display()))?;
        let rules =
            stack::rules(sandbox.dir(), cli.rules.as_deref()).map_err(|it| it.to_string())?;
        let read_only = cli.read_only || stored.as_ref().is_some_and(|stored| stored.read_only);
        let resumed = stored.as_ref().map(|stored| calls_wait(&stored.run));
        let (waiting, rows) = stored.map(|it| (it.run, it.rows)).unzip();
        let explained = cli.explain.then(|| rules.clone());
        let report = Arc::new(Report::new(explained, rows.unwrap_or_default()));
        say(&format!(
            "Workspace: {}",
            report.paint().bold(&plain(&sandbox.dir().to_string_lossy()))
        ));
        if let (Some(file), Some(waiting)) = (&cli.resume, resumed) {
            say(&format!("Resuming the run in {}: {waiting}.", file.display()));
        }
        if let Some(note) = note.filter(|_| cli.suspend.is_none() || waiting.is_some()) {
            say(&report.paint().yellow(note));
        }
        let tools = stack::stack(rules, read_only, server);
        let agent = agent(model, sandbox, tools, cli.explain, Arc::clone(&report));
        let agent = match ledger {
            Some(ledger) => agent.ledger(ledger),
            None => agent,
        };
        Ok((Self { cli, directory, handler, report, agent, read_only }, waiting))
    }

    async fn go(&self, waiting: Option<SuspendedRun>) -> Result<(), Failure> {
        let mut ended = match waiting {
            None => self.handled(self.agent.run(PROMPT)).await,
            Some(run) => self.answer(run, self.cli.resume.as_deref()).await?,
        };
        loop {
            let result = ended.map_err(|error| self.fail(&error))?;
            match result.output() {
                RunOutput::Deferred(run) if self.cli.suspend.is_none() => {
                    // The handler is asked once per response. A call that has to be asked about again (its file has
                    // changed, or a layer has changed an edited answer) is returned here.
                    ended = self.answer(SuspendedRun::clone(run), None).await?;
                }
                RunOutput::Deferred(run) => return self.suspend(run),
                _ => {
                    self.finish(result.text().unwrap_or_default());
                    return Ok(());
                }
            }
        }
    }

    /// Sets the handler that answers inline. With `--suspend`, only the file of `--answers` answers, and the other
    /// calls are left pending.
    fn handled<'a>(&self, run: Run<'a>) -> Run<'a> {
        match (&self.cli.suspend, &self.cli.answers) {
            (Some(_), None) => run,
            _ => run.deferred_tool_handler(self.handler.clone()),
        }
    }

    /// Answers the pending calls, claims the file that the run came from, and resumes the run.
    async fn answer(
        &self,
        run: SuspendedRun,
        from: Option<&Path>,
    ) -> Result<Result<RunResult, RunError>, Failure> {
        let requests = run.requests();
        let answers =
            match requests.is_empty() {
                true => DeferredToolResults::new(),
                false => self.handler.handle(&run.context(), &requests).await.map_err(|error| {
                    match error.is::<Stopped>() {
                        true => Failure::Stopped(stopped(&run, from)),
                        false => Failure::Run(error.to_string()),
                    }
                })?,
            };
        if let Some(file) = from {
            suspend::claim(file).map_err(Failure::Unusable)?;
        }
        Ok(self.handled(self.agent.resume(run, answers)).await)
    }

    fn suspend(&self, run: &SuspendedRun) -> Result<(), Failure> {
        let Some(file) = &self.cli.suspend else { return Ok(()) };
        self.store(file, run).map_err(Failure::Run)?;
        let waiting = calls_wait(run);
        say(&format!("\n{waiting} in {}. Resume it with:", file.display()));
        say(&format!("  cargo run -p assistant -- --resume {}", file.display()));
        Ok(())
    }

    fn store(&self, file: &Path, run: &SuspendedRun) -> Result<(), String> {
        let (directory, rows) = (self.directory.clone(), self.report.rows());
        let stored = Stored { directory, read_only: self.read_only, rows, run: run.clone() };
        suspend::write(file, &stored)?;
        self.forget_used();
        Ok(())
    }

    /// Removes the claimed file: the run has progressed beyond it.
    fn forget_used(&self) {
        if let Some(file) = &self.cli.resume {
            suspend::forget(file);
        }
    }

    fn finish(&self, answer: &str) {
        self.forget_used();
        self.report.says(answer);
        say(&format!("\n{}", self.report.table()));
    }

    /// Reports an error and stores the snapshot that it carries, in which calls that ran are settled and do not run
    /// again.
    fn fail(&self, error: &RunError) -> Failure {
        say(&format!("\n{}", self.report.table()));
        let mut text = match error.error().is_stopped() {
            true => "Stopped: none of the calls that were asked about has run.".to_owned(),
            false => error.to_string(),
        };
        let mut source = error.source();
        while let Some(cause) = source {
            text += &format!(": {cause}");
            source = cause.source();
        }
        if let Some(words) = model::real::in_its_own_words(error).filter(|_| self.cli.explain) {
            text += &format!("\nIn its own words: {words}");
        }
        if let Some(file) = self.cli.suspend.as_ref().or(self.cli.resume.as_ref()) {
            match self.store(file, error.suspended()) {
                Ok(()) => text += &format!("\nThe snapshot of the run is in {}.", file.display()),
                Err(problem) => text += &format!("\n{problem}"),
            }
        }
        match error.error().is_stopped() {
            true => Failure::Stopped(plain(&text)),
            false => Failure::Run(plain(&text)),
        }
    }
}

/// The message for a person who stops before any call was answered. A file that was resumed is unchanged.
fn stopped(run: &SuspendedRun, from: Option<&Path>) -> String {
    let still = match from {
        Some(file) => format!("{} still holds the run", file.display()),
        None => "none of them has run".to_owned(),
    };
    format!("Stopped: {}; {still}.", calls_wait(run))
}

fn calls_wait(run: &SuspendedRun) -> String {
    match run.requests().iter().count() {
        1 => "1 call waits".into(),
        n => format!("{n} calls wait"),
    }
}

/// The directory to work in: the one that was named, that of the suspended run, or a new copy.
fn directory(cli: &Cli, stored: Option<&Stored>) -> Result<PathBuf, String> {
    match (&cli.directory, stored) {
        (_, Some(stored)) => Ok(stored.directory.clone()),
        (Some(directory), None) => std::path::absolute(directory)
            .map_err(|error| format!("{}: {error}", directory.display())),
        (None, None) => {
            workspace::copy().map_err(|error| format!("cannot copy the workspace: {error}"))
        }
    }
}

fn agent(
    model: Option<model::real::Real>,
    sandbox: Sandbox,
    tools: Tools,
    explain: bool,
    report: Arc<Report>,
) -> Agent {
    let agent = match model {
        Some(model) => model::real::agent(model, tools),
        None => Agent::new(model::Tidy, tools).instructions("You tidy up folders."),
    };
    agent
        // The layers and the tools find the sandbox by its type.
        .deps(sandbox)
        .output(text().or_deferred())
        .turns(|turn| if explain { turn.explain() } else { turn }.require_bound_answers())
        .watch(move |event| report.event(event))
}
