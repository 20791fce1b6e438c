//! The fields of a shell's call beside its command (rule R8).

use countersign::decision::ToolDecision::{self, Allow, Ask};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::Preset;
use serde_json::{Value, json};

use super::{args, decide, preset, rules};

const ALL: &str = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n";
const BY_DEFAULT: &str = "version = 1\ndanger_default_allow = true\n";

/// A call of a shell that runs `ls`, with these fields beside the command.
fn with(fields: &Value) -> Value {
    let mut call = args(json!({"command": "ls"}));
    call.extend(args(fields.clone()));
    Value::Object(call)
}

fn reason(rules: &Rules, tool: &str, fields: &Value) -> (ToolDecision, String) {
    let ruling = rules.decide(&RuleCall::new(tool, &args(with(fields))));
    (ruling.decision(), ruling.to_string())
}

/// R8: "Whatever a shell tool carries is looked at": a field that no rule has looked at silences rules that allow, and
/// the default.
#[test]
fn a_field_that_is_not_known_is_asked_about_and_named() {
    let all = [rules(ALL), rules(BY_DEFAULT), preset(Preset::Developer)];
    for (field, value) in [
        ("env", json!({"LD_PRELOAD": "/tmp/x"})),
        ("shell", json!("/tmp/x")),
        ("args", json!(["; rm -rf x"])),
        ("script", json!("rm -rf src")),
        ("stdin", json!("y\n")),
        ("input", json!("y")),
        ("user", json!("root")),
        ("Timeout", json!(7)),
        ("check", json!(false)),
        ("n", json!(0)),
        ("prefix_rule", json!(["git"])),
        ("paths", json!(["a"])),
        ("cwd ", json!("src")),
        ("e\u{200b}nv", json!("x")),
    ] {
        for rules in &all {
            let (decision, reason) = reason(rules, "bash", &json!({field: value}));
            let named = format!("`{}` of `bash` is an argument", countersign::show::escape(field));
            assert_eq!(decision, Ask, "{field}");
            assert!(reason.contains(&named), "{reason}");
        }
    }
}

/// R8: a switch of the sandbox is asked about, and the question says so.
#[test]
fn a_switch_of_the_sandbox_is_asked_about() {
    for (field, value) in [
        ("dangerouslyDisableSandbox", json!(true)),
        ("dangerouslyDisableSandbox", json!("false")),
        ("with_escalated_permissions", json!(true)),
        ("sandbox_permissions", json!("require_escalated")),
        ("sandbox_permissions", json!("with_additional_permissions")),
        ("additional_permissions", json!({"network": true})),
        ("sandbox", json!(false)),
        ("sandbox", json!(null)),
        ("use_sandbox", json!("")),
        ("sandboxPolicy", json!({})),
    ] {
        let (decision, reason) = reason(&rules(ALL), "shell", &json!({field: value}));
        assert_eq!(decision, Ask, "{field}");
        let said = format!("`{field}` of `shell` may switch the sandbox off");
        assert!(reason.contains(&said), "{reason}");
    }
}

#[test]
fn a_known_field_with_another_value_than_clients_send_is_asked_about() {
    for (field, value) in [
        ("timeout", json!("10s; rm x")),
        ("timeout", json!([1])),
        ("run_in_background", json!("yes")),
        ("run_in_background", json!({"log": "x"})),
        ("mode", json!("pty")),
        ("shellId", json!("a b")),
        ("tty", json!(true)),
        ("tty", json!(1)),
        ("description", json!({"command": "rm x"})),
        ("description", json!(["x"])),
        ("justification", json!(7)),
    ] {
        let (decision, reason) = reason(&rules(ALL), "shell", &json!({field: value}));
        assert_eq!(decision, Ask, "{field}");
        assert!(reason.contains("has a value that is not known here"), "{reason}");
    }
}

