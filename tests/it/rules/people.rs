//! People in a file: how many have to approve, who may, and whether the requester may (rule R9).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::decision::People;
use countersign::deferred::Answer;
use countersign::handler::HandlerChain;
use countersign::ledger::{
    Ask, AskRecord, AskState, Claimed, Decided, Grant, GrantScope, Ledger, MemoryStore, Offers,
};
use countersign::{
    BoxError, DeferredToolHandler, DeferredToolRequests, DeferredToolResults, FunctionToolset,
    RunContext, ToolCall, ToolError, ToolMiddlewareExt as _, ToolsExt as _, Turn, schemars,
    tool_fn,
};
use countersign_rules::{RuleCall, Rules, difference};
use proptest::prelude::*;
use serde_json::json;

use super::{args, builder, refused, rules};

const PAYMENTS: &str = "
version = 2

[[rule]]
id = 'large'
ask = 'pay'
where.amount = '> 1000'
people = 2
not_the_requester = true
approvers = ['ann', 'group:finance']
reason = 'a payment of {amount}'

[test]
ask = 'pay: {amount: 2000}'
";

fn finance() -> [(&'static str, Vec<String>); 1] {
    [("finance", vec!["bob".to_owned(), "eve".to_owned()])]
}

fn payments() -> Rules {
    builder("version = 1").groups(finance()).text("pay.toml", PAYMENTS).load().unwrap()
}

fn rule(text: &str) -> String {
    format!("version = 2\n[[rule]]\nid = 'a'\n{text}\n")
}

/// R9: "A demand that no one can meet is an error: `approvers = []`, an unknown group, and more people than approvers."
#[test]
fn a_demand_that_no_one_can_meet_does_not_load() {
    for (text, wanted) in [
        (rule("ask = 'x'\napprovers = []"), "mine.toml:5:"),
        (rule("ask = 'x'\napprovers = ['group:ops']"), "mine.toml:5:1: there is no group `ops`"),
        (rule("ask = 'x'\napprovers = ['']"), "an approver is a name, or `group:NAME`"),
        (rule("ask = 'x'\napprovers = ['group:']"), "an approver is a name, or `group:NAME`"),
        (
            rule("ask = 'x'\npeople = 2\napprovers = ['ann', 'Ann ']"),
            "2 people have to approve, and `approvers` has 1",
        ),
        (rule("ask = 'x'\npeople = 0"), "`people` is at least 1"),
        (rule("ask = 'x'\npeople = 'two'"), "`people` has to be a number"),
        (
            rule("ask = 'x'\nnot_the_requester = 1"),
            "`not_the_requester` has to be `true` or `false`",
        ),
        (rule("allow = 'x'\npeople = 2"), "only a rule with `ask` has it"),
        (rule("deny = 'x'\napprovers = 'ann'"), "only a rule with `ask` has it"),
    ] {
        let error = refused(&text).to_string();
        assert!(error.contains(wanted), "{text}\n{error}");
    }
    let crowd = builder(&rule("ask = 'x'\npeople = 3\napprovers = ['bob', 'group:finance']"));
    let error = crowd.groups(finance()).load().unwrap_err().to_string();
    assert!(error.contains("3 people have to approve, and `approvers` has 2"), "{error}");
}

/// R1: "A file that has a key of version 2 says `version = 2`."
#[test]
fn a_file_of_version_1_with_a_key_of_version_2_names_the_version_that_it_lacks() {
    for key in ["people = 2", "not_the_requester = true", "approvers = ['ann']"] {
        let name = key.split(' ').next().unwrap();
        let text = rule(&format!("ask = 'x'\n{key}"));
        rules(&text);
        let error = refused(&text.replace("version = 2", "version = 1")).to_string();
        let wanted = format!(
            "mine.toml:5:1: `{name}` is of version 2 of the format: begin the file with `version = 2`"
        );
        assert!(error.contains(&wanted), "{error}");
        let error = refused(&text.replace("version = 2\n", "")).to_string();
        assert!(error.contains("or `version = 2` if it has a key of that version"), "{error}");
    }
    rules("version = 2\n[[rule]]\nid = 'a'\nallow = 'x'");
}

/// R3: fewer people, or others, may widen.
#[test]
fn a_change_of_the_people_may_widen() {
    let two = rule("ask = 'x'\npeople = 2");
    for other in
        ["ask = 'x'", "ask = 'x'\npeople = 1", "ask = 'x'\npeople = 2\napprovers = ['ann', 'bob']"]
    {
        let found = difference(&two, &rule(other)).unwrap();
        assert!(found.len() == 1 && found[0].may_widen, "{other}");
    }
}

fn asked(rules: &Rules, amount: u32) -> Vec<countersign::decision::Question> {
    let args = args(json!({"amount": amount}));
    rules.decide(&RuleCall::new("pay", &args)).into_decision().questions().to_vec()
}

/// R9: "The question says who has to answer it, and what that is worth."
#[test]
fn a_question_says_who_has_to_answer_it() {
    let question = &asked(&payments(), 2000)[0];
    let demanded = People::new(2).not_the_requester().with_approvers(["ann", "group:finance"]);
    assert_eq!(question.people(), Some(demanded));
    let says =
        "a payment of 2000 (2 people of ann, group:finance have to approve, and not the requester)";
    assert_eq!(question.reason(), says);
    let alone = builder("version = 1").groups(finance()).one_account(true);
    let alone = alone.text("pay.toml", PAYMENTS).load().unwrap();
    let reason = asked(&alone, 2000)[0].reason().to_owned();
    assert!(reason.contains("; this protects from mistakes, not from this account)"), "{reason}");
    assert_eq!(
        asked(&payments(), 5)[0].people(),
        None,
        "another call, which the default asks about"
    );
}

/// R9: "An answer in advance never counts."
#[test]
fn a_question_of_certain_people_is_asked_every_time() {
    let args = args(json!({"amount": 2000}));
    let ruling = payments().decide(&RuleCall::new("pay", &args));
    assert!(ruling.is_every_time() && !ruling.is_grantable());
    let one = rule("ask = 'x'\napprovers = ['ann']");
    let questions =
        rules(&one).decide(&RuleCall::new("x", &args)).into_decision().questions().to_vec();
    let ask = Ask::new("run-1", "root/c1", "x").with_questions(questions);
    let session = GrantScope::Session("s".to_owned());
    assert!(Offers::of(&ask).iter().next().is_none() && Grant::of(&ask, session).is_err());
}

fn ledger() -> Ledger {
    let members =
        |group: &str| finance().into_iter().find(|(name, _)| *name == group).map(|it| it.1);
    Ledger::new(MemoryStore::new()).groups(members)
}

async fn parked(ledger: &Ledger, requester: &str) -> AskRecord {
    let ask = Ask::new("run-1", "root/c1", "pay").with_args(args(json!({"amount": 2000})));
    let ask = ask.with_questions(asked(&payments(), 2000)).with_principal(requester);
    ledger.park(ask).await.unwrap()
}

async fn approve(ledger: &Ledger, ask: &AskRecord, by: &str) -> Decided {
    let yes = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, by, yes).await.unwrap()
}

