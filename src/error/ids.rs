//! Formats call ids and tool names in error messages.

use std::fmt;

/// Writes the ids of calls after a noun: call `a`, or calls `a`, `b`.
pub(super) struct Ids<'a>(pub(super) &'a [String]);

impl fmt::Display for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "call " } else { "calls " })?;
        for (i, id) in self.0.iter().enumerate() {
            write!(f, "{}`{}`", if i == 0 { "" } else { ", " }, id.escape_debug())?;
        }
        Ok(())
    }
}

/// Writes the ids of calls in parentheses after a sentence; nothing if there are none.
pub(super) struct IdsAfter<'a>(pub(super) &'a [String]);

impl fmt::Display for IdsAfter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", Ids(self.0)) }
    }
}

/// Writes the ids of calls with a verb: call `a` is, or calls `a`, `b` are.
pub(super) struct IdsAre<'a>(pub(super) &'a [String]);

impl fmt::Display for IdsAre<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Ids(self.0), if self.0.len() == 1 { "is" } else { "are" })
    }
}

/// Writes why calls are still pending at the end of a run.
pub(super) struct NotExpected<'a> {
    pub(super) ids: &'a [String],
    pub(super) left_by: Option<&'a str>,
    pub(super) again: &'a [String],
}

impl fmt::Display for NotExpected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waiting for an answer", IdsAre(self.ids))?;
        let left: Vec<_> = self.ids.iter().filter(|id| !self.again.contains(id)).cloned().collect();
        match self.left_by {
            Some(left_by) if !left.is_empty() => write!(f, "; {left_by} left {}", Ids(&left))?,
            _ => {}
        }
        if !self.again.is_empty() {
            let again = Ids(self.again);
            write!(f, "; {again} deferred again after the answer, and a handler is asked once")?;
        }
        f.write_str(match self.left_by {
            None if !left.is_empty() => ": give the run a deferred tool handler, or ",
            Some(_) if !left.is_empty() => ": answer all of them, or ",
            _ => ": ",
        })?;
        f.write_str("let the run end with deferred calls (`.output(text().or_deferred())`)")
    }
}

/// Writes the tool names that are nearest to a misspelled one.
pub(super) struct Nearest<'a>(pub(super) &'a [String]);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            self.0.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
        match &*names {
            [] => f.write_str("there are no tools"),
            [name] => write!(f, "the nearest is {name}"),
            _ => write!(f, "the nearest are {}", names.join(", ")),
        }
    }
}
