//! The decision of a middleware about a call: ALLOW, ASK or DENY, optionally with changed arguments.
//!
//! ```
//! use countersign::Decision;
//! use countersign::decision::ToolDecision;
//!
//! let ask = Decision::ask("delete a.log?").with_key("delete");
//! let deny = Decision::deny("not on fridays");
//! // Of several decisions the strictest wins, and the questions of both are kept.
//! assert_eq!(ask.and(deny).decision(), ToolDecision::Deny);
//! ```
//!
//! # Where a decision goes
//!
//! A decision is a value that a middleware returns. The layer that runs the middleware fills in its name, records the
//! decision in the call record, and forgets it. From then on the *record* counts: no layer can take a question or a
//! denial back, and an ALLOW has no effect on the decisions of others (rule D1).
//!
//! | decision | with arguments | the call |
//! |---|---|---|
//! | ALLOW | they replace the call's | continues inward |
//! | ASK | they are what the approver sees, and what runs | continues inward; the gate defers it |
//! | DENY | ignored | stops; the model gets the reason verbatim (rule D2) |
//!
//! # Questions
//!
//! An ASK has one question, and an ASK of a composite has one for each member that asks. A question is *the same* as
//! another one if layer, key and pins are equal. An approval covers exactly the questions that were shown. So the parts
//! have different tasks:
//!
//! | part | for | changes between passes |
//! |---|---|---|
//! | reason | the approver | may, if there is a key |
//! | key | the identity of the question | must not |
//! | pins | the content that the question is about | a change makes it a new question |
//! | metadata | handlers and surfaces | may |
//! | previews | the approver; their digests are pins | a change makes it a new question |

mod conversion;
mod grant_pattern;
mod people;
mod preview;
mod question;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::args::{Args, IntoArgs};
pub use conversion::IntoDecision;
pub use grant_pattern::GrantPattern;
pub(crate) use people::GROUP;
pub use people::People;

/// The name of a layer, which is made only where it is needed. It is a trait object, so that what records a decision is compiled
/// once, and not for each type of a layer.
pub(crate) type LayerName<'a> = &'a dyn Fn() -> Cow<'static, str>;

/// `true` if a person has to be asked every time ([`metadata::EVERY_TIME`](crate::deferred::metadata::EVERY_TIME)).
pub(crate) const EVERY_TIME: &str = "every_time";

/// The template of a title ([`metadata::TITLE`](crate::deferred::metadata::TITLE)).
pub(crate) const TITLE: &str = "title";
pub use preview::{Change, Preview, PreviewContent};
pub use question::{Question, QuestionId};

/// The three kinds of decision, from the mildest to the strictest: of several decisions, the greatest wins (rule D1).
///
/// Exhaustive on purpose: a fourth kind has to break every `match`.
///
/// ```
/// use countersign::decision::ToolDecision::{Allow, Ask, Deny};
/// assert_eq!([Ask, Deny, Allow].into_iter().max(), Some(Deny));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolDecision {
    /// No objection: the call continues inward. An ALLOW never overrides another layer.
    Allow,
    /// The call needs an approval. It still continues inward, and the gate defers it until an approval covers the
    /// question.
    Ask,
    /// The call stops here: nothing inside runs, and the model gets the reason.
    Deny,
}

impl ToolDecision {
    /// Returns `true` if this is [`Allow`](Self::Allow).
    #[must_use]
    pub fn is_allow(self) -> bool {
        self == Self::Allow
    }

    /// The decision as one word: `allow`, `ask` or `deny`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for ToolDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The decision of a middleware about a call: its kind, its reason, and the arguments that the call continues with.
///
/// ```
/// use countersign::decision::{ToolBlocked, ToolDecision};
/// use countersign::{Args, Decision};
///
/// let ask = Decision::ask("delete a.log?").with_key("delete");
/// assert_eq!(ask.decision(), ToolDecision::Ask);
///
/// // Arguments alone mean ALLOW with those arguments, a `ToolBlocked` means DENY.
/// assert_eq!(Decision::from(Args::new().with("audit", true)).decision(), ToolDecision::Allow);
/// assert_eq!(Decision::from(ToolBlocked::new("not on fridays")), Decision::deny("not on fridays"));
/// ```
///
/// There is no default: every decision is explicit.
///
/// ```compile_fail
/// let decision = countersign::Decision::default(); // error: no function `default`
/// ```
#[derive(Clone)]
#[must_use = "a decision does nothing until the middleware returns it"]
pub struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) args: Option<Args>,
}