fn recorded(approvals: u32, needed: u32) -> Decided {
    Decided::Recorded { approvals, needed, again: false }
}

/// R9: "The ledger holds it": the count, the list, the groups, and the requester.
#[tokio::test]
async fn an_ask_is_approved_by_enough_of_the_people_that_its_rule_names() {
    let ledger = ledger();
    let ask = parked(&ledger, "bob").await;
    assert_eq!(approve(&ledger, &ask, "mallory").await, Decided::NotAllowed, "no approver");
    assert_eq!(approve(&ledger, &ask, "group:finance").await, Decided::NotAllowed, "no one's name");
    assert_eq!(approve(&ledger, &ask, "Bob").await, Decided::NotAllowed, "the requester");
    assert_eq!(approve(&ledger, &ask, "Ann").await, recorded(1, 2));
    let claimed = ledger.claim(ask.ask.id(), "w", Duration::from_secs(60)).await.unwrap();
    assert_eq!(claimed, Claimed::NotDecided, "one of two");
    assert_eq!(approve(&ledger, &ask, "eve").await, Decided::Won { again: false });
    let claimed = ledger.claim(ask.ask.id(), "w", Duration::from_secs(60)).await.unwrap();
    assert_eq!(claimed, Claimed::Claimed { token: 1 });
}

/// R9: anyone may deny, also who may not approve.
#[tokio::test]
async fn one_denial_is_enough_and_may_come_from_anyone() {
    let ledger = ledger();
    let ask = parked(&ledger, "bob").await;
    let no = Answer::Deny { message: "no".into() };
    let made = ledger.decide(ask.ask.id(), &ask.fingerprint, "mallory", no).await.unwrap();
    assert_eq!(made, Decided::Won { again: false });
}

