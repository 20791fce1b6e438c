//! Asks as text, for people.
//!
//! An ask begins at the first column, what the ledger says about it in the third one, and the call in the fifth, as
//! [`show`] draws it: no text of a call can begin a line that looks like a line of the ledger.

use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Decided, Listed, Millis, utc};
use countersign::show::{self, AskView, CallView, Limits};
use countersign::{Args, ToolCall};
use serde_json::Value;

use crate::output::WIDTH;
use crate::used_store::UsedStore;

/// The end of what is listed: how one decides.
fn deciding(store: &UsedStore) -> String {
    let words = "asks decide ASK --fingerprint FINGERPRINT --as NAME --approve";
    format!(
        "To decide: `{}` asks you about each, here. Or `{}`, or `--deny MESSAGE`; the first characters of an ID are enough.",
        store.command("asks review"),
        store.command(words)
    )
}

/// The way on where nothing was found: other asks, or what parks one.
fn nothing(state: Option<AskState>, store: &UsedStore) -> String {
    let name = store.name();
    let Some(state) = state else {
        return format!(
            "There are no asks in the store `{name}`.\n`countersign hook install CLIENT` has a coding agent ask, \
             `countersign guard` an MCP server."
        );
    };
    let past = store.command("asks list");
    let pending = match state {
        AskState::Pending => {
            format!(" `{}` shows new ones as they come.", store.command("asks review"))
        }
        _ => String::new(),
    };
    format!(
        "No asks are {} in the store `{name}`.\n`{past}` lists all, also the past ones.{pending}",
        state.as_str()
    )
}

/// The meaning of an approval with an edit where the rules decide about the call as it is edited.
pub(super) const EDITED: &str = "Approved as edited. Your rules decide about the call in its new form, and may ask about it again.";

/// The result of an answer in a sentence.
pub(super) fn answered(decided: &Decided, is_edited: bool, id: &str, store: &UsedStore) -> String {
    match decided {
        Decided::Won { again: false } if is_edited => EDITED.to_owned(),
        _ => self::decided(decided, id, store),
    }
}

/// The result of a decision in a sentence.
pub(super) fn decided(decided: &Decided, id: &str, store: &UsedStore) -> String {
    let shows = || store.command(&format!("asks show {id}"));
    match decided {
        Decided::Won { again: false } => "Decided. It is final.".to_owned(),
        Decided::Won { again: true } => "You had decided so before.".to_owned(),
        Decided::Recorded { approvals, needed, .. } => {
            format!(
                "Your approval is recorded: {approvals} of {needed}. The call waits for the others."
            )
        }
        Decided::Lost(winner) => {
            let by: Vec<_> = winner.by.iter().map(|by| show::escape_name(by)).collect();
            let by = by.join(" and ");
            let word = match &winner.decision {
                Answer::Approve { .. } => "approved",
                Answer::Deny { .. } => "denied",
                Answer::Result { .. } => "answered",
            };
            format!("Not counted: it was {word} by {by} before. `{}` shows it.", shows())
        }
        Decided::Expired => "Too late: its time is over. It does not run.".to_owned(),
        Decided::Cancelled => "It was withdrawn. It does not run.".to_owned(),
        Decided::Mismatch { .. } => format!(
            "Nothing was decided: the call that waits is not the one of this fingerprint, which has to be whole. `{}` shows it.",
            shows()
        ),
        Decided::NotAllowed => format!(
            "Not counted: you may not approve it. The requester may be excluded, or it is for certain people, or this name is \
             not checked here, as only an inbox behind a proxy that logs people in checks names. `{}` says which.",
            shows()
        ),
        Decided::BlankName => {
            "A name is needed, and not one that begins with `by grant `: `--as NAME`.".to_owned()
        }
        Decided::OthersDecide => "You may see this call, and not decide it.".to_owned(),
        Decided::Unapprovable(why) => {
            format!(
                "It was not approved: {}. `{}` shows it.",
                show::escape(&why.to_string()),
                shows()
            )
        }
        // The output says that the ask is unknown, or that this version does not know the result.
        _ => "Nothing was decided.".to_owned(),
    }
}

pub(super) fn list(
    listed: &Listed<AskRecord>,
    state: Option<AskState>,
    (now, store): (Millis, &UsedStore),
) -> String {
    let shown = |record| one(record, now, (Limits::default(), store), Depth::Listed);
    let mut blocks: Vec<_> = listed.records.iter().map(shown).collect();
    for row in &listed.refused {
        let problem = format!("{}: {}", row.id, row.error);
        blocks.push(show::wrap("refused ", &show::escape(&problem), WIDTH).join("\n"));
    }
    if blocks.is_empty() {
        return nothing(state, store);
    }
    if !listed.records.is_empty() {
        let show = store.command("asks show ASK");
        blocks.push(format!(
            "`{show}` shows one with its details: notes, and what an approval is bound to."
        ));
    }
    if listed.records.iter().any(|record| record.state == AskState::Pending) {
        blocks.push(deciding(store));
    }
    blocks.join("\n\n")
}

