//! `countersign guard`: a guard in front of one MCP server.
//!
//! On stdio, stdout belongs to the protocol: everything else goes to stderr, and one line on stdout would end the
//! connection of the client.

mod clients;
mod ending;
mod http;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use countersign::config::StoreUrl;
use countersign::error::with_causes;
use countersign::ledger::Ledger;
use countersign::mcp::{AskByHints, Guard, Launch};
use countersign::rules::Rules;
use countersign::{ToolMiddlewareExt as _, Tools, ToolsExt as _};

use crate::Context;
use crate::accepted::accepted_rules;
use crate::output::{CommandError, CommandOutput};
use crate::project::{self, in_project};
use crate::used_store::{UsedStore, quoted};
use ending::told_to_end;
use http::HttpArgs;

/// The end of `--help`.
const AFTER: &str = "\
In a client's configuration, put `countersign guard --name NAME --` in front of the server's command:
  {\"mcpServers\": {\"git\": {\"command\": \"countersign\", \"args\": [\"guard\", \"--name\", \"git\", \"--\", \"mcp-server-git\"]}}}

Calls that wait for a person are listed by `countersign asks list --state pending`. The tools of a server have to be \
accepted once: `countersign pins show NAME` and `countersign pins accept ASK`. Logs are on stderr, without arguments.

With --listen, each request needs `Authorization: Bearer SECRET`. The secret is in the file `guard.token` of the state \
directory, or in that of --token-file, which is made with a new one where it is not there. It is the account of its \
clients: all of them share asks and approvals. On a terminal the guard prints what each client's configuration needs.

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
    /// The root of the project, within which equal calls share an approval, and which relative paths in rules begin in;
    /// by default the working directory, unless rules have such paths and it is `/` or a home directory
    #[arg(long, value_name = "DIRECTORY")]
    project: Option<PathBuf>,
    /// The address of the inbox, for clients that can open one
    #[arg(long, value_name = "URL")]
    inbox: Option<String>,
    /// Where a person may answer: in forms of the client too, or only in the inbox and by `countersign asks`, where an
    /// answer in the client counts for nothing
    #[arg(long, value_name = "PLACE", default_value = "client")]
    ask_in: AskIn,
    #[command(flatten)]
    http: HttpArgs,
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

/// Where a person may answer.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AskIn {
    Client,
    Inbox,
}

impl GuardArgs {
    pub(crate) async fn run(
        self: Box<Self>,
        context: &Context,
    ) -> Result<CommandOutput, CommandError> {
        log();
        let door = self.http.door(context)?;
        let url: Option<StoreUrl> = self.store.as_deref().map(str::parse).transpose()?;
        let project = project::root(self.project.as_deref(), context)?;
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let keys = context.config.seal_keys(&context.directories)?;
        let ledger = in_project(ledger, &project);
        let (name, store) = (self.named(), UsedStore::new(context, url.as_ref()));
        let mut guard = Guard::new(&*name, self.launch()?, ledger.clone())
            .principal(context.config.principal())
            .project(project.to_string_lossy())
            .accept_hint(accepting(&name, &store));
        if self.name.is_some() {
            guard = guard.identified_by_name();
        }
        if let Some(rules) = self.rules(context, url.as_ref(), (&project, &ledger))? {
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
        if self.ask_in == AskIn::Inbox {
            server = server.without_forms();
        }
        match door {
            Some(door) => door.listen(server, &name, &context.config.principal(), told).await?,
            None => server.stdio().await?,
        }
        Ok(CommandOutput::of(0, Vec::new()))
    }

    /// The rules of the files; `None` where there is no file.
    fn rules(
        &self,
        context: &Context,
        url: Option<&StoreUrl>,
        (project, ledger): (&Path, &Ledger),
    ) -> Result<Option<Rules>, CommandError> {
        if self.rules.is_empty() {
            return Ok(None);
        }
        let own =
            context.config.own_places(&context.directories, context.config_file.as_deref(), url);
        let rules = Rules::builder().counts(ledger.clone()).root(project);
        let rules = rules.accepted(accepted_rules(&context.directories));
        let rules = own.iter().fold(rules, |rules, place| rules.protect(place));
        let rules = self.http.token_file.iter().fold(rules, |rules, file| rules.protect(file));
        let rules = self.rules.iter().fold(rules, |rules, file| rules.file(file));
        let rules = rules.load().map_err(|error| CommandError::Usage(with_causes(&error)))?;
        if self.project.is_none() {
            project::check(&rules, project)?;
        }
        Ok(Some(rules))
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

/// What has to be run to see the server's tools, and then to accept them.
fn accepting(server: &str, store: &UsedStore) -> String {
    match store.is_in_memory() {
        true => "its store is in memory, where no other program can accept them".to_owned(),
        false => {
            let show = store.command(&format!("pins show {}", quoted(server)));
            format!("run {show}{}", store.note())
        }
    }
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
