//! Rules, limits and grants, as the processes of a hook use them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{Ended, RULES, User, ended};
use crate::support::clients::{ToldCall, forms, some_clients};

impl User {
    /// The ask of the call, about which a file without rules asks.
    fn asked_for_want_of_rules(&self) -> Value {
        self.configure("");
        let rules = self.home().join(".config/countersign/rules.toml");
        std::fs::write(rules, "version = 1\n").unwrap();
        assert_denied("claude", &self.hook(&CALL, "0"), "waits for approval");
        self.pending_are(1).remove(0)
    }

    fn rules(&self, text: &str) -> PathBuf {
        let path = self.home().join("team.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn hook_under(&self, rules: &Path, call: &Call<'_>, limit: &str) -> Ended {
        let options = ["--rules", rules.to_str().unwrap()];
        let payload = call.before().to_string();
        let child = self.start_hook(call.client, limit, &options, payload.as_bytes());
        ended(&child.wait_with_output().unwrap())
    }
}

/// P2: the answer is in the form that the client obeys. Only the call that is asked about opens the store.
#[test]
fn a_file_of_rules_allows_asks_and_denies_for_every_client() {
    let user = User::new();
    let rules = user.rules(RULES);
    let run =
        |client, command, limit| user.hook_under(&rules, &Call { client, command, ..CALL }, limit);
    for client in some_clients(0) {
        let allowed = run(client, "touch a.txt", "20");
        assert_allowed(&allowed);
        let told = forms(client).answer("allowed", "").map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(allowed.out, told, "the client's own rules still count");
        assert_denied(client, &run(client, "touch a.denied", "20"), "not in this project");
    }
    assert!(!user.state("asks.db").exists(), "the store is opened only to ask");
    for client in ["codex", "gemini"] {
        assert_denied(client, &run(client, "touch a.asked", "0"), "asks first");
    }
    assert_eq!(user.pending().len(), 2);
}

/// R6: an approval is for the questions that were shown, by their rules; another reason asks no new question.
#[test]
fn an_approval_does_not_answer_the_question_of_another_rule() {
    let user = User::new();
    let rules = user.rules(RULES);
    let call = Call { command: "touch a.asked", ..CALL };
    let asked = || assert_denied("claude", &user.hook_under(&rules, &call, "0"), "waits for");
    asked();
    user.approve_pending();
    user.rules(&RULES.replace("**/*.asked", "*.asked"));
    asked();
    assert_eq!(user.pending().len(), 1, "another rule asks another question");
    user.rules(&RULES.replace("asks first", "asks before that"));
    assert_allowed(&user.hook_under(&rules, &call, "20"));
    asked();
}

/// D1: a rule that denies is stricter than an earlier approval.
#[test]
fn an_approved_call_is_denied_under_rules_that_deny_it() {
    let user = User::new();
    let rules = user.rules(RULES);
    let call = Call { command: "touch a.asked", ..CALL };
    assert_denied("claude", &user.hook_under(&rules, &call, "0"), "waits for approval");
    user.approve_pending();
    user.rules(&RULES.replace("*.denied", "*.asked"));
    assert_denied("claude", &user.hook_under(&rules, &call, "20"), "not in this project");
    user.rules("this is no file of rules");
    assert_denied("claude", &user.hook_under(&rules, &call, "20"), "team.toml");
}

/// R2: Claude Code runs its hooks where a command has changed to, and a path in a rule is one of the project all the
/// same.
#[test]
fn a_path_in_a_rule_is_of_the_project_wherever_a_command_has_changed_to() {
    let user = User::new();
    let project = user.home().join("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    let rules = user.rules(
        "version = 1\n[[rule]]\nid = 'open'\nallow = 'shell'\n\
         [[rule]]\nid = 'keys'\ndeny = 'shell'\nwhere.any_path = ['keys/**']\nreason = 'keys stay'\n",
    );
    for directory in ["", "sub"] {
        let directory = project.join(directory);
        let keys = project.join("keys/a").display().to_string();
        for command in [format!("cat '{keys}'"), format!("cd ..; cd project; cat '{keys}'")] {
            let call = Call { command: &command, directory: directory.to_str().unwrap(), ..CALL };
            let mut hook = user.command(&[
                "hook",
                "claude",
                "--limit",
                "20",
                "--rules",
                rules.to_str().unwrap(),
            ]);
            hook.current_dir(&directory).env("CLAUDE_PROJECT_DIR", &project);
            hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = hook.spawn().unwrap();
            child.stdin.take().unwrap().write_all(call.before().to_string().as_bytes()).unwrap();
            assert_denied("claude", &ended(&child.wait_with_output().unwrap()), "keys stay");
        }
    }
}

#[test]
fn a_limit_counts_over_the_processes_of_a_hook() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'few'\nallow = 'shell'\n\
                at_most = { calls = 2, within = '1h', else = 'deny' }\n";
    std::fs::write(rules, text).unwrap();
    for id in ["c1", "c2"] {
        assert_allowed(&user.hook(&Call { id, ..CALL }, "20"));
    }
    assert_denied("claude", &user.hook(&Call { id: "c3", ..CALL }, "20"), "at most 2 calls");
}

