//! The tests of an imported file: for each rule a call that it decides about, so that `rules check` has something to look at,
//! and a later change of the file is seen.
//!
//! We make a call from the conditions of the rule, and let the rules of the file decide about it. The call becomes a test
//! only if the rule speaks and the decision is the rule's. For example, a stricter rule of the file may overrule it.

use countersign::decision::ToolDecision;
use serde_json::{Value, json};

use super::{SHELL, Writer, WrittenRule, quoted};
use crate::builder::RulesBuilder;
use crate::handle::Rules;

impl Writer {
    /// The section `[test]`; empty where no call shows a rule.
    pub(super) fn tests(&self) -> String {
        let Ok(rules) = RulesBuilder::for_tests().text("imported", &*self.imported.text).load()
        else {
            return String::new();
        };
        let shown = |effect: &str| {
            let those = self.rules.iter().filter(|rule| rule.effect == effect);
            those.filter_map(|rule| self.example(rule, &rules)).collect::<Vec<_>>()
        };
        let mut text = String::new();
        for effect in ["allow", "ask", "deny"] {
            let calls = shown(effect);
            if !calls.is_empty() {
                let calls: String =
                    calls.iter().map(|call| format!("    {},\n", quoted(call))).collect();
                text += &format!("{effect} = [\n{calls}]\n");
            }
        }
        if text.is_empty() { text } else { format!("\n[test]\n{text}") }
    }

    /// A call that a rule decides about.
    fn example(&self, rule: &WrittenRule, rules: &Rules) -> Option<String> {
        self.calls(rule).into_iter().find(|text| {
            let Ok(call) = rules.written_call(text) else { return false };
            let ruling = rules.decide(&call.call());
            let is_wanted = match rule.effect.as_str() {
                "allow" => ruling.decision() == ToolDecision::Allow,
                "deny" => ruling.decision() == ToolDecision::Deny,
                _ => ruling.decision() == ToolDecision::Ask,
            };
            is_wanted && ruling.spoke.iter().any(|spoke| *spoke.rule == *rule.id)
        })
    }

    /// Calls that a rule with these conditions may be about.
    fn calls(&self, rule: &WrittenRule) -> Vec<String> {
        let call = |tool: &str, args: Value| format!("{}: {args}", tool.replace('*', "a"));
        let command = |text: &str| format!("{SHELL}: {text}");
        let plain = |tools: &[String]| {
            let calls = tools.iter().map(|tool| match tool.as_str() {
                SHELL => command("ls"),
                tool => call(tool, json!({})),
            });
            calls.collect::<Vec<_>>()
        };
        let Some((key, values)) = rule.conditions.first().and_then(|line| written(line)) else {
            return plain(&rule.tools);
        };
        let of_value = |value: &String| match key.as_str() {
            "where.command.equals" | "where.command.runs" => {
                let begins = format!("{value} ");
                let known = self.program_examples().iter().map(|it| &it.command);
                let known = known.filter(|it| it.starts_with(&begins)).map(|it| command(it));
                std::iter::once(command(value)).chain(known).collect()
            }
            "where.command.matches" => vec![command(&value.replace('*', ""))],
            "where.url.host" => {
                let url = format!("https://{}/", value.replace('*', "a"));
                rule.tools.iter().map(|tool| call(tool, json!({"url": url}))).collect()
            }
            "where.agent.equals" => {
                rule.tools.iter().map(|tool| call(tool, json!({"agent": value}))).collect()
            }
            "where.path.path" | "where.any_path" => {
                let path = value.replace("**/", "").replace("/**", "/a").replace('*', "a");
                let calls = rule.tools.iter().map(|tool| match tool.as_str() {
                    SHELL => command(&format!("touch {path}")),
                    tool => call(tool, json!({"path": path})),
                });
                calls.collect()
            }
            _ => Vec::new(),
        };
        values.iter().flat_map(of_value).collect()
    }
}

/// The key and the values of a condition.
fn written(line: &str) -> Option<(String, Vec<String>)> {
    let (key, value) = line.split_once(" = ")?;
    let table: toml::Table = format!("value = {value}").parse().ok()?;
    let texts = match table.get("value")? {
        toml::Value::String(text) => vec![text.clone()],
        toml::Value::Array(items) => {
            items.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
        }
        _ => return None,
    };
    Some((key.to_owned(), texts))
}
