//! The entries that earlier versions have written into the files of clients go on working.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{RULES, User, ended, in_environment_of};

/// The files in `tests/entries`, by client.
const ENTRIES: [(&str, &str); 5] = [
    ("claude", include_str!("../../../entries/claude.json")),
    ("codex", include_str!("../../../entries/codex.json")),
    ("gemini", include_str!("../../../entries/gemini.json")),
    ("copilot", include_str!("../../../entries/copilot.json")),
    ("opencode", include_str!("../../../entries/opencode.js")),
];

/// The command that a client runs before a call, by its entry.
fn command(entry: &str, home: &Path) -> Command {
    // The entries were written without quotes, and the program may be below a folder with a blank in its name.
    let program = home.join("countersign");
    if !program.exists() {
        std::os::unix::fs::symlink(crate::support::program("countersign"), &program).unwrap();
    }
    let words = "const [PROGRAM, ...OPTIONS] = ";
    let plugin = entry.lines().find_map(|line| line.strip_prefix(words));
    let entry = plugin.unwrap_or(entry).replace("PROGRAM", program.to_str().unwrap());
    let entry = entry.replace("HOME", home.to_str().unwrap());
    let mut command = Command::new("sh");
    if plugin.is_some() {
        let words: Vec<String> = serde_json::from_str(&entry).unwrap();
        command = Command::new(&words[0]);
        command.args(&words[1..]);
    } else {
        let entry: Value = serde_json::from_str(&entry).unwrap();
        let hooks = entry["hooks"].as_object().unwrap();
        let before = hooks.iter().find(|(event, _)| {
            event.to_lowercase().starts_with("pretool") || *event == "BeforeTool"
        });
        let text = text(before.unwrap().1).unwrap();
        command.args(["-c", &text]);
    }
    in_environment_of(&mut command, home);
    command.current_dir(home).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The text of the command somewhere in an entry.
fn text(entry: &Value) -> Option<String> {
    match entry {
        Value::Array(items) => items.iter().find_map(text),
        Value::Object(fields) => {
            let own = ["command", "bash"].iter().find_map(|name| fields.get(*name)?.as_str());
            own.map(str::to_owned).or_else(|| fields.values().find_map(text))
        }
        _ => None,
    }
}

fn started(user: &User, entry: &str, call: &Call<'_>) -> Child {
    let mut child = command(entry, user.home()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(call.before().to_string().as_bytes()).unwrap();
    child
}

#[test]
fn an_entry_that_an_earlier_version_has_written_allows_asks_and_denies() {
    for (client, entry) in ENTRIES {
        let user = User::new();
        user.own_rules(RULES);
        let call = |command: &'static str| Call { client, command, ..CALL };
        let answer =
            |call: &Call<'_>| ended(&started(&user, entry, call).wait_with_output().unwrap());
        assert_allowed(&answer(&call("make test")));
        assert_denied(client, &answer(&call("cat a.denied")), "not in this project");
        let asked = started(&user, entry, &call("cat a.asked"));
        let pending = user.pending_are(1);
        user.decide(&pending[0], &["--approve"]);
        assert_allowed(&ended(&asked.wait_with_output().unwrap()));
    }
}
