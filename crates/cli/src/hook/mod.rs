//! Hooks: the same layers, ledger and surfaces inside the coding agents that people run.
//!
//! A coding agent that has hooks runs a command before each tool call. [`Hook::answer`] is that command: it reads the
//! client's payload, translates the call into one vocabulary for all clients, lets a stack of layers decide, and gives
//! the answer that this client obeys. An ASK becomes a pending call in the ledger, and a person answers it on any
//! surface. The hook waits for the answer as long as the client waits for the hook.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use countersign_cli::hook::{Client, Hook};
//! use countersign::ledger::{Ledger, MemoryStore};
//! use countersign::{Decision, ToolCall, decide_fn};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let hook = Hook::new(Client::Codex).layered(decide_fn(|_, call: &ToolCall| match call.name() {
//!     "read_file" => Decision::allow(),
//!     _ => Decision::deny("this agent only reads"),
//! }));
//! let payload = br#"{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c1",
//!     "tool_name": "Bash", "tool_input": {"command": "make"}}"#;
//!
//! let store = async { Ok(Ledger::new(MemoryStore::new())) };
//! let reply = hook.answer(payload, Instant::now() + Duration::from_secs(1), store).await;
//! assert!(reply.is_denial());
//! assert_eq!(reply.stderr(), "this agent only reads\n");
//! # });
//! ```
//!
//! The agent executes its tools itself. So we promise less than for tools behind a gate: the client has to obey the
//! answer, the hook sees only what the client shows it, and we know that a call has ended only when the client says
//! so. The answer spends an approval, at most once.
//!
//! The folders:
//!
//! | folder | what is in it |
//! |---|---|
//! | `judging` | a call in one vocabulary for all clients, the hook's own doubts, the layers that decide |
//! | `asking` | the ask of a call, its approval, and what the client reports when the call has ended |
//! | `installing` | what is written into the configuration of a client, and what `doctor` finds there |
//! | `clients` | all that is particular to a client, one file for each |

mod asking;
mod clients;
mod digest;
mod installing;
mod judging;
mod payload;
mod reply;

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use countersign::decision::Question;
use countersign::error::{BoxError, with_causes};
use countersign::ledger::Ledger;
use countersign::tools::{ToolLayer, ToolService, Tools, ToolsExt as _};
use serde_json::{Map, Value};

use asking::allowed::AllowedCalls;
use asking::asked::{Asking, AskingEnd};
use asking::kept_shell::{directories_left, note_directories};
use asking::unapproved::Reporting;
use asking::{ending, key};
pub use clients::Client;
pub use clients::files::{InstallError, Trust, servers_in};
pub use installing::{
    HookFiles, Installation, Installed, OtherHook, ProjectSettings, editable_text,
};
pub use judging::edits::EditedFiles;
pub use judging::environment::Environment;
use judging::kept_shell::{ShellDirectory, left_in, says_where};
use judging::stack::{CallStack, ID, StackRuling, SuspendedCount};
use judging::vocabulary::{self, Normal, ToolNames};
pub use payload::HookPayload;
use payload::{Event, HookCall};
pub use reply::HookReply;

