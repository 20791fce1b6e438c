//! The examples of one file each, as their users run them: what they print is what ran, and what did not.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::example;

/// What an example without arguments prints.
fn printed(name: &str) -> String {
    let ran = Command::new(example(name)).stdin(Stdio::null()).output().unwrap();
    let (out, err) =
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert!(ran.status.success(), "{name}: {out}\n{err}");
    out
}

/// The lines that say which tool bodies ran, in order.
fn ran(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.trim_start().strip_prefix("> ")).collect()
}

/// Whether these texts follow each other.
#[track_caller]
fn tells(printed: &str, texts: &[&str]) {
    let mut rest = printed;
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("`{text}` is missing, or comes too early, in:\n{printed}");
        };
        rest = after;
    }
}

#[test]
fn batch_policy_runs_what_its_rules_approve_and_nothing_else() {
    // Seed 000: "Batch decisions: approve all reads, deny all writes".  T2.
    let out = printed("batch_policy");
    assert_eq!(
        ran(&out),
        [
            "looked up apples: 2 euros",
            "read orders.txt",
            "bought apples for 12 euros",
            "bought pears for 20 euros",
            "bought saffron for 15 euros",
        ]
    );
    assert_eq!(out.matches("The handler is asked, once").count(), 2);
    tells(&out, &["> looked up", "It sees:", "call_7  count_stock", "> read orders.txt"]);
    tells(
        &out,
        &[
            "call_2",
            "approved by rule 1",
            "call_3",
            "denied by rule 2",
            "call_4",
            "approved by rule 3",
        ],
    );
    tells(
        &out,
        &[
            "call_5",
            "edited by rule 4",
            "call_6",
            "denied by rule 5",
            "call_7",
            "result by the warehouse",
        ],
    );
    tells(
        &out,
        &[
            "Nothing is written while the stall is open.",
            "> bought saffron for 15",
            "The stall is stocked.",
        ],
    );
}

#[test]
fn fail_closed_runs_nothing_that_nobody_approved_and_goes_on() {
    // Seed 000: "deny anything not explicitly approved".
    let out = printed("fail_closed");
    let scenes: Vec<&str> = out.split("== ").skip(1).collect();
    let [forgets, forgets_wrapped, rest @ ..] = &scenes[..] else { panic!("{out}") };
    assert_eq!(ran(forgets), ["read disk.txt"]);
    assert_eq!(ran(forgets_wrapped), ["read disk.txt", "deleted old.log"]);
    tells(
        forgets,
        &[
            "the run stops: no answer for calls `call_3`, `call_4`",
            "call_2, call_3, call_4 still wait",
        ],
    );
    tells(
        forgets_wrapped,
        &[
            "call_2",
            "answered by ann",
            "call_3",
            "denied",
            "call_4",
            "failed",
            "answered by fail closed",
            "assistant:",
        ],
    );
    assert_eq!(rest.len(), 4);
    for (scene, why) in rest.iter().zip(["is down", "is down", "panicked", "panicked"]) {
        assert_eq!(ran(scene), ["read disk.txt"], "{scene}");
        assert!(scene.contains(why), "{scene}");
    }
    for wrapped in [rest[1], rest[3]] {
        tells(
            wrapped,
            &[
                "a handler failed, the calls are denied",
                "call_2",
                "Denied by policy.",
                "assistant:",
            ],
        );
    }
}

#[test]
fn a_custom_layer_loses_no_question_and_runs_no_tool_twice() {
    let out = printed("custom_layer");
    let acts: Vec<&str> = out.split("\n\n").skip(1).collect();
    let [twice, asked, unasked, approved] = acts[..] else { panic!("{out}") };
    assert_eq!(ran(twice), ["read prices"]);
    tells(twice, &["call_2", "the cache knows", "and no tool ran"]);
    assert_eq!(ran(asked), ["read salaries"]);
    tells(
        asked,
        &[
            "call_4",
            "the cache knows",
            "call_4: waits",
            "ann approves",
            "call_4: \"the text of salaries\"",
        ],
    );
    assert!(!asked.split("call_4: waits").next().unwrap().contains("call_4: \"the text"));
    assert_eq!(ran(unasked), ["sent the report, attempt 1", "sent the report, attempt 2"]);
    assert_eq!(ran(approved), ["paid the invoice, and heard no answer"]);
    tells(approved, &["ann approves", "retry sends call_6 again", "the bank did not answer"]);
}

#[test]
fn an_own_loop_stores_what_waits_and_answers_every_call() {
    // Seed 001: "What does an apple cost? Also buy me one."
    let out = printed("own_loop");
    assert_eq!(ran(&out), ["looked up apple", "bought: apple", "looked up pear"]);
    tells(
        &out,
        &[
            "> looked up apple",
            "The loop has stopped",
            "call_2  buy",
            "ann approves it",
            "> bought: apple",
        ],
    );
    let (_, messages) = out.split_once("as the server has them:").unwrap();
    let messages = messages.lines().map(str::trim).filter(|line| !line.is_empty());
    let messages: Vec<Value> = messages.map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |message: &Value| message["tool_calls"].as_array().cloned().unwrap_or_default();
    let called: Vec<Value> = messages.iter().flat_map(of).map(|call| call["id"].clone()).collect();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<Value> = results.map(|message| message["tool_call_id"].clone()).collect();
    assert_eq!(called, results, "every call has one result, in the model's order");
    assert!(
        called[2].as_str().unwrap().starts_with("cs_"),
        "an id that was used before is replaced"
    );
    assert!(messages[6]["content"].as_str().unwrap().contains("not valid JSON"));
}
