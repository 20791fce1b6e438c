//! The files in temporary folders that approved commands of a session write.
//!
//! After a person has approved `make > /tmp/out.txt`, the hook must not ask about `tail /tmp/out.txt`. So the hook notes the
//! targets of redirections when it lets such a command run, beside its notes about [allowed](super::allowed) calls. Later, a
//! file counts if such a command can have left it: it is a regular file of this user with one name, no link, and not older
//! than the note. A socket, a token of another program and a file of another user do not count.
//!
//! | redirection | noted |
//! |---|---|
//! | `make > /tmp/out.txt` | yes |
//! | `make >> /tmp/out.txt` | no: the file may have been another program's before |
//! | `make > $x`, `make > ~/x`, `make > /tmp/../x` | no |

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::allowed::AllowedCalls;
use super::key;
use crate::config::private;
use crate::hook::clients::Client;
use crate::hook::payload::HookCall;
use countersign_shell::{
    Commands, Dialect, RedirectionTarget, SimpleCommand, bounded_text, lexically_normal,
};

/// The number of files of a session that are remembered.
const MAX_FILES: usize = 1000;

/// The length of the text with them, in bytes.
const MAX_TEXT: u64 = 1 << 20;

/// Temporary folders.
const FOLDERS: &[&str] = &["/tmp/", "/var/tmp/"];

impl AllowedCalls {
    /// Notes the temporary files that a command writes, if it may run or has run. A failure costs a question later.
    pub(crate) fn note_written(&self, call: &HookCall, command: Option<&str>, has_run: bool) {
        let (Some(session), Some(command)) = (&call.session, command) else { return };
        // Most commands name no such place, and are not read again.
        if !FOLDERS.iter().any(|folder| command.contains(folder)) {
            return;
        }
        let found = targets(command);
        let file = self.written(call.client, session);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = if has_run { 0 } else { now.as_secs() };
        let mut text = bounded_text(&file, MAX_TEXT).ok().flatten().unwrap_or_default();
        let left = MAX_FILES.saturating_sub(text.lines().count());
        for path in found.iter().take(left) {
            text += &format!("{} {path}\n", since);
        }
        if !found.is_empty()
            && let Err(error) = private::write(&file, &text)
        {
            tracing::debug!(target: "countersign::hook", %error, "a written file was not noted");
        }
    }

    /// The temporary files that commands of a session have written, and that are still as such commands leave
    /// them.
    pub(crate) fn written_files(&self, client: Client, session: &str) -> Vec<PathBuf> {
        let text = bounded_text(&self.written(client, session), MAX_TEXT).ok().flatten();
        let text = text.unwrap_or_default();
        let noted = text.lines().filter_map(|line| {
            let (at, path) = line.split_once(' ')?;
            Some((Duration::from_secs(at.parse().ok()?), Path::new(path)))
        });
        let left = noted.filter(|(at, path)| is_left(path, *at)).map(|(_, path)| path.to_owned());
        left.collect()
    }

    fn written(&self, client: Client, session: &str) -> PathBuf {
        self.folder().join(key::run(client, session)).join("written")
    }
}

/// The temporary files that a text writes anew by redirections.
fn targets(command: &str) -> Vec<String> {
    let Ok(commands) = Commands::parse(command, Dialect::Bash) else { return Vec::new() };
    let redirections = commands.simple_commands().flat_map(SimpleCommand::redirections);
    let words = redirections.filter_map(|it| match it.target() {
        RedirectionTarget::Write(word) | RedirectionTarget::WriteAll(word) => word.literal(),
        _ => None,
    });
    words.filter(|path| is_temporary(path)).map(str::to_owned).collect()
}

fn is_temporary(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+');
    FOLDERS.iter().any(|folder| path.starts_with(folder))
        && path.chars().all(plain)
        && lexically_normal(Path::new(path)) == Path::new(path)
}

/// Returns `true` if a command of this user has left the file since.
#[cfg(unix)]
fn is_left(path: &Path, since: Duration) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let changed = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    // Links on the way lead elsewhere.
    let is_real = path.canonicalize().is_ok_and(|real| real == path);
    is_real
        && found.is_file()
        && found.nlink() == 1
        && found.uid() == rustix::process::geteuid().as_raw()
        && changed.is_some_and(|at| at.as_secs() >= since.as_secs())
}

#[cfg(not(unix))]
fn is_left(_: &Path, _: Duration) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::targets;

    #[test]
    fn only_what_a_redirection_writes_anew_in_a_temporary_folder_is_noted() {
        assert_eq!(
            targets("make > /tmp/a.txt 2>&1; (ls | sort > /var/tmp/b)"),
            ["/tmp/a.txt", "/var/tmp/b"]
        );
        for command in [
            "make >> /tmp/a.txt",
            "make > /tmp/../etc/x",
            "make > /tmp/$x",
            "make > \"/tmp/a b\"",
            "make > /users/ann/x",
            "cat /tmp/a.txt",
            "make > /tmp/a.txt &",
        ] {
            assert!(targets(command).is_empty(), "{command}");
        }
    }
}
