//! The keys of the terminal, and its raw mode.
//!
//! A blocking read of a key cannot be cancelled from another thread, so the keys are polled: every tick asks whether
//! the answer is still needed and whether stdin is still a terminal. A run that was dropped thereby frees the terminal
//! within a tick, and the next batch can be asked about.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, is_raw_mode_enabled};

use super::screen::Gone;

/// The interval of the checks whether the answer is still needed and the terminal still connected.
///
/// Below what a person notices, and rare enough that a waiting question costs no measurable processor time.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// The shortest time to wait for a key: crossterm reads nothing when the time is zero.
const SHORTEST: Duration = Duration::from_millis(5);

/// The keys of the terminal, for as long as the answers are needed.
pub(super) struct Input {
    abandoned: Arc<AtomicBool>,
}

impl Input {
    pub(super) fn new(abandoned: Arc<AtomicBool>) -> Self {
        Self { abandoned }
    }

    /// Whether the run was dropped, and needs no answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits for the next event; `None` when there is none within the time.
    ///
    /// Without a time it waits until there is an event or a reason to stop. A hang-up gives no event on every system;
    /// that stdin has ceased to be a terminal is what all of them have in common.
    pub(super) fn event(&self, within: Option<Duration>) -> Result<Option<Event>, Gone> {
        let start = Instant::now();
        loop {
            if self.is_abandoned() {
                return Err(Gone::Abandoned);
            }
            let left = within.map(|within| within.saturating_sub(start.elapsed()));
            if event::poll(left.unwrap_or(TICK).clamp(SHORTEST, TICK))
                .map_err(|error| failed(&error))?
            {
                return event::read().map(Some).map_err(|error| failed(&error));
            }
            // A terminal that hangs up reports no event, but stdin is no longer a terminal then.
            if !io::stdin().is_terminal() {
                return Err(Gone::EndOfInput);
            }
            if within.is_some_and(|within| start.elapsed() >= within) {
                return Ok(None);
            }
        }
    }
}

/// Reports an error of the terminal, which ends the questions.
pub(super) fn failed(error: &io::Error) -> Gone {
    tracing::warn!(%error, "the terminal failed");
    Gone::Failed
}

/// Raw mode with bracketed paste, until this value is dropped.
///
/// Raw mode is a state of the terminal and not of the process, so a program that had it on before (a full-screen
/// program that embeds an agent) keeps it. Bracketed paste marks pasted text as such, without which a paste would be a
/// row of keys that decide.
/// Whether raw mode was on before: it stays on then.
pub(super) struct RawMode {
    before: bool,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        let before = is_raw_mode_enabled()?;
        if !before {
            enable_raw_mode()?;
        }
        let raw = Self { before };
        execute!(io::stderr(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // An error is ignored: the terminal may be gone.
        let _ = execute!(io::stderr(), DisableBracketedPaste);
        if !self.before {
            let _ = disable_raw_mode();
        }
    }
}
