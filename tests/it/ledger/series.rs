//! D11: how often the asks of equal calls may be denied, pending or unknown, and for how long: each limit at its edge.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign::Decision;
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{
    Ask, AskRecord, AskSeries, Claimed, Grant, GrantScope, Ledger, MemoryStore, NextAsk,
};
use serde_json::json;

use crate::support::place::{no, yes};

const MINUTE: i64 = 60_000;
const HOUR: Duration = Duration::from_secs(3600);

/// A ledger whose time stands still until it is set forward.
fn standing() -> (Arc<AtomicI64>, Ledger) {
    let time = Arc::new(AtomicI64::new(1_800_000_000_000));
    let clock = Arc::clone(&time);
    (time, Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::SeqCst))))
}

fn numbered(n: u64) -> Ask {
    Ask::new(format!("call {n}"), "root/c1", "pay").with_principal("ann")
}

/// The asks of one call, as a door with these limits makes them.
struct Calls<'a> {
    ledger: &'a Ledger,
    limits: fn(AskSeries<'_>) -> AskSeries<'_>,
}

impl Calls<'_> {
    /// Asks about the next call: the ask, or why no person is asked.
    async fn next(&self) -> Result<AskRecord, String> {
        let series = (self.limits)(AskSeries::new(self.ledger, &numbered));
        let last = series.last().await.unwrap();
        match series.next(&last, numbered(last.number() + 1), None).await.unwrap() {
            NextAsk::Parked(record) => Ok(*record),
            NextAsk::Denied(text) => Err(text),
            other => panic!("{other:?}"),
        }
    }

    async fn denied(&self) {
        self.denied_by("bob").await;
    }

    async fn denied_by(&self, who: &str) {
        let record = self.next().await.unwrap();
        self.ledger.decide(record.ask.id(), &record.fingerprint, who, no("no")).await.unwrap();
    }

    async fn approved(&self) -> AskRecord {
        let record = self.next().await.unwrap();
        self.ledger.decide(record.ask.id(), &record.fingerprint, "bob", yes()).await.unwrap();
        record
    }

    /// A call whose end was not seen.
    async fn unknown(&self, time: &AtomicI64) {
        let record = self.approved().await;
        self.ledger.claim(record.ask.id(), "w", Duration::from_secs(1)).await.unwrap();
        time.fetch_add(2_000, Ordering::SeqCst);
        let claimed = self.ledger.claim(record.ask.id(), "v", HOUR).await.unwrap();
        assert_eq!(claimed, Claimed::Unknown);
    }

    async fn note(&self) -> Option<String> {
        let series = (self.limits)(AskSeries::new(self.ledger, &numbered));
        let last = series.last().await.unwrap();
        series.note(&last).await.unwrap()
    }
}

// D11: "three in a row within … 24 hours", where the door says so: a denial counts up to the end of the window.
#[tokio::test]
async fn a_denial_counts_to_the_end_of_its_window() {
    let (time, ledger) = standing();
    let calls = Calls { ledger: &ledger, limits: |series| series.denied_within(HOUR) };
    calls.denied().await;
    time.fetch_add(30 * MINUTE, Ordering::SeqCst);
    calls.denied().await;
    calls.denied().await;
    time.fetch_add(30 * MINUTE, Ordering::SeqCst);
    let refused = calls.next().await.unwrap_err();
    assert!(refused.contains("3 times"), "the first is an hour old: {refused}");
    time.fetch_add(1, Ordering::SeqCst);
    calls.denied().await;
    assert!(calls.next().await.unwrap_err().contains("3 times"), "the last three count");
}

