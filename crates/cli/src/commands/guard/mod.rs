//! `countersign guard`: a guard in front of one MCP server.
//!
//! On stdio, stdout belongs to the protocol: one other line there would end the connection of the client. So
//! everything else goes to stderr.

mod current_rules;
mod doctor;
mod ending;
mod http;
mod http_clients;
mod init;
mod log;
mod places;
mod server_args;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use countersign::error::with_causes;
use countersign::ledger::Ledger;
use countersign::{ToolMiddlewareExt as _, Tools, ToolsExt as _};
use countersign_cli::config::{StoreUrl, answering};
use countersign_mcp::{AskByHints, Guard};
use countersign_rules::{Rules, RulesBuilder};

use crate::Context;
use crate::accepted::accepted_rules;
use crate::account_settings::AccountSettings;
use crate::output::{CommandError, CommandOutput};
use crate::project::{self, in_project};
use crate::used_store::UsedStore;
use current_rules::{CurrentRules, RulesToCome};
use doctor::GuardDoctor;
use ending::told_to_end;
use http::HttpArgs;
use init::GuardInit;
use log::{accepting, log};
use server_args::ServerArgs;

/// The end of `--help`.
const AFTER: &str = "\
`countersign guard init --name NAME -- COMMAND` begins: you accept the server's tools, and it writes rules and prints the \
entry for the configuration of each client. In short, put `countersign guard --name NAME --` in front of the server's command:
  {\"mcpServers\": {\"git\": {\"command\": \"/usr/local/bin/countersign\", \"args\": [\"guard\", \"--name\", \"git\", \"--\", \"mcp-server-git\"]}}}
with the whole path of this program: where a client takes the search path of a project, a bare name is the project's program.

A guard takes its store, its directories and the person from its options and from the account, and nothing of them from the \
environment, which a client lets a project set. `countersign guard doctor` says what a variable or a file of a project would change.

Calls that wait for a person are listed by `countersign asks list --state pending`. The tools of a server have to be \
accepted once: `countersign pins show NAME` and `countersign pins accept ASK`. Logs are on stderr, without arguments.

A server at a URL may need a secret: --upstream-header-file names a file of yours alone, with a header in each line.

With --listen, each request needs `Authorization: Bearer SECRET`. The secret is in the file `guard.token` of the state \
directory, or in that of --token-file, which is made with a new one where it is not there. It is the account of its \
clients: all of them share asks and approvals. On a terminal the guard prints what each client's configuration needs.

Told to end (SIGTERM, Ctrl-C), it begins no call any more, and records calls that do not end within a second as ones \
that may have run. Told twice, it ends at once.

Exit statuses: 0 the client has ended the connection, or the guard was told to end; 1 the store, the address or the server cannot be used; 2 bad usage.";

/// Put permission layers in front of an MCP server
#[derive(Args)]
#[command(after_help = AFTER, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    first: Option<GuardCommand>,
    #[command(flatten)]
    server: ServerArgs,
    /// A file of rules, any number of times, of which the strictest rule wins; by default `guard/NAME.toml` in the
    /// configuration directory, which `guard init` writes. Without rules every call is asked about
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// How many seconds a call is held while a person decides; less than the client's own limit
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    wait: u64,
    /// The root of the project, within which equal calls share an approval, and which relative paths in rules begin in;
    /// by default the working directory, unless rules have such paths and it is `/` or a home directory
    #[arg(long, value_name = "DIRECTORY")]
    project: Option<PathBuf>,
    /// Send clients that can open an address to the inbox: to this one, or without a value to that of `countersign inbox`,
    /// wherever it is when a person is asked. No address has the inbox's secret
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    inbox: Option<Option<String>>,
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
}

#[derive(Subcommand)]
enum GuardCommand {
    Init(Box<GuardInit>),
    Doctor(GuardDoctor),
}

/// Where a person may answer.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AskIn {
    Client,
    Inbox,
}

impl GuardArgs {
    /// Returns `true` for a guard that runs with one client, on stdin and stdout.
    pub(crate) fn is_on_stdio(&self) -> bool {
        self.is_started_by_client() && !self.http.listens()
    }

