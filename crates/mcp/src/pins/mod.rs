//! Pins: the parts of a server as a person has accepted them (rule M4).
//!
//! A person accepts a set of parts by an ask of the ledger: it is shown and decided where other asks are, once, by a
//! person who is named, and the audit log has it. Nothing runs when it is approved.
//!
//! We do not store the accepted set. To find it, we apply the decided proposals in their order. So the audit log and the
//! pins cannot differ, and several guards on one store agree:
//!
//! ```text
//! proposal 0: added read, write     approved     accepted: read, write
//! proposal 1: changed write         denied       accepted: read, write; denied: write'
//! proposal 2: changed write, +move  approved     accepted: read, write, write'', move; denied: write'
//! ```
//!
//! | part | pinned | not accepted |
//! |---|---|---|
//! | a tool | its whole definition: name, title, description, schemas, annotations, `_meta` | not listed, or as it was accepted; calls are denied, or asked about if it is new |
//! | `instructions`, title and version of the server | as they are | not passed on, or as they were accepted |
//! | a file that the command names | its content | the calls of all tools are denied |
//! | a package that the command names | its name and version | the same |
//!
//! A proposal shows the difference to what is accepted, not to what was proposed before: a person never has to add up two
//! differences. When the server offers something else before it was decided, it is cancelled, and another is made; one
//! that covers what the server offers stays, as the next client may list fewer tools. A server that changes by itself
//! cancels [`MAX_REPLACED`] proposals, and then a person has to decide.
//!
//! A set that merely lacks accepted parts is no difference, and what was denied is not proposed again.

mod accepted;
mod layer;
mod parts;
mod proposal;
mod server_parts;

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::Tool as Listed;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use self::accepted::{Accepted, PartStanding, without_meta};
use self::parts::{Difference, PinKind};
use crate::client::launch::digest;
use crate::client::toolset::{ListedTools, McpToolset, PinnedParts};
use countersign::args::Args;
use countersign::error::BoxError;
use countersign::ledger::{Ask, AskRecord, AskState, Ledger, LedgerError};

pub(super) use self::layer::PinLayer;
pub use self::proposal::Proposal;
pub use self::server_parts::{OfferedTool, ServerParts, ToolStanding};

/// The tool's name of the asks by which sets of tools are accepted.
///
/// If you write a surface that shows asks, you can give these a page of their own. They are never
/// claimed, as nothing runs.
///
/// ```
/// assert_eq!(countersign_mcp::ACCEPT_TOOLS, "mcp/accept_tools");
/// ```
pub const ACCEPT_TOOLS: &str = "mcp/accept_tools";
/// The path of the ask in its run.
const PATH: &str = "root/tools";
/// The most proposals of one server that are looked through.
const MAX_PROPOSALS: u32 = 10_000;
/// The number of proposals in a row that are cancelled for another one, before a person has decided about one.
const MAX_REPLACED: u32 = 50;

/// The accepted parts of one server, kept in a ledger.
pub(super) struct Pins {
    ledger: Ledger,
    toolset: McpToolset,
    server: String,
    proposals: Proposals,
    /// The words for the log about how people accept the tools.
    hint: String,
    state: Mutex<State>,
}

/// The asks about one server, one after the other.
#[derive(Clone)]
struct Proposals {
    /// The beginning of their runs, each of which has one ask.
    set: String,
    principal: Option<String>,
}

impl Proposals {
    fn ask(&self, generation: u32) -> Ask {
        Ask::new(format!("{}-{generation}", self.set), PATH, ACCEPT_TOOLS)
    }

    /// Parks the proposal of this number, if there is none yet.
    async fn park(
        &self,
        ledger: &Ledger,
        generation: u32,
        args: &Args,
    ) -> Result<AskRecord, LedgerError> {
        let mut ask = self.ask(generation).with_args(args.clone()).with_valid_for(None);
        if let Some(principal) = &self.principal {
            ask = ask.with_principal(principal.as_str());
        }
        ledger.park(ask).await
    }

    /// The proposal of this number.
    async fn get(&self, ledger: &Ledger, generation: u32) -> Result<FoundProposal, LedgerError> {
        let ask = self.ask(generation);
        if let Some(record) = ledger.get(ask.id()).await? {
            return Ok(FoundProposal::There(Box::new(record)));
        }
        // Of a run that was pruned its row is left.
        Ok(match ledger.load_run(ask.run()).await? {
            Some(_) => FoundProposal::Pruned,
            None => FoundProposal::None,
        })
    }
}

enum FoundProposal {
    There(Box<AskRecord>),
    Pruned,
    None,
}

