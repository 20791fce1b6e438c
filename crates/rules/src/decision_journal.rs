//! The decision journal: every decision with its arguments, for `replay`.
//!
//! "What would these rules have decided?" Without a record of real calls you can only guess. The journal has every
//! decision with the arguments, so it is as private as the work itself. We create it for this user alone, refuse it if
//! others could read it, and remove its entries after 30 days, unless you set another time. Secrets in arguments are
//! masked, as they are for people (rule S1).
//!
//! We append each line by one write, so the lines of several processes do not mix. If a line cannot be read, we count
//! it and leave it out: a journal is evidence for a comparison, and one broken line does not spoil the rest. Pruning
//! writes a new file and renames it, so a reader sees one or the other.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ruling::Ruling;
use crate::calls::call::RuleCall;
use crate::sources::private_file;
use countersign::call::ToolSource;
use countersign::decision::ToolDecision;
use countersign::origin::ReadRecord;

/// The seconds of a day.
const DAY: u64 = 86_400;

/// The longest first line that is read to find out how old it is.
const MAX_LINE: u64 = 16 << 20;

/// A private file with every decision of the rules: allowed, asked about and denied calls, with their arguments.
///
/// Entries are removed after a number of days. The file is readable for this user alone, and does not belong in a
/// project. A failure to write is logged and changes no decision.
///
/// ```
/// use countersign_rules::{DecisionJournal, RuleCall, Rules, replay};
/// use serde_json::json;
///
/// let file = std::env::temp_dir().join(format!("countersign-doc-journal-{}", std::process::id()));
/// let journal = DecisionJournal::at(&file).keep_days(7);
/// let rules = Rules::builder().lexical().text("a", "version = 1\n[[rule]]\nid = 'a'\nallow = 'search'").load()?;
/// let args = json!({"query": "layers"});
/// let call = RuleCall::new("search", args.as_object().unwrap());
/// journal.append(&rules.journal_entry(&call, &rules.decide(&call)).of_call("run-1", "call-1"))?;
///
/// let (entries, unreadable) = journal.entries()?;
/// assert_eq!((entries.len(), unreadable), (1, 0));
/// assert!(replay(&entries, &rules).changes.is_empty(), "the same rules decide the same");
/// std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DecisionJournal {
    path: PathBuf,
    keep: Duration,
    writing: Arc<Mutex<()>>,
}

/// The answer with which a pass is made, for the journal. A door gives it to a turn ([`Turn::deps`](countersign::Turn::deps))
/// where it knows more than that the call was approved, and the rules write it.
///
/// ```
/// use countersign_rules::{JournaledAnswer, RuleCall, Rules};
/// use serde_json::json;
///
/// let rules = Rules::builder().lexical().root("/src/shop").text("mine", "version = 1").load()?;
/// let args = json!({"command": "git push"});
/// let call = RuleCall::new("shell", args.as_object().unwrap());
/// let entry = rules.journal_entry(&call, &rules.decide(&call));
/// let denied = entry.clone().of_answer(JournaledAnswer::Denied);
/// assert!(denied.denied && !denied.approved);
/// let granted = entry.of_answer(JournaledAnswer::ByGrant);
/// assert!(granted.approved && granted.by_grant);
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournaledAnswer {
    /// A grant has approved the call.
    ByGrant,
    /// A person has denied the call, and the pass is made for the journal alone.
    Denied,
    /// The journal has the answer already.
    Recorded,
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
    /// The toolset of the tool; `client:claude` for a tool of Claude Code that the table of its tools does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<String>,
    /// The name that the tool has in its toolset or at its server, if it is called by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<String>,
    /// The arguments of the call.
    pub args: Map<String, Value>,
    /// `true` if a secret is masked in the arguments, so that rules about its value may decide otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// `true` if the call was approved when the rules decided: it is the decision of the pass after the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// `true` if it was approved by a grant: no person has looked at this call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_grant: bool,
    /// `true` if a person has denied the call after the rules had asked about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// The directory that relative paths start in.
    pub directory: PathBuf,
    /// The resolved paths and other pins of the questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<(String, String)>,
    /// The digest of the rules.
    pub rules: String,
    /// `allow`, `ask` or `deny`.
    pub decision: String,
    /// The reads of the run, as far as it is about the arguments: hashes of values, and no texts of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origins: Option<ReadRecord>,
}

