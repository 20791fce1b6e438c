//! The middleware of the `approval_required` wrappers.
//!
//! An approval of one wrapper covers the question of another one, because the name of the layer and the key of the
//! question are the same: `set.approval_required().prefixed("fs").approval_required()` asks one question. A wrapper
//! with a name of its own would ask a second one, and the approver would see the same sentence twice.
//!
//! The reason is empty: the wrapper knows nothing about the call that its tool and arguments do not say already, and
//! the approver sees those. The key is never empty: with an empty key the question would equal that of a tool that
//! declares its approval without one.

use std::borrow::Cow;
use std::future::Future;

use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::middleware::ToolMiddleware;

/// The question that all of these wrappers share, so that two of them around one tool ask once. They share it on
/// purpose and list no parts, because listing one name twice would make the check of names refuse the question (rule
/// D10).
fn ask(yes: bool) -> Decision {
    if yes { Decision::ask("").with_key("approval required") } else { Decision::allow() }
}

const NAME: Cow<'static, str> = Cow::Borrowed("approval_required");

pub(super) struct AskAll;

impl ToolMiddleware for AskAll {
    fn name(&self) -> Cow<'static, str> {
        NAME
    }

    fn parts(&self, _: &mut Parts) {}

    fn before_tool_call(
        &self,
        _: &RunContext,
        _: &ToolCall,
    ) -> impl Future<Output = Decision> + Send {
        std::future::ready(ask(true))
    }
}

pub(super) struct AskIf<P>(pub(super) P);

impl<P: Fn(&RunContext, &ToolCall) -> bool + Send + Sync + 'static> ToolMiddleware for AskIf<P> {
    fn name(&self) -> Cow<'static, str> {
        NAME
    }

    fn parts(&self, _: &mut Parts) {}

    fn before_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
    ) -> impl Future<Output = Decision> + Send {
        std::future::ready(ask(self.0(cx, call)))
    }
}

pub(super) struct AskIfAsync<P>(pub(super) P);

impl<P, Fut> ToolMiddleware for AskIfAsync<P>
where
    P: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = bool> + Send + 'static,
{
    fn name(&self) -> Cow<'static, str> {
        NAME
    }

    fn parts(&self, _: &mut Parts) {}

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        ask(self.0(cx.clone(), call.clone()).await)
    }
}
