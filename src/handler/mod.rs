//! Handlers, which answer the deferred calls of a response inline: by a rule, or on a surface (where a person decides:
//! a terminal, an inbox, a chat).
//!
//! | handler | does |
//! |---|---|
//! | [`handler_fn`], [`handler_fn_sync`] | closures over the whole batch |
//! | [`permission_handler`] | an async closure `(cx, call, reason) -> bool`, asked call by call |
//! | [`HandlerChain`] | several in sequence, each asked about the calls that the ones before it have left |
//! | [`DenyAll`] | denies everything |
//! | [`FailClosed`] | denies the calls that its inner handler leaves or forgets, and all calls if that handler fails |
//! | [`channel`] | sends batches to another task, for editors, bots and web pages |
//! | [`danger_approve_all`] | approves every call that is not blocked |
//!
//! The ready-made handlers deny [blocked](crate::DeferredToolRequests::is_blocked) calls without asking.
//!
//! ```
//! use countersign::handler::{HandlerChain, handler_fn_sync};
//! use countersign::{DeferredToolRequests, RunContext};
//!
//! // A rule first, and then the handler of the rest.
//! let reads = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
//!     requests.answer().approve_tool("read_file").leave_rest().answered_by("policy").build()
//! });
//! let handler = HandlerChain::new().with(reads).with(countersign::handler::DenyAll::new("not now"));
//! # let _ = handler;
//! ```
//!
//! # What a handler is not
//!
//! - **It is no policy.** A layer decides, with ALLOW, ASK and DENY; a handler answers the calls that some layer asks
//!   about. An approval answers the questions that were shown, and no layer's DENY (rule D1).
//! - **It is not asked twice.** A call that is asked about again after its approval goes back to the caller, so that a
//!   rule that approves everything cannot loop with a layer that changes its mind (rule T4).
//! - **It measures nothing.** No timeout, limit or retry of the stack runs while it waits: the calls are not in the
//!   stack then.

mod chain;
mod channel;
mod closure;
mod ready_made;
mod stopped;

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;

pub use chain::HandlerChain;
pub use channel::{Batch, ChannelHandler, channel};
pub use closure::{
    HandlerFn, HandlerFnSync, PermissionHandler, handler_fn, handler_fn_sync, permission_handler,
};
pub use ready_made::{ApproveAll, DenyAll, FailClosed, danger_approve_all};
pub use stopped::Stopped;

use crate::call::RunContext;
use crate::decision::Question;
pub(crate) use crate::deferred::POLICY;
use crate::deferred::{Answers, DeferredToolRequests, DeferredToolResults};
use crate::error::BoxError;
use crate::panic::catch;
use crate::telemetry::last_name;

/// Answers the deferred calls of one response.
///
/// A handler is asked once per response, about every pending call, before any of them is executed (rule T2). It answers
/// each call or leaves it explicitly; anything else is a [`AnswerError`](crate::AnswerError), and no deferred call has been
/// executed (rule A4). An error or a panic ends the run, and the error carries the state so far. A handler returns
/// [`Stopped`] when a person stops the run.
///
/// ```
/// use countersign::{BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults, RunContext};
///
/// struct ReadsOnly;
///
/// impl DeferredToolHandler for ReadsOnly {
///     async fn handle(&self, _cx: &RunContext, requests: &DeferredToolRequests) -> Result<DeferredToolResults, BoxError> {
///         Ok(requests.answer().approve_tool("read_file").deny_rest("reads only").answered_by("policy").build()?)
///     }
/// }
/// ```
///
/// # Errors
///
/// | a handler returns | the calls | the run |
/// |---|---|---|
/// | answers for every call, or leaves | run, are denied, or stay pending | continues, or is suspended |
/// | answers that do not fit | none has run | ends with [`Error::Answers`](crate::Error::Answers) |
/// | [`Stopped`] | none has run | ends with [`Error::Stopped`](crate::Error::Stopped) (rule S8) |
/// | any other error, or panics | none has run | ends with [`Error::Handler`](crate::Error::Handler) |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no deferred tool handler",
    note = "implement `DeferredToolHandler`, or wrap a closure in `handler_fn` (async) or `handler_fn_sync`"
)]
pub trait DeferredToolHandler: Send + Sync + 'static {
    /// The name in errors and logs; by default the name of the type.
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(last_name(std::any::type_name::<Self>()))
    }

    /// Says whether the answers of this handler come from a ledger, which counts who has approved a call that several or certain
    /// people have to approve ([`Decision::with_people`](crate::Decision::with_people)); by default `false`.
    ///
    /// A turn without a ledger offers such calls only to a handler that returns `true`. To any other handler they are not
    /// offered, and stay pending, as one answer is the answer of one person (rule R9).
    fn counts_people(&self) -> bool {
        false
    }

    /// Answers every call of the batch, or leaves it explicitly.
    fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> impl Future<Output = Result<DeferredToolResults, BoxError>> + Send;
}

