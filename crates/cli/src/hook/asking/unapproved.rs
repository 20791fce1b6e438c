//! Calls that ran although no one had approved them, as the client's report of their end shows (rule P4).
//!
//! A client may run a call without the hook's answer: at its own time limit, when the shell around the hook is killed,
//! or when the hook is switched off for a moment. And another hook of the client may change a call after this one has
//! allowed it. We cannot prevent any of that. But the report of the call's end shows it:
//!
//! | the call has | means |
//! |---|---|
//! | a note that it was [allowed](super::allowed) as it ran | it was allowed |
//! | a claim | it was approved, and [ends](super::ending) with this report |
//! | an ask that is open | it ran without the approval that it waited for |
//! | none of these, and rules that allow it as it ran | it was allowed |
//! | none of these | it was never allowed: it was changed, or the hook was not asked |
//!
//! We record such a call as a closed ask that says so. The next equal call is asked about anew.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::allowed::AllowedCalls;
use super::asked::{about, is_open, last, with_origin};
use super::key::{self, CallKey, HOOK};
use super::reasons::{is_of_previews, reasons};
use crate::hook::judging::environment::Environment;
use crate::hook::judging::stack::{CallStack, ID, StackRuling, SuspendedCount};
use crate::hook::judging::vocabulary::{self, Normal, ToolNames};
use crate::hook::payload::{Ending, HookCall};
use countersign::decision::Question;
use countersign::error::with_causes;
use countersign::ledger::{Ask, AskRecord, Ledger, LedgerError};
use countersign::show;
use countersign::tools::Tools;

/// The number of attempts to take the next number, where other calls take numbers at the same time.
const MAX_TRIES: u64 = 8;

/// The parts of a hook that we need to look at a report.
pub(crate) struct Reporting<'a> {
    pub(crate) stack: Option<&'a Arc<dyn Fn(Tools) -> Tools + Send + Sync>>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) allowed: Option<&'a AllowedCalls>,
    pub(crate) environment: &'a Environment,
    pub(crate) home: Option<&'a Path>,
    pub(crate) names: &'a ToolNames,
    pub(crate) doubts: &'a [(&'static str, String)],
}

/// A call that has ended, and that the hook has neither allowed nor seen approved.
pub(crate) struct EndedCall<'a> {
    pub(crate) hook: &'a Reporting<'a>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) call: &'a HookCall,
    pub(crate) how: Ending,
    /// The asks of its session, newest first.
    pub(crate) asks: &'a [AskRecord],
}

/// The reason why a call should not have run: the questions that were open, or the reason of a denial.
struct Unallowed {
    questions: Vec<Question>,
    reason: String,
}

