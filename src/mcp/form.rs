//! The form by which a client's person is asked, and the reading of its answer (rule M2).
//!
//! Clients draw forms as they like: some preselect the first value, some submit with Enter, some remember an answer. So
//! the first value denies, there is no default, and only the literal `approve` on a form that was accepted approves:
//!
//! | action | `decision` | read as |
//! |---|---|---|
//! | `accept` | `"approve"` | approve |
//! | `accept` | `"deny"` | deny |
//! | `accept` | absent, `true`, `"yes"`, `"Approve"` | nothing |
//! | `decline` | any | deny |
//! | `cancel` | any | nothing |

use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest};
use serde_json::{Value, json};

use crate::ledger::Ask;
use crate::show::{CallView, Limits};

/// The key of our question among the input requests of a result.
pub(super) const QUESTION: &str = "countersign";
/// The field of the form.
const FIELD: &str = "decision";
/// The only value that approves.
const APPROVE: &str = "approve";
const DENY: &str = "deny";

/// The answer of a person on a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormAnswer {
    Approve,
    Deny,
    /// No answer: the form was closed, or holds something else than the two values.
    Nothing,
}

/// Reads an `ElicitResult`. Only the literal value on an accepted form approves; other fields, such as a client's
/// request to remember the answer, are ignored.
pub(super) fn said(result: &Value) -> FormAnswer {
    let action = result.get("action").and_then(Value::as_str);
    let value =
        result.get("content").and_then(|content| content.get(FIELD)).and_then(Value::as_str);
    match (action, value) {
        (Some("accept"), Some(APPROVE)) => FormAnswer::Approve,
        (Some("accept"), Some(DENY)) | (Some("decline"), _) => FormAnswer::Deny,
        _ => FormAnswer::Nothing,
    }
}

/// The form about an ask: one required field without a default, whose first value denies. All of the call is in its
/// text, because a form has no way to open what was left out (rule S4); `None` where that is too long.
///
/// A form has no second page. Where something would be left out, or the text is too long to be read in a dialog, there
/// is no form, and the person decides in the inbox.
pub(super) fn form(ask: &Ask) -> Option<ElicitRequestParams> {
    let requests = ask.requests();
    let [view] = &CallView::all(&requests, Limits::none())[..] else { return None };
    let (call, id) = (view.text(100), ask.id());
    let message = format!("May this call run, once?\n\n{call}\n\nAsk {id}");
    if view.left_out || message.len() > MAX_TEXT {
        return None;
    }
    let schema = json!({
        "type": "object",
        "properties": {FIELD: {
            "type": "string",
            "title": "Decision",
            "description": "approve runs exactly this call, once; deny runs nothing",
            "enum": [DENY, APPROVE],
        }},
        "required": [FIELD],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The longest text of a form; a call with a longer one is decided in the inbox.
const MAX_TEXT: usize = 16_000;

/// The request to open the inbox, which decides nothing by itself.
pub(super) fn link(ask: &Ask, base: &str) -> ElicitRequestParams {
    let id = ask.id();
    let joint = if base.contains('?') { '&' } else { '?' };
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: format!(
            "A call waits for a decision in the inbox (ask {id}). Opening the page decides nothing."
        ),
        url: format!("{base}{joint}ask={id}"),
        elicitation_id: id.to_owned(),
    }
}

/// A server's question, with the name of the server in front, so that no server speaks as the guard.
///
/// A server behind the guard could otherwise ask "Approve this call?" in the words of the guard, and take the answer as
/// one.
pub(super) fn labelled(params: ElicitRequestParams, server: &str) -> ElicitRequestParams {
    let name = crate::show::escape_name(server);
    let label = |message: String| {
        format!(
            "The MCP server `{name}` asks (this approves nothing):\n{}",
            crate::show::escape(&message)
        )
    };
    match params {
        ElicitRequestParams::FormElicitationParams { meta, message, requested_schema } => {
            ElicitRequestParams::FormElicitationParams {
                meta,
                message: label(message),
                requested_schema,
            }
        }
        ElicitRequestParams::UrlElicitationParams { meta, message, url, elicitation_id } => {
            ElicitRequestParams::UrlElicitationParams {
                meta,
                message: label(message),
                url,
                elicitation_id,
            }
        }
        other => other,
    }
}

pub(super) fn input(params: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(params))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Rule M2: "only its literal value approves".
    #[test]
    fn only_the_literal_value_on_an_accepted_form_approves() {
        let accepted = |content: Value| said(&json!({"action": "accept", "content": content}));
        assert_eq!(
            accepted(json!({"decision": "approve", "persist": "always"})),
            FormAnswer::Approve
        );
        assert_eq!(accepted(json!({"decision": "deny"})), FormAnswer::Deny);
        for other in [
            json!({}),
            json!({"decision": true}),
            json!({"decision": "Approve"}),
            json!({"decision": "yes"}),
            json!({"decision": ["approve"]}),
            json!("approve"),
            json!(null),
            json!({"approve": true}),
        ] {
            assert_eq!(accepted(other.clone()), FormAnswer::Nothing, "{other}");
        }
        assert_eq!(
            said(&json!({"action": "decline", "content": {"decision": "approve"}})),
            FormAnswer::Deny
        );
        for action in [json!("cancel"), json!("Accept"), json!(null), json!(1)] {
            assert_eq!(
                said(&json!({"action": action, "content": {"decision": "approve"}})),
                FormAnswer::Nothing
            );
        }
        assert_eq!(said(&json!({"content": {"decision": "approve"}})), FormAnswer::Nothing);
    }
}
