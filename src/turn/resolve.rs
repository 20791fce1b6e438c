//! Working through the calls of a response: asking, checking the answers, and applying them.

use serde_json::{Map, Value};

use crate::args::Args;
use crate::call::{Approval, Execution, ToolCall, ToolDefinition};
use crate::caught::{Caught, caught};
use crate::deferred::{
    DeferredToolRequests, DeferredToolResults, Pending, ToolApproval, batch_id, check,
};
use crate::error::{ErrorKind, UserError};
use crate::outcome::{Outcome, ToolDenied};

use super::event::RunEvent;
use super::report::{Answered, TurnError, TurnReport};
use super::slot::{INTERNAL_ERROR, Plan, Slot, State, Waiting};
use super::suspended::SuspendedTurn;
use super::together::Together;
use super::{Turn, user};

/// A response that is being worked on.
pub(super) struct Resolving<'a> {
    turn: &'a Turn,
    together: Together<'a>,
    slots: Vec<Slot>,
}

impl<'a> Resolving<'a> {
    /// Walks the calls of a fresh response: ordinary ones run, deferred ones are known afterwards (rule T1).
    pub(super) async fn start(
        turn: &'a Turn,
        calls: Vec<ToolCall>,
        shown: Option<Vec<ToolDefinition>>,
    ) -> Result<Self, TurnError> {
        let slots = calls.into_iter().map(|call| {
            let plan = Plan { origin: call.args().clone(), approval: None, deferrals: 0 };
            Slot::new(call, State::Planned(plan))
        });
        let together = Together::new(turn, shown).await.map_err(TurnError::before)?;
        let mut this = Self { turn, together, slots: slots.collect() };
        this.together.refuse_unfit(&mut this.slots);
        this.tell_calls();
        // A model that has spent its retries gets nothing of this response run.
        let retries = turn.retries.as_ref();
        if let Some(kind) =
            retries.and_then(|it| it.exceeded(&this.slots, this.together.max_retries()))
        {
            return Err(TurnError::before(kind));
        }
        this.together.walk(&mut this.slots).await;
        this.fail_if_broken()
    }

    /// Takes up a response where it was left.
    pub(super) async fn from_suspended(
        turn: &'a Turn,
        suspended: SuspendedTurn,
    ) -> Result<Self, TurnError> {
        match Together::new(turn, None).await {
            Ok(together) => Ok(Self { turn, together, slots: suspended.slots() }),
            Err(kind) => Err(TurnError::with_state(kind, suspended)),
        }
    }