/// R7: "counts calls that reached the rule, once per call": a call that is made again after its approval is one call.
#[test]
fn a_limit_counts_a_call_that_is_made_again_once() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'few'\nask = 'shell'\n\
                at_most = { calls = 2, within = '1h', else = 'deny' }\n";
    std::fs::write(rules, text).unwrap();
    for id in ["c1", "c2"] {
        user.is_approved(&Call { id, ..CALL });
    }
    assert_denied("claude", &user.hook(&Call { id: "c3", ..CALL }, "20"), "at most 2 calls");
    assert!(user.pending().is_empty());
}

/// G1: a grant for the session answers later calls of the hook, each a process, and no other call.
#[test]
fn a_grant_answers_equal_calls_of_its_session() {
    let user = User::new();
    let ask = user.asked_for_want_of_rules();
    let text = |name: &str| ask[name].as_str().unwrap().to_owned();
    let (id, fingerprint) = (text("id"), text("fingerprint"));
    let make = ["grants", "make", &id, "--in", "session", "--as", "ann", "--fingerprint"];
    assert_eq!(user.run(&[&make[..], &["0"]].concat()).status, 6, "another fingerprint");
    let made = user.run(&[&make[..], &[&fingerprint, "--for", "2h", "--json"]].concat());
    assert_eq!(made.status, 0, "{made:?}");
    let grant = made.lines()[0]["id"].as_str().unwrap().to_owned();
    // The pending call stays with the people; the ones after it are answered.
    user.decide(&ask, &["--approve"]);
    for id in ["c1", "c2", "c3"] {
        assert_allowed(&user.hook(&Call { id, ..CALL }, "20"));
    }
    for other in [
        Call { session: "s2", ..CALL },
        Call { directory: "/src/other", ..CALL },
        Call { command: "make install2", ..CALL },
        Call { client: "codex", ..CALL },
    ] {
        assert_denied(other.client, &user.hook(&other, "0"), "waits for approval");
    }
    let revoked = user.run(&["grants", "revoke", &grant, "--as", "bob"]);
    assert_eq!(revoked.status, 0, "{revoked:?}");
    assert_denied("claude", &user.hook(&Call { id: "c4", ..CALL }, "0"), "waits for approval");
}

/// G2: a grant does not answer a call that a person has denied.
#[test]
fn a_grant_does_not_answer_a_call_that_was_denied() {
    let user = User::new();
    let ask = user.asked_for_want_of_rules();
    let text = |name: &str| ask[name].as_str().unwrap().to_owned();
    let make = ["grants", "make", &text("id"), "--in", "session", "--fingerprint"];
    assert_eq!(user.run(&[&make[..], &[&text("fingerprint")]].concat()).status, 0);
    user.decide(&ask, &["--deny", "not this one"]);
    assert_denied("claude", &user.hook(&CALL, "20"), "not this one");
    assert_denied("claude", &user.hook(&Call { id: "c2", ..CALL }, "0"), "waits for approval");
}

#[test]
fn a_call_that_a_person_denies_repeatedly_is_denied_without_asking() {
    let user = User::new();
    for n in 0..3 {
        let message = format!("no {n}");
        assert_denied("claude", &user.hook(&CALL, "0"), "waits for approval");
        user.decide(&user.pending_are(1)[0], &["--deny", &message]);
        assert_denied("claude", &user.hook(&CALL, "0"), &message);
    }
    assert_denied("claude", &user.hook(&CALL, "0"), "denied this call 3 times");
    assert!(user.pending().is_empty());
}

/// D11: "The next ask about such a call says when it was denied, and in which words", and not after a yes.
#[test]
fn a_call_that_a_person_has_denied_is_shown_with_the_time_and_the_words() {
    let user = User::new();
    let asked = |id: &'static str| {
        assert_denied("claude", &user.hook(&Call { id, ..CALL }, "0"), "waits for approval");
        user.pending_are(1).remove(0)
    };
    let first = asked("c1");
    assert_eq!(first["denied_before"], Value::Null);
    user.decide(&first, &["--deny", "not on a Friday"]);
    assert_denied("claude", &user.hook(&CALL, "0"), "not on a Friday");
    let second = asked("c2");
    let told = second["denied_before"].as_str().unwrap();
    assert!(told.starts_with("denied once before, at 20"), "{told}");
    assert!(told.ends_with(" UTC: not on a Friday"), "{told}");
    user.decide(&second, &["--approve"]);
    assert_allowed(&user.hook(&Call { id: "c3", ..CALL }, "5"));
    assert_eq!(asked("c4")["denied_before"], Value::Null);
}

