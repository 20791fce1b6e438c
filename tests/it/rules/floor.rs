//! The floor: what decides what runs or what is allowed, and the ways around it that were found (rule R5). The files are
//! looked at, as a hook does.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use countersign::decision::ToolDecision::{self, Allow, Ask};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::SearchPath;
use serde_json::{Value, json};

use super::args;

/// A person's project with a repository and the files of agents, in a home with rules and records.
struct World {
    _dir: tempfile::TempDir,
    elsewhere: PathBuf,
    root: PathBuf,
    rules: Rules,
}

const EVERYTHING: &str = "version = 1\n[[rule]]\nid = 'all'\nallow = ['*', 'mcp:*/*']\n";

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (home, root) = (base.join("home"), base.join("home/shop"));
    let file = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x\n").unwrap();
    };
    for name in [
        ".git/config",
        ".git/HEAD",
        "CLAUDE.md",
        ".env",
        ".github/ci.yml",
        "evil/settings.json",
        "a.txt",
        "src/lib.rs",
        "src/app.ts",
        "x/a.txt",
        "tests/a.py",
    ] {
        file(&root.join(name));
    }
    let (config, state) = (home.join(".config/countersign"), home.join(".local/state/countersign"));
    file(&config.join("rules.toml"));
    file(&state.join("rules/a.json"));
    let elsewhere = base.join("elsewhere");
    file(&elsewhere.join(".git/HEAD"));
    let rules = Rules::builder()
        .root(&root)
        .home(&home)
        .protect(&config)
        .protect(&state)
        .search_path(SearchPath::unchecked())
        .text("mine.toml", EVERYTHING)
        .load()
        .unwrap();
    World { _dir: dir, elsewhere, root, rules }
}

impl World {
    fn call(&self, tool: &str, given: Value) -> ToolDecision {
        self.rules.decide(&RuleCall::named(tool, &args(given))).decision()
    }

    fn run(&self, command: &str) -> ToolDecision {
        // The temporary directory may have a blank in its name.
        let command = command.replace("ELSEWHERE", &format!("'{}'", self.elsewhere.display()));
        self.call("shell", json!({ "command": command }))
    }

    fn assert(&self, commands: &[&str], wanted: ToolDecision) {
        let others: Vec<_> = commands.iter().filter(|it| self.run(it) != wanted).collect();
        assert!(others.is_empty(), "not {wanted:?}: {others:#?}");
    }
}

/// R5: "Running `countersign` is asked about every time, but for six commands of `countersign rules` that only read".
#[test]
fn the_program_is_not_run_by_another_program_either() {
    world().assert(
        &[
            "sudo countersign rules accept",
            "doas countersign asks decide 1 --approve",
            "setsid countersign asks list",
            "exec countersign rules accept",
            "eval countersign rules accept",
            "eval 'countersign rules accept'",
            "trap 'countersign rules accept' EXIT",
            "alias c=countersign; c rules accept",
            "flock a.txt countersign rules accept",
            "flock a.txt -c 'countersign rules accept'",
            "watch countersign rules accept",
            "parallel countersign ::: rules",
            "tmux new -d 'countersign rules accept'",
            "su -c 'countersign rules accept'",
            "ssh localhost countersign rules accept",
            "socat - EXEC:'countersign rules accept',pty",
            "gdb -ex run --args countersign rules accept",
            "script -qc 'countersign rules accept' /dev/null <<< yes",
            "script -qc 'counter\"\"sign rules accept' /dev/null",
            "script -qc 'counters\"\"ign rules accept' /dev/null",
            "script -qc \"counters''ign rules accept\" /dev/null",
            "script -qc 'countersi\\gn rules accept' /dev/null",
            "find . -exec script -qc 'countersign rules accept' {} ';'",
            "expect -c 'spawn countersign rules accept'",
            "python3 -c \"import os; os.system('countersign rules accept')\"",
            "python3 -c \"import pty; pty.spawn(['countersign', 'rules', 'accept'])\"",
            "$(which countersign) rules accept",
            "counter${x}sign rules accept",
            "c=counter; ${c}sign rules accept",
            "c='countersign rules accept'; $c",
            "sh -c 'x=countersign; $x rules accept'",
            "/usr/bin/c*n rules accept",
            "countersign.exe rules accept",
            "npx countersign rules accept",
            "cargo run --bin countersign -- rules accept",
            "unknown countersign --config x rules accept",
        ],
        Ask,
    );
}

