//! Several sets combined into one.
//!
//! A call carries the name of its tool and nothing else, and two members may lead to the same gate. For example,
//! `reads` and `writes` are parts of one toolset, each with layers of its own. If we looked the name up at the time of
//! the call, we would have to list the members again, and could choose another member than the one that the model was
//! shown. So we choose the path when we list the tools: each definition records, for each combined set on its way, the
//! index of the member that listed it (`Way::through`), and [`Combined::call`] reads the index from the call record.
//!
//! | listed by | name | recorded for this set |
//! |---|---|---|
//! | member 0, `reads` | `read_file` | 0 |
//! | member 1, `writes` | `write_file` | 1 |
//!
//! A definition that another set has listed has no index for this one. Its call gets "unknown tool", for the model, and
//! does not fall through to any member: a fallback would be a way around the layers of the right one (rule D9).

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
    /// Combines several sets into one. Each set becomes `Tools` by `.into()`: `Tools::combined([mail.into(), web.into()])`.
    ///
    /// Two tools with the same name are an error when the tools are listed; the error says how to resolve the conflict.
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
    ///
    /// # Errors
    /// Nothing fails here, because the members are listed later. [`Tools::definitions`] fails with
    /// [`UserError::ToolConflict`](crate::error::UserError::ToolConflict) where two members list the same name;
    /// [`prefixed`](crate::ToolsExt::prefixed) or [`renamed`](crate::ToolsExt::renamed) on one of them resolves that,
    /// and [`filtered`](crate::ToolsExt::filtered) drops one of the two.
    ///
    /// ```
    /// use countersign::{FunctionToolset, RunContext, ToolError, Tools, ToolsExt, schemars, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Query { text: String }
    /// async fn search(query: Query) -> Result<String, ToolError> { Ok(query.text) }
    ///
    /// let set = |id: &str| FunctionToolset::new().id(id).tool(tool_fn("search", "Searches", search));
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let both = Tools::combined([set("mail").into(), set("web").into()]);
    /// let error = both.definitions(&RunContext::default()).await.unwrap_err();
    /// assert!(error.to_string().contains("search"));
    ///
    /// let both = Tools::combined([set("mail").prefixed("mail"), set("web").prefixed("web")]);
    /// assert_eq!(both.definitions(&RunContext::default()).await?.len(), 2);
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
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
