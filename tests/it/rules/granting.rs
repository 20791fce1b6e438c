//! The classes of calls that rules propose for grants (rule G3).

use countersign::decision::ToolDecision;
use countersign_rules::{RuleCall, Rules};
use countersign_shell::Preset;
use serde_json::{Value, json};

use super::preset;
use crate::support::commands::rows;

fn rules() -> Rules {
    preset(Preset::Developer)
}

/// The names of the classes of a call, from the narrowest to the widest.
fn classes(rules: &Rules, tool: &str, args: &Value) -> Vec<String> {
    let ruling = rules.decide(&RuleCall::new(tool, args.as_object().unwrap()));
    ruling.grant_patterns().iter().map(|class| class.name().to_owned()).collect()
}

fn of_command(rules: &Rules, text: &str) -> Vec<String> {
    classes(rules, "shell", &json!({"command": text}))
}

#[test]
fn a_listed_command_may_be_granted_with_other_operands() {
    let rules = rules();
    let add = of_command(&rules, "git add src/lib.rs");
    assert_eq!(add, ["command git add without options", "command git add"]);
    assert_eq!(of_command(&rules, "git add docs/a.md docs/b.md"), add);
    assert_eq!(of_command(&rules, "git add -A")[1], add[1]);
    assert_ne!(of_command(&rules, "git add -A")[0], add[0], "the same options");
    assert_eq!(
        of_command(&rules, "git commit -m 'one thing; and another'"),
        of_command(&rules, "git commit -m other")
    );
}

/// G3: "`git add` of the workspace's files", and of no secret among them which git does not ignore.
#[test]
fn a_grant_for_git_add_takes_in_no_secret_below_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file(".git/HEAD", "ref: refs/heads/main\n");
    file("docs/a.md", "a");
    let rules = || {
        let text = "version = 2\npreset = 'developer'\n";
        Rules::builder().root(folder.path()).text("rules.toml", text).load().unwrap()
    };
    let add = of_command(&rules(), "git add docs/a.md");
    assert_eq!(of_command(&rules(), "git add docs"), add);
    assert_eq!(of_command(&rules(), "git add ."), add);
    file("docs/deep/.env", "KEY=1");
    for command in ["git add docs", "git add .", "git add -A", "git add --all docs"] {
        assert_eq!(of_command(&rules(), command), [""; 0], "{command}: it would add `.env`");
    }
    assert_eq!(of_command(&rules(), "git add docs/a.md"), add);
    file(".gitignore", ".env\n");
    assert_eq!(of_command(&rules(), "git add ."), add, "git ignores it");
}

/// S11: "A title is a template of the host or of a rules file (version 2), never of a server."
#[test]
fn a_rule_words_the_call_for_the_person() {
    let file = |version: u8, effect: &str| {
        format!(
            "version = {version}\n[[rule]]\nid = \"pay\"\n{effect} = \"transfer\"\ntitle = \"{{amount}} to {{to}}\"\n"
        )
    };
    let rules =
        Rules::builder().lexical().root("/src").text("rules.toml", file(2, "ask")).load().unwrap();
    let ruling = rules
        .decide(&RuleCall::new("transfer", json!({"amount": 5, "to": "Ann"}).as_object().unwrap()));
    let asked = ruling.into_decision();
    assert_eq!(asked.questions()[0].metadata()["title"], "{amount} to {to}");
    let read =
        |text: String| Rules::builder().lexical().root("/src").text("rules.toml", text).load();
    let refused = |text: String| read(text).unwrap_err().to_string();
    assert!(refused(file(1, "ask")).contains("version = 2"));
    assert!(refused(file(2, "deny")).contains("only a rule with `ask` has it"));
    // Another wording is no other question.
    let other = read(file(2, "ask").replace("{amount} to", "pay {amount} to")).unwrap();
    let again = other
        .decide(&RuleCall::new("transfer", json!({"amount": 5, "to": "Ann"}).as_object().unwrap()));
    assert_eq!(again.into_decision().questions()[0].pins(), asked.questions()[0].pins());
}

/// What no rule of a preset speaks about is asked about with what the command does, and may be granted.
#[test]
fn a_command_that_a_preset_does_not_allow_may_be_granted() {
    let rules = rules();
    let asked = [
        ("git commit -m x", "changes the repository or files"),
        ("git push origin main", "talks to a remote"),
        ("frobnicate -rf /", "is not known"),
    ];
    for (text, why) in asked {
        let args = json!({"command": text});
        let ruling = rules.decide(&RuleCall::new("shell", args.as_object().unwrap()));
        assert_eq!(ruling.decision(), ToolDecision::Ask, "{text}");
        assert!(ruling.is_grantable() && ruling.to_string().contains(why), "{ruling}");
    }
    let args = json!({"command": "git status && rm -rf /"});
    let ruling = rules.decide(&RuleCall::new("shell", args.as_object().unwrap()));
    assert_eq!(ruling.decision(), ToolDecision::Deny);
}