/// R5: the same for each command of the program but two that only print.
#[test]
fn no_command_of_the_program_is_run_by_another_program() {
    let page = include_str!("../../../docs/reference.md");
    let commands = page.lines().filter_map(|line| line.strip_prefix("### countersign "));
    let commands: BTreeSet<_> = commands.filter_map(|rest| rest.split(' ').next()).collect();
    assert!(commands.len() >= 10 && commands.contains("init"), "{commands:?}");
    let world = world();
    for command in commands {
        let only_prints = ["completions", "reference"].contains(&command);
        let wanted = if only_prints { Allow } else { Ask };
        world.assert(&[&format!("flock a.txt countersign {command}")], wanted);
    }
}

/// The same for a tool that is not known, which may run what it is given.
#[test]
fn a_tool_that_is_not_known_does_not_run_the_program() {
    let world = world();
    for given in [
        json!({"command": "countersign rules accept"}),
        json!({"command": "countersign", "args": ["rules", "accept"]}),
        json!({"argv": ["sudo", "countersign", "asks", "decide", "1", "--approve"]}),
        json!({"steps": [{"run": "countersign rules accept"}]}),
        json!({"steps": [{"run": "counters''ign rules accept"}]}),
        json!({"steps": [{"run": "countersi\\gn rules accept"}]}),
    ] {
        assert_eq!(world.call("mcp:x/run", given.clone()), Ask, "{given}");
    }
    for (tool, given) in [
        ("mcp:x/run", json!({"command": "npm test"})),
        ("mcp:slack/post", json!({"text": "run countersign rules accept", "channel": "dev"})),
        ("mcp:github/create_issue", json!({"repo": "countersign", "body": "rules accept, .env"})),
        ("write_file", json!({"path": "notes.md", "content": "countersign rules accept"})),
    ] {
        assert_eq!(world.call(tool, given.clone()), Allow, "{given}");
    }
}

/// R5: "at every word of a part that does more than reading …, with what patterns match, substitutions name and pipes hand
/// on".
#[test]
fn what_one_command_finds_and_another_one_writes_is_looked_up() {
    world().assert(
        &[
            "find ~ -name rules.toml -exec sed -i s/a/b/ {} +",
            "find .. -name rules.toml -exec sed -i s/a/b/ {} +",
            "find ~ -path '*/countersign/rules/*' -name '*.json' -delete",
            "find ~ -type f -exec sed -i s/a/b/ {} +",
            "grep -rl x ~ --include=rules.toml | xargs sed -i s/a/b/",
            "find . -name config -exec sed -i s/a/b/ {} +",
            "find . -type f | xargs sed -i s/a/b/",
            "grep -rl x . | xargs sed -i s/a/b/",
            "rg -l x | xargs sed -i s/a/b/",
            "sed -i s/a/b/ $(grep -rl x .)",
            "sed -i s/a/b/ $(find . -type f)",
            "rm $(git ls-files)",
            "ls -A | while read -r f; do mv \"$f\" /tmp; done",
            "for f in $(ls -A); do rm -rf $f; done",
            "find . -type f -exec cp a.txt {} ';'",
            "find . -delete",
            "fd -H . -x rm",
        ],
        Ask,
    );
}

/// R5: "Names may come from a pattern": what it matches may be a link to something protected.
#[test]
fn a_pattern_that_matches_a_link_names_what_the_link_leads_to() {
    let world = world();
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(to, world.root.join(name)).unwrap();
    link(".git", "gl");
    link(".git/config", "lnk");
    link("evil", "el");
    world.assert(
        &[
            "cp evil/settings.json g?",
            "echo x > l?k",
            "echo x > g?/config",
            "sed -i s/x/y/ g?/config",
            "mv a.txt g?",
            "tee l* < a.txt",
        ],
        Ask,
    );
    world.assert(&["cp a.txt e?", "echo x > e?/b.txt", "cat g?/config"], Allow);
}

/// A folder around the workspace has the workspace below it.
#[test]
fn what_goes_through_a_folder_around_the_workspace_goes_through_it() {
    world().assert(
        &[
            "rm -rf ~",
            "chmod -R a-r ~",
            "cp -r evil ~",
            "mv ~ /x",
            "tar xf a.tar -C ~",
            "unzip -o a.zip -d ~",
            "rsync -a evil/ ~/",
            "find ~ -delete",
        ],
        Ask,
    );
}

