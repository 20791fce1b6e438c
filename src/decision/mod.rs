//! What a middleware says about a call: ALLOW, ASK or DENY, with changed arguments if need be.

mod conversion;
mod question;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::args::{Args, IntoArgs};
pub use conversion::IntoDecision;
pub use question::{Question, QuestionId};

/// The three answers, from the mildest to the strictest: of several, the greatest wins (rule D1).
///
/// Exhaustive on purpose: whoever matches on it should notice a fourth answer.
///
/// ```
/// use countersign::ToolDecision::{Allow, Ask, Deny};
/// assert_eq!([Ask, Deny, Allow].into_iter().max(), Some(Deny));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolDecision {
    /// Nothing against it: the call goes on inward. An ALLOW never switches another layer off.
    Allow,
    /// Somebody has to approve first. The call still goes on inward, but the gate will not execute it.
    Ask,
    /// The call stops here and runs nothing inside; the model is told the reason.
    Deny,
}

/// What a middleware decided about a call: the decision, its reason, and the arguments to go on with.
///
/// ```
/// use countersign::{Args, Decision, ToolBlocked, ToolDecision};
///
/// let ask = Decision::ask("delete a.log?").key("delete");
/// assert_eq!(ask.decision(), ToolDecision::Ask);
///
/// // Arguments alone mean ALLOW with those arguments, a `ToolBlocked` means DENY.
/// assert_eq!(Decision::from(Args::new().with("audit", true)).decision(), ToolDecision::Allow);
/// assert_eq!(Decision::from(ToolBlocked::new("not on fridays")), Decision::deny("not on fridays"));
/// ```
///
/// There is no default: what decides says so.
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
    /// An ALLOW that no middleware decided on: a hook that was left out, a call of another tool, plain arguments. Only
    /// `danger_first_decision_wins` tells it from an ALLOW.
    Undecided,
    Allow,
    Ask(Vec<Question>),
    /// Boxed, as decisions are passed around much more often than they deny.
    Deny(Box<Denial>),
}

/// Why a call was denied, and by which layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The layer; empty until the layer that carries the middleware has put its name there.
    pub(crate) layer: Cow<'static, str>,
    /// For the model, verbatim.
    pub(crate) reason: String,
    /// For the host, when the layer failed rather than decided.
    pub(crate) detail: Option<String>,
}

impl Denial {
    /// The layer that denied.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// What the model is told, verbatim (rule D2).
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What went wrong inside the layer, for the host, when it denied because it failed (rule D4).
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl Decision {
    /// The call may go on.
    pub const fn allow() -> Self {
        Self { verdict: Verdict::Allow, args: None }
    }

    /// An ALLOW of a middleware that has not decided about the call.
    pub(crate) const fn undecided() -> Self {
        Self { verdict: Verdict::Undecided, args: None }
    }

    /// Somebody has to approve the call. The approver sees `reason`, the final arguments, and who asks.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ask(vec![Question::new(reason)]), args: None }
    }

    /// The call is not executed; the model is told `reason` verbatim. An empty reason means the default text.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::denial(reason.into(), None)
    }

    /// A denial because the layer failed: the model learns which layer, the host learns `detail` (rule D4).
    pub(crate) fn failed(detail: impl fmt::Display) -> Self {
        Self::denial(String::new(), Some(detail.to_string()))
    }

    fn denial(reason: String, detail: Option<String>) -> Self {
        Self {
            verdict: Verdict::Deny(Box::new(Denial { layer: Cow::Borrowed(""), reason, detail })),
            args: None,
        }
    }

    /// Goes on with these arguments. With an ASK they are what the approver sees and what runs; with a DENY they have
    /// no effect.
    ///
    /// A middleware that changes arguments must be deterministic and leave its own result alone (rule D3);
    /// [`testing::rewrites_once`](crate::testing::rewrites_once) checks that.
    pub fn with_args(mut self, args: impl IntoArgs) -> Self {
        self.args = Some(args.into_args());
        self
    }

    /// Gives the question of an ASK a stable name, so that an approval still covers it when the text of the reason
    /// changes ("balance is 102.3"). Without one, the reason is the key (rule A1).
    pub fn key(mut self, key: impl Into<String>) -> Self {
        if let Verdict::Ask(questions) = &mut self.verdict {
            let key = key.into();
            questions.iter_mut().for_each(|question| question.key.clone_from(&key));
        }
        self
    }

    /// Adds a value to the request's metadata, for handlers and pages ([`metadata`](crate::metadata) has the keys
    /// that have a meaning). It does not reach the tool (rule A5). Only an ASK carries metadata.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        if let Verdict::Ask(questions) = &mut self.verdict {
            let (key, value) = (key.into(), value.into());
            for question in questions {
                question.metadata.insert(key.clone(), value.clone());
            }
        }
        self
    }

    /// Pins the question of an ASK to the content of something it is about, for example a file: when the digest is
    /// another on the approved pass, that is a new question (rule A1).
    pub fn pin(mut self, what: impl Into<String>, digest: impl Into<String>) -> Self {
        if let Verdict::Ask(questions) = &mut self.verdict {
            let (what, digest) = (what.into(), digest.into());
            for question in questions {
                question.pins.insert(what.clone(), digest.clone());
            }
        }
        self
    }

    /// Which of the three it is.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        match self.verdict {
            Verdict::Undecided | Verdict::Allow => ToolDecision::Allow,
            Verdict::Ask(_) => ToolDecision::Ask,
            Verdict::Deny(_) => ToolDecision::Deny,
        }
    }

    /// The questions of an ASK; several when a chain put them together.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        match &self.verdict {
            Verdict::Ask(questions) => questions,
            Verdict::Undecided | Verdict::Allow | Verdict::Deny(_) => &[],
        }
    }

    /// The denial, if it is one.
    #[must_use]
    pub fn denied(&self) -> Option<&Denial> {
        match &self.verdict {
            Verdict::Deny(denial) => Some(denial),
            Verdict::Undecided | Verdict::Allow | Verdict::Ask(_) => None,
        }
    }

    /// The changed arguments, if there are any.
    #[must_use]
    pub fn args(&self) -> Option<&Args> {
        self.args.as_ref()
    }

    /// Whether the call goes on with other arguments than these.
    pub(crate) fn changes(&self, seen: &Args) -> bool {
        self.args.as_ref().is_some_and(|args| !args.equal(seen))
    }

    /// Whether it is an ALLOW that says nothing about the arguments, as most decisions are.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self { verdict: Verdict::Undecided | Verdict::Allow, args: None })
    }

    /// The decision, or `None` for a plain ALLOW: a small value where many decisions are handed on.
    #[inline]
    pub(crate) fn unless_plain(self) -> Option<Box<Self>> {
        if self.is_plain() { None } else { Some(Box::new(self)) }
    }

    /// The reasons, for logs and explanations.
    pub(crate) fn reason(&self) -> String {
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

    /// Puts the layer's name where none is yet, and its words where the layer had none.
    pub(crate) fn named(mut self, layer: impl FnOnce() -> Cow<'static, str>) -> Self {
        match &mut self.verdict {
            Verdict::Undecided | Verdict::Allow => {}
            Verdict::Ask(questions) => {
                if questions.iter().any(|question| question.layer.is_empty()) {
                    let layer = layer();
                    for question in
                        questions.iter_mut().filter(|question| question.layer.is_empty())
                    {
                        question.layer = layer.to_string();
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
        self
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

/// Blocks a call: what a middleware returns as an error, or converts into a DENY.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ToolBlocked {
    reason: String,
}

impl ToolBlocked {
    /// Blocks with a reason that the model is told verbatim.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
