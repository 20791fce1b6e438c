//! Pins: the tools of a server as a person has accepted them (rule M4).
//!
//! A set of tools is accepted as an ask of the ledger: it is shown and decided where other asks are, once, by a person
//! who is named, and the audit log has it. Nothing runs when it is approved.
//!
//! The accepted set is not stored anywhere: it is what results when the approved proposals are applied in their order.
//! So the audit log and the pins cannot differ, and several guards on one store agree:
//!
//! ```text
//! proposal 0: added read, write     approved     accepted: read, write
//! proposal 1: changed write         denied       accepted: read, write (as before)
//! proposal 2: changed write, +move  approved     accepted: read, write', move
//! ```
//!
//! A proposal is about one set of tools. When the server offers another set before it was decided, it is cancelled, and
//! the next one shows the difference to what is accepted, not to what was proposed: a person never has to add up two
//! differences.
//!
//! What is compared is the whole definition but `_meta`: name, title, description, schemas and annotations. The
//! description is the part that matters most, as it is what steers the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rmcp::model::Tool as Listed;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::asks::HISTORY;
use super::launch::digest;
use super::toolset::{JUDGED, ListedTools, McpToolset};
use crate::args::Args;
use crate::call::{RunContext, ToolCall, ToolDefinition};
use crate::decision::Decision;
use crate::deferred::Answer;
use crate::error::BoxError;
use crate::ledger::{Ask, AskState, Decided, Ledger, LedgerError, Record};
use crate::middleware::ToolMiddleware;

/// The tool's name of the asks by which sets of tools are accepted.
///
/// A surface that shows asks can give these a page of their own. They are never claimed, as nothing runs.
///
/// ```
/// assert_eq!(countersign::mcp::ACCEPT_TOOLS, "mcp/accept_tools");
/// ```
pub const ACCEPT_TOOLS: &str = "mcp/accept_tools";
/// The path of the ask in its run.
const PATH: &str = "root/tools";
/// The most proposals of one server that are looked through.
const MAX_PROPOSALS: u32 = 10_000;

/// The accepted tools of one server, kept in a ledger.
pub(super) struct Pins {
    ledger: Ledger,
    toolset: McpToolset,
    server: String,
    run: String,
    principal: String,
    /// How people accept the tools, for the log.
    hint: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of proposals that are folded into `accepted`.
    read: u32,
    accepted: Option<Accepted>,
    /// The listed tools that are as they were accepted.
    same: Option<Arc<ListedTools>>,
    /// The ask and the digest of the set that is proposed now.
    open: Option<(String, String)>,
}

type Accepted = BTreeMap<String, Value>;

/// The state of a tool, compared with the accepted set.
pub(super) enum Pinned {
    Same,
    /// Never accepted; the ask by which it can be.
    New(String),
    Changed(String),
}

impl Pins {
    pub(super) fn new(
        ledger: Ledger,
        toolset: McpToolset,
        launch: &str,
        (principal, hint): (&str, &str),
    ) -> Arc<Self> {
        let server = toolset.server().to_owned();
        let id: String = digest(&json!([server, launch])).chars().take(32).collect();
        let run = format!("mcp-pins-{id}");
        let [principal, hint] = [principal, hint].map(str::to_owned);
        Arc::new(Self { ledger, toolset, server, run, principal, hint, state: Mutex::default() })
    }

    fn run(&self, generation: u32) -> String {
        format!("{}-{generation}", self.run)
    }

    fn ask(&self, generation: u32) -> Ask {
        Ask::new(self.run(generation), PATH, ACCEPT_TOOLS)
    }

    /// The state of a tool of the server now; `None` where the server does not offer it. A difference is proposed in
    /// one ask.
    ///
    /// The usual call compares a pointer: the tools are those that were found equal before. Only others are compared,
    /// and only a difference reads the ledger.
    async fn standing(&self, name: &str) -> Result<Option<Pinned>, BoxError> {
        let tools = self.toolset.list(false).await?;
        let mut state = self.state.lock().await;
        if state.same.as_ref().is_some_and(|same| Arc::ptr_eq(same, &tools)) {
            return Ok(tools.pinned.get(name).map(|_| Pinned::Same));
        }
        Box::pin(self.compared(&mut state, &tools, name)).await
    }

