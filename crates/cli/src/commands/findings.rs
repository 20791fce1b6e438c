//! The findings of a doctor, for programs and for people.

use serde_json::{Value, json};

use crate::output::CommandOutput;

/// One thing that was checked: its name, whether it is in order, and what was found.
pub(crate) struct Finding(pub(crate) &'static str, pub(crate) Option<bool>, pub(crate) String);

/// The findings, about a client if they are about one. The status is 3 where one is not in order.
pub(crate) fn report(client: Option<&str>, checks: &[Finding]) -> CommandOutput {
    let word = |ok: Option<bool>| match ok {
        Some(true) => "ok",
        Some(false) => "PROBLEM",
        None => "unknown",
    };
    let text: Vec<_> = checks
        .iter()
        .map(|Finding(what, ok, found)| format!("{what:<14}{:<9}{found}", word(*ok)))
        .collect();
    let status = if checks.iter().any(|check| check.1 == Some(false)) { 3 } else { 0 };
    CommandOutput::of(status, lines(client, checks)).for_people(text.join("\n"))
}

/// The findings as lines for programs.
pub(crate) fn lines(client: Option<&str>, checks: &[Finding]) -> Vec<Value> {
    let line = |Finding(what, ok, found): &Finding| {
        let mut line = json!({"check": what, "ok": ok, "found": found});
        if let (Some(client), Some(fields)) = (client, line.as_object_mut()) {
            fields.insert("client".to_owned(), client.into());
        }
        line
    };
    checks.iter().map(line).collect()
}