#[derive(Clone)]
pub(crate) enum Verdict {
    /// An implicit ALLOW: a hook that is not implemented, a call of another tool, or plain arguments. Only
    /// `danger_first_decision_wins` distinguishes it from an explicit ALLOW.
    Undecided,
    Allow,
    Ask(Vec<Question>),
    /// Boxed to keep `Decision` small: layers move many decisions, and few of them deny.
    Deny(Box<Denial>),
}

/// The denial of a call: its reason, and the layer that denies.
///
/// ```
/// use countersign::Decision;
///
/// let decision = Decision::deny("not on fridays");
/// let denial = decision.denied().unwrap();
/// assert_eq!((denial.reason(), denial.detail(), denial.key()), ("not on fridays", None, ""));
/// assert_eq!(denial.layer(), "", "the service that runs the middleware fills it in");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The name of the layer; empty until the service that runs the middleware fills it in.
    pub(crate) layer: Cow<'static, str>,
    /// The text for the model, verbatim.
    pub(crate) reason: String,
    /// The text for the host, when the layer failed instead of deciding.
    pub(crate) detail: Option<String>,
    /// The key of the layer's rule that denies; empty without one. For the host, which counts denials by it.
    pub(crate) key: String,
}

impl Denial {
    /// The name of the layer that denied the call.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// The text that the model gets, verbatim (rule D2).
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The failure of the layer, if that is why the call is denied. For the host; the model does not get it (rule D4).
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The key of the layer's rule that denied the call, if the layer has set one by [`Decision::with_key`]; empty
    /// otherwise. For the host, which counts denials by it; the model does not get it.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Decision {
    /// ALLOW: the call continues inward.
    pub const fn allow() -> Self {
        Self { verdict: Verdict::Allow, args: None }
    }

    /// No decision: the call continues inward, as after [`allow`](Self::allow), and an explanation says that the
    /// middleware has not decided about it. Where the first decision wins, the next member is asked.
    ///
    /// ```
    /// use countersign::{Decision, ToolCall, decide_fn};
    ///
    /// let reads = decide_fn(|_, call: &ToolCall| match call.name() {
    ///     "read_file" => Decision::allow(),
    ///     _ => Decision::undecided(),
    /// });
    /// # let _ = reads;
    /// ```
    pub const fn undecided() -> Self {
        Self { verdict: Verdict::Undecided, args: None }
    }

