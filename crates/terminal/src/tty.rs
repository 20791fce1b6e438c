//! The terminal on stdin and stderr, as the screen of a dialogue.
//!
//! This mode is for a screen reader, a dumb terminal and a log. We print everything once, and it stays: we draw over no
//! row, and wrap text instead of cutting it.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crossterm::cursor::{MoveToColumn, RestorePosition, SavePosition};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::Print;
use crossterm::terminal::{Clear, ClearType, size};
use crossterm::{execute, queue};

use super::editor;
use super::input::{Input, RawMode, failed};
use super::line::{Line, LineStep};
use super::screen::{Gone, LinePrompt, LineUse, Screen};
use super::teardown;

/// The terminal on stdin and stderr.
pub(super) struct Terminal {
    arming: Duration,
    input: Input,
    asked: bool,
    /// The command of the person's editor, if one is set.
    command: Option<String>,
    raw: Option<RawMode>,
}

impl Terminal {
    pub(super) fn open(arming: Duration, abandoned: Arc<AtomicBool>) -> io::Result<Self> {
        let (command, raw) = (editor::command(), Some(RawMode::enter()?));
        Ok(Self { arming, input: Input::new(abandoned), asked: false, command, raw })
    }

    /// Drops keys and pasted text until no key has been pressed for the arming time. Returns the number of dropped
    /// characters.
    ///
    /// We do this before each question (rule S3). The first question of a batch appears while the person may be typing
    /// elsewhere, so it waits the full time. Later ones come when the person sits there and has just answered. Ctrl-C
    /// always works.
    fn arm(&mut self) -> Result<usize, Gone> {
        let quiet = if self.asked { self.arming / 3 } else { self.arming };
        self.asked = true;
        let mut dropped = 0;
        while let Some(event) = self.input.event(Some(quiet))? {
            match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let control = key.modifiers.contains(KeyModifiers::CONTROL);
                    if control && key.code == KeyCode::Char('c') {
                        // Ctrl-C approves nothing, so it need not be protected against keys pressed too early.
                        return Err(Gone::Interrupted);
                    }
                    dropped += 1;
                }
                Event::Paste(text) => dropped += text.chars().count(),
                _ => {}
            }
        }
        Ok(dropped)
    }

    /// Clears a line of arguments after it was read: it may show secrets, which the printed call masks.
    fn read(&mut self, prompt: &LinePrompt<'_>) -> Result<String, Gone> {
        let mut line = Line::new(prompt.initial);
        loop {
            if teardown::take_again().map_err(|error| failed(&error))? {
                self.arm()?;
            }
            self.draw(prompt.label, &line).map_err(|error| failed(&error))?;
            match self.input.event(None)? {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match line.key(key) {
                    LineStep::More => {}
                    LineStep::Done => return Ok(line.text()),
                    LineStep::Gone(gone) => return Err(gone),
                },
                Some(Event::Paste(text)) if prompt.kind != LineUse::Choice => line.insert(&text),
                // Text pasted at a choice is ignored, and so are other events, such as a resize.
                _ => {}
            }
        }
    }

    fn draw(&self, label: &str, line: &Line) -> io::Result<()> {
        let (before, after) = line.window(self.width().saturating_sub(label.len() + 1));
        let mut out = io::stderr().lock();
        queue!(out, MoveToColumn(0), Print(label), Print(before), SavePosition)?;
        queue!(out, Print(after), Clear(ClearType::UntilNewLine), RestorePosition)?;
        out.flush()
    }
}

impl Screen for Terminal {
    fn width(&self) -> usize {
        size()
            .ok()
            .map(|(columns, _)| usize::from(columns))
            .filter(|columns| *columns > 0)
            .unwrap_or(80)
    }

    fn show(&mut self, text: &str) -> Result<(), Gone> {
        let mut out = io::stderr().lock();
        let lines = text.lines().try_for_each(|line| write!(out, "{line}\r\n"));
        lines.and_then(|()| out.flush()).map_err(|error| failed(&error))
    }

    /// Gives the editor the terminal as it was before.
    fn edit(&mut self, text: &str) -> Result<Option<io::Result<String>>, Gone> {
        let Some(command) = &self.command else { return Ok(None) };
        self.raw = None;
        let edited = editor::edit(command, text, &self.input)?;
        self.raw = Some(RawMode::enter().map_err(|error| failed(&error))?);
        Ok(Some(edited))
    }

    fn ask(&mut self, prompt: &LinePrompt<'_>) -> Result<String, Gone> {
        let dropped = self.arm()?;
        if dropped > 0 {
            let keys = if dropped == 1 { "key" } else { "keys" };
            self.show(&format!("(Ignored {dropped} {keys} pressed before the question.)"))?;
        }
        let answer = self.read(prompt);
        if prompt.kind == LineUse::Args {
            execute!(io::stderr(), MoveToColumn(0), Clear(ClearType::CurrentLine))
                .map_err(|error| failed(&error))?;
        } else {
            self.show("\n")?;
        }
        answer
    }
}
