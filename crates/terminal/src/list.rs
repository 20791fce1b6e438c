//! The batch on a full screen: the effect of each key, and the rows to draw. It needs no terminal, so that tests can
//! press keys.
//!
//! Three protections are here. Each is about the time between what we draw and what the person presses:
//!
//! 1. **Arming (rule S3).** When the subject of the keys that decide appears, these keys are inert for a while. Their
//!    subject ([`about`](List::about)) is the mode, the selected entry and how far it is opened. A key that changes
//!    one of these makes them inert again. Scrolling does not, as the call stays the same.
//! 2. **Early keys.** If a deciding key comes too early, we drop it, count it, and begin the wait anew. So a person
//!    who types into the wrong window (or a key that repeats) keeps the keys inert until the hands rest. The message
//!    says how many were ignored.
//! 3. **Paste.** Pasted text decides nothing in any mode, and counts like early keys. Only a line that the person
//!    types takes it, and the two lines that confirm a large number do not.
//!
//! For example, call 3 is selected, and the person presses `a` twice. The first `a` approves call 3 and selects call
//! 4, and the keys are inert. The second `a` is dropped with "Ignored 1 key". Without the wait it would approve call
//! 4, which the person has not read.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::batch::{CallList, Opened};
use super::choice::esc;
use super::dialogue::{CallAnswers, MANY_APPROVED, MANY_DENIED, denied};
use super::form::{ArgsForm, FormStep, object};
use super::granting::{CallOffers, Chosen, GrantChoice, TIMES};
use super::head::ReviewHead;
use super::line::{Line, LineStep};
use super::mode::{AfterKey, Mode, Purpose, approval_word};
use super::screen::Gone;
use countersign::args::Args;
use countersign::deferred::{DeferredToolRequests, ToolApproval};
use countersign::ledger::GrantPlace;
use countersign::show::{self, counted};

/// The batch on a full screen.
pub(super) struct List<'a> {
    pub(super) batch: CallList<'a>,
    pub(super) agent: String,
    pub(super) mode: Mode,
    pub(super) message: String,
    arming: Duration,
    /// The time until which keys decide nothing, because the call has just appeared.
    inert_until: Instant,
    early: usize,
    /// `true` if the last row of the details is on the screen.
    pub(super) end_shown: bool,
    /// The rows of the details that fit on the screen.
    pub(super) room: usize,
    /// The first entry of the list on the screen.
    pub(super) top: usize,
    /// `true` if the screen is large enough.
    pub(super) usable: bool,
    external_editor: bool,
    /// The denial that is to be confirmed.
    denial: ToolApproval,
    pub(super) offers: CallOffers,
    granted: Chosen,
    /// The grant that the person looks at, in [`Mode::Grant`] and while its time is typed.
    pub(super) choice: Option<GrantChoice>,
    /// The head of a review of an ask that waits in a store, which can be left for later.
    pub(super) head: Option<ReviewHead>,
}

impl<'a> List<'a> {
    pub(super) fn new(
        requests: &'a DeferredToolRequests,
        agent: &str,
        arming: Duration,
        external_editor: bool,
    ) -> Self {
        let agent =
            if agent.is_empty() { "The agent".to_owned() } else { show::escape_name(agent) };
        Self {
            batch: CallList::new(requests),
            agent,
            mode: Mode::List,
            message: String::new(),
            arming,
            inert_until: Instant::now() + arming,
            early: 0,
            end_shown: false,
            room: 0,
            top: 0,
            usable: false,
            external_editor,
            denial: false.into(),
            offers: CallOffers::new(),
            granted: Chosen::new(),
            choice: None,
            head: None,
        }
    }

    /// Reviews an ask that waits in a store.
    pub(super) fn reviewing(mut self, head: Option<ReviewHead>) -> Self {
        self.head = head;
        self
    }

    pub(super) fn is_review(&self) -> bool {
        self.head.is_some()
    }

    /// Offers these grants beside the approval of a call.
    pub(super) fn offering(mut self, offers: CallOffers) -> Self {
        self.offers = offers;
        self
    }

    /// The answers, once every call has one, and the grants to make.
    pub(super) fn ended(mut self) -> Option<(CallAnswers<'a>, Chosen)> {
        let answers = self.batch.answers()?;
        let approved =
            |id: &str| answers.iter().any(|(call, answer)| *call == id && *answer == true.into());
        self.granted.retain(|id, _| approved(id));
        Some((answers, self.granted))
    }

