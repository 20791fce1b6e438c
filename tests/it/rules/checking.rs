//! The findings of `rules check`: rules and tests that look as if they did something (rule R7).

use countersign_rules::lint;

use super::rules;

/// The kinds of the findings, each with the rule and the line.
fn found(text: &str) -> Vec<(&'static str, String, usize)> {
    let found = lint(&rules(text), None);
    found.into_iter().map(|it| (it.kind, it.rule, it.line)).collect()
}

fn texts(text: &str) -> String {
    lint(&rules(text), None).iter().map(|it| format!("{it}\n")).collect()
}

/// R7: "a rule that no test makes speak, and a test that passes by the default alone".
#[test]
fn a_rule_with_a_misspelt_condition_is_found_though_its_test_passes() {
    let pushes = "version = 1\n[[rule]]\nid = 'push'\nask = 'shell'\nwhere.command.runs = 'git psuh'\n\
                  [test]\nask = ['shell: git push']\n";
    assert_eq!(
        found(pushes),
        [("by-default", String::new(), 7), ("untested", "push".to_owned(), 2)]
    );
    assert_eq!(found(&pushes.replace("psuh", "push")), []);
    let pays = "version = 1\n[[rule]]\nid = 'large'\nask = 'pay'\nwhere.amonut = '> 1000'\n\
                [test]\nask = 'pay: {amount: 2000}'\n";
    // A missing field cannot be evaluated, so that the rule asks about every payment.
    let said = texts(pays);
    assert!(
        said.contains("mine.toml:2: misspelt: no test has the field `amonut`: is `amount` meant?"),
        "{said}"
    );
    assert_eq!(found(&pays.replace("amonut", "amount")), []);
    let command = pushes.replace("where.command", "where.comand").replace("psuh", "push");
    assert!(texts(&command).contains("no test has the field `comand`: is `command` meant?"));
}

/// A test that shows where a rule ends is none that passes by accident.
#[test]
fn a_test_at_the_edge_of_a_rule_that_allows_is_no_finding() {
    let look = "version = 1\n[[rule]]\nid = 'look'\nallow = 'read_file'\nwhere.path.within = '.'\n\
                [test]\nallow = 'read_file: {path: a}'\nask = 'read_file: {path: ../a}'\n";
    assert_eq!(found(look), []);
    let twice = "version = 1\n[[rule]]\nid = 'look'\nallow = 'shell'\nwhere.command.is = 'read-only'\n\
                 [[rule]]\nid = 'push'\nask = 'shell'\nwhere.command.runs = 'git push'\n\
                 [test]\nallow = 'shell: ls'\nask = ['shell: git push', 'shell: make install']\n";
    assert_eq!(found(twice), [], "`push` speaks in another test");
    let nothing =
        look.replace("ask = 'read_file: {path: ../a}'", "ask = 'raed_file: {path: ../a}'");
    assert_eq!(found(&nothing), [("by-default", String::new(), 8)]);
}