    async fn compared(
        &self,
        state: &mut State,
        tools: &Arc<ListedTools>,
        name: &str,
    ) -> Result<Option<Pinned>, BoxError> {
        let current = &tools.pinned;
        if state.accepted.as_ref() != Some(current) {
            self.read(state).await?;
        }
        if state.accepted.as_ref() == Some(current) {
            state.same = Some(Arc::clone(tools));
            return Ok(current.get(name).map(|_| Pinned::Same));
        }
        let known = state.accepted.clone().unwrap_or_default();
        let ask = self.propose(state, &known, current).await?;
        Ok(current.get(name).map(|now| match known.get(name) {
            Some(was) if was == now => Pinned::Same,
            Some(_) => Pinned::Changed(ask),
            None => Pinned::New(ask),
        }))
    }

    /// Folds the decided proposals into the accepted set.
    ///
    /// Stops at a pending proposal, so what is behind it counts only once it is decided. A proposal that was denied,
    /// has expired or was cancelled changes nothing and is passed.
    async fn read(&self, state: &mut State) -> Result<(), LedgerError> {
        let mut was_approved = false;
        while state.read < MAX_PROPOSALS {
            let record = self.ledger.get(self.ask(state.read).id()).await?;
            let Some(record) = record.filter(|record| record.state != AskState::Pending) else {
                break;
            };
            let answer = record.decision.as_ref().map(|decision| &decision.answer);
            if let (AskState::Decided, Some(Answer::Approve { .. })) = (&record.state, answer) {
                let mut accepted = state.accepted.take().unwrap_or_default();
                apply(&mut accepted, record.args_to_run());
                state.accepted = Some(accepted);
                was_approved = true;
            }
            state.read += 1;
        }
        if was_approved {
            close_asks(&self.ledger, &self.run).await;
        }
        Ok(())
    }

    /// Parks the ask for the difference, in place of an earlier one about another set; gives its id.
    async fn propose(
        &self,
        state: &mut State,
        known: &Accepted,
        current: &Accepted,
    ) -> Result<String, BoxError> {
        let set = digest(&json!(current));
        if let Some((ask, _)) = state.open.as_ref().filter(|(_, open)| *open == set) {
            let record = self.ledger.get(ask).await?;
            if record.is_some_and(|record| record.state == AskState::Pending) {
                return Ok(ask.clone());
            }
        }
        let args = difference(&self.server, known, current, &set);
        loop {
            let ask = self
                .ask(state.read)
                .with_args(args.clone())
                .with_principal(self.principal.as_str());
            let record = self.ledger.park(ask.with_valid_for(None)).await?;
            let id = record.ask.id().to_owned();
            let same = record.ask.args().str("set") == Some(&*set);
            let denied =
                matches!(record.decision.as_ref().map(|it| &it.answer), Some(Answer::Deny { .. }));
            if same && (record.state == AskState::Pending || denied) {
                tracing::warn!(target: "countersign::mcp", server = self.server, ask = id, "the tools of the server have to be accepted: {}", self.hint);
                state.open = Some((id.clone(), set));
                return Ok(id);
            }
            if record.state == AskState::Pending {
                self.ledger.cancel(&id, "countersign: the server has other tools now").await?;
            }
            self.read(state).await?;
            if state.read >= MAX_PROPOSALS {
                return Err("the server has changed its tools too often".into());
            }
        }
    }

    /// The tools as clients see them: as they were accepted, or as they are now where they never were.
    ///
    /// A client sees the accepted text also for a tool that has changed: the new text is what was not accepted, and
    /// listing it would already have told it to the model.
    pub(super) async fn shown(&self, tools: &ListedTools) -> Vec<Listed> {
        let state = self.state.lock().await;
        let shown = |now: &Listed| {
            let name = &*now.name;
            let Some(accepted) = state.accepted.as_ref().and_then(|accepted| accepted.get(name))
            else {
                return Some(now.clone());
            };
            match tools.pinned.get(name) == Some(accepted) {
                // `_meta` is no part of what was accepted.
                true => {
                    let mut same = now.clone();
                    same.meta = None;
                    Some(same)
                }
                false => Listed::deserialize(accepted).ok(),
            }
        };
        tools.offered().filter_map(shown).collect()
    }