/// R9: "Groups are resolved at the vote, and again when the call is claimed."
#[tokio::test]
async fn an_approval_of_one_who_has_left_the_group_does_not_run_the_call() {
    let members = Arc::new(Mutex::new(vec!["bob".to_owned(), "eve".to_owned()]));
    let now = Arc::clone(&members);
    let ledger = Ledger::new(MemoryStore::new()).groups(move |_| Some(now.lock().unwrap().clone()));
    let ask = parked(&ledger, "zoe").await;
    assert_eq!(approve(&ledger, &ask, "bob").await, recorded(1, 2));
    members.lock().unwrap().retain(|name| name != "bob");
    assert_eq!(
        approve(&ledger, &ask, "eve").await,
        recorded(1, 2),
        "the vote of bob counts no more"
    );
    assert_eq!(approve(&ledger, &ask, "ann").await, Decided::Won { again: false });
    members.lock().unwrap().clear();
    for _ in 0..2 {
        let claimed = ledger.claim(ask.ask.id(), "w", Duration::from_secs(60)).await.unwrap();
        assert_eq!(claimed, Claimed::Outvoted { may_have_run: false });
    }
    let record = ledger.get(ask.ask.id()).await.unwrap().unwrap();
    assert_eq!(record.state, AskState::Expired, "the call is asked about anew");
    ledger.verify(&std::collections::BTreeMap::new()).await.expect("the log tells it in order");
}

/// R9: "A name counts only where the surface has checked it."
#[tokio::test]
async fn no_one_approves_where_names_are_not_checked() {
    let ledger = ledger();
    let ask = parked(&ledger, "zoe").await;
    let unchecked = ledger.clone().with_unchecked_names();
    for by in ["ann", "bob", "eve"] {
        assert!(!unchecked.may_approve(&ask, by));
        assert_eq!(approve(&unchecked, &ask, by).await, Decided::NotAllowed, "{by}");
    }
    assert_eq!(approve(&ledger, &ask, "ann").await, recorded(1, 2));
    let plain = ledger.park(Ask::new("run-2", "root/c1", "look")).await.unwrap();
    assert_eq!(
        approve(&unchecked, &plain, "x").await,
        Decided::Won { again: false },
        "any name will do here"
    );
}

/// A demand of two questions is met when each has its people.
#[tokio::test]
async fn each_question_needs_its_own_people() {
    let text = "version = 2\n[[rule]]\nid = 'a'\nask = 'pay'\napprovers = 'ann'\n\
                [[rule]]\nid = 'b'\nask = 'pay'\napprovers = 'bob'";
    let ledger = Ledger::new(MemoryStore::new());
    let questions = rules(text).decide(&RuleCall::new("pay", &args(json!({})))).into_decision();
    let ask = Ask::new("run-1", "root/c1", "pay").with_questions(questions.questions().to_vec());
    let ask = ledger.park(ask).await.unwrap();
    assert_eq!(approve(&ledger, &ask, "eve").await, Decided::NotAllowed);
    assert_eq!(approve(&ledger, &ask, "ann").await, recorded(1, 2));
    assert_eq!(approve(&ledger, &ask, "bob").await, Decided::Won { again: false });
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payment {
    amount: u32,
}

/// R9, in a program with a turn: the call runs once enough people have answered, and no handler's answer is theirs.
#[tokio::test]
async fn a_turn_runs_the_call_once_enough_people_have_answered() {
    let paid = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&paid);
    let pay = tool_fn("pay", "Pays", move |it: Payment| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ToolError>(format!("paid {}", it.amount))
        }
    });
    let ledger = ledger().ask_policy(|_, ask| ask.with_principal("zoe"));
    let tools = FunctionToolset::new().tool(pay).layered(payments().into_layer());
    let turn = Turn::new(tools).ledger(ledger.clone());
    let report = turn.run(vec![ToolCall::new("c1", "pay", json!({"amount": 2000}))]).await.unwrap();
    let mut suspended = report.into_suspended().unwrap();
    for by in ["zoe", "mallory", "ann"] {
        let answers = suspended.requests().answer().approve("c1").answered_by(by).build().unwrap();
        let report = turn.resume(suspended, answers).await.unwrap();
        assert!(report.calls()[0].outcome().is_deferred(), "{by}");
        suspended = report.into_suspended().unwrap();
    }
    assert_eq!(paid.load(Ordering::Relaxed), 0);
    let answers = suspended.requests().answer().approve("c1").answered_by("bob").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!(report.calls()[0].outcome().content().unwrap(), "paid 2000");
    assert_eq!(paid.load(Ordering::Relaxed), 1);
}

