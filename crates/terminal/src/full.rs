//! The full screen on a real terminal: draws frames, reads keys, and gives the terminal back in every case.
//!
//! We leave in the reverse order of entering: first the alternate screen, then the raw mode. So a shell prompt after a
//! panic is on the screen that was there before, with line editing as before. All of this is in `Drop`, as a run may be
//! dropped at any `await`, and the thread may panic.
//!
//! We draw everything to stderr, because stdout may be the output of the program, which the person redirects.

use std::env;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crossterm::event::{Event, KeyEventKind};
use crossterm::terminal::size;

use super::dialogue::CallAnswers;
use super::editor;
use super::granting::{CallOffers, Chosen};
use super::head::ReviewHead;
use super::input::{Input, RawMode, failed};
use super::list::List;
use super::mode::AfterKey;
use super::screen::Gone;
use super::teardown::{self, TerminalMode};
use countersign::deferred::DeferredToolRequests;
use countersign::show;

/// The full screen, until this value is dropped. The raw mode ends after the screen.
struct Full {
    _screen: TerminalMode,
    _raw: RawMode,
}

impl Full {
    fn enter() -> io::Result<Self> {
        let raw = RawMode::enter()?;
        Ok(Self { _screen: TerminalMode::full()?, _raw: raw })
    }
}

/// Asks about every call on a full screen. The inner error when nothing is decided, as the person stopped or the terminal is
/// gone.
///
/// We write the last line (`Approved: 3. Denied: 1.`) after we have left the screen. So it remains in the
/// scroll-back, and the person has a record of what was decided: the full screen leaves nothing behind.
pub(super) fn ask<'a>(
    requests: &'a DeferredToolRequests,
    agent: &str,
    asking: (CallOffers, Option<ReviewHead>),
    arming: Duration,
    abandoned: Arc<AtomicBool>,
) -> io::Result<Result<(CallAnswers<'a>, Chosen), Gone>> {
    let (offers, head) = asking;
    let reviewing = head.is_some();
    let command = editor::command();
    let mut screen = FullScreen {
        list: List::new(requests, agent, arming, command.is_some())
            .offering(offers)
            .reviewing(head),
        input: Input::new(abandoned),
        command,
        colored: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        full: Some(Full::enter()?),
        size: (0, 0),
    };
    let ended = screen.run();
    screen.full = None;
    let (yes, no, open) = screen.list.batch.counts();
    match ended {
        Ok(()) => {
            if !reviewing {
                tell(&format!("Approved: {yes}. Denied: {no}."));
            }
            Ok(screen.list.ended().ok_or(Gone::Failed))
        }
        Err(gone) => {
            if let Some(told) = gone.told(yes + no + open, reviewing) {
                tell(&told);
            }
            Ok(Err(gone))
        }
    }
}

/// Writes a line below what the terminal showed before. The line stays.
fn tell(line: &str) {
    use io::Write as _;
    // An error is ignored: the terminal may be gone, and the calls are decided.
    let _ = writeln!(io::stderr(), "{line}");
}

struct FullScreen<'a> {
    list: List<'a>,
    input: Input,
    command: Option<String>,
    colored: bool,
    full: Option<Full>,
    size: (u16, u16),
}

/// The interval of looks at the size of the window.
const SIZE_INTERVAL: Duration = Duration::from_millis(500);

/// The columns and rows of the window. Some terminals say that they have no size.
fn window() -> io::Result<(u16, u16)> {
    size().map(|now| if now.0 == 0 || now.1 == 0 { (80, 24) } else { now })
}

impl FullScreen<'_> {
    fn run(&mut self) -> Result<(), Gone> {
        loop {
            self.draw().map_err(|error| failed(&error))?;
            let next = match self.event()? {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => self.list.key(key)?,
                Some(Event::Paste(text)) => {
                    self.list.paste(&text);
                    AfterKey::Stay
                }
                _ => AfterKey::Stay,
            };
            match next {
                AfterKey::Stay => {}
                AfterKey::Edit => self.edit()?,
                AfterKey::Done => return Ok(()),
            }
        }
    }

    /// Waits for the next event. There is none where the screen has to be drawn again: once keys decide, and where the window
    /// has another size, which not every terminal reports.
    fn event(&self) -> Result<Option<Event>, Gone> {
        loop {
            let inert = self.list.inert();
            let event = self.input.event(Some(inert.unwrap_or(SIZE_INTERVAL)))?;
            let is_due = || inert.is_some() || teardown::lost().is_some();
            if event.is_some() || is_due() || window().is_ok_and(|now| now != self.size) {
                return Ok(event);
            }
        }
    }

    /// A change of size moves every row, so the keys that decide wait again. Otherwise a person who presses `a` while
    /// the window changes would mean what stood at that place before (rule S3).
    fn draw(&mut self) -> io::Result<()> {
        if teardown::take_again()? {
            self.list.rearm();
        }
        let now = window()?;
        if now != self.size {
            // Everything has moved.
            self.size = now;
            self.list.rearm();
        }
        let frame = self.list.frame(usize::from(now.0), usize::from(now.1));
        frame.draw(&mut io::stderr().lock(), now, self.colored)
    }

    /// Starts the editor, with the terminal as it was before.
    ///
    /// We leave the screen for the editor, and enter it again afterwards. We read the file only if the editor ended
    /// with success, so `:cq` in vi drops the edit.
    fn edit(&mut self) -> Result<(), Gone> {
        let Some(command) = self.command.clone() else { return Ok(()) };
        let Some(entry) = self.list.batch.selected() else { return Ok(()) };
        let Some(call) = entry.calls.first() else { return Ok(()) };
        let draft = entry.draft.clone();
        let text = draft.unwrap_or_else(|| editor::in_lines(&show::json(call.args())));
        self.full = None;
        let edited = editor::edit(&command, &text, &self.input)?;
        self.full = Some(Full::enter().map_err(|error| failed(&error))?);
        match edited {
            Ok(text) => self.list.edited(&text),
            Err(error) => {
                let error = show::escape(&error.to_string());
                self.list.message = format!("Nothing was edited: {error}.");
                self.list.rearm();
            }
        }
        Ok(())
    }
}