    /// Returns `true` for a guard that runs, and not for a command about guards, which a person runs.
    pub(crate) fn is_started_by_client(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn settings(&self) -> &AccountSettings {
        &self.server.settings
    }

    pub(crate) async fn run(
        self: Box<Self>,
        context: &Context,
    ) -> Result<CommandOutput, CommandError> {
        match &self.first {
            Some(GuardCommand::Init(init)) => return init.run(context).await,
            Some(GuardCommand::Doctor(doctor)) => return doctor.run(context),
            None => log(),
        }
        places::warn_of_variables(self.settings(), context);
        let url: Option<StoreUrl> = self.settings().store()?;
        let project = project::root(self.project.as_deref(), context)?;
        places::refuse_in_project(context, url.as_ref(), &project)?;
        let door = self.http.door(context)?;
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let keys = context.config.seal_keys(&context.directories)?;
        let ledger = in_project(ledger, &project);
        let (name, store) = (self.server.named(), UsedStore::new(context, url.as_ref()));
        let mut guard = Guard::new(&*name, self.server.launch(context)?, ledger.clone())
            .principal(context.config.principal())
            .project(project.to_string_lossy())
            .accept_hint(accepting(&name, &store));
        if self.server.name.is_some() {
            guard = guard.identified_by_name();
        }
        let (rules, hints) =
            (self.rules(context, url.as_ref(), (&project, &ledger))?, self.hints());
        let labels = rules.asking_for_origins();
        guard = guard.layers(move |tools| {
            let tools: Tools = tools.layered(rules.clone().into_layer());
            hints.map_or(tools.clone(), |hints| tools.layered(hints.into_layer()))
        });
        guard = self.dangerous(guard);
        let told = told_to_end();
        let wait = Duration::from_secs(self.wait);
        let server = guard.server().seal_keys(keys).wait(wait).shutdown(told.clone());
        let mut server = server.answer_hint(answering(""));
        if let Some(rules) = labels {
            server = server.record_origins(move |tool| rules.label_of_tool(tool));
        }
        server = match &self.inbox {
            Some(Some(inbox)) => server.inbox(inbox),
            Some(None) => {
                let (config, directories) = (context.config.clone(), context.directories.clone());
                server.inbox_from(move || config.inbox_url(&directories))
            }
            None => server,
        };
        if self.ask_in == AskIn::Inbox {
            server = server.without_forms();
        }
        match door {
            Some(door) => door.listen(server, &name, &context.config.principal(), told).await?,
            None => server.stdio().await?,
        }
        Ok(CommandOutput::of(0, Vec::new()))
    }

    /// The guard with what its options of danger say.
    fn dangerous(&self, mut guard: Guard) -> Guard {
        if self.danger_observe {
            guard = guard.danger_observe();
        }
        if self.danger_accept_all_tools {
            guard = guard.danger_accept_all_tools();
        }
        guard
    }

    /// The rules of the files. Without a file every call is asked about, and may be granted.
    fn rules(
        &self,
        context: &Context,
        url: Option<&StoreUrl>,
        (project, ledger): (&Path, &Ledger),
    ) -> Result<CurrentRules, CommandError> {
        let own =
            context.config.own_places(&context.directories, context.config_file.as_deref(), url);
        // `~` in a rule is the home of the account, whatever `HOME` is.
        let home = context.directories.home();
        let rules = Rules::builder().counts(ledger.clone()).root(project).home(home);
        let rules = context.config.for_rules(rules, &context.directories, url);
        let accepted = accepted_rules(&context.directories);
        let rules = rules.accepted(accepted.clone());
        let rules = own.iter().fold(rules, |rules, place| rules.protect(place));
        let secrets = self.http.token_file.iter().chain(&self.server.upstream_header_file);
        let rules = secrets.fold(rules, |rules, file| rules.protect(file));
        let (files, server) = (self.files(context)?, self.server.named());
        let to_come = files.is_empty().then(|| {
            let file = places::usual_rules(context, &server);
            RulesToCome::new(file, accepted, rules.clone())
        });
        let rules = files.into_iter().fold(rules, RulesBuilder::file);
        let rules = rules.load().map_err(|error| CommandError::Usage(with_causes(&error)))?;
        let undecided_root = self.project.is_none().then_some(project);
        let one_account = !context.config.is_shared(&context.directories, url);
        CurrentRules::new((rules, to_come), server, undecided_root, one_account)
    }

    /// The files of rules: those that are named, or else the one that `guard init` has written for the server.
    fn files(&self, context: &Context) -> Result<Vec<PathBuf>, CommandError> {
        if !self.rules.is_empty() {
            return Ok(self.rules.iter().map(|file| project::below_home(file, context)).collect());
        }
        let usual = places::usual_rules(context, &self.server.named());
        let is_there = accepted_rules(&context.directories).is_there(&usual);
        match is_there.map_err(|error| CommandError::Usage(with_causes(&error)))? {
            true => Ok(vec![usual]),
            false => Ok(Vec::new()),
        }
    }

    /// The hints of the server that are a reason to ask.
    fn hints(&self) -> Option<AskByHints> {
        let destructive = self.ask_destructive.then(AskByHints::destructive);
        let open_world = self.ask_open_world.then(AskByHints::open_world);
        match (destructive, open_world) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        }
    }
}
