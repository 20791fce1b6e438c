//! Working trees of the project's repository: which folders are one, and what counts there (rule R5).
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use countersign::decision::ToolDecision::{self, Allow, Ask, Deny};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::SearchPath;
use serde_json::{Value, json};

use super::args;

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    root: PathBuf,
}

const RULES: &str = r#"
version = 1
[[rule]]
id = "everyday"
allow = "shell"
where.command.is = ["read-only", "project-build", "writes"]
[[rule]]
id = "edits"
allow = ["read_file", "search_files", "write_file", "edit_file"]
where.any_path.within = "."
[[rule]]
id = "vault"
deny = ["read_file", "edit_file", "shell"]
where.any_path = "vault/**"
"#;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        let root = home.join("shop");
        write(&root.join(".git/HEAD"), "ref: refs/heads/main\n");
        write(&root.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n");
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        fs::create_dir_all(root.join(".git/refs")).unwrap();
        write(&root.join("Cargo.toml"), "[package]\nname = \"x\"\n");
        Self { _dir: dir, home, root }
    }

    /// Makes the files that `git worktree add` makes.
    fn add(&self, name: &str, tree: &Path) {
        let own = self.root.join(".git/worktrees").join(name);
        write(&own.join("gitdir"), &format!("{}/.git\n", tree.display()));
        write(&own.join("commondir"), "../..\n");
        write(&own.join("HEAD"), "ref: refs/heads/x\n");
        write(&tree.join(".git"), &format!("gitdir: {}\n", own.display()));
        write(&tree.join("Cargo.toml"), "[package]\nname = \"x\"\n");
        write(&tree.join("src/lib.rs"), "x\n");
    }

    fn rules(&self) -> Rules {
        Rules::builder()
            .root(&self.root)
            .home(&self.home)
            .search_path(SearchPath::unchecked())
            .text("mine.toml", RULES)
            .load()
            .unwrap()
    }

    /// The decision about a call of a tool of Claude Code in a directory.
    fn call(&self, tool: &str, given: Value, directory: &Path) -> ToolDecision {
        let given = args(given);
        let call = RuleCall::new(tool, &given).toolset("claude").directory(directory);
        self.rules().decide(&call).decision()
    }

    fn run(&self, command: &str, directory: &Path) -> ToolDecision {
        let directory_text = directory.display().to_string();
        self.call("shell", json!({"command": command, "workdir": directory_text}), directory)
    }

    fn reads(&self, path: &Path) -> ToolDecision {
        self.call("read_file", json!({"path": path.display().to_string()}), &self.root)
    }

    fn edits(&self, path: &Path) -> ToolDecision {
        let given =
            json!({"path": path.display().to_string(), "old_string": "x", "new_string": "y"});
        self.call("edit_file", given, &self.root)
    }
}

/// R5: a working tree below the root is as the root is.
#[test]
fn a_working_tree_below_the_root_is_worked_in_as_the_root() {
    let world = World::new();
    let own = world.root.join(".claude/worktrees/fix-1");
    world.add("fix-1", &own);
    for tree in [&world.root, &own] {
        for command in ["ls -la", "cat src/lib.rs", "git status", "git log --oneline", "cargo test"]
        {
            assert_eq!(world.run(command, tree), Allow, "{command} in {}", tree.display());
        }
        assert_eq!(world.reads(&tree.join("src/lib.rs")), Allow);
        assert_eq!(world.edits(&tree.join("src/lib.rs")), Allow);
        // Its protected places are protected, and what a rule says about a folder of the project holds in it.
        for name in
            [".git", ".claude/settings.json", ".github/ci.yml", "CLAUDE.md", ".env", ".git/config"]
        {
            assert_eq!(world.edits(&tree.join(name)), Ask, "{name} of {}", tree.display());
            assert_eq!(world.run(&format!("cp src/lib.rs {name}"), tree), Ask, "{name}");
        }
        assert_eq!(world.reads(&tree.join("vault/key.txt")), Deny, "{}", tree.display());
        assert_eq!(world.run("cat vault/key.txt", tree), Deny, "{}", tree.display());
        write(&tree.join("vault/key.txt"), "x\n");
        assert_eq!(world.run("grep -r x .", tree), Ask, "{}", tree.display());
        fs::remove_dir_all(tree.join("vault")).unwrap();
        assert_eq!(world.run("grep -r x .", tree), Allow, "{}", tree.display());
    }
    assert_eq!(world.run("git -C .claude/worktrees/fix-1 status", &world.root), Allow);
    assert_eq!(world.run("cd .claude/worktrees/fix-1 && cargo test", &world.root), Allow);
    // The folders around it, and other ones beside it.
    let claude = world.root.join(".claude");
    for name in [
        "settings.json",
        "worktrees/x",
        "worktrees/fix-1/../../settings.json",
        "worktrees/other/a.rs",
    ] {
        assert_eq!(world.edits(&claude.join(name)), Ask, "{name}");
        assert_eq!(world.run(&format!("touch .claude/{name}"), &world.root), Ask, "{name}");
    }
    symlink(&claude, own.join("src/up")).unwrap();
    assert_eq!(world.edits(&own.join("src/up/settings.json")), Ask);
    assert_eq!(world.run("touch src/up/settings.json", &own), Ask);
}

