//! The model's knowledge: its calls and their results, read from the conversation.

use std::collections::{BTreeMap, BTreeSet};

use countersign::message::{RequestPart, ReturnKind};
use countersign::{Args, Message};
use serde_json::Value;

use crate::tools::{Entry, Kind, Listing};

/// The maximum number of folders that are listed.
const MOST_FOLDERS: usize = 40;

/// A call of an earlier response, with its result.
pub(super) struct PastCall {
    id: String,
    pub(super) tool: String,
    pub(super) args: Args,
    pub(super) kind: ReturnKind,
    pub(super) content: Value,
    /// The index of the message that made the call.
    response: usize,
}

impl PastCall {
    /// The path in the arguments, as the model wrote it.
    pub(super) fn target(&self) -> &str {
        self.args.str("path").or(self.args.str("from")).unwrap_or_default()
    }

    /// The result, if it is a text; otherwise an empty text.
    pub(super) fn said(&self) -> &str {
        self.content.as_str().unwrap_or_default()
    }

    pub(super) fn is_change(&self) -> bool {
        matches!(self.tool.as_str(), "delete_file" | "move_file" | "write_file")
    }
}

/// The state of the folder, as far as the conversation shows it.
#[derive(Default)]
pub(super) struct Knowledge {
    pub(super) calls: Vec<PastCall>,
    pub(super) files: BTreeSet<String>,
    /// The contents of the files that were read, by path.
    pub(super) texts: BTreeMap<String, String>,
    folders: Vec<String>,
    links: Vec<String>,
}

impl Knowledge {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut known = Self::default();
        for (response, message) in messages.iter().enumerate() {
            known.calls.extend(message.tool_calls().map(|call| PastCall {
                id: call.id().into(),
                tool: call.name().into(),
                args: call.args().clone(),
                kind: ReturnKind::Interrupted,
                content: Value::Null,
                response,
            }));
            known.results(message);
        }
        known.understand();
        known
    }

    fn results(&mut self, message: &Message) {
        let Message::Request { parts } = message else { return };
        for part in parts {
            let RequestPart::ToolReturn { content, outcome, tool_call_id, .. } = part else {
                continue;
            };
            for past in self.calls.iter_mut().filter(|past| past.id == *tool_call_id) {
                past.content = content.clone();
                past.kind = *outcome;
            }
        }
    }

    fn understand(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        for past in calls.iter().filter(|past| past.kind == ReturnKind::Success) {
            if past.tool == "read_file" {
                self.texts.insert(past.target().to_owned(), past.said().to_owned());
            }
            if let Ok(listing) = serde_json::from_value::<Listing>(past.content.clone()) {
                self.list(listing);
            }
        }
        self.calls = calls;
    }

    fn list(&mut self, listing: Listing) {
        // The files behind a link have paths of their own.
        if self.links.contains(&listing.path) {
            return;
        }
        for Entry { name, kind } in listing.entries {
            let path = match listing.path.as_str() {
                "." => name,
                folder => format!("{folder}/{name}"),
            };
            match kind {
                Kind::File => drop(self.files.insert(path)),
                Kind::Folder => self.folders.push(path),
                Kind::Link => self.links.push(path),
                Kind::Other => {}
            }
        }
    }

    /// The paths that are not listed yet: the workspace itself, then folders and links.
    pub(super) fn to_list(&self) -> Vec<&str> {
        if self.calls.is_empty() {
            return vec!["~"];
        }
        let known = self.folders.iter().chain(&self.links).take(MOST_FOLDERS);
        let of_others = ["node_modules", "target", ".git"];
        known
            .map(String::as_str)
            .filter(|path| !path.split('/').any(|part| of_others.contains(&part)))
            .filter(|path| !self.tried("list_files", |past| past.target() == *path))
            .collect()
    }

    pub(super) fn tried(&self, tool: &str, which: impl Fn(&PastCall) -> bool) -> bool {
        self.calls.iter().any(|past| past.tool == tool && which(past))
    }

    pub(super) fn tried_a_change(&self) -> bool {
        self.calls.iter().any(PastCall::is_change)
    }

    /// The calls of the last response that has any.
    pub(super) fn latest(&self) -> impl Iterator<Item = &PastCall> {
        let latest = self.calls.last().map(|past| past.response);
        self.calls.iter().filter(move |past| Some(past.response) == latest)
    }
}