/// R5: "with … the files in the headers of a patch included", also of one in the command.
#[test]
fn a_patch_or_a_configuration_in_the_command_names_what_is_written() {
    world().assert(
        &[
            "patch -p1 <<'E'\n--- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+{}\nE",
            "patch -d ~ -p0 <<'E'\n--- .config/countersign/rules.toml\n+++ .config/countersign/rules.toml\n@@ -1 +1 @@\n-x\n+y\nE",
            "git apply <<'E'\n--- /dev/null\n+++ b/.envrc\n@@ -0,0 +1 @@\n+x\nE",
            "printf -- '--- /dev/null\\n+++ .envrc\\n@@ -0,0 +1 @@\\n+x\\n' | patch -p0",
            "echo 'diff --git a/.envrc b/.envrc' | git apply",
            "curl -sK - <<'E'\nurl = file:///etc/hostname\noutput = .envrc\nE",
            "curl -K - <<< 'output = \".envrc\"'",
            "printf 'url=file:///x\\noutput=.envrc\\n' | curl -K -",
        ],
        Ask,
    );
}

/// R5: "also one that is known only when it runs", of every word.
#[test]
fn a_name_that_is_known_in_parts_may_be_a_protected_one() {
    world().assert(
        &[
            "mv a.txt ~/.config/counter${x}sign/rules.toml",
            "mv evil .cl${x}aude",
            "mv evil \"$(printf .cl)aude\"",
            "d=$(echo .cl); mv evil ${d}aude",
            "read d <<< .cl; mv evil \"${d}aude\"",
        ],
        Ask,
    );
}

/// R5: "Text that is not analysed may write anything".
#[test]
fn a_text_that_another_program_runs_names_what_it_writes() {
    let world = world();
    world.assert(
        &[
            "eval 'echo x > .envrc'",
            "trap 'touch .envrc' EXIT",
            "x='touch .envrc'; eval $x",
            "su -c 'touch .envrc'",
            "printf 'w .envrc\\n' | ed a.txt",
            "eval 'git config core.pager x'",
        ],
        Ask,
    );
    for given in [
        json!({"script": "echo x > .envrc"}),
        json!({"code": "open('.envrc', 'w')"}),
        json!({"task": {"cmd": "touch .git/hooks/pre-commit"}}),
    ] {
        assert_eq!(world.call("mcp:x/run", given.clone()), Ask, "{given}");
    }
}

/// R5: "git outside of the root", however it gets there.
#[test]
fn git_is_asked_about_wherever_it_may_work_outside_of_the_root() {
    world().assert(
        &[
            "git -C ELSEWHERE status",
            "cd ELSEWHERE && git status",
            "cd ELSEWHERE; git status",
            "cd ELSEWHERE || true; git status",
            "(cd ELSEWHERE; git status)",
            "cd ELSEWHERE x; git status",
            // zsh puts the second word into the path, in the place of the first.
            "cd home/shop elsewhere; git status",
            "cd /tmp; git -C elsewhere status",
            "GIT_DIR=ELSEWHERE/.git git status",
            "env GIT_DIR=ELSEWHERE/.git git log",
            "export GIT_DIR=ELSEWHERE/.git; git log",
            "cd x; cp a.txt HEAD",
            "cd x && cp a.txt HEAD",
            "cd x && echo ref > HEAD",
            "mkdir x && cd x && touch HEAD",
        ],
        Ask,
    );
}

