//! The batch as a list: its entries, which one is selected, and what was seen of each.
//!
//! Equal calls are one entry, because a person who is asked the same thing forty times stops reading. When the batch ends,
//! each call of an entry gets the answer of the entry. Calls are equal if they are in one group of
//! [`DeferredToolRequests::groups`](countersign::deferred::DeferredToolRequests::groups), which also compares the questions:
//! two calls with one set of arguments and different reasons are two entries.
//!
//! When an entry counts as seen (rule S4) depends on how it is shown:
//!
//! | where | it was seen when |
//! |---|---|
//! | the row of the list | the row is not cut, and the entry is short: the row and the questions are all there is |
//! | the details, opened short | their last row was on the screen, and nothing is left out of the short view |
//! | the details, opened in full | their last row was on the screen |
//!
//! An entry stays seen when the person moves on and comes back, as the call cannot change while the batch is open. Only
//! the drawing ([`layout`](super::layout)) marks an entry as seen, and no key does: a key says what a person wants to
//! see, a drawing what was there.

use std::collections::HashSet;

use super::dialogue::askable;
use super::form::ArgsForm;
use countersign::call::ToolCall;
use countersign::deferred::{DeferredToolRequests, Extent, ToolApproval, ToolApproved};
use countersign::show::{CallView, Limits};

/// One entry: a call, or several equal ones.
pub(super) struct CallGroup<'a> {
    pub(super) calls: Vec<&'a ToolCall>,
    pub(super) view: CallView,
    /// The reasons of all layers, on one line.
    pub(super) reasons: String,
    /// `true` if the row of the list says everything about the call, where it is not cut.
    ///
    /// Pins and parts that are left out show in the details only, so an entry with either is never short.
    pub(super) is_short: bool,
    /// `true` if all of the call was on the screen (rule S4).
    ///
    /// It stays `true`: when the person opens the entry again in the short form, the call is still
    /// seen.
    pub(super) seen: bool,
    pub(super) opened: Opened,
    pub(super) answer: Option<ToolApproval>,
    /// `true` if it is one of those that are answered together.
    pub(super) chosen: bool,
    /// The form in which the arguments are being edited.
    pub(super) form: Option<ArgsForm>,
    /// The arguments that are being edited in the person's editor.
    ///
    /// It survives a message about a mistake and a return to the list, so a long edit is not lost by a missing comma.
    pub(super) draft: Option<String>,
}

/// The part of a call that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    Short,
    Full,
    Unmasked,
}

impl Opened {
    fn limits(self) -> Limits {
        match self {
            Self::Short => Limits::default(),
            Self::Full => Limits::none(),
            Self::Unmasked => Limits::unmasked(),
        }
    }
}

/// The calls that a bulk approval leaves out, and those that it approves.
///
/// If a view is cut (`view.cut`), the stored call itself is shortened, and no key can show the rest. A person has to
/// approve it alone, with the warning in its details.
pub(super) struct Bulk {
    pub(super) entries: Vec<usize>,
    pub(super) calls: usize,
    pub(super) unseen: usize,
}

/// The entries, and the place in them.
pub(super) struct CallList<'a> {
    requests: &'a DeferredToolRequests,
    pub(super) entries: Vec<CallGroup<'a>>,
    /// The index of the selected entry.
    pub(super) at: usize,
    /// The row of the details that is shown first.
    pub(super) scrolled: usize,
    /// Only entries with this text are listed.
    pub(super) search: String,
}

impl<'a> CallList<'a> {
    pub(super) fn new(requests: &'a DeferredToolRequests) -> Self {
        let asked: HashSet<_> = askable(requests).map(ToolCall::id).collect();
        let groups = requests.groups().into_iter();
        let groups = groups.filter(|calls| calls.iter().any(|call| asked.contains(call.id())));
        let entries = groups.filter_map(|calls| CallGroup::new(requests, calls)).collect();
        Self { requests, entries, at: 0, scrolled: 0, search: String::new() }
    }