    /// ASK: the call needs an approval. The approver sees `reason`, the final arguments and the name of the layer.
    ///
    /// A reason says what the layer knows and the call does not show: not "calls delete_file", but "the folder is
    /// shared with the team". An empty reason is allowed; then the approver sees the call alone.
    ///
    /// ```
    /// use countersign::decision::ToolDecision;
    /// use countersign::Decision;
    ///
    /// let ask = Decision::ask("the folder is shared with the team");
    /// assert_eq!(ask.decision(), ToolDecision::Ask);
    /// assert_eq!(ask.questions()[0].key(), "the folder is shared with the team", "without a key the reason is the key");
    /// ```
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ask(vec![Question::new(reason)]), args: None }
    }

    /// DENY: the call is not executed, and the model gets `reason` verbatim. An empty reason means the default text.
    ///
    /// The model reads the reason and acts on it, so say what it may do instead, and nothing that it must not know: the
    /// text goes into the conversation.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::denial(reason.into(), None)
    }

    /// DENY because the layer failed: the model gets the name of the layer, the host gets `detail` (rule D4).
    pub(crate) fn failed(detail: impl fmt::Display) -> Self {
        Self::denial(String::new(), Some(detail.to_string()))
    }

    fn denial(reason: String, detail: Option<String>) -> Self {
        let denial = Denial { layer: Cow::Borrowed(""), reason, detail, key: String::new() };
        Self { verdict: Verdict::Deny(Box::new(denial)), args: None }
    }

    /// Passes the call on with these arguments. With an ASK they are what the approver sees and what runs; with a DENY
    /// they have no effect.
    ///
    /// A middleware that changes arguments must be deterministic and must not change its own result again (rule D3);
    /// [`testing::rewrites_once`](crate::testing::rewrites_once) checks that.
    ///
    /// ```
    /// use countersign::{Args, Decision};
    ///
    /// let decision = Decision::ask("sends a mail").with_args(Args::new().with("to", "ann").with("bcc", "archive"));
    /// assert_eq!(decision.args().unwrap()["bcc"], "archive");
    /// assert_eq!(Decision::allow().args(), None, "the call keeps its arguments");
    /// ```
    pub fn with_args(mut self, args: impl IntoArgs) -> Self {
        self.args = Some(args.into_args());
        self
    }

    /// Sets a stable key for the question of an ASK, so that an approval still covers the question when the text of the
    /// reason changes ("balance is 102.3"). By default the reason is the key (rule A1).
    ///
    /// The key is stored with pending calls, so it should be short and stay the same across versions: `"pay"`,
    /// `"new-recipient"`. Two questions of one layer with one key are one question, whatever their reasons say.
    ///
    /// On a DENY the key has no effect on the call: it says which rule of the layer denies, in the log and in
    /// metrics (`docs/telemetry.md`). An ALLOW has no key.
    ///
    /// ```
    /// use countersign::Decision;
    ///
    /// let monday = Decision::ask("balance is 102.3").with_key("pay");
    /// let tuesday = Decision::ask("balance is 97.1").with_key("pay");
    /// assert_eq!(monday.questions()[0].id(), tuesday.questions()[0].id());
    /// ```
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        match &mut self.verdict {
            Verdict::Undecided | Verdict::Allow => {}
            Verdict::Ask(questions) => {
                let key = key.into();
                questions
                    .iter_mut()
                    .for_each(|question| question.content_mut().key.clone_from(&key));
            }
            Verdict::Deny(denial) => denial.key = key.into(),
        }
        self
    }

    /// Adds a value to the request's metadata, for handlers and surfaces; [`metadata`](crate::deferred::metadata) lists the keys
    /// with a defined meaning. The tool does not get the value (rule A5). Only an ASK carries metadata.
    ///
    /// ```
    /// use countersign::deferred::metadata;
    /// use countersign::Decision;
    ///
    /// let ask = Decision::ask("production is frozen").with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED);
    /// assert_eq!(ask.questions()[0].metadata()["approval_policy"], "blocked");
    /// ```
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        if let Verdict::Ask(questions) = &mut self.verdict {
            let (key, value) = (key.into(), value.into());
            for question in questions {
                question.content_mut().metadata.insert(key.clone(), value.clone());
            }
        }
        self
    }

    /// Words the first line of the call for people: a template with the names of arguments, `{amount} {currency} to
    /// {recipient}`. A field of an object is `{order.total}`, and `{{` is a brace. The name of the tool stays before it, and
    /// values are escaped and marked, so that no value reads as prose.
    ///
    /// The template is the host's, like the reason of a question. A server has no way to set one.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    /// use countersign::{Args, Decision};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let asked = Decision::ask("moves money").with_title("{amount} {currency} to {recipient}");
    /// let args = Args::new().with("amount", 120).with("currency", "EUR").with("recipient", "Ann");
    /// let ask = Ask::new("run-1", "root/c1", "transfer").with_args(args).with_questions(asked.questions().to_vec());
    /// let view = Ledger::new(MemoryStore::new()).park(ask).await?.view(0, Default::default());
    /// assert_eq!(view.title, "An agent wants to call `transfer`: `120` `EUR` to `Ann`");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub fn with_title(self, template: impl Into<String>) -> Self {
        self.with_metadata(TITLE, template.into())
    }

    /// Pins the question of an ASK to the content of something it is about, for example a file: another digest on the
    /// approved pass makes it a new question (rule A1). `what` names the content.
    ///
    /// ```
    /// use countersign::args::digest;
    /// use countersign::Decision;
    /// use serde_json::json;
    ///
    /// let ask = |config: &str| Decision::ask("applies the configuration").with_key("apply").with_pin("config", digest(&json!(config)));
    /// assert_ne!(ask("a = 1").questions()[0].id(), ask("a = 2").questions()[0].id());
    /// ```
    pub fn with_pin(mut self, what: impl Into<String>, digest: impl Into<String>) -> Self {
        if let Verdict::Ask(questions) = &mut self.verdict {
            let (what, digest) = (what.into(), digest.into());
            for question in questions {
                question.content_mut().pins.insert(what.clone(), digest.clone());
            }
        }
        self
    }

    /// Sets which people have to answer the question of this ASK. The question is asked every time, as no answer in
    /// advance is by these people. We pin the demand: an approval under another demand does not cover the question.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::People;
    ///
    /// let ask = |people| Decision::ask("pays").with_key("pay").with_people(people);
    /// assert_ne!(ask(People::new(2)).questions()[0].id(), ask(People::new(1)).questions()[0].id());
    /// ```
    pub fn with_people(self, people: People) -> Self {
        let people = serde_json::to_value(people).unwrap_or_default();
        self.with_pin(People::KEY, crate::args::digest(&people))
            .with_metadata(People::KEY, people)
            .with_metadata(EVERY_TIME, true)
    }

    /// The stricter of two decisions of one middleware. Two ASKs become one that asks all their questions; where both
    /// have arguments, those of `other` count.
    ///
    /// ```
    /// use countersign::Decision;
    ///
    /// let both = Decision::ask("sends mail").with_key("mail").and(Decision::ask("to a new address").with_key("new"));
    /// assert_eq!(both.questions().len(), 2);
    /// assert_eq!(both.and(Decision::deny("no")), Decision::deny("no"));
    /// ```
    pub fn and(mut self, other: Self) -> Self {
        let args = other.args.or(self.args.take());
        let verdict = match (self.verdict, other.verdict) {
            (denied @ Verdict::Deny(_), _) | (_, denied @ Verdict::Deny(_)) => denied,
            (Verdict::Ask(mut questions), Verdict::Ask(more)) => {
                questions.extend(more);
                Verdict::Ask(questions)
            }
            (ask @ Verdict::Ask(_), _) | (_, ask @ Verdict::Ask(_)) => ask,
            (Verdict::Undecided, Verdict::Undecided) => Verdict::Undecided,
            _ => Verdict::Allow,
        };
        Self { verdict, args }
    }

    /// Adds a [`Preview`] to the question of an ASK, for every surface to show beside the call. The digest of its full
    /// content is a pin of the question, unless the content changes by itself (rule S7).
    ///
    /// ```
    /// use countersign::decision::Preview;
    /// use countersign::Decision;
    /// let ask = Decision::ask("writes a file").with_key("write").with_preview(Preview::diff("a.txt", "old\n", "new\n"));
    /// assert!(ask.questions()[0].pins().contains_key("preview of a.txt"));
    /// ```
    pub fn with_preview(mut self, preview: Preview) -> Self {
        if let Verdict::Ask(questions) = &mut self.verdict
            && let Some((last, others)) = questions.split_last_mut()
        {
            others.iter_mut().for_each(|question| question.attach(preview.clone()));
            last.attach(preview);
        }
        self
    }

    /// The kind of the decision: ALLOW, ASK or DENY.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        match self.verdict {
            Verdict::Undecided | Verdict::Allow => ToolDecision::Allow,
            Verdict::Ask(_) => ToolDecision::Ask,
            Verdict::Deny(_) => ToolDecision::Deny,
        }
    }

    /// The questions of an ASK, several for an ASK of a [`Chain`](crate::middleware::Chain); empty for ALLOW and DENY.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        match &self.verdict {
            Verdict::Ask(questions) => questions,
            Verdict::Undecided | Verdict::Allow | Verdict::Deny(_) => &[],
        }
    }

    /// The denial, if the decision is a DENY.
    #[must_use]
    pub fn denied(&self) -> Option<&Denial> {
        match &self.verdict {
            Verdict::Deny(denial) => Some(denial),
            Verdict::Undecided | Verdict::Allow | Verdict::Ask(_) => None,
        }
    }

    /// The arguments that replace those of the call, if any.
    #[must_use]
    pub fn args(&self) -> Option<&Args> {
        self.args.as_ref()
    }

    /// Returns `true` if the decision replaces the arguments `seen` by different ones.
    pub(crate) fn changes(&self, seen: &Args) -> bool {
        self.args.as_ref().is_some_and(|args| !args.equal(seen))
    }

    /// Returns `true` if the decision is an ALLOW without arguments, as most decisions are.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self { verdict: Verdict::Undecided | Verdict::Allow, args: None })
    }

    /// Boxes the decision; `None` for a plain ALLOW. One pointer is cheaper to move through many layers.
    #[inline]
    pub(crate) fn unless_plain(self) -> Option<Box<Self>> {
        if self.is_plain() {
            // It owns nothing, but dropping it would be a call of the drop glue of all verdicts.
            std::mem::forget(self);
            return None;
        }
        Some(Box::new(self))
    }

    /// The reasons as one text, for logs and explanations; empty for an ALLOW.
    ///
    /// ```
    /// assert_eq!(countersign::Decision::deny("not today").reason(), "not today");
    /// ```
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.verdict {
            Verdict::Undecided | Verdict::Allow => String::new(),
            Verdict::Ask(questions) => questions
                .iter()
                .map(Question::reason)
                .filter(|reason| !reason.is_empty())
                .collect::<Vec<_>>()
                .join("; "),
            Verdict::Deny(denial) => denial.reason.clone(),
        }
    }

    /// Fills in the layer's name where it is missing, and the reason of a layer that failed without one.
    #[inline]
    pub(crate) fn named(mut self, layer: LayerName<'_>) -> Self {
        if !matches!(self.verdict, Verdict::Undecided | Verdict::Allow) {
            self.fill_in(layer);
        }
        self
    }

    fn fill_in(&mut self, layer: LayerName<'_>) {
        match &mut self.verdict {
            Verdict::Undecided | Verdict::Allow => {}
            Verdict::Ask(questions) => {
                let unnamed = questions.iter().filter(|it| it.layer().is_empty()).count();
                if unnamed > 0 {
                    // The last question takes the name itself, and most decisions have one question.
                    let names = std::iter::repeat_n(layer(), unnamed);
                    let questions = questions.iter_mut().filter(|it| it.layer().is_empty());
                    for (question, name) in questions.zip(names) {
                        question.content_mut().layer = name;
                        question.sign();
                    }
                }
            }
            Verdict::Deny(denial) => {
                if denial.layer.is_empty() {
                    denial.layer = layer();
                }
                if denial.reason.is_empty() && denial.detail.is_some() {
                    denial.reason = format!(
                        "Not executed: the layer `{}` failed to decide about this call.",
                        denial.layer
                    );
                }
            }
        }
    }
}