impl EndedCall<'_> {
    /// Records that the call ran unapproved, unless the rules allow it as it ran. The error is what a person is told.
    pub(crate) async fn look(&self) -> Result<(), String> {
        let mut normal = vocabulary::normal(self.call, self.hook.names);
        normal.doubts.extend(self.hook.doubts.iter().cloned());
        let same_id = |record: &&AskRecord| {
            let id = about(record).and_then(|it| it.get("call")?.as_str());
            self.call.id.is_some() && id == self.call.id.as_deref()
        };
        // Oldest first: calls end in their order.
        let open = || self.asks.iter().rev().filter(|it| is_open(it));
        if let Some(asked) = open().find(same_id) {
            return self.waiting(asked, &normal).await;
        }
        let run = key::new_run();
        let (outer, environment) = (self.hook.stack, self.hook.environment);
        let (call, home) = (self.call, self.hook.home);
        let stack = CallStack { outer, call, normal: &normal, environment, home, run: &run };
        let Some(why) = unallowed(stack).await else { return Ok(()) };
        let equal = |record: &&AskRecord| self.is_equal(record, &normal);
        let here = |record: &&AskRecord| {
            let directory = about(record).and_then(|it| it.get("directory")?.as_str());
            directory == self.call.directory.to_str()
        };
        let asked = open().filter(equal).find(here).or_else(|| open().find(equal));
        match asked {
            Some(asked) => self.waiting(asked, &normal).await,
            None => self.never_asked(stack, &why).await,
        }
    }

    /// Returns `true` if an ask is about a call with the same arguments, of the same agent.
    fn is_equal(&self, record: &AskRecord, normal: &Normal) -> bool {
        let agent = about(record).and_then(|it| it.get("agent")?.as_str());
        agent == self.call.agent.as_deref()
            && record.ask.tool() == normal.shown()
            && normal.compared(record.ask.args()) == normal.compared(&normal.args)
    }

    /// Closes an ask whose call did not wait for its answer.
    async fn waiting(&self, asked: &AskRecord, normal: &Normal) -> Result<(), String> {
        let as_asked = self.is_equal(asked, normal);
        let mut about = json!({"ended": self.how.as_str(), "as_asked": as_asked});
        if !as_asked && let Some(about) = about.as_object_mut() {
            about.insert("args".to_owned(), normal.args.to_value());
        }
        let id = asked.ask.id();
        let closed = self.close(asked.ask.clone(), about).await.map_err(|it| self.lost(&it))?;
        if !closed {
            return Err(format!(
                "{} ran while {id} was decided: it is not known which was first",
                self.named()
            ));
        }
        let changed = if as_asked { "" } else { " and with other arguments than were asked about" };
        Err(format!(
            "{} ran although no one had approved it{changed}: its ask {id} is closed now. Look at the time limit of the \
             hook: `countersign hook doctor {}`",
            self.named(),
            self.call.client
        ))
    }

    /// Records a call that is not asked about, and that the rules do not allow.
    async fn never_asked(&self, stack: CallStack<'_>, why: &Unallowed) -> Result<(), String> {
        let (normal, args) = (stack.normal, &stack.normal.args);
        let key = CallKey::new(self.call, normal, args, &why.questions, self.hook.principal);
        let tool = normal.shown();
        let number = last(self.ledger, &key, &tool).await.map_err(|it| self.lost(&it))?;
        let about = json!({"ended": self.how.as_str(), "as_asked": false, "reason": why.reason});
        for n in number + 1..=number + MAX_TRIES {
            let asked = with_origin(why.questions.clone(), &stack, args);
            let ask = key.ask(n, &tool).with_args(args.clone()).with_questions(asked);
            let ask = self.hook.principal.iter().fold(ask, |ask, name| ask.with_principal(*name));
            let id = ask.id().to_owned();
            if self.close(ask, about.clone()).await.map_err(|it| self.lost(&it))? {
                return Err(format!(
                    "{} ran although it was not allowed, and no one had approved it ({}): another hook of {} may have \
                     changed the call. `countersign asks show {id}` has what ran",
                    self.named(),
                    show::escape(&why.reason),
                    self.call.client
                ));
            }
        }
        Err(format!(
            "{} ran although it was not allowed, which could not be recorded",
            self.named()
        ))
    }

    async fn close(&self, ask: Ask, about: Value) -> Result<bool, LedgerError> {
        Ok(self.ledger.ran_unapproved(ask, HOOK, about).await?.is_some())
    }

    fn named(&self) -> String {
        format!("`{}` of {}", self.call.tool.escape_debug(), self.call.client)
    }

    fn lost(&self, error: &LedgerError) -> String {
        format!(
            "{} ran although no one had approved it, which could not be recorded: {}",
            self.named(),
            with_causes(error)
        )
    }
}

/// The reason why the layers do not let a call run as it ran; `None` where they do. They do not count the call
/// for this.
async fn unallowed(stack: CallStack<'_>) -> Option<Unallowed> {
    let uncounted = SuspendedCount::default();
    let (questions, reason) = match stack.decide(Some(&uncounted)).await {
        Ok(StackRuling::Allow(args))
            if matches!(stack.normal.restore(stack.call, &args), Ok(None)) =>
        {
            return None;
        }
        Ok(StackRuling::Allow(_)) => {
            (Vec::new(), "it may run with other arguments only".to_owned())
        }
        Ok(StackRuling::Ask(pending)) => {
            // The call has ended: what it would do now is not what it has done.
            let mut questions = pending.requests().questions(ID).to_vec();
            questions.retain(|question| !is_of_previews(question));
            let reasons = reasons(&questions);
            (questions, reasons)
        }
        Err(denial) => (Vec::new(), denial),
    };
    let questions = match questions.is_empty() {
        true => denied(&reason).into_iter().collect(),
        false => questions,
    };
    Some(Unallowed { questions, reason })
}

/// A denial as a question: an ask has at least one, and people see its reason.
fn denied(reason: &str) -> Option<Question> {
    serde_json::from_value(json!({"layer": "hook", "key": "not allowed", "reason": reason})).ok()
}
