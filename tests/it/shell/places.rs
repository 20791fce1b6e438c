//! Calls that are unasked because of what lies in the workspace, in its repository or in the home: the remote of a fetch, an
//! environment of Python, the texts of skills and the sources of packages.

use std::fs;
use std::path::{Path, PathBuf};

use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};

/// A workspace in a folder of its own, below a home.
struct Place {
    _folder: tempfile::TempDir,
    home: PathBuf,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let root = home.join("src/shop");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        Self { _folder: folder, home, root }
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn judged(&self, preset: Preset, text: &str) -> String {
        let workspace = Workspace::new(&self.root).with_home(&self.home);
        let classifier =
            Classifier::new(workspace, preset).with_search_path(SearchPath::unchecked());
        classifier.judge(text, Dialect::Bash).to_string()
    }

    #[track_caller]
    fn is_allowed(&self, text: &str, expected: bool, about: &str) {
        let judged = self.judged(Preset::Developer, text);
        assert_eq!(judged == "allow", expected, "{text:?} with {about:?}: {judged}");
    }
}

const ORIGIN: &str = "[remote \"origin\"]\n\turl = https://git.example/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";

/// C1: "A fetch from a remote that the repository names is a query", and what its settings say more is asked about.
#[test]
fn a_fetch_from_a_plain_remote_is_a_query() {
    let place = Place::new();
    let of = |more: &str| format!("[core]\n\tbare = false\n{ORIGIN}{more}");
    place.write(
        "src/shop/.git/config",
        &of("[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"),
    );
    for text in [
        "git fetch",
        "git fetch origin",
        "git fetch -q origin main",
        "git fetch origin dev/a-b && git log -1",
    ] {
        place.is_allowed(text, true, "a plain remote");
    }
    assert!(place.judged(Preset::Reader, "git fetch").contains("talks to the remote"));
    for text in [
        "git fetch origin main:main",
        "git fetch origin +main",
        "git fetch origin refs/heads/*",
        "git fetch ../other",
        "git fetch https://evil.example/x.git",
        "git fetch ext::sh",
        "git fetch --all",
        "git fetch --upload-pack=./x origin",
        "git fetch --recurse-submodules",
        "git fetch -p",
        "git fetch $remote",
        "git push origin",
        "git pull",
    ] {
        place.is_allowed(text, false, "a plain remote");
    }
    for more in [
        "[remote \"origin\"]\n\tuploadpack = ./x\n",
        "[remote \"origin\"]\n\tvcs = evil\n",
        "[remote \"origin\"]\n\turl = ext::sh -c ./x\n",
        "[remote \"origin\"]\n\turl = /srv/other.git\n",
        "[remote \"origin\"]\n\turl = ../other\n",
        "[remote \"origin\"]\n\turl = -oProxyCommand=x:y\n",
        "[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/heads/*\n",
        "[core]\n\tsshCommand = ./x\n",
        "[core]\n\thooksPath = hooks\n",
        "[core]\n\tgitProxy = ./x\n",
        "[credential]\n\thelper = !./x\n",
        "[url \"https://evil.example/\"]\n\tinsteadOf = https://git.example/\n",
        "[http]\n\tproxy = evil.example:80\n",
        "[http \"https://git.example\"]\n\tsslVerify = false\n",
        "[remotes]\n\torigin = a b\n",
        "[fetch]\n\trecurseSubmodules = true\n",
        "[fetch]\n\tbundleURI = https://evil.example/x\n",
        "[include]\n\tpath = ../x\n",
        "[branch \"main\"]\n\tremote = ../other\n",
    ] {
        place.write("src/shop/.git/config", &of(more));
        place.is_allowed("git fetch", false, more);
    }
    place.write(
        "src/shop/.git/config",
        &of("[http]\n\tpostBuffer = 1000\n[remote \"b\"]\n\turl = ann@git.example:a/b.git\n"),
    );
    place.is_allowed("git fetch b", true, "an address of ssh");
    place.is_allowed("git fetch c", true, "a name that git does not find");
    place.write("src/shop/c/HEAD", "");
    place.is_allowed("git fetch c", false, "a folder of that name");
    place.write("src/shop/.git/hooks/reference-transaction", "#!/bin/sh\n");
    place.is_allowed("git fetch", false, "a hook");
}

/// C1: "An environment of the workspace that a text activates is code of the workspace": so are `git` and `ls` in it.
#[test]
fn an_activated_environment_is_code_of_the_workspace() {
    let place = Place::new();
    for name in ["activate", "python", "pytest"] {
        place.write(format!("src/shop/venv/bin/{name}"), "");
    }
    place.is_allowed("source venv/bin/activate && python -m pytest", false, "no environment");
    place.write("src/shop/venv/pyvenv.cfg", "home = /usr/bin\n");
    for text in [
        "source venv/bin/activate && python -m pytest 2>&1 | tail -20",
        ". venv/bin/activate; pytest -q",
    ] {
        place.is_allowed(text, true, "an environment");
    }
    assert!(place.judged(Preset::Reader, "source venv/bin/activate").contains("runs code"));
    for text in [
        "source venv/bin/activate && python x.py",
        "source venv/bin/activate && python --version",
        "source venv/bin/activate && git push",
        "source venv/bin/activate x",
        "source venv/bin/pytest",
        "source ../venv/bin/activate",
    ] {
        place.is_allowed(text, false, "an environment");
    }
    place.is_allowed(
        "source venv/bin/activate && ls src && git status",
        true,
        "programs of the system",
    );
    for name in ["ls", "git"] {
        place.write(format!("src/shop/venv/bin/{name}"), "");
        place.is_allowed(&format!("source venv/bin/activate && {name} status"), false, name);
    }
}

/// C1: "Texts of skills and sources of installed packages are public": and nothing beside them is.
#[test]
fn texts_of_skills_and_sources_of_packages_are_read() {
    let place = Place::new();
    for path in [
        ".claude/skills/a/SKILL.md",
        ".codex/plugins/cache/x/1.0/skills/b/references/c.md",
        ".agents/skills/workmux/SKILL.md",
        ".cargo/registry/src/index-1/serde-1.0/src/lib.rs",
        "go/pkg/mod/example.com/x@v1.2.3/x.go",
    ] {
        place.write(path, "x");
        place.is_allowed(&format!("sed -n '1,240p' ~/{path}"), true, path);
        place.is_allowed(&format!("echo x > ~/{path}"), false, path);
    }
    for path in [
        ".codex/auth.json",
        ".claude/.credentials.json",
        ".claude/settings.json",
        ".claude/CLAUDE.md",
        ".claude/projects/x/memory.md",
        ".codex/skills/a/run.sh",
        ".codex/skills/../auth.md",
        ".cargo/credentials.toml",
        ".cargo/registry/src/x/.env",
        "go/x.go",
    ] {
        place.write(path, "x");
        place.is_allowed(&format!("cat ~/{path}"), false, path);
    }
    #[cfg(unix)]
    {
        place.write(".ssh/id.md", "x");
        std::os::unix::fs::symlink(
            place.home.join(".ssh/id.md"),
            place.home.join(".claude/skills/a/b.md"),
        )
        .unwrap();
        place.is_allowed("cat ~/.claude/skills/a/b.md", false, "a link to a secret");
    }
}
