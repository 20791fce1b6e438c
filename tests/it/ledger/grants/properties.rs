//! Each clause of G2 alone keeps a grant from answering, in every combination.

use countersign::decision::Preview;
use countersign::deferred::metadata;
use countersign::ledger::{Ask, Grant, GrantScope, Ledger, MemoryStore};
use countersign::{Decision, Outcome, RunContext, ToolCall, ToolsExt as _, Turn, decide_fn};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Recorder, call};

/// What is different in a later call. Nothing of it may be answered by the grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twist {
    AnotherQuestion,
    QuestionThatDidNotOptIn,
    EveryTime,
    Blocked,
    OtherPin,
    OtherPreview,
    OtherArgument,
    MoreArguments,
    OtherRequester,
    NoRequester,
    OtherAgent,
    OtherSession,
    OtherTool,
}

use Twist::*;

const ALL: [Twist; 13] = [
    AnotherQuestion,
    QuestionThatDidNotOptIn,
    EveryTime,
    Blocked,
    OtherPin,
    OtherPreview,
    OtherArgument,
    MoreArguments,
    OtherRequester,
    NoRequester,
    OtherAgent,
    OtherSession,
    OtherTool,
];

fn decision(twists: &[Twist]) -> Decision {
    let is = |twist| twists.contains(&twist);
    let pin = if is(OtherPin) { "digest 2" } else { "digest 1" };
    let new = if is(OtherPreview) { "rm -rf" } else { "hello" };
    let mut asked = Decision::ask("mail?")
        .with_key("mail")
        .with_pin("rule", pin)
        .with_preview(Preview::text("letter", new));
    if !is(QuestionThatDidNotOptIn) {
        asked = asked.with_metadata(metadata::GRANTABLE, true);
    }
    if is(EveryTime) {
        asked = asked.with_metadata(metadata::EVERY_TIME, true);
    }
    if is(Blocked) {
        asked = asked.with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED);
    }
    if is(AnotherQuestion) {
        let other = Decision::ask("new address?").with_key("new");
        asked = asked.and(other.with_metadata(metadata::GRANTABLE, true));
    }
    asked
}

fn args(twists: &[Twist]) -> Value {
    let mut args = json!({"to": "bob", "n": 1});
    if twists.contains(&OtherArgument) {
        args["to"] = json!("eve");
    }
    if twists.contains(&MoreArguments) {
        args["cwd"] = json!("/");
    }
    args
}

/// Returns `true` if a call with these twists runs under a grant for the call without any.
async fn runs(twists: Vec<Twist>, any_content: bool) -> bool {
    let store = MemoryStore::new();
    let recorder = Recorder::new(["mail", "post"]);
    let turn = |twists: Vec<Twist>| {
        let is = |twist| twists.contains(&twist);
        let who = if is(OtherRequester) { "eve" } else { "zoe" };
        let session = if is(OtherSession) { "s2" } else { "s1" };
        let (anonymous, agent) = (is(NoRequester), if is(OtherAgent) { "other" } else { "root" });
        let requester =
            move |_: &_, ask: Ask| if anonymous { ask } else { ask.with_principal(who) };
        let ledger = Ledger::new(store.clone()).session(session).ask_policy(requester);
        let decide = move |_: &RunContext, _: &ToolCall| decision(&twists);
        Turn::new(recorder.clone().layered(decide_fn(decide))).ledger(ledger).agent(agent)
    };
    let ledger = Ledger::new(store.clone());
    turn(vec![]).run(vec![call("c0", "mail", args(&[]))]).await.unwrap();
    let asked = ledger.list(None, 1).await.unwrap().records.remove(0);
    let mut grant = Grant::of(&asked.ask, GrantScope::Session("s1".into())).unwrap();
    if any_content {
        grant = grant.with_any_content();
    }
    ledger.make_grant(grant, &["ann"]).await.unwrap();
    let tool = if twists.contains(&OtherTool) { "post" } else { "mail" };
    let made = turn(twists.clone()).run(vec![call("c1", tool, args(&twists))]).await.unwrap();
    let ran = matches!(made.calls()[0].outcome(), Outcome::Returned(_));
    assert_eq!(recorder.ran().len(), usize::from(ran));
    assert!(ledger.verify(&Default::default()).await.is_ok());
    ran
}

#[tokio::test]
async fn the_same_call_runs_and_each_difference_alone_asks_a_person() {
    // G2: "only if every open question is covered, none is blocked, `every_time`, from a layer that did not opt in".
    assert!(runs(vec![], false).await);
    for twist in ALL {
        assert!(!runs(vec![twist], false).await, "{twist:?}");
    }
}

#[tokio::test]
async fn any_content_applies_to_previews_only() {
    // G2: "A grant that says "any content" ignores preview pins."
    for twist in ALL {
        assert_eq!(runs(vec![twist], true).await, twist == OtherPreview, "{twist:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// G2: "It answers a call, not a question".
    #[test]
    fn a_grant_answers_no_combination_of_differences(
        twists in prop::sample::subsequence(&ALL[..], 1..4),
        any_content: bool,
    ) {
        let only_previews = any_content && twists == [OtherPreview];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        prop_assert_eq!(runtime.block_on(runs(twists, any_content)), only_previews);
    }
}
