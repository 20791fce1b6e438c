//! Scripts of the workspace: a build where people have committed them and call them by everyday names (rule C1).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
use tempfile::TempDir;

/// A repository with committed scripts.
struct Shop {
    _folder: TempDir,
    root: PathBuf,
}

/// The scripts that are committed, all with the same text.
const SCRIPTS: &[&str] = &[
    "scripts/test.sh",
    "scripts/check.py",
    "scripts/lint-docs.mjs",
    "scripts/build_all.ts",
    "test.py",
    "scripts/deploy.sh",
    "scripts/release.py",
    "scripts/test-and-push.sh",
    "scripts/test_migrate.py",
    "scripts/build-prod.sh",
    "scripts/all.sh",
    "scripts/clean.sh",
    "scripts/generate.py",
    "scripts/testing.sh",
    "scripts/x.py",
    "manage.py",
    ".github/test.sh",
];

const TEXT: &str = "#!/usr/bin/env sh\necho a script that people wrote\n";

/// Committed, too, and no scripts of the program that they are given to, or by their names no work of every day.
const OTHERS: &[&str] = &[
    "docs/build.md",
    "docs/test.txt",
    "scripts/check-in.sh",
    "scripts/test_reset_db.sh",
    "scripts/build-s3.sh",
    "scripts/format-disk.sh",
    "tests/fixtures/test",
];

/// What git prints, for words that it is given in a folder.
fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0"]);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = git.args(args).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

impl Shop {
    fn new() -> Self {
        let shop = Self::empty();
        shop.git(&["init", "-q", "-b", "main"]);
        SCRIPTS.iter().for_each(|name| shop.write(name, TEXT));
        for name in ["src/a.txt", "data.csv"].iter().chain(OTHERS) {
            shop.write(name, "x\n");
        }
        shop.commit();
        shop
    }

    fn empty() -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap().join("shop");
        fs::create_dir(&root).unwrap();
        Self { _folder: folder, root }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let is_script = path.exists() || text.starts_with("#!");
        let mode = if is_script { 0o755 } else { 0o644 };
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.root, args)
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// The only pack of the repository.
    fn pack(&self) -> PathBuf {
        let files = fs::read_dir(self.root.join(".git/objects/pack")).unwrap();
        let mut files = files.map(|it| it.unwrap().path());
        files.find(|it| it.extension().is_some_and(|it| it == "pack")).unwrap()
    }

    /// How many files are stored as the difference from another one.
    fn differences(&self) -> usize {
        let listed = self.git(&["verify-pack", "-v", self.pack().to_str().unwrap()]);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        listed.lines().map(words).filter(|it| it.len() == 7 && it[1] == "blob").count()
    }

    fn judged_in(&self, root: &Path, directory: &str, preset: Preset, text: &str) -> String {
        let workspace =
            Workspace::new(root).with_home(self.root.parent().unwrap()).with_directory(directory);
        let classifier =
            Classifier::new(workspace, preset).with_search_path(SearchPath::new(["/usr/bin"]));
        classifier.judge(text, Dialect::Bash).to_string()
    }

    fn judged(&self, text: &str) -> String {
        self.judged_in(&self.root, "", Preset::Developer, text)
    }

    #[track_caller]
    fn allows(&self, text: &str, about: &str) {
        assert_eq!(self.judged(text), "allow", "{text:?} with {about}");
    }

    #[track_caller]
    fn asks(&self, text: &str, about: &str) {
        assert!(self.judged(text).starts_with("ask"), "{text:?} is allowed with {about}");
    }
}

