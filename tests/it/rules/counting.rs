//! `at_most` counts in a store, over all processes (rule R7).

use std::sync::Arc;

use countersign::decision::ToolDecision::{Allow, Ask};
use countersign::ledger::{Ledger, MemoryStore, Store};
use countersign_rules::{MemoryCounts, RuleCall, Rules};
use countersign_sqlite::SqliteStore;
use serde_json::Map;

use super::{builder, refused};

const TWO: &str =
    "version = 1\n[[rule]]\nid = 'two'\nallow = 'refund'\nat_most = { calls = 2, within = '1h' }";

async fn decided(rules: &Rules, id: &str) -> countersign::decision::ToolDecision {
    let args = Map::new();
    rules.decide_and_count(&RuleCall::new("refund", &args), "ann", id, false).await.decision()
}

#[tokio::test]
async fn two_instances_over_one_store_share_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut one: Vec<Arc<dyn Store>> = vec![Arc::new(MemoryStore::new())];
    one.push(Arc::clone(&one[0]));
    let mut file: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        file.push(Arc::new(SqliteStore::open(folder.path().join("store.db")).await.unwrap()));
    }
    for stores in [one, file] {
        let instance = |store: &Arc<dyn Store>| {
            builder(TWO).counts(Ledger::new(Arc::clone(store))).load().unwrap()
        };
        let rules: Vec<Rules> = stores.iter().map(instance).collect();
        assert_eq!(decided(&rules[0], "1").await, Allow);
        assert_eq!(decided(&rules[1], "1").await, Allow, "the same call, in another process");
        assert_eq!(decided(&rules[1], "2").await, Allow);
        assert_eq!(decided(&rules[0], "3").await, Ask);
        // A third process that begins now.
        assert_eq!(decided(&instance(&stores[0]), "4").await, Ask);
        Ledger::new(Arc::clone(&stores[0])).verify(&Default::default()).await.unwrap();
    }
}

#[tokio::test]
async fn many_at_once_never_exceed_the_limit() {
    let store = MemoryStore::new();
    let rules = |n: usize| {
        let rules = builder(TWO).counts(Ledger::new(store.clone())).load().unwrap();
        async move { decided(&rules, &n.to_string()).await }
    };
    let decisions = futures::future::join_all((0..20).map(rules)).await;
    assert_eq!(decisions.iter().filter(|decision| **decision == Allow).count(), 2);
}

#[tokio::test]
async fn a_changed_counter_is_refused_and_the_else_applies() {
    let store = MemoryStore::new();
    let rules = builder(TWO).counts(Ledger::new(store.clone())).load().unwrap();
    assert_eq!(decided(&rules, "1").await, Allow);
    let linker = countersign::ledger::Linker::default();
    let all = store.list(&countersign::ledger::Filter::default()).await.unwrap();
    let mut forged = all[0].row.clone();
    forged.doc = forged.doc.replace("\"calls\":[[", "\"calls\":[[0,\"\"],[");
    let mut work = |_, _| countersign::ledger::Writes {
        rows: vec![forged.clone()],
        ..countersign::ledger::Writes::default()
    };
    store.transact(&[], &linker, &mut work).await.unwrap();
    assert_eq!(decided(&rules, "2").await, Ask);
    assert!(Ledger::new(store).verify(&Default::default()).await.is_err());
}

#[tokio::test]
async fn counts_in_memory_end_with_the_process() {
    let rules = || builder(TWO).counts(MemoryCounts::default()).load().unwrap();
    let first = rules();
    for id in ["1", "2"] {
        assert_eq!(decided(&first, id).await, Allow);
    }
    assert_eq!((decided(&first, "3").await, decided(&rules(), "3").await), (Ask, Allow));
}

#[test]
fn a_limit_is_of_a_size_that_can_be_counted() {
    let text = TWO.replace("calls = 2", "calls = 10001");
    assert!(refused(&text).to_string().contains("`calls` is at most 10000"));
}
