//! The audit log (rule L1): every change has one entry, the chain verifies, and tampering is found.

use serde_json::json;

use super::{LONG, SharedStore, approve, ask, ok};
use crate::ledger::{Entry, Ledger, LedgerError, Linker, Verified};

pub(super) async fn check(place: &SharedStore) {
    let ledger = place.ledger(0);
    assert_eq!(ok(ledger.verify(&Default::default()).await), Verified::default());
    whole_while_it_grows(place).await;
    exported(place).await;
    keyed(place).await;
}

async fn verified(place: &SharedStore) -> Verified {
    ok(place.ledger(1).verify(&Default::default()).await)
}

/// A reader that verifies during writes has to see some prefix that is whole: entries of one transaction appear
/// together.
async fn whole_while_it_grows(place: &SharedStore) {
    // All asks belong to one run, so that their entries form one chain.
    let results = place
        .at_once(|n, ledger| async move {
            let ask = crate::ledger::Ask::new("one run", format!("root/c{n}"), "delete_file");
            for _ in 0..4 {
                let parked = ok(ledger.park(ask.clone()).await);
                let (id, fingerprint) = (parked.ask.id(), &parked.fingerprint);
                let _ = ok(ledger.decide(id, fingerprint, "ann", approve()).await);
                let _ = ok(ledger.claim(id, "w", LONG).await);
                let _ = ok(ledger.renew(id, 1, LONG).await);
                let whole = ledger.verify(&Default::default()).await;
                assert!(whole.is_ok(), "the log verifies while it grows: {whole:?}");
                let _ = ok(ledger.settle(id, 1, json!(n)).await);
            }
        })
        .await;
    let whole = verified(place).await;
    let entries = 4 * u64::try_from(results.len()).unwrap_or_default();
    assert_eq!(
        whole.entries, entries,
        "parked, decided, claimed and settled: each change has one entry"
    );
    assert_eq!(
        ok(place.ledger(0).verify(&whole.heads).await),
        whole,
        "it verifies with its own heads"
    );
}

async fn exported(place: &SharedStore) {
    let whole = verified(place).await;
    let mut lines = Vec::new();
    let count = ok(place.ledger(0).export(|entry| lines.push(json!(entry).to_string())).await);
    assert_eq!(count, whole.entries, "every entry is exported");
    let entries: Vec<Entry> = lines.iter().map(|line| ok(serde_json::from_str(line))).collect();
    let mut last = (0, String::new());
    for Entry { run, seq, prev, hash, body } in entries {
        if seq == 1 {
            last = (0, String::new());
        }
        assert_eq!((seq, &prev), (last.0 + 1, &last.1), "exported entries are chained");
        assert_eq!(
            hash,
            Linker::default().hash(&run, seq, &prev, &body),
            "an exported entry has the hash of its values"
        );
        last = (seq, hash);
    }
}

async fn keyed(place: &SharedStore) {
    let keyed = Ledger::new(place.store(0)).audit_key(b"a key");
    let whole = keyed.verify(&Default::default()).await;
    assert!(
        matches!(whole, Err(LedgerError::AuditKey { .. })),
        "a store says that it has no key, and a process with one is refused"
    );
    let _ = ok(place.ledger(0).park(ask("parked")).await);
}
