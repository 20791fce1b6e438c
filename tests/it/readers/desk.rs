//! A project in a home directory, on disk, with a repository, links, folders of builds and secrets; and the doors to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use countersign::ToolMiddlewareExt as _;
use countersign::ledger::{Ledger, MemoryStore};
use countersign_cli::hook::{Client, Hook};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::{Preset, SearchPath};
use serde_json::{Value, json};

use crate::support::clients::{ToldCall, forms};

use super::{Door, Policy};

/// Files that the repository tracks.
const TRACKED: &[&str] = &[
    "README.md",
    "LICENSE",
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "tsconfig.json",
    "Makefile",
    "notes.txt",
    "src/main.rs",
    "src/lib.rs",
    "src/index.js",
    "src/app.ts",
    "src/app.py",
    "src/site.css",
    "src/a.scss",
    "src/x.c",
    "src/x.h",
    "src/page.html",
    "src/logo.svg",
    "docs/index.md",
    "docs/guide/start.md",
    "docs/conf.py",
    "docs/data.json",
    "tests/test_app.py",
    "assets/photo.jpg",
    "config/app.yaml",
    "public/index.html",
    "lib/util.js",
    "app/page.tsx",
    "build/keep/settings.json",
];

/// Files that it does not track.
const UNTRACKED: &[&str] = &[
    "ignored.db",
    "scratch.txt",
    "dist/app.js",
    "target/debug/app",
    "x.mjs",
    "code.txt",
    ".env",
    "secrets/key.txt",
];

/// Programs that the project has installed.
const INSTALLED: &[&str] = &[
    "tsc",
    "eslint",
    "prettier",
    "jest",
    "vite",
    "vitest",
    "lessc",
    "esbuild",
    "tsx",
    "tailwindcss",
];

pub(crate) struct Desk {
    _dir: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) home: PathBuf,
    rules: RefCell<HashMap<Policy, Rules>>,
    hooks: RefCell<HashMap<(Client, Policy), Hook>>,
    runtime: tokio::runtime::Runtime,
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn git(root: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Desk {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (home, root) = (base.join("home/ann"), base.join("home/ann/shop"));
        for name in TRACKED.iter().chain(UNTRACKED) {
            write(&root.join(name), "x\n");
        }
        write(&root.join(".gitignore"), "ignored.db\ndist\ntarget\n.env\n");
        write(&base.join("home/ann/outside/notes.txt"), "x\n");
        for name in INSTALLED {
            let path = root.join("node_modules/.bin").join(name);
            write(&path, "#!/usr/bin/env node\n");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        git(&root, &["init", "-q"]);
        let tracked = [&["add", "-f", "--", ".gitignore"][..], TRACKED].concat();
        git(&root, &tracked);
        std::os::unix::fs::symlink("src", root.join("out")).unwrap();
        std::os::unix::fs::symlink("../outside", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../../outside/notes.txt", root.join("src/linked.txt")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (rules, hooks) = (RefCell::default(), RefCell::default());
        Self { _dir: dir, root, home, rules, hooks, runtime }
    }

    /// The same with other lines in the repository's own configuration, and other files.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let desk = Self::new();
        for (name, text) in files {
            let path = desk.root.join(name);
            let before = match *name {
                ".git/config" => std::fs::read_to_string(&path).unwrap(),
                _ => String::new(),
            };
            write(&path, &(before + text));
        }
        desk
    }

    fn load(&self, policy: Policy) -> Rules {
        let builder =
            Rules::builder().root(&self.root).home(&self.home).search_path(SearchPath::unchecked());
        let builder = match policy {
            Policy::Developer => builder.preset(Preset::Developer),
            Policy::Reader => builder.preset(Preset::Reader),
            Policy::Text(text) => builder.text("mine.toml", text),
        };
        builder.load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns `true` if the call runs without a question.
    pub(super) fn allows(&self, door: Door, policy: Policy, tool: &str, args: &Value) -> bool {
        let Value::Object(map) = args else { panic!("{args} is no object") };
        let client = match door {
            Door::Hook(client) => client,
            Door::Library | Door::Guard => {
                let mut rules = self.rules.borrow_mut();
                let rules = rules.entry(policy).or_insert_with(|| self.load(policy));
                let call = match door {
                    Door::Guard if !tool.starts_with("mcp:") => {
                        RuleCall::new(tool, map).server("fs")
                    }
                    _ => RuleCall::named(tool, map),
                };
                return rules.decide(&call).decision().is_allow();
            }
        };
        let mut hooks = self.hooks.borrow_mut();
        let hook = hooks
            .entry((client, policy))
            .or_insert_with(|| Hook::new(client).layered(self.load(policy).into_layer()));
        let payload = self.payload(client, tool, args).to_string();
        let store = async { Ok(Ledger::new(MemoryStore::new())) };
        let reply = self.runtime.block_on(hook.answer(payload.as_bytes(), Instant::now(), store));
        !reply.is_denial()
    }

    fn payload(&self, client: Client, tool: &str, args: &Value) -> Value {
        let forms = forms(client.name());
        let (directory, args) = (self.root.to_str().unwrap(), args.clone());
        let call = ToldCall { session: "s", directory, id: "c", tool, args };
        let mut payload = forms.payload(forms.text("before"), &call);
        let server = tool.strip_prefix("mcp_").and_then(|it| it.split_once('_'));
        if let Some((server, tool)) = server.filter(|_| client == Client::Gemini) {
            payload["mcp_context"] =
                json!({"server_name": server, "tool_name": tool, "command": "x"});
        }
        payload
    }
}
