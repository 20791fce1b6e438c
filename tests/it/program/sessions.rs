//! `countersign rules replay --sessions`: what rules would have asked about in sessions of the past.

use std::path::Path;

use countersign::ledger::date_and_time;
use serde_json::{Value, json};

use super::User;

/// A time so many days ago, as agents write it.
fn days_ago(days: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = i64::try_from(now.as_millis()).unwrap() - i64::try_from(days).unwrap() * 86_400_000;
    let (date, time) = date_and_time(at).unwrap();
    format!("{date}T{time}.000Z")
}

fn write(file: &Path, lines: &[Value]) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(file, lines.join("\n") + "\nnot json\n").unwrap();
}

/// A user with a session of each agent, in a repository of theirs.
fn with_sessions() -> User {
    let user = User::new();
    let shop = user.home().join("shop");
    std::fs::create_dir_all(shop.join("docs")).unwrap();
    std::fs::write(shop.join("docs/a.md"), "x").unwrap();
    let used = |id: &str, days: u64, tool: &str, input: Value| {
        json!({
            "type": "assistant", "sessionId": "s1", "cwd": shop, "timestamp": days_ago(days),
            "message": {"content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": id, "name": tool, "input": input}]},
        })
    };
    let bash =
        |id: &str, days: u64, command: &str| used(id, days, "Bash", json!({"command": command}));
    let lines = [
        bash("t0", 40, "git push"),
        json!({"type": "user", "sessionId": "s1", "cwd": shop, "timestamp": days_ago(1), "message": {"content": "hello"}}),
        used("t1", 1, "Read", json!({"file_path": shop.join("docs/a.md")})),
        bash("t2", 1, "git status"),
        bash("t3", 1, "git commit -m one"),
        bash("t4", 1, "git commit -m two"),
        bash("t5", 1, "git push"),
    ];
    write(&user.home().join(".claude/projects/-shop/s1.jsonl"), &lines);
    // A session that was resumed has its earlier calls in two files.
    write(&user.home().join(".claude/projects/-shop/s2.jsonl"), &lines[3..5]);
    let item = |payload: Value| json!({"timestamp": days_ago(2), "type": "response_item", "payload": payload});
    let arguments = |value: Value| value.to_string();
    write(
        &user.home().join(".codex/sessions/2026/11/02/rollout-1.jsonl"),
        &[
            json!({"timestamp": days_ago(2), "type": "session_meta", "payload": {"id": "c1", "cwd": shop}}),
            item(json!({"type": "function_call", "name": "shell", "call_id": "1",
                "arguments": arguments(json!({"command": ["bash", "-lc", "ls docs"]}))})),
            item(json!({"type": "function_call", "name": "exec_command", "call_id": "2",
                "arguments": arguments(json!({"cmd": "rm docs/a.md", "workdir": shop}))})),
            item(
                json!({"type": "function_call", "name": "write_stdin", "call_id": "3", "arguments": "{}"}),
            ),
            item(json!({"type": "message", "content": []})),
        ],
    );
    user
}

#[test]
fn the_sessions_of_the_last_days_are_counted_by_cause() {
    let user = with_sessions();
    let before = |folder: &str| std::fs::read_dir(user.home().join(folder)).unwrap().count();
    let files = before(".");
    let said = user.run(&["rules", "replay", "--sessions"]);
    assert_eq!(said.status, 0, "{said:?}");
    for line in [
        "in your last 30 days (2 sessions, 7 calls) this would have asked 4 times, 57.1 per 100 calls, and denied 0 calls",
        "with each answer remembered for its session: 3 times, 42.9 per 100 calls",
        "    2  `git` changes the repository or files",
        "Bash git commit -m two (remembered)",
        "Bash rm docs/a.md",
        "nothing of this was stored or run",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    assert!(!said.out.contains("git status"), "{}", said.out);
    assert_eq!(before("."), files, "nothing is stored");
    assert!(!user.state("asks.db").exists());

    let json = user.run(&["--json", "rules", "replay", "--sessions", "--days", "50"]);
    let line: Value = serde_json::from_str(json.out.trim()).unwrap();
    assert_eq!((&line["calls"], &line["asked"]), (&json!(8), &json!(5)));
    assert_eq!(line["questions"][0]["args"]["command"], "git push");
    let reader = user.run(&["--json", "rules", "replay", "--sessions", "--preset", "reader"]);
    let line: Value = serde_json::from_str(reader.out.trim()).unwrap();
    assert_eq!((&line["calls"], &line["denied"]), (&json!(7), &json!(0)), "{line}");
}

#[test]
fn without_sessions_the_command_says_where_it_looked() {
    let said = User::new().run(&["rules", "replay", "--sessions"]);
    assert!(said.status == 0 && said.out.contains("~/.claude/projects"), "{said:?}");
    let both = User::new().run(&["rules", "replay", "journal", "--sessions"]);
    assert_eq!(both.status, 2, "{both:?}");
}