    pub(super) fn selected(&self) -> Option<&CallGroup<'a>> {
        self.entries.get(self.at)
    }

    pub(super) fn selected_mut(&mut self) -> Option<&mut CallGroup<'a>> {
        self.entries.get_mut(self.at)
    }

    /// The details of the selected entry, as rows that are safe to print.
    pub(super) fn details(&self, width: usize) -> Vec<String> {
        let Some(entry) = self.selected() else { return Vec::new() };
        let Some(call) = entry.calls.first() else { return Vec::new() };
        let view = CallView::of(self.requests, call.id(), entry.opened.limits());
        let mut rows = Vec::new();
        if let Some(view) = view {
            rows.extend(view.text(width).lines().map(str::to_owned));
            if entry.opened != Opened::Short {
                rows.extend(view.details(width).lines().map(str::to_owned));
            }
        }
        if entry.calls.len() > 1 {
            rows.push(format!("  = {} equal calls, answered as one", entry.calls.len()));
        }
        rows
    }

    /// Returns `true` if the details leave nothing out: then their last row completes the call.
    ///
    /// If a short view leaves parts out, its last row is not the end of the call, and a person who scrolls to it has
    /// not seen the rest.
    pub(super) fn shows_all(&self) -> bool {
        self.selected().is_some_and(|it| it.opened != Opened::Short || !it.view.left_out)
    }

    /// Returns `true` if the batch is one call, and no search leaves it out.
    pub(super) fn is_one_call(&self) -> bool {
        self.entries.len() == 1 && self.listed().len() == 1
    }

    /// The indices of the entries that the search leaves.
    pub(super) fn listed(&self) -> Vec<usize> {
        let text = self.search.to_lowercase();
        let has = |entry: &CallGroup<'_>| {
            let of = |it: &str| it.to_lowercase().contains(&text);
            text.is_empty() || of(&entry.view.headline) || of(entry.row()) || of(&entry.reasons)
        };
        (0..self.entries.len()).filter(|at| self.entries.get(*at).is_some_and(has)).collect()
    }

    /// Selects the entry that is so many rows away in the list.
    pub(super) fn go(&mut self, rows: isize) {
        let listed = self.listed();
        let here = listed.iter().position(|at| *at == self.at).unwrap_or(0);
        let last = listed.len().saturating_sub(1);
        let to = here.saturating_add_signed(rows).min(last);
        if let Some(at) = listed.get(to) {
            self.select(*at);
        }
    }

    /// Selects the next entry without an answer, from the selected one on.
    ///
    /// After an answer the next question comes by itself, first among the entries that the search leaves, then among
    /// all. Otherwise the last answer in a search would leave the person with a list of answered calls and a run that
    /// waits. The search ends if the entry is not in it.
    pub(super) fn go_to_open(&mut self) {
        let listed = self.listed();
        let (before, behind): (Vec<_>, Vec<_>) = listed.into_iter().partition(|at| *at < self.at);
        let all = behind.into_iter().chain(before).chain(0..self.entries.len());
        let mut open = all.filter(|at| self.entries.get(*at).is_some_and(|it| it.answer.is_none()));
        if let Some(at) = open.next() {
            if !self.listed().contains(&at) {
                self.search.clear();
            }
            self.select(at);
        }
    }

    fn select(&mut self, at: usize) {
        if self.at != at {
            (self.at, self.scrolled) = (at, 0);
        }
    }

    /// Selects a listed entry, where the selected one is not listed any more.
    pub(super) fn keep_listed(&mut self) {
        let listed = self.listed();
        if !listed.contains(&self.at)
            && let Some(first) = listed.first()
        {
            self.select(*first);
        }
    }

    /// Opens the selected call: all of it, then with what is masked, then short again.
    ///
    /// Masked values need a second key: a person who wants to see the whole of a long call must not show a password to
    /// the room.
    pub(super) fn open(&mut self) {
        self.scrolled = 0;
        if let Some(entry) = self.selected_mut() {
            entry.opened = match entry.opened {
                Opened::Short => Opened::Full,
                Opened::Full if entry.view.masked => Opened::Unmasked,
                Opened::Full | Opened::Unmasked => Opened::Short,
            };
        }
    }

    pub(super) fn answer(&mut self, at: usize, answer: &ToolApproval) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.answer = Some(answer.clone());
            entry.chosen = false;
        }
    }

    /// The listed entries that are chosen.
    pub(super) fn chosen(&self) -> Vec<usize> {
        let is_chosen = |at: &usize| self.entries.get(*at).is_some_and(|it| it.chosen);
        self.listed().into_iter().filter(is_chosen).collect()
    }

    /// Chooses the selected entry, or unchooses it.
    pub(super) fn choose(&mut self) {
        if let Some(entry) = self.selected_mut() {
            entry.chosen = !entry.chosen && entry.answer.is_none();
        }
    }

    /// Chooses none.
    pub(super) fn choose_none(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.chosen = false);
    }

    /// The entries without an answer that are answered together: the chosen ones, or all that are listed.
    fn together(&self) -> Vec<usize> {
        let chosen = self.chosen();
        let all = if chosen.is_empty() { self.listed() } else { chosen };
        let open = |at: &usize| self.entries.get(*at).is_some_and(|it| it.answer.is_none());
        all.into_iter().filter(open).collect()
    }

    /// The entries that are approved together: of those that are answered together, those whose calls were seen and are
    /// stored in full (rule S4).
    pub(super) fn bulk(&self) -> Bulk {
        let mut bulk = Bulk { entries: Vec::new(), calls: 0, unseen: 0 };
        for at in self.together() {
            let Some(entry) = self.entries.get(at) else { continue };
            let extent = if entry.seen { Extent::Together } else { Extent::Part };
            let may = |call: &&ToolCall| self.requests.check_approval(call.id(), extent).is_ok();
            if entry.calls.iter().all(may) {
                bulk.entries.push(at);
                bulk.calls += entry.calls.len();
            } else {
                bulk.unseen += entry.calls.len();
            }
        }
        bulk
    }

    /// The entries that are denied together, and the number of their calls.
    pub(super) fn open_entries(&self) -> (Vec<usize>, usize) {
        let open = self.together();
        let calls = open.iter().filter_map(|at| self.entries.get(*at)).map(|it| it.calls.len());
        let calls = calls.sum();
        (open, calls)
    }

    /// The number of calls that are approved, denied and open.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        self.entries.iter().fold((0, 0, 0), |(yes, no, open), entry| {
            let calls = entry.calls.len();
            match &entry.answer {
                Some(ToolApproval::Approved(_)) => (yes + calls, no, open),
                Some(ToolApproval::Denied(_)) => (yes, no + calls, open),
                None => (yes, no, open + calls),
            }
        })
    }

    /// The answers by call, once every call has one.
    ///
    /// `None` while one is open: a person answers a batch as a whole or not at all, and nothing of it runs before
    /// (rule T1).
    pub(super) fn answers(&self) -> Option<Vec<(&'a str, ToolApproval)>> {
        let mut out = Vec::new();
        for entry in &self.entries {
            let answer = entry.answer.clone()?;
            out.extend(entry.calls.iter().map(|call| (call.id(), answer.clone())));
        }
        Some(out)
    }

    /// Approves the selected entry with other arguments.
    pub(super) fn approve_edited(&mut self, args: countersign::args::Args) {
        let at = self.at;
        self.answer(at, &ToolApproved::with_args(args).into());
    }
}

impl<'a> CallGroup<'a> {
    /// The call in a row: what is wanted, where a door or a template words it, and the call alone where it says as much.
    pub(super) fn row(&self) -> &str {
        let is_worded = self.view.line() == self.view.title;
        if is_worded { &self.view.action } else { &self.view.headline }
    }

    fn new(requests: &DeferredToolRequests, calls: Vec<&'a ToolCall>) -> Option<Self> {
        let view = CallView::of(requests, calls.first()?.id(), Limits::default())?;
        let asked = view.questions.iter().map(|it| format!("{}: {}", it.asked_by, it.reason));
        let reasons = asked.collect::<Vec<_>>().join("; ");
        Some(Self {
            calls,
            is_short: view.is_brief(),
            view,
            reasons,
            seen: false,
            opened: Opened::Short,
            answer: None,
            chosen: false,
            form: None,
            draft: None,
        })
    }
}
