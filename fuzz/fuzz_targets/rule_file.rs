//! Files of rules, and a call that is decided by them.
#![no_main]

mod text;

use countersign::decision::ToolDecision;
use countersign_rules::{RuleCall, Rules};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

/// A rule that denies, whatever the other file says.
const FLOOR: &str = "version = 1\n[[rule]]\nid = 'never'\ndeny = 'never'\n";

fuzz_target!(|input: &[u8]| {
    let (file, command) = match input.iter().position(|byte| *byte == 0) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &b""[..]),
    };
    let builder = || Rules::builder().lexical().root("/home/user/project").home("/home/user");
    let load = |text: &str| builder().text("fuzz.toml", text).text("floor.toml", FLOOR).load();
    let Some(loaded) = text::never_panics(file, load) else { return };
    let rules = match loaded {
        Ok(rules) => rules,
        Err(problem) => {
            assert!(problem.starts_with("fuzz.toml:"), "a problem without a place: {problem}");
            return;
        }
    };
    let Ok(command) = std::str::from_utf8(command) else { return };
    let args: Map<String, Value> = [("command", command), ("path", command), ("url", command)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    for tool in ["shell", "read_file", "never"] {
        let call = RuleCall::new(tool, &args);
        let ruling = rules.decide(&call);
        assert_eq!(ruling.decision(), rules.explain(&call).decision(), "{tool}");
        assert!(tool != "never" || ruling.decision() == ToolDecision::Deny);
    }
});
