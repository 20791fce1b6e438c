//! `countersign hook doctor`: whether the entry that is there is the one that was installed, whether the rules can allow
//! anything, and which other hooks are asked (rule P4).
#![cfg(unix)]

use std::fs;

use serde_json::{Value, json};

use super::installing::finding;
use super::{RULES, User};

const CLIENTS: [&str; 5] = ["claude", "codex", "gemini", "copilot", "opencode"];

fn installed(user: &User, client: &str) {
    let ended = user.run(&["hook", "install", client, "--limit", "45"]);
    assert_eq!(ended.status, 0, "{ended:?}");
}

/// What the doctor finds about the entry after a person has changed the settings.
fn after(user: &User, client: &str, change: impl FnOnce(&str) -> String) -> (Value, String) {
    let file = user.file_of(client);
    let text = fs::read_to_string(&file).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text, "{client}");
    fs::write(&file, changed).unwrap();
    let found = finding(user, client, "entry").unwrap();
    fs::write(&file, text).unwrap();
    found
}

/// Changes a value at a place of the settings; `null` removes it.
fn put(place: &str, value: Value) -> impl FnOnce(&str) -> String {
    move |text| {
        let mut settings: Value = serde_json::from_str(text).unwrap();
        let (parent, name) = place.rsplit_once('/').unwrap();
        let parent = settings.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(name)),
            value => drop(parent.insert(name.to_owned(), value)),
        }
        settings.to_string()
    }
}

#[test]
fn the_doctor_finds_what_differs_from_what_install_writes() {
    let user = User::new();
    for client in CLIENTS {
        installed(&user, client);
        assert_eq!(finding(&user, client, "entry").unwrap().0, true, "{client}");
    }
    let hook = |event: &str, name: &str| format!("/hooks/{event}/0/hooks/0/{name}");
    for (client, place, value, says) in [
        (
            "claude",
            hook("PreToolUse", "timeout"),
            json!(5),
            "`timeout` of `PreToolUse` is 5 (`install` writes 45)",
        ),
        (
            "claude",
            hook("PreToolUse", "onFailure"),
            json!(null),
            "`onFailure` of `PreToolUse` is not there",
        ),
        ("claude", hook("PreToolUse", "async"), json!(true), "`async` of `PreToolUse` is true"),
        (
            "claude",
            "/hooks/PreToolUse/0/matcher".into(),
            json!("Write"),
            r#"is "Write" (`install` writes "*")"#,
        ),
        (
            "claude",
            "/hooks/PostToolUse/0/matcher".into(),
            json!("Write"),
            r#"is "Write" (`install` writes "*")"#,
        ),
        ("claude", "/hooks/PostToolUse".into(), json!(null), "no hook for `PostToolUse`"),
        ("codex", hook("PreToolUse", "timeout"), json!(5), "is 5 (`install` writes 45)"),
        ("codex", "/hooks/PreToolUse/0/matcher".into(), json!("Bash"), "matcher"),
        ("gemini", hook("BeforeTool", "timeout"), json!(5000), "is 5000 (`install` writes 45000)"),
        ("gemini", "/hooks/AfterTool".into(), json!(null), "no hook for `AfterTool`"),
        (
            "copilot",
            "/hooks/preToolUse/0/timeoutSec".into(),
            json!(5),
            "is 5 (`install` writes 45)",
        ),
    ] {
        let (ok, found) = after(&user, client, put(&place, value));
        assert!(ok == false && found.contains(says), "{client} {place}: {found}");
    }
    let replaced =
        |client: &str, from: &str, to: &str| after(&user, client, |text| text.replace(from, to));
    for (client, from, to, says) in [
        (
            "claude",
            "--limit 45",
            "--limit 450",
            "`timeout` of `PreToolUse` is 45 (`install` writes 450)",
        ),
        ("claude", " --limit 45", "", "no `--limit`"),
        ("gemini", "exit 2;", "exit 0;", "the command of `BeforeTool`"),
        ("opencode", "const LIMIT = 45000", "const LIMIT = 5000", "const LIMIT = 5000"),
        ("opencode", "if (late) throw", "if (late) return; throw", "not the one"),
    ] {
        let (ok, found) = replaced(client, from, to);
        assert!(ok == false && found.contains(says), "{client} {from}: {found}");
    }
}

#[test]
fn the_doctor_finds_that_no_call_can_be_allowed() {
    let user = User::new();
    let rules = user.home().join("own.toml");
    fs::write(&rules, RULES).unwrap();
    let file = rules.to_str().unwrap();
    for client in CLIENTS {
        assert_eq!(user.run(&["hook", "install", client]).status, 0);
        let (ok, found) = finding(&user, client, "rules").unwrap();
        assert!(ok == false && found.contains("there are no rules"), "{client}: {found}");
        assert_eq!(user.run(&["hook", "install", client, "--", "--rules", file]).status, 0);
        let (ok, found) = finding(&user, client, "rules").unwrap();
        assert!(ok == true && found.contains("own.toml: 3 rules"), "{client}: {found}");
        fs::write(&rules, RULES.replace("allow", "ask")).unwrap();
        let (ok, found) = finding(&user, client, "rules").unwrap();
        assert!(ok == false && found.contains("no rule allows anything"), "{client}: {found}");
        fs::write(&rules, "version = 1\n[[rule]]\nalow = 'x'\n").unwrap();
        let (ok, found) = finding(&user, client, "rules").unwrap();
        assert!(ok == false && found.contains("every call is denied"), "{client}: {found}");
        fs::write(&rules, RULES).unwrap();
    }
}

#[test]
fn the_doctor_lists_other_hooks_before_tools() {
    let user = User::new();
    let groups = |event: &str, command: &str| {
        json!({"hooks": {event: [{"matcher": "*", "hooks": [{"type": "command", "command": command}]}]}}).to_string()
    };
    let copilot =
        json!({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "./theirs"}]}});
    for (client, file, text) in [
        ("claude", ".claude/settings.local.json", groups("PreToolUse", "./theirs")),
        ("claude", ".claude/settings.local.json", groups("PermissionRequest", "./theirs")),
        ("claude", ".claude/settings.local.json", groups("PreToolUse", "./countersign hook claude")),
        ("codex", ".codex/config.toml", "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"./theirs\"\n".into()),
        ("gemini", "work/.gemini/settings.json", groups("BeforeTool", "./theirs")),
        ("gemini", "work/.gemini/settings.json", format!("// mine\n{}", groups("BeforeTool", "./theirs"))),
        ("copilot", ".copilot/hooks/theirs.json", copilot.to_string()),
        ("copilot", "work/.github/hooks/theirs.json", copilot.to_string()),
        ("opencode", ".config/opencode/plugins/theirs.ts", "export const P = async () => ({})".into()),
        ("opencode", "work/opencode.json", json!({"plugin": ["theirs"]}).to_string()),
    ] {
        installed(&user, client);
        let work = user.home().join("work");
        fs::create_dir_all(&work).unwrap();
        let others = || {
            let mut command = user.command(&["--json", "hook", "doctor", client, "--program", "true"]);
            let lines = super::ended(&command.current_dir(&work).output().unwrap()).lines();
            lines.into_iter().find(|line| line["check"] == "other hooks").unwrap()
        };
        assert_eq!(others()["ok"], true, "{client} {}", others());
        // The local settings of the project are those of the directory in which the doctor runs.
        let path = match file.contains("local") {
            true => work.join(file),
            false => user.home().join(file),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let found = others();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(found["ok"] == false && found["found"].as_str().unwrap().contains(name), "{found}");
        fs::remove_file(&path).unwrap();
    }
}