impl PartialEq for Decision {
    /// Same decision, reason, questions and arguments.
    fn eq(&self, other: &Self) -> bool {
        self.decision() == other.decision()
            && self.questions() == other.questions()
            && self.denied() == other.denied()
            && self.args == other.args
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(match self.decision() {
            ToolDecision::Allow => "Allow",
            ToolDecision::Ask => "Ask",
            ToolDecision::Deny => "Deny",
        });
        match &self.verdict {
            Verdict::Undecided | Verdict::Allow => {}
            Verdict::Ask(questions) => drop(out.field("questions", questions)),
            Verdict::Deny(denial) => drop(out.field("reason", &denial.reason)),
        }
        if let Some(args) = &self.args {
            out.field("args", args);
        }
        out.finish()
    }
}

/// A DENY as an error: a middleware returns it as an `Err`, or converts it into a [`Decision`].
///
/// In a middleware with fallible steps it is the error that means "no", among errors that mean "could not decide":
///
/// ```
/// use countersign::decision::{ToolBlocked, ToolDecision};
/// use countersign::{BoxError, Decision};
///
/// fn check(balance: Result<u32, BoxError>, amount: u32) -> Result<Decision, BoxError> {
///     if balance? < amount {
///         return Err(ToolBlocked::new("not enough money").into()); // the model gets this text
///     }
///     Ok(Decision::allow())
/// }
/// assert_eq!(Decision::from(check(Ok(5), 10)).reason(), "not enough money");
/// assert_eq!(Decision::from(check(Err("no connection".into()), 10)).reason(), "", "the model gets the layer's name only");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ToolBlocked {
    reason: String,
}

impl ToolBlocked {
    /// Creates a denial; the model gets `reason` verbatim.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
