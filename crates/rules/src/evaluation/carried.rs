//! Commands that get what they run, send or delete from another piece of their text, so that no file in their own words is all
//! that decides what they do (rule R6).
//!
//! | text | the command | gets |
//! |---|---|---|
//! | `cat d.json \| curl -d @- URL` | `curl` | the output of what stands before it in the pipeline |
//! | `x=$(<s.sh); sh -c "$x"` | `sh` | the value of a variable |
//! | `while read l; do $l; done < s.sh`, `{ sh; } < s.sh` | `$l`, `sh` | the input of the compound command around it |
//! | `xargs rm < names` | `rm` | operands |
//!
//! This is read from the text alone, and roughly: a command that gets nothing may be taken for one that does, and is then
//! bound to more files.

use crate::calls::command::CommandView;
use countersign_shell::Part;

/// Programs that give the command which they run words of their input.
const FEEDERS: &[&str] = &["xargs", "gxargs", "parallel"];

/// Words that begin a compound command, in which each command has the input of the whole.
const OPENERS: &[&str] =
    &["{", "case", "do", "elif", "else", "for", "if", "then", "until", "while"];

/// Words that end one, behind which its redirections stand.
const CLOSERS: &[&str] = &["}", "done", "esac", "fi"];

/// Returns `true` if a command, one of a text's, may get what it works with from another piece of the text.
pub(super) fn gets_more(view: &CommandView, at: usize, part: &Part) -> bool {
    let is_fed = || part.wrapped_by().is_some_and(|by| FEEDERS.contains(&by));
    let before = || view.text.get(..part.span().start).unwrap_or(&view.text);
    let after = || view.text.get(part.span().end..).unwrap_or(&view.text);
    uses_value(&view.text_of(at))
        || is_fed()
        || is_in_pipeline(before())
        || is_in_redirected(after())
        // The commands of a function have the input of its call.
        || view.text.contains("()")
        || view.text.contains("function ")
}

/// Returns `true` if a text uses a value that stands elsewhere: `$x`, `${x}`, `$1`, but not `$(…)`.
fn uses_value(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| !matches!(text.as_bytes().get(at + 1), Some(b'(') | None))
}

/// Returns `true` if the command that follows a text is fed by a pipe: `cat x |`, `cat x | {`, `cat x | while true; do`.
fn is_in_pipeline(before: &str) -> bool {
    let bytes = before.as_bytes();
    let is_pipe = |at: &usize| {
        let (last, next) = (at.checked_sub(1).and_then(|it| bytes.get(it)), bytes.get(at + 1));
        bytes.get(*at) == Some(&b'|') && !matches!(last, Some(b'|' | b'>')) && next != Some(&b'|')
    };
    let Some(pipe) = (0..bytes.len()).rev().find(is_pipe) else { return false };
    // `|&` is a pipe, too, and a line may end behind it.
    let tail = before.get(pipe + 1..).unwrap_or_default();
    let tail = tail.strip_prefix('&').unwrap_or(tail);
    let tail = tail.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
    let is_next = tail.starts_with('#') || !tail.contains([';', '\n', '&']) && !tail.contains("||");
    let is_opener = |word: &str| OPENERS.contains(&word);
    is_next || tail.contains('(') || tail.split([' ', '\t', '\n', ';']).any(is_opener)
}

/// Returns `true` if the text behind a command ends a compound command and redirects its input: `; done < x`, `; } <<< "$(<x)"`.
fn is_in_redirected(after: &str) -> bool {
    let is_input = |at: usize| {
        let rest = after.get(at..).unwrap_or_default();
        let behind = after.get(..at).is_some_and(|it| it.ends_with('<'));
        rest.starts_with("<<<") || !behind && !rest.starts_with("<<")
    };
    let is_closed = |text: &str| {
        let is_closer = |word: &str| CLOSERS.contains(&word);
        text.contains(')') || text.split([' ', '\t', '\n', ';', '<']).any(is_closer)
    };
    let mut inputs = after.match_indices('<').map(|(at, _)| at).filter(|at| is_input(*at));
    inputs.next_back().and_then(|at| after.get(..at)).is_some_and(is_closed)
}
