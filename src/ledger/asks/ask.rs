//! One ask: a pending call as it is parked in the ledger, and what its answers are bound to.
//!
//! The id of an ask is a digest of the run, the response, the path of the call and the number of its deferral. Any
//! process that has the suspended run finds the ask without having stored its id. The arguments are no part of the id:
//! if a call looks different than when it was parked, it has the same id and another fingerprint. After a crash a
//! worker finds that difference, and parks the call under the next number.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::Names;
use crate::args::{Args, IntoArgs};
use crate::call::{DeniedBefore, ToolCall};
use crate::decision::{People, Question};
use crate::deferred::{BatchEntry, CallAddress, DeferredToolRequests, PendingCall, fingerprint};
use crate::ledger::scope::GrantScope;
use crate::ledger::scope::Project;
use crate::origin::ValueOrigin;
use crate::outcome::DeferralKind;

/// A point of the store's time: milliseconds since 1970 (rule L4).
pub type Millis = i64;

/// The last second of the year 9999, beyond which a date has more than four digits.
const LAST_SECOND: u64 = 253_402_300_799;

/// A point of time as a date and a time of day in UTC; `None` before 1970 and after the year 9999.
///
/// ```
/// use countersign::ledger::date_and_time;
///
/// let (date, time) = date_and_time(1_795_370_524_000).unwrap();
/// assert_eq!(format!("{date} {time} UTC"), "2026-11-22 18:02:04 UTC");
/// assert_eq!(date_and_time(i64::MAX), None);
/// ```
#[must_use]
pub fn date_and_time(at: Millis) -> Option<(String, String)> {
    let at = u64::try_from(at).ok().filter(|at| at / 1_000 <= LAST_SECOND)?;
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at / 1_000);
    let text = humantime::format_rfc3339_seconds(at).to_string();
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    Some((date.to_owned(), time.to_owned()))
}

/// The point of time that a date names, with or without a time of day, in UTC: the inverse of [`date_and_time`]. `None` where it
/// is no date.
///
/// ```
/// use countersign::ledger::millis_of;
///
/// for text in ["2026-11-22 18:02:04", "2026-11-22T18:02:04Z", "2026-11-22 18:02:04 UTC"] {
///     assert_eq!(millis_of(text), Some(1_795_370_524_000));
/// }
/// assert_eq!(millis_of("2026-11-22"), Some(1_795_305_600_000));
/// assert_eq!(millis_of("yesterday"), None);
/// ```
#[must_use]
pub fn millis_of(text: &str) -> Option<Millis> {
    let text = text.strip_suffix(" UTC").unwrap_or(text);
    let at = humantime::parse_rfc3339_weak(text)
        .or_else(|_| humantime::parse_rfc3339_weak(&format!("{text} 00:00:00")))
        .ok()?;
    Millis::try_from(at.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// A point of time for people: the date and the time of day in UTC, or else the number of milliseconds.
///
/// ```
/// use countersign::ledger::utc;
///
/// assert_eq!(utc(1_795_370_524_000), "2026-11-22 18:02:04 UTC");
/// assert_eq!(utc(-1), "-1 ms after 1970-01-01 00:00:00 UTC");
/// ```
#[must_use]
pub fn utc(at: Millis) -> String {
    match date_and_time(at) {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => format!("{at} ms after 1970-01-01 00:00:00 UTC"),
    }
}

/// A pending call, as it is parked in a ledger.
///
/// ```
/// use countersign::ledger::Ask;
/// use countersign::Args;
///
/// let ask = Ask::new("run-1", "root/c1", "delete_file").with_args(Args::new().with("path", "a.log")).with_principal("ann");
/// assert_eq!(ask.id().len(), 32);
/// assert_eq!(ask.id(), Ask::new("run-1", "root/c1", "delete_file").id(), "the same call is the same ask");
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    id: String,
    pub(crate) run: String,
    pub(crate) response: u32,
    /// The path of agents that leads to the call, and the id of the call: `root/cleaner/call_1`.
    pub(crate) path: String,
    /// The name of the tool that people are shown.
    pub(crate) tool: String,
    /// The identity of the tool at its gate, which the fingerprint covers.
    pub(crate) identity: String,
    pub(crate) args: Args,
    pub(crate) questions: Vec<Question>,
    pub(crate) kind: DeferralKind,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
    /// The requester: the person that the call is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    pub(crate) idempotent: bool,
    pub(crate) quorum: Quorum,
    /// The time for which the ask may be pending, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_in: Option<Millis>,
    /// The time for which an approval is valid, in milliseconds; `Millis::MAX` means for ever, and `None` the ledger's
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) valid_for: Option<Millis>,
    /// The time for which the caller waits for the answer, in milliseconds; `None` where it waits for ever, or comes back for
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for: Option<Millis>,
    /// The reason why the call is asked about again after it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<String>,
    /// Set when a person has denied the same call earlier in this run (rule D11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) denied_before: Option<DeniedBefore>,
    /// The place where the call is made, as the ledger that parks the ask knows it: the scopes of grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<Project>,
    /// The origins of the values of the arguments; empty if they are not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) origins: Vec<ValueOrigin>,
}