    /// Proposes the changes, before the tools are listed.
    pub(super) async fn look(&self) {
        if let Err(error) = self.standing("").await {
            tracing::error!(target: "countersign::mcp", server = self.server, %error, "the pins cannot be read");
        }
    }
}

/// The key of the question about a call of a tool that was not accepted, in the set with this name.
fn not_accepted(set: &str) -> String {
    format!("not accepted in {set}")
}

/// Cancels the asks of calls that were asked about for nothing but tools that were not accepted, and now are. An equal
/// call is not asked about any more, so that nothing would use their answers.
///
/// Done where the tools are accepted ([`Proposal::accept`]), for the calls that are held at this moment, and by each guard
/// that finds them accepted, as any surface can decide about a proposal. A failure is harmless: the asks expire.
async fn close_asks(ledger: &Ledger, set: &str) {
    let key = not_accepted(set);
    let closed = async {
        for record in ledger.list(Some(AskState::Pending), u32::MAX).await?.records {
            let mut questions = record.ask.questions().iter().filter(|it| it.layer() != HISTORY);
            let is_first = questions.next().is_some_and(|question| question.key() == key);
            if is_first && questions.next().is_none() {
                let why = "countersign: the tools of the server were accepted";
                ledger.cancel(record.ask.id(), why).await?;
            }
        }
        Ok::<_, LedgerError>(())
    };
    if let Err(error) = closed.await {
        tracing::warn!(target: "countersign::mcp", set, %error, "asks about accepted tools stay open");
    }
}

fn difference(server: &str, known: &Accepted, current: &Accepted, set: &str) -> Args {
    let (mut added, mut changed) = (Map::new(), Map::new());
    for (name, now) in current {
        match known.get(name) {
            None => _ = added.insert(name.clone(), now.clone()),
            Some(was) if was != now => {
                let parts: BTreeSet<&String> = [was, now]
                    .into_iter()
                    .filter_map(Value::as_object)
                    .flat_map(Map::keys)
                    .collect();
                let differs = parts.into_iter().filter(|part| was.get(*part) != now.get(*part));
                let from_to = differs.map(|part| {
                    (part.clone(), json!({"was": was.get(part), "now": now.get(part)}))
                });
                _ = changed.insert(
                    name.clone(),
                    json!({"difference": Value::Object(from_to.collect()), "now": now}),
                );
            }
            Some(_) => {}
        }
    }
    let removed: Vec<_> = known.keys().filter(|name| !current.contains_key(*name)).collect();
    let summary = summary(server, &added, &changed, &removed);
    Args::new()
        // Surfaces show this one first, by its name, and the definitions are long.
        .with("accept_from_server", summary)
        .with("server", server)
        .with("added", added)
        .with("changed", changed)
        .with("removed", json!(removed))
        .with("set", set)
}

/// The server and the names of the tools that a person accepts.
fn summary(
    server: &str,
    added: &Map<String, Value>,
    changed: &Map<String, Value>,
    removed: &[&String],
) -> String {
    let parts: [(_, Vec<_>); 3] = [
        ("new", added.keys().collect()),
        ("changed", changed.keys().collect()),
        ("gone", removed.to_vec()),
    ];
    let mut text = server.to_owned();
    for (what, names) in parts.into_iter().filter(|(_, names)| !names.is_empty()) {
        let names: Vec<_> = names.into_iter().map(String::as_str).collect();
        text += &format!("; {} {what}: {}", names.len(), names.join(", "));
    }
    text
}

fn apply(accepted: &mut Accepted, args: &Args) {
    let tools = |key: &str| args.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    accepted.extend(tools("added"));
    for (name, changed) in tools("changed") {
        accepted.extend(changed.get("now").cloned().map(|now| (name, now)));
    }
    for name in args.get("removed").and_then(Value::as_array).into_iter().flatten() {
        accepted.remove(name.as_str().unwrap_or_default());
    }
}

/// Asks about calls of tools that were never accepted, and denies those of tools that have changed since.
pub(super) struct PinLayer(pub(super) Arc<Pins>);