/// The object-safe form of [`DeferredToolHandler`].
pub(crate) trait ErasedHandler: Send + Sync {
    fn name(&self) -> Cow<'static, str>;
    fn counts_people(&self) -> bool;
    fn handle<'a>(
        &'a self,
        cx: &'a RunContext,
        requests: &'a DeferredToolRequests,
    ) -> BoxFuture<'a, Result<DeferredToolResults, BoxError>>;
}

impl<H: DeferredToolHandler> ErasedHandler for H {
    fn name(&self) -> Cow<'static, str> {
        name_of(self)
    }

    fn counts_people(&self) -> bool {
        DeferredToolHandler::counts_people(self)
    }

    fn handle<'a>(
        &'a self,
        cx: &'a RunContext,
        requests: &'a DeferredToolRequests,
    ) -> BoxFuture<'a, Result<DeferredToolResults, BoxError>> {
        Box::pin(DeferredToolHandler::handle(self, cx, requests))
    }
}

/// The reason why a call is asked about: the reasons of its questions, as one text.
fn reasons(requests: &DeferredToolRequests, id: &str) -> String {
    let reasons = requests.questions(id).iter().map(Question::reason);
    reasons.filter(|reason| !reason.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The name of a handler for errors and logs. A name is no reason to lose the answers of the handler, nor the record of
/// the calls that ran: where making it panics, the handler has the name of its type.
fn name_of<H: DeferredToolHandler>(handler: &H) -> Cow<'static, str> {
    catch(|| handler.name()).unwrap_or(Cow::Borrowed(std::any::type_name::<H>()))
}

impl<H: DeferredToolHandler> DeferredToolHandler for Arc<H> {
    fn name(&self) -> Cow<'static, str> {
        DeferredToolHandler::name(&**self)
    }

    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        DeferredToolHandler::handle(&**self, cx, requests).await
    }
}

/// Returns `true` if this is the name of a policy and no person: `policy`, `policy: …`
/// ([`answered_by_policy`](Answers::answered_by_policy)), or the name of [`DenyAll`] or [`FailClosed`]. Denials by a
/// policy do not count as a person's (rule D11).
///
/// We go by the name and not by a type, as answers are stored and sent as text, and a rule of another service has only
/// a name to give. If a person has the name `policy`, we take them for a rule, which errs on the side of asking again.
///
/// ```
/// use countersign::handler::is_policy;
/// assert!(is_policy("policy: no writes at night") && is_policy("deny all"));
/// assert!(!is_policy("ann") && !is_policy("policyholder"));
/// ```
#[must_use]
pub fn is_policy(by: &str) -> bool {
    let named = by.strip_prefix(POLICY).is_some_and(|it| it.is_empty() || it.starts_with(':'));
    named || by == ready_made::DENY_ALL || by == ready_made::FAIL_CLOSED
}

/// Starts the answers with denials of all blocked calls, as every ready-made handler does (rule A5), for a handler that
/// asks a person about the others only.
///
/// ```
/// use countersign::handler::deny_blocked;
/// use countersign::{BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults, RunContext};
///
/// struct Careful;
///
/// impl DeferredToolHandler for Careful {
///     async fn handle(&self, _cx: &RunContext, requests: &DeferredToolRequests) -> Result<DeferredToolResults, BoxError> {
///         Ok(deny_blocked(requests).leave_rest().build()?)
///     }
/// }
/// ```
pub fn deny_blocked(requests: &DeferredToolRequests) -> Answers<'_> {
    let mut answers = requests.answer();
    for call in &requests.approvals {
        if requests.is_blocked(call.id()) {
            let questions = requests.questions(call.id());
            let reason = questions.iter().map(Question::reason).find(|reason| !reason.is_empty());
            let message = reason.map_or("Blocked by policy.".to_owned(), |reason| {
                format!("Blocked by policy: {reason}")
            });
            answers = answers.deny(call.id(), message);
        }
    }
    answers.answered_by(POLICY)
}
