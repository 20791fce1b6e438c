//! Asks that need the votes of several people (rule L1).

use super::{LONG, SharedStore, answer, approve, ask, deny, edit, ok};
use crate::ledger::{Ask, AskState, Claimed, Decided, Quorum};

pub(super) async fn check(place: &SharedStore) {
    distinct_people(place).await;
    at_once(place).await;
    an_edit_counts_for_itself(place).await;
    the_requester(place).await;
    veto(place).await;
}

fn several(name: &str, approvals: u32) -> Ask {
    ask(name).with_quorum(Quorum { approvals, not_the_requester: false })
}

fn recorded(approvals: u32, again: bool) -> Decided {
    Decided::Recorded { approvals, needed: 2, again }
}

async fn distinct_people(place: &SharedStore) {
    let parked = place.park(several("two people", 2)).await;
    assert_eq!(parked.decide("ann", approve()).await, recorded(1, false));
    let again = parked.decide("ann", approve()).await;
    assert_eq!(again, recorded(1, true), "a second vote of one person does not count, and says so");
    let claimed = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    assert_eq!(claimed, Claimed::NotDecided, "nothing runs before the quorum is complete");
    assert_eq!(parked.decide("bob", approve()).await, Decided::Won { again: false });
    let by = parked.now().await.decision.map(|decision| decision.by).unwrap_or_default();
    assert_eq!(by, ["ann", "bob"], "the decision names everyone who agreed");
    for who in ["ann", "bob"] {
        let again = parked.decide(who, approve()).await;
        assert_eq!(again, Decided::Won { again: true }, "{who}'s repeated vote wins again");
    }
    let late = parked.decide("eve", approve()).await;
    assert!(matches!(late, Decided::Lost(_)), "a vote after the decision gets the winners");
}

async fn at_once(place: &SharedStore) {
    let parked = place.park(several("seven at once", 7)).await;
    let (id, fingerprint) = (parked.id.clone(), parked.record.fingerprint.clone());
    let made = place
        .at_once(|n, ledger| {
            let (id, fingerprint) = (id.clone(), fingerprint.clone());
            // Two tasks vote for each person: the second vote does not count.
            let who = format!("person {}", n / 2);
            async move { ok(ledger.decide(&id, &fingerprint, &who, approve()).await) }
        })
        .await;
    let count = |wanted: &Decided| made.iter().filter(|made| *made == wanted).count();
    assert_eq!(count(&Decided::Won { again: false }), 1, "one vote completes the quorum: {made:?}");
    for approvals in 1..7 {
        let vote = Decided::Recorded { approvals, needed: 7, again: false };
        assert_eq!(count(&vote), 1, "each vote counts once: {made:?}");
    }
}

async fn an_edit_counts_for_itself(place: &SharedStore) {
    let parked = place.park(several("edited by two", 2)).await;
    assert_eq!(parked.decide("ann", approve()).await, recorded(1, false));
    let other = parked.decide("bob", edit("b")).await;
    assert_eq!(other, recorded(1, false), "an edit is a proposal of its own");
    let changed = parked.decide("ann", edit("c")).await;
    assert_eq!(
        changed,
        recorded(1, false),
        "another proposal of one person replaces the first vote"
    );
    let approved = parked.decide("eve", approve()).await;
    assert_eq!(approved, recorded(1, false), "a replaced vote does not count");
    assert_eq!(parked.decide("ann", edit("b")).await, Decided::Won { again: false });
    assert_eq!(
        parked.now().await.args_to_run()["path"],
        "b",
        "the arguments that both approved run"
    );

    let parked = place.park(several("answered by two", 2)).await;
    let alone = parked.decide("ann", answer("42")).await;
    assert_eq!(alone, recorded(1, false), "one result is not enough for a quorum of two");
    assert_eq!(parked.decide("bob", answer("42")).await, Decided::Won { again: false });
}

async fn the_requester(place: &SharedStore) {
    let quorum = Quorum { approvals: 1, not_the_requester: true };
    let parked = place.park(ask("asked by mallory").with_quorum(quorum)).await;
    for answer in [approve(), edit("b"), answer("42")] {
        let own = parked.decide("mallory", answer).await;
        assert_eq!(own, Decided::NotAllowed, "the requester may not approve the call");
    }
    assert_eq!(
        parked.now().await,
        parked.record,
        "an approval that does not count changes nothing"
    );
    assert_eq!(parked.decide("ann", approve()).await, Decided::Won { again: false });

    let unnamed = Ask::new("run without a requester", "root/c1", "delete_file").with_quorum(quorum);
    let parked = place.park(unnamed).await;
    let made = parked.decide("ann", approve()).await;
    assert_eq!(
        made,
        Decided::NotAllowed,
        "D4: without a requester's name, any approver may be the requester"
    );
    let no = parked.decide("ann", deny("no")).await;
    assert_eq!(no, Decided::Won { again: false }, "any person may deny");
}

async fn veto(place: &SharedStore) {
    let parked = place.park(several("vetoed", 2)).await;
    assert_eq!(parked.decide("ann", approve()).await, recorded(1, false));
    let no = parked.decide("bob", deny("no")).await;
    assert_eq!(no, Decided::Won { again: false }, "one denial is enough");
    assert!(matches!(parked.decide("eve", approve()).await, Decided::Lost(_)));

    let parked = place.park(several("vetoed after it was decided", 2)).await;
    assert_eq!(parked.decide("ann", approve()).await, recorded(1, false));
    assert_eq!(parked.decide("bob", approve()).await, Decided::Won { again: false });
    let no = parked.decide("eve", deny("no")).await;
    assert_eq!(no, Decided::Won { again: false }, "one denial is a veto until the claim");
    let claimed = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    assert_eq!(claimed, Claimed::Denied { state: AskState::Decided }, "nothing runs after a veto");
    let told = parked.decide("ann", approve()).await;
    assert!(
        matches!(told, Decided::Lost(winner) if winner.by == ["eve"]),
        "the veto is the decision"
    );

    let parked = place.park(several("vetoed too late", 2)).await;
    let _ = parked.decide("ann", approve()).await;
    let _ = parked.decide("bob", approve()).await;
    let _ = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    let late = parked.decide("eve", deny("no")).await;
    assert!(matches!(late, Decided::Lost(_)), "a veto after the claim is too late: {late:?}");
}