#[derive(Default)]
struct State {
    /// The number of proposals that are folded into `accepted`.
    read: u32,
    /// `true` if the proposals were read at all: until then nothing is known.
    was_read: bool,
    accepted: Accepted,
    /// The listed tools that are as they were accepted.
    same: Option<Arc<ListedTools>>,
    /// The ask that is open, and the digests of its parts.
    open: Option<(String, BTreeSet<String>)>,
    /// The ask that was reported last, and whether it covers what the server offers.
    reported: Option<(String, bool)>,
}

/// The state of a tool, compared with the accepted set; with the ask by which it can be accepted, or was denied.
enum Pinned {
    Same,
    New(String),
    Changed(String),
    Denied(String),
    /// A file or package that the server's command names is not accepted.
    Program {
        name: String,
        ask: String,
        is_denied: bool,
    },
}

impl Pins {
    pub(super) fn new(
        ledger: Ledger,
        toolset: McpToolset,
        launch: &str,
        (principal, hint): (Option<&str>, &str),
    ) -> Arc<Self> {
        let server = toolset.server().to_owned();
        let id: String = digest(&json!([server, launch])).chars().take(32).collect();
        let set = format!("mcp-pins-{id}");
        let proposals = Proposals { set, principal: principal.map(str::to_owned) };
        let (hint, state) = (hint.to_owned(), Mutex::default());
        Arc::new(Self { ledger, toolset, server, proposals, hint, state })
    }

    /// The state of a tool of the server now; `None` where the server does not offer it. A difference is proposed in
    /// one ask.
    ///
    /// For the usual call we compare a pointer: the tools are those that we found equal before. We compare only
    /// others, and only a difference reads the ledger.
    async fn standing(&self, name: &str) -> Result<Option<Pinned>, BoxError> {
        let tools = self.toolset.list(false).await?;
        let mut state = self.state.lock().await;
        if state.same.as_ref().is_some_and(|same| Arc::ptr_eq(same, &tools)) {
            return Ok(tools.pinned.tools.get(name).map(|_| Pinned::Same));
        }
        Box::pin(self.compared(&mut state, &tools, name)).await
    }

    async fn compared(
        &self,
        state: &mut State,
        tools: &Arc<ListedTools>,
        name: &str,
    ) -> Result<Option<Pinned>, BoxError> {
        if !state.was_read || !state.accepted.differences(&tools.pinned).is_empty() {
            self.read(state).await?;
        }
        let is_same = state.accepted.differences(&tools.pinned).is_empty();
        let ask = match is_same {
            true => {
                state.same = Some(Arc::clone(tools));
                String::new()
            }
            false => self.proposed(state, &tools.pinned).await?,
        };
        let Some(now) = tools.pinned.tools.get(name) else { return Ok(None) };
        Ok(Some(pinned(&state.accepted, &tools.pinned, (name, now), ask)))
    }

    /// Folds the decided proposals into the accepted set.
    ///
    /// We stop at a pending proposal: what is behind it counts only once it is decided. A proposal that has expired or
    /// was cancelled changes nothing, and we pass it.
    async fn read(&self, state: &mut State) -> Result<(), LedgerError> {
        let mut was_approved = false;
        while state.read < MAX_PROPOSALS {
            match self.proposals.get(&self.ledger, state.read).await? {
                FoundProposal::There(record) if record.state == AskState::Pending => break,
                FoundProposal::There(record) => {
                    was_approved |= state.accepted.fold(&record);
                }
                FoundProposal::Pruned => {}
                FoundProposal::None => break,
            }
            state.read += 1;
        }
        if was_approved {
            layer::close_asks(&self.ledger, &self.proposals.set).await;
            if state.was_read {
                // Clients list the tools again, and see what was accepted meanwhile.
                self.toolset.connection.count_change_of_tools();
            }
        }
        state.was_read = true;
        Ok(())
    }

