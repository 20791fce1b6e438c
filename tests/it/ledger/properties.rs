//! Rules that say "never", over random operations and a clock that steps (rules L1, L2, L4).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign::Args;
use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, AskRecord, AskState, Cancelled, Claimed, Decided, Ledger, LedgerError, MemoryStore,
    Quorum, Renewed, Settled,
};
use proptest::prelude::*;
use serde_json::json;

/// A ledger in memory whose clock is set by hand.
fn ledger() -> (Ledger, Arc<AtomicI64>) {
    let clock = Arc::new(AtomicI64::new(1_000_000));
    let shared = Arc::clone(&clock);
    let store = MemoryStore::with_clock(move || shared.load(Ordering::Relaxed));
    (Ledger::new(store), clock)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test]
async fn a_clock_that_steps_back_revives_nothing() {
    let (ledger, clock) = ledger();
    let ask = ledger.park(Ask::new("r", "c", "rm").with_expires_in(seconds(10))).await.unwrap();
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    let yes = || Answer::Approve { args: None };
    clock.fetch_sub(500_000, Ordering::Relaxed);
    assert_eq!(ledger.expire().await.unwrap().changed, [""; 0]);
    clock.fetch_add(510_000, Ordering::Relaxed);
    assert_eq!(ledger.decide(id, fingerprint, "ann", yes()).await.unwrap(), Decided::Expired);
    clock.fetch_sub(500_000, Ordering::Relaxed);
    assert_eq!(ledger.decide(id, fingerprint, "ann", yes()).await.unwrap(), Decided::Expired);

    let ask = ledger.park(Ask::new("r", "d", "rm").with_expires_in(seconds(10))).await.unwrap();
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    clock.fetch_add(9_999, Ordering::Relaxed);
    let won = ledger.decide(id, fingerprint, "ann", yes()).await.unwrap();
    assert_eq!(won, Decided::Won { again: false }, "in time, to the millisecond");
    ledger.claim(id, "w1", seconds(1)).await.unwrap();
    clock.fetch_add(3_600_000, Ordering::Relaxed);
    assert_eq!(ledger.claim(id, "w2", seconds(1)).await.unwrap(), Claimed::Unknown);
    clock.fetch_sub(3_600_000, Ordering::Relaxed);
    assert_eq!(ledger.claim(id, "w2", seconds(1)).await.unwrap(), Claimed::Unknown);
    assert!(ledger.verify(&Default::default()).await.is_ok());
}

/// L4: "An ask that is dated more than an hour ahead of the clock is neither decided nor claimed."
#[tokio::test]
async fn an_ask_from_a_clock_that_is_days_ahead_is_neither_decided_nor_claimed() {
    let (ledger, clock) = ledger();
    let (hour, yes) = (3_600_000, || Answer::Approve { args: None });
    let ask = ledger.park(Ask::new("r", "c", "rm")).await.unwrap();
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    let ahead = |error: LedgerError| match error {
        LedgerError::Ahead { id, ahead } => (id, ahead),
        other => panic!("{other}"),
    };
    clock.fetch_sub(hour + 1, Ordering::Relaxed);
    let refused = ledger.decide(id, fingerprint, "ann", yes()).await.unwrap_err();
    assert!(refused.to_string().contains("60 minutes ahead"), "{refused}");
    assert_eq!(ahead(refused), (id.to_owned(), Duration::from_millis(3_600_001)));
    clock.fetch_add(1, Ordering::Relaxed);
    assert!(matches!(ledger.decide(id, fingerprint, "ann", yes()).await, Ok(Decided::Won { .. })));

    // A decision that a clock ten days ahead has dated would be valid for ten days too long.
    let ask = ledger.park(Ask::new("r", "d", "rm")).await.unwrap();
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    clock.fetch_add(240 * hour, Ordering::Relaxed);
    ledger.decide(id, fingerprint, "ann", yes()).await.unwrap();
    clock.fetch_sub(240 * hour, Ordering::Relaxed);
    ahead(ledger.claim(id, "w", seconds(1)).await.unwrap_err());
    ledger.cancel(id, "ann").await.unwrap();
    assert!(ledger.verify(&Default::default()).await.is_ok());
}

/// One step of a person or a worker.
#[derive(Debug, Clone)]
enum Step {
    Decide { who: u8, answer: u8, stale: bool },
    Claim { worker: u8, lease: u64 },
    Renew { token: u64, lease: u64 },
    Settle { token: u64, outcome: u8 },
    Release { token: u64 },
    Cancel { who: u8 },
    Expire,
    Clock { by: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..5_u8, 0..5_u8, prop::bool::weighted(0.1))
            .prop_map(|(who, answer, stale)| Step::Decide { who, answer, stale }),
        4 => (0..3_u8, 0..30_u64).prop_map(|(worker, lease)| Step::Claim { worker, lease }),
        1 => (0..4_u64, 0..30_u64).prop_map(|(token, lease)| Step::Renew { token, lease }),
        2 => (0..4_u64, 0..3_u8).prop_map(|(token, outcome)| Step::Settle { token, outcome }),
        1 => (0..4_u64).prop_map(|token| Step::Release { token }),
        1 => (0..3_u8).prop_map(|who| Step::Cancel { who }),
        1 => Just(Step::Expire),
        2 => (-20_000..40_000_i64).prop_map(|by| Step::Clock { by }),
    ]
}