/// R5: "at settings that a command of git is given, and at every sub-command that writes settings".
#[test]
fn settings_that_git_is_given_or_writes_are_asked_about() {
    let world = world();
    world.assert(
        &[
            "git -c alias.x='!sh x.sh' x",
            "git -c alias.x='config core.pager x' x",
            "git -c core.fsmonitor=./x.sh status",
            "git -c core.hooksPath=src commit -m x",
            "git -c core.pager='sh x.sh' -p log",
            "git -c core.sshCommand='sh x.sh' fetch",
            "git -c diff.external=./x.sh diff",
            "git -c diff.x.textconv=./x.sh log -p",
            "git -c filter.x.clean=./x.sh add .",
            "git -c core.editor=./x.sh commit",
            "git -c sequence.editor=./x.sh rebase -i HEAD~1",
            "git -c credential.helper='!sh x.sh' fetch",
            "git -c gpg.program=./x.sh commit -S -m x",
            "git -c include.path=../x status",
            "git -c merge.x.driver=./x.sh merge y",
            "git -c remote.origin.uploadpack=./x.sh fetch",
            "git -c protocol.ext.allow=always fetch",
            "git -c submodule.x.update='!sh x.sh' submodule update",
            "git -C . -c core.fsmonitor=./x.sh status",
            "git --config-env=core.fsmonitor=X status",
            "git --config-env core.pager=X log",
            "git clone -c core.fsmonitor=./x.sh https://git.example/x y",
            "git clone --config core.hooksPath=src https://git.example/x y",
            "git branch --track x origin/main",
            "git branch -u origin/main",
            "git branch --set-upstream-to=origin/main",
            "git sparse-checkout set src",
            "git sparse-checkout init",
        ],
        Ask,
    );
    world.assert(
        &[
            "git -c user.name=x -c user.email=y commit -m 'see CLAUDE.md and .envrc'",
            "git -c color.ui=always log",
            "git -c core.quotepath=off status",
            "git -c core.pager=cat diff",
            "git -c core.hooksPath=/dev/null commit -m x",
            "git -c core.fsmonitor=false status",
            "git -c credential.helper= fetch",
            "git -c init.defaultBranch=main clone https://git.example/x y",
            "git branch -a",
            "git branch new",
            "git sparse-checkout list",
            "git push -u origin main",
        ],
        Allow,
    );
}

/// R5: "at words that may be commands of their own".
#[test]
fn a_word_that_a_known_program_may_run_names_what_it_writes() {
    let world = world();
    world.assert(
        &[
            "git rebase --exec 'touch .envrc' HEAD~1",
            "git rebase -x 'touch .envrc' HEAD~1",
            "git rebase --exec=\"touch .en''vrc\" HEAD~1",
            "git rebase --exec 'touch .en${x}vrc' HEAD~1",
            "git bisect run sh -c 'touch .envrc'",
            "git submodule foreach 'touch .envrc'",
            "git difftool -x 'touch .envrc'",
            "git fetch --upload-pack='touch .envrc' .",
            "tar -cf x.tar --checkpoint=1 --checkpoint-action=exec='touch .envrc' a.txt",
            "tar --to-command='tee .envrc' -xf a.tar",
            "tar -I 'tee .envrc' -cf a.tar a.txt",
            "make --eval='$(shell touch .envrc)'",
            "make --eval='$(file >.envrc,x)'",
            "make 'X=$(shell touch .envrc)'",
            "sort --compress-program='tee .envrc' a.txt",
            "split --filter='tee .envrc' a.txt",
            "rsync -e 'tee .envrc' a.txt b:c",
            "go build -toolexec 'tee .envrc' .",
            "curl -w '%output{.envrc}x' https://example.com/x",
            "less '+!touch .envrc' a.txt",
        ],
        Ask,
    );
    world.assert(
        &[
            "git rebase --exec 'cargo test' main",
            "make 'CFLAGS=-O2 -g' test",
            "tar -xzf a.tar.gz",
            "git tag -a v1 -m 'see CLAUDE.md now'",
            "gh issue create -t 'about .env files' -b 'x .envrc y'",
            "curl -d '{\"text\": \"see CLAUDE.md now\"}' https://example.com/x",
            "claude -p 'explain CLAUDE.md to me'",
            "cargo test -- 'name with space'",
        ],
        Allow,
    );
}