    /// The ask for the parts that are not accepted: the one that is open, or the one in which they were denied.
    async fn proposed(&self, state: &mut State, current: &PinnedParts) -> Result<String, BoxError> {
        loop {
            let differences = state.accepted.differences(current);
            if differences.is_empty() {
                return Ok(String::new());
            }
            if let Some(ask) = state.accepted.denied(&differences) {
                return Ok(ask.to_owned());
            }
            let digests: BTreeSet<String> = differences.iter().map(Difference::digest).collect();
            if let Some((ask, _)) = state.open.as_ref().filter(|(_, open)| digests.is_subset(open))
            {
                let record = self.ledger.get(ask).await?;
                if record.is_some_and(|record| record.state == AskState::Pending) {
                    return Ok(ask.clone());
                }
            }
            if state.read >= MAX_PROPOSALS {
                return Err("the server has changed its tools too often".into());
            }
            let args = parts::args(&self.server, &differences);
            let record = self.proposals.park(&self.ledger, state.read, &args).await?;
            let id = record.ask.id().to_owned();
            if record.state == AskState::Pending {
                let open = parts::digests(record.ask.args());
                let covers = digests.is_subset(&open);
                if covers || state.accepted.replaced >= MAX_REPLACED {
                    let reported = Some((id.clone(), covers));
                    if state.reported != reported {
                        self.report((&id, covers), &differences);
                    }
                    (state.open, state.reported) = (Some((id.clone(), open)), reported);
                    return Ok(id);
                }
                self.ledger.cancel(&id, "countersign: the server has other tools now").await?;
            }
            self.read(state).await?;
        }
    }

    /// Says in the log that parts have to be accepted, once for each ask.
    fn report(&self, (ask, covers): (&str, bool), differences: &[Difference<'_>]) {
        let (server, hint) = (&self.server, &self.hint);
        let proposed = countersign::show::escape_name(&parts::summary(server, differences));
        if covers {
            tracing::warn!(target: "countersign::mcp", server, ask, proposed, "the tools of the server have to be accepted: {hint}");
        } else {
            tracing::error!(target: "countersign::mcp", server, ask, "the server offers something else each time: nothing more is proposed until a person has decided about this ask: {hint}");
        }
    }

    /// The tools as clients see them: as they were accepted, or as they are now before a person has decided about the
    /// server for the first time.
    ///
    /// If a tool has changed, a client sees its accepted text. If a tool is new, a client does not see it. No one has
    /// accepted the texts of these, and a list with them would tell them to the model.
    ///
    /// # Errors
    /// An error where it was never read which tools are accepted.
    pub(super) async fn shown(&self, tools: &ListedTools) -> Result<Vec<Listed>, BoxError> {
        let state = self.state.lock().await;
        if !state.was_read {
            return Err("the accepted tools of the server cannot be read".into());
        }
        let accepted = &state.accepted;
        if !accepted.is_decided() {
            return Ok(tools.offered().cloned().collect());
        }
        let shown = |now: &Listed| {
            let definition = tools.pinned.tools.get(&*now.name)?;
            match accepted.standing(PinKind::Tool, &now.name, definition) {
                PartStanding::Accepted => Some(now.clone()),
                PartStanding::Bare => Listed::deserialize(without_meta(definition)).ok(),
                _ => Listed::deserialize(accepted.last(PinKind::Tool, &now.name)?).ok(),
            }
        };
        Ok(tools.offered().filter_map(shown).collect())
    }

    /// The server's words about itself, as we tell them to clients: as they were accepted.
    pub(super) async fn about(&self) -> std::collections::BTreeMap<String, Value> {
        let Ok(tools) = self.toolset.list(false).await else { return Default::default() };
        let state = self.state.lock().await;
        let accepted = |(name, now): (&String, &Value)| {
            let told = match state.accepted.standing(PinKind::About, name, now) {
                PartStanding::Accepted => Some(now),
                _ => state.accepted.last(PinKind::About, name),
            };
            Some((name.clone(), told?.clone()))
        };
        tools.pinned.about.iter().filter_map(accepted).collect()
    }

    /// Proposes the changes, before the tools are listed.
    pub(super) async fn look(&self) {
        if let Err(error) = self.standing("").await {
            tracing::error!(target: "countersign::mcp", server = self.server, %error, "the pins cannot be read");
        }
    }
}

/// The standing of a tool. `ask` is the ask about everything that is not accepted.
fn pinned(
    accepted: &Accepted,
    current: &PinnedParts,
    (name, now): (&str, &Value),
    ask: String,
) -> Pinned {
    let standing = accepted.standing(PinKind::Tool, name, now);
    if let PartStanding::Denied(by) = standing {
        return Pinned::Denied(if ask.is_empty() { by.to_owned() } else { ask });
    }
    let mut programs = current.programs.iter();
    let other =
        programs.find_map(|(file, now)| match accepted.standing(PinKind::Program, file, now) {
            PartStanding::Accepted => None,
            PartStanding::Denied(_) => Some((file, true)),
            _ => Some((file, false)),
        });
    match (standing, other.filter(|_| accepted.binds_programs())) {
        (PartStanding::New, None) => Pinned::New(ask),
        (PartStanding::Changed, None) => Pinned::Changed(ask),
        (_, Some((file, is_denied))) => Pinned::Program { name: file.clone(), ask, is_denied },
        _ => Pinned::Same,
    }
}