impl ToolMiddleware for PinLayer {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        "accepted tools".into()
    }

    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        let source = cx.tool_definition().and_then(ToolDefinition::source);
        let Some(source) = source else { return Decision::deny("The tool has no source.") };
        if JUDGED.contains(&source.tool()) {
            return Decision::undecided();
        }
        let standing = match self.0.standing(source.tool()).await {
            Ok(standing) => standing,
            Err(error) => {
                tracing::error!(target: "countersign::mcp", server = self.0.server, %error, "the pins cannot be read");
                return Decision::deny("Whether this tool was accepted cannot be read.");
            }
        };
        let server = &self.0.server;
        match standing {
            Some(Pinned::Same) => Decision::undecided(),
            Some(Pinned::New(ask)) => Decision::ask(format!(
                "This tool of `{server}` was not accepted yet (accept the server's tools once: ask {ask})."
            ))
            .with_key(not_accepted(&self.0.run)),
            Some(Pinned::Changed(ask)) => Decision::deny(format!(
                "`{server}` has changed this tool since it was accepted. A person has to accept the change (ask {ask})."
            )),
            None => Decision::deny(format!("`{server}` does not offer this tool any more.")),
        }
    }
}

/// A set of tools that a server offers and a person has to accept, or has decided about.
///
/// ```
/// use countersign::ledger::{Ledger, MemoryStore};
/// use countersign::mcp::Proposal;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// for proposal in Proposal::list(&ledger).await? {
///     println!("{}: {} tools are new", proposal.server(), proposal.added().count());
/// }
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Proposal {
    record: Record,
}

impl Proposal {
    /// The proposals of all servers that have no decision yet, newest first.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    ///
    /// A proposal stays until it is decided, without a deadline.
    pub async fn list(ledger: &Ledger) -> Result<Vec<Self>, LedgerError> {
        let pending = ledger.list(Some(AskState::Pending), u32::MAX).await?;
        let records =
            pending.records.into_iter().filter(|record| record.ask.tool() == ACCEPT_TOOLS);
        Ok(records.map(|record| Self { record }).collect())
    }

    /// Accepts the tools as this person, exactly as they are shown here.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was accepted.
    ///
    /// Approves with the fingerprint of what this value holds, so a set that has changed since it was listed is not
    /// accepted. A second person who accepts is told that it was decided before (rule L1). Pending asks of calls that
    /// were asked about only because the tools were not accepted are cancelled; such a call is made again.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::mcp::Proposal;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// for proposal in Proposal::list(&ledger).await? {
    ///     let changed: Vec<_> = proposal.changed().collect();
    ///     if changed.is_empty() && proposal.removed().count() == 0 {
    ///         proposal.accept(&ledger, "ann").await?;
    ///     }
    /// }
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn accept(&self, ledger: &Ledger, who: &str) -> Result<Decided, LedgerError> {
        let (ask, yes) = (&self.record.ask, Answer::Approve { args: None });
        let decided = ledger.decide(ask.id(), &self.record.fingerprint, who, yes).await?;
        if let (Decided::Won { .. }, Some((set, _))) = (&decided, ask.run().rsplit_once('-')) {
            close_asks(ledger, set).await;
        }
        Ok(decided)
    }

    /// The id of the ask in the ledger.
    #[must_use]
    pub fn id(&self) -> &str {
        self.record.ask.id()
    }

    /// The name of the server in the user's configuration.
    #[must_use]
    pub fn server(&self) -> &str {
        self.record.ask.args().str("server").unwrap_or_default()
    }

    /// The new tools, each with its definition.
    ///
    /// Each value is the definition as the server lists it, without `_meta`.
    pub fn added(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.part("added")
    }

    /// The changed tools, each with the accepted definition and the present one.
    ///
    /// Each value is `{"difference": {"description": {"was": …, "now": …}}, "now": …}`, with the parts that differ, and
    /// the whole definition as it would be accepted.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.part("changed").map(|(name, it)| (name, it.get("difference").unwrap_or(it)))
    }

    /// The names of the tools that the server does not offer any more.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        let removed = self.record.ask.args().get("removed").and_then(Value::as_array);
        removed.into_iter().flatten().filter_map(Value::as_str)
    }

    fn part(&self, key: &str) -> impl Iterator<Item = (&str, &Value)> {
        let part = self.record.ask.args().get(key).and_then(Value::as_object);
        part.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }
}
