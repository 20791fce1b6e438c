//! The decision journal: every decision with its arguments, for `replay`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call::RuleCall;
use super::private_file;
use super::ruling::Ruling;
use crate::decision::ToolDecision;

/// A private file with every decision of the rules: allowed, asked about and denied calls, with their arguments.
///
/// Entries are removed after a number of days. The file is readable for this user alone, and does not belong in a
/// project. A failure to write is logged and changes no decision.
#[derive(Debug, Clone)]
pub struct DecisionJournal {
    path: PathBuf,
    keep: Duration,
    writing: Arc<Mutex<()>>,
}

/// One decision in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// The time of the decision, in seconds since 1970.
    pub at: u64,
    /// The run, empty outside of one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The id of the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// The MCP server of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The toolset of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<String>,
    /// The arguments of the call.
    pub args: Map<String, Value>,
    /// The directory that relative paths start in.
    pub directory: PathBuf,
    /// The resolved paths and other pins of the questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<(String, String)>,
    /// The digest of the rules.
    pub rules: String,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
}

impl JournalEntry {
    pub(super) fn new(call: &RuleCall<'_>, ruling: &Ruling, root: &Path, rules: String) -> Self {
        Self {
            at: now(),
            run: String::new(),
            call: String::new(),
            tool: call.tool.to_owned(),
            server: call.server_name().map(str::to_owned),
            toolset: call.toolset_id().map(str::to_owned),
            args: call.args.clone(),
            directory: call.directory.map_or_else(|| root.to_owned(), |it| root.join(it)),
            pins: ruling.pins.clone(),
            rules,
            decision: ruling.decision.word().to_owned(),
        }
    }

    /// Sets the run and the id of the call.
    #[must_use]
    pub fn of_call(mut self, run: &str, call: &str) -> Self {
        (self.run, self.call) = (run.to_owned(), call.to_owned());
        self
    }

    /// The recorded decision, if it is one of the three.
    #[must_use]
    pub fn decision(&self) -> Option<ToolDecision> {
        [ToolDecision::Allow, ToolDecision::Ask, ToolDecision::Deny]
            .into_iter()
            .find(|it| it.word() == self.decision)
    }

    /// The recorded call, to decide about it again.
    #[must_use]
    pub fn call(&self) -> RuleCall<'_> {
        let call = RuleCall::new(&self.tool, &self.args).directory(&self.directory);
        match (&self.server, &self.toolset) {
            (Some(server), _) => call.server(server),
            (None, Some(toolset)) => call.toolset(toolset),
            (None, None) => call,
        }
    }
}

impl DecisionJournal {
    /// A journal in this file. Entries are kept for 30 days.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keep: Duration::from_secs(30 * 86_400), writing: Arc::default() }
    }

    /// Sets for how many days entries are kept.
    #[must_use]
    pub fn keep_days(mut self, days: u32) -> Self {
        self.keep = Duration::from_secs(u64::from(days) * 86_400);
        self
    }

    /// The file of the journal.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All entries, oldest first. A line that cannot be read is left out and counted.
    ///
    /// # Errors
    /// The error of reading the file.
    pub fn entries(&self) -> std::io::Result<(Vec<JournalEntry>, usize)> {
        let file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((Vec::new(), 0));
            }
            Err(error) => return Err(error),
        };
        let (mut found, mut unreadable) = (Vec::new(), 0);
        for line in BufReader::new(file).split(b'\n') {
            let line = line?;
            match serde_json::from_slice(&line) {
                Ok(entry) => found.push(entry),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(_) => unreadable += 1,
            }
        }
        Ok((found, unreadable))
    }

    /// Removes the entries that are older than the journal keeps them. Returns how many were removed.
    ///
    /// # Errors
    /// The error of reading or writing the file.
    pub fn prune(&self) -> std::io::Result<usize> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (entries, _) = self.entries()?;
        let oldest = now().saturating_sub(self.keep.as_secs());
        let (kept, removed): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.at >= oldest);
        if !removed.is_empty() {
            let mut text = Vec::new();
            for entry in &kept {
                serde_json::to_writer(&mut text, entry)?;
                text.push(b'\n');
            }
            private_file::replace(&self.path, &text)?;
        }
        Ok(removed.len())
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// The error of writing, or that other users could read the file.
    pub fn append(&self, entry: &JournalEntry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // One write, so that lines of several processes do not mix.
        private_file::append(&self.path)?.write_all(&line)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
