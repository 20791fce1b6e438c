//! The asks of equal calls: joined, numbered, and bounded alike in every store (rules D11 and G2).

use std::time::Duration;

use super::{LONG, OVER, SharedStore, approve, deny, missing, ok};
use crate::args::Args;
use crate::decision::Decision;
use crate::deferred::Answer;
use crate::deferred::metadata::GRANTABLE;
use crate::ledger::{
    Acquired, Ask, AskRecord, AskSeries, AskState, Claimed, Grant, GrantScope, Ledger, NextAsk,
};

pub(super) async fn check(place: &SharedStore) {
    equal_calls_join_the_open_ask(place).await;
    at_once(place).await;
    no_ask_is_beside_an_open_one(place).await;
    at_once_behind_a_used_one(place).await;
    an_answer_that_was_told_is_not_open(place).await;
    three_denials_end_the_asking(place).await;
    only_a_later_grant_for_this_call_changes_a_no(place).await;
    runs_with_an_unknown_end_are_counted(place).await;
    an_ask_that_no_one_has_answered_changes_nothing(place).await;
    a_no_does_not_hide_that_a_call_may_have_run(place).await;
    a_run_that_no_one_had_approved_is_told(place).await;
}

/// The ask with this number of a key, in a run of its own.
fn numbered(key: &str, n: u64) -> Ask {
    let asked = Decision::ask("pays").with_metadata(GRANTABLE, true);
    Ask::new(format!("series {key} {n}"), "root/c1", "pay")
        .with_args(Args::new().with("euros", 5))
        .with_questions(asked.questions().to_vec())
        .with_principal("ann")
}

/// Asks about the next call of a key.
async fn next(ledger: &Ledger, key: &str) -> NextAsk {
    let number = |n| numbered(key, n);
    let series = AskSeries::new(ledger, &number);
    let last = ok(series.last().await);
    ok(series.next(&last, number(last.number().saturating_add(1)), None).await)
}

async fn parked(ledger: &Ledger, key: &str) -> AskRecord {
    match next(ledger, key).await {
        NextAsk::Parked(record) => Some(*record),
        NextAsk::Granted(_) | NextAsk::Open(_) | NextAsk::Denied(_) => None,
    }
    .unwrap_or_else(missing)
}

async fn decide(ledger: &Ledger, record: &AskRecord, answer: Answer) {
    ok(ledger.decide(record.ask.id(), &record.fingerprint, "bob", answer).await);
}

async fn equal_calls_join_the_open_ask(place: &SharedStore) {
    let (one, other) = (place.ledger(0), place.ledger(1));
    let number = |n| numbered("joined", n);
    let open = async |ledger: &Ledger| {
        let last = ok(AskSeries::new(ledger, &number).last().await);
        (last.number(), last.open().is_some())
    };
    assert_eq!(open(&one).await, (0, false));
    for n in 1..=9 {
        let record = parked(&one, "joined").await;
        assert_eq!(open(&other).await, (n, true), "a pending ask is joined");
        decide(&other, &record, approve()).await;
        assert_eq!(open(&one).await, (n, true), "so is one whose answer was not used");
        ok(other.claim(record.ask.id(), "w", LONG).await);
        ok(other.settle(record.ask.id(), 1, 7.into()).await);
        assert_eq!(open(&one).await, (n, false), "an approval runs one call");
    }
    let known = ok(AskSeries::new(&one, &number).known(9).last().await);
    assert_eq!(known.record().map(|it| it.state), Some(AskState::Executed));
    let note = ok(AskSeries::new(&one, &number).note(&known).await);
    assert!(note.is_some_and(|it| it.contains("ran less than a minute ago")));
}

async fn at_once(place: &SharedStore) {
    let ids = place
        .at_once(|_, ledger| async move {
            let number = |n| numbered("at once", n);
            let series = AskSeries::new(&ledger, &number);
            let last = ok(series.last().await);
            let ask = number(last.number().saturating_add(1));
            match last.open() {
                Some(open) => open.ask.id().to_owned(),
                None => match ok(series.next(&last, ask, None).await) {
                    NextAsk::Parked(record) => record.ask.id().to_owned(),
                    other => format!("{other:?}"),
                },
            }
        })
        .await;
    let first = numbered("at once", 1);
    assert!(ids.iter().all(|id| id == first.id()), "calls at the same moment are one ask: {ids:?}");
}

