//! `countersign hook`: one payload in, one answer out.
//!
//! We read stdin to its end, even beyond the size that we keep. If we closed the pipe early, a client might take the
//! hook for one that has failed, and run the tool.

mod around;
mod canary;
pub(crate) mod cli;
mod doctor;
mod exit;
pub(crate) mod install;
pub(crate) mod kept;
mod live;
pub(crate) mod options;
pub(crate) mod place;
mod root;
mod rule_sources;
pub(crate) mod search_path;
mod start;
mod store;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use countersign::ToolMiddlewareExt as _;
use countersign::error::with_causes;
use countersign_cli::config::{Directories, linked_places};
use countersign_cli::hook::{
    Client, EditedFiles, Environment, Hook, HookPayload, HookReply, Installation, ProjectSettings,
};

use crate::Context;
use crate::output::{CommandError, CommandOutput};
use cli::HookCommand;
use exit::Exit;
use options::{Allow, Answering, Where};
use rule_sources::RuleSources;
use store::LazyStore;

/// The size of a payload that is kept: more than any payload that is decided, so that the library refuses it.
const MAX_KEPT: u64 = 8 << 20;

impl cli::HookArgs {
    /// Runs a command that answers no payload.
    pub(crate) fn run(self, context: &Context) -> Result<CommandOutput, CommandError> {
        match self.command {
            HookCommand::Install(install) => install.run(context),
            HookCommand::Uninstall(place) => place.uninstall(context),
            HookCommand::Doctor(doctor) => doctor.run(context),
            HookCommand::Answer(_) => {
                Err(CommandError::Usage("a payload is answered by a process of its own".to_owned()))
            }
        }
    }
}

/// Answers the payload on stdin, and ends the process.
pub(crate) fn answer(client: Client, answering: &Answering, config: Option<&Path>) -> ! {
    let limit = answering.limit.unwrap_or_else(|| client.shortest_limit());
    let start = start::start(limit, answering.shell);
    // The client's time began before this process did, and ends when the client has read the answer.
    let margin = (limit / 10).clamp(Duration::from_secs(2), Duration::from_secs(10)).min(limit / 3);
    let exit = Exit::guarded(client, answering.event.clone(), start + limit - margin / 2);
    let last = start + limit - margin;
    let until = answering
        .wait
        .and_then(|wait| Instant::now().checked_add(wait))
        .map_or(last, |it| it.min(last));
    match decided(client, answering, config, until, &exit) {
        Ok(reply) => exit.end(&reply),
        Err(problem) => exit.deny(&format!(
            "countersign cannot decide: {problem}. Tell a person, whom `countersign hook doctor {client}` helps"
        )),
    }
}

fn decided(
    client: Client,
    answering: &Answering,
    file: Option<&Path>,
    until: Instant,
    exit: &Exit,
) -> Result<HookReply, String> {
    let bytes = payload().map_err(|error| format!("stdin cannot be read: {error}"))?;
    let mut hook = Hook::new(client)
        .explicit_allow(answering.allow == Allow::Grant)
        .asking_in_client(answering.asks_in() != Where::Inbox);
    hook = answering.event.iter().fold(hook, |hook, event| hook.event(event));
    let payload = hook.read(&bytes);
    if payload.is_report() {
        exit.only_reports();
    }
    // We take no setting from the environment: it is the client's, and a project can set it (rule P1).
    let settings = &answering.settings;
    let directories = settings.directories().map_err(|error| with_causes(&error))?;
    if canary::is_in(&bytes, directories.state()) {
        let reason = "this call is a canary of `countersign hook doctor`, which is always denied";
        return Ok(HookReply::denial(client, answering.event.as_deref(), reason));
    }
    let config = settings.config(&directories, file).map_err(|error| with_causes(&error))?;
    let url = settings.store().map_err(|error| with_causes(&error))?;
    hook = hook.principal(config.principal()).home(directories.home());
    hook = hook.noting_in(directories.state().join("allowed"));
    hook = config.inbox_url(&directories).into_iter().fold(hook, Hook::inbox);
    let call = payload.directory();
    let root = match &answering.root {
        Some(root) => root.clone(),
        None => {
            let root = root::of(client, call, directories.home())?;
            hook = root.doubt.into_iter().fold(hook, |hook, why| hook.doubt("root", why));
            root.directory
        }
    };
    let home = settings.expected_home(&directories, &root);
    let at = call.unwrap_or(&root);
    hook = with_servers(hook, client, directories.home(), (&payload, [&root, at]));
    hook = hook.environment(environment(client, &directories, &home, (&root, call))?);
    let own = own_places(config.own_places(&directories, file, url.as_ref()), &directories, &root);
    let store = LazyStore::new(config.clone(), directories.clone(), url.clone(), &root);
    let set = (&config, url.as_ref());
    if answering.asks_in() == Where::Edits {
        hook = hook.only_about_edits(EditedFiles::within(&root).home(&home).protect(own.clone()));
    }
    let (preset, edits) = (answering.preset, answering.lets_edits_run());
    let (files, own_files) = (&*answering.rules, &*hook.written_files(&payload));
    let sources = RuleSources { files, preset, edits, own_files, are_recorded: true };
    let rules = rule_sources::load(sources, set, &directories, &root, &own, store.clone())?;
    if let Some(rules) = rules {
        let why = root::too_wide(&rules, (answering.root.is_some(), &root), directories.home());
        hook = why.into_iter().fold(hook, |hook, why| hook.doubt("root", why));
        hook = hook.layered(rules.into_layer()).unknown_by_name(true);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    Ok(runtime.block_on(hook.reply(&payload, until, async { store.ledger().await.cloned() })))
}

/// The hook with the MCP servers that the client's files name: those of the user, and those of the project. A client has
/// the servers of the session's project, even after a command has changed the directory. We read the files only for a
/// tool that is none of the client's own.
fn with_servers(
    hook: Hook,
    client: Client,
    home: &Path,
    (payload, at): (&HookPayload, [&Path; 2]),
) -> Hook {
    if !hook.may_be_of_server(payload) {
        return hook;
    }
    hook.servers(client.servers(home, &at)).project_servers(client.project_servers(home, &at))
}

/// The places of the program, with those that links of the project lead to and those of the clients.
fn own_places(mut own: Vec<PathBuf>, directories: &Directories, root: &Path) -> Vec<PathBuf> {
    own.extend(linked_places(root));
    let entries = Client::ALL.map(|it| Installation::of_environment(it, directories.home()));
    own.extend(entries.map(|entry| entry.own_place(root)));
    own
}

/// The variables of a call that change what programs do, without those that were there when the hook was installed.
fn environment(
    client: Client,
    directories: &Directories,
    home: &Path,
    (root, call): (&Path, Option<&Path>),
) -> Result<Environment, String> {
    let settings = ProjectSettings::new(client, call.unwrap_or(root), home).of_session(root);
    let found = Environment::of_process(home).and(settings.environment()).of_session(root);
    let record = Environment::record_in(directories.state(), client);
    found.without_recorded(&record).map_err(|error| with_causes(&error))
}

/// Reads all of stdin, and keeps at most this much of it.
fn payload() -> std::io::Result<Vec<u8>> {
    let mut stdin = std::io::stdin().lock();
    let mut payload = Vec::new();
    stdin.by_ref().take(MAX_KEPT).read_to_end(&mut payload)?;
    std::io::copy(&mut stdin, &mut std::io::sink())?;
    Ok(payload)
}