/// The number of people who must approve an ask, and whether the requester may be one of them. By default one approval is
/// enough, and the first answer is the decision.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore, Quorum};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let two = Quorum { approvals: 2, not_the_requester: true };
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "transfer").with_principal("ann").with_quorum(two)).await?;
/// let yes = async |by: &str| ledger.decide(ask.ask.id(), &ask.fingerprint, by, Answer::Approve { args: None }).await;
/// assert_eq!(yes("Ann ").await?, Decided::NotAllowed, "a name is compared in its canonical form");
/// assert_eq!(yes("bob").await?, Decided::Recorded { approvals: 1, needed: 2, again: false });
/// assert_eq!(yes("eve").await?, Decided::Won { again: false });
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// The number of distinct people who must approve.
    pub approvals: u32,
    /// `true` if the requester is excluded from approving.
    #[serde(default)]
    pub not_the_requester: bool,
}

impl Default for Quorum {
    fn default() -> Self {
        Self { approvals: 1, not_the_requester: false }
    }
}

impl Quorum {
    /// Returns `true` if a denial still overrides an approval that is not claimed yet: where several have to agree, any
    /// of them can stop the call.
    pub(in crate::ledger) fn has_veto(self) -> bool {
        self.approvals > 1
    }

    /// Returns `true` if this person may not approve. Where the requester is excluded and has no name, everyone is
    /// refused, as anyone might be the requester: nothing fails open (rule D4).
    ///
    /// | excluded | requester | approver | refused |
    /// |---|---|---|---|
    /// | no | any | any | no |
    /// | yes | `ann` | `Ann ` | yes: one person |
    /// | yes | `ann` | `bob` | no |
    /// | yes | none, or blank | any | yes |
    pub(in crate::ledger) fn refuses(
        self,
        requester: Option<&str>,
        who: &str,
        names: &Names,
    ) -> bool {
        let requester = requester.filter(|requester| !names.is_no_person(requester));
        self.not_the_requester && requester.is_none_or(|requester| names.are_one(requester, who))
    }
}

