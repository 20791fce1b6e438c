//! L1: deciders are compared in a canonical form.

use countersign::deferred::Answer;
use countersign::handler::{DenyAll, handler_fn_sync};
use countersign::ledger::{
    Approver, Ask, AskRecord, AskState, Decided, Ledger, MemoryStore, Presented, Quorum, Surface,
};
use countersign::{DeferredToolRequests, Outcome, RunContext, Tools, ToolsExt as _, Turn};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call, words};

fn yes() -> Answer {
    Answer::Approve { args: None }
}

fn no() -> Answer {
    Answer::Deny { message: "no".into() }
}

async fn parked(ledger: &Ledger, name: &str) -> AskRecord {
    let quorum = Quorum { approvals: 2, not_the_requester: true };
    let ask = Ask::new(format!("run of {name}"), "root/c1", "transfer").with_principal("Ann");
    ledger.park(ask.with_quorum(quorum)).await.unwrap()
}

async fn decide(ledger: &Ledger, ask: &AskRecord, by: &str, answer: Answer) -> Decided {
    ledger.decide(ask.ask.id(), &ask.fingerprint, by, answer).await.unwrap()
}

fn voted(again: bool) -> Decided {
    Decided::Recorded { approvals: 1, needed: 2, again }
}

#[tokio::test]
async fn all_spellings_of_a_name_are_one_person() {
    // L1: "`ann`, `Ann` and `ANN` are one person for quorum and for "not the requester"".
    let ledger = Ledger::new(MemoryStore::new());
    let ask = parked(&ledger, "a transfer").await;
    for by in ["ann", "ANN", " Ann ", "\u{a0}aNN\n"] {
        assert!(!ledger.may_approve(&ask, by), "{by:?}");
        assert_eq!(decide(&ledger, &ask, by, yes()).await, Decided::NotAllowed, "{by:?}");
    }
    assert_eq!(decide(&ledger, &ask, "Andr\u{e9}", yes()).await, voted(false));
    for by in ["andr\u{e9}", "Andre\u{301}", "ANDR\u{c9} "] {
        assert_eq!(decide(&ledger, &ask, by, yes()).await, voted(true), "{by:?}");
    }
    assert!(ledger.may_approve(&ask, "bob"));
    assert_eq!(decide(&ledger, &ask, "bob", yes()).await, Decided::Won { again: false });
    assert_eq!(decide(&ledger, &ask, "BOB", yes()).await, Decided::Won { again: true });
    let by = ledger.get(ask.ask.id()).await.unwrap().unwrap().decision.unwrap().by;
    assert_eq!(by, ["Andr\u{e9}", "bob"], "names are recorded as they were given");
}

/// The page of `with_decides`: "a decision about one is refused", a denial as well as an approval, and "an ask that cannot be
/// seen cannot be decided either, whatever this function says".
#[tokio::test]
async fn a_person_decides_only_what_is_theirs_to_decide() {
    let ledger = Ledger::new(MemoryStore::new());
    let surface = Surface::new(ledger.clone());
    let bob = Approver::new("bob").with_decides(|record| record.ask.tool() != "transfer");
    let eve = Approver::new("eve").with_sees(|_| false).with_decides(|_| true);
    assert!(bob.audits() && !eve.audits(), "the log has the asks that eve does not see");
    for (tool, decided, state) in [
        ("transfer", Decided::OthersDecide, AskState::Pending),
        ("list", Decided::Won { again: false }, AskState::Decided),
    ] {
        for answer in [yes(), no()] {
            let run = format!("{tool} {}", answer.word());
            let parked = ledger.park(Ask::new(run, "root/c1", tool)).await.unwrap();
            let shown = Presented::whole(parked.ask.id(), &parked.fingerprint);
            assert!(!eve.decides(&parked), "no button for an ask that is not shown");
            let by_eve = surface.decide(&eve, &shown, answer.clone()).await.unwrap();
            assert_eq!(by_eve, Decided::UnknownAsk);
            assert!(
                surface.find(&bob, parked.ask.id()).await.unwrap().is_some(),
                "{tool} is shown"
            );
            assert_eq!(surface.decide(&bob, &shown, answer).await.unwrap(), decided, "{tool}");
            assert_eq!(ledger.get(parked.ask.id()).await.unwrap().unwrap().state, state);
        }
    }
}