fn answer(n: u8) -> Answer {
    match n {
        0 | 1 => Answer::Approve { args: None },
        2 => Answer::Approve { args: Some(Args::new().with("n", 2)) },
        3 => Answer::Deny { message: "no".to_owned() },
        _ => Answer::Result { value: json!(4) },
    }
}

/// Takes a step. Returns its result as a word that starts with `!` when it changed something.
async fn take(ledger: &Ledger, clock: &AtomicI64, ask: &AskRecord, step: &Step) -> &'static str {
    let id = ask.ask.id();
    match step.clone() {
        Step::Decide { who, answer, stale } => {
            let fingerprint = if stale { "stale" } else { ask.fingerprint.as_str() };
            let made =
                ledger.decide(id, fingerprint, &format!("p{who}"), self::answer(answer)).await;
            match made.unwrap() {
                Decided::Won { again: false } => "!won",
                Decided::Recorded { again: false, .. } => "!recorded",
                _ => "",
            }
        }
        Step::Claim { worker, lease } => {
            match ledger.claim(id, &format!("w{worker}"), seconds(lease)).await.unwrap() {
                Claimed::Claimed { .. } => "!claimed",
                _ => "",
            }
        }
        Step::Renew { token, lease } => {
            match ledger.renew(id, token, seconds(lease)).await.unwrap() {
                Renewed::Renewed { .. } => "!renewed",
                _ => "",
            }
        }
        Step::Settle { token, outcome } => {
            match ledger.settle(id, token, json!(outcome)).await.unwrap() {
                Settled::Settled { again: false, .. } => "!settled",
                _ => "",
            }
        }
        Step::Release { token } => match ledger.release(id, token).await.unwrap() {
            Settled::Settled { again: false, .. } => "!settled",
            _ => "",
        },
        Step::Cancel { who } => match ledger.cancel(id, &format!("p{who}")).await.unwrap() {
            Cancelled::Cancelled { again: false } => "!cancelled",
            _ => "",
        },
        Step::Expire => {
            assert!(ledger.expire().await.unwrap().refused.is_empty());
            ""
        }
        Step::Clock { by } => {
            clock.fetch_add(by, Ordering::Relaxed);
            ""
        }
    }
}

/// What may never happen from one step to the next.
fn never(before: &AskRecord, after: &AskRecord, told: &str) -> Result<(), TestCaseError> {
    prop_assert!(after.token >= before.token, "tokens only grow");
    prop_assert_eq!(after.token > before.token, told == "!claimed", "each claim has its own token");
    if told == "!claimed" {
        prop_assert_eq!(after.token, before.token + 1);
        let answer = after.decision.as_ref().map(|decision| &decision.answer);
        prop_assert!(matches!(answer, Some(Answer::Approve { .. })), "what runs was approved");
        let again = before.token > 0;
        prop_assert!(!again || before.ask.principal() == Some("idempotent"), "run again");
    }
    if before.outcome.is_some() {
        prop_assert_eq!(&after.outcome, &before.outcome, "an outcome never changes");
        prop_assert_eq!(after.state, before.state, "what is settled is settled");
    }
    let ended = [AskState::Expired, AskState::Cancelled, AskState::Executed, AskState::Released];
    if ended.contains(&before.state) {
        prop_assert_eq!(after, before, "what has ended does not change");
    }
    if let Some(decision) = &before.decision
        && after.decision.as_ref() != Some(decision)
    {
        let now = after.decision.as_ref().map(|decision| &decision.answer);
        let veto = matches!(now, Some(Answer::Deny { .. }))
            && !matches!(decision.answer, Answer::Deny { .. })
            && before.votes.len() > 1
            && before.token == 0;
        prop_assert!(veto, "a decision stands, but for a veto before the claim");
    }
    let changed = before.decision != after.decision;
    prop_assert_eq!(changed, told == "!won", "the answer that won is the decision");
    prop_assert!(
        after.decision.is_none() || after.state != AskState::Expired,
        "an expired ask has no decider"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_is_decided_or_executed_twice(
        steps in prop::collection::vec(step(), 1..60),
        approvals in 1..3_u32,
        idempotent in any::<bool>(),
        deadline in prop::option::of(0..100_u64),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (ledger, clock) = ledger();
            let principal = if idempotent { "idempotent" } else { "once" };
            let mut ask = Ask::new("r", "c", "rm").with_principal(principal).with_idempotent(idempotent);
            ask = ask.with_quorum(Quorum { approvals, not_the_requester: false });
            if let Some(deadline) = deadline {
                ask = ask.with_expires_in(seconds(deadline));
            }
            let mut before = ledger.park(ask).await.unwrap();
            // A reader sees that an ask is over by its own clock. It is over for good once a step has acted on that.
            let mut acted = true;
            for step in &steps {
                let told = take(&ledger, &clock, &before, step).await;
                let after = ledger.get(before.ask.id()).await.unwrap().unwrap();
                let is_clock = matches!(step, Step::Clock { .. });
                let only_seen = is_clock && before.state == AskState::Expired && !acted;
                if !only_seen {
                    never(&before, &after, told)?;
                }
                acted = match step {
                    Step::Clock { .. } => acted && before.state == AskState::Expired,
                    Step::Expire | Step::Decide { stale: false, .. } => true,
                    _ => acted,
                };
                before = after;
            }
            let verified = ledger.verify(&Default::default()).await;
            prop_assert!(verified.is_ok(), "the log tells the same: {:?}", verified);
            Ok(())
        })?;
    }
}