/// R5: "at names that the text computes".
#[test]
fn a_name_that_the_text_computes_may_be_a_protected_one() {
    let world = world();
    world.assert(
        &[
            "cp a.txt \"$(git rev-parse --git-dir)/config\"",
            "cp a.txt $(git rev-parse --git-path hooks)/pre-commit",
            "cp a.txt \"$(printf '.env%s' rc)\"",
            "printf '.env%s' rc | xargs cp a.txt",
            "printf %s .env rc | xargs touch",
            "echo .env | sed 's/$/rc/' | xargs touch",
            "echo cvrne. | rev | xargs touch",
            "bash -c 'cp a.txt \".$G\"'",
            "touch .$G",
            "set -- .envrc; cp a.txt \"$1\"",
            "read x <<< .envrc; cp a.txt \"$x\"",
            "printf -v x .envrc; cp a.txt \"$x\"",
            "x=.env; y=rc; cp a.txt \"$x$y\"",
            "rm -rf \"$PWD\"",
            "rm -rf ../shop",
            "rm -rf \"$(pwd)\"",
            "cp a.txt \"$PWD/.git/config\"",
            "cd .git && cd .. && cd - && cp ../a.txt config",
            "CDPATH=.git cd hooks && touch pre-commit",
            "CDPATH=.git; cd hooks && touch pre-commit",
            "GIT_TRACE=$PWD/.envrc git status",
            "GIT_TRACE2_EVENT=.git/config git status",
            "NODE_V8_COVERAGE=.git node x.js",
            "export GIT_TRACE=.envrc; git status",
        ],
        Ask,
    );
    world.assert(
        &[
            "mkdir -p \"$OUT/x\"",
            "mkdir -p \"build-$(date +%F)\"",
            "tar czf \"backup-$(date +%F).tgz\" src",
            "tmp=$(mktemp -d); cp a.txt \"$tmp/\"; rm -rf \"$tmp\"",
            "for f in src/*.rs; do cp \"$f\" x/; done",
            "printf '%s\\n' a b | xargs mkdir -p",
            "ps aux | awk '{print $2}' | xargs kill",
            "cd src && cd .. && cd -",
            "rm -rf \"$PWD/dist\"",
            "GIT_TRACE=1 git status",
        ],
        Allow,
    );
}

/// R5: "at what a folder holds that is copied or unpacked".
#[test]
fn a_folder_that_is_copied_brings_what_is_in_it() {
    let world = world();
    let pack = world.root.join("pack/deep/.claude");
    fs::create_dir_all(&pack).unwrap();
    fs::write(pack.join("settings.json"), "{}").unwrap();
    world.assert(
        &[
            "cp -a pack/. .",
            "cp -r pack/deep .",
            "rsync -a pack/ .",
            "tar -C pack -cf - . | tar -xf -",
            "(cd pack && tar cf - .) | tar xf -",
            "tar cf a.tar pack && tar xf a.tar -C x",
            "cd pack && zip -r ../a.zip . && cd .. && unzip a.zip",
        ],
        Ask,
    );
    world.assert(
        &[
            "cp -a src/. x",
            "rsync -a src/ x/",
            "tar -C src -cf - . | tar -xf - -C x",
            "tar xf a.tar",
        ],
        Allow,
    );
}

/// R5: "at programs that write the configuration of agents".
#[test]
fn programs_that_write_the_configuration_of_agents_are_asked_about() {
    let world = world();
    world.assert(
        &[
            "claude mcp add x -- y",
            "claude mcp add-json x '{}'",
            "claude --debug mcp remove x",
            "claude config set x y",
            "claude plugin install x",
            "npx -y @anthropic-ai/claude-code@latest mcp add x y",
            "gemini extensions install x",
            "qwen extensions install x",
            "qwen mcp add x y",
            "npx @google/gemini-cli mcp add x y",
            "codex mcp add x -- y",
            "copilot plugin install x",
            "opencode agent create",
            "cursor-agent mcp enable x",
            "code --install-extension x",
            "direnv allow",
            "direnv allow .",
            "mise trust",
            "mise use node@22",
            "mise settings set x y",
            "asdf set nodejs 22",
            "npx husky init",
            "lefthook install",
            "pre-commit install",
            "gh auth setup-git",
            "gh alias set x '!sh x.sh'",
            "npm config set script-shell x",
            "crontab x",
            "systemctl --user enable x",
        ],
        Ask,
    );
    world.assert(
        &[
            "claude mcp list",
            "claude --version",
            "claude -p 'add an mcp server'",
            "gemini extensions list",
            "codex mcp get x",
            "codex exec 'explain this'",
            "direnv status",
            "mise ls",
            "mise install",
            "mise run build",
            "code README.md",
            "npm config get registry",
            "pre-commit run --all-files",
            "gh auth status",
            "crontab -l",
        ],
        Allow,
    );
}

