//! `countersign guard`: a guard in front of one MCP server.
//!
//! On stdio, stdout belongs to the protocol: everything else goes to stderr, and one line on stdout would end the
//! connection of the client.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use countersign::config::StoreUrl;
use countersign::error::with_causes;
use countersign::mcp::{AskByHints, Guard, Launch, McpError, Server};
use countersign::rules::Rules;
use countersign::{ToolMiddlewareExt as _, Tools, ToolsExt as _};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use crate::Context;
use crate::accepted::accepted_rules;
use crate::output::{CommandError, CommandOutput};
use crate::paths::{absolute, sqlite_url};
use crate::project::in_project;
use crate::signals::told;

/// The end of `--help`.
const AFTER: &str = "\
In a client's configuration, put `countersign guard --name NAME --` in front of the server's command:
  {\"mcpServers\": {\"git\": {\"command\": \"countersign\", \"args\": [\"guard\", \"--name\", \"git\", \"--\", \"mcp-server-git\"]}}}

Calls that wait for a person are listed by `countersign asks list --state pending`. The tools of a server have to be \
accepted once: `countersign pins list` and `countersign pins accept ASK`. Logs are on stderr, without arguments.

Told to end (SIGTERM, Ctrl-C), it begins no call any more, and records calls that do not end within a second as ones \
that may have run. Told twice, it ends at once.

Exit statuses: 0 the client has ended the connection, or the guard was told to end; 1 the store, the address or the server cannot be used; 2 bad usage.";

/// Put permission layers in front of an MCP server
#[derive(Args)]
#[command(after_help = AFTER, group = ArgGroup::new("server").required(true).args(["command", "upstream"]))]
pub(crate) struct GuardArgs {
    /// The name of the server, as people are shown it; by default that of the program or the host
    #[arg(long)]
    name: Option<String>,
    /// A file of rules; without one, every call is asked about. Several files add up, and the strictest rule wins
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Where asks and accepted tools are; by default the store of the configuration
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How many seconds a call is held while a person decides; less than the client's own limit
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    wait: u64,
    /// The root of the project, within which equal calls share an approval; by default the working directory
    #[arg(long, value_name = "DIRECTORY")]
    project: Option<PathBuf>,
    /// The address of the inbox, for clients that can open one
    #[arg(long, value_name = "URL")]
    inbox: Option<String>,
    /// Serve streamable HTTP at this address, in place of stdio. Without accounts: clients share nothing
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Ask about each tool of which the server does not say that it destroys nothing, also where the rules allow it
    #[arg(long)]
    ask_destructive: bool,
    /// Ask about each tool of which the server does not say that it stays within itself, also where the rules allow it
    #[arg(long)]
    ask_open_world: bool,
    /// Allow every call, and log what would have been decided
    #[arg(long)]
    danger_observe: bool,
    /// Accept every tool as the server defines it, now and after later changes
    #[arg(long)]
    danger_accept_all_tools: bool,
    /// The URL of the server (streamable HTTP)
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The command of the server (stdio), after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl GuardArgs {
    pub(crate) async fn run(
        self: Box<Self>,
        context: &Context,
    ) -> Result<CommandOutput, CommandError> {
        log();
        let url: Option<StoreUrl> = self.store.as_deref().map(str::parse).transpose()?;
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let keys = context.config.seal_keys(&context.directories)?;
        let project = match &self.project {
            Some(project) => project.clone(),
            None => {
                std::env::current_dir().map_err(|error| CommandError::Usage(error.to_string()))?
            }
        };
        let ledger = in_project(ledger, &project);
        let launch = self.launch()?;
        let mut guard = Guard::new(self.named(), launch, ledger.clone())
            .principal(context.config.principal())
            .project(project.to_string_lossy())
            .accept_hint(accepting(url.as_ref(), self.store.as_deref(), context));
        if self.name.is_some() {
            guard = guard.identified_by_name();
        }
        if !self.rules.is_empty() {
            let (file, url) = (context.config_file.as_deref(), url.as_ref());
            let own = context.config.own_places(&context.directories, file, url);
            let rules = Rules::builder().counts(ledger.clone());
            let rules = rules.accepted(accepted_rules(&context.directories));
            let rules = own.iter().fold(rules, |rules, place| rules.protect(place));
            let rules = self.rules.iter().fold(rules, |rules, file| rules.file(file));
            let rules = rules
                .root(&project)
                .load()
                .map_err(|error| CommandError::Usage(with_causes(&error)))?;
            let hints = self.hints();
            guard = guard.layers(move |tools| {
                let tools: Tools = tools.layered(rules.clone().into_layer());
                hints.map_or(tools.clone(), |hints| tools.layered(hints.into_layer()))
            });
        }
        if self.danger_observe {
            guard = guard.danger_observe();
        }
        if self.danger_accept_all_tools {
            guard = guard.danger_accept_all_tools();
        }
        let told = told_to_end();
        let server = guard.server().seal_keys(keys).wait(Duration::from_secs(self.wait));
        let mut server = server.shutdown(told.clone());
        if let Some(inbox) = &self.inbox {
            server = server.inbox(inbox);
        }
        match self.listen {
            Some(address) => listen(server, address, told).await?,
            None => server.stdio().await.map_err(|error| failed(&error))?,
        }
        Ok(CommandOutput::of(0, Vec::new()))
    }

    /// The hints of the server that are a reason to ask. Without rules every call is asked about.
    fn hints(&self) -> Option<AskByHints> {
        let destructive = self.ask_destructive.then(AskByHints::destructive);
        let open_world = self.ask_open_world.then(AskByHints::open_world);
        match (destructive, open_world) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        }
    }

    fn launch(&self) -> Result<Launch, CommandError> {
        match (&self.upstream, self.command.split_first()) {
            (Some(url), None) => Ok(Launch::url(url)),
            (None, Some((program, args))) => Ok(Launch::command(program).args(args)),
            _ => Err(CommandError::Usage(
                "give either a command after `--`, or `--upstream URL`".to_owned(),
            )),
        }
    }

    fn named(&self) -> String {
        let program = || {
            let path = self.command.first().map(PathBuf::from)?;
            path.file_stem().map(|name| name.to_string_lossy().into_owned())
        };
        let host =
            || self.upstream.as_ref().and_then(|url| url.split('/').nth(2)).map(str::to_owned);
        self.name.clone().or_else(program).or_else(host).unwrap_or_else(|| "server".to_owned())
    }
}

/// What has to be run to accept the server's tools: with the same store as this guard, from any directory.
fn accepting(store: Option<&StoreUrl>, given: Option<&str>, context: &Context) -> String {
    let mut command = "countersign pins accept --all".to_owned();
    if let Some(file) = &context.config_file {
        let file = absolute(file).unwrap_or_else(|_| file.display().to_string());
        command += &format!(" --config {}", quoted(&file));
    }
    match store {
        Some(StoreUrl::Memory) => {
            return "its store is in memory, where no other program can accept them".to_owned();
        }
        Some(StoreUrl::Sqlite(path)) => {
            let url = sqlite_url(path).unwrap_or_else(|_| format!("sqlite:{}", path.display()));
            command += &format!(" --store {}", quoted(&url));
        }
        // A URL with a password is in no log.
        Some(url) if given != Some(&*url.to_string()) => {
            command += " --store URL, with the URL of this guard's store";
        }
        Some(url) => command += &format!(" --store {}", quoted(&url.to_string())),
        None => {}
    }
    format!("run {command}")
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// How long after the guard was told to end it does: connections are closed by then, and calls in flight whose clients
/// have gone are recorded.
const CLOSING: Duration = Duration::from_secs(2);

async fn listen(server: Server, address: SocketAddr, told: EndSignal) -> Result<(), CommandError> {
    let router = server.router().map_err(|error| failed(&error))?;
    let problem = |error: std::io::Error| CommandError::Store(format!("{address}: {error}"));
    let listener = tokio::net::TcpListener::bind(address).await.map_err(problem)?;
    let bound = listener.local_addr().map_err(problem)?;
    let line = format!("countersign guard listens on http://{bound}/mcp");
    // A closed stderr is no error.
    let _ = writeln!(std::io::stderr(), "{line}");
    let served = axum::serve(listener, router).with_graceful_shutdown(told.clone());
    let failed = async {
        served.await?;
        std::future::pending::<std::io::Result<()>>().await
    };
    tokio::select! {
        failed = failed => failed.map_err(problem),
        () = async { told.await; tokio::time::sleep(CLOSING).await } => Ok(()),
    }
}

/// Completes when the program is told to end, for all that have to know.
type EndSignal = Shared<BoxFuture<'static, ()>>;

/// Completes when the program is told to end. When it is told a second time, it ends at once.
fn told_to_end() -> EndSignal {
    let told = async {
        told().await;
        tokio::spawn(async {
            told().await;
            std::process::exit(1);
        });
    };
    told.boxed().shared()
}

/// Writes the library's log to stderr: names and decisions, never arguments (rule S2).
fn log() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let own = Targets::new().with_target("countersign", LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // Only a program that has a log already refuses another.
    let _ = tracing_subscriber::registry().with(lines).with(own).try_init();
}

fn failed(error: &McpError) -> CommandError {
    match error {
        McpError::Config { .. } => CommandError::Usage(with_causes(error)),
        other => CommandError::Store(with_causes(other)),
    }
}
