//! Grants in a chat (rules G1 to G3): offered beside an approval, made with it, and with nothing else.

use std::time::Duration;

use countersign::decision::GrantPattern;
use countersign::deferred::Answer;
use countersign::deferred::metadata::{APPROVAL_POLICY, BLOCKED, EVERY_TIME, GRANTABLE};
use countersign::ledger::{GrantRecord, GrantScope, Ledger, Quorum};
use countersign::{Agent, Decision, ToolCall, ToolsExt as _, decide_fn};
use countersign_ai_sdk::{Chats, Principal, Rejection};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::client::{Client, string};
use super::world::{World, sends};
use crate::support::cases;

/// The grants, newest first.
async fn grants(world: &World) -> Vec<GrantRecord> {
    world.ledger().grants(100).await.unwrap().records
}

/// The offers for one hour beside the first pending call.
fn offers(client: &Client) -> Vec<Value> {
    offers_for(client, 3600)
}

/// The offers for so many seconds beside the first pending call.
fn offers_for(client: &Client, seconds: u64) -> Vec<Value> {
    let shown = client.shown();
    let asked = shown.iter().find(|data| data["status"] == "pending").expect("a call is pending");
    let offers = asked["offers"].as_array().cloned().unwrap_or_default();
    offers.into_iter().filter(|offer| offer["seconds"] == seconds).collect()
}

/// The request of a page that approves the first pending call with the grant of this number.
fn approving(client: &mut Client, pattern: usize) -> Value {
    let fingerprint = offers(client)[pattern]["fingerprint"].clone();
    let id = client.waiting().remove(0);
    let mut body = client.note(&id, true, None).body();
    body["approvalGrants"] =
        json!({id: {"fingerprint": fingerprint, "pattern": pattern, "seconds": 3600}});
    body
}

/// Says this, and approves the call with the grant of this number. Returns what the page is told about the grant.
async fn granted(client: &mut Client, said: &str, pattern: usize) -> Value {
    client.say(said).await;
    let body = approving(client, pattern);
    let told = client.post(&body).await.unwrap();
    assert_eq!(told.reason(), "stop");
    client.shown().pop().unwrap()["grant"].clone()
}

fn over(world: &World, decision: Decision, ledger: Ledger) -> Chats {
    let layer = decide_fn(move |_, _: &ToolCall| decision.clone());
    let tools = world.recorder.clone().layered(layer);
    Chats::new(Agent::new(world.bot.clone(), tools).ledger(ledger))
}