    /// Asks the handler, once, about everything that waits (rule T2).
    pub(super) async fn answer(self) -> Result<TurnReport, TurnError> {
        let requests = self.requests();
        if requests.is_empty() {
            return Ok(self.finish());
        }
        let watchers = &self.turn.watchers;
        watchers.tell(|| RunEvent::DeferredToolRequests { requests: requests.clone() });
        let Some(handler) = self.turn.handler.as_ref() else {
            return Ok(self.finish());
        };
        let (name, cx) = (handler.name(), self.turn.context());
        let answers = match caught(|| handler.handle(&cx, &requests)).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(error)) => {
                let kind = match error.downcast() {
                    Ok(error) => user(*error),
                    Err(source) => ErrorKind::Handler { name: name.into_owned(), source },
                };
                return Err(self.fail(kind));
            }
            Err(Caught(what)) => {
                return Err(
                    self.fail(ErrorKind::Handler { name: name.into_owned(), source: what.into() })
                );
            }
        };
        watchers.tell(|| RunEvent::DeferredToolResults { results: answers.clone() });
        self.apply(answers, false).await
    }

    /// Checks the answers as a whole, then applies them (rule A4). On a resume the answered calls are taken up anew.
    pub(super) async fn apply(
        mut self,
        mut answers: DeferredToolResults,
        resumed: bool,
    ) -> Result<TurnReport, TurnError> {
        let requests = self.requests();
        if requests.is_empty() && answers.is_empty() {
            return Ok(self.finish());
        }
        let checked = check(&requests, &answers, self.turn.require_bound)
            .and_then(|()| self.check_overrides(&answers));
        if let Err(error) = checked {
            return Err(self.fail(user(error)));
        }
        let watchers = &self.turn.watchers;
        for slot in &mut self.slots {
            if take_answer(slot, &mut answers) {
                if resumed {
                    let approved = matches!(slot.state, State::Planned(_));
                    slot.tell_call(watchers, approved.then_some(true));
                }
                slot.tell_result(watchers);
            }
        }
        self.together.refuse_unfit(&mut self.slots);
        self.together.walk(&mut self.slots).await;
        Ok(self.fail_if_broken()?.finish())
    }

    /// Edited arguments are validated before anything executes (rule A2).
    fn check_overrides(&self, answers: &DeferredToolResults) -> Result<(), UserError> {
        let (mut ids, mut problems) = (Vec::new(), Vec::new());
        for slot in &self.slots {
            let Some(ToolApproval::Approved(approved)) = answers.approvals.get(slot.call.id())
            else {
                continue;
            };
            let Some(args) = &approved.override_args else { continue };
            if let Err(problem) = self.together.validate(slot.call.name(), args) {
                ids.push(slot.call.id().to_owned());
                problems.push(format!("tool `{}`: {problem}", slot.call.name().escape_debug()));
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        Err(UserError::InvalidOverride { ids, problem: problems.join("; ") })
    }

    /// Tells whoever watches of the calls of a new response.
    fn tell_calls(&self) {
        for slot in self.slots.iter().filter(|_| self.turn.watchers.are_there()) {
            let fits = matches!(slot.state, State::Planned(_));
            let looked = !fits || !self.together.is_external(slot);
            slot.tell_call(&self.turn.watchers, looked.then_some(fits));
        }
        self.slots.iter().for_each(|slot| slot.tell_result(&self.turn.watchers));
    }

    /// The batch of what waits.
    fn requests(&self) -> DeferredToolRequests {
        requests(&self.turn.info.run_id, self.turn.info.response, &self.slots)
    }

    /// A fatal error of a call, or one failure too many: its siblings are done, the handler is not asked, and the
    /// response ends (rule T8).
    fn fail_if_broken(mut self) -> Result<Self, TurnError> {
        let Some(index) = self.slots.iter().position(|slot| matches!(slot.state, State::Broken(_)))
        else {
            let retries = self.turn.retries.as_ref();
            let own = self.together.max_retries();
            return match retries.and_then(|it| it.exceeded(&self.slots, own)) {
                Some(kind) => Err(self.fail(kind)),
                None => Ok(self),
            };
        };
        let mut first = None;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let ended = State::Settled(match slot.execution {
                Execution::NotStarted => {
                    Outcome::failed("The tool did not run: an error stopped it.")
                }
                _ => Outcome::failed(INTERNAL_ERROR),
            });
            if let State::Broken(_) = slot.state
                && let State::Broken(error) = std::mem::replace(&mut slot.state, ended)
                && at == index
            {
                first = Some(match error.downcast::<UserError>() {
                    Ok(error) => user(*error),
                    Err(source) => {
                        let (id, tool) = (slot.call.id().to_owned(), slot.call.name().to_owned());
                        ErrorKind::Tool { id, tool, source }
                    }
                });
            }
        }
        match first {
            Some(kind) => Err(self.fail(kind)),
            None => Ok(self),
        }
    }

    fn fail(self, kind: ErrorKind) -> TurnError {
        let suspended = SuspendedTurn::new(&self.turn.info, &self.slots);
        TurnError::after(kind, suspended, self.finish())
    }

    fn finish(self) -> TurnReport {
        let suspended = self.slots.iter().any(|slot| slot.waiting().is_some());
        let suspended = suspended.then(|| SuspendedTurn::new(&self.turn.info, &self.slots));
        TurnReport::new(self.slots, suspended)
    }
}

/// The batch of what waits among these calls.
pub(super) fn requests(run_id: &str, response: u32, slots: &[Slot]) -> DeferredToolRequests {
    let waiting = || slots.iter().filter_map(|slot| Some((&slot.call, slot.waiting()?)));
    let ids = waiting().map(|(call, it)| (call.id(), it.fingerprint.as_str(), it.deferrals));
    let batch = batch_id(run_id, response, ids);
    let pending = waiting().map(|(call, it)| Pending {
        call: call.clone().with_args(it.shown.clone()),
        deferral: &it.deferral,
        fingerprint: &it.fingerprint,
    });
    DeferredToolRequests::of(batch, pending)
}

/// Settles a call that is answered without running, or plans its walk when it is approved. Says whether it was
/// answered.
fn take_answer(slot: &mut Slot, answers: &mut DeferredToolResults) -> bool {
    let Some(waiting) = slot.waiting().cloned() else { return false };
    let id = slot.call.id();
    let by = answers.answered_by.remove(id);
    let (state, answered) = match (answers.approvals.remove(id), answers.calls.remove(id)) {
        (Some(ToolApproval::Denied(ToolDenied { message })), _) => {
            (State::Settled(Outcome::denied(message)), Answered::Denied { by })
        }
        (Some(ToolApproval::Approved(approved)), _) => {
            let edited = approved.override_args.is_some();
            let metadata = answers.metadata.remove(id);
            (
                State::Planned(approved_walk(waiting, approved.override_args, metadata)),
                Answered::Approved { by, edited },
            )
        }
        (None, Some(result)) => (State::Settled(result.into()), Answered::Result { by }),
        (None, None) => return false,
    };
    answered.report(id, slot.call.name());
    slot.state = state;
    slot.answered = Some(answered);
    true
}

/// The walk after an approval: from where the asking one began, or from the edited arguments, for exactly what was
/// shown (rules A1, A2).
fn approved_walk(
    waiting: Waiting,
    edited: Option<Args>,
    metadata: Option<Map<String, Value>>,
) -> Plan {
    let origin = edited.clone().unwrap_or(waiting.origin);
    let approval = Approval {
        tool: waiting.tool,
        args: edited.unwrap_or(waiting.shown),
        questions: waiting.deferral.questions,
        metadata,
    };
    Plan { origin, approval: Some(approval), deferrals: waiting.deferrals }
}