// D11: a limit that a door sets is that limit, and not one more or less.
#[tokio::test]
async fn the_limits_of_a_series_are_exact() {
    for most in 1..=4_u32 {
        let (_, ledger) = standing();
        let limits: fn(AskSeries<'_>) -> AskSeries<'_> = match most {
            1 => |series| series.max_denials(1),
            2 => |series| series.max_denials(2),
            // The default.
            3 => |series| series,
            _ => |series| series.max_denials(4),
        };
        let calls = Calls { ledger: &ledger, limits };
        for _ in 0..most {
            calls.denied().await;
        }
        assert!(calls.next().await.unwrap_err().contains(&format!("{most} times")));

        let (time, ledger) = standing();
        let limits: fn(AskSeries<'_>) -> AskSeries<'_> = match most {
            1 => |series| series.max_unknown(1),
            2 => |series| series.max_unknown(2),
            3 => |series| series,
            _ => |series| series.max_unknown(4),
        };
        let calls = Calls { ledger: &ledger, limits };
        for _ in 0..most {
            calls.unknown(&time).await;
        }
        assert!(calls.next().await.unwrap_err().contains(&format!("started {most} times")));
        // A door that does not see the ends of calls cannot count those that have none.
        let blind = Calls { ledger: &ledger, limits: |series| series.without_ends() };
        for times in most + 1..most + 4 {
            blind.unknown(&time).await;
            let note = blind.note().await.unwrap();
            assert!(note.contains(&format!("{times} times")), "it is counted all the same: {note}");
        }
        assert!(blind.next().await.is_ok());
    }
    let (_, ledger) = standing();
    for n in 0..2 {
        ledger
            .park(Ask::new(format!("other {n}"), "root/c", "x").with_principal("ann"))
            .await
            .unwrap();
    }
    let full = Calls { ledger: &ledger, limits: |series| series.max_pending(2) };
    assert!(full.next().await.unwrap_err().starts_with("Denied without asking: 2 calls"));
    assert!(Calls { ledger: &ledger, limits: |series| series.max_pending(3) }.next().await.is_ok());
}

// D11: "At most … 1 000 calls of a requester are pending at a time", where no door sets another limit.
#[tokio::test]
async fn the_thousandth_pending_ask_of_a_requester_is_the_last_one() {
    for (pending, is_asked) in [(999, true), (1_000, false)] {
        let (_, ledger) = standing();
        for n in 0..pending {
            let other = Ask::new(format!("other {n}"), "root/c", "x").with_principal("ANN");
            ledger.park(other).await.unwrap();
        }
        let next = Calls { ledger: &ledger, limits: |series| series }.next().await;
        assert_eq!(next.is_ok(), is_asked, "{pending} are pending: {next:?}");
        assert!(is_asked || next.unwrap_err().contains("1000 calls of this requester"));
    }
}

// D11: "An ask that no one has answered … changes none of this": a thousand asks are looked at, from the last one back, so that
// a flood of asks that are cancelled neither hides what people have said nor takes for ever.
#[tokio::test]
async fn a_thousand_asks_are_looked_at_for_what_people_have_said() {
    let (_, ledger) = standing();
    let ledger = ledger.session("s");
    let calls = Calls { ledger: &ledger, limits: |series| series };
    for _ in 0..3 {
        calls.denied().await;
    }
    let cancelled = async |n: u64| {
        let record = ledger.park(numbered(n)).await.unwrap();
        ledger.cancel(record.ask.id(), "other questions").await.unwrap();
    };
    for n in 4..=1_000 {
        cancelled(n).await;
    }
    assert!(calls.next().await.unwrap_err().contains("3 times"), "1 000 asks");
    cancelled(1_001).await;
    let next = calls.next().await.expect("the first of the three denials is out of sight");
    ledger.cancel(next.ask.id(), "other questions").await.unwrap();

    // What is out of sight may be a no, so that a grant, which answers other calls, does not answer this one.
    let asked = Decision::ask("pays").with_metadata(GRANTABLE, true);
    let asking = |ask: Ask| ask.with_questions(asked.questions().to_vec());
    let grant = Grant::of(&asking(numbered(1)), GrantScope::Session("s".into())).unwrap();
    ledger.make_grant(grant, &["bob"]).await.unwrap();
    cancelled(1_003).await;
    let granted = async |number: &(dyn Fn(u64) -> Ask + Send + Sync)| {
        let series = AskSeries::new(&ledger, number);
        let last = series.last().await.unwrap();
        let ask = asking(number(last.number() + 1));
        (series.granted(&last, &ask).await.unwrap().is_some(), series.note(&last).await.unwrap())
    };
    let others = |n| Ask::new(format!("other {n}"), "root/c1", "pay").with_principal("ann");
    assert_eq!(granted(&others).await, (true, None));
    let (is_granted, note) = granted(&numbered).await;
    assert!(!is_granted);
    assert!(note.is_some_and(|note| note.starts_with("Of the last 1000 equal calls")));
}

// D11: where the door sees the ends of calls, a person has to know that a call may have run, and no grant answers for them.
// Elsewhere the end of a call may just not have been reported, and a grant answers.
#[tokio::test]
async fn a_grant_answers_after_an_unknown_end_only_where_ends_are_not_seen() {
    for blind in [false, true] {
        let (time, ledger) = standing();
        let ledger = ledger.session("s");
        let limits: fn(AskSeries<'_>) -> AskSeries<'_> = match blind {
            true => |series| series.without_ends(),
            false => |series| series,
        };
        let asked = Decision::ask("pays").with_metadata(GRANTABLE, true);
        let number = |n| numbered(n).with_questions(asked.questions().to_vec());
        let calls = Calls { ledger: &ledger, limits };
        calls.unknown(&time).await;
        let grant =
            Grant::of(&ledger.park(number(9)).await.unwrap().ask, GrantScope::Session("s".into()));
        ledger.make_grant(grant.unwrap(), &["bob"]).await.unwrap();
        let series = limits(AskSeries::new(&ledger, &number));
        let last = series.last().await.unwrap();
        let next = series.next(&last, number(2), None).await.unwrap();
        assert_eq!(matches!(next, NextAsk::Granted(_)), blind, "{next:?}");
    }
}

// D11: "three in a row": a call that may have run ends a row of denials, and a denial a row of those.
#[tokio::test]
async fn denials_and_unknown_ends_are_counted_in_rows_of_their_own() {
    let (time, ledger) = standing();
    let calls = Calls { ledger: &ledger, limits: |series| series };
    for _ in 0..2 {
        calls.denied().await;
        calls.denied().await;
        calls.unknown(&time).await;
        calls.unknown(&time).await;
    }
    calls.denied().await;
    calls.denied().await;
    calls.denied().await;
    assert!(calls.next().await.unwrap_err().contains("3 times"));

    let (time, ledger) = standing();
    let blind = Calls { ledger: &ledger, limits: |series| series.without_ends() };
    for _ in 0..3 {
        blind.unknown(&time).await;
    }
    blind.denied().await;
    let next = Calls { ledger: &ledger, limits: |series| series }.next().await;
    assert!(next.is_ok(), "a no has ended the row of unknown ends: {next:?}");

    let (time, ledger) = standing();
    let lenient = Calls { ledger: &ledger, limits: |series| series.max_denials(4) };
    for _ in 0..3 {
        lenient.denied().await;
    }
    lenient.unknown(&time).await;
    let next = Calls { ledger: &ledger, limits: |series| series }.next().await;
    assert!(next.is_ok(), "a yes has ended the row of denials: {next:?}");
}

// D11: "Only a person's denials count": one of a policy is not counted, and begins no count anew.
#[tokio::test]
async fn a_denial_of_a_policy_in_between_changes_nothing() {
    let (_, ledger) = standing();
    let calls = Calls { ledger: &ledger, limits: |series| series };
    for who in ["bob", "policy: not at night", "bob", "policy: not at night", "bob"] {
        calls.denied_by(who).await;
    }
    let refused = calls.next().await.unwrap_err();
    assert!(refused.contains("a person has denied this call 3 times"), "{refused}");
}

// D11: a call that ran although no one had approved it is no yes of a person, and no no.
#[tokio::test]
async fn a_run_that_no_one_had_approved_changes_no_count() {
    let (_, ledger) = standing();
    let calls = Calls { ledger: &ledger, limits: |series| series };
    calls.denied().await;
    calls.denied().await;
    let record = calls.next().await.unwrap();
    ledger.ran_unapproved(record.ask, "hook", json!({"reported": true})).await.unwrap();
    calls.denied().await;
    assert!(calls.next().await.unwrap_err().contains("3 times"));
}

// D11: "A call is asked about with a note when an equal one … has just run": for ten minutes.
#[tokio::test]
async fn a_call_that_has_run_is_mentioned_for_ten_minutes() {
    let (time, ledger) = standing();
    let calls = Calls { ledger: &ledger, limits: |series| series };
    let record = calls.approved().await;
    ledger.claim(record.ask.id(), "w", HOUR).await.unwrap();
    ledger.settle(record.ask.id(), 1, json!("paid")).await.unwrap();
    for (later, says) in [
        (0, Some("less than a minute ago")),
        (MINUTE, Some("ran a minute ago")),
        (8 * MINUTE, Some("ran 9 minutes ago")),
        (MINUTE - 1, Some("ran 9 minutes ago")),
        (1, None),
    ] {
        time.fetch_add(later, Ordering::SeqCst);
        let note = calls.note().await;
        assert_eq!(note.is_some(), says.is_some(), "{says:?}: {note:?}");
        assert!(note.unwrap_or_default().contains(says.unwrap_or_default()), "{says:?}");
    }
}
