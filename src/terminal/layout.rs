//! What the full screen shows: the list, the details of the selected call, a message, and the keys.
//!
//! From the top to the bottom: the header (who asks, where in the list, how many are answered), at most a third of the
//! rest for the list, a rule, the details, the message or the typed line, the keys. The list never takes more, because
//! the details are what is read before an answer, and a list of four hundred calls would push them off the screen.
//!
//! Drawing is also where it is recorded that a call was seen (rule S4), as only the layout knows how many rows there
//! were room for and whether a row was cut. So the methods take `&mut self`, and drawing twice gives one result.

use super::batch::Opened;
use super::frame::{Frame, Look, ScreenRow, columns, detail};
use super::list::{List, Mode, Purpose, approval_word};
use crate::deferred::ToolApproval;
use crate::show::counted;

/// The smallest screen on which anything can be decided.
///
/// Below it the details would have no row, and a question without its call must not be answered: the keys are not
/// usable, and the person is asked to make the window larger.
const SMALLEST: (usize, usize) = (32, 8);

const HELP: &str = "Nothing runs before the last call has an answer.

  j k, arrows       the next or previous call; g, G the first or last one
  Tab, n            the next call without an answer
  Space, PageDown   more of this call; PageUp, Left, Right, End
  v, Enter          all of this call; again: the masked values
  a, y              approve this call
  d                 deny it; m denies it with a message for the model
  e                 edit the arguments, then approve them
  u                 take the answer back
  s, p, U           approve it, and such calls (w: wider) in this session, in this
                    project, or for a time; what is granted is shown first
  A, D              approve or deny every listed call without an answer, after
                    their number was shown
  x                 select this call, or no longer: a, d and m are then about
                    all selected calls; Esc selects none
  /                 list only the calls with a text; Esc lists all
  Ctrl-C            stop the run: nothing is decided, and nothing runs

  A call can be approved once all of it was on the screen. Keys that decide wait
  until what they are about has been on the screen for a moment.
  Any key goes back.";

