//! One ask: a call that somebody has to decide about, and everything that has become of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::Names;
use crate::args::{Args, IntoArgs};
use crate::call::{DeniedBefore, ToolCall};
use crate::decision::Question;
use crate::deferred::{BatchEntry, CallAddress, DeferredToolRequests, PendingCall, fingerprint};
use crate::outcome::DeferralKind;

/// A point of the store's time: milliseconds since 1970 (rule L4).
pub type Millis = i64;

/// A call that waits, as it is parked.
///
/// ```
/// use countersign::{Args, ledger::Ask};
///
/// let ask = Ask::new("run-1", "root/c1", "delete_file").args(Args::new().with("path", "a.log")).principal("ann");
/// assert_eq!(ask.id().len(), 32);
/// assert_eq!(ask.id(), Ask::new("run-1", "root/c1", "delete_file").id(), "the same call is the same ask");
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    id: String,
    pub(crate) run: String,
    pub(crate) response: u32,
    /// The agents that lead to the call, and its id.
    pub(crate) path: String,
    /// The tool, by the name that people know.
    pub(crate) tool: String,
    /// The tool at its gate.
    pub(crate) identity: String,
    pub(crate) args: Args,
    pub(crate) questions: Vec<Question>,
    pub(crate) kind: DeferralKind,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
    /// Who wants the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    pub(crate) idempotent: bool,
    pub(crate) quorum: Quorum,
    /// How long it may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_in: Option<Millis>,
    /// How long an approval holds; the longest time means for ever, and none what the ledger says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) valid_for: Option<Millis>,
    /// Why the call waits again after it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<String>,
    /// A person has denied the same call before in its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) denied_before: Option<DeniedBefore>,
}

/// How many people must approve. One, by default, and then the first answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// So many distinct people.
    pub approvals: u32,
    /// Whoever wants the call may not approve it.
    #[serde(default)]
    pub not_the_requester: bool,
}

impl Default for Quorum {
    fn default() -> Self {
        Self { approvals: 1, not_the_requester: false }
    }
}

impl Quorum {
    /// Whether one no ends it until the call is claimed: several have to agree.
    pub(super) fn has_veto(self) -> bool {
        self.approvals > 1
    }

    /// Whether this person may not approve. Nothing fails open (rule D4): without the requester's name, it may be any.
    pub(super) fn refuses(self, requester: Option<&str>, who: &str, names: &Names) -> bool {
        let requester = requester.filter(|requester| !names.is_blank(requester));
        self.not_the_requester && requester.is_none_or(|requester| names.are_one(requester, who))
    }
}

impl Ask {
    /// A call of a run that waits for an approval. The same run, path and deferral give the same ask.
    #[must_use]
    pub fn new(run: impl Into<String>, path: impl Into<String>, tool: impl Into<String>) -> Self {
        let (run, path, tool) = (run.into(), path.into(), tool.into());
        Self {
            id: id(&run, 0, &path, 0),
            run,
            response: 0,
            path,
            identity: tool.clone(),
            tool,
            args: Args::new(),
            questions: Vec::new(),
            kind: DeferralKind::Approval,
            metadata: Map::new(),
            principal: None,
            idempotent: false,
            quorum: Quorum::default(),
            expires_in: None,
            valid_for: None,
            changed: None,
            denied_before: None,
        }
    }

    /// The ask of a pending call, with the name of its tool that people know.
    pub(crate) fn of_call(
        address: CallAddress<'_>,
        tool: &str,
        pending: &PendingCall,
        idempotent: bool,
    ) -> Self {
        let CallAddress { run_id, response, path } = address;
        Self {
            id: id(run_id, response, &path, pending.deferrals),
            response,
            identity: pending.tool.clone(),
            kind: pending.kind,
            questions: pending.questions.clone(),
            metadata: pending.metadata.clone(),
            idempotent,
            changed: pending.changed.clone(),
            denied_before: pending.denied_before.clone(),
            ..Self::new(run_id, path, tool).args(pending.shown.clone())
        }
    }

    /// The arguments it will run with.
    #[must_use]
    pub fn args(mut self, args: impl IntoArgs) -> Self {
        self.args = args.into_args();
        self
    }

    /// What is asked.
    #[must_use]
    pub fn questions(mut self, questions: impl IntoIterator<Item = Question>) -> Self {
        self.questions = questions.into_iter().collect();
        self
    }

