//! A check that a middleware may change arguments under rule D3.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use crate::args::Args;
use crate::call::{RunContext, ToolCall};
use crate::decision::{Decision, Question, ToolDecision};
use crate::middleware::ToolMiddleware;

/// Checks that a middleware decides the same way about the same call, and leaves its own result alone: f(f(x)) = f(x).
///
/// The stack relies on both (rule D3): when an inner layer changes arguments that other layers have decided on, all of
/// them decide again on the changed arguments, and a call whose arguments change again is denied. Test with calls that
/// the middleware changes and with calls that it does not change.
///
/// `RunContext::default()` is a context outside any run; add the dependencies that the middleware reads with
/// [`with_deps`](RunContext::with_deps).
///
/// # Errors
/// Says what differs, with the arguments before and after.
///
/// ```
/// use countersign::testing::rewrites_once;
/// use countersign::{Args, Decision, RunContext, ToolCall, decide_fn};
/// use serde_json::json;
///
/// fn moved(args: &Args, root: &str) -> Args {
///     args.clone().with("path", format!("{root}/{}", args.str("path").unwrap_or_default()))
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let call = ToolCall::new("c1", "read_file", json!({"path": "a.log"}));
/// let nests = decide_fn(|_, call: &ToolCall| moved(call.args(), "sandbox"));
/// let text = rewrites_once(&nests, &RunContext::default(), &call).await.unwrap_err();
/// assert!(text.contains(r#"{"path":"sandbox/sandbox/a.log"}"#));
///
/// let settles = decide_fn(|_, call: &ToolCall| match call.args()["path"].as_str() {
///     Some(path) if path.starts_with("sandbox/") => Decision::allow(),
///     _ => Decision::from(moved(call.args(), "sandbox")),
/// });
/// assert_eq!(rewrites_once(&settles, &RunContext::default(), &call).await, Ok(()));
/// # });
/// ```
pub async fn rewrites_once<M: ToolMiddleware>(
    middleware: &M,
    cx: &RunContext,
    call: &ToolCall,
) -> Result<(), String> {
    let name = middleware.name();
    let first = decide(middleware, cx, call).await?;
    let second = decide(middleware, cx, call).await?;
    if !same(&first, &second, call.args()) {
        let (first, second) = (shown(&first, call.args()), shown(&second, call.args()));
        return Err(format!(
            "`{name}` is not deterministic: for {} it says {first}, and then {second}",
            call.args()
        ));
    }
    if first.decision() == ToolDecision::Deny {
        return Ok(());
    }
    let left = after(&first, call.args());
    let again = decide(middleware, cx, &call.clone().with_args(left.clone())).await?;
    if again.decision() == ToolDecision::Deny {
        return Err(format!("`{name}` makes {left} of {}, and then denies it", call.args()));
    }
    let twice = after(&again, &left);
    if !twice.equal(&left) {
        return Err(format!(
            "`{name}` changes its own result: {} becomes {left}, and then {twice}",
            call.args()
        ));
    }
    Ok(())
}

async fn decide<M: ToolMiddleware>(
    middleware: &M,
    cx: &RunContext,
    call: &ToolCall,
) -> Result<Decision, String> {
    // Within a block, so that a panic while the future is made is caught as well.
    let decided = AssertUnwindSafe(async { middleware.before_tool_call(cx, call).await });
    let panicked = |_| format!("`{}` panicked for {}", middleware.name(), call.args());
    decided.catch_unwind().await.map_err(panicked)
}

/// The arguments after a decision: the changed ones, if it changed them.
fn after(decision: &Decision, before: &Args) -> Args {
    decision.args().unwrap_or(before).clone()
}

/// Returns `true` if decision, questions and arguments are equal. Questions are compared by their ids, so that a
/// reason may be worded differently under the same key (rule A1).
fn same(one: &Decision, other: &Decision, before: &Args) -> bool {
    let (first, second) = (one.questions().iter(), other.questions().iter());
    one.decision() == other.decision()
        && first.map(Question::id).eq(second.map(Question::id))
        && after(one, before).equal(&after(other, before))
}

fn shown(decision: &Decision, before: &Args) -> String {
    match decision.decision() {
        ToolDecision::Allow => format!("ALLOW with {}", after(decision, before)),
        ToolDecision::Ask => {
            format!("ASK ({}) with {}", decision.reason(), after(decision, before))
        }
        ToolDecision::Deny => format!("DENY ({})", decision.reason()),
    }
}
