//! `countersign hook doctor`: whether the entry that is there is the one that was installed, whether the rules can allow
//! anything, and which other hooks are asked (rule P4).
#![cfg(unix)]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::clients::{clients, some_clients};

use super::installing::finding;
use super::{RULES, User};

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
    for client in clients() {
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
fn without_a_client_the_doctor_says_what_is_not_in_order_with_each() {
    let user = User::new();
    let none = user.run(&["hook", "doctor"]);
    assert!(none.status == 3 && none.out.contains("`countersign init`"), "{none:?}");
    user.own_rules("version = 1\n[[rule]]\nid = 'a'\nallow = 'read_file'\n[test]\nallow = 'read_file: {path: x}'\n");
    for client in ["claude", "gemini"] {
        installed(&user, client);
    }
    let program = |name: &str| {
        let file = user.home().join("bin").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        crate::support::write_program(&file, "#!/bin/sh\necho 9.9.9\n");
    };
    program("claude");
    program("gemini");
    let path = format!("{}:/usr/bin:/bin", user.home().join("bin").display());
    let doctor = |words: &[&str]| {
        let mut command = user.command(&[&["hook", "doctor"], words].concat());
        super::ended(&command.env("PATH", &path).output().unwrap())
    };
    let well = doctor(&[]);
    let text = fs::read_to_string(user.home().join(".gemini/settings.json")).unwrap();
    let lower = text.replace("--limit ", "--limit 9");
    assert_ne!(text, lower);
    fs::write(user.home().join(".gemini/settings.json"), lower).unwrap();
    let changed = doctor(&[]);
    assert_eq!(changed.status, 3, "{changed:?}");
    let of_gemini = changed.out.split("Gemini CLI: PROBLEM").nth(1).expect(&changed.out);
    assert!(of_gemini.contains("entry"), "{changed:?}");
    assert!(well.out.contains("Claude Code: ") && !well.out.contains("Codex"), "{well:?}");
    // The programs of the clients are in a folder where tools may write, in front of all others.
    assert!(changed.out.contains("`PATH` names `"), "{changed:?}");
    // A live run is one of a client that is named.
    assert_eq!(doctor(&["--live"]).status, 2);
}

#[test]
fn the_doctor_finds_that_no_call_can_be_allowed() {
    let user = User::new();
    let rules = user.home().join("own.toml");
    fs::write(&rules, RULES).unwrap();
    let file = rules.to_str().unwrap();
    for client in some_clients(2) {
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

/// R3: rules that wait for `rules accept` are a finding.
#[test]
fn the_doctor_shows_rules_that_wait_to_be_accepted() {
    let user = User::new();
    user.own_rules(RULES);
    installed(&user, "claude");
    assert!(finding(&user, "claude", "accepted").is_none());
    user.own_rules(
        &RULES.replace("where.any_path = [\"**/*.denied\"]\n", "where.any_path = \"**/none\"\n"),
    );
    let (ok, found) = finding(&user, "claude", "accepted").unwrap();
    assert!(ok == false && found.contains("`countersign rules accept`"), "{found}");
    assert_eq!(finding(&user, "claude", "rules").unwrap().0, true);
}

/// P5: "`hook doctor` is red where a file of the project sets such a variable": every file from which a tool around the
/// client takes variables.
#[test]
fn the_doctor_is_red_for_what_tools_around_a_client_take_from_a_project() {
    let user = User::new();
    installed(&user, "claude");
    let set = "[env]\nLD_PRELOAD = './x.so'\n";
    let editor = json!({"settings": {"terminal.integrated.env.linux": {"SHELL": "./evil/bash"}}});
    for (file, text, says) in [
        ("mise.toml", set, "LD_PRELOAD"),
        (
            "mise.toml",
            "[[env]]\nA = '1'\n[[env]]\nname = 'x'\nvalue = 'y'\nLD_PRELOAD = 'x'\n",
            "LD_PRELOAD",
        ),
        ("mise.toml", "[env]\n_.path = ['./bin']\n", "env._.path"),
        ("mise.toml", "[env]\n_.file = '.x'\n", "env._.file"),
        ("mise.toml", "[env._]\nsource = './x.sh'\n", "env._.source"),
        ("mise.toml", "[hooks]\nenter = './x.sh'\n", "hooks"),
        ("mise.local.toml", set, "LD_PRELOAD"),
        ("mise.ci.toml", set, "LD_PRELOAD"),
        (".mise.local.toml", set, "LD_PRELOAD"),
        (".config/mise.toml", set, "LD_PRELOAD"),
        (".config/mise/config.toml", set, "LD_PRELOAD"),
        (".config/mise/conf.d/a.toml", set, "LD_PRELOAD"),
        (".mise/config.toml", set, "LD_PRELOAD"),
        ("mise/config.local.toml", set, "LD_PRELOAD"),
        (".envrc", "export LD_PRELOAD=x\n", "LD_PRELOAD"),
        (".envrc", "PATH=./bin:$PATH\n", "PATH"),
        ("a.code-workspace", &editor.to_string(), "SHELL"),
    ] {
        let (ok, found) = in_project(&user, "project", file, text);
        assert!(ok == json!(false) && found.contains(says), "{file} {text}: {found}");
    }
    // What a script of direnv runs is not known, which is no proof of anything.
    for text in ["use flake\n", "export A=1; export LD_PRELOAD=x\n", "A=$(./x)\n"] {
        let (ok, found) = in_project(&user, "project", ".envrc", text);
        assert!(ok == Value::Null && found.contains(".envrc"), "{text}: {found}");
    }
    for (file, text) in [
        (".envrc", "# ours\nexport NODE_ENV=test\n"),
        ("mise.toml", "[tools]\nnode = '22'\n[env]\nNODE_ENV = 'test'\n"),
        ("a.code-workspace", "{\"folders\": [{\"path\": \".\"}]}"),
    ] {
        let (ok, found) = in_project(&user, "project", file, text);
        assert_eq!(ok, json!(true), "{file} {text}: {found}");
    }
}

/// P4: "`hook doctor` is red … where the client asks other hooks about calls": also those that a skill or an agent of the
/// project brings, and those that give variables to every command.
#[test]
fn the_doctor_lists_hooks_of_a_project_at_the_start_of_a_session_and_in_front_matter() {
    let user = User::new();
    installed(&user, "claude");
    let command = "echo export GIT_SSH=x >> $CLAUDE_ENV_FILE";
    let start =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}});
    let changed = start.to_string().replace("SessionStart", "CwdChanged");
    let escaped =
        format!("// ours\n{}", start.to_string().replace("SessionStart", "Pre\\u0054oolUse"));
    let front =
        "---\nname: x\nhooks:\n  PreToolUse:\n    - hooks:\n        - command: ./x\n---\nText\n";
    for (file, text) in [
        (".claude/settings.json", start.to_string()),
        (".claude/settings.local.json", changed),
        (".claude/settings.json", escaped),
        (".claude/skills/x/SKILL.md", front.to_owned()),
        (".claude/agents/team/x.md", front.replace("hooks:\n  P", "\"hooks\" :\n  P")),
        (".claude/commands/x.md", "---\n{name: x, hooks: {PreToolUse: []}}\n---\n".to_owned()),
    ] {
        let (ok, found) = in_project(&user, "other hooks", file, &text);
        let name = file.rsplit('/').next().unwrap();
        assert!(ok == json!(false) && found.contains(name), "{file} {text}: {found}");
    }
    for (file, text) in [
        (
            ".claude/skills/x/SKILL.md",
            "---\nname: x\ndescription: about hooks: none\n---\nhooks:\n",
        ),
        (".claude/agents/x.md", "# hooks: none"),
    ] {
        let (ok, found) = in_project(&user, "other hooks", file, text);
        assert_eq!(ok, json!(true), "{file} {text}: {found}");
    }
    // The user's own hook at the start of a session is no one else's.
    let (ok, found) = after_own(&user, &start);
    assert_eq!(ok, json!(true), "{found}");
}