/// Answers the hooks of one client. Without [`layered`](Self::layered), every call is asked about.
#[derive(Clone)]
pub struct Hook {
    client: Client,
    stack: Option<Arc<dyn Fn(Tools) -> Tools + Send + Sync>>,
    principal: Option<String>,
    inbox: Option<String>,
    event: Option<String>,
    explicit: bool,
    in_client: bool,
    edits: Option<EditedFiles>,
    allowed: Option<AllowedCalls>,
    environment: Environment,
    home: Option<PathBuf>,
    doubts: Vec<(&'static str, String)>,
    names: ToolNames,
}

impl Hook {
    /// A hook for this client that asks about every call.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Hook};
    /// assert_eq!(format!("{:?}", Hook::new(Client::Codex)), "Hook { client: Codex, .. }");
    /// ```
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            stack: None,
            principal: None,
            inbox: None,
            event: None,
            explicit: false,
            in_client: false,
            edits: None,
            allowed: None,
            environment: Environment::default(),
            home: None,
            doubts: Vec::new(),
            names: ToolNames::default(),
        }
    }

    /// Sets the layers that decide, in the common vocabulary of tools: `shell`, `write_file`, `fetch` and so on, not by
    /// the client's names. MCP tools have their own names and their server as [source](countersign::call::ToolSource). Tools
    /// that this version does not know are asked about, even if the layers allow them.
    #[must_use]
    pub fn layered<L>(mut self, layer: L) -> Self
    where
        L: ToolLayer<Service: ToolService> + Clone + Send + Sync + 'static,
    {
        self.stack = Some(Arc::new(move |tools: Tools| tools.layered(layer.clone())));
        self
    }

    /// Sets the person that the agent works for, who is the requester of its asks.
    ///
    /// The ledger can refuse that this person approves the call
    /// ([`Ask::with_quorum`](countersign::ledger::Ask::with_quorum)).
    #[must_use]
    pub fn principal(mut self, name: impl Into<String>) -> Self {
        self.principal = Some(name.into());
        self
    }

    /// Sets the address of the inbox, which a model is told with the ask that its call waits for. A fragment is left out,
    /// as an inbox shows its secret in one.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Hook};
    /// let hook = Hook::new(Client::Claude).inbox("http://127.0.0.1:8788/");
    /// # let _ = hook;
    /// ```
    #[must_use]
    pub fn inbox(mut self, url: impl Into<String>) -> Self {
        let mut url = url.into();
        url.truncate(url.find('#').unwrap_or(url.len()));
        self.inbox = Some(url);
        self
    }

    /// Sets the event that the hook is configured for, for clients whose payloads do not name it. A payload that names
    /// another event is denied.
    ///
    /// ```
    /// use std::time::Instant;
    /// use countersign_cli::hook::{Client, Hook};
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let hook = Hook::new(Client::Copilot).event("postToolUse");
    /// let payload = br#"{"hookName": "preToolUse", "sessionId": "s", "cwd": "/src", "toolName": "bash", "toolArgs": {}}"#;
    /// let reply = hook.answer(payload, Instant::now(), async { Ok(Ledger::new(MemoryStore::new())) }).await;
    /// assert!(reply.is_denial(), "a payload of another event than the configured one");
    /// # });
    /// ```
    #[must_use]
    pub fn event(mut self, event: impl Into<String>) -> Self {
        self.event = Some(event.into());
        self
    }

    /// Sets whether ALLOW answers for the client's own rules as well. By default the hook has no opinion about allowed
    /// calls, so that the client's own rules still count. The approval of a person always answers for them, where the
    /// client has such an answer.
    ///
    /// Leave it off where the client's own rules are stricter in places: an explicit allow answers for them, too.
    #[must_use]
    pub fn explicit_allow(mut self, explicit: bool) -> Self {
        self.explicit = explicit;
        self
    }

    /// Sets whether the client asks the person in its own session, where it can ([`Client::asks`]), instead of leaving the
    /// call to the inbox. That needs a directory for notes ([`noting_in`](Self::noting_in)) and a client that names its
    /// session; otherwise the inbox is asked as before.
    ///
    /// Questions that have to be asked every time, such as those of the floor of the rules, stay in the inbox. The call
    /// counts as approved when the client reports that it has ended as it was asked about, and not before. Where no one sits
    /// in front of the client, the client refuses the call.
    ///
    /// ```
    /// use std::time::Instant;
    /// use countersign_cli::hook::{Client, Hook};
    /// use countersign::ledger::{AskState, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let hook = Hook::new(Client::Claude).noting_in(directory.path()).asking_in_client(true);
    /// let event = |name: &str| format!(r#"{{"hook_event_name": "{name}", "session_id": "s", "cwd": "/src",
    ///     "tool_use_id": "c1", "tool_name": "Bash", "tool_input": {{"command": "make"}}}}"#);
    ///
    /// let asked = hook.answer(event("PreToolUse").as_bytes(), Instant::now(), async { Ok(ledger.clone()) }).await;
    /// assert!(String::from_utf8_lossy(asked.stdout()).contains(r#""permissionDecision":"ask""#));
    /// assert!(ledger.list(None, 10).await?.records.is_empty(), "nothing is approved yet");
    ///
    /// hook.answer(event("PostToolUse").as_bytes(), Instant::now(), async { Ok(ledger.clone()) }).await;
    /// let records = ledger.list(None, 10).await?.records;
    /// assert_eq!(records[0].state, AskState::Executed);
    /// assert_eq!(records[0].decision.as_ref().unwrap().by, ["the question of claude"]);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn asking_in_client(mut self, in_client: bool) -> Self {
        self.in_client = in_client;
        self
    }

    /// Restricts the client's own questions to edits of these files, where no rule asks for another reason than that none
    /// allows the edit. All other questions are left to the inbox.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, EditedFiles, Hook};
    /// let hook = Hook::new(Client::Claude).asking_in_client(true).only_about_edits(EditedFiles::within("/src/shop"));
    /// # let _ = hook;
    /// ```
    #[must_use]
    pub fn only_about_edits(mut self, files: EditedFiles) -> Self {
        self.edits = Some(files);
        self
    }

    /// Sets a directory, of this user alone, in which the hook notes the calls that it allows until they have ended.
    ///
    /// When the client reports the end of a call, the hook looks whether the call was allowed as it ran: another hook
    /// of the client may have changed it since. With the note the hook knows at once, and does not open the store.
    /// Without a note, and so always without a directory, the layers decide about the call again. The call has done
    /// its work by then, so they may decide in another way than before.
    ///
    /// ```
    /// use std::time::Instant;
    /// use countersign_cli::hook::{Client, Hook};
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::{Decision, ToolCall, decide_fn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let reads = decide_fn(|_, call: &ToolCall| match call.args().str("command") {
    ///     Some("ls") => Decision::allow(),
    ///     _ => Decision::deny("only `ls`"),
    /// });
    /// let hook = Hook::new(Client::Claude).layered(reads).noting_in(directory.path());
    /// let event = |name: &str, command: &str| format!(r#"{{"hook_event_name": "{name}", "session_id": "s",
    ///     "cwd": "/src", "tool_use_id": "c1", "tool_name": "Bash", "tool_input": {{"command": "{command}"}}}}"#);
    /// let store = || async { Ok(Ledger::new(MemoryStore::new())) };
    ///
    /// hook.answer(event("PreToolUse", "ls").as_bytes(), Instant::now(), store()).await;
    /// let changed = hook.answer(event("PostToolUse", "rm x").as_bytes(), Instant::now(), store()).await;
    /// assert!(changed.stderr().contains("ran although it was not allowed"), "{changed:?}");
    /// let as_allowed = hook.answer(event("PostToolUse", "ls").as_bytes(), Instant::now(), store()).await;
    /// assert_eq!(as_allowed.stderr(), "");
    /// # });
    /// ```
    #[must_use]
    pub fn noting_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.allowed = Some(AllowedCalls::new(directory.into()));
        self
    }

    /// Sets the variables of the environment that are a reason to ask: a call that runs a program which one of them
    /// concerns is asked about, even if the layers allow it. By default there are none.
    ///
    /// ```
    /// use std::path::Path;
    /// use std::time::Instant;
    /// use countersign_cli::hook::{Client, Environment, Hook};
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::{Decision, decide_fn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let found = [("GIT_EXTERNAL_DIFF".into(), "./x".into())];
    /// let hook = Hook::new(Client::Codex)
    ///     .layered(decide_fn(|_, _| Decision::allow()))
    ///     .environment(Environment::of(found, Path::new("/u/ann")));
    /// for (command, is_denied) in [("git diff", true), ("ls", false)] {
    ///     let payload = format!(r#"{{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src",
    ///         "tool_use_id": "c", "tool_name": "Bash", "tool_input": {{"command": "{command}"}}}}"#);
    ///     let store = async { Ok(Ledger::new(MemoryStore::new())) };
    ///     let reply = hook.answer(payload.as_bytes(), Instant::now(), store).await;
    ///     assert_eq!(reply.is_denial(), is_denied);
    ///     assert_eq!(reply.stderr().contains("`GIT_EXTERNAL_DIFF`"), is_denied);
    /// }
    /// # });
    /// ```
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the home folder of the person, which the line about a call writes `~`. By default it is that of the account.
    ///
    /// ```
    /// use std::time::Instant;
    /// use countersign_cli::hook::{Client, Hook};
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::show::Limits;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let payload = br#"{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/u/ann/shop",
    ///     "tool_use_id": "c", "tool_name": "Bash", "tool_input": {"command": "make"}}"#;
    /// let store = async { Ok(ledger.clone()) };
    /// let hook = Hook::new(Client::Codex).home("/u/ann");
    /// assert!(hook.answer(payload, Instant::now(), store).await.is_denial());
    /// let records = ledger.list(None, 1).await.unwrap().records;
    /// let view = records[0].view(0, Limits::default());
    /// assert_eq!(view.title, "Codex CLI wants to run `make` in `~/shop`");
    /// # });
    /// ```
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Adds a reason to ask about every call, even if the layers allow it, with the key of the question.
    #[must_use]
    pub fn doubt(mut self, key: &'static str, reason: impl Into<String>) -> Self {
        self.doubts.push((key, reason.into()));
        self
    }

    /// Sets the MCP servers in the client's configuration, for clients whose payloads do not name the server
    /// ([`Client::servers`]). A tool of no server is unknown then. By default a name with one separator is split there.
    #[must_use]
    pub fn servers(mut self, servers: Option<Vec<String>>) -> Self {
        self.names.servers = servers;
        self
    }

    /// Sets which of the [servers](Self::servers) are what a project's files say ([`Client::project_servers`]). A rule that
    /// allows a tool of one of them does not count.
    #[must_use]
    pub fn project_servers(mut self, servers: Vec<String>) -> Self {
        self.names.of_project = servers;
        self
    }

    /// Sets whether the layers allow a tool that this version does not know only where they name it, as rules do
    /// (`allow = "claude:Skill"`). Then it is not asked about whatever they say, unless its arguments have a field that may
    /// hold a command. Such a tool has the toolset `client:claude`.
    #[must_use]
    pub fn unknown_by_name(mut self, is_by_name: bool) -> Self {
        self.names.unknown_by_name = is_by_name;
        self
    }

    /// Answers a payload. An ASK waits for a person until `until`, and is a denial after that, which tells the model to
    /// call again. The store is opened only for an ASK, and for the end of a call that the hook has not [noted](Self::noting_in)
    /// as allowed.
    ///
    /// Every problem is a denial that this client obeys: a payload that cannot be read, an unknown event, a layer that
    /// fails, a store that cannot be opened. Problems with events that decide nothing are remarks on stderr.
    ///
    /// A call that no one answers, with a store that holds the ask:
    ///
    /// ```
    /// use std::time::Instant;
    /// use countersign_cli::hook::{Client, Hook};
    /// use countersign::ledger::{AskState, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let payload = br#"{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c1",
    ///     "tool_name": "Bash", "tool_input": {"command": "make"}}"#;
    /// let store = ledger.clone();
    /// let reply = Hook::new(Client::Claude).answer(payload, Instant::now(), async { Ok(store) }).await;
    /// assert!(reply.is_denial() && reply.stderr().contains("waits for approval"));
    ///
    /// let pending = ledger.list(Some(AskState::Pending), 10).await?.records;
    /// assert_eq!(pending.first().map(|record| record.ask.tool()), Some("shell"));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn answer(
        &self,
        payload: &[u8],
        until: Instant,
        store: impl Future<Output = Result<Ledger, BoxError>>,
    ) -> HookReply {
        self.reply(&self.read(payload), until, store).await
    }

    /// Reads a payload, for programs that look at it before they ask for its [reply](Self::reply).
    #[must_use]
    pub fn read(&self, payload: &[u8]) -> HookPayload {
        HookPayload(payload::read(self.client, payload, self.event.as_deref()))
    }

    /// Answers a payload that was read: what [`answer`](Self::answer) does after reading it.
    pub async fn reply(
        &self,
        payload: &HookPayload,
        until: Instant,
        store: impl Future<Output = Result<Ledger, BoxError>>,
    ) -> HookReply {
        match &payload.0 {
            Ok(Event::Before(call)) => {
                let reply = self.before(call, until, store).await;
                reply.unwrap_or_else(|problem| {
                    HookReply::denial(self.client, Some(&call.event), &problem)
                })
            }
            Ok(Event::After(call, how)) => {
                let reporting = Reporting {
                    stack: self.stack.as_ref(),
                    principal: self.principal.as_deref(),
                    allowed: self.allowed.as_ref(),
                    environment: &self.environment,
                    home: self.home.as_deref(),
                    doubts: &self.doubts,
                    names: &self.names,
                };
                ended(ending::after(&reporting, call, *how, store).await)
            }
            Ok(Event::End { session }) => {
                if let Some(allowed) = &self.allowed {
                    allowed.forget(self.client, session);
                }
                ended(ending::session(self.client, session, store).await)
            }
            Err(unusable) => {
                HookReply::denial(self.client, unusable.event.as_deref(), &unusable.problem)
            }
        }
    }

    /// The temporary files that approved commands of the payload's session have written, for rules that may let the
    /// next command read them. That needs a directory for notes ([`noting_in`](Self::noting_in)).
    #[must_use]
    pub fn written_files(&self, payload: &HookPayload) -> Vec<PathBuf> {
        let session = payload.call().and_then(|call| call.session.as_deref());
        match (&self.allowed, session) {
            (Some(notes), Some(session)) => notes.written_files(self.client, session),
            _ => Vec::new(),
        }
    }

    /// Returns `true` if the tool of a payload is none of the client's own, so that the client's [servers](Self::servers)
    /// matter.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Hook};
    ///
    /// let payload = |tool: &str| format!(r#"{{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src",
    ///     "tool_use_id": "c", "tool_name": "{tool}", "tool_input": {{}}}}"#);
    /// let hook = Hook::new(Client::Claude);
    /// assert!(hook.may_be_of_server(&hook.read(payload("mcp__git__status").as_bytes())));
    /// assert!(!hook.may_be_of_server(&hook.read(payload("Bash").as_bytes())));
    /// ```
    #[must_use]
    pub fn may_be_of_server(&self, payload: &HookPayload) -> bool {
        payload.call().is_some_and(vocabulary::is_foreign)
    }

    /// The tool and the arguments of a payload in the common vocabulary, as the layers see them; for rules that are
    /// written by hand, and for `explain`.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Hook};
    ///
    /// let payload = br#"{"hook_event_name": "BeforeTool", "session_id": "s", "cwd": "/src",
    ///     "tool_name": "write_file", "tool_input": {"file_path": "notes.md", "content": ""}}"#;
    /// let (tool, args) = Hook::new(Client::Gemini).translate(payload)?;
    /// assert_eq!((tool.as_str(), &args["path"]), ("write_file", &"/src/notes.md".into()));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// The problem of the payload, as a text for the model.
    pub fn translate(&self, payload: &[u8]) -> Result<(String, countersign::args::Args), String> {
        match self.read(payload).0 {
            Ok(Event::Before(call) | Event::After(call, _)) => {
                let normal = vocabulary::normal(&call, &self.names);
                Ok((normal.shown(), normal.args))
            }
            Ok(Event::End { .. }) => Err("the event is about no tool".to_owned()),
            Err(unusable) => Err(unusable.problem),
        }
    }

    /// Decides a call. The error is the reason of a denial.
    ///
    /// An earlier process may have left an ask open for the call. Layers that count calls must count it once for
    /// both. So the first decision counts nothing, and stands if it leads to that ask. Where an equal call uses the
    /// ask before this one does, the layers decide again.
    async fn before(
        &self,
        call: &HookCall,
        until: Instant,
        store: impl Future<Output = Result<Ledger, BoxError>>,
    ) -> Result<HookReply, String> {
        let (normal, left) = self.normal(call).await?;
        let is_where_judged = || self.is_where_judged(call, &normal, &left);
        let (environment, home) = (&self.environment, self.home.as_deref());
        let (mut store, mut opened) = (pin!(store), None::<Ledger>);
        let mut run = key::new_run();
        // Without a session a call joins no ask of an earlier one.
        let mut suspended = call.session.is_some().then(SuspendedCount::default);
        loop {
            let outer = self.stack.as_ref();
            let stack = CallStack { outer, call, normal: &normal, environment, home, run: &run };
            let ruling = stack.decide(suspended.as_ref()).await;
            let uncounted = suspended.take().is_some_and(|it| it.was_used());
            let pending = match ruling {
                Ok(StackRuling::Ask(pending)) => pending,
                _ if uncounted => continue,
                Ok(StackRuling::Allow(args)) => {
                    return self.unasked(call, normal.restore(call, &args)?);
                }
                Err(denial) => return Err(denial),
            };
            let ledger = match &opened {
                Some(ledger) => ledger,
                None => opened.insert(self.in_session(call, store.as_mut().await)?),
            };
            let asking = Asking {
                ledger,
                stack,
                principal: self.principal.as_deref(),
                inbox: self.inbox.as_deref(),
                until,
                uncounted,
                in_client: self.notes_of_session(call).filter(|_| self.in_client),
                edits: self.edits.as_ref(),
                is_where_judged: &is_where_judged,
            };
            match asking.answered(*pending).await? {
                AskingEnd::InClient(reply) => {
                    self.note_where_left(call, None)?;
                    return Ok(reply);
                }
                AskingEnd::Run(args) => {
                    self.note_where_left(call, args.as_ref())?;
                    if let Some(notes) = self.allowed.as_ref().filter(|_| args.is_none()) {
                        notes.note_written(call, normal.command(), false);
                    }
                    return Ok(HookReply::allow(self.client, args, true));
                }
                // The call that was counted has run, so that this one is another call.
                AskingEnd::Again { used } if used.as_ref() == Some(&run) => run = key::new_run(),
                AskingEnd::Again { .. } => {}
            }
        }
    }

    /// The call in the common vocabulary, with every doubt about it, and the directories in which the client's shell may be beside
    /// that of the call.
    async fn normal(&self, call: &HookCall) -> Result<(Normal, Vec<ShellDirectory>), String> {
        self.allowed.iter().for_each(|allowed| allowed.begin_call(call));
        let mut normal = vocabulary::normal(call, &self.names);
        normal.doubts.extend(self.doubts.iter().cloned());
        self.judge_other_ways(call, &mut normal).await?;
        let left = self.where_left(call, &normal);
        self.judge_where_left(call, &mut normal, &left).await?;
        Ok((normal, left))
    }

    /// The reply to a call that runs unasked, with these arguments in the client's names if they have changed.
    fn unasked(
        &self,
        call: &HookCall,
        changed: Option<Map<String, Value>>,
    ) -> Result<HookReply, String> {
        self.note_where_left(call, changed.as_ref())?;
        if let Some(allowed) = &self.allowed {
            allowed.note(call, changed.as_ref().unwrap_or(&call.args));
        }
        Ok(HookReply::allow(self.client, changed, self.explicit))
    }

    /// Decides a call also as each tool of another server that its name may be the name of. A denial of one of them is the
    /// error. A question becomes one about the call, with the people whom it demands. We drop a question if all that it says
    /// is that no rule allows a tool of a server that the client does not have.
    async fn judge_other_ways(&self, call: &HookCall, normal: &mut Normal) -> Result<(), String> {
        for way in std::mem::take(&mut normal.ways) {
            // A limit counts the call as what it is.
            let asked = self.questions_about(call, &normal.by(&way)).await?;
            let of_rules = |question: &&Question| question.key() != "default";
            if self.stack.is_some() {
                let counted = asked.iter().filter(|it| way.is_configured || of_rules(it));
                normal.doubt_as(&way, counted);
            }
        }
        Ok(())
    }

    /// Decides a command also in each directory in which an earlier one may have left the client's shell. What is asked about
    /// there is asked about for that directory: an approval of `make` here is none of `make` there.
    async fn judge_where_left(
        &self,
        call: &HookCall,
        normal: &mut Normal,
        left: &[ShellDirectory],
    ) -> Result<(), String> {
        let is_noted = self.notes_of_session(call).is_some();
        let kept = self.kept_command(normal).filter(|_| !is_noted);
        if kept.is_some_and(|begins| !left_in(call, &[], begins).is_empty()) {
            let why = "it leaves the shell in another directory, which cannot be noted";
            normal.doubt("directory", why);
        }
        for directory in left {
            let Some(directory) = directory.path() else {
                let why = "an earlier command may have left the shell in a directory that is not known: begin with \
                           `cd /the/directory &&`";
                normal.doubt("directory", why);
                continue;
            };
            let there = HookCall { directory: directory.to_owned(), ..call.clone() };
            let other = vocabulary::normal(&there, &self.names);
            let asked = self.questions_about(&there, &other).await?;
            normal.doubt_in(directory, &call.directory, asked.iter());
        }
        Ok(())
    }

    /// The command of a call for a shell that the client keeps, and the directory that the call names.
    fn kept_command<'n>(&self, normal: &'n Normal) -> Option<(&'n Path, &'n str)> {
        normal.command_in().filter(|_| self.client.spec().tools.keeps_shell)
    }

    /// The directories in which earlier commands of the session may have left the client's shell, beside that of the call. There
    /// are none for a command that runs in the same directory wherever it begins.
    fn where_left(&self, call: &HookCall, normal: &Normal) -> Vec<ShellDirectory> {
        let begins = self.kept_command(normal).filter(|(_, command)| !says_where(command));
        let notes = self.notes_of_session(call).filter(|_| begins.is_some());
        notes.map(|notes| directories_left(notes, call)).unwrap_or_default()
    }

    /// Returns `true` while a call would run in these directories, in which it was judged: while a person is asked, another
    /// command may leave the shell elsewhere.
    fn is_where_judged(&self, call: &HookCall, normal: &Normal, left: &[ShellDirectory]) -> bool {
        self.where_left(call, normal).iter().all(|it| left.contains(it))
    }

    /// The place for notes about the session of the call, if it names one.
    fn notes_of_session(&self, call: &HookCall) -> Option<&AllowedCalls> {
        self.allowed.as_ref().filter(|_| call.session.is_some())
    }

    /// The questions of the layers about a call that does not count. The error is the reason of a denial.
    async fn questions_about(
        &self,
        call: &HookCall,
        normal: &Normal,
    ) -> Result<Vec<Question>, String> {
        let (outer, environment) = (self.stack.as_ref(), &self.environment);
        let home = self.home.as_deref();
        let stack = CallStack { outer, call, normal, environment, home, run: "" };
        match stack.decide(Some(&SuspendedCount::default())).await? {
            StackRuling::Ask(pending) => Ok(pending.requests().questions(ID).to_vec()),
            StackRuling::Allow(_) => Ok(Vec::new()),
        }
    }

    /// Notes where the command of a call that may run leaves the client's shell: with these arguments in the client's names, if
    /// they are others than those of the call.
    fn note_where_left(
        &self,
        call: &HookCall,
        changed: Option<&Map<String, Value>>,
    ) -> Result<(), String> {
        let Some(notes) = &self.allowed else { return Ok(()) };
        let args = changed.unwrap_or(&call.args).clone();
        let normal = vocabulary::normal(&HookCall { args, ..call.clone() }, &self.names);
        self.kept_command(&normal).map_or(Ok(()), |begins| note_directories(notes, call, begins))
    }

    /// The ledger with the session of the call, in which grants hold.
    fn in_session(
        &self,
        call: &HookCall,
        opened: Result<Ledger, BoxError>,
    ) -> Result<Ledger, String> {
        let ledger = opened.map_err(|error| {
            format!(
                "this call needs an approval, and the store of approvals cannot be used: {}",
                with_causes(&*error)
            )
        })?;
        Ok(match &call.session {
            Some(session) => ledger.session(key::run(self.client, session)),
            None => ledger,
        })
    }
}

/// The reply to an event that decides nothing.
fn ended(result: Result<(), String>) -> HookReply {
    match result {
        Ok(()) => HookReply::nothing(),
        Err(remark) => HookReply::remark(&remark),
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("client", &self.client).finish_non_exhaustive()
    }
}
