//! Tools that are executed elsewhere.

use super::{Permit, Toolset};
use crate::call::{RunContext, ToolDefinition, ToolKind};
use crate::error::BoxError;
use crate::outcome::{ToolError, ToolReturn};

/// Tools whose calls are executed elsewhere, by a front end, a queue or another service. The result comes back as an
/// answer.
///
/// ```
/// use countersign::toolset::ExternalToolset;
/// use countersign::ToolDefinition;
/// use serde_json::json;
///
/// let browser = ExternalToolset::new("browser", [ToolDefinition::new("open_tab", json!({"type": "object"}))]);
/// # let _ = browser;
/// ```
///
/// A call of such a tool passes every layer. When none denies it, it is deferred as
/// [external](crate::outcome::DeferralKind::External), also where a layer asks: then the approval and the result are
/// two answers, one after the other. The arguments are not validated here, because their schema belongs to the other
/// side.
///
/// ```
/// use countersign::toolset::ExternalToolset;
/// use countersign::{ToolCall, ToolDefinition, Turn};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let browser = ExternalToolset::new("browser", [ToolDefinition::new("open_tab", json!({"type": "object"}))]);
/// let turn = Turn::new(browser);
/// let report = turn.run(vec![ToolCall::new("c1", "open_tab", json!({"url": "https://example.org"}))]).await?;
/// let suspended = report.into_suspended().unwrap();
/// assert!(suspended.requests().calls.iter().any(|call| call.id() == "c1"));
///
/// let answers = suspended.requests().answer().result("c1", "tab 7").build()?;
/// let report = turn.resume(suspended, answers).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "tab 7");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct ExternalToolset {
    id: String,
    definitions: Vec<ToolDefinition>,
}

impl ExternalToolset {
    /// Creates a set of these tools; each definition becomes [`ToolKind::External`].
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        definitions: impl IntoIterator<Item = ToolDefinition>,
    ) -> Self {
        let definitions = definitions
            .into_iter()
            .map(|definition| definition.with_kind(ToolKind::External))
            .collect();
        Self { id: id.into(), definitions }
    }
}

impl Toolset for ExternalToolset {
    fn id(&self) -> &str {
        &self.id
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        Ok(self.definitions.clone())
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        Err(ToolError::fatal(format!("`{}` is executed elsewhere", permit.tool())))
    }
}
