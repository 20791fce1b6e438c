//! Proposed tools as text, for people.
//!
//! A server begins at the first column and a tool in the third one. What the server wrote is behind the name of its field,
//! from the fifth column on.

use countersign::ToolCall;
use countersign::show::{self, CallView, Limits};
use countersign_mcp::Proposal;
use serde_json::Value;

use crate::output::WIDTH;
use crate::used_store::UsedStore;

pub(super) fn list(proposals: &[Proposal], store: &UsedStore) -> String {
    if proposals.is_empty() {
        return format!("No tools have to be accepted in the store `{}`.", store.name());
    }
    let mut lines = Vec::new();
    for proposal in proposals {
        lines.push(heading(proposal));
        let mut names = |label: &str, names: Vec<&str>| {
            let names: Vec<_> = names.into_iter().map(show::escape_name).collect();
            if !names.is_empty() {
                lines.extend(show::wrap(&format!("  {label}: "), &names.join(", "), WIDTH));
            }
        };
        names("new", proposal.added().map(|(name, _)| name).collect());
        names("changed", proposal.changed().map(|(name, _)| name).collect());
        names("gone", proposal.removed().collect());
        names("of the server itself", proposal.about().map(|(name, _)| name).collect());
        names("started by", proposal.programs().map(|(name, _)| name).collect());
    }
    lines.push(String::new());
    let (show, accept) = (store.command("pins show SERVER"), store.command("pins accept ASK"));
    lines.push(format!("`{show}` shows the definitions, and `{accept}` accepts them."));
    lines.join("\n")
}

pub(super) fn shown(proposals: &[&Proposal], store: &UsedStore) -> String {
    let mut lines = Vec::new();
    for proposal in proposals {
        lines.push(heading(proposal));
        for (name, program) in proposal.programs() {
            lines.push(format!("  started by: {}", show::escape_name(name)));
            lines.extend(fields(program));
        }
        for (name, text) in proposal.about() {
            lines.push(format!("  of the server itself: {}", show::escape_name(name)));
            lines.extend(fields(text));
        }
        for (name, definition) in proposal.added() {
            lines.push(format!("  new: {}", show::escape_name(name)));
            lines.extend(fields(definition));
        }
        for (name, difference) in proposal.changed() {
            lines.push(format!("  changed: {}", show::escape_name(name)));
            lines.extend(fields(difference));
        }
        for name in proposal.removed() {
            lines.push(format!("  gone: {}", show::escape_name(name)));
        }
        lines.push(String::new());
        let accept = store.command(&format!("pins accept {}", proposal.id()));
        lines.push(format!("To accept exactly this: `{accept}`."));
    }
    lines.join("\n")
}

fn heading(proposal: &Proposal) -> String {
    let server = show::escape_name(proposal.server());
    let denied = if proposal.is_denied() { ", denied" } else { "" };
    format!("server {server}, ask {}{denied}", proposal.id())
}

/// All fields of a definition: what is accepted is what was shown.
pub(crate) fn fields(definition: &Value) -> Vec<String> {
    let view = CallView::of_call(&ToolCall::new("", "", definition.clone()), Limits::unmasked());
    let mut lines = Vec::new();
    for field in &view.args {
        match field.lines.as_slice() {
            [line] if field.note.is_empty() => {
                lines.extend(show::wrap(&format!("    {}: ", field.name), line, WIDTH));
            }
            several => {
                lines.extend(show::wrap(
                    "    ",
                    &format!("{}, {}:", field.name, field.note),
                    WIDTH,
                ));
                for line in several {
                    lines.extend(show::wrap("      | ", line, WIDTH));
                }
            }
        }
    }
    lines
}