#[tokio::test]
async fn each_offer_is_a_sentence_a_rule_and_examples() {
    // G3: "each is shown as a sentence, as the rule, and with examples of what else it would allow, before it is made".
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("send a.txt").await;
    let [exact, any] = &offers(&ann)[..] else { panic!("two: {:?}", offers(&ann)) };
    assert_eq!(
        exact["says"],
        "`send` with exactly these arguments, in this session, for at most 1h"
    );
    assert_eq!((&exact["pattern"], &exact["also"]), (&json!(0), &json!([])));
    assert!(string(&any["says"]).contains("of any file"), "{any}");
    assert_eq!((&any["pattern"], &any["also"]), (&json!(1), &json!([r#"send(path: "b.txt")"#])));
    let rule = string(&exact["rule"]);
    for line in
        [r#"tool = "send""#, r#"in = "session "#, r#"valid_for = "1h""#, r#"path = "a.txt""#]
    {
        assert!(rule.contains(line), "{line}: {rule}");
    }
    assert!(grants(&world).await.is_empty(), "to offer makes none");
}

/// G3: "the time that is chosen is the time that is shown and made".
#[tokio::test]
async fn the_time_that_is_chosen_is_the_one_that_is_shown_and_made() {
    for (seconds, time) in [(3600, "1h"), (12 * 3600, "12h")] {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say("send a.txt").await;
        let offer = offers_for(&ann, seconds).remove(0);
        assert!(string(&offer["says"]).ends_with(&format!("for at most {time}")), "{offer}");
        assert!(string(&offer["rule"]).contains(&format!("valid_for = \"{time}\"")), "{offer}");
        let mut body = approving(&mut ann, 0);
        let id = body["approvalGrants"].as_object().unwrap().keys().next().unwrap().clone();
        body["approvalGrants"][id]["seconds"] = seconds.into();
        ann.post(&body).await.unwrap();
        let made = grants(&world).await.remove(0).grant;
        assert_eq!(u64::try_from(made.valid_for()).unwrap(), seconds * 1000);
    }
}

/// Makes a ledger over the store of a world.
type Make = Box<dyn Fn(&World) -> Ledger>;

#[tokio::test]
async fn only_what_may_be_granted_is_offered() {
    // G2, G3: of many classes three are offered; of a call that no grant may answer, none.
    let two = Quorum { approvals: 2, not_the_requester: false };
    let other = Quorum { approvals: 1, not_the_requester: true };
    let classes = (0..9).map(|n| GrantPattern::new(format!("c{n}"), format!("class {n}")));
    let plain = |world: &World| world.ledger();
    let quorum = |quorum: Quorum| {
        move |world: &World| {
            world.ledger().ask_policy(move |_, ask| ask.with_principal("ann").with_quorum(quorum))
        }
    };
    let grantable = Decision::ask("sends").with_metadata(GRANTABLE, true);
    let every = grantable.clone().with_metadata(EVERY_TIME, true);
    let blocked = grantable.clone().with_metadata(APPROVAL_POLICY, BLOCKED);
    let ungranted = grantable.clone().with_metadata(GRANTABLE, "yes");
    let many = grantable.clone().with_grant_patterns(classes);
    let rows: [(&str, Decision, Make, usize); 8] = [
        ("a layer agrees", grantable.clone(), Box::new(plain), 1),
        ("a layer proposes nine classes", many, Box::new(plain), 4),
        ("no layer agrees", Decision::ask("sends"), Box::new(plain), 0),
        ("a layer agrees in another form", ungranted, Box::new(plain), 0),
        ("it is asked about every time", every, Box::new(plain), 0),
        ("it is blocked", blocked, Box::new(plain), 0),
        ("two have to agree", grantable.clone(), Box::new(quorum(two)), 0),
        ("the requester may not approve", grantable, Box::new(quorum(other)), 0),
    ];
    for (why, decision, ledger, count) in rows {
        let world = World::new();
        let chats = over(&world, decision, ledger(&world));
        let mut ann = Client::new(chats, Principal::new("ann"), "c1");
        ann.say("send a.txt").await;
        assert_eq!(offers(&ann).len(), count, "{why}");
        if count == 0 {
            let fingerprint = world.asks().await.pop().unwrap().fingerprint;
            let id = ann.waiting().remove(0);
            let mut body = ann.note(&id, true, None).body();
            body["approvalGrants"] = json!({id: {"fingerprint": fingerprint, "pattern": 0}});
            let refused = ann.post(&body).await.err().map(|refused| refused.status);
            assert_eq!(refused, Some(409), "{why}: nor can one be chosen");
            assert_eq!((grants(&world).await.len(), world.ran().len()), (0, 0), "{why}");
        }
    }
}

#[tokio::test]
async fn equal_later_calls_of_the_chat_run_and_the_transcript_says_by_whose_grant() {
    // G1: "the ASK stays an ASK: log, report and every surface say by grant G of ann".
    let world = World::new();
    let mut ann = world.ann("c1");
    let made = granted(&mut ann, "send a.txt", 0).await;
    let [grant] = &grants(&world).await[..] else { panic!("one") };
    assert_eq!((&made["id"], &made["until"]), (&json!(grant.id), &json!(grant.until)));
    assert_eq!((&grant.by, grant.grant.valid_for()), (&vec!["ann".to_owned()], 3_600_000));

    // In a later run, also on another server, and within one run.
    ann.chats = world.chats();
    let told = ann.say("send a.txt then send a.txt").await;
    assert_eq!((told.reason(), told.of("tool-approval-request").len()), ("stop", 0));
    assert_eq!(ann.states(), ["output-available", "output-available"]);
    for shown in ann.shown() {
        let by = string(&shown["by"]);
        assert!(by.starts_with(&format!("by grant {} of ann", grant.id)), "{by}");
        assert_eq!((&shown["status"], shown.get("approvalId")), (&json!("approved"), None));
    }
    assert_eq!(world.ran(), ["a.txt"; 3]);
    let record = world.asks().await.pop().unwrap();
    assert!(record.decision.unwrap().by_line().starts_with("by grant "), "it stays an ask");

    // Other arguments, another chat, another principal, another agent's path.
    for (client, said) in [
        (&mut ann, "send b.txt"),
        (&mut world.ann("c2"), "send a.txt"),
        (&mut Client::new(world.chats(), Principal::new("bob"), "b1"), "send a.txt"),
        (&mut world.ann("c3"), "clean send+a.txt"),
    ] {
        client.say(said).await;
        assert_eq!(client.waiting().len(), 1, "{said}");
    }
    assert_eq!(world.ran(), ["a.txt"; 3]);
}

#[tokio::test]
async fn a_grant_ends_with_its_time_and_when_it_is_revoked() {
    let world = World::new();
    for revoked in [false, true] {
        let mut ann = world.ann(if revoked { "c1" } else { "c2" });
        let made = granted(&mut ann, "send a.txt", 0).await;
        if revoked {
            world.ledger().revoke_grant(&string(&made["id"]), "ann").await.unwrap();
        } else {
            world.wait(Duration::from_secs(3601));
        }
        ann.say("send a.txt").await;
        assert_eq!(ann.waiting().len(), 1);
    }
}

#[tokio::test]
async fn a_grant_for_a_class_answers_the_calls_that_the_layer_puts_there() {
    let world = World::new();
    let mut ann = world.ann("c1");
    granted(&mut ann, "send a.txt", 1).await;
    let told = ann.say("send z.txt; delete a.txt").await;
    assert_eq!(told.of("tool-approval-request").len(), 1, "the deletion is another tool");
    ann.answer(false).await;
    assert_eq!(world.ran(), ["a.txt", "z.txt"]);
}

#[tokio::test]
async fn the_session_is_the_chat_whatever_the_host_has_named() {
    // G1: "for one requester": a session of the host's ledger would be that of all principals.
    let world = World::new();
    let ledger = world.ledger().session("all of them");
    let chats = over(&world, sends(), ledger);
    let mut ann = Client::new(chats.clone(), Principal::new("ann"), "c1");
    granted(&mut ann, "send a.txt", 0).await;
    let scope = grants(&world).await[0].grant.scope().clone();
    let GrantScope::Session(id) = scope else { panic!("{scope:?}") };
    assert!(id.starts_with("chat-") && !id.contains("ann"), "{id}");
    let mut bob = Client::new(chats, Principal::new("bob"), "c2");
    bob.say("send a.txt").await;
    assert_eq!(bob.waiting().len(), 1);
}

#[tokio::test]
async fn a_client_that_does_not_know_offers_approves_once() {
    // G3: "approving once is the default".
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("send a.txt").await;
    ann.answer(true).await;
    assert_eq!(ann.shown()[0].get("grant"), None);
    ann.say("send a.txt").await;
    assert_eq!((ann.waiting().len(), grants(&world).await.len()), (1, 0));
}

/// The fault of a request, and the status that it is refused with.
const FORGED: [(&str, u16); 14] = [
    ("fingerprint", 409),
    ("fingerprint of another ask", 409),
    ("no fingerprint", 400),
    ("pattern", 409),
    ("pattern as a text", 400),
    ("no time", 409),
    ("more than 90 days", 409),
    ("a time that was not shown", 409),
    ("a field more", 400),
    ("a pattern of one's own", 400),
    ("an edit beside it", 400),
    ("a denial", 400),
    ("an ask that never was", 409),
    ("another ask without an answer", 409),
];

fn forge(ann: &mut Client, how: &str) -> Value {
    let asks = ann.waiting();
    let other = ann.shown()[1]["offers"][0]["fingerprint"].clone();
    let mut body = approving(ann, 0);
    let id = asks[0].as_str();
    let chosen = &mut body["approvalGrants"][id];
    match how {
        "fingerprint" => chosen["fingerprint"] = "0".repeat(64).into(),
        "fingerprint of another ask" => chosen["fingerprint"] = other,
        "no fingerprint" => drop(chosen.as_object_mut().unwrap().remove("fingerprint")),
        "pattern" => chosen["pattern"] = 2.into(),
        "pattern as a text" => chosen["pattern"] = "1".into(),
        "no time" => chosen["seconds"] = 0.into(),
        "a time that was not shown" => chosen["seconds"] = 7200.into(),
        "more than 90 days" => chosen["seconds"] = (91 * 24 * 3600).into(),
        "a field more" => chosen["scope"] = "project".into(),
        "a pattern of one's own" => chosen["pattern"] = json!({"name": "all"}),
        "an edit beside it" => body["overrideArgs"] = json!({id: {"path": "z.txt"}}),
        "a denial" => body["messages"] = ann.note(id, false, None).body()["messages"].clone(),
        "an ask that never was" => {
            body["approvalGrants"] = json!({"ask-1": {"fingerprint": "0", "pattern": 0}});
        }
        _ => body["approvalGrants"] = json!({&asks[1]: chosen.clone()}),
    }
    body
}

#[tokio::test]
async fn a_request_with_a_forged_grant_is_refused_and_counts_for_nothing() {
    for (how, status) in FORGED {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say("send a.txt; send b.txt").await;
        let mut forger = ann.clone();
        let body = forge(&mut forger, how);
        let Err(Rejection { status: refused, message, .. }) = forger.post(&body).await else {
            panic!("{how} is accepted");
        };
        assert_eq!(refused, status, "{how}: {message}");
        assert!(!message.contains("a.txt"), "{how}: {message}");
        assert_eq!((grants(&world).await.len(), world.ran().len()), (0, 0), "{how}");

        // The calls are still pending, and are answered as ever.
        ann.answer(true).await;
        assert_eq!((grants(&world).await.len(), world.ran().len()), (0, 2), "{how}");
    }
}

#[tokio::test]
async fn an_approval_that_loses_makes_no_grant() {
    for first in [Answer::Approve { args: None }, Answer::Deny { message: "not now".into() }] {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say("send a.txt").await;
        world.decide(first).await;
        let body = approving(&mut ann, 0);
        ann.post(&body).await.unwrap();
        let told = ann.shown().remove(0);
        assert_eq!(told["by"], "boss");
        assert!(string(&told["grant"]["problem"]).starts_with("No grant was made"), "{told}");
        assert!(grants(&world).await.is_empty());
    }
}

#[tokio::test]
async fn of_two_equal_requests_at_two_servers_and_their_replays_one_makes_a_grant() {
    // L3: "the same request twice runs nothing twice".
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("send a.txt").await;
    let body = approving(&mut ann, 0);
    let (mut one, mut other) = (ann.clone(), ann.clone());
    (one.differs, other.differs, other.chats) = (true, true, world.chats());
    let _ = futures::join!(one.post(&body), other.post(&body));
    for _ in 0..3 {
        let _ = ann.clone().post(&body).await;
    }
    assert_eq!((grants(&world).await.len(), world.ran()), (1, vec!["a.txt".to_owned()]));
}

#[tokio::test]
async fn a_grant_waits_with_its_approval_and_goes_when_that_is_taken_back() {
    // T1: an approval is kept until all calls of the response are answered. A3: until then it can be taken back.
    for taken_back in [false, true] {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say("send a.txt; delete b.txt").await;
        let asks = ann.waiting();
        let body = approving(&mut ann, 0);
        let held = ann.post(&body).await.unwrap();
        assert_eq!((held.reason(), grants(&world).await.len()), ("tool-calls", 0), "it is kept");
        ann.chats = world.chats();
        ann.differs = true;
        if taken_back {
            ann.note(&asks[0], false, None);
        }
        ann.note(&asks[1], false, None).send().await;
        let count = usize::from(!taken_back);
        assert_eq!((grants(&world).await.len(), world.ran().len()), (count, count));
    }
}

/// A person's answer to a call that is asked about.
#[derive(Debug, Clone, Copy)]
enum Act {
    Approve,
    Deny,
    Grant(usize),
    Forge(usize),
}

fn act() -> impl Strategy<Value = (usize, usize, Act)> {
    let act = prop_oneof![
        Just(Act::Approve),
        Just(Act::Deny),
        (0..2_usize).prop_map(Act::Grant),
        (0..FORGED.len()).prop_map(Act::Forge),
    ];
    (0..3_usize, 0..3_usize, act)
}

/// Plays the acts, and compares what is asked about with what was granted in the same chat.
async fn played(acts: &[(usize, usize, Act)]) {
    let world = World::new();
    let client = |(who, chat)| Client::new(world.chats(), Principal::new(who), chat);
    let mut clients = [("ann", "a1"), ("ann", "a2"), ("bob", "b1")].map(client);
    let mut granted: [Vec<Option<String>>; 3] = Default::default();
    let (mut made, mut ran) = (0, 0);
    for (who, file, act) in acts {
        let (client, granted) = (&mut clients[*who], &mut granted[*who]);
        let file = format!("f{file}");
        let covered = granted.iter().any(|it| it.as_ref().is_none_or(|it| *it == file));
        // The second call is never granted, so that a request about the first one can be forged.
        client.say(&format!("send {file}; send other-{who}-{made}-{ran}")).await;
        let any = granted.contains(&None);
        let pending = usize::from(!covered) + usize::from(!any);
        assert_eq!(client.waiting().len(), pending, "{file} of {granted:?}");
        ran += 2 - pending;
        match (covered, act) {
            (false, Act::Grant(pattern)) => {
                let body = approving(client, *pattern);
                client.post(&body).await.unwrap();
                client.answer(true).await;
                granted.push((*pattern == 0).then_some(file));
                (made, ran) = (made + 1, ran + pending);
            }
            (false, Act::Forge(how)) => {
                let body = forge(&mut client.clone(), FORGED[*how].0);
                assert!(client.clone().post(&body).await.is_err());
                client.answer(false).await;
            }
            (_, Act::Deny | Act::Forge(_)) if pending > 0 => drop(client.answer(false).await),
            (_, _) if pending > 0 => {
                client.answer(true).await;
                ran += pending;
            }
            _ => {}
        }
        assert_eq!((grants(&world).await.len(), world.ran().len()), (made, ran));
    }
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(32), failure_persistence: None, ..ProptestConfig::default() })]

    /// G1 to G3: a call is not asked about only if it was granted in its chat, and a grant comes from an approval only.
    #[test]
    fn nothing_is_granted_but_by_an_approval_in_the_same_chat(acts in prop::collection::vec(act(), 1..9)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(played(&acts));
    }
}
