//! Imports of other agents' rules: nothing is lost without a word, and what they advise works (rule R7).

use countersign::decision::ToolDecision;
use countersign_rules::{Imported, RuleCall, Rules, import_claude, import_codex, lint};
use serde_json::{Value, json};

use super::{args, builder, rules, run};

fn left_out(imported: &Imported, rule: &str) -> String {
    let found = imported.left_out.iter().find(|it| it.rule.contains(rule));
    found.unwrap_or_else(|| panic!("{rule} is lost: {:#?}", imported.left_out)).why.clone()
}

#[test]
fn every_key_below_and_beside_the_permissions_is_named() {
    for (settings, lost) in [
        (r#"{"permissions": {"read": {"deny": ["**/.env*"]}}}"#, "read"),
        (r#"{"permissions": {"deny": "Read(./.env)"}}"#, "Read(./.env)"),
        (r#"{"permissions": {"deny": {"Read": "./.env"}}}"#, "./.env"),
        (r#"{"permissions": {"denied": ["Bash(rm:*)"]}}"#, "denied"),
        (r#"{"permissions": {"allow": [7]}}"#, "7"),
        (r#"{"permissions": {"defaultMode": "plan"}}"#, "plan"),
        (r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#, "disable"),
        (r#"{"permissions": ["Bash(rm:*)"]}"#, "permissions"),
        (r#"{"permissions": null}"#, "permissions"),
        (r#"{"permission": {"deny": ["Read(./.env)"]}}"#, "permission"),
        (r#"{"deny": ["Bash(curl:*)"]}"#, "deny"),
        (r#"{"env": {"TOKEN": "s3cret"}}"#, "env"),
        (r#"{"model": "opus", "hooks": {}}"#, "hooks"),
        (r#"{"permissions": {"deny": ["Read(a)"]}, "permissions": {"allow": []}}"#, "permissions"),
        (r#"{"permissions": {"deny": ["Read(a)"], "deny": ["Read(b)"]}}"#, "Read(a)"),
    ] {
        let imported = import_claude(settings).unwrap();
        left_out(&imported, lost);
        let told = format!("{:?}", imported.left_out);
        assert!(!told.contains("s3cret"), "{told}");
    }
    // A key that is read is carried over, and no more is said.
    let settings = r#"{"permissions": {"deny": ["Read(a)"], "deny": ["Read(b)"], "ask": []}}"#;
    let imported = import_claude(settings).unwrap();
    let given = |path: &str| args(json!({"path": path}));
    let decided = rules(&imported.text);
    let decide = |path: &str| decided.decide(&RuleCall::new("read_file", &given(path))).decision();
    assert_eq!((decide("b"), decide("a")), (ToolDecision::Deny, ToolDecision::Ask));
    assert_eq!(imported.left_out.len(), 1);
    assert!(import_claude("[]").is_err() && import_claude("7").is_err());
}

#[test]
fn what_a_file_of_codex_says_beside_its_patterns_is_looked_at() {
    let text = r#"
prefix_rule(pattern = ["git", "status"], decision = "allow", match = ["git status", "git status -s"])
prefix_rule(pattern = ["rm", ["-rf", "-fr"]], decision = "forbidden", match = ["rm -rf build", "rm -r -f build"])
prefix_rule(pattern = ["cat", ".env"], decision = "forbidden", match = [["cat", ".env"], "cat backend/.env"], not_match = ["cat .env.example", "cat .env x"])
prefix_rule(pattern = ["git", ["push", OTHER]], decision = "forbidden")
prefix_rule(pattern = ["npm", "test"], hosts = ["x"])
"#;
    let imported = import_codex(text).unwrap();
    for lost in ["rm -r -f build", "cat backend/.env", "cat .env x", "OTHER", "hosts"] {
        left_out(&imported, lost);
    }
    for kept in ["git status -s", "rm -rf build", "cat .env.example"] {
        let is_named =
            |it: &&countersign_rules::LeftOut| it.rule.contains(&format!("[\"{kept}\"]"));
        assert_eq!(imported.left_out.iter().find(is_named), None);
    }
    let rules = rules(&imported.text);
    assert_eq!(run(&rules, "git push"), ToolDecision::Deny, "the other words of the list count");
}

/// The line of TOML that a text tells a person to write.
fn advised(why: &str) -> Option<&str> {
    why.split("write `").nth(1)?.split('`').next().filter(|line| line.starts_with("where."))
}

/// Words of people's own settings, and the programs of the table with a few words behind them.
const WORDS: &[&str] = &[
    "RUST_LOG=debug cargo test",
    "timeout 30 npm test",
    "bin/tool check",
    "xargs grep",
    "cargo make ci",
    "npx prettier",
    "./gradlew build",
    "env FOO=1 make",
    "sudo systemctl status",
    "python3 scripts/x.py",
    "node build.js",
    "docker compose up",
    "make deploy",
    "bash scripts/run.sh",
    "nohup npm start",
    "time cargo build",
    "poetry run pytest",
    "uv run pytest",
    "bundle exec rspec",
    "tmux capture-pane",
    "NODE_ENV=test npm run build",
    "find . -name",
    "xargs -n1 ls",
    "source venv/bin/activate",
    "cd frontend",
    "watch ls",
    "nice make",
    "kubectl get pods",
    "terraform plan",
    "gh pr view",
    "ssh host uptime",
    "sleep 5",
    "PYTHONPATH=. pytest",
    "my-own-tool run",
    "~/bin/tool go",
    "/opt/x/bin/tool go",
    "npm run build && npm test",
];

/// "Advice works": whatever the importer says to write is a rule that allows the command.
#[test]
fn what_the_importer_advises_allows_what_was_left_out() {
    let (mut advised_count, mut broken) = (0, Vec::new());
    for words in WORDS {
        let settings = json!({"permissions": {"allow": [format!("Bash({words}:*)")]}});
        let imported = import_claude(&settings.to_string()).unwrap();
        let codex = words.split(' ').map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", ");
        let codex = import_codex(&format!("prefix_rule(pattern = [{codex}])")).unwrap();
        for left in imported.left_out.iter().chain(&codex.left_out) {
            let Some(line) = advised(&left.why) else { continue };
            advised_count += 1;
            let text = format!("version = 1\n[[rule]]\nid = \"a\"\nallow = \"shell\"\n{line}\n");
            let loaded: Rules = rules(&text);
            if run(&loaded, words) != ToolDecision::Allow {
                broken.push(format!("{words}: {}", left.why));
            }
            // Lint says nothing else about it than that it is wide.
            let found = lint(&loaded, None);
            broken.extend(found.iter().filter(|it| it.kind == "dead").map(ToString::to_string));
        }
    }
    assert!(advised_count > 10 && broken.is_empty(), "{broken:#?}");
}

/// R7: "decide as they did there, or more strictly, and what is not carried over is named": a rule compares the words of a command
/// without the variables in front of it.
#[test]
fn a_denial_that_begins_with_a_variable_denies_the_command() {
    let settings = json!({"permissions": {
        "allow": ["Bash(HUSKY=0 git push:*)", "Bash(git:*)"],
        "deny": ["Bash(HUSKY=0 git commit:*)", "Bash(A=1 B=2 git rm x)", "Bash(FOO=bar:*)"],
    }});
    let imported = import_claude(&settings.to_string()).unwrap();
    let loaded: Rules = rules(&imported.text);
    for denied in ["HUSKY=0 git commit -m x", "git commit -m x", "A=1 B=2 git rm x"] {
        assert_eq!(run(&loaded, denied), ToolDecision::Deny, "{denied}");
    }
    assert_eq!(run(&loaded, "HUSKY=0 git push"), ToolDecision::Ask);
    for rule in ["Bash(HUSKY=0 git push:*)", "Bash(FOO=bar:*)"] {
        assert!(left_out(&imported, rule).contains("begins with a variable"), "{rule}");
    }
}

/// "The findings of lint are executed": a rule that it calls dead allows nothing, and one that it calls wide something.
#[test]
fn what_lint_says_about_the_words_of_a_rule_is_so() {
    let mut wrong = Vec::new();
    for words in WORDS.iter().chain(&["git", "make", "cargo test", "npm"]) {
        let text = format!(
            "version = 1\n[[rule]]\nid = \"a\"\nallow = \"shell\"\nwhere.command.runs = {}\n",
            Value::from(*words)
        );
        // A program that runs others is refused without more words, and so is what is no word.
        let Ok(loaded) = builder(&text).load() else { continue };
        let found = lint(&loaded, None);
        let kinds: Vec<_> = found.iter().filter(|it| it.rule == "a").map(|it| it.kind).collect();
        let allows = [String::new(), " x".into(), " ls".into()]
            .iter()
            .any(|more| run(&loaded, &format!("{words}{more}")) == ToolDecision::Allow);
        if kinds.contains(&"dead") && allows
            || !kinds.contains(&"dead") && !allows && words.contains(' ')
        {
            wrong.push(format!("{words}: {kinds:?}, allows {allows}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// "The reasons of judgements": what a reason tells a person to write makes that reason go away.
#[cfg(unix)]
#[test]
fn what_a_reason_of_a_judgement_advises_works() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("home/shop");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("a.rs"), "x\n").unwrap();
    std::os::unix::fs::symlink("/etc/shadow", root.join("link")).unwrap();
    let reading =
        "version = 1\n[[rule]]\nid = 'a'\nallow = 'shell'\nwhere.command.is = 'read-only'\n";
    let rules = Rules::builder()
        .root(&root)
        .search_path(countersign_shell::SearchPath::unchecked())
        .text("mine.toml", reading)
        .load()
        .unwrap();
    for (command, advice, better) in [
        ("find . -exec cat {} +", "write `-type f`", "find . -type f -exec cat {} +"),
        (
            "find . -print0 | xargs -0 cat",
            "write `-type f`",
            "find . -type f -print0 | xargs -0 cat",
        ),
        (
            "find . -type f | xargs cat",
            "separate them by NUL",
            "find . -type f -print0 | xargs -0 cat",
        ),
    ] {
        let said = |command: &str| {
            let given = args(json!({"command": command}));
            rules.decide(&RuleCall::new("shell", &given)).to_string()
        };
        let (before, after) = (said(command), said(better));
        assert!(before.starts_with("ask") && before.contains(advice), "{command}: {before}");
        assert!(after.starts_with("allow"), "{better}: {after}");
    }
}

/// R7: "an import brings tests": each call is one that the file decides about as its rule says.
#[test]
fn an_import_brings_tests_of_its_rules() {
    let settings = json!({"permissions": {
        "allow": ["Bash(npm run lint)", "Bash(git log:*)", "Read(src/**)", "WebFetch(domain:docs.rs)", "mcp__github__get_issue"],
        "ask": ["Bash(git push:*)"],
        "deny": ["Read(./.env)", "Bash(git log --all)"],
    }});
    let imported = import_claude(&settings.to_string()).unwrap();
    let (_, tests) = imported.text.split_once("\n[test]\n").unwrap();
    for (test, times) in [
        ("\"shell: npm run lint\"", 1),
        ("\"shell: git log\"", 1),
        ("\"shell: git push\"", 1),
        ("\"shell: git log --all\"", 1),
        ("\"mcp:github/get_issue: {}\"", 1),
    ] {
        assert_eq!(tests.matches(test).count(), times, "{test}: {tests}");
    }
    let found = lint(&rules(&imported.text), None);
    assert!(found.iter().all(|it| it.kind != "untested"), "{found:#?}");
    let codex = "prefix_rule(pattern = ['git', 'push'], decision = 'prompt')".replace('\'', "\"");
    let codex = import_codex(&codex).unwrap().text;
    assert!(codex.ends_with("\n[test]\nask = [\n    \"shell: git push\",\n]\n"), "{codex}");
}