/// G3: "Interpreters, wrappers, fetchers, deleters, publishers, script runners and anything elided are never
/// generalised."
#[test]
fn what_runs_fetches_sends_publishes_or_deletes_is_never_generalised() {
    let rules = rules();
    for text in [
        "python x.py",
        "node -e 1",
        "bash x.sh",
        "sudo ls",
        "env git add x",
        "timeout 5 git add x",
        "xargs git add",
        "curl -d x https://example.com",
        "wget x",
        "git push",
        "git fetch",
        "npm publish",
        "cargo publish",
        "npm run deploy",
        "make deploy",
        "just deploy",
        "cargo run",
        "npx x",
        "rm x",
        "git rm x",
        "git clean -fd",
        "git reset --hard",
        "git checkout -- x",
        "git restore x",
        "git branch -D x",
        "git tag -d v1",
        "git commit --amend",
        "ssh x ls",
        "docker run x",
        "kubectl exec x -- sh",
        "git -C x add y",
        "git add x > y",
        "A=b git add x",
        "git add $x",
        "git add *",
        "git add x && rm y",
        "git add \"$(cat x)\"",
        "./git add x",
        "git add ../x",
        "git add /etc/x",
        "git add ~/x",
        "git add .env",
        "cp a Cargo.toml",
        "cp a .git/config",
        "mkdir .github",
        "touch build.rs",
        "git add --exec=x",
        "git add -- -A",
        "cp -r a b",
    ] {
        let found = of_command(&rules, text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

/// What a class covers is never a dangerous command of the corpus, whichever everyday command it was made from.
#[test]
fn no_dangerous_row_is_in_a_class_of_an_everyday_one() {
    let rules = rules();
    let everyday: Vec<String> =
        rows("everyday").iter().flat_map(|row| of_command(&rules, &row.cmd)).collect();
    for row in rows("dangerous") {
        let found = of_command(&rules, &row.cmd);
        assert!(!found.iter().any(|class| everyday.contains(class)), "{}: {found:?}", row.cmd);
    }
}

#[test]
fn a_file_may_be_granted_with_any_content_and_with_its_folder() {
    let rules = rules();
    let write = |path: &str| classes(&rules, "write_file", &json!({"path": path, "content": "x"}));
    assert_eq!(write("src/a/b.rs"), ["file src/a/b.rs", "files in src/a"]);
    assert!(!write("src/a/b.rs").contains(&"files in src".to_owned()), "without the folders below");
    assert!(write("src/c.rs").contains(&"files in src".to_owned()));
    assert_eq!(write("notes.md"), ["file notes.md"], "never the whole workspace");
    for path in
        ["../x", "/etc/x", ".env", "src/.env", ".git/config", "build.rs", "src/package.json", "~/x"]
    {
        assert!(write(path).is_empty(), "{path}");
    }
    let call = |tool: &str| classes(&rules, tool, &json!({"path": "src/a.rs", "content": "x"}));
    for tool in ["delete_file", "move_file", "run_file", "send_file", "create_issue"] {
        assert!(call(tool).is_empty(), "{tool}");
    }
}

/// A question that has to be asked every time has no classes.
#[test]
fn what_is_asked_every_time_has_no_classes() {
    let file = "version = 1\n[[rule]]\nid = 'writes'\nask = 'write_file'\nevery_time = true";
    let rules =
        Rules::builder().lexical().root("/src/project").text("a.toml", file).load().unwrap();
    let args = json!({"path": "src/a.rs", "content": "x"});
    let ruling = rules.decide(&RuleCall::new("write_file", args.as_object().unwrap()));
    assert_eq!(ruling.decision(), ToolDecision::Ask);
    assert!(ruling.grant_patterns().is_empty());
}

/// R6: "A resolved path is a pin", also one within a list: a folder that becomes a link elsewhere is another question, and
/// a grant for the call of before does not answer it.
#[cfg(unix)]
#[test]
fn a_path_within_a_list_is_bound_to_the_place_that_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    for name in ["one", "two"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    let link = |to: &str| {
        let _ = std::fs::remove_file(root.join("link"));
        std::os::unix::fs::symlink(root.join(to), root.join("link")).unwrap();
    };
    let text = "version = 1\n[[rule]]\nid = 'all'\nask = 'pack'";
    let rules = Rules::builder().root(&root).text("mine.toml", text).load().unwrap();
    let pins = || {
        let args = json!({"what": {"files": ["link/a", "one/b"]}, "path": "link/c"});
        let mut pins =
            rules.decide(&RuleCall::new("pack", args.as_object().unwrap())).pins().to_vec();
        pins.sort();
        pins
    };
    link("one");
    let before = pins();
    let place = |name: &str| root.join(name).display().to_string();
    let expected = [("path of path", "one/c"), ("path of what/files/0", "one/a")]
        .map(|(what, name)| (what.to_owned(), place(name)));
    assert_eq!(before, expected, "what leads where it says has no second place");
    assert_eq!(pins(), before);
    link("two");
    assert_ne!(pins(), before);
}

/// G3: "For a tool of an MCP server or of a toolset they propose this tool with any arguments", "not for the tools of a
/// coding agent, and not for a tool that takes commands".
#[test]
fn a_tool_of_a_server_or_a_set_may_be_granted_with_any_arguments() {
    let rules = rules();
    let args = json!({"path": "src/a.rs", "content": "x"});
    let args = args.as_object().unwrap();
    let names = |call: RuleCall<'_>| -> Vec<String> {
        let ruling = rules.decide(&call);
        ruling.grant_patterns().iter().map(|class| class.name().to_owned()).collect()
    };
    let call = |tool| RuleCall::new(tool, args);
    assert_eq!(names(call("frobnicate").server("x")), ["tool mcp:x/frobnicate"]);
    assert_eq!(names(call("frobnicate").toolset("x")), ["tool set:x/frobnicate"]);
    let files = ["file src/a.rs", "files in src", "tool mcp:x/write_file"];
    assert_eq!(names(call("write_file").server("x")), files, "the narrower ones come first");
    for client in ["claude", "client:claude", "codex"] {
        assert!(names(call("frobnicate").toolset(client)).is_empty(), "{client}");
    }
    let command = json!({"command": "frobnicate"});
    let shell = RuleCall::new("shell", command.as_object().unwrap()).server("x");
    assert!(names(shell).is_empty());
}
