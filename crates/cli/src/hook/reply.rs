//! The answers that clients obey.
//!
//! The forms are those of each client ([`AnswerForm`](super::clients::spec::AnswerForm)). The exit status is 0, or 2 for a
//! denial, with the reason on stderr as well.

use countersign::show;
use serde_json::{Map, Value};

use super::clients::Client;

/// The answer of a hook to its client: what the process writes, and its exit status.
///
/// ```
/// use countersign_cli::hook::{Client, HookReply};
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
    /// An empty reason becomes a fixed text, as Codex takes a denial without a reason for an allow. What a reader cannot see is
    /// escaped: a reason may name a folder, and the name of a folder may clear a screen.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, HookReply};
    ///
    /// for client in Client::ALL {
    ///     let denial = HookReply::denial(client, None, "  ");
    ///     assert!(denial.is_denial());
    ///     assert_eq!(denial.stderr(), "denied by countersign\n");
    ///     let denial = HookReply::denial(client, None, "in `a\u{1b}[2J`");
    ///     assert_eq!(denial.stderr(), "in `a\\u{1b}[2J`\n");
    /// }
    /// ```
    #[must_use]
    pub fn denial(client: Client, event: Option<&str>, reason: &str) -> Self {
        let reason = match reason.trim() {
            "" => "denied by countersign".to_owned(),
            reason => show::escape_hidden(reason),
        };
        let is_request = event.is_some_and(|event| event.eq_ignore_ascii_case("PermissionRequest"));
        let answer = (client.spec().answers.deny)(&reason, is_request);
        Self { stdout: answer.to_string().into_bytes(), stderr: format!("{reason}\n"), status: 2 }
    }

    /// Lets the call run. `explicit` says that the client's own rules need not be asked any more, where it has
    /// such an answer. `args` replaces the arguments of the call.
    ///
    /// Silence with status 0 is "no opinion" in all clients with command hooks. So an allowed call gets silence,
    /// unless we have more to say: other arguments, or that the client need not ask its own rules.
    pub(super) fn allow(client: Client, args: Option<Map<String, Value>>, explicit: bool) -> Self {
        let Some(answer) = (client.spec().answers.allow)(args, explicit) else {
            return Self::nothing();
        };
        Self { stdout: answer.to_string().into_bytes(), stderr: String::new(), status: 0 }
    }

    /// Lets the client ask its own question, for this reason. Only for clients that [ask](Client::asks).
    pub(super) fn ask(client: Client, reason: &str) -> Self {
        let Some(ask) = client.spec().answers.ask else {
            return Self::denial(client, None, reason);
        };
        let answer = ask(&show::escape_hidden(reason));
        Self { stdout: answer.to_string().into_bytes(), stderr: String::new(), status: 0 }
    }

    /// No opinion: the answer to events that decide nothing.
    pub(super) fn nothing() -> Self {
        Self { stdout: Vec::new(), stderr: String::new(), status: 0 }
    }

    /// No opinion, and a line for the client's log: the answer to a report that could not be recorded.
    ///
    /// ```
    /// use countersign_cli::hook::HookReply;
    ///
    /// let remark = HookReply::remark("the store is locked");
    /// assert!(!remark.is_denial() && remark.stdout().is_empty());
    /// assert_eq!(remark.stderr(), "countersign: the store is locked\n");
    /// ```
    #[must_use]
    pub fn remark(line: &str) -> Self {
        let line = show::escape_hidden(line);
        Self { stderr: format!("countersign: {line}\n"), ..Self::nothing() }
    }

    /// The text for stdout. Write it at once, with nothing else.
    ///
    /// Some clients read only what was there with the first read.
    #[must_use]
    pub fn stdout(&self) -> &[u8] {
        &self.stdout
    }

    /// The text for stderr. Write it before the one for stdout.
    ///
    /// A client may stop reading when it has its answer.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// The exit status of the process: 0, or 2 for a denial.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status
    }

    /// Returns `true` if the reply is a denial.
    #[must_use]
    pub fn is_denial(&self) -> bool {
        self.status == 2
    }
}