/// One ask with nothing left out.
pub(super) fn shown(record: &AskRecord, now: Millis, store: &UsedStore) -> String {
    let mut text = whole(record, now, store);
    if record.state == AskState::Pending {
        text += &format!("\n\n{}", deciding(store));
    }
    text
}

/// The same without the command that decides it.
pub(super) fn whole(record: &AskRecord, now: Millis, store: &UsedStore) -> String {
    one(record, now, (Limits::none(), store), Depth::Whole)
}

/// The part of a call that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// As in a list: without the details, which repeat the call and say what an approval is bound to.
    Listed,
    /// With its details.
    Whole,
}

fn one(
    record: &AskRecord,
    now: Millis,
    (limits, store): (Limits, &UsedStore),
    depth: Depth,
) -> String {
    let view = record.view(now, limits);
    let lines = vec![format!("ask {}", view.id)];
    let mut out = AskText { lines, depth, is_cut: false, is_masked: false };
    out.line("state", &state(&view));
    if let Some(note) = view.no_caller {
        out.line("caller", note);
    }
    out.line("requester", view.requester.as_deref().unwrap_or("unknown"));
    out.line("fingerprint", &view.fingerprint);
    if let Some(call) = &view.call {
        out.view("call", call);
    }
    out.quorum(&view);
    out.decision(record, &view, limits);
    if let Some(claim) = &view.claim {
        out.line("claimed", &format!("by {}, until {}", claim.worker, utc(claim.until)));
    }
    if let Some(outcome) = &record.outcome {
        out.value("outcome", outcome, limits);
    }
    if out.is_cut {
        let show = store.command(&format!("asks show {}", record.ask.id()));
        // A command that is broken into lines is not one that can be copied.
        out.lines.push(format!("  left out: see `{show}`"));
    }
    if out.is_masked {
        out.line("masked", "what looks like a secret; `--json` prints it");
    }
    out.lines.join("\n")
}

fn state(view: &AskView) -> String {
    let parked = format!("parked {}", utc(view.parked_at));
    let unapproved = view.outcome.as_ref().filter(|it| it.word == "ran_unapproved");
    let unapproved = unapproved.map_or("", |_| ": it ran without approval");
    let mut text = format!("{}{unapproved}, {parked}", view.state);
    match view.expires_at {
        Some(at) if view.state == "pending" => text += &format!(", expires {}", utc(at)),
        None if view.state == "pending" => text += ", without a deadline",
        _ => text += &format!(", changed {}", utc(view.changed_at)),
    }
    if let Some(by) = &view.cancelled_by {
        text += &format!(", cancelled by {by}");
    }
    text
}

struct AskText {
    lines: Vec<String>,
    depth: Depth,
    is_cut: bool,
    is_masked: bool,
}

impl AskText {
    /// A line of the ledger. The value is on one line, without characters that are not shown.
    fn line(&mut self, label: &str, value: &str) {
        self.lines.extend(show::wrap(&format!("  {label}: "), value, WIDTH));
    }

    fn view(&mut self, label: &str, view: &CallView) {
        let details = match self.depth {
            Depth::Listed => String::new(),
            Depth::Whole => view.details(WIDTH - 4),
        };
        self.is_cut |= view.left_out || view.cut;
        self.is_masked |= view.masked;
        self.lines.push(format!("  {label}:"));
        for text in [view.text(WIDTH - 4), details] {
            self.lines.extend(text.lines().map(|line| format!("    {line}")));
        }
    }

    /// A value in JSON, as a view of its fields.
    fn value(&mut self, label: &str, value: &Value, limits: Limits) {
        let view = CallView::of_call(
            &ToolCall::new("", label, Args::new().with("value", value.clone()).to_value()),
            limits,
        );
        self.view(label, &view);
    }

    fn quorum(&mut self, view: &AskView) {
        if view.approvals_needed > 1 || view.not_the_requester {
            let not = if view.not_the_requester { ", none of them the requester's" } else { "" };
            let needed = show::counted(view.approvals_needed as usize, "approval");
            self.line("needs", &format!("{needed}{not}"));
        }
        if view.decision.is_none() {
            for proposal in &view.proposals {
                for (who, at) in proposal.answer.by.iter().zip(&proposal.times) {
                    self.line(
                        "so far",
                        &format!("{} by {who}, {}", proposal.answer.word, utc(*at)),
                    );
                }
            }
        }
    }

    fn decision(&mut self, record: &AskRecord, view: &AskView, limits: Limits) {
        let Some(decision) = &view.decision else { return };
        let who = decision.by.join(" and ");
        self.line("decision", &format!("{}, {who}, {}", decision.word, utc(decision.at)));
        if let Some(message) = &decision.message {
            self.line("message", message);
        }
        if let Some(edited) = &view.runs_with {
            self.view("runs with", edited);
        }
        if let Some(Answer::Result { value }) = record.decision.as_ref().map(|it| &it.answer) {
            self.value("answer", value, limits);
        }
    }
}
