//! The keys of the terminal, and its raw mode.
//!
//! Another thread cannot cancel a blocking read of a key. So we poll: at every tick we look whether the answer is
//! still needed and whether stdin is still a terminal. When a run is dropped, the terminal is free within a tick, and
//! the next batch can use it.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event};
use crossterm::terminal::is_raw_mode_enabled;

use super::screen::Gone;
use super::teardown::{self, Signals, TerminalMode};

/// The interval of the checks whether the answer is still needed and the terminal still connected.
///
/// A person does not notice such a time, and a waiting question costs no measurable processor time.
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

    /// Returns `true` if the run was dropped, and needs no answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits for the next event; `None` if there is none within the time, or if a panic has given the terminal back.
    pub(super) fn event(&self, within: Option<Duration>) -> Result<Option<Event>, Gone> {
        let start = Instant::now();
        loop {
            if self.is_abandoned() {
                return Err(Gone::Abandoned);
            }
            if Signals::came() {
                return Err(Gone::Ended);
            }
            match teardown::lost() {
                Some(true) => return Ok(None),
                // Keys that are pressed now are for no question.
                Some(false) => {
                    thread::sleep(TICK);
                    continue;
                }
                None => {}
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
pub(super) struct RawMode(#[expect(dead_code, reason = "it is dropped")] TerminalMode);

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        TerminalMode::keys(!is_raw_mode_enabled()?).map(Self)
    }
}