/// R5: one outside of the root is read as the workspace is, and not written.
#[test]
fn a_working_tree_outside_of_the_root_is_read_and_not_written() {
    let world = World::new();
    let beside = world.home.join("shop-fix");
    world.add("shop-fix", &beside);
    for command in ["ls -la", "cat src/lib.rs", "git status"] {
        assert_eq!(
            world.run(&format!("cd ../shop-fix && {command}"), &world.root),
            Allow,
            "{command}"
        );
    }
    assert_eq!(world.run("cat ../shop-fix/src/lib.rs", &world.root), Allow);
    assert_eq!(world.run("git -C ../shop-fix log", &world.root), Allow);
    assert_eq!(world.reads(&beside.join("src/lib.rs")), Allow);
    for command in ["cargo test", "touch src/new.rs", "rm src/lib.rs"] {
        assert_eq!(
            world.run(&format!("cd ../shop-fix && {command}"), &world.root),
            Ask,
            "{command}"
        );
    }
    assert_eq!(world.run("cat src/lib.rs > ../shop-fix/src/lib.rs", &world.root), Ask);
    assert_eq!(world.edits(&beside.join("src/lib.rs")), Ask);
    assert_eq!(world.run("cat ../shop-fix/.env", &world.root), Ask);
    assert_eq!(world.reads(&beside.join("vault/key.txt")), Deny);
    // A session in it has it for its root.
    assert_eq!(world.run("ls ../another", &world.root), Allow, "listing is allowed everywhere");
    assert_eq!(world.run("cat ../another/x", &world.root), Ask);
}

/// R5: both ends have to say so, neither by a link, and no folder with more than a project is one.
#[test]
fn a_folder_that_only_says_that_it_is_a_working_tree_is_none() {
    let own = |world: &World| world.root.join(".claude/worktrees/fix-1");
    type Spoil = fn(&World, &Path);
    let spoil: [(&str, Spoil); 9] = [
        ("no `.git`", |_, tree| fs::remove_file(tree.join(".git")).unwrap()),
        ("`.git` is a folder", |_, tree| {
            fs::remove_file(tree.join(".git")).unwrap();
            write(&tree.join(".git/HEAD"), "ref: x");
        }),
        ("`.git` is a link", |world, tree| {
            let other = world.root.join("pointer");
            fs::rename(tree.join(".git"), &other).unwrap();
            symlink(&other, tree.join(".git")).unwrap();
        }),
        ("it leads to another place", |world, tree| {
            let evil = world.root.join("evil");
            write(&evil.join("gitdir"), &format!("{}/.git\n", tree.display()));
            write(&tree.join(".git"), &format!("gitdir: {}\n", evil.display()));
        }),
        ("it leads to another name", |world, tree| {
            let other = world.root.join(".git/worktrees/other");
            write(&other.join("gitdir"), "/nowhere/.git\n");
            write(&tree.join(".git"), &format!("gitdir: {}\n", other.display()));
        }),
        ("nothing leads back", |world, _| {
            fs::remove_file(world.root.join(".git/worktrees/fix-1/gitdir")).unwrap();
        }),
        ("what leads back is a link", |world, _| {
            let back = world.root.join(".git/worktrees/fix-1/gitdir");
            fs::rename(&back, world.root.join("back")).unwrap();
            symlink(world.root.join("back"), back).unwrap();
        }),
        ("the name is a link", |world, _| {
            let (at, to) = (world.root.join(".git/worktrees/fix-1"), world.root.join("moved"));
            fs::rename(&at, &to).unwrap();
            symlink(to, at).unwrap();
        }),
        ("the tree is a link", |world, tree| {
            let to = world.root.join("tree");
            fs::rename(tree, &to).unwrap();
            symlink(to, tree).unwrap();
        }),
    ];
    for (what, spoil) in spoil {
        let world = World::new();
        world.add("fix-1", &own(&world));
        assert_eq!(world.edits(&own(&world).join("a.rs")), Allow, "before: {what}");
        spoil(&world, &own(&world));
        assert_eq!(world.edits(&own(&world).join(".claude/x")), Ask, "{what}");
        assert_eq!(world.edits(&own(&world).join("a.rs")), Ask, "{what}");
    }
    // A home is none, whatever its files say.
    let world = World::new();
    world.add("home", &world.home);
    assert_eq!(world.reads(&world.home.join("notes.txt")), Ask);
    assert_eq!(world.run("cat ../notes.txt", &world.root), Ask);
}