#[test]
fn a_field_in_a_reason_that_no_call_has_is_found() {
    let text = "version = 1\n[[rule]]\nid = 'a'\ndeny = 'pay'\nwhere.to = 'x'\nreason = '{nope} of {tool} to {to}: {amount}'\n\
                [test]\ndeny = 'pay: {to: x, amount: 5}'\n";
    let said = texts(text);
    assert!(said.contains("`reason` has `{nope}`"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// R7: "a tool by a name that no door has".
#[test]
fn a_misspelt_tool_and_one_by_a_clients_name_are_found() {
    let rule = |tool: &str| format!("version = 1\n[[rule]]\nid = 'a'\nallow = '{tool}'\n");
    for (tool, says) in [
        ("raed_file", "no door has a tool `raed_file`: is `read_file` meant?"),
        ("mcp__git__status", "write `mcp:git/status`"),
        ("Read", "in the hook this tool is `read_file`"),
    ] {
        assert!(texts(&rule(tool)).contains(says), "{tool}: {}", texts(&rule(tool)));
    }
    for tool in ["read_file", "pay", "set:own/raed_file", "refund"] {
        assert!(!texts(&rule(tool)).contains("no door"), "{tool}");
    }
}

/// R7: "a misspelt field", also one of few letters, and "a text that looks like a comparison".
#[test]
fn a_short_field_that_is_misspelt_and_a_text_like_a_comparison_are_found() {
    let rule = |condition: &str| {
        format!(
            "version = 1\n[[rule]]\nid = 'a'\nask = 'read_file'\nwhere.{condition}\n[test]\nask = 'read_file: {{path: a}}'\n"
        )
    };
    for (condition, says) in [
        ("pth = '**/x'", "no test has the field `pth`: is `path` meant?"),
        ("paht.within = '.'", "no test has the field `paht`: is `path` meant?"),
        ("ulr.host = 'x.com'", "no test has the field `ulr`: is `url` meant?"),
        ("lines = '=> 5'", "`=> 5` is compared as a text"),
        ("lines = '=5'", "`=5` is compared as a text"),
        ("lines = '> 5 lines'", "`> 5 lines` is compared as a text"),
        ("lines = ['!= 5', 'x']", "`!= 5` is compared as a text"),
    ] {
        let said = texts(&rule(condition));
        assert!(said.contains(says), "{condition}: {said}");
    }
    for condition in
        ["path = '**/x'", "math = 'x'", "lines = '>= 5'", "sign = '=>'", "lines = '<b>'"]
    {
        let said = texts(&rule(condition));
        assert!(!said.contains("misspelt"), "{condition}: {said}");
    }
}

/// R7: "a tool by a name that no door has", whatever the rule decides, and one by the name that only some agents have for it.
#[test]
fn a_name_of_a_tool_that_no_door_produces_is_found() {
    for effect in ["allow", "ask", "deny"] {
        let rule = |tool: &str| {
            format!("version = 1\n[[rule]]\nid = 'a'\n{effect} = '{tool}'\nreason = 'no'\n")
        };
        for (tool, says) in [
            ("claude:shell", "write `shell` for the tool of every agent, or `set:claude/shell`"),
            ("[Bb]ash", "a pattern has `*` for any characters"),
            (" Bash", "no blanks around it: write `Bash`"),
            ("Bash,Read", "several tools are a list, such as `[\"Bash\", \"Read\"]`"),
            ("Bash|Read", "several tools are a list"),
            ("mcp:git/git status", "conditions on arguments belong into `where`"),
        ] {
            let said = texts(&rule(tool));
            assert!(
                said.contains("dead: no door has a tool") && said.contains(says),
                "{tool}: {said}"
            );
        }
        for tool in [
            "shell",
            "set:claude/shell",
            "mcp:git/git_*",
            "mcp:My Server/x",
            "read_file",
            "pay",
            "files.read/v1",
        ] {
            let said = texts(&rule(tool));
            assert!(!said.contains("no door") && !said.contains("alone"), "{tool}: {said}");
        }
        let alone = texts(&rule("Bash")).contains("`shell` is that of every coding agent");
        assert_eq!(alone, effect != "allow", "{effect}");
    }
    let named = "version = 1\n[[rule]]\nid = 'a'\ndeny = ['Bash', 'shell']\nreason = 'no'\n";
    assert!(!texts(named).contains("alone"), "{}", texts(named));
    let own = "version = 1\n[[rule]]\nid = 'a'\ndeny = 'create'\nreason = 'no'\n[test]\ndeny = 'create: {}'\n";
    assert_eq!(found(own), [], "a test says that the tool is there");
}

/// R1: a rule that allows a tool without its server is not about the server's tool.
#[test]
fn a_rule_without_a_server_that_is_meant_for_one_is_found() {
    let text = "version = 1\n[[rule]]\nid = 'short'\nallow = ['git_status', 'git_log']\n\
                [test]\nask = 'mcp:git/git_status'\nallow = 'git_log'\n";
    let said = texts(text);
    assert!(said.contains("no-server: in a rule that allows, `git_status` is about no tool of an MCP server: is `mcp:git/git_status` meant?"), "{said}");
    assert!(!said.contains("`git_log` is about"), "{said}");
    let denies = "version = 1\n[[rule]]\nid = 'short'\ndeny = 'git_status'\nreason = 'no'\n\
                  [test]\ndeny = 'mcp:git/git_status'\n";
    assert_eq!(found(denies), [], "a rule that denies is about a server's tool, too");
}

/// R7: "a server or a client's tool by a name that the file has otherwise".
#[test]
fn a_misspelt_server_and_a_misspelt_tool_of_the_vocabulary_are_found() {
    let file = |tool: &str, test: &str| {
        format!(
            "version = 2\n[[rule]]\nid = 'read'\nallow = 'mcp:git/git_status'\n[[rule]]\nid = 'a'\nask = '{tool}'\n\
             [test]\nallow = 'mcp:git/git_status: {{}}'\nask = '{test}'\n"
        )
    };
    let said = texts(&file("mcp:gti/git_push", "mcp:git/git_push: {}"));
    assert!(
        said.contains("misspelt: no test has a server `gti`: is `mcp:git/git_push` meant?"),
        "{said}"
    );
    // A rule that a test makes speak is about a server of its own.
    let two = texts(&file("mcp:gut/push", "mcp:gut/push: {}"));
    assert!(!two.contains("misspelt"), "{two}");
    let session = texts(&file("client:tdo", "client:todo: {}"));
    assert!(session.contains("has no tool `tdo`: is `client:todo` meant?"), "{session}");
    assert!(!texts(&file("client:todo", "client:todo: {}")).contains("misspelt"));
}

/// R7: a tool of a client by a name that is near to one that it has.
#[test]
fn a_misspelt_tool_of_a_client_is_found() {
    let rule = |tool: &str| format!("version = 1\n[[rule]]\nid = 'a'\nallow = '{tool}'\n");
    for (tool, says) in [
        ("claude:Skil", "Claude Code has no tool `Skil`: is `claude:Skill` meant?"),
        ("claude:WebFech", "Claude Code has no tool `WebFech`: is `fetch` meant?"),
    ] {
        let said = texts(&rule(tool));
        assert!(said.contains(says), "{tool}: {said}");
        let tested = format!("{}[test]\nallow = '{tool}: {{}}'\n", rule(tool));
        assert!(!texts(&tested).contains("misspelt"), "{}", texts(&tested));
    }
    for tool in ["claude:Skill", "claude:Workflow", "cursor:Skil"] {
        assert!(!texts(&rule(tool)).contains("misspelt"), "{tool}: {}", texts(&rule(tool)));
    }
}

/// P2: "if no field of the call may hold a command": `rules explain` and the tests of a file say what the hook does.
#[test]
fn a_named_tool_of_a_client_is_not_allowed_with_a_field_that_may_hold_a_command() {
    let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'claude:Skill'\n[test]\n\
                allow = 'claude:Skill: {skill: x}'\nask = 'claude:Skill: {skill: x, command: ls}'\n";
    assert_eq!(found(text), []);
    let rules = rules(text);
    let call = rules.written_call("claude:Skill: {skill: x, command: ls}").unwrap();
    let said = rules.explain(&call.call()).to_string();
    assert!(said.contains("with `command`, which may hold a command"), "{said}");
}

/// A rule that asks about a tool of a server, and does nothing else, needs no test, unless a pattern allows the tool.
#[test]
fn a_rule_that_only_asks_about_a_tool_of_a_server_needs_no_test() {
    let asks = "version = 2\n[[rule]]\nid = 'a'\nask = 'mcp:git/git_push'\nreason = 'why'\n";
    assert_eq!(found(asks), []);
    let allows = format!("{asks}[[rule]]\nid = 'b'\nallow = 'mcp:git/git_log'\n");
    assert_eq!(found(&allows), [("untested", String::new(), 1)]);
    let tested = format!("{allows}[test]\nallow = 'mcp:git/git_log: {{}}'\n");
    assert_eq!(found(&tested), []);
    let wide = tested.replace("'mcp:git/git_log'", "'mcp:git/*'");
    assert!(found(&wide).contains(&("untested", "a".to_owned(), 2)));
    for more in ["people = 2\n", "every_time = true\n", "where.force = true\n"] {
        let found = found(&format!("{asks}{more}"));
        assert_eq!(found, [("untested", String::new(), 1)], "{more}");
    }
}

/// R1: "A tool of a coding agent … by the agent's own name for it": another word in front of it is an error that says so.
#[test]
fn a_tool_of_a_client_that_is_not_known_is_an_error_that_names_the_forms() {
    let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'cluade:Skill'\n";
    let refused = countersign_rules::Rules::builder().lexical().text("mine.toml", text).load();
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("`cluade` is no coding agent"), "{error}");
    assert!(error.contains("`mcp:cluade/Skill`") && error.contains("`claude:Skill`"), "{error}");
}
