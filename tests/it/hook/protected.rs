//! The names of the floor in the tools of each client: what only reads is silent, and what may write is never allowed.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use countersign::ToolMiddlewareExt as _;
use countersign::ledger::{Ledger, MemoryStore};
use countersign_cli::hook::{Client, Hook};
use countersign_rules::Rules;
use countersign_shell::SearchPath;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::clients::{ToldCall, forms};
use crate::support::one_row_of;

/// A project in which rules allow everything, so that only the floor speaks.
struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    notes: PathBuf,
    runtime: Runtime,
    hooks: Vec<(Client, Hook)>,
}

const EVERYTHING: &str = "version = 1\n[[rule]]\nid = 'all'\nallow = ['*', 'mcp:*/*']\n";

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("home/shop");
        for folder in ["src", "sub", ".git/hooks", ".claude", ".github/workflows", ".vscode"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("a.txt"), "x\n").unwrap();
        let rules = Rules::builder()
            .root(&root)
            .home(base.join("home"))
            .search_path(SearchPath::unchecked())
            .text("mine.toml", EVERYTHING)
            .load()
            .unwrap();
        let notes = base.join("notes");
        let hook = |client| Hook::new(client).layered(rules.clone().into_layer()).noting_in(&notes);
        let hooks = Client::ALL.into_iter().map(|client| (client, hook(client))).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { _dir: dir, root, notes, runtime, hooks }
    }

    /// The reasons against a call; nothing if it is allowed.
    fn said(&self, client: Client, tool: &str, args: Value, directory: &Path) -> Option<String> {
        let forms = forms(client.name());
        let directory = directory.display().to_string();
        let call = ToldCall { session: "s", directory: &directory, id: "c", tool, args };
        let payload = forms.payload(forms.text("before"), &call).to_string();
        let (_, hook) = self.hooks.iter().find(|(it, _)| *it == client).unwrap();
        let store = async { Ok(Ledger::new(MemoryStore::new())) };
        let until = Instant::now() + Duration::from_millis(1);
        let reply = self.runtime.block_on(hook.answer(payload.as_bytes(), until, store));
        // The next call is one of a session of its own.
        let _ = fs::remove_dir_all(&self.notes);
        reply.is_denial().then(|| reply.stderr().to_owned())
    }

    fn shell(&self, client: Client, command: &str, directory: &Path) -> Option<String> {
        let words = forms(client.name()).tool("shell").unwrap();
        self.said(client, words[0], json!({ words[1]: command }), directory)
    }
}

/// Every name of the floor, as a path below a project.
fn names() -> Vec<String> {
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/shell/src/protected.txt");
    let text = fs::read_to_string(list).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with(['#', '[']));
    let names = lines.flat_map(str::split_whitespace).filter(|name| !name.starts_with('/'));
    let names: Vec<_> = names.map(|it| it.replace("%20", " ").replace('*', "my")).collect();
    assert!(names.len() > 150, "{names:?}");
    names
}

/// Tools of each client that read, with PATH for the file, and DIR for its folder.
fn readers(client: Client) -> Vec<(&'static str, Value)> {
    let (path, dir) = (json!("PATH"), json!("DIR"));
    match client {
        Client::Claude => vec![
            ("Read", json!({"file_path": path, "limit": 20})),
            ("NotebookRead", json!({"notebook_path": path})),
            ("LS", json!({"path": path})),
            ("Grep", json!({"pattern": "x", "path": path, "output_mode": "content"})),
            ("Glob", json!({"pattern": "*.md", "path": dir})),
        ],
        Client::Codex => vec![("view_image", json!({"path": path}))],
        Client::Gemini => vec![
            ("read_file", json!({"file_path": path})),
            ("read_file", json!({"absolute_path": path})),
            ("list_directory", json!({"dir_path": path})),
            ("grep_search", json!({"pattern": "x", "dir_path": dir})),
            ("glob", json!({"pattern": "*.md", "dir_path": dir})),
        ],
        Client::Copilot => vec![
            ("view", json!({"path": path, "view_range": [1, 9]})),
            ("grep", json!({"pattern": "x", "path": path})),
            ("glob", json!({"pattern": "*.md", "path": dir})),
        ],
        Client::Opencode => vec![
            ("read", json!({"filePath": path})),
            ("list", json!({"path": path})),
            ("grep", json!({"pattern": "x", "path": path})),
            ("glob", json!({"pattern": "*.md", "path": dir})),
        ],
        Client::Qwen => vec![
            ("read_file", json!({"file_path": path})),
            ("list_directory", json!({"path": path})),
            ("grep_search", json!({"pattern": "x", "path": path})),
        ],
        Client::Cursor => vec![
            ("Read", json!({"file_path": path})),
            ("Grep", json!({"pattern": "x", "path": path})),
        ],
        Client::Vscode => vec![("read_file", json!({"filePath": path}))],
        other => panic!("{other} has no readers here"),
    }
}