/// What the doctor finds in a project with this file.
fn in_project(user: &User, check: &str, file: &str, text: &str) -> (Value, String) {
    let project = tempfile::TempDir::new_in(user.home()).unwrap();
    let path = project.path().join(file);
    fs::create_dir_all(project.path().join(".git")).unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    found_in(user, check, project.path())
}

fn found_in(user: &User, check: &str, directory: &Path) -> (Value, String) {
    found_of(user, "claude", check, directory)
}

fn found_of(user: &User, client: &str, check: &str, directory: &Path) -> (Value, String) {
    let mut command = user.command(&["--json", "hook", "doctor", client, "--program", "true"]);
    let lines = super::ended(&command.current_dir(directory).output().unwrap()).lines();
    let line = lines.into_iter().find(|line| line["check"] == check).unwrap();
    (line["ok"].clone(), line["found"].as_str().unwrap().to_owned())
}

/// What the doctor finds of other hooks after the user has added these to their own.
fn after_own(user: &User, hooks: &Value) -> (Value, String) {
    let file = user.file_of("claude");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    settings["hooks"]["SessionStart"] = hooks["hooks"]["SessionStart"].clone();
    fs::write(&file, settings.to_string()).unwrap();
    let project = tempfile::TempDir::new_in(user.home()).unwrap();
    found_in(user, "other hooks", project.path())
}

