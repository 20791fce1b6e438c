//! The parts of the full screen: the list, the details of the selected call, a message, and the keys.
//!
//! From the top to the bottom: the header (who asks, where in the list, how many are answered), at most a third of the
//! rest for the list, a rule, the details, the message or the typed line, the keys. The list never takes more: a
//! person reads the details before an answer, and a list of four hundred calls would push them off the screen.
//!
//! Drawing also records that a call was seen (rule S4), as only the layout knows how many rows there was room for
//! and whether a row was cut. So the methods take `&mut self`. Drawing twice gives the same result.

use super::batch::{CallGroup, Opened};
use super::choice::REVIEWING;
use super::frame::{Frame, Look, ScreenRow, columns, detail};
use super::list::List;
use super::mode::{Mode, Purpose, approval_word};
use super::screen::words;
use countersign::args::Args;
use countersign::deferred::ToolApproval;
use countersign::show::{self, CallView, Limits, counted};

/// The smallest screen on which anything can be decided.
///
/// On a smaller screen the details would have no row, and a person must not answer a question without its call.
/// There the keys are not usable, and we ask the person to make the window larger.
const SMALLEST: (usize, usize) = (32, 8);

/// The number of columns that the counts of the header leave to the title.
const TITLE: usize = 28;

const HELP: &str = "Nothing runs before the last call has an answer.

  a        approve this call
  d        deny it; Enter sends what you type to the model
  A, D     approve, deny all that are left; shows their number and asks
  e        change the arguments, then a approves them
  g        Always: approve it, and such calls from now on
  v, Enter show everything; again: the masked values
  u        take the answer back
  j, k     the next call, the one before; < and > the first, the last
  Tab      the next call without an answer
  Space    more of this call; PageUp, Left, Right, End
  x        select this call, or no longer: a and d are then about all
           selected calls; Esc selects none
  /        list only the calls with a text; Esc lists all
  Ctrl-C   stop the run: nothing is decided, and nothing runs

  A call can be approved once all of it was on the screen. Keys that decide wait
  until the call has been on the screen for a moment.
  Any other key goes back.";