/// C1: "A script … is a build".
#[test]
fn a_committed_script_of_an_everyday_name_is_a_build() {
    let shop = Shop::new();
    for text in [
        "./scripts/test.sh",
        "scripts/test.sh",
        "bash scripts/test.sh",
        "bash -eux scripts/test.sh 2>&1 | tail -20",
        "python3 scripts/check.py",
        "python3 -u scripts/check.py && ls",
        "node scripts/lint-docs.mjs",
        "bun scripts/build_all.ts",
        "python3 test.py",
        "cd scripts && ./test.sh",
        "timeout 60 ./scripts/test.sh",
        "CI=1 ./scripts/test.sh",
        "for i in 1 2; do ./scripts/test.sh; done",
        "cargo test && ./scripts/test.sh",
        "./scripts/test.sh --verbose -v unit src src/a.txt ./data.csv",
        "python3 scripts/check.py --quick 3",
    ] {
        shop.allows(text, "a script as it was committed");
    }
    let root = shop.root.display();
    shop.allows(&format!("{root}/scripts/test.sh"), "a whole path");
    assert_eq!(
        shop.judged_in(&shop.root, "", Preset::Reader, "./scripts/test.sh"),
        "ask: `./scripts/test.sh` runs code of the workspace"
    );
    assert_eq!(shop.judged_in(&shop.root, "scripts", Preset::Developer, "./test.sh"), "allow");
    // A part of a repository may be the workspace.
    assert_eq!(
        shop.judged_in(&shop.root.join("scripts"), "", Preset::Developer, "./test.sh"),
        "allow"
    );
}

/// C1: "A script … is a build where … and its name is an everyday one": others are committed as well.
#[test]
fn a_committed_script_of_another_name_is_asked_about() {
    let shop = Shop::new();
    for text in [
        "./scripts/deploy.sh",
        "python3 scripts/release.py",
        "./scripts/test-and-push.sh",
        "python3 scripts/test_migrate.py",
        "./scripts/build-prod.sh",
        "./scripts/all.sh",
        "./scripts/clean.sh",
        "python3 scripts/generate.py",
        "./scripts/testing.sh",
        "python3 scripts/x.py",
        "python3 manage.py flush",
        "./.github/test.sh",
    ] {
        shop.asks(text, "a script as it was committed");
    }
}

/// C1: "it is written for the program that runs it", and that program runs it where the command begins.
#[test]
fn a_committed_file_that_is_no_script_of_its_interpreter_is_asked_about() {
    let shop = Shop::new();
    shop.write("package.json", "{}");
    for text in [
        "bash docs/build.md",
        "sh docs/build.md",
        "python3 docs/test.txt",
        "bash scripts/check.py",
        "node scripts/test.sh",
        "bash tests/fixtures/test",
        "./tests/fixtures/test",
        "pnpm exec ./scripts/test.sh",
        "pnpm -r exec bash scripts/test.sh",
        "pnpm --filter a exec ./scripts/test.sh",
        "cd scripts && pnpm exec ./test.sh",
        "./scripts/check-in.sh",
        "bash scripts/test_reset_db.sh",
        "bash scripts/build-s3.sh",
        "bash scripts/format-disk.sh",
        "./scripts/test.sh teardown prod",
        "./scripts/test.sh destroy",
        "./scripts/test.sh origin main",
        "./scripts/test.sh x.example.com",
        "./scripts/test.sh --live",
        "./scripts/test.sh --endpoint x",
        "./scripts/test.sh --log-file src/a.txt",
        "./scripts/test.sh source scripts/x.py",
        "./scripts/test.sh scripts/x.py",
        "./scripts/test.sh ./new.sh",
    ] {
        shop.write("new.sh", "x");
        shop.asks(text, "what it runs, or where");
    }
}

