//! Several sets as one.

use std::collections::BTreeMap;
use std::fmt;

use futures::future::{BoxFuture, try_join_all};

use super::{Stack, Tools};
use crate::call::{Leaf, RunContext, ToolCall, ToolDefinition};
use crate::error::{BoxError, UserError};
use crate::outcome::Outcome;

struct Combined(Vec<Tools>);

impl Tools {
    /// Several sets as one. Two tools of one name are an error when the tools are listed, which says how to resolve
    /// it.
    #[must_use]
    pub fn combined(sets: impl IntoIterator<Item = Self>) -> Self {
        Self::new(Combined(sets.into_iter().collect()))
    }
}

impl Combined {
    async fn all(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let sets = try_join_all(self.0.iter().map(|tools| tools.definitions(cx))).await?;
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut all = Vec::new();
        for definition in sets.into_iter().flatten() {
            let from = definition
                .leaf()
                .map_or_else(String::new, |leaf| format!("toolset `{}`", leaf.gate));
            if let Some(first) = names.insert(definition.name().to_owned(), from.clone()) {
                let name = definition.name().to_owned();
                return Err(UserError::ToolConflict { name, first, second: from }.into());
            }
            all.push(definition);
        }
        Ok(all)
    }
}

impl Stack for Combined {
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>> {
        Box::pin(self.all(cx))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        let leaf = match call.pass() {
            Ok(pass) => pass.definition().leaf(),
            Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
        };
        let leads = |tools: &&Tools| leaf.is_some_and(|leaf| tools.0.leads_to(call.name(), leaf));
        match self.0.iter().find(leads) {
            Some(tools) => tools.0.call(call),
            None => {
                let unknown = Outcome::retry(format!("unknown tool `{}`", call.name()));
                Box::pin(std::future::ready(Ok(unknown)))
            }
        }
    }

    fn leads_to(&self, name: &str, leaf: &Leaf) -> bool {
        self.0.iter().any(|tools| tools.0.leads_to(name, leaf))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.0).finish()
    }
}
