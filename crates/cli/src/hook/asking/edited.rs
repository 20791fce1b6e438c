//! A call that a person has approved with an edit, and about which the rules ask again in its edited form.
//!
//! An approval is for the call that was shown, and edited arguments go through the whole stack (rule A2). So the rules may
//! ask about the edited call: it has an ask of its own, which names the ask that was edited. The model does not know of the
//! edit. It calls again with the arguments that it had, so the hook has to find the edited call from there:
//!
//! | ask of the call | ask of the edited call | an equal call |
//! |---|---|---|
//! | approved with the edit | none yet | makes it, and waits for it |
//! | closed | pending | waits for it |
//! | closed | approved | runs in the edited form, once |
//! | closed | denied | is denied with that text |
//! | closed | used, or told to a call | is asked about anew |
//!
//! Nothing of this is stored but the note in the ask: each call has the layers decide about the edit again.

use serde_json::json;

use super::key::HOOK;
use countersign::decision::Question;
use countersign::deferred::Answer;
use countersign::ledger::AskRecord;
use countersign::show;

/// The approved ask in whose place the next one is asked.
pub(super) struct EditedFrom {
    pub(super) ask: String,
    /// The person who has edited the call; `None` where no one has, and the layers ask again for another reason.
    by: Option<String>,
}

impl EditedFrom {
    pub(super) fn of(approved: &AskRecord) -> Self {
        let edited = is_edited(approved).then_some(approved.decision.as_ref()).flatten();
        Self { ask: approved.ask.id().to_owned(), by: edited.map(|it| it.by_line()) }
    }
}

/// A note for the person about the next ask of a call, as a question of the hook: the ends of equal calls, and the
/// ask whose edit has led to this one.
pub(super) fn note_of(
    number: u64,
    told: Option<String>,
    edited: Option<&EditedFrom>,
) -> Option<Question> {
    let edited = edited.and_then(|it| Some((&it.ask, it.by.as_ref()?)));
    let key = match edited {
        Some((ask, _)) => edited_key(ask),
        None => format!("before {}", number + 1),
    };
    let edit = edited.map(|(ask, by)| {
        format!(
            "{} has edited this call and approved it (ask {ask}). In its new form it is asked about again.",
            show::escape_name(by)
        )
    });
    let reason = [told, edit].into_iter().flatten().collect::<Vec<_>>().join(" ");
    // Only the library makes questions; their stored form is public.
    let question = json!({"layer": HOOK, "key": key, "reason": reason});
    serde_json::from_value(question).ok().filter(|_| !reason.is_empty())
}

fn edited_key(ask: &str) -> String {
    format!("edited {ask}")
}

/// Returns `true` if a person has approved a call with other arguments than it had, and no call has run by it.
pub(super) fn is_edited(record: &AskRecord) -> bool {
    let answer = record.decision.as_ref().map(|it| &it.answer);
    matches!(answer, Some(Answer::Approve { args: Some(_) })) && record.ran_unapproved().is_none()
}

/// Returns `true` if an ask is about the edit of an earlier one: it says so, or it was there before that one was closed, so
/// that the edited call has joined it. A later one of another call is no part of this.
pub(super) fn comes_from(record: &AskRecord, before: &AskRecord) -> bool {
    let key = edited_key(before.ask.id());
    let says_so = |it: &Question| it.layer() == HOOK && it.key() == key;
    record.ask.questions().iter().any(says_so) || record.parked_at < before.changed_at
}
