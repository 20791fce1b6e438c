//! Tools that are executed elsewhere.

use super::{Permit, Toolset};
use crate::call::{RunContext, ToolDefinition, ToolKind};
use crate::error::BoxError;
use crate::outcome::{ToolError, ToolReturn};

/// Tools whose calls are executed elsewhere, by a front end, a queue or another service. The result comes back as an
/// answer.
///
/// ```
/// use countersign::{ExternalToolset, ToolDefinition};
/// use serde_json::json;
///
/// let browser = ExternalToolset::new("browser", [ToolDefinition::new("open_tab", json!({"type": "object"}))]);
/// # let _ = browser;
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