    /// The time for which keys decide nothing yet; `None` once they do.
    ///
    /// The caller waits as long as this for the next key, and draws again when the time is over.
    pub(super) fn inert(&self) -> Option<Duration> {
        let left = self.inert_until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Makes the deciding keys inert, as what they are about has appeared or moved (rule S3).
    pub(super) fn rearm(&mut self) {
        self.inert_until = Instant::now() + self.arming;
    }

    /// Returns `true` if the key may decide. If it comes too early, we count it, and all keys wait again.
    ///
    /// Also `false` if the screen is too small: then the subject of the key is not on it.
    fn is_armed(&mut self, keys: usize) -> bool {
        if self.inert().is_none() && self.usable {
            self.early = 0;
            return true;
        }
        self.early += keys;
        self.rearm();
        let keys = counted(self.early, "key");
        self.message = format!("Ignored {keys}: the subject of the decision had just appeared.");
        false
    }

    pub(super) fn paste(&mut self, text: &str) {
        match &mut self.mode {
            Mode::Typing(Purpose::ApproveMany(_) | Purpose::DenyMany(_), _) => {}
            Mode::Typing(_, line) => line.insert(text),
            Mode::Form(form) => form.paste(text),
            Mode::List | Mode::Help | Mode::Edited(_) | Mode::Grant => {
                self.is_armed(text.chars().count());
                "Pasted text decides nothing.".clone_into(&mut self.message);
            }
        }
    }

    /// Handles a key. If that changes the subject of the deciding keys, they are inert again.
    pub(super) fn key(&mut self, key: KeyEvent) -> Result<AfterKey, Gone> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Err(Gone::Interrupted);
        }
        let before = self.about();
        let next = match &mut self.mode {
            Mode::Typing(purpose, line) => {
                let purpose = *purpose;
                match line.key(key) {
                    LineStep::More => AfterKey::Stay,
                    LineStep::Gone(Gone::Cancelled) => self.cancelled(Some(purpose)),
                    LineStep::Gone(gone) => return Err(gone),
                    LineStep::Done => {
                        let text = line.text();
                        self.typed(purpose, &text)
                    }
                }
            }
            Mode::Form(form) => match form.key(key) {
                FormStep::Gone(Gone::Cancelled) => self.cancelled(None),
                FormStep::Gone(gone) => return Err(gone),
                step => self.formed(&step),
            },
            Mode::Help => {
                // Where the help does not fit, the keys that move show the rest of it.
                if self.end_shown && self.batch.scrolled == 0 || !self.scrolls(key.code) {
                    self.mode = Mode::List;
                    self.batch.scrolled = 0;
                }
                AfterKey::Stay
            }
            _ if control && key.code == KeyCode::Char('d') => return Err(Gone::EndOfInput),
            _ if control => AfterKey::Stay,
            Mode::List if self.head.is_some() && key.code == KeyCode::Char('l') => {
                return Err(Gone::Skipped);
            }
            Mode::List => self.list_key(key.code),
            Mode::Edited(_) => self.edited_key(key.code),
            Mode::Grant => self.grant_key(key.code),
        };
        if self.about() != before {
            self.rearm();
        }
        let done = matches!(self.mode, Mode::List) && self.batch.counts().2 == 0;
        Ok(if done { AfterKey::Done } else { next })
    }

    /// The subject of the deciding keys: the mode, the call and how much of it is shown, and the chosen calls.
    fn about(&self) -> ((u8, usize), usize, Option<Opened>, Vec<usize>) {
        let grant = self.choice.as_ref().map_or(0, |choice| choice.number().0);
        let mode = (self.mode.number(), grant);
        let opened = self.batch.selected().map(|entry| entry.opened);
        (mode, self.batch.at, opened, self.batch.chosen())
    }

    fn list_key(&mut self, key: KeyCode) -> AfterKey {
        if self.early == 0 {
            self.message.clear();
        }
        let page = self.page();
        match key {
            KeyCode::Down | KeyCode::Char('j') => self.batch.go(1),
            KeyCode::Up | KeyCode::Char('k') => self.batch.go(-1),
            KeyCode::Home | KeyCode::Char('<') => self.batch.go(isize::MIN),
            KeyCode::Char('>') => self.batch.go(isize::MAX),
            KeyCode::Tab => self.batch.go_to_open(),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(page),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::Right => self.scroll(1),
            KeyCode::Left => self.scroll(-1),
            KeyCode::End => self.scroll(isize::MAX),
            KeyCode::Enter | KeyCode::Char('v') => self.batch.open(),
            KeyCode::Char('?' | 'h') => {
                self.mode = Mode::Help;
                self.batch.scrolled = 0;
            }
            KeyCode::Char('/') => {
                let line = Line::new(&self.batch.search);
                self.mode = Mode::Typing(Purpose::Search, line);
            }
            KeyCode::Char('x') => self.batch.choose(),
            KeyCode::Esc if !self.batch.chosen().is_empty() => self.batch.choose_none(),
            KeyCode::Esc if !self.batch.search.is_empty() => self.batch.search.clear(),
            KeyCode::Char('e') => return self.edit(),
            KeyCode::Char('u') => {
                if let Some(entry) = self.batch.selected_mut() {
                    entry.answer = None;
                    for call in &entry.calls {
                        self.granted.remove(call.id());
                    }
                }
            }
            KeyCode::Char('g') => self.grant(),
            KeyCode::Char(c @ ('a' | 'A' | 'd' | 'D')) if self.is_armed(1) => self.decide(c),
            KeyCode::Char('a' | 'A' | 'd' | 'D') => {}
            KeyCode::Esc => {
                esc(self.is_review()).clone_into(&mut self.message);
            }
            _ => "That is no key, and nothing was decided; ? helps.".clone_into(&mut self.message),
        }
        AfterKey::Stay
    }

    /// `d` needs the wait as well, as the Enter after its message denies.
    fn decide(&mut self, key: char) {
        match key {
            'a' if !self.batch.chosen().is_empty() => self.approve_all(MANY_APPROVED),
            'a' => self.approve(),
            'd' => self.mode = Mode::Typing(Purpose::Message, Line::new("")),
            'A' => self.approve_all(0),
            _ => self.deny_all(false.into(), 0),
        }
    }

    /// The rows that a page of the details has.
    fn page(&self) -> isize {
        isize::try_from(self.room.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Scrolls, where one call fills the screen and the keys of the list move in it. Returns whether the key was for that.
    fn scrolls(&mut self, key: KeyCode) -> bool {
        let page = self.page();
        match key {
            KeyCode::PageDown | KeyCode::Char(' ' | 'j') => self.scroll(page),
            KeyCode::PageUp | KeyCode::Char('k') => self.scroll(-page),
            KeyCode::Down => self.scroll(1),
            KeyCode::Up => self.scroll(-1),
            KeyCode::End => self.scroll(isize::MAX),
            _ => return false,
        }
        true
    }

    pub(super) fn scroll(&mut self, rows: isize) {
        // The frame limits it to the last row.
        self.batch.scrolled = self.batch.scrolled.saturating_add_signed(rows);
    }

    /// The reason why the selected call cannot be approved yet (rule S4).
    ///
    /// There are two reasons: the person has to open a view that leaves parts out, and scroll to the end of a long
    /// one. The message names the key.
    fn unseen(&self) -> Option<&'static str> {
        if !self.batch.shows_all() && !self.batch.selected().is_some_and(|entry| entry.seen) {
            return Some(
                "Not approved: something was left out of the view of this call. v shows all of it.",
            );
        }
        if self.batch.selected().is_none_or(|entry| !entry.seen) {
            return Some(
                "Not approved: not all of this call was on the screen. Space or End shows the rest.",
            );
        }
        None
    }

    fn approve(&mut self) {
        match self.unseen() {
            Some(why) => why.clone_into(&mut self.message),
            None => self.answer(&true.into()),
        }
    }

    /// Answers the selected entry, and selects the next one without an answer.
    fn answer(&mut self, answer: &ToolApproval) {
        let at = self.batch.at;
        self.batch.answer(at, answer);
        self.batch.go_to_open();
    }

    /// Returns `true` if a grant is offered for the selected call, and all of the call was seen; else the message says
    /// why not.
    fn can_grant(&mut self) -> bool {
        let call = self.batch.selected().and_then(|entry| entry.calls.first());
        let why = match call.and_then(|call| self.offers.get(call.id())) {
            None => Some("No grant is offered for this call: a approves it once."),
            Some(_) if !self.batch.chosen().is_empty() => {
                Some("A grant is made from one call: Esc selects none.")
            }
            Some(_) => self.unseen(),
        };
        if let Some(why) = why {
            why.clone_into(&mut self.message);
        }
        why.is_none()
    }

    /// Shows the grants that can be made with the approval.
    fn grant(&mut self) {
        if !self.can_grant() {
            return;
        }
        let call = self.batch.selected().and_then(|entry| entry.calls.first());
        let offers = call.and_then(|call| self.offers.get(call.id()));
        self.choice = offers.and_then(GrantChoice::of);
        match &self.choice {
            Some(_) => {
                self.mode = Mode::Grant;
                self.batch.scrolled = 0;
            }
            None => "No grant is offered for this call: a approves it once."
                .clone_into(&mut self.message),
        }
    }

    fn grant_key(&mut self, key: KeyCode) -> AfterKey {
        let Some(choice) = &mut self.choice else { return AfterKey::Stay };
        self.message.clear();
        match key {
            KeyCode::Char(c @ ('w' | 's' | 'p')) => {
                let found = match c {
                    'w' => {
                        choice.next();
                        true
                    }
                    's' => choice.go(GrantPlace::Session),
                    _ => choice.go(GrantPlace::Project),
                };
                self.batch.scrolled = 0;
                if !found {
                    "No such grant is offered for this call.".clone_into(&mut self.message);
                }
            }
            KeyCode::Char('U') => self.mode = Mode::Typing(Purpose::Until, Line::new("")),
            _ if self.scrolls(key) => {}
            KeyCode::Esc => {
                self.mode = Mode::List;
                "Nothing was granted or decided.".clone_into(&mut self.message);
            }
            KeyCode::Char('a') if self.is_armed(1) => self.make_grant(),
            KeyCode::Char('a') => {}
            _ => {
                "a grants this and approves the call, Esc goes back.".clone_into(&mut self.message)
            }
        }
        AfterKey::Stay
    }

    /// Chooses the grant on the screen, and approves its call.
    fn make_grant(&mut self) {
        if !self.end_shown {
            "Not granted: not all of it was on the screen. Space or End shows the rest."
                .clone_into(&mut self.message);
            return;
        }
        let offer = self.choice.take().and_then(|choice| choice.offer().cloned());
        let call = self.batch.selected().and_then(|entry| entry.calls.first());
        if let (Some(call), Some(offer)) = (call, offer) {
            self.granted.insert(call.id().to_owned(), offer);
        }
        self.mode = Mode::List;
        self.answer(&true.into());
    }

    /// Approves the selected calls, or all that are left. More than this many are confirmed by a line that shows their
    /// number.
    fn approve_all(&mut self, unconfirmed: usize) {
        let bulk = self.batch.bulk();
        if bulk.calls > unconfirmed {
            self.mode = Mode::Typing(Purpose::ApproveMany(bulk.calls), Line::new(""));
            return;
        }
        self.approve_bulk();
    }

    fn approve_bulk(&mut self) {
        let bulk = self.batch.bulk();
        bulk.entries.iter().for_each(|at| self.batch.answer(*at, &true.into()));
        self.message = format!("Approved {}.", counted(bulk.calls, "call"));
        if bulk.unseen > 0 {
            let unseen = counted(bulk.unseen, "call");
            self.message += &format!(" Not approved: {unseen} of which not all was on the screen.");
        }
        self.batch.go_to_open();
    }

    fn deny_all(&mut self, denial: ToolApproval, unconfirmed: usize) {
        let (_, calls) = self.batch.open_entries();
        self.denial = denial;
        match calls > unconfirmed {
            true => self.mode = Mode::Typing(Purpose::DenyMany(calls), Line::new("")),
            false => self.deny_open(),
        }
    }

    fn deny_open(&mut self) {
        let (entries, calls) = self.batch.open_entries();
        let denial = std::mem::replace(&mut self.denial, false.into());
        entries.iter().for_each(|at| self.batch.answer(*at, &denial));
        self.message = format!("Denied {}.", counted(calls, "call"));
        self.batch.go_to_open();
    }

    /// Begins an edit, with the draft of an earlier one.
    fn edit(&mut self) -> AfterKey {
        let Some(entry) = self.batch.selected_mut() else { return AfterKey::Stay };
        let Some(call) = entry.calls.first() else { return AfterKey::Stay };
        if self.external_editor {
            return AfterKey::Edit;
        }
        let form = entry.form.take().unwrap_or_else(|| ArgsForm::new(call.args()));
        self.mode = Mode::Form(form);
        "Ctrl-S when done, Esc to go back. Tab: the next argument; Ctrl-T: all as JSON. Secrets are not masked here."
            .clone_into(&mut self.message);
        AfterKey::Stay
    }

    /// Ends or changes the form. What is no value stays in it, with a message.
    fn formed(&mut self, step: &FormStep) -> AfterKey {
        let Mode::Form(form) = &mut self.mode else { return AfterKey::Stay };
        let ended = match step {
            FormStep::Done => form.args().map(Some),
            FormStep::Toggle => form.toggle().map(|()| None),
            FormStep::Stay | FormStep::Gone(_) => return AfterKey::Stay,
        };
        match ended {
            Ok(Some(args)) => {
                self.keep_form();
                self.edited_args(args);
            }
            Ok(None) => self.message.clear(),
            Err(error) => self.message = format!("No JSON: {}", show::escape(&error)),
        }
        AfterKey::Stay
    }

    /// Leaves the form, which is shown again when the call is edited again.
    fn keep_form(&mut self) {
        if let Mode::Form(form) = std::mem::replace(&mut self.mode, Mode::List)
            && let Some(entry) = self.batch.selected_mut()
        {
            entry.form = Some(form);
        }
    }

    /// Takes the text of an editor: shows the call with it, or says what is wrong and keeps the text.
    pub(super) fn edited(&mut self, text: &str) {
        self.mode = Mode::List;
        if let Some(entry) = self.batch.selected_mut() {
            entry.draft = Some(text.to_owned());
        }
        match object(text) {
            Err(error) => {
                self.message =
                    format!("No JSON object, e edits it again: {}", show::escape(&error));
            }
            Ok(args) => self.edited_args(args),
        }
        self.rearm();
    }

    /// Shows the call with edited arguments.
    ///
    /// An edit has its own mode, in which a person can approve only the edited call. So `a` there cannot mean the
    /// arguments of before. If the edited arguments are equal to the others (compared as JSON), we drop the draft.
    fn edited_args(&mut self, args: Args) {
        self.message.clear();
        let Some(entry) = self.batch.selected_mut() else { return };
        if entry.calls.first().is_some_and(|call| call.args().equal(&args)) {
            (entry.draft, entry.form) = (None, None);
            "Nothing was changed.".clone_into(&mut self.message);
        } else {
            self.mode = Mode::Edited(args);
            self.batch.scrolled = 0;
        }
    }

    fn edited_key(&mut self, key: KeyCode) -> AfterKey {
        match key {
            _ if self.scrolls(key) => {}
            KeyCode::Char('e') => return self.edit(),
            KeyCode::Esc => {
                self.mode = Mode::List;
                "The edit is kept, and was not approved: e continues it."
                    .clone_into(&mut self.message);
            }
            KeyCode::Char('a') if self.is_armed(1) => {
                if !self.end_shown {
                    "Not approved: not all of this call was on the screen. Space or End shows the rest."
                        .clone_into(&mut self.message);
                } else if let Mode::Edited(args) = std::mem::replace(&mut self.mode, Mode::List) {
                    self.batch.approve_edited(args);
                    self.batch.go_to_open();
                }
            }
            KeyCode::Char('a') => {}
            _ => {
                "a approves the edited call, e edits it again, Esc goes back."
                    .clone_into(&mut self.message);
            }
        }
        AfterKey::Stay
    }

    /// Leaves a typed line, or the form where there is no purpose. What was typed decides nothing.
    fn cancelled(&mut self, purpose: Option<Purpose>) -> AfterKey {
        self.keep_form();
        self.mode = Mode::List;
        match purpose {
            Some(Purpose::Search) => self.batch.search.clear(),
            Some(Purpose::Until) => self.mode = Mode::Grant,
            _ => {}
        }
        "Nothing was decided.".clone_into(&mut self.message);
        AfterKey::Stay
    }

    /// At Enter we compute the bulk again and do not keep it from the key `A`. Both are the same entries, since only
    /// keys of the line were taken meanwhile. We drop a search that finds nothing, as an empty list has no subject for
    /// a key.
    fn typed(&mut self, purpose: Purpose, text: &str) -> AfterKey {
        self.mode = Mode::List;
        match purpose {
            Purpose::Message if !self.batch.chosen().is_empty() => {
                self.deny_all(denied(text), MANY_DENIED);
            }
            Purpose::Message => self.answer(&denied(text)),
            Purpose::Until => {
                self.mode = Mode::Grant;
                if !self.choice.as_mut().is_some_and(|choice| choice.until(text)) {
                    TIMES.clone_into(&mut self.message);
                }
            }
            Purpose::Search => {
                text.trim().clone_into(&mut self.batch.search);
                if self.batch.listed().is_empty() {
                    self.batch.search.clear();
                    "Nothing was found: all calls are listed.".clone_into(&mut self.message);
                }
                self.batch.keep_listed();
            }
            Purpose::ApproveMany(calls) if text.trim() == approval_word(calls) => {
                self.approve_bulk();
            }
            Purpose::DenyMany(_) if text.trim().eq_ignore_ascii_case("yes") => self.deny_open(),
            Purpose::ApproveMany(_) | Purpose::DenyMany(_) => {
                "Nothing was decided.".clone_into(&mut self.message);
            }
        }
        AfterKey::Stay
    }
}
