//! Checks of the middleware around tools, made when the tools are listed.
//!
//! Both checks are about names that a person wrote twice: once where the tool or the layer is defined, once where it is
//! used. If a name does not match, it silently disables a policy, and no test of the layer itself finds that. So a
//! selection of a tool that is not there fails the listing, with the most similar names. If two layers that ask share a
//! name, we report that when the tools are listed, before any approver sees an ambiguous question.

use std::collections::BTreeSet;

use crate::call::{Parts, ToolDefinition};
use crate::error::UserError;

/// The number of similar names that an error shows.
const NEAREST: usize = 3;

/// Refuses a layer that selects a tool by a name that no tool has (rule D4).
///
/// Around an agent we check nothing: the name may be that of a tool of the agent, whose calls the layer also decides
/// about.
pub(super) fn check_selections(parts: &Parts, tools: &[ToolDefinition]) -> Result<(), UserError> {
    let is_agent = |it: &ToolDefinition| it.leaf().is_some_and(|leaf| leaf.behind.is_some());
    if parts.selections().is_empty() || tools.iter().any(is_agent) {
        return Ok(());
    }
    for selection in parts.selections() {
        let unknown = |name: &&String| tools.iter().all(|it| it.name() != name.as_str());
        if let Some(name) = selection.tools.iter().find(unknown) {
            return Err(UserError::UnknownTool {
                layer: selection.layer.to_string(),
                name: name.clone(),
                nearest: nearest(name, tools),
            });
        }
    }
    Ok(())
}

/// Warns about two middleware with the same name on the path of a call. They would share a question, so neither may ask
/// (rule D10). Only the names in `parts`, those of the outermost level, are checked: the levels inside have reported
/// theirs.
pub(super) fn warn_of_shared_names(parts: &Parts, tools: &[ToolDefinition]) {
    let names: BTreeSet<_> = parts.askers().iter().collect();
    for name in names {
        if let Some(tool) = tools.iter().find(|tool| tool.way().askers(name) > 1) {
            tracing::warn!(
                layer = %name,
                tool = tool.name(),
                "two middleware have one name: an ASK of either is refused, give them names of their own with `named`"
            );
        }
    }
}

/// The names of the tools that are most similar to `name`, by edit distance.
fn nearest(name: &str, tools: &[ToolDefinition]) -> Vec<String> {
    let mut names: Vec<_> = tools.iter().map(ToolDefinition::name).collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_cached_key(|known| strsim::damerau_levenshtein(name, known));
    names.into_iter().take(NEAREST).map(str::to_owned).collect()
}