/// R5: "Of a command, the targets … are looked at": a copy into a folder writes what a link of its name there leads to.
#[test]
fn a_copy_into_a_folder_is_looked_at_where_it_lands() {
    let world = world();
    for folder in ["links", "plain"] {
        fs::create_dir(world.root.join(folder)).unwrap();
    }
    std::os::unix::fs::symlink("../.git/config", world.root.join("links/config")).unwrap();
    fs::write(world.root.join("src/config"), "[core]\n").unwrap();
    world.assert(
        &[
            "cp src/config links",
            "cp -v src/lib.rs src/config links/",
            "cp -t links src/config",
            "cp -vt links src/config",
            "cp --target-directory=links src/config",
            "cp --target-directory links src/config",
            "cd src && cp config ../links",
            "cp a.txt src/config \"links\"",
            "rsync -t src/config links",
            "rsync --times src/config links",
        ],
        Ask,
    );
    world.assert(
        &["cp src/config plain", "cp src/lib.rs links", "cp src/config links/other"],
        Allow,
    );
}

/// R5 is about what decides: what an agent does every day is not.
#[test]
fn everyday_commands_of_an_agent_are_none_of_it() {
    world().assert(
        &[
            "grep -rl old src | xargs sed -i 's/old/new/'",
            "find . -name '*.pyc' -delete",
            "find . -name __pycache__ -type d -exec rm -rf {} +",
            "find . -name '*.ts' | xargs npx prettier --write",
            "find src -type f -exec sed -i 's/a/b/' {} +",
            "find . -type d -name dist -prune -exec rm -rf {} +",
            "git ls-files '*.rs' | xargs rustfmt",
            "rg -l old -t rust | xargs sed -i s/old/new/",
            "rg -l old -g '*.ts' | xargs sed -i s/old/new/",
            "sed -i 's/a/b/' $(git ls-files '*.rs')",
            "sed -n 1,5p $(find . -name '*.md')",
            "find . -type f | xargs wc -l",
            "find . ! -name .env -type f | xargs grep -l x",
            "black $(git diff --name-only)",
            "rm -rf node_modules target dist",
            "rm -rf \"$tmp\"",
            "mv a \"$name.json\"",
            "cp x \"$OUT/config\"",
            "cp -r src ../other",
            "mv a.txt ..",
            "trap 'rm -rf \"$tmp\"' EXIT; cat CLAUDE.md",
            "tar --exclude=.env -czf /tmp/x.tgz .",
            "rsync -a --exclude=.env src/ /tmp/x",
            "docker build -t x:$(git rev-parse HEAD) .",
            "cd src && git diff HEAD",
            "cd src && git reset HEAD~1",
            "cd src; git log --oneline HEAD",
            "GIT_DIR=.git git status",
            "GIT_CONFIG_GLOBAL=/dev/null git log",
            "cat > notes.md <<'E'\nsee .env and CLAUDE.md, run countersign rules accept\nE",
            "git commit -m 'countersign rules accept is explained; see .env'",
            "git commit -F - <<'E'\nrules: see .github and .env\nE",
            "gh pr create --title x --body 'run countersign rules accept, edit CLAUDE.md'",
            "cargo build -p countersign --release",
            "cargo test -p countersign rules",
            "cargo run --bin countersign -- rules check rules.toml",
            "countersign rules explain < calls.jsonl",
            "countersign --version",
            "git clone https://git.example/x/countersign",
            "sudo apt-get install countersign",
            "grep -rn countersign rules docs",
            "psql -c 'select * from rules, asks'",
            "$CC -o x x.c",
            "\"$PYTHON\" -m pytest",
            "timeout 5 $CMD \"$@\"",
        ],
        Allow,
    );
}

/// Each of these writes, and hides the name in a text for another program, behind a pattern or in a value.
#[test]
fn a_text_for_another_program_names_what_it_writes() {
    let world = world();
    for name in ["CLAUDE.md", ".claude/settings.json", ".git/config"] {
        let (start, end) = name.split_at(name.len() - 2);
        let (most, last) = name.split_at(name.len() - 1);
        let commands = [
            format!("eval \"echo x > {name}\""),
            format!("trap 'echo x > {name}' EXIT"),
            format!("flock l -c 'echo x>{name}'"),
            format!("ssh localhost 'echo x>{name}'"),
            format!("tmux new -d 'echo x > {name}'"),
            format!("git -c alias.x='!echo x > {name}' x"),
            format!("tar --to-command='tee {name}' -xf a.tar"),
            format!("make -f - <<< 'a:;echo x > {name}'"),
            format!("crontab - <<< '* * * * * echo x > {name}'"),
            format!("PAGER='tee {name}' git log"),
            format!("echo {most}[{last}] | xargs cp a.txt"),
            format!("x={start}; echo ${{x}}{end} | xargs touch"),
            format!("./tool '{{\"out\":\"{name}\"}}'"),
            format!("./tool '<out>{name}</out>'"),
        ];
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        // No pattern matches a file that is not there.
        let known = |it: &&&str| name != ".claude/settings.json" || !it.contains("cp a.txt");
        world.assert(&commands.iter().filter(known).copied().collect::<Vec<_>>(), Ask);
    }
    world.assert(
        &[
            "eval \"echo x > out.txt\"",
            "ssh localhost 'cat a.txt'",
            "make -f - <<< 'a:;echo x > out.txt'",
            "PAGER='less -R' git log",
            "echo a.tx[t] | xargs touch",
            "./tool '{\"out\":\"a.txt\"}'",
            "tee out.txt <<E\nsee CLAUDE.md\nE",
            "git commit -m 'say more in CLAUDE.md (again)'",
        ],
        Allow,
    );
}