impl Ask {
    /// An ask for the approval of a call. The id follows from the run and the path, so that parking the same call again
    /// gives the same ask.
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
            waits_for: None,
            changed: None,
            denied_before: None,
            session: None,
            project: None,
            origins: Vec::new(),
        }
    }

    /// The ask of a pending call of a turn. `tool` is the name that people are shown.
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
            questions: pending.questions.to_vec(),
            metadata: pending.metadata.clone(),
            idempotent,
            changed: pending.changed.clone(),
            denied_before: pending.denied_before.clone(),
            origins: pending.origins.clone(),
            ..Self::new(run_id, path, tool).with_args(pending.shown.clone())
        }
    }

    /// Sets where the values of the arguments come from, for the people who decide
    /// ([`Origin::of_args`](crate::origin::Origin::of_args)). It is no part of the fingerprint.
    #[must_use]
    pub fn with_origins(mut self, origins: Vec<ValueOrigin>) -> Self {
        self.origins = origins;
        self
    }

    /// The origins of the values of the arguments; empty if they are not recorded.
    #[must_use]
    pub fn origins(&self) -> &[ValueOrigin] {
        &self.origins
    }

    /// Sets the identity of the tool, which the fingerprint covers and to which grants are bound; by default its name.
    /// A surface that parks asks for tools of several sources sets one that tells them apart.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// The scopes in which a grant for such calls can hold: the session and the project in which the call was made, as
    /// the ledger that parked the ask knows them ([`Ledger::session`](crate::ledger::Ledger::session)).
    #[must_use]
    pub fn scopes(&self) -> Vec<GrantScope> {
        let session = self.session.clone().map(GrantScope::Session);
        session.into_iter().chain(self.project.clone().map(GrantScope::Project)).collect()
    }

    /// Records where the call is made.
    pub(in crate::ledger) fn made_in(
        mut self,
        session: Option<&str>,
        project: Option<&Project>,
    ) -> Self {
        self.session = session.map(str::to_owned);
        self.project = project.cloned();
        self
    }

    /// Sets the arguments that the call will run with.
    #[must_use]
    pub fn with_args(mut self, args: impl IntoArgs) -> Self {
        self.args = args.into_args();
        self
    }

    /// Sets the questions that people are asked about the call.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::ledger::Ask;
    ///
    /// let asked = Decision::ask("sends mail to a new address").with_key("new-recipient");
    /// let ask = Ask::new("run-1", "root/c1", "send_mail").with_questions(asked.questions().to_vec());
    /// assert_ne!(ask.fingerprint(), Ask::new("run-1", "root/c1", "send_mail").fingerprint(), "questions are part of it");
    /// ```
    #[must_use]
    pub fn with_questions(mut self, questions: impl IntoIterator<Item = Question>) -> Self {
        self.questions = questions.into_iter().collect();
        self
    }

    /// Sets the requester: the person that the call is made for.
    #[must_use]
    pub fn with_principal(mut self, who: impl Into<String>) -> Self {
        self.principal = Some(who.into());
        self
    }

    /// Sets whether running the call twice has the same effect as running it once; `false` by default. An idempotent
    /// call whose worker died may be claimed again.
    #[must_use]
    pub fn with_idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets how many people must approve; one by default.
    #[must_use]
    pub fn with_quorum(mut self, quorum: Quorum) -> Self {
        self.quorum = quorum;
        self
    }

    /// Sets how long the ask may be pending; by default for ever. An ask without a decision by then expires: its call
    /// is denied, and no person is recorded as having denied it (rule L4).
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "deploy").with_expires_in(Duration::ZERO)).await?;
    /// let late = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    /// assert_eq!(late, Decided::Expired);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_expires_in(mut self, time: Duration) -> Self {
        self.expires_in = Some(Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX));
        self
    }

    /// Sets how long an approval is valid, from its oldest vote to the claim; `None` means for ever. The default is the
    /// ledger's [`approvals_valid_for`](crate::ledger::Ledger::approvals_valid_for) (rule A8).
    ///
    /// Set a short time for calls whose reason may pass, for example a deployment in a window, and `None` for a call
    /// whose arguments say everything. Expiry never stops a call that runs: an approval that was claimed in time
    /// runs to its end.
    #[must_use]
    pub fn with_valid_for(mut self, time: impl Into<Option<Duration>>) -> Self {
        let time = time.into().and_then(|time| Millis::try_from(time.as_millis()).ok());
        self.valid_for = Some(time.unwrap_or(Millis::MAX));
        self
    }

    /// Sets for how long the caller waits for the answer; by default for ever. Later the ask is pending as before, and people
    /// are told that an approval is for the next equal call. It is no part of the fingerprint.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = Ask::new("run-1", "root/c1", "deploy").with_waits_for(Duration::from_secs(60));
    /// let record = ledger.park(ask).await?;
    /// let now = ledger.now().await?;
    /// assert!(!record.has_no_caller(now) && record.has_no_caller(now + 60_000));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_waits_for(mut self, time: Duration) -> Self {
        self.waits_for = Some(Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX));
        self
    }

    /// The id of the ask: 32 hexadecimal digits, the same whenever the same call is parked.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the run that the call belongs to.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The name of the tool that people are shown.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments that the call will run with, unless an approval edits them.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// The questions that people are asked about the call.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The requester: the person that the call is made for.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// The number of people who must approve the call, and whether the requester may: the strictest of what was set with
    /// [`with_quorum`](Self::with_quorum) and of what the questions demand.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::People;
    /// use countersign::ledger::Ask;
    ///
    /// let asked = Decision::ask("pays").with_people(People::new(2).not_the_requester());
    /// let ask = Ask::new("run-1", "root/c1", "pay").with_questions(asked.questions().to_vec());
    /// assert_eq!((ask.quorum().approvals, ask.quorum().not_the_requester), (2, true));
    /// ```
    #[must_use]
    pub fn quorum(&self) -> Quorum {
        self.people().iter().fold(self.quorum, |quorum, people| Quorum {
            approvals: quorum.approvals.max(people.approvals),
            not_the_requester: quorum.not_the_requester || people.not_the_requester,
        })
    }

    /// The people whom the questions of the ask demand; empty where anyone may approve it.
    #[must_use]
    pub fn people(&self) -> Vec<People> {
        self.questions.iter().filter_map(Question::people).collect()
    }

    /// Tells whether this person may approve the ask. Where the questions demand people by name, it has to be one of those
    /// that any of them names.
    pub(in crate::ledger) fn may_be_approved_by(&self, who: &str, names: &Names) -> bool {
        if self.quorum().refuses(self.principal(), who, names) {
            return false;
        }
        let people = self.people();
        if names.are_unchecked() && !people.is_empty() {
            return false;
        }
        let is_one = |it: &People| it.approvers.as_ref().is_none_or(|of| names.is_one_of(who, of));
        people.is_empty() || people.iter().any(is_one)
    }

    /// The number of people who still have to approve the ask, besides these. Each question counts those who may answer
    /// it.
    pub(super) fn missing(&self, by: &[String], names: &Names) -> u32 {
        let count = |people: Option<&People>| {
            let of = people.and_then(|it| it.approvers.as_ref());
            by.iter().filter(|who| of.is_none_or(|of| names.is_one_of(who, of))).count()
        };
        let missing = |needed: u32, there: usize| {
            needed.saturating_sub(u32::try_from(there).unwrap_or(u32::MAX))
        };
        let of_questions =
            self.people().into_iter().map(|it| missing(it.approvals, count(Some(&it))));
        of_questions.fold(missing(self.quorum().approvals, count(None)), u32::max)
    }

    /// Tells whether these people may still approve the ask, and are enough. A person may have left a group since.
    pub(super) fn is_approved_by(&self, by: &[String], names: &Names) -> bool {
        if self.people().is_empty() {
            return true;
        }
        let still = by.iter().filter(|who| self.may_be_approved_by(who, names));
        self.missing(&still.cloned().collect::<Vec<_>>(), names) == 0
    }

    /// The path of agents that leads to the call, and the id of the call: `root/cleaner/call_1`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The earlier denials of the same call in this run by a person (rule D11); `None` if there are none.
    #[must_use]
    pub fn denied_before(&self) -> Option<&DeniedBefore> {
        self.denied_before.as_ref()
    }

    pub(in crate::ledger) fn with_denied_before(mut self, before: DeniedBefore) -> Self {
        self.denied_before = Some(before);
        self
    }

    /// The ask as a batch of its one call, to show it to people: see [`CallView::all`](crate::show::CallView::all).
    ///
    /// ```
    /// use countersign::ledger::Ask;
    /// use countersign::show::{CallView, Limits};
    /// use countersign::Args;
    ///
    /// let ask = Ask::new("run-1", "root/cleaner/c1", "delete_file").with_args(Args::new().with("path", "a.log"));
    /// let [view] = &CallView::all(&ask.requests(), Limits::default())[..] else { panic!("one call") };
    /// assert_eq!(view.headline, r#"root/cleaner/delete_file(path: "a.log")"#);
    /// ```
    #[must_use]
    pub fn requests(&self) -> DeferredToolRequests {
        let (agents, id) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let pending = PendingCall {
            kind: self.kind,
            questions: self.questions.as_slice().into(),
            metadata: self.metadata.clone(),
            changed: self.changed.clone(),
            shown: self.args.clone(),
            origin: self.args.clone(),
            tool: self.identity.clone(),
            deferrals: 0,
            fingerprint: self.fingerprint(),
            denied_before: self.denied_before.clone(),
            asked_in: None,
            origins: self.origins.clone(),
        };
        let entry = BatchEntry {
            call: ToolCall::new(id, self.tool.as_str(), self.args.to_value()),
            // As in a turn, an agent is only named where there is more than one on the path.
            agent: agents.contains('/').then(|| agents.to_owned()),
            pending: Cow::Owned(pending),
        };
        DeferredToolRequests::of(self.id.clone(), [entry])
    }

    /// The fingerprint of the call, the tool, the arguments and the questions: an answer with another one is refused
    /// (rule L0).
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.fingerprint_with(&self.args)
    }

    /// The fingerprint of this ask with other arguments, which identifies an edited approval.
    pub(super) fn fingerprint_with(&self, args: &Args) -> String {
        let (run_id, response, path) = (&*self.run, self.response, self.path.clone());
        let address = CallAddress { run_id, response, path };
        fingerprint(&address, &self.identity, args, &self.questions)
    }
}

/// The id of the ask of a call that is deferred for the n-th time: each deferral of a call is another ask.
pub(in crate::ledger) fn id(run: &str, response: u32, path: &str, deferral: u32) -> String {
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

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_formatted_for_people() {
        for (at, says) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (-1, "-1 ms after 1970-01-01 00:00:00 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199_999, "2024-02-29 23:59:59 UTC"),
            (1_735_689_600_000, "2025-01-01 00:00:00 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
            (253_402_300_799_999, "9999-12-31 23:59:59 UTC"),
            (253_402_300_800_000, "253402300800000 ms after 1970-01-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(at), says);
        }
        assert!(utc(i64::MAX).ends_with("UTC") && utc(i64::MIN).ends_with("UTC"));
    }
}