/// C1: "its operands are plain files of the workspace, or plain names that are no program's", and nothing in front of the
/// script is code.
#[test]
fn what_a_script_or_its_interpreter_may_take_for_code_is_asked_about() {
    let shop = Shop::new();
    shop.write(".env", "x");
    symlink("/etc", shop.root.join("link")).unwrap();
    for words in [
        "rm -r src",
        "git push",
        "sh",
        "deploy",
        "src/../../x",
        "/etc/passwd",
        "~/x",
        "link/passwd",
        ".env",
        "package.json",
        ".git/config",
        "no/such/file",
        "'rm x'",
        "'$(id)'",
        "a=b",
        "src/*",
        "$HOME",
        "$(id)",
        "-",
        "--",
        "--output=x",
        "--output src/x",
        "--push",
        "--exec ls",
        "--require ./x.js",
        "--pre-command ls",
        "-c ls",
        "-m x",
        "-xy",
        "https://example.org/x",
        "host:x",
    ] {
        shop.asks(&format!("./scripts/test.sh {words}"), "what it may run or reach");
        shop.asks(&format!("python3 scripts/check.py {words}"), "what it may run or reach");
    }
    for text in [
        "node --require ./x.js scripts/lint-docs.mjs",
        "node -r ./x.js scripts/lint-docs.mjs",
        "node --import=./x.js scripts/lint-docs.mjs",
        "bun --preload ./x.ts scripts/build_all.ts",
        "python3 -m scripts.check",
        "python3 -c 'print(1)' scripts/check.py",
        "python3 -X importtime scripts/check.py",
        "python3 - scripts/check.py",
        "python3 scripts",
        "bash -i scripts/test.sh",
        "bash --rcfile x scripts/test.sh",
        "bash -s scripts/test.sh",
        "bash -c scripts/test.sh x",
        "bash scripts/check",
        ". scripts/test.sh",
        "source scripts/test.sh",
        "sudo ./scripts/test.sh",
    ] {
        shop.asks(text, "what the interpreter may run");
    }
    for text in [
        "cat data.csv | ./scripts/test.sh",
        "./scripts/test.sh < data.csv",
        "./scripts/test.sh <<< x",
        "ls | xargs ./scripts/test.sh",
        "find . -name '*.py' -exec python3 {} +",
        "find . -exec ./scripts/test.sh {} \\;",
    ] {
        shop.asks(text, "input");
    }
}

/// C1: "no variable changes what its interpreter loads".
#[test]
fn a_variable_that_changes_an_interpreter_is_asked_about() {
    let shop = Shop::new();
    for text in [
        "PYTHONPATH=src python3 scripts/check.py",
        "PYTHONSTARTUP=src/a.txt python3 scripts/check.py",
        "PYTHONHOME=src python3 scripts/check.py",
        "NODE_OPTIONS=--require=./x.js node scripts/lint-docs.mjs",
        "NODE_PATH=src node scripts/lint-docs.mjs",
        "NODE_PATH=src pnpm exec node scripts/lint-docs.mjs",
        "BASH_ENV=src/a.txt ./scripts/test.sh",
        "PATH=src:$PATH ./scripts/test.sh",
        "LD_PRELOAD=./x.so ./scripts/test.sh",
        "env PYTHONPATH=src python3 scripts/check.py",
        "env BASH_ENV=src/a.txt ./scripts/test.sh",
        "export PYTHONPATH=src; python3 scripts/check.py",
        "export BASH_ENV=src/a.txt && ./scripts/test.sh",
        "PYTHONPATH=src; python3 scripts/check.py",
        "set -a; SRC=x; ./scripts/test.sh",
        "alias python3=x; python3 scripts/check.py",
    ] {
        shop.asks(text, "a variable");
    }
}

/// C1: "nothing else in the text may write".
#[test]
fn a_script_that_the_same_text_may_change_is_asked_about() {
    let shop = Shop::new();
    for text in [
        "git add scripts/x.py && python3 scripts/check.py",
        "git checkout other && ./scripts/test.sh",
        "cp src/a.txt scripts/test.sh && ./scripts/test.sh",
        "echo x > scripts/test.sh; ./scripts/test.sh",
        "printf x >> scripts/test.sh && bash scripts/test.sh",
        "for i in 1 2; do ./scripts/test.sh; cp src/a.txt scripts/test.sh; done",
        "./scripts/test.sh | tee scripts/check.py; python3 scripts/check.py",
        "(cd scripts && mv x.py check.py); python3 scripts/check.py",
        "ln -sf x.py scripts/check.py; python3 scripts/check.py",
        "sed -i s/a/b/ scripts/test.sh; ./scripts/test.sh",
        "gcc -o dist/test.sh x.c && ./scripts/test.sh",
        "unknown-program; ./scripts/test.sh",
    ] {
        shop.asks(text, "another command that may write");
    }
    for text in ["mkdir -p out && ./scripts/test.sh", "black scripts && python3 scripts/check.py"] {
        let judged = shop.judged(text);
        assert!(judged.contains("another command of the text may change"), "{text}: {judged}");
    }
}