#[test]
fn the_program_that_decides_is_found_in_what_another_one_is_given() {
    let world = world();
    let own = "countersign asks decide x --approve";
    let commands = [
        format!("make -f - <<< 'a:;{own}'"),
        format!("PAGER='{own}' git log"),
        format!("crontab - <<< '* * * * * {own}'"),
        format!("flock l -c '{own}'"),
    ];
    world.assert(&commands.iter().map(String::as_str).collect::<Vec<_>>(), Ask);
    world.assert(&["make -f - <<< 'a:;countersigned x'", "PAGER=cat git log"], Allow);
}

/// The operands that many programs share are an input for most, and what one of them writes.
#[test]
fn an_operand_that_many_programs_share_is_no_input() {
    world().assert(
        &[
            "tsc -outFile CLAUDE.md",
            "jest --json CLAUDE.md",
            "source-map-explorer a.js --json CLAUDE.md",
        ],
        Ask,
    );
    world()
        .assert(&["tsc -p src", "jest src/app.ts", "cat CLAUDE.md", "shellcheck CLAUDE.md"], Allow);
}

#[test]
fn a_pattern_that_shells_read_differently_is_a_set_and_itself() {
    let world = world();
    world.assert(
        &[
            "cp a.txt .g[[:i]t/config",
            "echo x > .g[[:i]t/config",
            "sed -i s/a/b/ .g[[:i]t/con*",
            "rm [[:C]LAUDE.md",
            "rm [A-D]LAUDE.md",
            "rm '['C]LAUDE.m*",
        ],
        Ask,
    );
    world.assert(&["rm [a-b].txt", "cp a.txt src/[a-z].txt", "rm [[:alpha:]].txt"], Allow);
}

/// X2, R5: how a tool may come to a protected name from the text that it is given.
#[test]
fn a_name_is_found_in_each_reading_that_a_tool_may_make() {
    let world = world();
    let write = |path: &str| world.call("write_file", json!({"path": path, "content": "x"}));
    for path in [
        "CLAUDE.md\n ",
        " \n.envrc",
        "\u{a0}\nCLAUDE.md",
        "x\n\\..\\CLAUDE.md",
        "x\n/..%2fCLAUDE.md",
        "%ff/%2e%2e/%43LAUDE.md",
        "C*.md",
        ".gi[t]/config",
        "(.git/config)",
        "{CLAUDE,x}.md",
    ] {
        assert_eq!(write(path), Ask, "{path:?}");
    }
    for path in [
        "a.md\n ",
        " \nx.txt",
        "%ff/notes.md",
        "s*.txt",
        "app/[id]/page.tsx",
        "(group)/page.tsx",
        "a (1).md",
    ] {
        assert_eq!(write(path), Allow, "{path:?}");
    }
    for patch in [
        "NAME\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "`NAME`\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n",
        "<file path=\"NAME\">x</file>",
        "<edits>\n<file path='NAME'>\nx\n</file>\n</edits>",
        "*** Begin Patch\n*** Rename File: a -> NAME\n*** End Patch",
    ] {
        for field in ["patch", "input", "diff"] {
            let call =
                |name: &str| world.call("apply_patch", json!({field: patch.replace("NAME", name)}));
            assert_eq!(call("CLAUDE.md"), Ask, "{field} {patch:?}");
            assert_eq!(call("notes.md"), Allow, "{field} {patch:?}");
        }
    }
}

