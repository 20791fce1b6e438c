//! Rules as a layer: questions, what they are bound to, and counted calls (rules R6 and R7).

use countersign::deferred::metadata;
use countersign::{
    FunctionToolset, ToolCall, ToolError, ToolMiddlewareExt, ToolsExt, Turn, schemars, tool_fn,
};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::Preset;
use serde_json::{Value, json};

use super::rules;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    #[allow(dead_code, reason = "only the rules read it")]
    amount: u64,
}

async fn refund(_: Refund) -> Result<String, ToolError> {
    Ok("done".into())
}

fn turn(rules: &Rules) -> Turn {
    let tools = FunctionToolset::new().tool(tool_fn("refund", "Refunds", refund));
    Turn::new(tools.layered(rules.clone().into_layer()))
}

fn call(id: &str, amount: &Value) -> ToolCall {
    ToolCall::new(id, "refund", json!({"amount": amount}))
}

const FILE: &str = "version = 1\n[[rule]]\nid = 'small'\nallow = 'refund'\nwhere.amount = '<= 50'\n[[rule]]\nid = 'large'\nask = 'refund'\nwhere.amount = '> 50'\nreason = 'refunds {amount}'\n";

#[tokio::test]
async fn a_question_has_the_rules_id_as_its_key_and_an_edited_rule_asks_again() {
    let first = rules(FILE);
    let report =
        turn(&first).run(vec![call("1", &json!(10)), call("2", &json!(60))]).await.unwrap();
    assert!(report.calls()[0].outcome().is_returned());
    let suspended = report.into_suspended().unwrap();
    let question = suspended.requests().questions("2")[0].clone();
    assert_eq!(
        (question.layer(), question.key(), question.reason()),
        ("rules", "large", "refunds 60")
    );
    assert_eq!(question.metadata()[metadata::GRANTABLE], true);
    assert_eq!(question.metadata()[metadata::RULE]["line"], 6);

    let answers = suspended.requests().answer().approve("2").build().unwrap();
    let edited = rules(&FILE.replace("'> 50'", "'> 55'"));
    let report = turn(&edited).resume(suspended.clone(), answers.clone()).await.unwrap();
    assert!(report.calls().last().unwrap().outcome().is_deferred());
    let reworded = rules(
        &FILE
            .replace("refunds {amount}", "pays back {amount}")
            .replace("version = 1", "# new\nversion = 1"),
    );
    let report = turn(&reworded).resume(suspended, answers).await.unwrap();
    assert!(
        report.calls().last().unwrap().outcome().is_returned(),
        "a comment and a reason raise no new question"
    );
}

#[tokio::test]
async fn a_rule_counts_each_call_once_and_then_its_else_applies() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'few'\nallow = 'refund'\nat_most = { calls = 2, within = '1h', else = 'deny' }",
    );
    let turn = turn(&rules);
    // Explaining and deciding charge nothing.
    let given = super::args(json!({"amount": 1}));
    for _ in 0..5 {
        let _ = rules.explain(&RuleCall::new("refund", &given));
    }
    let calls = (0..3).map(|number| call(&number.to_string(), &json!(1))).collect();
    let report = turn.run(calls).await.unwrap();
    let ran = report.calls().iter().filter(|call| call.outcome().is_returned()).count();
    assert_eq!(ran, 2);
    assert_eq!(
        report
            .calls()
            .iter()
            .filter(|call| matches!(call.outcome(), countersign::Outcome::Denied(_)))
            .count(),
        1
    );
}

/// R7: "Replaying counts nothing either."
#[test]
fn a_replay_of_calls_counts_none_of_them() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'one'\nallow = 'refund'\nat_most = { calls = 1, within = '1h', else = 'deny' }",
    );
    let given = super::args(json!({"amount": 1}));
    let call = RuleCall::new("refund", &given);
    let entries = vec![rules.journal_entry(&call, &rules.decide(&call)); 5];
    let replayed = countersign_rules::replay(&entries, &rules);
    assert_eq!(replayed.calls, 5, "{replayed:?}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let decided = runtime.block_on(rules.decide_and_count(&call, "ann", "the first", false));
    assert_eq!(decided.decision(), countersign::decision::ToolDecision::Allow);
}

/// R7: "Near misses never reach the model", nor a person who is asked.
#[tokio::test]
async fn the_rules_that_nearly_spoke_are_told_to_no_one() {
    let text = "version = 1\n[[rule]]\nid = 'small-ones'\nallow = 'refund'\nwhere.amount = '<= 50'\n\
        reason = 'is small'\n[[rule]]\nid = 'huge'\ndeny = 'refund'\nwhere.amount = '> 9000'\nreason = 'too much'\n";
    let rules = rules(text);
    for (amount, decides) in [(60, "no rule"), (9_001, "too much")] {
        let given = super::args(json!({"amount": amount}));
        let explained = rules.explain(&RuleCall::new("refund", &given));
        let near: Vec<_> = explained.near().iter().map(|it| it.rule.to_string()).collect();
        assert!(amount != 60 || near.contains(&"small-ones".to_owned()), "{explained}");
        let report = turn(&rules).run(vec![call("1", &json!(amount))]).await.unwrap();
        let outcome = format!("{:?}", report.calls()[0].outcome());
        let asked = report.into_suspended().map(|it| format!("{:?}", it.requests()));
        let told = format!("{outcome} {asked:?}");
        assert!(told.contains(decides), "{told}");
        for near in ["small-ones", "is small", "does not hold"] {
            assert!(!told.contains(near), "{near}: {told}");
        }
    }
}