impl List<'_> {
    /// The frame for a screen of this size. Records what of the calls was on it (rule S4).
    pub(super) fn frame(&mut self, width: usize, height: usize) -> Frame {
        self.usable = width >= SMALLEST.0 && height >= SMALLEST.1;
        self.end_shown = false;
        if !self.usable {
            let rows = ["Make the window larger.", "Ctrl-C stops."];
            return Frame {
                rows: rows.map(|row| ScreenRow::of(Look::Plain, row)).into(),
                cursor: None,
            };
        }
        let body = height - 4;
        let mut rows = vec![self.header(width)];
        let shown = match &self.mode {
            Mode::Help => {
                HELP.lines().take(body + 1).map(|row| ScreenRow::of(Look::Plain, row)).collect()
            }
            Mode::Edited(args) => {
                let all = self.edited_details(args, width - 1);
                rows.push(ScreenRow::of(Look::Faint, "─".repeat(width / 2)));
                self.details(all, body)
            }
            Mode::Grant(term, number) => {
                let all = self.grant_details(*term, *number, width - 1);
                rows.push(ScreenRow::of(Look::Faint, "─".repeat(width / 2)));
                self.details(all, body)
            }
            Mode::List | Mode::Typing(..) => {
                let listed = self.batch.listed().len();
                let most = listed.clamp(1, (body / 3).max(1));
                rows.extend(self.listed(width, most));
                rows.push(ScreenRow::of(Look::Faint, "─".repeat(width / 2)));
                let all = self.batch.details(width - 1);
                let shown = self.details(all, body - most);
                let seen = self.end_shown && self.batch.shows_all();
                if let Some(entry) = self.batch.selected_mut().filter(|_| seen) {
                    entry.seen = true;
                }
                shown
            }
        };
        rows.extend(shown);
        rows.resize(height - 2, ScreenRow::default());
        let (message, cursor) = self.message_row(width, height - 2);
        rows.push(message);
        rows.push(self.keys());
        Frame { rows, cursor }
    }

    fn header(&self, width: usize) -> ScreenRow {
        let listed = self.batch.listed();
        let here = listed.iter().position(|at| *at == self.batch.at).map_or(0, |at| at + 1);
        let (yes, no, open) = self.batch.counts();
        let all = yes + no + open;
        let tools = if all == 1 { "a tool".to_owned() } else { format!("{all} tools") };
        let found = if self.batch.search.is_empty() { "" } else { " found" };
        let place = format!("{here} of {}{found}", listed.len());
        let counts = format!(" | {yes} approved, {no} denied, {open} open");
        let title = format!("{} asks to run {tools}", self.agent);
        let room = width.saturating_sub(columns(&place) + columns(&counts) + 4);
        let (title, _) = ScreenRow::of(Look::Strong, title).fitted(room.max(8));
        title.and(Look::Plain, "  ").and(Look::Strong, place).and(Look::Faint, counts)
    }

    /// The rows of the list around the selected entry.
    fn listed(&mut self, width: usize, most: usize) -> Vec<ScreenRow> {
        let listed = self.batch.listed();
        let here = listed.iter().position(|at| *at == self.batch.at).unwrap_or(0);
        let last = listed.len().saturating_sub(most);
        self.top = self.top.clamp((here + 1).saturating_sub(most), here).min(last);
        let mut rows = Vec::new();
        for at in listed.into_iter().skip(self.top).take(most) {
            let selected = at == self.batch.at;
            let Some(entry) = self.batch.entries.get_mut(at) else { continue };
            let (mark, look) = match &entry.answer {
                Some(ToolApproval::Approved(_)) => ("✓", Look::Good),
                Some(ToolApproval::Denied(_)) => ("✗", Look::Bad),
                None => ("·", Look::Plain),
            };
            let begins = match (selected, entry.chosen) {
                (true, true) => ">*",
                (true, false) => "> ",
                (false, true) => " *",
                (false, false) => "  ",
            };
            let headline = if selected { Look::Selected } else { Look::Plain };
            let mut row = ScreenRow::of(Look::Strong, begins)
                .and(look, format!("{mark} "))
                .and(headline, entry.view.headline.clone());
            if entry.calls.len() > 1 {
                row = row.and(Look::Strong, format!("  x{}", entry.calls.len()));
            }
            let row = row.and(Look::Faint, format!("  {}", entry.reasons));
            let (row, cut) = row.fitted(width);
            // Such a row is the whole call.
            entry.seen |= entry.is_short && !cut;
            rows.push(row);
        }
        rows
    }

    /// The part of the details that fits, with the number of rows below it.
    ///
    /// One row is kept for the line that counts the rows below, so a person always sees that there is more. The looks
    /// are computed from the first row on, and not from the first shown one, as the look of a continued row follows
    /// from the row before.
    fn details(&mut self, all: Vec<String>, room: usize) -> Vec<ScreenRow> {
        let more = all.len() > room;
        self.room = if more { room.saturating_sub(1).max(1) } else { room };
        let last = all.len().saturating_sub(self.room);
        self.batch.scrolled = self.batch.scrolled.min(last);
        let from = self.batch.scrolled;
        self.end_shown = from == last;
        let below = last - from;
        let mut look = Look::Plain;
        let mut rows = Vec::new();
        for (at, text) in all.into_iter().enumerate() {
            let row = detail(text, look);
            look = row.0.first().map_or(Look::Plain, |(look, _)| *look);
            if at >= from && at < from + self.room {
                rows.push(row);
            }
        }
        if below > 0 {
            let text = format!("  {below} more rows below: Space, or End");
            rows.push(ScreenRow::of(Look::Notice, text));
        } else if more {
            rows.push(ScreenRow::of(Look::Faint, "  The end of this call. PageUp goes back."));
        }
        rows
    }

    /// The message, or the line that is typed, with the place of the cursor.
    fn message_row(&self, width: usize, y: usize) -> (ScreenRow, Option<(usize, usize)>) {
        let Mode::Typing(purpose, line) = &self.mode else {
            return (ScreenRow::of(Look::Notice, self.message.clone()), None);
        };
        let label = match purpose {
            Purpose::Message => "Deny, and tell the model: ".to_owned(),
            Purpose::Search => "List calls with: ".to_owned(),
            Purpose::Args => "args: ".to_owned(),
            Purpose::Until => "Grant for how long (30m, 2h, 1d): ".to_owned(),
            Purpose::ApproveMany(calls) => {
                let (word, calls) = (approval_word(*calls), counted(*calls, "call"));
                format!("Type `{word}` to approve {calls}: ")
            }
            Purpose::DenyMany(calls) => {
                format!("Type `yes` to deny {}: ", counted(*calls, "call"))
            }
        };
        let (before, after) = line.window(width.saturating_sub(label.len() + 1));
        let x = columns(&label) + before.chars().count();
        let row =
            ScreenRow::of(Look::Strong, label).and(Look::Plain, before).and(Look::Plain, after);
        (row, Some((x, y)))
    }

    /// The keys that decide are faint while they decide nothing, which is how the person sees when the wait is over.
    fn keys(&self) -> ScreenRow {
        let (deciding, others) = match &self.mode {
            Mode::List => {
                let open = self.batch.selected().map_or(Opened::Short, |entry| entry.opened);
                let view = if open == Opened::Short { "v all of it" } else { "v less" };
                let keys = match self.batch.chosen().len() {
                    0 => "a approve  d deny".to_owned(),
                    chosen => format!("a approve, d deny the {chosen} selected"),
                };
                (keys, format!("  e edit  {view}  j/k move  x select  / search  ? help"))
            }
            Mode::Grant(..) => {
                ("a grant and approve".to_owned(), "  w wider  Esc back  Space more".to_owned())
            }
            Mode::Edited(_) => {
                ("a approve as edited".to_owned(), "  e edit  Esc back  Space more".to_owned())
            }
            Mode::Help => (String::new(), "any key: back".to_owned()),
            Mode::Typing(..) => (String::new(), "Enter: done  Esc: back".to_owned()),
        };
        let look = if self.inert().is_some() { Look::Faint } else { Look::Strong };
        ScreenRow::of(look, deciding).and(Look::Faint, others)
    }
}