/// D11: "Only a person's denials count, not those of a policy".
#[test]
fn a_call_that_a_policy_denies_is_asked_about_again() {
    let user = User::new();
    for _ in 0..4 {
        assert_denied("claude", &user.hook(&CALL, "0"), "waits for approval");
        let ask = user.pending_are(1).remove(0);
        let text = |name: &str| ask[name].as_str().unwrap();
        let decide = ["asks", "decide", text("id"), "--fingerprint", text("fingerprint")];
        let as_policy = ["--as", "policy: night", "--deny", "not at night"];
        assert_eq!(user.run(&[&decide[..], &as_policy].concat()).status, 0);
        assert_denied("claude", &user.hook(&CALL, "0"), "not at night");
    }
}

/// R5: "The floor is built in": a store, a configuration and a key that lie elsewhere are protected there.
#[test]
fn the_programs_own_files_are_protected_where_they_are() {
    let user = User::new();
    let rules = user.rules("version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n");
    let [store, key, config] =
        ["data/asks.db", "data/key", "data/config.toml"].map(|it| user.home().join(it));
    std::fs::create_dir(user.home().join("data")).unwrap();
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    std::fs::write(&config, format!("audit_key_file = '{}'\n", key.display())).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let hook = |place: &Path| {
        let command = format!("touch '{}'", place.display());
        let call = Call { command: &command, ..CALL };
        let options = [
            "--config",
            config.to_str().unwrap(),
            "--store",
            store.to_str().unwrap(),
            "--rules",
            rules.to_str().unwrap(),
        ];
        let payload = call.before().to_string();
        let child = user.start_hook("claude", "0", &options, payload.as_bytes());
        ended(&child.wait_with_output().unwrap())
    };
    let program = user.command(&[]).get_program().to_owned();
    for place in [&store, &store.with_extension("db-wal"), &key, &config, &rules, &program.into()] {
        assert_denied("claude", &hook(place), "waits for approval");
    }
    assert_allowed(&hook(&user.home().join("data/other")));
}

/// A project that is entered through a link: its paths are those of the project, however the client writes them.
#[cfg(unix)]
#[test]
fn paths_through_a_link_to_the_project_are_within_it() {
    let user = User::new();
    user.own_rules(
        "version = 1\n[[rule]]\nid = 'read'\nallow = 'read_file'\nwhere.path.within = '.'\n",
    );
    let (project, link) = (user.home().join("real/project"), user.home().join("link"));
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("src/a.rs"), "").unwrap();
    std::os::unix::fs::symlink(&project, &link).unwrap();
    for (client, path, is_allowed) in [
        ("claude", link.join("src/a.rs"), true),
        ("claude", project.join("src/a.rs"), true),
        ("claude", link.join("../a.rs"), false),
        ("claude", user.home().join("other"), false),
        ("gemini", link.join("src/a.rs"), true),
        ("gemini", link.join("src/../../a.rs"), false),
    ] {
        let event = if client == "claude" { "PreToolUse" } else { "BeforeTool" };
        let tool = if client == "claude" { "Read" } else { "read_file" };
        let payload = serde_json::json!({
            "hook_event_name": event, "session_id": "s", "cwd": link, "tool_use_id": "c", "tool_name": tool,
            "tool_input": {"file_path": path},
        });
        let mut command = user.command(&["hook", client, "--limit", "90", "--wait", "0"]);
        command.current_dir(&link).env("CLAUDE_PROJECT_DIR", &link);
        let ended = super::answered(command, &payload.to_string());
        assert_eq!(ended.status == 0, is_allowed, "{client} {}: {ended:?}", path.display());
    }
}

