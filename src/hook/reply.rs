//! The answers that clients obey.
//!
//! Each client reads answers in its own way, and runs the tool when an answer is not what it expects: with a line before
//! the JSON, with an unknown field, without a reason, with another exit status. The one denial that holds in all of them
//! is JSON with known fields and a reason, the same reason on stderr, and exit status 2.

use serde_json::{Map, Value, json};

use super::client::Client;

/// The answer of a hook to its client: what the process writes, and its exit status.
///
/// ```
/// use countersign::hook::{Client, HookReply};
///
/// let denial = HookReply::denial(Client::Gemini, None, "not here");
/// assert_eq!(denial.stdout(), br#"{"decision":"deny","reason":"not here"}"#);
/// assert_eq!((denial.stderr(), denial.status()), ("not here\n", 2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReply {
    stdout: Vec<u8>,
    stderr: String,
    status: u8,
}

impl HookReply {
    /// The denial that a client obeys, for this reason, which the model is told. `event` is the event that is denied, if
    /// it is known.
    ///
    /// An empty reason becomes a fixed text, as Codex takes a denial without a reason for an allow.
    ///
    /// ```
    /// use countersign::hook::{Client, HookReply};
    ///
    /// for client in Client::ALL {
    ///     let denial = HookReply::denial(client, None, "  ");
    ///     assert!(denial.is_denial());
    ///     assert_eq!(denial.stderr(), "denied by countersign\n");
    /// }
    /// ```
    #[must_use]
    pub fn denial(client: Client, event: Option<&str>, reason: &str) -> Self {
        let reason = match reason.trim() {
            "" => "denied by countersign",
            reason => reason,
        };
        let is_request = event.is_some_and(|event| event.eq_ignore_ascii_case("PermissionRequest"));
        let answer = match client {
            Client::Claude | Client::Codex if is_request => {
                let decision = json!({"behavior": "deny", "message": reason});
                json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
            }
            Client::Claude | Client::Codex => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }}),
            Client::Gemini | Client::Opencode => json!({"decision": "deny", "reason": reason}),
            Client::Copilot if is_request => json!({"behavior": "deny", "message": reason}),
            Client::Copilot => {
                json!({"permissionDecision": "deny", "permissionDecisionReason": reason})
            }
        };
        Self { stdout: answer.to_string().into_bytes(), stderr: format!("{reason}\n"), status: 2 }
    }

    /// Lets the call run. `explicit` says that the client's own rules need not be asked any more; Codex has no such
    /// answer. `args` replaces the arguments of the call.
    ///
    /// Silence with status 0 is "no opinion" in all clients with command hooks, so it is what an allowed call gets
    /// unless more has to be said: other arguments, or that the client's own rules need not be asked.
    pub(super) fn allow(client: Client, args: Option<Map<String, Value>>, explicit: bool) -> Self {
        let reason = "allowed by countersign";
        let answer = match (client, args) {
            (Client::Claude | Client::Codex, Some(args)) => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "permissionDecisionReason": reason,
                "updatedInput": args,
            }}),
            (Client::Claude, None) if explicit => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "permissionDecisionReason": reason,
            }}),
            (Client::Gemini, Some(args)) => json!({
                "decision": "allow",
                "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": args},
            }),
            (Client::Gemini, None) if explicit => json!({"decision": "allow"}),
            (Client::Copilot, Some(args)) => {
                json!({"permissionDecision": "allow", "permissionDecisionReason": reason, "modifiedArgs": args})
            }
            (Client::Copilot, None) if explicit => {
                json!({"permissionDecision": "allow", "permissionDecisionReason": reason})
            }
            (Client::Opencode, Some(args)) => json!({"decision": "allow", "args": args}),
            // The plugin refuses everything else.
            (Client::Opencode, None) => json!({"decision": "allow"}),
            (_, None) => return Self::nothing(),
        };
        Self { stdout: answer.to_string().into_bytes(), stderr: String::new(), status: 0 }
    }

    /// No opinion: the answer to events that decide nothing.
    pub(super) fn nothing() -> Self {
        Self { stdout: Vec::new(), stderr: String::new(), status: 0 }
    }

    /// No opinion, and a line for the client's log: the answer to a report that could not be recorded.
    ///
    /// ```
    /// use countersign::hook::HookReply;
    ///
    /// let remark = HookReply::remark("the store is locked");
    /// assert!(!remark.is_denial() && remark.stdout().is_empty());
    /// assert_eq!(remark.stderr(), "countersign: the store is locked\n");
    /// ```
    #[must_use]
    pub fn remark(line: &str) -> Self {
        Self { stderr: format!("countersign: {line}\n"), ..Self::nothing() }
    }

    /// What is written to stdout, as one write and nothing else.
    ///
    /// Some clients read only what was there with the first read.
    #[must_use]
    pub fn stdout(&self) -> &[u8] {
        &self.stdout
    }

    /// What is written to stderr, before stdout.
    ///
    /// Before stdout, as a client may stop reading when it has its answer.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// The exit status of the process: 0, or 2 for a denial.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status
    }

    /// Whether the reply is a denial.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        self.status == 2
    }
}
