//! Properties of rules (rule R2).

use countersign::decision::ToolDecision;
use countersign_rules::{RuleCall, Rules};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{args, builder};

/// One rule in the file, without an id.
fn a_rule() -> impl Strategy<Value = String> {
    let effect = prop::sample::select(vec!["allow", "ask", "deny"]);
    let tool = prop::sample::select(vec!["\"shell\"", "\"x\"", "\"*\"", "[\"x\", \"mcp:s/x\"]"]);
    let conditions = prop::sample::select(vec![
        "",
        "where.path = \"within:.\"\n",
        "where.path.path = \"src/**\"\n",
        "where.any_path = \"**/.env\"\n",
        "where.amount = \"> 5\"\n",
        "where.amount = { at_least = 1, below = 7 }\n",
        "where.name = [\"a\", \"b\"]\n",
        "where.name = \"a*\"\n",
        "where.url.host = \"*.example.com\"\n",
        "where.command.is = \"read-only\"\n",
        "where.command.runs = \"git push\"\n",
        "where.command.runs = [\"ls\", \"cargo test\"]\n",
        "where.a.b.exists = true\n",
    ]);
    let exceptions = prop::sample::select(vec![
        "",
        "except.amount = 6\n",
        "except.path = \"src/x\"\n",
        "except.command.runs = \"git log\"\n",
        "except = [{ name = \"a\" }, { amount = 3 }]\n",
    ]);
    (effect, tool, conditions, exceptions).prop_map(|(effect, tool, conditions, exceptions)| {
        format!("{effect} = {tool}\n{conditions}{exceptions}")
    })
}

fn a_call() -> impl Strategy<Value = (String, Value)> {
    let tool = prop::sample::select(vec!["shell", "x", "y"]).prop_map(str::to_owned);
    let path = prop::option::of(prop::sample::select(vec![
        "src/x", "../x", ".env", "a/%2eenv", "", "~/x", "~u/x",
    ]));
    let amount = prop::option::of(prop_oneof![
        (-1i64..9).prop_map(Value::from),
        Just(json!("6")),
        Just(json!([1, 6])),
        Just(json!({}))
    ]);
    let command = prop::option::of(prop::sample::select(vec![
        "ls",
        "git push",
        "ls && git push",
        "git log | head",
        "cargo test > x",
        "$X push",
        "while :; do ls; done",
        "",
        "rm -rf /",
        "cat .env",
        "'",
    ]));
    let other = prop::option::of(prop::sample::select(vec![
        "a",
        "c",
        "https://a.example.com/",
        "\u{202e}",
    ]));
    (tool, path, amount, command, other).prop_map(|(tool, path, amount, command, other)| {
        let mut call = json!({});
        for (name, value) in [("path", path), ("command", command), ("name", other), ("url", other)]
        {
            if let Some(value) = value {
                call[name] = value.into();
            }
        }
        if let Some(amount) = amount {
            call["amount"] = amount;
        }
        (tool, call)
    })
}

fn file(rules: &[String]) -> String {
    let rules = rules
        .iter()
        .enumerate()
        .map(|(number, rule)| format!("[[rule]]\nid = \"r{number}\"\n{rule}"));
    format!("version = 1\n{}", rules.collect::<String>())
}

fn decide(rules: &Rules, (tool, value): &(String, Value)) -> ToolDecision {
    rules.decide(&RuleCall::new(tool, &args(value.clone()))).decision()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn neither_the_order_of_rules_nor_that_of_files_matters(
        rules in prop::collection::vec(a_rule(), 0..6),
        cut in 0usize..6,
        call in a_call(),
    ) {
        let one = builder(&file(&rules)).load().unwrap();
        let turned: Vec<String> = rules.iter().rev().cloned().collect();
        let (first, second) = turned.split_at(cut.min(turned.len()));
        let other = builder(&file(first)).text("other.toml", file(second)).load().unwrap();
        prop_assert_eq!(decide(&one, &call), decide(&other, &call));
    }

    #[test]
    fn one_more_rule_that_asks_or_denies_never_makes_a_decision_milder(
        rules in prop::collection::vec(a_rule(), 0..5),
        more in a_rule(),
        call in a_call(),
    ) {
        prop_assume!(!more.starts_with("allow"));
        let before = builder(&file(&rules)).load().unwrap();
        let after = builder(&file(&rules)).text("more.toml", file(&[more])).load().unwrap();
        prop_assert!(decide(&after, &call) >= decide(&before, &call));
    }

    #[test]
    fn an_exception_never_widens_what_is_allowed(rule in a_rule(), call in a_call()) {
        let (_, rest) = rule.split_once(' ').unwrap();
        let rule = format!("allow {}", rest.split("except").next().unwrap());
        let before = builder(&file(std::slice::from_ref(&rule))).load().unwrap();
        for exception in ["except.amount = 6\n", "except.command.runs = 'git'\n", "except.nothing = 'a'\n"] {
            let after = builder(&file(&[format!("{rule}{exception}")])).load().unwrap();
            prop_assert!(decide(&after, &call) >= decide(&before, &call));
        }
    }

    #[test]
    fn an_explanation_decides_as_the_rules_do_and_names_a_reason(
        rules in prop::collection::vec(a_rule(), 0..6),
        call in a_call(),
    ) {
        let rules = builder(&file(&rules)).load().unwrap();
        let given = args(call.1.clone());
        let explained = rules.explain(&RuleCall::new(&call.0, &given));
        prop_assert_eq!(explained.decision(), decide(&rules, &call));
        prop_assert!(explained.by().iter().any(|by| by.decision == explained.decision()));
    }

    #[test]
    fn any_text_loads_with_all_its_rules_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..40), at in 0usize..200) {
        let whole = file(&["allow = \"x\"\n".to_owned(), "deny = \"y\"\nwhere.a = 1\n".to_owned()]);
        let mut text = whole.into_bytes();
        let at = at.min(text.len());
        text.splice(at..(at + bytes.len() / 2).min(text.len()), bytes);
        if let Ok(text) = String::from_utf8(text) {
            let rules = text.matches("\n[[rule]]").count();
            if let Ok(loaded) = builder(&text).load() {
                // The debug form lists the files with the numbers of their rules.
                let shown = format!("{loaded:?}");
                prop_assert!(shown.contains(&format!(",{rules}]")) || shown.contains(&format!(", Number({rules})]")) || rules > 2, "{}\n{}", text, shown);
            }
        }
    }
}