/// C1: "its bytes are those of the index and of `HEAD`", whatever git says about it.
#[test]
fn a_script_that_is_not_as_it_was_committed_is_asked_about() {
    const RUN: &str = "python3 scripts/check.py";
    let shop = Shop::new();
    let restore = |name: &str| {
        shop.write(name, TEXT);
        shop.allows(RUN, "the committed text");
    };
    shop.write("scripts/check.py", "changed\n");
    shop.asks(RUN, "a changed file");
    shop.git(&["add", "scripts/check.py"]);
    shop.asks(RUN, "a change that is staged");
    shop.write("scripts/check.py", TEXT);
    shop.asks(RUN, "another text in the index");
    shop.git(&["add", "scripts/check.py"]);
    restore("scripts/check.py");

    shop.write("scripts/check-new.py", TEXT);
    shop.asks("python3 scripts/check-new.py", "a new file");
    for options in [&["-N"][..], &[]] {
        shop.git(&[&["add"], options, &["scripts/check-new.py"]].concat());
        shop.asks("python3 scripts/check-new.py", "a new file in the index");
    }

    // Flags by which git does not look at a file.
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        shop.git(&["update-index", flag, "scripts/check.py"]);
        shop.allows(RUN, flag);
        shop.write("scripts/check.py", "changed\n");
        assert_eq!(shop.git(&["status", "--porcelain", "scripts/check.py"]), "", "{flag}");
        shop.asks(RUN, flag);
        shop.git(&["update-index", &flag.replace("--", "--no-"), "scripts/check.py"]);
        restore("scripts/check.py");
    }

    // The date and the size are those that git has seen.
    let about = fs::metadata(shop.root.join("scripts/check.py")).unwrap();
    shop.write("scripts/check.py", &TEXT.replace('a', "b"));
    let file = fs::File::options().write(true).open(shop.root.join("scripts/check.py")).unwrap();
    file.set_modified(about.modified().unwrap()).unwrap();
    shop.asks(RUN, "the same size and date");
    restore("scripts/check.py");

    // With a filter git takes a changed file for the committed one.
    shop.git(&["config", "filter.same.clean", &format!("printf '{}'", TEXT.replace('\n', "\\n"))]);
    shop.write(".git/info/attributes", "scripts/check.py filter=same\n");
    shop.write("scripts/check.py", "changed\n");
    assert_eq!(shop.git(&["diff", "--", "scripts/check.py"]), "");
    shop.asks(RUN, "a filter");
}

/// C1: "it is no link": what leads elsewhere, or has a second name, may be changed there.
#[test]
fn a_script_behind_a_link_is_asked_about() {
    let shop = Shop::new();
    symlink("x.py", shop.root.join("scripts/check-link.py")).unwrap();
    symlink("scripts", shop.root.join("tools")).unwrap();
    shop.commit();
    shop.asks("python3 scripts/check-link.py", "a committed link");
    shop.asks("python3 tools/check.py", "a folder that is a link");
    shop.asks("cd tools && python3 check.py", "a folder that is a link");
    shop.allows("python3 scripts/check.py", "no link");
    let script = shop.root.join("scripts/check.py");
    fs::hard_link(&script, shop.root.join("second")).unwrap();
    shop.asks("python3 scripts/check.py", "a second name");
    fs::remove_file(shop.root.join("second")).unwrap();
    fs::rename(&script, shop.root.join("scripts/moved")).unwrap();
    symlink("moved", &script).unwrap();
    shop.asks("python3 scripts/check.py", "a link to the committed text");
}