/// R8: what today's clients send with a command of every day is no question.
#[test]
fn what_clients_send_beside_a_command_is_no_question() {
    let rules = preset(Preset::Developer);
    for (tool, fields) in [
        // Claude Code
        ("shell", json!({"description": "List", "timeout": 120_000, "run_in_background": true})),
        ("shell", json!({"dangerouslyDisableSandbox": false, "description": ""})),
        // Codex
        ("shell", json!({"workdir": "/home/user/project/src", "timeout_ms": 9, "login": true})),
        ("shell", json!({"yield_time_ms": 250, "max_output_tokens": 6000, "tty": false})),
        ("shell", json!({"sandbox_permissions": "use_default", "justification": null})),
        ("shell", json!({"with_escalated_permissions": false, "justification": "to look"})),
        // Gemini CLI and Qwen Code
        (
            "run_shell_command",
            json!({"description": "d", "dir_path": "src", "is_background": false}),
        ),
        ("run_shell_command", json!({"directory": "src", "timeout": "5000", "delay_ms": 200})),
        // Copilot CLI
        (
            "bash",
            json!({"description": "d", "mode": "async", "shellId": "tests-1", "detach": false}),
        ),
        ("bash", json!({"async": true, "sessionId": "main", "initial_wait": 30})),
        // opencode
        ("bash", json!({"description": "d", "timeout": 1, "workdir": "src"})),
        // Cursor, Cline and Visual Studio Code
        (
            "execute_command",
            json!({"is_background": false, "explanation": "e", "require_user_approval": true}),
        ),
        ("execute_command", json!({"requires_approval": false, "cwd": "src"})),
        ("bash", json!({"explanation": "e", "goal": "g", "isBackground": true})),
        // A model that has to send every field, and has nothing to say in it
        (
            "shell",
            json!({"env": null, "stdin": "", "args": [], "env_vars": {}, "cwd": null, "workdir": ""}),
        ),
    ] {
        let (decision, reason) = reason(&rules, tool, &fields);
        assert_eq!(decision, Allow, "{tool} {fields}: {reason}");
    }
}

/// R8: the command is judged in the directory that any of these fields names, and in no other one.
#[test]
fn a_directory_beside_a_command_is_one_that_is_certain() {
    let preset = preset(Preset::Developer);
    let cat = |field: &str, value: Value| {
        decide(&preset, "bash", json!({"command": "cat config.json", field: value}))
    };
    for field in [
        "cwd",
        "workdir",
        "working_directory",
        "workingDirectory",
        "working_dir",
        "current_dir",
        "dir_path",
        "directory",
    ] {
        assert_eq!(cat(field, json!("src")), Allow, "{field}");
        assert_eq!(cat(field, json!("/home/user/project/src")), Allow, "{field}");
        for other in [
            json!("/root/.docker"),
            json!("/etc"),
            json!(".."),
            json!("src/../tests"),
            json!("~"),
            json!("$HOME"),
            json!(" src"),
            json!("src\n"),
            json!("file:///etc"),
            json!("FILE:/etc"),
            json!("%2e%2e"),
            json!("src/%2e%2e/%2e%2e"),
            json!("..\\x"),
            json!(7),
            json!(["src"]),
            json!({"path": "src"}),
            json!(true),
        ] {
            assert_eq!(cat(field, other.clone()), Ask, "{field} {other}");
        }
    }
    let two =
        |one: &str, other: &str| reason(&preset, "bash", &json!({"cwd": one, "dir_path": other})).0;
    assert_eq!(two("src", "src/."), Allow, "the same directory");
    assert_eq!(two("src", "/home/user/project/src"), Allow);
    assert_eq!(two("src", "tests"), Ask);
    let (_, said) = reason(&preset, "bash", &json!({"cwd": "src", "dir_path": "tests"}));
    assert!(said.contains("`cwd` of `bash` is one of several directories"), "{said}");
}

/// R8: "a rule with a condition on the field has looked at it".
#[test]
fn a_rule_with_a_condition_on_a_field_has_looked_at_it() {
    let rules = rules(
        r#"
version = 1
[[rule]]
id = "look"
allow = "bash"
where.command.is = "read-only"
[[rule]]
id = "with-env"
allow = "bash"
where.command.runs = "ls"
where.env.exists = true
[[rule]]
id = "of-one-variable"
allow = "bash"
where.command.runs = "cat"
where.extra.CI = "1"
[[rule]]
id = "as-ann"
allow = "bash"
where.command.runs = "id"
where.user.exists = true
except.user = ["root"]
[[rule]]
id = "who"
allow = "bash"
where.command.runs = "who"
except.user = ["root"]
"#,
    );
    assert_eq!(reason(&rules, "bash", &json!({"env": {"CI": "1"}})).0, Allow);
    let (decision, said) = reason(&rules, "bash", &json!({"env": {"CI": "1"}, "stdin": "x"}));
    assert_eq!(decision, Ask);
    assert!(said.contains("`stdin`"), "{said}");
    let cat = json!({"command": "cat x", "extra": {"CI": "1", "LD_PRELOAD": "x"}});
    assert_eq!(decide(&rules, "bash", cat), Ask, "the other variables were not looked at");
    assert_eq!(decide(&rules, "bash", json!({"command": "id", "user": "ann"})), Allow);
    assert_eq!(decide(&rules, "bash", json!({"command": "id", "user": "root"})), Ask);
    // An exception alone has not looked at the field: it would make the rule allow more.
    assert_eq!(decide(&rules, "bash", json!({"command": "who"})), Allow);
    assert_eq!(decide(&rules, "bash", json!({"command": "who", "user": "ann"})), Ask);
    // A command of the same text that another rule allows is not covered by the rule that has looked.
    let both = json!({"command": "ls && head x", "env": {"CI": "1"}});
    assert_eq!(decide(&rules, "bash", both), Ask);
}

