//! Wrappers that change tool definitions and leave calls unchanged.
//!
//! A wrapper gets whole definitions and returns whole definitions. So it could widen what it was given: name another
//! tool, drop an approval, or raise a number of retries. Two steps prevent that:
//!
//! 1. Each returned definition is tied to the given one of the same name (`ToolDefinition::made_of`), which restores
//!    the gate and the way to it, and takes the stricter of both kinds. A name that was not given is an error.
//! 2. A definition that was left out is not dropped but hidden. The model does not get it, while the check of layers by
//!    name still finds it: `for_tools(["delete"])` around a filter that hides `delete` in some runs is no mistake (rule
//!    D4).
//!
//! We check nothing at the time of a call. A call of a hidden tool does not get here: the turn finds no listed
//! definition for its name, and tells the model that there is no such tool (rule T5).

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Stack, Tools};
use crate::call::{RunContext, ToolCall, ToolDefinition};
use crate::error::{BoxError, UserError};
use crate::outcome::Outcome;

pub(super) struct Redefined {
    tools: Tools,
    word: &'static str,
    change: Box<Redefine>,
}

type Redefine = dyn Fn(RunContext, Vec<ToolDefinition>) -> BoxFuture<'static, Vec<ToolDefinition>>
    + Send
    + Sync;

impl Redefined {
    pub(super) fn filter(
        tools: Tools,
        predicate: impl Fn(&RunContext, &ToolDefinition) -> bool + Send + Sync + 'static,
    ) -> Self {
        let keep = move |cx: &RunContext, mut definitions: Vec<ToolDefinition>| {
            definitions.retain(|definition| predicate(cx, definition));
            definitions
        };
        Self { word: "filtered", ..Self::prepare(tools, keep) }
    }

    pub(super) fn filter_async<P, Fut>(tools: Tools, predicate: P) -> Self
    where
        P: Fn(RunContext, ToolDefinition) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        let predicate = Arc::new(predicate);
        let keep = move |cx: RunContext, definitions: Vec<ToolDefinition>| {
            let predicate = Arc::clone(&predicate);
            async move {
                let mut kept = Vec::new();
                for definition in definitions {
                    if predicate(cx.clone(), definition.clone()).await {
                        kept.push(definition);
                    }
                }
                kept
            }
        };
        Self { word: "filtered", ..Self::prepare_async(tools, keep) }
    }

    pub(super) fn prepare(
        tools: Tools,
        prepare: impl Fn(&RunContext, Vec<ToolDefinition>) -> Vec<ToolDefinition>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::prepare_async(tools, move |cx, definitions| {
            std::future::ready(prepare(&cx, definitions))
        })
    }

    pub(super) fn prepare_async<P, Fut>(tools: Tools, prepare: P) -> Self
    where
        P: Fn(RunContext, Vec<ToolDefinition>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<ToolDefinition>> + Send + 'static,
    {
        let change =
            move |cx, definitions| -> BoxFuture<'static, _> { Box::pin(prepare(cx, definitions)) };
        Self { tools, word: "prepared", change: Box::new(change) }
    }

    async fn change(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let listed = self.tools.listed(cx).await?;
        let (hidden, given): (Vec<_>, Vec<_>) = listed.into_iter().partition(|it| it.is_hidden());
        let changed = (self.change)(cx.clone(), given.clone()).await;
        // A definition that the function built anew is tied to the tool of the same name again.
        let tie = |definition: ToolDefinition| match given
            .iter()
            .find(|known| known.name() == definition.name())
        {
            Some(known) => Ok(definition.made_of(known)),
            None => Err(UserError::PrepareAdded { name: definition.name().to_owned() }.into()),
        };
        let mut tied = changed.into_iter().map(tie).collect::<Result<Vec<_>, BoxError>>()?;
        // Tools that were left out stay in the list, hidden, so that layers may still name them (rule D4).
        let left_out = |it: &&ToolDefinition| tied.iter().all(|kept| kept.name() != it.name());
        let left_out: Vec<_> = given.iter().filter(left_out).cloned().collect();
        tied.extend(left_out.into_iter().map(ToolDefinition::hide).chain(hidden));
        Ok(tied)
    }
}

impl Stack for Redefined {
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>> {
        Box::pin(self.change(cx))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        self.tools.0.call(call)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {:?}", self.word, self.tools)
    }
}
