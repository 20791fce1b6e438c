//! The calls that the hook has allowed, until the client reports their end.
//!
//! An allowed call has no ask. When the client reports its end, nothing says that it is the call that we have allowed:
//! another hook of the client may have put other arguments in its place. We cannot let the rules decide again, as the
//! call has changed what they look at: a file that it has made is there, for example. So the hook notes what it allows,
//! as an empty file whose name is a digest of the call with the arguments that may run, and the report takes the note
//! away.
//!
//! If the note is missing or could not be written, nothing is allowed or denied by that: we look at the report in the
//! slow way, by the store and the rules.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::key;
use crate::config::private;
use crate::hook::clients::Client;
use crate::hook::digest::digest;
use crate::hook::payload::HookCall;

/// After this time the notes of a session are removed: not every client says that a session has ended.
const OLDEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// A directory with the notes: one folder for each session.
#[derive(Clone)]
pub(crate) struct AllowedCalls(PathBuf);

impl AllowedCalls {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The directory, with a folder for each session.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Notes that a call may run with these arguments.
    pub(crate) fn note(&self, call: &HookCall, args: &Map<String, Value>) {
        let Some(file) = self.file(call, args) else { return };
        let Some(folder) = file.parent() else { return };
        let made = match private::create(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.begin_session(folder).and_then(|()| private::create(&file))
            }
            made => made,
        };
        if let Err(error) = made {
            tracing::debug!(target: "countersign::hook", %error, "an allowed call was not noted");
        }
    }

    /// Takes the note of a call away that has ended; whether there was one.
    pub(crate) fn take(&self, call: &HookCall) -> bool {
        self.file(call, &call.args).is_some_and(|file| fs::remove_file(file).is_ok())
    }

    /// Notes about what the client was told to ask. `None` where that is not possible.
    pub(crate) fn note_asked(&self, call: &HookCall, question: &str) -> Option<()> {
        let file = self.file_of("asked", call, &call.args)?;
        private::write(&file, question).ok()
    }

    /// Takes the note away about what the client was told to ask.
    pub(crate) fn take_asked(&self, call: &HookCall) -> Option<String> {
        let file = self.file_of("asked", call, &call.args)?;
        let text = fs::read_to_string(&file).ok()?;
        fs::remove_file(file).is_ok().then_some(text)
    }

    /// Takes the notes of an equal earlier call away. A person may have refused that call in the client, which
    /// reports nothing then. Not every client tells calls apart by an id, so those notes would answer for this call.
    pub(crate) fn begin_call(&self, call: &HookCall) {
        self.take(call);
        self.take_asked(call);
    }

    /// Takes all notes of a session away.
    pub(crate) fn forget(&self, client: Client, session: &str) {
        let _ = fs::remove_dir_all(self.0.join(key::run(client, session)));
    }

    fn file(&self, call: &HookCall, args: &Map<String, Value>) -> Option<PathBuf> {
        self.file_of("allowed", call, args)
    }

    fn file_of(&self, kind: &str, call: &HookCall, args: &Map<String, Value>) -> Option<PathBuf> {
        let run = key::run(call.client, call.session.as_deref()?);
        let name = digest(json!([kind, key::worker(call, args)]));
        Some(self.0.join(run).join(name))
    }

    /// The folder of a session that begins, after those of sessions that are long over were removed.
    fn begin_session(&self, folder: &Path) -> io::Result<()> {
        private::directory(folder).map_err(io::Error::other)?;
        let now = SystemTime::now();
        for other in fs::read_dir(&self.0)?.flatten() {
            let changed = other.metadata().and_then(|it| it.modified());
            let age = changed.ok().and_then(|at| now.duration_since(at).ok());
            if age.is_some_and(|age| age > OLDEST) {
                let _ = fs::remove_dir_all(other.path());
            }
        }
        Ok(())
    }
}