/// R7: a rule that was silenced is a near miss, and its reason is the field.
#[test]
fn a_rule_that_a_field_silences_is_explained() {
    let rules = rules(ALL);
    let call = args(with(&json!({"env": {"A": "b"}})));
    let explanation = rules.explain(&RuleCall::new("bash", &call)).to_string();
    assert!(
        explanation.contains("near: `env` of `bash` is an argument that is not known here (all"),
        "{explanation}"
    );
}

/// R8 is about shells: the fields of other tools are what the tool is about.
#[test]
fn the_fields_of_other_tools_are_left_to_rules() {
    let rules = rules(ALL);
    for (tool, fields) in [
        ("pay", json!({"description": "rent", "env": "live"})),
        ("deploy", json!({"command": "ls", "env": {"A": "b"}})),
    ] {
        assert_eq!(decide(&rules, tool, fields), Allow);
    }
}

/// R8, X3: a field that a rule judges by commands is the command of the tool, whatever the tool is called.
#[test]
fn a_tool_that_a_rule_judges_by_commands_is_a_shell_to_it() {
    let text = "version = 1\n\
         [[rule]]\nid = 'command'\nallow = 'mcp:term/run'\nwhere.command.is = 'read-only'\n\
         [[rule]]\nid = 'script'\nallow = 'mcp:term/run'\nwhere.script.is = 'read-only'\n\
         [[rule]]\nid = 'env'\nallow = 'mcp:term/run'\nwhere.command.runs = 'id'\nwhere.env.exists = true\n";
    let rules = [
        rules(text),
        rules(&text.replace("version = 1\n", "version = 1\ndanger_default_allow = true\n")),
    ];
    let decide = |rules: &Rules, given: Value| {
        rules.decide(&RuleCall::named("mcp:term/run", &args(given))).decision()
    };
    for rules in &rules {
        for given in [
            json!({"command": "ls", "shell": "/tmp/x"}),
            json!({"command": "ls", "env": {"LD_PRELOAD": "x"}}),
            json!({"script": "ls", "stdin": "rm"}),
            json!({"command": "ls", "args": ["; rm"]}),
            json!({"command": "ls", "sandbox": false}),
            json!({"command": "ls", "path": "~/.ssh"}),
        ] {
            assert_eq!(decide(rules, given.clone()), Ask, "{given}");
        }
        for given in [
            json!({"command": "ls"}),
            json!({"command": "ls", "timeout": 5, "description": "look"}),
            json!({"script": "ls", "env": {}}),
            json!({"command": "ls", "script": "ls"}),
            json!({"command": "id", "env": {"CI": "1"}}),
        ] {
            assert_eq!(decide(rules, given.clone()), Allow, "{given}");
        }
    }
    assert_eq!(decide(&rules[0], json!({"command": "ls", "script": "rm a"})), Ask);
    // A comment with the words of a patch makes no paths known.
    let patched = json!({"command": "ls # *** Begin Patch", "paths": ["x"]});
    assert_eq!(decide(&rules[0], patched), Ask);
}

/// R2: a rule that asks or denies speaks as before, about a call with any fields.
#[test]
fn a_denial_stays_one_whatever_is_beside_the_command() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
         [[rule]]\nid = 'ls'\ndeny = 'bash'\nwhere.command.runs = 'ls'\nreason = 'no'\n",
    );
    assert_eq!(reason(&rules, "bash", &json!({"env": {}, "x": 1})).1, "deny: no (ls)");
}
