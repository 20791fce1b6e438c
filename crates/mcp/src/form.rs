//! The form by which a client's person is asked, and the reading of its answer (rule M2).
//!
//! Clients draw forms as they like. For example, some preselect the first value, some submit with Enter, and some
//! remember an answer. So the first value denies, there is no default, and only the literal `approve` on a form that
//! was accepted approves:
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

use countersign::ledger::Ask;
use countersign::show::{CallView, Limits};

/// The key of our question among the input requests of a result.
pub(crate) const QUESTION: &str = "countersign";
/// The layer of questions that come from the history of a call.
pub(crate) const HISTORY: &str = "countersign mcp";
/// The field of the form.
const FIELD: &str = "decision";
/// The only value that approves.
const APPROVE: &str = "approve";
const DENY: &str = "deny";
/// The name of the layer of rules.
const RULES: &str = "rules";

/// The answer of a person on a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormAnswer {
    Approve,
    Deny,
    /// No answer: the form was closed, or holds something else than the two values.
    Nothing,
}

/// Reads an `ElicitResult`. Only the literal value on an accepted form approves; other fields, such as a client's
/// request to remember the answer, are ignored.
pub(crate) fn said(result: &Value) -> FormAnswer {
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
/// A form has no second page. If something would be left out, or the text is too long to be read in a dialog, there is
/// no form, and the person decides in the inbox.
pub(crate) fn form(ask: &Ask) -> Option<ElicitRequestParams> {
    let requests = ask.requests();
    let [view] = &mut CallView::all(&requests, Limits::none())[..] else { return None };
    without_places(view);
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

/// Leaves out where in a file the rule is that asks, and that it is pinned: a person at a client has no use for either.
/// The reason of the rule stays.
fn without_places(view: &mut CallView) {
    view.notes.retain(|note| (&*note.author, &*note.field.name) != (RULES, "rule"));
    for question in view.questions.iter_mut().filter(|question| question.asked_by == RULES) {
        question.pins.retain(|pin| pin.name != "rule");
    }
}

/// Returns `true` if a question of a server is one that clients show as a form: a guard declares no links.
pub(crate) fn is_form(question: &ElicitRequestParams) -> bool {
    matches!(question, ElicitRequestParams::FormElicitationParams { .. })
}

/// The longest text of a form; a call with a longer one is decided in the inbox.
const MAX_TEXT: usize = 16_000;

/// The request to open the inbox, which decides nothing by itself.
pub(crate) fn link(ask: &Ask, base: &str) -> ElicitRequestParams {
    let id = ask.id();
    // A fragment may hold the secret of an inbox, which no client is told.
    let base = base.trim().split('#').next().unwrap_or_default();
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: format!(
            "A call waits for a decision in the inbox (ask {id}). Opening the page decides nothing."
        ),
        url: format!("{base}#ask={id}"),
        elicitation_id: id.to_owned(),
    }
}

/// A server's question, with the name of the server in front, so that no server speaks as the guard.
///
/// Otherwise a server behind the guard could ask "Approve this call?" in the words of the guard, and take the answer as
/// one. The lines of its text stay lines, each behind a bar: no line can pass for one of the guard's.
pub(crate) fn labelled(params: ElicitRequestParams, server: &str) -> ElicitRequestParams {
    let name = countersign::show::escape_name(server);
    let label = |message: String| {
        let lines: Vec<_> =
            message.lines().map(|line| format!("| {}", countersign::show::escape(line))).collect();
        format!("The MCP server `{name}` asks (this approves nothing):\n{}", lines.join("\n"))
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

pub(crate) fn input(params: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(params))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Rule M5: "labelled with the server's name and with a bar before each of its lines".
    #[test]
    fn the_lines_of_a_servers_question_stay_lines_and_none_is_the_guards() {
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Your name?\nMay this call run, once?\u{202e}".to_owned(),
            requested_schema: serde_json::from_value(json!({"type": "object", "properties": {}}))
                .unwrap(),
        };
        let ElicitRequestParams::FormElicitationParams { message, .. } =
            labelled(question, "files")
        else {
            panic!("a form stays a form")
        };
        let expected = "The MCP server `files` asks (this approves nothing):\n\
                        | Your name?\n| May this call run, once?\\u{202e}";
        assert_eq!(message, expected);
    }

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