/// Tools of each client that write, with PATH for the file.
fn writers(client: Client) -> Vec<(&'static str, Value)> {
    let (path, patch) = (json!("PATH"), "*** Begin Patch\n*** Add File: PATH\n+x\n*** End Patch\n");
    match client {
        Client::Claude => vec![
            ("Write", json!({"file_path": path, "content": "x"})),
            ("Edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})),
            ("NotebookEdit", json!({"notebook_path": path, "new_source": "x"})),
        ],
        Client::Codex => vec![("apply_patch", json!({"command": patch}))],
        Client::Gemini => vec![
            ("write_file", json!({"file_path": path, "content": "x"})),
            ("replace", json!({"file_path": path, "old_string": "x", "new_string": "y"})),
        ],
        Client::Copilot => vec![
            ("create", json!({"path": path, "file_text": "x"})),
            ("edit", json!({"path": path, "old_str": "x", "new_str": "y"})),
            ("apply_patch", json!({"input": patch})),
        ],
        Client::Opencode => vec![
            ("write", json!({"filePath": path, "content": "x"})),
            ("edit", json!({"filePath": path, "oldString": "x", "newString": "y"})),
            ("patch", json!({"patchText": patch})),
        ],
        Client::Qwen => vec![
            ("write_file", json!({"file_path": path, "content": "x"})),
            ("edit", json!({"file_path": path, "old_string": "x", "new_string": "y"})),
        ],
        Client::Cursor => vec![("Write", json!({"file_path": path, "content": "x"}))],
        Client::Vscode => vec![
            ("createFile", json!({"filePath": path, "content": "x"})),
            ("editFiles", json!({"filePath": path, "newString": "y"})),
        ],
        other => panic!("{other} has no writers here"),
    }
}

const READ_COMMANDS: &[&str] = &[
    "cat 'PATH'",
    "ls -la 'PATH'",
    "head -n 5 'PATH' 2>/dev/null",
    "grep -n x 'PATH'",
    "stat 'PATH' || echo none",
    "test -e 'PATH' && wc -l 'PATH'",
    "git check-ignore 'PATH'",
    "diff 'PATH' a.txt",
];

const WRITE_COMMANDS: &[&str] = &[
    "cp a.txt 'PATH'",
    "mv a.txt 'PATH'",
    "rm -f 'PATH'",
    "touch 'PATH'",
    "sed -i s/a/b/ 'PATH'",
    "cat a.txt > 'PATH'",
    "cat 'PATH' | tee 'PATH'",
    "no-such-program 'PATH'",
    "ln -s a.txt 'PATH'",
];

/// The arguments with a path, written from the root or relative to the directory of the call.
fn with(args: &Value, root: &Path, name: &str, is_absolute: bool) -> Value {
    let path = if is_absolute { root.join(name).display().to_string() } else { name.to_owned() };
    let folder = Path::new(&path).parent().map(|it| it.display().to_string()).unwrap_or_default();
    let folder = if folder.is_empty() { ".".to_owned() } else { folder };
    let text = args.to_string().replace("PATH", &path).replace("DIR", &folder);
    serde_json::from_str(&text).unwrap()
}

/// R5, "What only reads is silent": protected names × reading tools × clients × folders.
#[test]
fn what_only_reads_is_silent_about_every_protected_name() {
    let (world, mut asked, mut count) = (World::new(), Vec::new(), 0);
    for (number, name) in names().into_iter().enumerate().step_by(one_row_of()) {
        let folder = ["", "sub/", "sub/deeper/"][number % 3];
        let inner = ["", "/x"][number / 3 % 2];
        let name = format!("{folder}{name}{inner}");
        for client in Client::ALL {
            for (tool, args) in readers(client) {
                let args = with(&args, &world.root, &name, number % 2 == 0);
                count += 1;
                if let Some(why) = world.said(client, tool, args, &world.root) {
                    asked.push(format!("{client} {tool} {name}: {why}"));
                }
            }
            let commands = READ_COMMANDS.iter().skip(number % 4).step_by(4);
            for command in commands.map(|it| it.replace("PATH", &name)) {
                count += 1;
                if let Some(why) = world.shell(client, &command, &world.root) {
                    asked.push(format!("{client} {command}: {why}"));
                }
            }
        }
    }
    assert!(count > 1_000 && asked.is_empty(), "{} of {count}: {asked:#?}", asked.len());
}

/// The mirror of it over what writes: no name is written unasked.
#[test]
fn what_may_write_a_protected_name_is_never_allowed() {
    let (world, mut allowed, mut count) = (World::new(), Vec::new(), 0);
    for (number, name) in names().into_iter().enumerate().step_by(one_row_of()) {
        let folder = ["", "sub/", "sub/deeper/"][number % 3];
        let name = format!("{folder}{name}");
        for client in Client::ALL {
            for (tool, args) in writers(client) {
                let args = with(&args, &world.root, &name, number % 2 == 0);
                count += 1;
                if world.said(client, tool, args, &world.root).is_none() {
                    allowed.push(format!("{client} {tool} {name}"));
                }
            }
            let commands = WRITE_COMMANDS.iter().skip(number % 3).step_by(3);
            for command in commands.map(|it| it.replace("PATH", &name)) {
                count += 1;
                if world.shell(client, &command, &world.root).is_none() {
                    allowed.push(format!("{client} {command}"));
                }
            }
        }
    }
    assert!(count > 1_000 && allowed.is_empty(), "{} of {count}: {allowed:#?}", allowed.len());
}

/// R5: a directory is where names begin, and asked about only where a command does more than read there.
#[test]
fn a_protected_directory_is_asked_about_where_a_command_does_more_than_read() {
    let world = World::new();
    let folders = [".git", ".git/hooks", ".claude", ".github/workflows", ".vscode"];
    let clients_in = |folder| Client::ALL.map(|client| (folder, client));
    for (folder, client) in folders.into_iter().flat_map(clients_in).step_by(one_row_of()) {
        let there = world.root.join(folder);
        for command in ["ls -la", "cat x", "pwd", "git status", "grep -rn x .", "ls; cat y | wc -l"]
        {
            assert_eq!(world.shell(client, command, &there), None, "{client} {folder} {command}");
            let from = format!("cd {folder} && {command}");
            assert_eq!(world.shell(client, &from, &world.root), None, "{client} {from}");
        }
        for command in [
            "cargo test",
            "touch x",
            "tar xf a.tar",
            "no-such-program",
            "echo x > y",
            "make",
            "git clean -fd",
        ] {
            assert!(world.shell(client, command, &there).is_some(), "{client} {folder} {command}");
            let from = format!("cd {folder} && {command}");
            assert!(world.shell(client, &from, &world.root).is_some(), "{client} {from}");
        }
    }
    // Words for people beside a command are no files of its directory; the directory may be an argument.
    let workflows = world.root.join(".github/workflows");
    let args = json!({"command": "ls", "description": "List the files. All of them"});
    assert_eq!(world.said(Client::Claude, "Bash", args, &workflows), None);
    let args = |command: &str| json!({"command": command, "workdir": ".github/workflows"});
    assert_eq!(world.said(Client::Codex, "shell", args("ls"), &world.root), None);
    assert!(world.said(Client::Codex, "shell", args("touch x"), &world.root).is_some());
    // A file that is edited from there, and a map from names to contents.
    let edit =
        json!({"file_path": world.root.join("src/a.rs"), "old_string": "x", "new_string": "y"});
    assert_eq!(world.said(Client::Claude, "Edit", edit, &workflows), None);
    let edit = json!({"file_path": "ci.yml", "old_string": "x", "new_string": "y"});
    assert!(world.said(Client::Claude, "Edit", edit, &workflows).is_some());
    let imitation = forms("claude").tool("imitation").unwrap();
    for key in [".envrc", "sub/.envrc", ".mcp.json", "a/%2egit/config"] {
        let files = json!({ key: "x" });
        assert!(world.said(Client::Claude, imitation[0], files, &world.root).is_some(), "{key}");
    }
}
