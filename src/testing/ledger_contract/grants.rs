//! Grants: rows of their own; of many concurrent calls one takes the last use (rule G2).

use std::collections::BTreeMap;

use super::{LONG, MANY, SharedStore, missing, ok};
use crate::decision::Decision;
use crate::deferred::metadata::GRANTABLE;
use crate::ledger::{
    Ask, AskRecord, AskState, Claimed, Grant, GrantRecord, GrantScope, GrantState, RevokedGrant,
};

pub(super) async fn check(place: &SharedStore) {
    one_takes_the_last_use(place).await;
    a_revoked_grant_answers_nothing(place).await;
    let verified = ok(place.ledger(0).verify(&BTreeMap::new()).await);
    assert!(!verified.is_empty(), "G1: the log covers grants, too");
}

/// A grantable call of a run.
fn asked(run: &str, tool: &str) -> Ask {
    let asked = Decision::ask("grantable").with_metadata(GRANTABLE, true);
    Ask::new(run, "root/c1", tool).with_questions(asked.questions().to_vec())
}

async fn granted(place: &SharedStore, tool: &str, uses: u32) -> GrantRecord {
    let grant = Grant::of(&asked("grants", tool), GrantScope::Session("s1".to_owned()));
    ok(place.ledger(0).make_grant(ok(grant).with_uses(uses), &["ann"]).await)
}

async fn answered(place: &SharedStore, n: usize, tool: &str) -> Option<AskRecord> {
    let ledger = place.ledger(n).session("s1");
    ok(ledger.answer_by_grant(&asked(&format!("{tool} {n}"), tool)).await)
}

/// Counting uses outside of the transaction that makes the ask would let several take the last one.
async fn one_takes_the_last_use(place: &SharedStore) {
    let grant = granted(place, "last use", 1).await;
    let made = place
        .at_once(|n, ledger| async move {
            let ledger = ledger.session("s1");
            ok(ledger.answer_by_grant(&asked(&format!("last use {n}"), "last use")).await)
        })
        .await;
    let won: Vec<_> = made.into_iter().flatten().collect();
    assert_eq!(won.len(), 1, "G2: one of {MANY} takes the last use");
    for record in won {
        assert_eq!(record.state, AskState::Decided, "a granted ask is never pending");
        let claimed = ok(place.ledger(1).claim(record.ask.id(), "w", LONG).await);
        assert!(matches!(claimed, Claimed::Claimed { .. }), "its use is taken: {claimed:?}");
    }
    let grant = ok(place.ledger(1).grant(&grant.id).await);
    assert_eq!(grant.map(|it| (it.used, it.state)), Some((1, GrantState::UsedUp)));
}

async fn a_revoked_grant_answers_nothing(place: &SharedStore) {
    let grant = granted(place, "revoked", 100).await;
    let early = answered(place, 0, "revoked").await;
    assert!(early.is_some(), "G1: the grant answers the call");
    let early = early.unwrap_or_else(missing);
    let revoked = ok(place.ledger(1).revoke_grant(&grant.id, "bob").await);
    assert_eq!(revoked, RevokedGrant::Revoked { again: false });
    assert!(answered(place, 2, "revoked").await.is_none(), "G2: it is void after revocation");
    let claimed = ok(place.ledger(2).claim(early.ask.id(), "w", LONG).await);
    let void = Claimed::Void { grant: grant.id, may_have_run: false };
    assert_eq!(claimed, void, "G2: it is checked again at the claim");
    let listed = ok(place.ledger(0).grants(100).await);
    assert!(listed.refused.is_empty() && listed.records.len() >= 2);
}