async fn no_ask_is_beside_an_open_one(place: &SharedStore) {
    let ledger = place.ledger(0).session("beside");
    let number = |n| numbered("beside", n);
    let first = parked(&ledger, "beside").await;
    let grant = ok(Grant::of(&first.ask, GrantScope::Session("beside".into())));
    ok(ledger.make_grant(grant, &["ann"]).await);
    for answer in [None, Some(approve())] {
        if let Some(answer) = answer {
            decide(&place.ledger(1), &first, answer).await;
        }
        let series = AskSeries::new(&ledger, &number);
        let last = ok(series.last().await);
        let granted = ok(series.granted(&last, &number(2)).await);
        assert!(granted.is_none(), "G2: no grant answers beside an open ask");
        let next = ok(series.next(&last, number(2), None).await);
        assert!(
            matches!(&next, NextAsk::Open(open) if open.ask.id() == first.ask.id()),
            "M3: an equal call joins the open ask: {next:?}"
        );
        assert!(ok(ledger.get(number(2).id()).await).is_none(), "nothing was parked");
    }
}

/// Each looks, and looks again, as a door does between two attempts.
async fn at_once_behind_a_used_one(place: &SharedStore) {
    let used = parked(&place.ledger(0), "behind").await;
    decide(&place.ledger(1), &used, deny("no")).await;
    ok(place.ledger(1).close(used.ask.id()).await);
    place
        .at_once(|_, ledger| async move {
            let number = |n| numbered("behind", n);
            let series = AskSeries::new(&ledger, &number);
            for _ in 0..2 {
                let last = ok(series.last().await);
                let ask = number(last.number().saturating_add(1));
                ok(series.next(&last, ask, None).await);
            }
        })
        .await;
    let ledger = place.ledger(0);
    assert!(ok(ledger.get(numbered("behind", 2).id()).await).is_some());
    assert!(
        ok(ledger.get(numbered("behind", 3).id()).await).is_none(),
        "M3: at most one ask of equal calls is open"
    );
}

async fn an_answer_that_was_told_is_not_open(place: &SharedStore) {
    let ledger = place.ledger(1);
    let number = |n| numbered("told", n);
    let record = parked(&ledger, "told").await;
    decide(&ledger, &record, deny("no")).await;
    let series = || AskSeries::new(&ledger, &number).with_runs();
    assert!(ok(series().last().await).open().is_some(), "the no was not told yet");
    ok(ledger.save_run(record.ask.run(), 1.into(), None).await);
    if let Acquired::Lease(lease) = ok(ledger.acquire_run(record.ask.run()).await) {
        ok(lease.end(2.into(), &[]).await);
    }
    assert!(ok(series().last().await).open().is_none(), "it was told, as its run says");
}