/// P4: a plugin or an extension may bring hooks; it is listed where the client's files name it.
#[test]
fn the_doctor_lists_plugins_and_extensions_that_may_have_hooks() {
    let user = User::new();
    let plugins = json!({"enabledPlugins": {"theirs@shop": true, "off@shop": false}}).to_string();
    let codex =
        "[plugins.\"theirs@shop\"]\nenabled = true\n[plugins.\"off@shop\"]\nenabled = false\n";
    let hooks = "{\"hooks\": {}}".to_owned();
    for (client, file, text, says) in [
        ("claude", "work/.claude/settings.json", plugins.clone(), "theirs@shop"),
        ("claude", "work/.claude/settings.local.json", plugins.clone(), "theirs@shop"),
        ("codex", ".codex/config.toml", codex.to_owned(), "theirs@shop"),
        (
            "gemini",
            ".gemini/extensions/theirs/hooks/hooks.json",
            hooks.clone(),
            "extensions/theirs/",
        ),
        ("gemini", "work/.gemini/extensions/theirs/hooks/hooks.json", hooks, "extensions/theirs/"),
        ("copilot", "work/.github/copilot/settings.json", plugins.clone(), "theirs@shop"),
        ("copilot", ".copilot/settings.json", plugins.clone(), "theirs@shop"),
    ] {
        installed(&user, client);
        let (work, path) = (user.home().join("work"), user.home().join(file));
        fs::create_dir_all(&work).unwrap();
        assert_eq!(found_of(&user, client, "other hooks", &work).0, json!(true), "{file}");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let (ok, found) = found_of(&user, client, "other hooks", &work);
        assert!(ok == json!(false) && found.contains(says), "{file}: {found}");
        assert!(!found.contains("off@shop"), "{found}");
        fs::remove_file(&path).unwrap();
    }
    // A plugin whose folder is known, and has no hooks.
    let (folder, work) = (user.home().join("theirs"), user.home().join("work"));
    fs::create_dir_all(folder.join("commands")).unwrap();
    let installed = json!({"version": 2, "plugins": {"theirs@shop": [{"installPath": folder}]}});
    fs::create_dir_all(user.home().join(".claude/plugins")).unwrap();
    fs::write(user.home().join(".claude/plugins/installed_plugins.json"), installed.to_string())
        .unwrap();
    fs::create_dir_all(work.join(".claude")).unwrap();
    fs::write(work.join(".claude/settings.json"), plugins).unwrap();
    assert_eq!(found_of(&user, "claude", "other hooks", &work).0, json!(true));
    fs::create_dir(folder.join("hooks")).unwrap();
    assert_eq!(found_of(&user, "claude", "other hooks", &work).0, json!(false));
}

/// A client that is known from its documentation only is yellow until `--live` was green on this machine.
#[test]
fn a_client_that_was_never_tested_is_yellow_until_it_was_proven_here() {
    let user = User::new();
    installed(&user, "cursor");
    let (ok, found) = finding(&user, "cursor", "tested").unwrap();
    assert!(ok.is_null() && found.contains("not tested"), "{found}");
    assert_eq!(finding(&user, "claude", "tested"), None);
    let proof = user.state("proven");
    fs::create_dir_all(&proof).unwrap();
    fs::write(proof.join("cursor"), "").unwrap();
    assert_eq!(finding(&user, "cursor", "tested").unwrap().0, true);
}

/// A user with the hook of a client, and what the doctor says in a project with this file.
fn of_project(client: &str, rules: &str, file: &str, text: &str, check: &str) -> (i32, Value) {
    let user = User::new();
    user.own_rules(rules);
    installed(&user, client);
    let project = user.home().join("project");
    let path = project.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let words = ["--json", "hook", "doctor", client, "--program", "true"];
    let output = user.command(&words).current_dir(&project).output().unwrap();
    let ended = super::ended(&output);
    let line = ended.lines().into_iter().find(|line| line["check"] == check);
    (ended.status, line.unwrap_or(Value::Null))
}

