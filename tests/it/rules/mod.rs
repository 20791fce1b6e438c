//! Permissions as a file (rules R1 to R8).

mod accepting;
mod below;
mod checking;
mod corpus;
mod counting;
mod deciding;
mod floor;
mod granting;
mod importing;
mod layering;
mod loading;
mod origins;
mod other_fields;
mod people;
mod properties;
mod proposing;
mod reading;
mod remembering;
mod scripts;
mod tools;
mod worktrees;

use countersign::decision::ToolDecision;
use countersign_rules::{RuleCall, Rules, RulesBuilder, RulesError};
use countersign_shell as shell;
use serde_json::{Map, Value, json};

/// Rules from one text, over a workspace that is the same on every machine.
fn builder(text: &str) -> RulesBuilder {
    Rules::builder().lexical().root("/home/user/project").home("/home/user").text("mine.toml", text)
}

fn rules(text: &str) -> Rules {
    builder(text).load().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> RulesError {
    builder(text).load().expect_err("the file loads")
}

fn args(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn decide(rules: &Rules, tool: &str, value: Value) -> ToolDecision {
    rules.decide(&RuleCall::new(tool, &args(value))).decision()
}

fn run(rules: &Rules, command: &str) -> ToolDecision {
    decide(rules, "shell", json!({"command": command}))
}

fn preset(preset: shell::Preset) -> Rules {
    Rules::builder()
        .lexical()
        .root("/home/user/project")
        .home("/home/user")
        .preset(preset)
        .load()
        .unwrap_or_else(|error| panic!("{error}"))
}
