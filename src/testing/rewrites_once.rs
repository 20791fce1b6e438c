//! Whether a middleware that changes arguments keeps rule D3's promise.

use crate::args::Args;
use crate::call::{RunContext, ToolCall};
use crate::decision::{Decision, Question, ToolDecision};
use crate::middleware::ToolMiddleware;
use crate::panic::{Panicked, catch_panic};

/// Checks that a middleware decides the same about the same call, and leaves its own result alone: f(f(x)) = f(x).
///
/// The stack relies on both (rule D3): when a layer inside has changed arguments that others have decided on, all
/// decide again on the changed ones, and arguments that change once more are denied. Give it calls that the
/// middleware does change, and some that it does not.
///
/// `RunContext::default()` is a context outside any run; [`with_deps`](RunContext::with_deps) gives it what the
/// middleware looks up.
///
/// # Errors
/// Says what differs, with the arguments as you gave them and as they became.
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
/// let nests = decide_fn(|call: &ToolCall| moved(call.args(), "sandbox"));
/// let text = rewrites_once(&nests, &RunContext::default(), &call).await.unwrap_err();
/// assert!(text.contains(r#"{"path":"sandbox/sandbox/a.log"}"#));
///
/// let settles = decide_fn(|call: &ToolCall| match call.args()["path"].as_str() {
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
    catch_panic(|| middleware.before_tool_call(cx, call))
        .await
        .map_err(|Panicked(what)| format!("`{}` {what} for {}", middleware.name(), call.args()))
}

/// The arguments as the decision leaves them.
fn after(decision: &Decision, before: &Args) -> Args {
    decision.args().unwrap_or(before).clone()
}

/// Same decision, same questions, same arguments; a reason may be worded otherwise under the same key (rule A1).
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