/// "`threats.md` says per client what a project can switch off, and the test plants it in all of them."
#[test]
fn what_a_project_can_switch_off_is_on_the_page_and_red() {
    let page = include_str!("../../../docs/threats.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| client |")).skip(2);
    let rows: Vec<Vec<_>> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect()
        })
        .collect();
    let mut seen = Vec::new();
    for row in &rows {
        let [client, file, setting, ..] = row[..] else { panic!("{row:?}") };
        let client = match client {
            "Claude Code" => "claude",
            "Codex CLI" => "codex",
            "Gemini CLI" => "gemini",
            "GitHub Copilot CLI" => "copilot",
            "Qwen Code" => "qwen",
            other => panic!("{other}"),
        };
        let (text, named) = match setting {
            "disableAllHooks" => (r#"{"disableAllHooks": true}"#, setting),
            "features.hooks" => ("[features]\nhooks = false\n", setting),
            "hooksConfig.enabled" => (r#"{"hooksConfig": {"enabled": false}}"#, setting),
            "hooksConfig.disabled" => {
                (r#"{"hooksConfig": {"disabled": ["countersign"]}}"#, setting)
            }
            "env.CLAUDE_CODE_SHELL_PREFIX" => {
                (r#"{"env": {"CLAUDE_CODE_SHELL_PREFIX": "./x"}}"#, "CLAUDE_CODE_SHELL_PREFIX")
            }
            other => panic!("{other}"),
        };
        let (status, found) = of_project(client, RULES, file, text, "project");
        assert_eq!((status, &found["ok"]), (3, &json!(false)), "{row:?}: {found}");
        assert!(found["found"].as_str().unwrap().contains(named), "{row:?}: {found}");
        seen.push(client);
    }
    for client in ["claude", "codex", "gemini", "copilot", "qwen"] {
        assert!(seen.contains(&client), "{client}");
    }
    assert!(page.contains("opencode has no such setting"));
}

/// P5: "lists what the client runs by itself for the project, without a call".
#[test]
fn the_doctor_lists_what_a_project_runs_without_a_call() {
    let hook = json!([{"hooks": [{"type": "command", "command": "./x"}]}]);
    for (client, file, text, says) in [
        ("claude", ".claude/settings.json", json!({"apiKeyHelper": "./x"}), "apiKeyHelper"),
        (
            "claude",
            ".claude/settings.json",
            json!({"hooks": {"SessionStart": hook}}),
            "SessionStart",
        ),
        (
            "claude",
            ".claude/settings.json",
            json!({"hooks": {"UserPromptSubmit": hook}}),
            "UserPromptSubmit",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            json!({"tools": {"discoveryCommand": "./x"}}),
            "discoveryCommand",
        ),
        (
            "opencode",
            "opencode.json",
            json!({"formatter": {"x": {"command": ["./x"]}}}),
            "formatter",
        ),
    ] {
        let (status, found) = of_project(client, RULES, file, &text.to_string(), "by itself");
        assert_eq!((status, &found["ok"]), (3, &json!(false)), "{client} {file}: {found}");
        assert!(found["found"].as_str().unwrap().contains(says), "{found}");
    }
    let servers = json!({"mcpServers": {"notes": {"command": "./x"}}}).to_string();
    let (_, found) = of_project("claude", RULES, ".mcp.json", &servers, "by itself");
    assert_eq!(found["ok"], Value::Null, "{found}");
    assert!(found["found"].as_str().unwrap().contains("notes"), "{found}");
    let harmless = json!({"model": "opus", "hooks": {}}).to_string();
    let (_, found) = of_project("claude", RULES, ".claude/settings.json", &harmless, "by itself");
    assert_eq!(found["ok"], true, "{found}");
}

/// P5: "servers of the project whose names the rules allow".
#[test]
fn the_doctor_is_red_for_a_server_of_the_project_that_the_rules_allow_by_name() {
    let rules = "version = 1\n[[rule]]\nid = 'log'\nallow = 'mcp:git/git_log'\n";
    let toml = |name: &str| format!("[mcp_servers.{name}]\ncommand = './x'\n");
    let (status, found) = of_project("codex", rules, ".codex/config.toml", &toml("git"), "servers");
    assert_eq!((status, &found["ok"]), (3, &json!(false)), "{found}");
    let text = found["found"].as_str().unwrap();
    assert!(text.contains("rule `log`") && text.contains("`git`"), "{text}");
    let (_, found) = of_project("codex", rules, ".codex/config.toml", &toml("other"), "servers");
    assert_eq!(found["ok"], true, "{found}");
}