/// An option that is described as a whole has no value in it.
#[test]
fn a_link_that_is_called_like_a_letter_of_an_option_is_none() {
    let world = world();
    std::os::unix::fs::symlink(".git/config", world.root.join("e")).unwrap();
    world.assert(&["go test -race ./...", "cat a.txt"], Allow);
    world.assert(&["go test -o e ./...", "./tool -race", "touch e"], Ask);
}

/// A rule about commands on an argument does not make a command of it.
#[test]
fn a_stricter_rule_switches_the_floor_not_off() {
    let rules = super::rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
         [[rule]]\nid = 'no'\ndeny = '*'\nwhere.path.runs = 'rm'\n",
    );
    let write =
        |path: &str| super::decide(&rules, "write_file", json!({"path": path, "content": "x"}));
    assert_eq!((write(".git/config"), write("a.txt")), (Ask, Allow));
}

/// The questions of the floor are about writing: what only reads is silent, for each protected name.
#[test]
fn what_only_reads_is_not_asked_about_by_the_floor() {
    let world = world();
    for name in [
        "CLAUDE.md",
        ".github/workflows/ci.yml",
        ".claude/settings.json",
        ".mcp.json",
        "GEMINI.md",
        ".git/config",
    ] {
        for tool in ["read_file", "list_files", "search_files", "find_files"] {
            let args = json!({"path": name, "pattern": "x"});
            assert_eq!(world.call(tool, args.clone()), Allow, "{tool} {name}");
            let own = args.as_object().unwrap();
            let call = RuleCall::new(tool, own).toolset("claude");
            assert_eq!(world.rules.decide(&call).decision(), Allow, "claude's {tool} {name}");
            // This name does not say what the tool of a server does.
            assert_eq!(
                world.call(&format!("mcp:fs/{tool}"), args),
                Ask,
                "the server's {tool} {name}"
            );
        }
        for command in [
            "cat NAME",
            "head -5 NAME",
            "grep -n x NAME",
            "wc -l NAME",
            "diff NAME a.txt",
            "git diff NAME",
        ] {
            let command = command.replace("NAME", name);
            assert_eq!(world.run(&command), Allow, "{command}");
        }
        for command in ["touch NAME", "cat a.txt > NAME", "sed -i s/a/b/ NAME", "./tool NAME"] {
            let command = command.replace("NAME", name);
            assert_eq!(world.run(&command), Ask, "{command}");
        }
        assert_eq!(world.call("write_file", json!({"path": name, "content": "x"})), Ask, "{name}");
    }
    // A directory is where relative names begin.
    for folder in [".github", ".git", ".claude"] {
        fs::create_dir_all(world.root.join(folder)).unwrap();
        for command in ["ls", "cat x", "ls -la | head"] {
            let command = format!("cd {folder} && {command}");
            assert_eq!(world.run(&command), Allow, "{command}");
        }
        for command in ["make", "tar -xf ../a.tar", "./tool", "touch x"] {
            let command = format!("cd {folder} && {command}");
            assert_eq!(world.run(&command), Ask, "{command}");
        }
    }
    // The name of an argument is the tool's own word, unless it is a path.
    assert_eq!(world.call("configure", json!({"config": "a", "hooks": true})), Allow);
    assert_eq!(world.call("write_all", json!({".git/config": "x"})), Ask);
    assert_eq!(world.call("write_all", json!({"files": {"CLAUDE.md": "x"}})), Ask);
}

/// R5: a command of git that changes something in another repository is asked about every time, also if that lies in the
/// workspace: its hooks run.
#[test]
fn git_in_a_repository_within_the_workspace_is_asked_about() {
    let world = world();
    for name in ["z/HEAD", "vendor/.git/HEAD"] {
        let path = world.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "ref: refs/heads/main\n").unwrap();
    }
    for folder in ["z", "vendor"] {
        for command in ["commit -m x", "add a.txt", "tag v1", "switch -c x"] {
            let forms =
                [format!("cd {folder} && git {command}"), format!("git -C {folder} {command}")];
            for form in forms {
                let call = args(json!({ "command": form }));
                let ruling = world.rules.decide(&RuleCall::new("shell", &call));
                assert!(ruling.decision() == Ask && ruling.is_every_time(), "{form}: {ruling}");
            }
        }
    }
    world.assert(&["cd src && git commit -m x", "git -C src add a.txt"], Allow);
}