impl List<'_> {
    /// The rows of the call with edited arguments, whole.
    fn edited_details(&self, args: &Args, width: usize) -> Vec<String> {
        let call = self.batch.selected().and_then(|entry| entry.calls.first());
        let edited = call.map(|call| {
            CallView::of_call(&(*call).clone().with_args(args.clone()), Limits::none())
        });
        let text = edited.map(|view| view.text(width)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

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
        let message = self.message_rows(width, (height - 7).min(3));
        let body = height - 3 - message.len();
        let mut rows = vec![self.header(width)];
        rows.extend(self.body(width, body));
        let mut cursor = None;
        if let Mode::Form(form) = &mut self.mode {
            let (fields, (x, y)) = form.rows(width, body);
            cursor = Some((x, y + rows.len()));
            rows.extend(fields);
        }
        rows.resize(height - 1 - message.len(), ScreenRow::default());
        rows.extend(message);
        if let Some((typed, at)) = self.typed_row(width, height - 2) {
            rows.truncate(height - 2);
            rows.push(typed);
            cursor = Some(at);
        }
        rows.push(self.keys(width));
        Frame { rows, cursor }
    }

    /// The rows between the header and the message, of which there are so many.
    fn body(&mut self, width: usize, body: usize) -> Vec<ScreenRow> {
        let mut rows = Vec::new();
        let shown = match &self.mode {
            Mode::Help => {
                let mut help = words(HELP, width);
                if self.is_review() {
                    help.push(String::new());
                    help.extend(words(REVIEWING, width));
                }
                let help = help.into_iter();
                self.window(help.map(|row| ScreenRow::of(Look::Plain, row)).collect(), body + 1, "")
            }
            Mode::Edited(args) => {
                let all = self.edited_details(args, width - 1);
                rows.push(ScreenRow::of(Look::Faint, "-".repeat(width)));
                self.details(all, body)
            }
            Mode::Form(_) => {
                rows.push(ScreenRow::of(Look::Faint, "-".repeat(width)));
                Vec::new()
            }
            Mode::Grant => {
                let all = self.grant_details(width - 1);
                rows.push(ScreenRow::of(Look::Faint, "-".repeat(width)));
                self.details(all, body)
            }
            Mode::List | Mode::Typing(..) => {
                let listed = self.batch.listed().len();
                // A list of one call says nothing that the call below it does not.
                let most = match self.batch.is_one_call() {
                    true => 0,
                    false => listed.clamp(1, (body / 3).max(1)),
                };
                if most > 0 {
                    rows.extend(self.listed(width, most));
                }
                rows.push(ScreenRow::of(Look::Faint, "-".repeat(width)));
                let note = self.head.and_then(|head| head.note);
                let mut all: Vec<_> =
                    note.iter().flat_map(|note| show::wrap("", note, width - 1)).collect();
                all.extend(self.batch.details(width - 1));
                let shown = self.details(all, body - most);
                let seen = self.end_shown && self.batch.shows_all();
                if let Some(entry) = self.batch.selected_mut().filter(|_| seen) {
                    entry.seen = true;
                }
                shown
            }
        };
        rows.extend(shown);
        rows
    }

    /// The grant on the screen, and below it the call, which was seen before.
    fn grant_details(&self, width: usize) -> Vec<String> {
        let Some(choice) = &self.choice else { return Vec::new() };
        let mut rows = choice.lines(width);
        let (number, all) = choice.number();
        if all > 1 {
            let more = format!("{number} of {all}: w shows the next one.");
            rows.extend(show::wrap("", &more, width));
        }
        let call = self.batch.selected().map(CallGroup::row);
        rows.extend(show::wrap("This call: ", call.unwrap_or_default(), width));
        rows
    }

    fn header(&self, width: usize) -> ScreenRow {
        let listed = self.batch.listed();
        let here = listed.iter().position(|at| *at == self.batch.at).map_or(0, |at| at + 1);
        let (yes, no, open) = self.batch.counts();
        let all = yes + no + open;
        let tools = if all == 1 { "a tool".to_owned() } else { format!("{all} tools") };
        let found = if self.batch.search.is_empty() { "" } else { " found" };
        let title = format!("{} asks to run {tools}", self.agent);
        let place = match self.head {
            Some(head) => head.place.to_string(),
            None => format!("{here} of {}{found}", listed.len()),
        };
        // Half of a number says something else, so what does not fit beside the beginning of the title is left out. Of one
        // call they say nothing.
        let counts =
            [format!(" | {yes} approved, {no} denied, {open} open"), format!(" | {open} open")];
        let fits = |it: &String| {
            let beside = columns(&title).min(TITLE) + columns(&place) + 2;
            !self.batch.is_one_call() && beside + columns(it) <= width
        };
        let counts = counts.into_iter().find(fits).unwrap_or_default();
        let room = width.saturating_sub(columns(&place) + columns(&counts) + 2);
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
                .and(headline, entry.row().to_owned());
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
    /// We keep one row for the line that counts the rows below, so a person always sees that there is more. We
    /// compute the looks from the first row on, and not from the first one on the screen, as the look of a continued
    /// row follows from the row before.
    fn details(&mut self, all: Vec<String>, room: usize) -> Vec<ScreenRow> {
        let mut look = Look::Plain;
        let looks = all.into_iter().map(|text| {
            let row = detail(text, look);
            look = row.0.first().map_or(Look::Plain, |(look, _)| *look);
            row
        });
        let rows = looks.collect();
        self.window(rows, room, "  The end of this call: PageUp")
    }

    /// The rows that fit, from the first one that is scrolled to, and a row that counts those below, or says this at their
    /// end.
    fn window(&mut self, all: Vec<ScreenRow>, room: usize, end: &str) -> Vec<ScreenRow> {
        let more = all.len() > room;
        self.room = if more { room.saturating_sub(1).max(1) } else { room };
        let last = all.len().saturating_sub(self.room);
        self.batch.scrolled = self.batch.scrolled.min(last);
        let from = self.batch.scrolled;
        self.end_shown = from == last;
        let below = last - from;
        let mut rows: Vec<_> = all.into_iter().skip(from).take(self.room).collect();
        if below > 0 {
            let text = format!("  {} below: Space, or End", counted(below, "more row"));
            rows.push(ScreenRow::of(Look::Notice, text));
        } else if more {
            rows.push(ScreenRow::of(Look::Faint, end));
        }
        rows
    }

    /// The message in so many rows at most, one of which is there without a message, too. While a line is typed, it is the
    /// row of that line.
    fn message_rows(&self, width: usize, most: usize) -> Vec<ScreenRow> {
        let (message, typed) = match &self.mode {
            Mode::Typing(..) => ("", 1),
            _ => (self.message.as_str(), 0),
        };
        let mut rows: Vec<_> = words(message, width).into_iter().take(most - typed).collect();
        rows.resize(rows.len().max(1 - typed) + typed, String::new());
        rows.into_iter().map(|row| ScreenRow::of(Look::Notice, row)).collect()
    }

    /// The line that is typed, with the place of the cursor.
    fn typed_row(&self, width: usize, y: usize) -> Option<(ScreenRow, (usize, usize))> {
        let Mode::Typing(purpose, line) = &self.mode else { return None };
        let label = match purpose {
            Purpose::Message => "Deny, and tell the model: ".to_owned(),
            Purpose::Search => "List calls with: ".to_owned(),
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
        Some((row, (x, y)))
    }

    /// Returns whether a grant is offered for the selected call.
    fn is_granted(&self) -> bool {
        let call = self.batch.selected().and_then(|entry| entry.calls.first());
        call.is_some_and(|call| self.offers.contains_key(call.id()))
    }

    /// The keys, those that decide first. They are faint while they decide nothing, so the person sees when the wait is
    /// over. If not all fit, we leave the last ones out. The key of the help stays, as the help names them.
    fn keys(&self, width: usize) -> ScreenRow {
        let selected = self.batch.selected();
        let view = match selected.is_some_and(|entry| entry.opened != Opened::Short) {
            true => "v less",
            false => "v all of it",
        };
        let (deciding, others, last): (String, Vec<&str>, &str) = match &self.mode {
            Mode::List => {
                let keys = match self.batch.chosen().len() {
                    0 => "a approve  d deny".to_owned(),
                    chosen => format!("a approve, d deny the {chosen} selected"),
                };
                let mut others = vec!["e change"];
                others.extend(self.is_granted().then_some("g always"));
                others.extend(self.is_review().then_some("l later"));
                others.push(view);
                if !self.batch.is_one_call() {
                    others.extend(["j/k move", "x select", "/ search"]);
                }
                (keys, others, "? help")
            }
            Mode::Grant => {
                let others = vec!["w another", "U a time", "s session", "p project"];
                ("a grant and approve".to_owned(), others, "Esc back")
            }
            Mode::Form(_) => {
                let others = vec!["Tab next", "Ctrl-T JSON"];
                ("Ctrl-S done".to_owned(), others, "Esc back")
            }
            Mode::Edited(_) => {
                ("a approve as edited".to_owned(), vec!["e change", "Space more"], "Esc back")
            }
            Mode::Help => (String::new(), vec!["Space more"], "any other key: back"),
            Mode::Typing(..) => (String::new(), vec!["Enter: done"], "Esc: back"),
        };
        let look = if self.inert().is_some() { Look::Faint } else { Look::Strong };
        let mut room = width.saturating_sub(columns(&deciding) + columns(last) + 2);
        let mut row = String::new();
        for key in others {
            let Some(left) = room.checked_sub(columns(key) + 2) else { break };
            room = left;
            row += &format!("  {key}");
        }
        ScreenRow::of(look, deciding).and(Look::Faint, format!("{row}  {last}"))
    }
}