/// R7: "counts calls that reached the rule, once per call": only the door knows that a request repeats an earlier one.
#[tokio::test]
async fn a_request_that_repeats_one_whose_ask_is_open_is_not_counted() {
    use countersign::Outcome;
    use countersign::call::RepeatedRequest;

    let rules = rules(
        "version = 1\n[[rule]]\nid = 'one'\nask = 'refund'\nat_most = { calls = 1, within = '1h', else = 'deny' }",
    );
    let made = async |turn: Turn| {
        let report = turn.run(vec![call("1", &json!(1))]).await.unwrap();
        report.calls()[0].outcome().clone()
    };
    let repeats = || RepeatedRequest::new(|_| Box::pin(std::future::ready(true)));
    assert!(made(turn(&rules)).await.is_deferred());
    for _ in 0..3 {
        assert!(made(turn(&rules).deps(repeats())).await.is_deferred());
    }
    assert!(
        matches!(made(turn(&rules)).await, Outcome::Denied(_)),
        "another call, beyond the limit"
    );
}

#[test]
fn a_call_that_was_counted_is_not_counted_again() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'one'\nallow = 'x'\nat_most = { calls = 1, within = '1h' }",
    );
    let none = serde_json::Map::new();
    let call = RuleCall::new("x", &none);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let decide = |principal: &str, id: &str| {
        runtime.block_on(rules.decide_and_count(&call, principal, id, false)).decision()
    };
    use countersign::decision::ToolDecision::{Allow, Ask};
    assert_eq!(
        (decide("ann", "1"), decide("ann", "1"), decide("ann", "2"), decide("bob", "3")),
        (Allow, Allow, Ask, Allow)
    );
}

/// R6: "with the program entries it used": a change of the table that changes nothing about a command keeps an approval.
#[test]
fn a_question_is_bound_to_the_programs_that_a_command_names() {
    use countersign_shell::Programs;

    let built_in = Programs::built_in();
    let pins = |programs: &Programs, command: &str| {
        let text = "version = 1\n[[rule]]\nid = 'all'\nask = 'shell'";
        let rules = super::builder(text).programs(programs.clone()).load().unwrap();
        let given = super::args(json!({"command": command}));
        rules.decide(&RuleCall::new("shell", &given)).pins().to_vec()
    };
    let changed = built_in.with("[wc]\noperands: list...\n").unwrap();
    let with_an_example = built_in.with("[frob]\noperands: text\nsafe: frob a\n").unwrap();
    assert!(!pins(&built_in, "wc -l a && cat b").is_empty());
    assert_eq!(pins(&built_in, "cat b"), pins(&changed, "cat b"));
    assert_ne!(pins(&built_in, "wc a && cat b"), pins(&changed, "wc a && cat b"));
    assert_eq!(pins(&built_in, "wc a && cat b"), pins(&with_an_example, "wc a && cat b"));
    // A program that becomes known is judged anew.
    assert_ne!(pins(&built_in, "frob a"), pins(&with_an_example, "frob a"));
}

/// R6: "its reason shows it as it is written there".
#[test]
fn a_reason_shows_a_command_of_an_inner_text_as_it_is_written_there() {
    let rules = Rules::builder().lexical().preset(Preset::Developer).load().unwrap();
    for (command, expected) in [
        ("ls src && bash -lc 'rm x && git  push'", ["`rm x`: `rm`", "`git  push`: `git`"]),
        ("cd src && sh -c 'cat x | sh run.sh; rm y'", ["`sh run.sh`: `sh`", "`rm y`: `rm`"]),
    ] {
        let args = json!({"command": command});
        let ruling = rules.decide(&RuleCall::new("shell", args.as_object().unwrap()));
        let decision = ruling.into_decision();
        let reasons: String =
            decision.questions().iter().map(|it| it.reason().to_owned()).collect();
        for it in expected {
            assert!(reasons.contains(it), "{command}: {reasons}");
        }
    }
}

/// R6: "A question names first what is known about its commands, and those of which nothing is known in one line."
#[test]
fn what_is_known_is_said_first_and_what_is_not_in_one_line() {
    let rules = Rules::builder().lexical().preset(Preset::Developer).load().unwrap();
    let reason = |command: &str| {
        let args = json!({"command": command});
        let ruling = rules.decide(&RuleCall::new("shell", args.as_object().unwrap()));
        let questions = ruling.into_decision();
        questions.questions().first().map(|it| it.reason().to_owned()).unwrap_or_default()
    };
    assert_eq!(
        reason("frob where && frob status --json"),
        "no rule allows these, as they are not known: `frob status --json`, `frob where`"
    );
    assert_eq!(reason("frob where"), "no rule allows `frob where`: `frob` is not known");
    let mixed = reason("frob where; git push; frob list");
    assert!(mixed.starts_with("no rule allows `git push`: `git` talks to a remote; "), "{mixed}");
    assert!(
        mixed.ends_with("not known: `frob list`, `frob where`")
            || mixed.ends_with("not known: `frob where`, `frob list`"),
        "{mixed}"
    );
    // Of one command, too.
    let one = reason("FOO=$x rm -r src");
    assert!(one.contains("`rm` deletes") || one.contains("sets `FOO`"), "{one}");
}