/// C1: what cannot be read as it is written here is not proved.
#[test]
fn a_repository_that_may_mean_other_objects_is_asked_about() {
    const RUN: &str = "./scripts/test.sh";
    type Change = (&'static str, fn(&Shop));
    let changes: &[Change] = &[
        ("a replaced commit", |shop| {
            let old = shop.git(&["rev-parse", "HEAD"]);
            let tree = shop.git(&["rev-parse", "HEAD^{tree}"]);
            let new = shop.git(&["commit-tree", "-m", "y", &tree]);
            shop.git(&["replace", &old, &new]);
        }),
        ("a packed replacement", |shop| {
            let old = shop.git(&["rev-parse", "HEAD:scripts/test.sh"]);
            let new = shop.git(&["rev-parse", "HEAD:src/a.txt"]);
            shop.git(&["replace", &old, &new]);
            shop.git(&["pack-refs", "--all"]);
        }),
        ("a graft", |shop| shop.write(".git/info/grafts", &shop.git(&["rev-parse", "HEAD"]))),
        ("another repository's objects", |shop| {
            shop.write(".git/objects/info/alternates", "/srv/objects\n");
        }),
        ("another working tree", |shop| {
            shop.git(&["config", "core.worktree", "/srv"]);
        }),
        ("an extension", |shop| shop.write(".git/config", "[extensions]\n\tother = true\n")),
        ("a table of references", |shop| {
            shop.write(".git/config", "[extensions]\n\trefStorage = reftable\n");
        }),
        ("hashes of another kind", |shop| {
            shop.write(".git/config", "[extensions]\n\tobjectFormat = sha256\n");
        }),
        ("settings that cannot be read", |shop| shop.write(".git/config", "[core\n")),
        ("no branch", |shop| shop.write(".git/HEAD", "ref: refs/heads/none\n")),
        ("a reference of another kind", |shop| {
            shop.git(&["update-ref", "refs/other/x", "HEAD"]);
            shop.write(".git/HEAD", "ref: refs/other/x\n");
        }),
        ("a way out of the references", |shop| {
            shop.write(".git/x", &shop.git(&["rev-parse", "HEAD"]));
            shop.write(".git/HEAD", "ref: refs/heads/../../x\n");
        }),
        ("no index", |shop| fs::remove_file(shop.root.join(".git/index")).unwrap()),
        ("a damaged index", |shop| shop.write(".git/index", "DIRC")),
        ("a split index", |shop| {
            shop.git(&["update-index", "--split-index"]);
        }),
        ("a missing object", |shop| {
            let id = shop.git(&["rev-parse", "HEAD:scripts/test.sh"]);
            let path = format!(".git/objects/{}/{}", &id[..2], &id[2..]);
            fs::remove_file(shop.root.join(path)).unwrap();
        }),
        ("a damaged object", |shop| {
            let id = shop.git(&["rev-parse", "HEAD^{tree}"]);
            let path = shop.root.join(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
            fs::remove_file(&path).unwrap();
            fs::write(&path, "x").unwrap();
        }),
        ("a large script", |shop| {
            shop.write("scripts/test.sh", &"# x\n".repeat(2 << 20));
            shop.commit();
        }),
        ("a repository that tools may write", |shop| {
            fs::rename(shop.root.join(".git"), shop.root.join("kept")).unwrap();
            fs::write(shop.root.join(".git"), "gitdir: kept\n").unwrap();
        }),
        ("objects that tools may write", |shop| {
            fs::rename(shop.root.join(".git/objects"), shop.root.join("kept")).unwrap();
            symlink("../kept", shop.root.join(".git/objects")).unwrap();
        }),
        ("a link to a repository", |shop| {
            let elsewhere = shop.root.parent().unwrap().join("kept");
            fs::rename(shop.root.join(".git"), &elsewhere).unwrap();
            symlink(&elsewhere, shop.root.join(".git")).unwrap();
        }),
        ("no repository", |shop| fs::remove_dir_all(shop.root.join(".git")).unwrap()),
    ];
    for (about, change) in changes {
        let shop = Shop::new();
        shop.allows(RUN, "a plain repository");
        change(&shop);
        shop.asks(RUN, about);
    }
    let shop = Shop::empty();
    shop.git(&["init", "-q", "--object-format=sha256"]);
    shop.write("scripts/test.sh", TEXT);
    shop.commit();
    shop.asks(RUN, "SHA-256");
}

/// A text that git stores as a difference from its other versions.
fn long(version: usize) -> String {
    let line = |at: usize| format!("echo line {at} of {}\n", if at == 7 { version } else { 0 });
    "#!/bin/sh\n".to_owned() + &(0..400).map(line).collect::<String>()
}

/// C1: objects are read as git stores them: each in a file, or in a pack as differences from one another.
#[test]
fn a_script_is_compared_however_git_stores_it() {
    const RUN: &str = "./scripts/test.sh";
    let shop = Shop::new();
    for version in 0..12 {
        shop.write("scripts/test.sh", &long(version));
        shop.write("scripts/check.py", &long(100 + version));
        shop.commit();
    }
    let check = |about: &str| {
        for version in [11, 5] {
            shop.write("scripts/test.sh", &long(version));
            shop.write("scripts/check.py", &long(100 + version));
            let commit = format!("HEAD~{}", 11 - version);
            let head = shop.git(&["rev-parse", "HEAD"]);
            shop.git(&["reset", "-q", &commit]);
            for run in [RUN, "python3 scripts/check.py"] {
                shop.allows(run, &format!("{about}, version {version}"));
            }
            shop.write("scripts/test.sh", &long(version + 1));
            shop.asks(RUN, about);
            shop.git(&["reset", "-q", &head]);
        }
        shop.write("scripts/test.sh", &long(11));
        shop.write("scripts/check.py", &long(111));
    };
    check("files");
    shop.git(&["-c", "pack.depth=50", "repack", "-adfq", "--depth=50", "--window=50"]);
    check("a pack");
    assert!(shop.differences() > 10);
    // Differences from objects that are named, in place of those at a distance.
    shop.git(&["-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"]);
    assert!(shop.differences() > 10);
    check("a pack with names");
    shop.git(&["pack-refs", "--all"]);
    check("packed references");
    shop.git(&["checkout", "-q", "--detach"]);
    check("a commit without a branch");
    for version in ["3", "4", "2"] {
        shop.git(&["update-index", &format!("--index-version={version}")]);
        check(version);
    }
    // A damaged pack proves nothing.
    let pack = shop.pack();
    let length = fs::metadata(&pack).unwrap().len();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&pack, vec![0xff; usize::try_from(length).unwrap()]).unwrap();
    shop.asks(RUN, "a damaged pack");
}

/// C1: a working tree has a `HEAD` and an index of its own.
#[test]
fn a_script_in_a_working_tree_is_compared_with_its_own_commit() {
    let shop = Shop::new();
    let beside = shop.root.parent().unwrap().join("beside");
    shop.git(&["worktree", "add", "-q", "-b", "fix", beside.to_str().unwrap()]);
    let run = |text: &str| shop.judged_in(&beside, "", Preset::Developer, text);
    assert_eq!(run("./scripts/test.sh"), "allow");
    fs::write(beside.join("scripts/test.sh"), "#!/bin/sh\nchanged\n").unwrap();
    assert!(run("./scripts/test.sh").starts_with("ask"));
    git(&beside, &["commit", "-qam", "y"]);
    assert_eq!(run("./scripts/test.sh"), "allow");
    shop.write("scripts/test.sh", "#!/bin/sh\nchanged\n");
    shop.asks("./scripts/test.sh", "the text of another working tree");
}
