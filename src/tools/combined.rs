//! Several sets combined into one.

use std::fmt;

use futures::future::{BoxFuture, try_join_all};

use super::{Stack, Tools, unknown};
use crate::call::{RunContext, SetId, ToolCall, ToolDefinition};
use crate::error::BoxError;
use crate::outcome::Outcome;

struct Combined {
    sets: Vec<Tools>,
    id: SetId,
}

impl Tools {
    /// Combines several sets into one. Two tools with the same name are an error when the tools are listed; the error
    /// says how to resolve the conflict.
    ///
    /// A call goes through the set that lists its tool. Several sets may list parts of the same toolset:
    ///
    /// ```
    /// use countersign::{FunctionToolset, Tools, ToolsExt};
    ///
    /// let files = Tools::from(FunctionToolset::new());
    /// let reads = files.clone().filtered(|_, it| it.name() == "read_file");
    /// let writes = files.filtered(|_, it| it.name() != "read_file").approval_required();
    /// let tools = Tools::combined([reads, writes]);
    /// # let _ = tools;
    /// ```
    #[must_use]
    pub fn combined(sets: impl IntoIterator<Item = Self>) -> Self {
        Self::new(Combined { sets: sets.into_iter().collect(), id: SetId::default() })
    }
}

impl Combined {
    async fn all(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let sets = try_join_all(self.sets.iter().map(|tools| tools.listed(cx))).await?;
        let through = |(member, definitions): (usize, Vec<ToolDefinition>)| {
            definitions.into_iter().map(move |it| it.through(&self.id, member))
        };
        Ok(sets.into_iter().enumerate().flat_map(through).collect())
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
        let member = match call.record() {
            Ok(pass) => pass.definition().way().member(&self.id),
            Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
        };
        match member.and_then(|member| self.sets.get(member)) {
            Some(tools) => tools.0.call(call),
            None => unknown(&call),
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.sets).finish()
    }
}
