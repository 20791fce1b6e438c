//! Fields beside the command: what else a shell tool carries to the shell.

use std::rc::Rc;

use countersign_cli::hook::Client;
use serde_json::{Value, json};

use super::desk::Desk;
use super::{Door, List, Policy, shell_of};

/// Commands that are allowed alone.
const COMMANDS: &[&str] =
    &["ls", "git status", "cat README.md", "cargo test", "grep -rn TODO src", "wc -l src/main.rs"];

const CLASSES: Policy = Policy::Text(
    "version = 1\n[[rule]]\nid = 'everyday'\nallow = ['shell', 'bash', 'run_shell_command', 'execute_command']\nwhere.command.is = ['read-only', 'project-build']\n",
);

/// What changes which program runs, as whom, where, with which input, or outside of which sandbox.
fn fields() -> Vec<(&'static str, Value)> {
    vec![
        ("env", json!({"LD_PRELOAD": "./x.so"})),
        ("env", json!({"PATH": "/tmp/x"})),
        ("env", json!(["BASH_ENV=./x"])),
        ("env", json!({"GIT_DIR": "vendor/x"})),
        ("environment", json!({"NODE_OPTIONS": "--require ./x.js"})),
        ("environment_variables", json!({"RUSTC_WRAPPER": "./x"})),
        ("envs", json!("A=1")),
        ("variables", json!({"PAGER": "./x"})),
        ("shell", json!("/tmp/x")),
        ("shell", json!(["python3", "-c"])),
        ("shell_path", json!("./x")),
        ("executable", json!("./x")),
        ("interpreter", json!("python3")),
        ("program", json!("./x")),
        ("bin", json!("./x")),
        ("args", json!(["; rm -rf src"])),
        ("args", json!(["-delete"])),
        ("argv", json!(["rm", "-rf", "src"])),
        ("arguments", json!("&& rm -rf src")),
        ("extra_args", json!(["--upload-pack=./x"])),
        ("options", json!({"shell": "./x"})),
        ("script", json!("rm -rf src")),
        ("script", json!("./x.sh")),
        ("code", json!("rm -rf src")),
        ("stdin", json!("rm -rf src")),
        ("input", json!("rm -rf src\n")),
        ("stdin_file", json!("../outside/notes.txt")),
        ("user", json!("root")),
        ("run_as", json!("root")),
        ("uid", json!(0)),
        ("group", json!("docker")),
        ("sudo", json!(true)),
        ("elevated", json!(true)),
        ("privileged", json!(true)),
        ("sandbox_permissions", json!("require_escalated")),
        ("sandbox", json!(false)),
        ("sandbox", json!("danger-full-access")),
        ("no_sandbox", json!(true)),
        ("with_escalated_permissions", json!(true)),
        ("dangerouslyDisableSandbox", json!(true)),
        ("dangerously_disable_sandbox", json!(true)),
        ("disableSandbox", json!("true")),
        ("network", json!("on")),
        ("additional_permissions", json!({"network": true})),
        ("host", json!("prod.example")),
        ("container", json!("db")),
        ("remote", json!("ssh://prod.example")),
        ("target", json!("prod")),
        ("dir_path", json!("/etc")),
        ("directory", json!("../outside")),
        ("working_dir", json!("../outside")),
        ("current_dir", json!("/")),
        ("cwd", json!("/etc")),
        ("workdir", json!("../outside")),
        ("working_directory", json!("link")),
        ("chdir", json!("..")),
        ("pwd", json!("../outside")),
        ("path", json!("../outside")),
        ("root", json!("/")),
        ("base_dir", json!("/etc")),
        ("output", json!("src/main.rs")),
        ("output_file", json!(".git/config")),
        ("log_file", json!("CLAUDE.md")),
        ("redirect", json!("> src/main.rs")),
        ("stdout", json!("src/main.rs")),
        ("commands", json!(["rm -rf src"])),
        ("cmd", json!("rm -rf src")),
        ("pre_command", json!("rm -rf src")),
        ("then", json!("rm -rf src")),
        ("on_exit", json!("rm -rf src")),
        ("prefix", json!("sudo")),
        ("wrapper", json!(["./x"])),
        ("Command", json!("rm -rf src")),
        ("command ", json!("rm -rf src")),
        ("command\u{0}", json!("rm -rf src")),
        ("x", json!(1)),
        ("", json!("rm -rf src")),
        ("mode", json!("unrestricted")),
        ("justification", json!(["x"])),
        ("approval", json!("never")),
        ("plugins", json!({"x": "./x.so"})),
        ("image", json!("evil/x")),
        ("mounts", json!(["/:/host"])),
        ("umask", json!("000")),
        ("nice", json!({"a": [null]})),
        ("files", json!({"src/main.rs": "x"})),
    ]
}