/// R9: "A turn without a ledger offers such a call to no handler, except one that counts people itself."
#[tokio::test]
async fn a_handler_without_a_ledger_answers_for_no_other_people() {
    struct Approves(bool);
    impl DeferredToolHandler for Approves {
        fn counts_people(&self) -> bool {
            self.0
        }

        async fn handle(
            &self,
            _cx: &RunContext,
            requests: &DeferredToolRequests,
        ) -> Result<DeferredToolResults, BoxError> {
            Ok(requests.answer().approve("c1").answered_by("ann").build()?)
        }
    }
    let pay = async |it: Payment| Ok::<_, ToolError>(format!("paid {}", it.amount));
    let tools = || {
        let pay = tool_fn("pay", "Pays", pay);
        FunctionToolset::new().tool(pay).layered(payments().into_layer())
    };
    let call = || vec![ToolCall::new("c1", "pay", json!({"amount": 2000}))];
    for handler in [
        HandlerChain::new().with(Approves(false)),
        HandlerChain::new().with(Approves(true)).with(Approves(false)),
    ] {
        let turn = Turn::new(tools()).deferred_tool_handler(handler);
        let report = turn.run(call()).await.unwrap();
        assert!(report.calls()[0].outcome().is_deferred(), "{report:?}");
    }
    let turn = Turn::new(tools()).deferred_tool_handler(Approves(true));
    let report = turn.run(call()).await.unwrap();
    assert_eq!(report.calls()[0].outcome().content().unwrap(), "paid 2000");
}

proptest! {
    /// R9: "A call never runs by fewer people than its rule says, nor by others", for every order of votes.
    #[test]
    fn no_order_of_votes_runs_a_call_by_fewer_people(
        votes in proptest::collection::vec(0usize..6, 0..8),
        people in 1u32..4,
        not_the_requester: bool,
        listed: bool,
    ) {
        const NAMES: [&str; 6] = ["ann", "bob", "eve", "zoe", "ANN", "mallory"];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut demanded = People::new(people);
            if not_the_requester {
                demanded = demanded.not_the_requester();
            }
            if listed {
                demanded = demanded.with_approvers(["ann", "zoe", "group:finance"]);
            }
            let asked = countersign::Decision::ask("pays").with_key("pay").with_people(demanded);
            let ledger = ledger();
            let ask = Ask::new("run-1", "root/c1", "pay").with_principal("zoe");
            let ask = ledger.park(ask.with_questions(asked.questions().to_vec())).await.unwrap();
            let mut counted: Vec<String> = Vec::new();
            for vote in votes {
                let name = NAMES[vote].to_lowercase();
                let may = !(listed && name == "mallory" || not_the_requester && name == "zoe");
                if may && !counted.contains(&name) {
                    counted.push(name);
                }
                approve(&ledger, &ask, NAMES[vote]).await;
            }
            let claimed = ledger.claim(ask.ask.id(), "w", Duration::from_secs(60)).await.unwrap();
            let runs = matches!(claimed, Claimed::Claimed { .. });
            assert_eq!(runs, counted.len() >= people as usize, "{counted:?}");
        });
    }
}

/// The policy for a team on the page about rules loads with the members of its group, and its tests hold.
#[test]
fn the_policy_of_the_page_for_a_team_is_one() {
    let page = include_str!("../../../docs/guide/rules.md");
    let (_, section) = page.split_once("# A policy for a team").unwrap();
    let text = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let load = |members: &[&str]| {
        let members: Vec<String> = members.iter().map(|it| (*it).to_owned()).collect();
        let rules = Rules::builder().lexical().groups([("finance", members)]);
        rules.text("team.toml", text).load()
    };
    let rules = load(&["ann", "bob"]).unwrap();
    assert_eq!(countersign_rules::lint(&rules, None), []);
    let call = rules.written_call("mcp:bank/pay: {amount: 5000}").unwrap();
    let said = rules.explain(&call.call()).to_string();
    assert!(
        said.contains("2 people of group:finance have to approve, and not the requester"),
        "{said}"
    );
    // One person cannot be two.
    let error = load(&["ann"]).unwrap_err().to_string();
    assert!(error.contains("2 people have to approve"), "{error}");
}