    /// Who wants the call.
    #[must_use]
    pub fn principal(mut self, who: impl Into<String>) -> Self {
        self.principal = Some(who.into());
        self
    }

    /// Running it twice does the same as running it once.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// How many people must approve.
    #[must_use]
    pub fn quorum(mut self, quorum: Quorum) -> Self {
        self.quorum = quorum;
        self
    }

    /// How long it may wait for its decision; after that it is denied, by nobody (rule L4).
    #[must_use]
    pub fn expires_in(mut self, time: std::time::Duration) -> Self {
        self.expires_in = Some(Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX));
        self
    }

    /// How long an approval of it holds, from its oldest vote to the claim; `None` means for ever. Without this, the
    /// ledger's own time holds: [`Ledger::approvals_valid_for`](super::Ledger::approvals_valid_for) (rule A8).
    #[must_use]
    pub fn valid_for(mut self, time: impl Into<Option<std::time::Duration>>) -> Self {
        let time = time.into().and_then(|time| Millis::try_from(time.as_millis()).ok());
        self.valid_for = Some(time.unwrap_or(Millis::MAX));
        self
    }

    /// Its id: 32 hexadecimal digits, the same whenever the same call is parked.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The tool, by the name that people know.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments it will run with.
    #[must_use]
    pub fn get_args(&self) -> &Args {
        &self.args
    }

    /// What is asked.
    #[must_use]
    pub fn get_questions(&self) -> &[Question] {
        &self.questions
    }

    /// Who wants the call.
    #[must_use]
    pub fn get_principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// How many people must approve.
    #[must_use]
    pub fn get_quorum(&self) -> Quorum {
        self.quorum
    }

    /// The agents that lead to the call, and its id: `root/cleaner/call_1`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How often a person has denied the same call before in its run (rule D11).
    #[must_use]
    pub fn denied_before(&self) -> Option<&DeniedBefore> {
        self.denied_before.as_ref()
    }

    /// The ask as a batch of its one call, to show it to people: see [`CallView::all`](crate::show::CallView::all).
    ///
    /// ```
    /// use countersign::{Args, ledger::Ask, show::{CallView, Limits}};
    ///
    /// let ask = Ask::new("run-1", "root/cleaner/c1", "delete_file").args(Args::new().with("path", "a.log"));
    /// let [view] = &CallView::all(&ask.requests(), Limits::default())[..] else { panic!("one call") };
    /// assert_eq!(view.headline, r#"root/cleaner/delete_file(path: "a.log")"#);
    /// ```
    #[must_use]
    pub fn requests(&self) -> DeferredToolRequests {
        let (agents, id) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let pending = PendingCall {
            kind: self.kind,
            questions: self.questions.clone(),
            metadata: self.metadata.clone(),
            changed: self.changed.clone(),
            shown: self.args.clone(),
            origin: self.args.clone(),
            tool: self.identity.clone(),
            deferrals: 0,
            fingerprint: self.fingerprint(),
            denied_before: self.denied_before.clone(),
        };
        let entry = BatchEntry {
            call: ToolCall::new(id, self.tool.as_str(), self.args.to_value()),
            // As in a turn: whose agent is the only one needs no name.
            agent: agents.contains('/').then(|| agents.to_owned()),
            pending,
        };
        DeferredToolRequests::of(self.id.clone(), [entry])
    }

    /// What an answer is bound to (rule L0).
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.fingerprint_with(&self.args)
    }

    /// What an answer is bound to that has other arguments run.
    pub(super) fn fingerprint_with(&self, args: &Args) -> String {
        let (run_id, response, path) = (&*self.run, self.response, self.path.clone());
        let address = CallAddress { run_id, response, path };
        fingerprint(&address, &self.identity, args, &self.questions)
    }
}

/// The id of an ask: a call, deferred for the n-th time.
pub(super) fn id(run: &str, response: u32, path: &str, deferral: u32) -> String {
    let key = serde_json::json!(["ask", 1, run, response, path, deferral]);
    let mut digest = crate::args::digest(&key);
    digest.truncate(32);
    digest
}

impl fmt::Debug for Ask {
    /// Names, not values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("id", &self.id)
            .field("tool", &self.tool)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