/// Commands that are no text, or more than one.
fn commands() -> Vec<Value> {
    vec![
        json!({"command": ["rm", "-rf", "src"]}),
        json!({"command": ["bash", "-lc", "rm -rf src"]}),
        json!({"command": ["ls", "; rm -rf src"]}),
        json!({"command": {"text": "rm -rf src"}}),
        json!({"command": ["ls", ["rm", "-rf", "src"]]}),
        json!({"command": null, "script": "rm -rf src"}),
        json!({"commands": ["ls", "rm -rf src"]}),
        json!({"command": "[\"rm\", \"-rf\", \"src\"]"}),
        json!({"command": [["ls"], ["rm"]]}),
        json!({"command": 5}),
        json!({"command": "ls", "commands": ["ls"]}),
        json!({}),
        json!({"cmd": "rm -rf src"}),
        json!({"command": [""]}),
        json!({"command": ["ls", 1]}),
    ]
}

fn with(command: &str, field: &str, name: &str, value: &Value) -> Value {
    let mut args = json!({ field: command });
    args[name] = value.clone();
    args
}

pub(super) fn rows(list: &mut List, desk: &Rc<Desk>) {
    list.on(desk);
    let tools = ["shell", "bash", "run_shell_command", "execute_command"];
    for policy in [Policy::Developer, CLASSES] {
        list.of(
            "fields: library",
            "the tool may hand the field to the shell, or obey it (rule R8)",
        );
        for (name, value) in fields() {
            let (command, tool) = (list.one(COMMANDS), list.one(&tools));
            list.at(Door::Library, policy).call(tool, with(command, "command", name, &value));
        }
        for args in commands() {
            let tool = list.one(&tools);
            list.at(Door::Library, policy).call(tool, args);
        }
        let two = [
            ("cwd", "workdir"),
            ("cwd", "dir_path"),
            ("workdir", "directory"),
            ("working_directory", "working_dir"),
        ];
        for (one, other) in two {
            let tool = list.one(&tools);
            list.call(tool, json!({"command": "git status", one: "src", other: "../outside"}));
            list.call(tool, json!({"command": "git status", one: "docs", other: "src"}));
        }
    }
    for client in Client::ALL {
        let door = Door::Hook(client);
        let (tool, field) = shell_of(door);
        list.of(
            "fields: hooks",
            "the client may hand the field to the shell, or obey it (rule R8)",
        );
        for (name, value) in fields() {
            // Codex has a reason for people.
            let is_its_own = client == Client::Codex && name == "justification";
            if name == field || is_its_own || list.dice.roll(100) < 40 {
                continue;
            }
            let (command, policy) =
                (list.one(COMMANDS), *list.one(&[&CLASSES, &Policy::Developer]));
            list.at(door, policy).call(tool, with(command, field, name, &value));
        }
    }
}

/// A directory of the project, a limit of time and a place in the background are daily work.
#[test]
fn fields_that_change_nothing_are_not_asked_about() {
    let desk = Desk::new();
    for args in [
        json!({"command": "ls"}),
        json!({"command": "ls", "timeout": 5}),
        json!({"command": "git status", "cwd": "src"}),
        json!({"command": "cargo test", "workdir": "."}),
        json!({"command": "ls", "working_directory": "docs", "timeout": 1000}),
    ] {
        assert!(desk.allows(Door::Library, Policy::Developer, "shell", &args), "{args}");
    }
    let described = json!({"command": "ls", "description": "Lists files", "timeout": 5000});
    assert!(desk.allows(Door::Hook(Client::Claude), Policy::Developer, "Bash", &described));
}