#[tokio::test]
async fn unknown_names_cannot_decide_and_do_not_affect_the_stack() {
    // L1: `canonical_names` is about people. A stack that allows a call, and a rule that denies one, are none.
    let known = |name: &str| if name == "ann" { "ann".to_owned() } else { String::new() };
    let ledger = Ledger::new(MemoryStore::new()).canonical_names(known);
    let recorder = Recorder::new(["pay"]).body(|_, _| Ok("paid".into()));
    let turn = Turn::new(Tools::from(recorder.clone())).ledger(ledger.clone());
    let report = turn.of_run("allowed", 0).run(vec![call("c1", "pay", json!({}))]).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::returned("paid"));

    let asking = Turn::new(recorder.clone().approval_required()).ledger(ledger.clone());
    let denying = asking.clone().deferred_tool_handler(DenyAll::default()).of_run("denied", 0);
    let report = denying.run(vec![call("c1", "pay", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["denied"]);

    let eve = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
        requests.answer().approve("c1").answered_by("eve").build()
    });
    let report = asking.deferred_tool_handler(eve).of_run("eve's", 0);
    let report = report.run(vec![call("c1", "pay", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["deferred"], "a person without a canonical name decides nothing");
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn a_name_that_is_blank_or_reads_as_a_grant_decides_nothing() {
    let ledger = Ledger::new(MemoryStore::new());
    let ask = parked(&ledger, "a blank").await;
    for by in ["", " ", "\t\u{3000}", "by grant 8cfeb50632d4 of ann", " By Grant of ann"] {
        assert!(!ledger.may_approve(&ask, by), "{by:?}");
        for answer in [yes(), no()] {
            assert_eq!(decide(&ledger, &ask, by, answer).await, Decided::BlankName, "{by:?}");
        }
    }
    assert_eq!(ledger.get(ask.ask.id()).await.unwrap(), Some(ask), "nothing has changed");
    let quorum = Quorum { approvals: 1, not_the_requester: true };
    let ask = Ask::new("by no one", "c", "t").with_principal(" ").with_quorum(quorum);
    let ask = ledger.park(ask).await.unwrap();
    let made = decide(&ledger, &ask, "bob", yes()).await;
    assert_eq!(made, Decided::NotAllowed, "D4: a requester without a name may be any person");
}

#[tokio::test]
async fn the_canonical_form_can_be_replaced() {
    let ledger = Ledger::new(MemoryStore::new()).canonical_names(str::to_owned);
    let ask = parked(&ledger, "user ids").await;
    assert_eq!(decide(&ledger, &ask, "ann", yes()).await, voted(false), "`ann` is not `Ann`");
    let local = |name: &str| name.split('@').next().unwrap_or_default().to_owned();
    let ledger = Ledger::new(MemoryStore::new()).canonical_names(local);
    let ask = parked(&ledger, "addresses").await;
    assert_eq!(decide(&ledger, &ask, "Ann@a.example", yes()).await, Decided::NotAllowed);
    assert_eq!(decide(&ledger, &ask, "@a.example", yes()).await, Decided::BlankName);
    assert_eq!(decide(&ledger, &ask, "bob@a.example", yes()).await, voted(false));
    assert_eq!(decide(&ledger, &ask, "bob@b.example", yes()).await, voted(true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// L1: a quorum of two is never one person, and never the requester.
    #[test]
    fn no_spelling_of_one_name_is_two_people(
        spellings in prop::collection::vec(("[ \t]{0,2}", any::<[bool; 3]>(), "[ \n]{0,2}"), 1..6),
        requester in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let ledger = Ledger::new(MemoryStore::new());
            let ask = parked(&ledger, "spelled").await;
            let name = if requester { ["a", "n", "n"] } else { ["b", "\u{f6}", "b"] };
            for (before, upper, after) in spellings {
                let letters = name.iter().zip(upper);
                let spelled: String =
                    letters.map(|(it, up)| if up { it.to_uppercase() } else { (*it).to_owned() }).collect();
                decide(&ledger, &ask, &format!("{before}{spelled}{after}"), yes()).await;
            }
            let now = ledger.get(ask.ask.id()).await.unwrap().unwrap();
            assert_eq!(now.state, AskState::Pending);
            assert_eq!(now.votes.len(), usize::from(!requester));
        });
    }
}
