//! The arguments of a call in the person's own editor.
//!
//! The arguments may hold secrets and the person may be away for an hour, so:
//!
//! - we create a new file, with mode 600, under a name that no one can guess or prepare (`create_new` fails if there
//!   is a link already);
//! - we remove it when the value is dropped, even if the run is dropped or the editor fails;
//! - we kill the editor when the answer is not needed any more: it would still read from the terminal that the next
//!   question needs.
//!
//! We treat the text that the editor leaves like any other: we parse it, show it with the whole call, and a key approves
//! it. To end the editor approves nothing.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command};

use uuid::Uuid;

use super::input::{Input, TICK};
use super::screen::Gone;

/// The editor's command line: `$VISUAL`, else `$EDITOR`; `None` if neither is set.
pub(super) fn command() -> Option<String> {
    let set = |name| env::var(name).ok().filter(|command| !command.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Lets the person edit a text with this command. The file is private, and removed afterwards.
///
/// The outer error ends the dialogue. The inner one is a message, after which the person can try again. The shell
/// gets the path as an argument (`"$@"`) and not inside of the command text, so a directory with a space or a quote
/// in its name cannot become a part of the command.
pub(super) fn edit(command: &str, text: &str, input: &Input) -> Result<io::Result<String>, Gone> {
    let file = match DraftFile::write(text) {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    // A command line may have arguments and quotes, so a shell reads it.
    let mut shell = Command::new(if cfg!(windows) { "cmd" } else { "sh" });
    match cfg!(windows) {
        true => shell.args(["/C", command]).arg(&file.0),
        false => shell.args(["-c", &format!("{command} \"$@\""), "editor"]).arg(&file.0),
    };
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error)),
    };
    match ended(&mut child, input)? {
        Ok(true) => Ok(fs::read_to_string(&file.0)),
        Ok(false) => Ok(Err(io::Error::other("the editor has failed"))),
        Err(error) => Ok(Err(error)),
    }
}

/// Waits for the end of the editor, and says whether it succeeded. It is killed if the answer is no longer needed.
fn ended(child: &mut Child, input: &Input) -> Result<io::Result<bool>, Gone> {
    loop {
        match child.try_wait() {
            Ok(None) if input.is_abandoned() => {
                // An error is ignored: the editor may have ended already.
                let _ = child.kill().and_then(|()| child.wait());
                return Err(Gone::Abandoned);
            }
            Ok(None) => std::thread::sleep(TICK),
            Ok(Some(status)) => return Ok(Ok(status.success())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// A file with the text, removed when it is dropped.
struct DraftFile(PathBuf);

impl DraftFile {
    fn write(text: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("arguments-{}.json", Uuid::now_v7()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let draft = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // An error is ignored: the editor may have removed the file.
        let _ = fs::remove_file(&self.0);
    }
}

/// JSON of one line with a line for each value. Every other character stays as it is.
///
/// A parser and a printer would normalize: `1.0` could become `1`, a number beyond 64 bits another number, and a key
/// that is there twice one key. Then the person would approve an edit that changes more than they have typed. So we do
/// not parse, and only insert white space between tokens:
///
/// `{"a":[1,2],"b":"x,{y"}` becomes
///
/// ```text
/// {
///   "a": [
///     1,
///     2
///   ],
///   "b": "x,{y"
/// }
/// ```
pub(super) fn in_lines(json: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let (mut within, mut escaped) = (false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if within {
            out.push(c);
            within = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        let end = |c: &char| matches!(c, '}' | ']');
        match c {
            '{' | '[' if chars.peek().is_some_and(end) => out.push(c),
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' if !out.ends_with(['{', '[']) => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                within = c == '"';
                out.push(c);
            }
        }
    }
    out.push('\n');
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_edited_with_a_line_for_each_value() {
        assert_eq!(in_lines("{}"), "{}\n");
        assert_eq!(
            in_lines(r#"{"a":"{\",:\\","b":[1,{"c":[]}]}"#),
            "{\n  \"a\": \"{\\\",:\\\\\",\n  \"b\": [\n    1,\n    {\n      \"c\": []\n    }\n  ]\n}\n"
        );
    }
}