/// P2: "an allowance counts where each server that may be meant is in the user's own configuration of the client", also in
/// the clients whose names of tools could be split without it.
#[test]
fn a_server_that_a_project_brings_is_not_the_one_that_a_rule_allows() {
    for (client, own, project) in [
        ("claude", ".claude.json", ".mcp.json"),
        ("codex", ".codex/config.toml", ".codex/config.toml"),
        ("qwen", ".qwen/settings.json", ".qwen/settings.json"),
    ] {
        let user = User::new();
        let work = user.home().join("work");
        std::fs::create_dir_all(work.join("sub/.git")).unwrap();
        let rules = user.rules("version = 2\n[[rule]]\nid = 'git'\nallow = 'mcp:git/git_status'\n");
        let run_in = |directory: &Path, tool: &str| {
            let told = ToldCall {
                session: "s",
                directory: directory.to_str().unwrap(),
                id: "c",
                tool,
                args: serde_json::json!({}),
            };
            let payload = forms(client).payload("PreToolUse", &told).to_string();
            let options = ["--rules", rules.to_str().unwrap(), "--root", work.to_str().unwrap()];
            let child = user.start_hook(client, "0", &options, payload.as_bytes());
            ended(&child.wait_with_output().unwrap())
        };
        let run = || run_in(&work, "mcp__git__git_status");
        let text = |command: &str| match own.ends_with(".toml") {
            true => format!("[mcp_servers.git]\ncommand = '{command}'\n"),
            false => serde_json::json!({"mcpServers": {"git": {"command": command}}}).to_string(),
        };
        let write = |file: &Path, text: &str| {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        // No file of the user has the server, and then one of the project alone.
        assert_denied(client, &run(), "no rule allows");
        write(&work.join(project), &text("mcp-git"));
        assert_denied(client, &run(), "the project configures");
        // The user has it, and the project has the same one.
        write(&user.home().join(own), &text("mcp-git"));
        assert_allowed(&run());
        assert_denied(client, &run_in(&work, "mcp__git__git_push"), "no rule allows");
        // The project has another one of this name: it is the project's, wherever a command has changed to.
        write(&work.join(project), &text("./evil"));
        assert_denied(client, &run(), "the project configures");
        let elsewhere = run_in(&work.join("sub"), "mcp__git__git_status");
        assert_denied(client, &elsewhere, "the project configures");
        std::fs::remove_file(work.join(project)).unwrap();
        assert_allowed(&run());
        // A file that cannot be read names no server.
        write(&work.join(project), "{");
        assert_denied(client, &run(), "no rule allows");
        // So does a link to a device, which a repository may hold, and which has no end.
        #[cfg(unix)]
        {
            std::fs::remove_file(work.join(project)).unwrap();
            std::os::unix::fs::symlink("/dev/zero", work.join(project)).unwrap();
            assert_denied(client, &run(), "no rule allows");
        }
    }
    // Claude Code keeps the servers of a user for one project in the same file.
    let user = User::new();
    let rules = user.rules("version = 2\n[[rule]]\nid = 'git'\nallow = 'mcp:git/git_status'\n");
    let local =
        serde_json::json!({"projects": {"/src": {"mcpServers": {"git": {"command": "x"}}}}});
    std::fs::write(user.home().join(".claude.json"), local.to_string()).unwrap();
    let told = ToldCall {
        session: "s",
        directory: user.home().to_str().unwrap(),
        id: "c",
        tool: "mcp__git__git_status",
        args: serde_json::json!({}),
    };
    let payload = forms("claude").payload("PreToolUse", &told).to_string();
    let child =
        user.start_hook("claude", "0", &["--rules", rules.to_str().unwrap()], payload.as_bytes());
    assert_allowed(&ended(&child.wait_with_output().unwrap()));
}

/// P2: rules about tools of MCP servers speak for a client whose configuration names the server, and a rule that names a
/// tool of the client allows it.
#[test]
fn rules_name_the_tools_of_configured_servers_and_of_the_client() {
    let user = User::new();
    let work = user.home().join("work");
    std::fs::create_dir(&work).unwrap();
    let rules = user.rules(
        "version = 1\n[[rule]]\nid = 'git'\nallow = 'mcp:git/git_status'\n[[rule]]\nid = 'skill'\nallow = 'opencode:skill'\n",
    );
    let run = |tool: &str| {
        let payload = forms("opencode").payload(
            "tool.execute.before",
            &ToldCall {
                session: "s",
                directory: work.to_str().unwrap(),
                id: "c",
                tool,
                args: serde_json::json!({"name": "x"}),
            },
        );
        let options = ["--rules", rules.to_str().unwrap()];
        let child = user.start_hook("opencode", "0", &options, payload.to_string().as_bytes());
        ended(&child.wait_with_output().unwrap())
    };
    assert_allowed(&run("skill"));
    assert_denied("opencode", &run("git_git_status"), "no rule allows `opencode:git_git_status`");
    let config = r#"{"mcp": {"git": {"type": "local", "command": ["mcp-git"]}}, /* mine */}"#;
    // The project's files say what its server is, so that a rule of the user does not allow its tools.
    std::fs::write(work.join("opencode.jsonc"), config).unwrap();
    assert_denied("opencode", &run("git_git_status"), "the project configures");
    let own = user.home().join(".config/opencode");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("opencode.jsonc"), config).unwrap();
    assert_allowed(&run("git_git_status"));
    assert_denied("opencode", &run("git_git_push"), "no rule allows");
    std::fs::write(work.join("opencode.jsonc"), config.replace("mcp-git", "./evil")).unwrap();
    assert_denied("opencode", &run("git_git_status"), "the project configures");
    // A file that cannot be read names no server.
    std::fs::write(work.join("opencode.json"), "{").unwrap();
    assert_denied("opencode", &run("git_git_status"), "no rule allows");
}