impl JournalEntry {
    pub(super) fn new(call: &RuleCall<'_>, ruling: &Ruling, root: &Path, rules: String) -> Self {
        let (args, masked) = countersign::show::masked_args(call.args);
        Self {
            at: now(),
            run: String::new(),
            call: String::new(),
            tool: call.tool.to_owned(),
            server: call.server_name().map(str::to_owned),
            toolset: call.toolset_as_set().map(str::to_owned),
            own_name: call.own_name().filter(|own| *own != call.tool).map(str::to_owned),
            args,
            masked,
            approved: false,
            by_grant: false,
            denied: false,
            directory: call.directory.map_or_else(|| root.to_owned(), |it| root.join(it)),
            pins: ruling.pins.clone(),
            rules,
            decision: ruling.decision.word().to_owned(),
            origins: call
                .origin
                .as_ref()
                .and_then(|origin| origin.excerpt(&Value::Object(call.args.clone()))),
        }
    }

    /// Sets the run and the id of the call.
    #[must_use]
    pub fn of_call(mut self, run: &str, call: &str) -> Self {
        (self.run, self.call) = (run.to_owned(), call.to_owned());
        self
    }

    /// Says that the call was approved when the rules decided.
    #[must_use]
    pub fn of_approved(mut self, approved: bool) -> Self {
        self.approved = approved;
        self
    }

    /// Says how the question about the call was answered.
    #[must_use]
    pub fn of_answer(mut self, answer: JournaledAnswer) -> Self {
        match answer {
            JournaledAnswer::ByGrant => (self.approved, self.by_grant) = (true, true),
            JournaledAnswer::Denied => (self.approved, self.denied) = (false, true),
            JournaledAnswer::Recorded => {}
        }
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
        let source = match (&self.server, &self.toolset) {
            (Some(server), _) => Some(ToolSource::server(server.as_str(), self.own_name())),
            (None, Some(toolset)) => Some(ToolSource::toolset(toolset.as_str(), self.own_name())),
            (None, None) => None,
        };
        let call = RuleCall::new(&self.tool, &self.args).directory(&self.directory);
        let origin = self.origins.as_ref().map(ReadRecord::origin);
        RuleCall { source, origin, ..call }
    }

    /// The name that the tool has in its toolset or at its server.
    pub(super) fn own_name(&self) -> &str {
        self.own_name.as_deref().unwrap_or(self.tool.as_str())
    }
}

impl DecisionJournal {
    /// A journal in this file. Entries are kept for 30 days.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keep: Duration::from_secs(30 * DAY), writing: Arc::default() }
    }

    /// Sets for how many days entries are kept.
    #[must_use]
    pub fn keep_days(mut self, days: u32) -> Self {
        self.keep = Duration::from_secs(u64::from(days) * DAY);
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

    /// Removes old entries, about once a day: when the first one is older by a day than the journal keeps entries. Only that
    /// one is read to find out.
    ///
    /// # Errors
    /// As [`prune`](Self::prune).
    pub fn prune_daily(&self) -> std::io::Result<usize> {
        let file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut line = Vec::new();
        BufReader::new(file).take(MAX_LINE).read_until(b'\n', &mut line)?;
        let first: Option<JournalEntry> = serde_json::from_slice(&line).ok();
        let oldest = now().saturating_sub(self.keep.as_secs() + DAY);
        match first.is_none_or(|first| first.at < oldest) && !line.is_empty() {
            true => self.prune(),
            false => Ok(0),
        }
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
