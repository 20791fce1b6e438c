//! The entries of logs, and the rows that they are about.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A log entry before it is linked into the log of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The run to whose log the entry is appended.
    pub run: String,
    /// The id of the row that the entry is about; `None` for an entry about no row, such as a checkpoint.
    pub row: Option<String>,
    /// The event and its data, as a JSON object.
    pub body: Value,
}

/// One entry of the log of a run, linked to the entry before it by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The run that the log belongs to.
    pub run: String,
    /// The place of the entry in the log, counted from 1.
    pub seq: i64,
    /// The hash of the entry before it; empty for the first.
    pub prev: String,
    /// The hash over `run`, `seq`, `prev` and `body` ([`Linker`](crate::ledger::Linker)).
    pub hash: String,
    /// The event and its data, as canonical JSON text.
    pub body: String,
}

impl Entry {
    /// The id of the row that the entry is about, as its body says; `None` for an entry about no row. A store finds the
    /// last entry about a row by this and by nothing beside the body, which no hash would cover.
    ///
    /// ```
    /// use countersign::ledger::{Draft, Linker, Unlinked};
    /// use serde_json::json;
    ///
    /// let draft = Draft { run: "run-1".into(), row: Some("ask-1".into()), body: json!({"event": "parked"}) };
    /// let mut entry = Linker::default().link(None, &draft)?;
    /// assert_eq!(entry.about().as_deref(), Some("ask-1"));
    /// entry.body = r#"{"at":1,"event":"run_saved"}"#.into(); // as 0.1 wrote it
    /// assert_eq!(entry.about().as_deref(), Some("run:run-1"));
    /// # Ok::<(), Unlinked>(())
    /// ```
    #[must_use]
    pub fn about(&self) -> Option<String> {
        about(&self.run, &serde_json::from_str(&self.body).ok()?)
    }
}

/// The member of a body that names the row which its entry is about.
pub(in crate::ledger) const ABOUT: &str = "about";

/// The id of the row that an entry of a run's log is about.
///
/// Entries of 0.1 do not say `about`: one about an ask, a grant or a counter names it, and one about a run needs no id,
/// as the log is the run's. The SQL of the stores has the same rule.
pub(in crate::ledger) fn about(run: &str, body: &Value) -> Option<String> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    if let Some(id) = text(ABOUT).or(text("ask")) {
        return Some(id.to_owned());
    }
    match text("event")? {
        event if event.starts_with("grant_") => text("grant").map(|id| format!("grant:{id}")),
        "call_counted" => text("counter").map(|id| format!("counter:{id}")),
        event => event.starts_with("run_").then(|| format!("run:{run}")),
    }
}