async fn three_denials_end_the_asking(place: &SharedStore) {
    let ledger = place.ledger(1);
    for _ in 0..3 {
        let record = parked(&ledger, "denied").await;
        decide(&ledger, &record, deny("not today")).await;
    }
    let refused = next(&place.ledger(0), "denied").await;
    assert!(
        matches!(&refused, NextAsk::Denied(text) if text.contains("3 times") && text.contains("not today")),
        "D11: {refused:?}"
    );
    let number = |n| numbered("denied", n);
    let series = AskSeries::new(&ledger, &number).denied_within(Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let last = ok(series.last().await);
    let asked = ok(series.next(&last, number(4), None).await);
    assert!(matches!(asked, NextAsk::Parked(_)), "D11: denials before the window do not count");

    // A yes in between begins the count anew.
    for (n, answer) in
        [deny("no"), deny("no"), approve(), deny("no"), deny("no")].into_iter().enumerate()
    {
        let record = parked(&ledger, "in between").await;
        let approves = matches!(answer, Answer::Approve { .. });
        decide(&ledger, &record, answer).await;
        if approves {
            let claimed = ok(ledger.claim(record.ask.id(), "w", LONG).await);
            assert!(matches!(claimed, Claimed::Claimed { .. }), "{n}: {claimed:?}");
        }
    }
    assert!(matches!(next(&ledger, "in between").await, NextAsk::Parked(_)), "D11: reset by a yes");
}

async fn only_a_later_grant_for_this_call_changes_a_no(place: &SharedStore) {
    let ledger = place.ledger(0).session("series");
    let grant = |key: &str| ok(Grant::of(&numbered(key, 1), GrantScope::Session("series".into())));
    for _ in 0..3 {
        let record = parked(&ledger, "granted").await;
        decide(&ledger, &record, deny("no")).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let wide = ok(grant("granted").with_field("euros", crate::ledger::FieldPattern::between(0, 9)));
    ok(ledger.make_grant(wide, &["ann"]).await);
    let wide = next(&ledger, "granted").await;
    assert!(matches!(wide, NextAsk::Denied(_)), "G2: a grant for many calls is no yes to this one");
    ok(ledger.make_grant(grant("granted"), &["ann"]).await);
    let exact = next(&ledger, "granted").await;
    assert!(
        matches!(exact, NextAsk::Granted(_)),
        "G2: a grant for exactly this call is: {exact:?}"
    );

    let record = parked(&place.ledger(1), "late").await;
    decide(&ledger, &record, deny("no")).await;
    let asked = next(&ledger, "late").await;
    assert!(matches!(asked, NextAsk::Parked(_)), "G2: a grant of before the no is not asked");
}

async fn runs_with_an_unknown_end_are_counted(place: &SharedStore) {
    let ledger = place.ledger(1);
    let number = |n| numbered("unknown", n);
    for n in 1..=3_u64 {
        let record = parked(&ledger, "unknown").await;
        decide(&ledger, &record, approve()).await;
        let claimed = ok(ledger.claim(record.ask.id(), "w", OVER).await);
        assert!(matches!(claimed, Claimed::Claimed { .. }), "{claimed:?}");
        assert_eq!(ok(ledger.claim(record.ask.id(), "v", LONG).await), Claimed::Unknown);
        let series = AskSeries::new(&ledger, &number);
        let note = ok(series.note(&ok(series.last().await)).await).unwrap_or_default();
        let says = if n == 1 { "it may have run" } else { "may have run as often" };
        assert!(note.contains(says) && (n == 1 || note.contains(&n.to_string())), "{n}: {note}");
    }
    let refused = next(&ledger, "unknown").await;
    assert!(
        matches!(&refused, NextAsk::Denied(text) if text.contains("started 3 times")),
        "{refused:?}"
    );
}

/// The text about equal calls that the next question has.
async fn note(ledger: &Ledger, key: &str) -> String {
    let number = |n| numbered(key, n);
    let series = AskSeries::new(ledger, &number);
    ok(series.note(&ok(series.last().await)).await).unwrap_or_default()
}

/// A call that was approved, and whose worker has died in it.
async fn lost(ledger: &Ledger, key: &str) {
    let record = parked(ledger, key).await;
    decide(ledger, &record, approve()).await;
    ok(ledger.claim(record.ask.id(), "w", OVER).await);
    assert_eq!(ok(ledger.claim(record.ask.id(), "v", LONG).await), Claimed::Unknown);
}

async fn an_ask_that_no_one_has_answered_changes_nothing(place: &SharedStore) {
    // A session for each key: a grant covers equal calls under every key.
    let of = |key: &str| place.ledger(0).session(key);
    let cancelled = async |key: &str| {
        let record = parked(&of(key), key).await;
        ok(place.ledger(1).cancel(record.ask.id(), "a change of the rules").await);
    };
    let granted = async |key: &str| {
        let grant = ok(Grant::of(&numbered(key, 1), GrantScope::Session(key.into())));
        ok(of(key).make_grant(grant, &["ann"]).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    for n in 1..=3 {
        let key = "cancelled between";
        let record = parked(&of(key), key).await;
        decide(&place.ledger(1), &record, deny("no")).await;
        if n < 3 {
            cancelled(key).await;
        }
    }
    let refused = next(&of("cancelled between"), "cancelled between").await;
    assert!(matches!(&refused, NextAsk::Denied(text) if text.contains("3 times")), "{refused:?}");

    let record = parked(&of("granted before"), "granted before").await;
    granted("granted before").await;
    decide(&place.ledger(1), &record, deny("no")).await;
    cancelled("granted before").await;
    let asked = next(&of("granted before"), "granted before").await;
    assert!(matches!(asked, NextAsk::Parked(_)), "G2: the last answer was a no: {asked:?}");

    lost(&of("may have run"), "may have run").await;
    granted("may have run").await;
    cancelled("may have run").await;
    let said = note(&of("may have run"), "may have run").await;
    assert!(
        said.contains("it may have run"),
        "M3: a question says so until it is answered: {said}"
    );
    let asked = next(&of("may have run"), "may have run").await;
    assert!(
        matches!(asked, NextAsk::Parked(_)),
        "no grant answers in place of a person: {asked:?}"
    );
}

async fn a_no_does_not_hide_that_a_call_may_have_run(place: &SharedStore) {
    let ledger = place.ledger(1);
    lost(&ledger, "lost and denied").await;
    for _ in 0..2 {
        let record = parked(&ledger, "lost and denied").await;
        decide(&ledger, &record, deny("not now")).await;
        let said = note(&ledger, "lost and denied").await;
        assert!(said.contains("it may have run"), "another person may not know: {said}");
    }
}

async fn a_run_that_no_one_had_approved_is_told(place: &SharedStore) {
    let ledger = place.ledger(0);
    let record = parked(&ledger, "unapproved").await;
    let about = serde_json::json!({"reported": true});
    assert!(ok(ledger.ran_unapproved(record.ask, "hook", about).await).is_some());
    let said = note(&ledger, "unapproved").await;
    assert!(said.contains("ran less than a minute ago"), "{said}");
    assert!(said.contains("no one had approved it"), "{said}");
}
