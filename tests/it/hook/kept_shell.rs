//! Clients that run all commands of a session in one shell, and do not tell the hook where that shell is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::{Decision, ToolMiddlewareExt as _, decide_fn};
use countersign_cli::hook::{Client, Hook};
use countersign_rules::Rules;
use countersign_shell::Preset;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A project with a folder in which `notes` is a link to a file outside.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("shop");
        fs::create_dir_all(root.join("docs/old")).unwrap();
        fs::write(root.join("notes"), "buy milk\n").unwrap();
        fs::write(root.with_file_name("password"), "hunter2\n").unwrap();
        std::os::unix::fs::symlink("../../password", root.join("docs/notes")).unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("shop")
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("state")
    }

    fn hook(&self, client: Client) -> Hook {
        let rules = Rules::builder().root(self.root()).home("/home/user").preset(Preset::Reader);
        Hook::new(client).layered(rules.load().unwrap().into_layer())
    }

    /// Returns the hook's answer to a command of a session; nothing if the command may run.
    fn said(hook: &Hook, payload: &Value) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = async { Ok(Ledger::new(MemoryStore::new())) };
        let payload = payload.to_string();
        let reply = runtime.block_on(hook.answer(payload.as_bytes(), Instant::now(), store));
        if reply.is_denial() { reply.stderr().to_owned() } else { String::new() }
    }

    fn copilot(&self, session: &str, command: &str) -> String {
        let hook = self.hook(Client::Copilot).noting_in(self.notes());
        Self::said(&hook, &of_copilot(&self.root(), session, command))
    }
}

fn of_copilot(directory: &Path, session: &str, command: &str) -> Value {
    json!({
        "hookName": "preToolUse", "sessionId": session, "cwd": directory, "toolName": "bash",
        "toolArgs": {"command": command, "description": "look"},
    })
}

/// P2: "Where a client runs the commands of a session in one shell, a command is judged in each directory in which an earlier
/// one may have left that shell, too."
#[test]
fn a_command_is_judged_where_an_earlier_one_may_have_left_the_shell() {
    let project = Project::new();
    assert_eq!(project.copilot("s1", "cat notes"), "");
    assert_eq!(project.copilot("s1", "cd docs && ls"), "");
    let asked = project.copilot("s1", "cat notes");
    let docs = project.root().join("docs");
    let reason = format!("an earlier command may have left the shell in `{}`", docs.display());
    assert!(asked.contains(&reason) && asked.contains("outside of the workspace"), "{asked}");

    let advised = format!("cd {} &&", project.root().display());
    assert!(asked.contains(&format!("begin with `{advised}`")), "{asked}");
    let elsewhere = format!("{advised} cat notes");
    assert_eq!(project.copilot("s1", &elsewhere), "", "the text says where it runs");
    for fails in ["! cd /none && cat notes", "! cd /none && true && cat notes"] {
        assert!(
            project.copilot("s1", fails).contains(&reason),
            "it runs although `cd` fails: {fails}"
        );
    }
    assert_eq!(project.copilot("s1", "ls && echo done"), "", "harmless in both");
    assert_eq!(project.copilot("s1", "(ls)"), "", "harmless in both");
    for (session, moves) in
        [("time", "time cd docs"), ("portable", "time -p cd docs"), ("command", "command cd docs")]
    {
        assert_eq!(project.copilot(session, moves), "");
        assert!(project.copilot(session, "cat notes").contains(&reason), "{moves}");
    }
    assert_eq!(project.copilot("s2", "cat notes"), "", "another session has another shell");
}

/// P2: "Where a client runs the commands of a session in one shell, a command is judged in each directory in which an earlier
/// one may have left that shell, too."
#[test]
fn directories_are_followed_from_command_to_command() {
    let project = Project::new();
    assert_eq!(project.copilot("s", "cd docs"), "");
    assert_eq!(project.copilot("s", "cd old"), "", "from `docs`, as there is no such folder here");
    assert!(project.copilot("s", "cat ../notes").contains("outside of the workspace"));
    assert_eq!(project.copilot("t", "(cd docs && ls)"), "");
    assert_eq!(project.copilot("t", "cat notes"), "", "a subshell leaves the shell where it was");
}

/// P2: "Where a client runs the commands of a session in one shell, a command is judged in each directory in which an earlier
/// one may have left that shell, too": also in one that the call has named.
#[test]
fn a_directory_that_a_call_names_may_be_that_of_the_shell() {
    let project = Project::new();
    let hook = project.hook(Client::Cursor).noting_in(project.notes());
    let said = |directory: &str, command: &str| {
        let payload = json!({
            "hook_event_name": "preToolUse", "conversation_id": "s", "workspace_roots": [project.root()],
            "cwd": project.root(), "tool_name": "Shell", "tool_use_id": "c",
            "tool_input": {"command": command, "working_directory": project.root().join(directory)},
        });
        Project::said(&hook, &payload)
    };
    assert_eq!(said("", "cat notes"), "");
    assert_eq!(said("docs", "ls"), "");
    assert_eq!(said("", "ls"), "");
    let payload = json!({
        "hook_event_name": "preToolUse", "conversation_id": "s", "workspace_roots": [project.root()],
        "cwd": project.root(), "tool_name": "Shell", "tool_use_id": "c", "tool_input": {"command": "cat notes"},
    });
    let asked = Project::said(&hook, &payload);
    assert!(asked.contains("may have left the shell"), "{asked}");
}

/// P2: "There, a command is asked about that an interactive shell may read in another way."
#[test]
fn a_command_that_an_interactive_shell_may_read_in_another_way_is_asked_about() {
    let project = Project::new();
    let (history, comment) = ("other words in the place of `!`", "may run what is behind `#`");
    for (command, reason) in [
        (r#"echo '"; rm -rf docs; echo "' "!#:1""#, history),
        (r#"echo "!echo""#, history),
        ("echo a!b", history),
        ("ls docs && echo !!", history),
        ("echo 'a\n!b'", history),
        (r"echo $'\'' '!b'", history),
        (r#"echo "it's !b""#, history),
        ("ls # ; rm -rf docs", comment),
        ("ls docs # list && rm -rf docs", comment),
        ("ls\n# `rm -rf docs`", comment),
        ("cat no\t", "may complete a name"),
    ] {
        let asked = project.copilot("s", command);
        assert!(asked.contains(reason), "{command}: {asked}");
    }
    for command in [
        r#"echo "done!""#,
        r#"grep -n 'a!b' "notes!""#,
        r"echo \!b",
        "[ ! -f x ] && test a != b && echo 'it!s'",
        "# what is there (now)\nls",
        "echo '# a; b' \"# a; b\" a#;ls",
    ] {
        assert_eq!(project.copilot("s", command), "", "{command}");
    }
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": project.root(), "tool_name": "Bash",
        "tool_use_id": "c", "tool_input": {"command": r#"echo "!echo" # ; make"#},
    });
    let hook = project.hook(Client::Claude);
    assert_eq!(Project::said(&hook, &payload), "", "Claude Code starts a shell for each command");
}

/// P2: "A question about a command in one of these directories is none about it in another."
#[test]
fn a_question_with_the_same_reason_is_one_for_each_directory() {
    let project = Project::new();
    for makefile in ["Makefile", "docs/Makefile"] {
        fs::write(project.root().join(makefile), "all:\n\trm -f x\n").unwrap();
    }
    let here = project.copilot("s", "make");
    assert!(here.contains("make") && !here.contains("and there"), "{here}");
    assert_eq!(project.copilot("s", "cd docs"), "");
    let both = project.copilot("s", "make");
    let docs = format!("left the shell in `{}`, and there:", project.root().join("docs").display());
    assert!(both.contains(&docs), "{both}");
}

/// P2: "A question about a command in one of these directories is none about it in another", and it is bound to the files there.
#[test]
fn an_approval_in_a_kept_shell_is_for_its_directory_and_its_files() {
    let project = Project::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ledger = Ledger::new(MemoryStore::new());
    let hook = project.hook(Client::Copilot).noting_in(project.notes());
    let said = |command: &str| {
        let store = async { Ok(ledger.clone()) };
        let payload = of_copilot(&project.root(), "s", command).to_string();
        let reply = runtime.block_on(hook.answer(payload.as_bytes(), Instant::now(), store));
        if reply.is_denial() { reply.stderr().to_owned() } else { String::new() }
    };
    let approve = || {
        runtime.block_on(async {
            let asked = ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0);
            let yes = Answer::Approve { args: None };
            ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", yes).await.unwrap();
        });
    };
    let script = project.root().join("docs/run.sh");
    fs::write(&script, "ls\n").unwrap();
    fs::write(project.root().join("run.sh"), "ls\n").unwrap();
    assert_eq!(said("cd docs"), "");
    assert!(said("sh run.sh").contains("waits for approval"));
    approve();
    fs::write(&script, "rm -rf old\n").unwrap();
    assert!(said("sh run.sh").contains("waits for approval"), "another script is another call");
    approve();
    assert_eq!(said("sh run.sh"), "", "the one that was approved");

    assert!(said("cat notes").contains("waits for approval"));
    approve();
    fs::rename(project.root().join("docs/notes"), project.root().join("docs/old/notes")).unwrap();
    fs::write(project.root().join("docs/notes"), "buy tea\n").unwrap();
    assert_eq!(said("cd docs/old"), "");
    assert!(said("cat notes").contains("waits for approval"), "another directory is another call");
}

/// P2: "An approved command is denied where another one has left the shell elsewhere meanwhile", and is asked about for that
/// directory, too. One that says where it runs is not.
#[test]
fn an_approved_command_does_not_run_where_it_was_not_judged() {
    let project = Project::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ledger = Ledger::new(MemoryStore::new());
    let hook = || project.hook(Client::Copilot).noting_in(project.notes());
    let told = runtime.block_on(async {
        let asked = hook();
        let payload = of_copilot(&project.root(), "s", "touch x.md; unknown-program y").to_string();
        let until = Instant::now() + std::time::Duration::from_secs(60);
        let answered = asked.answer(payload.as_bytes(), until, async { Ok(ledger.clone()) });
        let meanwhile = async {
            loop {
                let pending = ledger.list(Some(AskState::Pending), 1).await.unwrap().records;
                let Some(ask) = pending.first() else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let payload = of_copilot(&project.root(), "s", "cd docs").to_string();
                let other = hook();
                let store = async { Ok(ledger.clone()) };
                assert!(!other.answer(payload.as_bytes(), until, store).await.is_denial());
                let yes = Answer::Approve { args: None };
                ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await.unwrap();
                break;
            }
        };
        tokio::join!(answered, meanwhile).0.stderr().to_owned()
    });
    assert!(told.contains("may have left the shell in another directory"), "{told}");
    let states = runtime.block_on(ledger.list(None, 9)).unwrap().records;
    assert_eq!(states.iter().map(|it| it.state).collect::<Vec<_>>(), [AskState::Closed]);
    let payload = of_copilot(&project.root(), "s", "touch x.md; unknown-program y").to_string();
    let store = async { Ok(ledger.clone()) };
    let (again, asked) = (hook(), Instant::now());
    let told = runtime.block_on(again.answer(payload.as_bytes(), asked, store));
    assert!(told.stderr().contains("waits for approval"), "{}", told.stderr());
}

/// P2: "If such a command may have gone anywhere, a later one with relative paths is asked about": a folder that is there no more
/// has another name, and a word that is a folder is a `cd` to zsh.
#[test]
fn a_folder_with_another_name_is_a_directory_that_is_not_known() {
    let unknown = "in a directory that is not known";
    let project = Project::new();
    assert_eq!(project.copilot("s", "cd docs"), "");
    fs::rename(project.root().join("docs"), project.root().join("d2")).unwrap();
    assert!(project.copilot("s", "cat notes").contains(unknown));

    let all = Hook::new(Client::Vscode).layered(decide_fn(|_, _| Decision::allow()));
    let all = all.noting_in(project.notes());
    for (session, moves) in [("t", "chdir d2"), ("u", "d2"), ("v", "..")] {
        let project_of = |command: &str| {
            json!({
                "hook_event_name": "PreToolUse", "sessionId": session, "cwd": project.root(), "tool_use_id": "c",
                "tool_name": "run_in_terminal", "tool_input": {"command": command, "explanation": "go"},
            })
        };
        assert_eq!(Project::said(&all, &project_of(moves)), "");
        let hook = project.hook(Client::Vscode).noting_in(project.notes());
        let asked = Project::said(&hook, &project_of("cat notes"));
        assert!(asked.contains(unknown), "{moves}: {asked}");
    }
}

/// P2: "Where a client runs the commands of a session in one shell, a command is judged in each directory in which an earlier
/// one may have left that shell, too": also if the folder is made by a command that has not run yet.
#[test]
fn a_folder_that_is_made_later_is_judged_as_it_is_then() {
    let project = Project::new();
    let all = Hook::new(Client::Copilot).layered(decide_fn(|_, _| Decision::allow()));
    let all = all.noting_in(project.notes());
    let run = |session, command| {
        Project::said(&all, &of_copilot(&project.root(), session, command));
    };
    run("s", "mkdir new; cd new");
    let unknown = "in a directory that is not known";
    assert!(project.copilot("s", "cat notes").contains(unknown), "it is made right now");
    run("t", "cd new && ls");
    assert_eq!(
        project.copilot("t", "cat notes"),
        "",
        "that `cd` fails, if no command makes the folder"
    );

    fs::create_dir(project.root().join("new")).unwrap();
    std::os::unix::fs::symlink("../../password", project.root().join("new/notes")).unwrap();
    for session in ["s", "t"] {
        assert!(project.copilot(session, "cat notes").contains("outside of the workspace"));
    }
}

/// P2: "If such a command may have gone anywhere, a later one with relative paths is asked about."
#[test]
fn a_directory_that_is_not_known_is_none_of_the_workspace() {
    let project = Project::new();
    let all = Hook::new(Client::Copilot).layered(decide_fn(|_, _| Decision::allow()));
    let payload = of_copilot(&project.root(), "s", "cd \"$(cat notes)\"");
    assert_eq!(Project::said(&all.noting_in(project.notes()), &payload), "");

    let asked = project.copilot("s", "cat notes");
    assert!(
        asked.contains("in a directory that is not known: begin with `cd /the/directory &&`"),
        "{asked}"
    );
    let elsewhere = format!("cd {} && cat notes", project.root().display());
    assert_eq!(project.copilot("s", &elsewhere), "", "what the question advises");
}

/// P2: "Without a place to note that directory, a command that changes it is asked about."
#[test]
fn without_a_place_for_notes_a_command_that_moves_the_shell_is_asked_about() {
    let project = Project::new();
    let hook = project.hook(Client::Copilot);
    let payload = |command| of_copilot(&project.root(), "s", command);
    assert!(Project::said(&hook, &payload("cd docs && ls")).contains("cannot be noted"));
    assert_eq!(Project::said(&hook, &payload("(cd docs && ls); cat notes")), "");
}

/// P2: "A client that starts a shell for each command, or says where its shell is, is judged by its payload alone."
#[test]
fn a_client_that_starts_a_shell_for_each_command_is_judged_by_its_payload() {
    let project = Project::new();
    let hook = project.hook(Client::Codex).noting_in(project.notes());
    let payload = |command: &str| {
        json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": project.root(), "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": command},
        })
    };
    for command in ["cd docs && ls", "cat notes"] {
        assert_eq!(Project::said(&hook, &payload(command)), "");
    }
}
