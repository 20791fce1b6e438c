//! Programs as they were seen in a workspace full of traps, against the table.
//!
//! Each row is a form that was run and traced. One that ran code of the workspace may not count as reading, and one that
//! was quiet may not be asked about.

use std::fs;
use std::path::Path;

use countersign::decision::ToolDecision::{self, Allow, Ask};
use countersign_shell::{Classifier, Dialect, Effect, Preset, SearchPath, Workspace};

use super::classifier;

/// Forms that run what they are given, or install: each is asked about.
const CODE: &str = "
echo 'process.exit()' | tsx
cat x.mjs | tsx
tsx < x.mjs
tsx <<< 'process.exit()'
tsx
bun
deno
ts-node
d8
qjs
nodemon
electron
echo x | node
echo x | node --test
echo x | node --test tests
echo x | sh
echo x | bash
echo x | swift
echo x | mongosh
echo x | scala-cli
echo x | v
echo x | roc
echo x | sbt
echo x | python3
echo x | timeout 5 tsx
echo x | { tsx; }
echo x | (tsx)
echo x | bash -c tsx
echo x | if true; then node --test; fi
while read -r f; do node --test; done < x.mjs
echo x | make -f /dev/stdin
swift
mongosh
scala-cli
v
roc
yarn
yarn --silent
yarn -r
timeout 60 yarn
yarn | cat
bundle
bundler
pre-commit
perl -c x.pl
cargo audit fix
cargo miri run
ruff check --add-noqa
pytest --snapshot-update
vitest run -u
jest --updateSnapshot
gh pr view 1 -w
gh issue view 1 -w
gh pr view -w 1
service ../../tmp/x
service ../../tmp/x status
last -a -f .env
git log -L1,5:.env
git show -L1,5:.env
git log -L:name:.env
curl http://localhost:8788/asks
curl http://localhost:4040/api
";

/// Forms that run code of the workspace, or talk to a service: a developer may, a reader is asked.
const BUILDS: &str = "
shellcheck bin/run.sh
jest --help
jest --version
webpack --version
turbo --version
poetry --version
pdm --version
cargo --version
cargo --help
cargo --list
cargo help build
rustc --version
rustc --print cfg
rustdoc --version
rustfmt --version
rustup --version
rustup show active-toolchain
pip list
pip list --outdated
yarn --version
yarn --help
yarn list
yarn why x
yarn config get registry
yarn info x
pnpm --version
pnpm ls
pnpm list
pnpm why x
pnpm root
pnpm bin
pnpm licenses
pnpm query x
mvn --version
mvn --help
mvn -v
gradle --version
sbt --version
bazel --version
bundle --version
bundle list
mix --version
mix help
pytest --help
py.test --help
pytest --markers
pytest --fixtures
flake8 --version
ava --version
tox --version
tox --help
tox list
tox -l
tox -q run
uv tree
uv pip list
uv pip show x
uv pip tree
uv pip check
uv pip freeze
uv python find
uv lock --check
uv lock --check --offline
poetry show
poetry env info
pdm list
pdm info
pdm info --python
python3 -m json.tool x.json
python3 -m platform
python3 -m calendar
python3 -m this
python3 -m sysconfig
python3 -m locale
python3 -m site
python3 -m pip list
python3 -m pip show x
npm ls
npm root
npm prefix
npm explain x
npm query x
npm fund
npm help x
npm pkg get name
npm config get registry
npm view x
npm search x
npm outdated
npm audit
npm doctor
cargo info serde
cargo search serde
cargo install --list
terraform --version
terraform version
terraform validate
terraform fmt -check
terraform graph
terraform providers
terraform workspace list
pyright
pyright --version
turbo ls
knip --version
hg --version
hg --help
gem outdated
luarocks search x
gcloud --version
bq --version
gsutil --version
cpan --version
make
make -j4
jest
vitest
pytest
tsc
eslint
squeue
sinfo
scontrol show nodes
";

/// Forms that load nothing of the workspace: none is asked about.
const QUIET: &str = "
vitest --version
mocha --version
eslint --version
stylelint --version
prettier --version
vite --version
rollup --version
tsc --version
esbuild --version
oxlint --version
node --version
black --version
ruff --version
mypy --version
coverage --version
pylint --version
isort --version
nox --version
hatch --version
uv --version
pre-commit --version
sqlfluff --version
mkdocs --version
make --version
cmake --version
meson --version
ninja --version
gcc --version
javac --version
docker --version
gh --version
eslint --help
prettier --help
vite --help
tsc --help
esbuild --help
node --help
black --help
ruff --help
mypy --help
uv --help
python3 -I -m json.tool x.json
python3 -P -m json.tool x.json
hatch status
uv tool list
pre-commit validate-config
npm
git
cat README.md
git ls-files | head -3
git diff | grep x
sort < names.txt
wc -l <<< abc
git log --oneline | while read -r a; do echo \"$a\"; done
for f in a b; do echo \"$f\"; done | sort | uniq -c
cat a.sql | sed -n 1,5p | awk '{print $1}' | jq -R .
tail -5 build.log | xxd
xmllint --noout a.xml
shfmt -d bin
yq -P < x.yaml
cat < /dev/null
dpkg -l
apt-cache policy curl
node -c x.js
service nginx status
last -a -n 3
git log -L1,5:src/lib.rs
";

/// The forms that the lab has found to do more than the table claimed: the form, what it did, and what `reader` and
/// `developer` say now.
#[test]
fn a_form_that_did_more_than_the_table_claimed_stays_repaired() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/repaired.tsv");
    let repaired = fs::read_to_string(path).unwrap();
    for line in repaired.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let cells: Vec<_> = line.split('\t').collect();
        let [form, _, reader, developer] = *cells else { panic!("{line:?} has four cells") };
        for (preset, wanted) in [(Preset::Reader, reader), (Preset::Developer, developer)] {
            let wanted = match wanted {
                "asked" => Ask,
                "unasked" => Allow,
                other => panic!("{other:?} is neither `asked` nor `unasked`"),
            };
            judged(&classifier(preset), form, wanted);
        }
    }
}

fn forms(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty())
}

#[track_caller]
fn judged(classifier: &Classifier, form: &str, wanted: ToolDecision) {
    let judgement = classifier.judge(form, Dialect::Bash);
    assert_eq!(judgement.decision(), wanted, "{form:?}: {judgement}");
}

#[test]
fn code_that_a_program_takes_is_asked_about() {
    for preset in [Preset::Reader, Preset::Developer] {
        let classifier = classifier(preset);
        forms(CODE).for_each(|form| judged(&classifier, form, Ask));
    }
}

#[test]
fn a_reader_is_asked_about_forms_that_load_the_project() {
    for form in forms(BUILDS) {
        judged(&classifier(Preset::Developer), form, Allow);
        judged(&classifier(Preset::Reader), form, Ask);
    }
}

#[test]
fn forms_that_load_nothing_are_unasked() {
    for form in forms(QUIET) {
        judged(&classifier(Preset::Developer), form, Allow);
        judged(&classifier(Preset::Reader), form, Allow);
    }
}

fn real(root: &Path, preset: Preset) -> Classifier {
    Classifier::new(Workspace::new(root), preset).with_search_path(SearchPath::unchecked())
}

/// Writes files below a folder.
fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Forms of git that read the working tree or the history.
const GIT: &str = "
git status
git diff
git diff --stat
git diff HEAD~1
git diff --no-ext-diff --no-textconv
git grep x
git ls-files
git ls-files -m
git blame a.txt
git describe --dirty
git check-attr text a.txt
git check-ignore a.txt
git fsck
git clean -nd
git diff-index HEAD
git diff-files
git diff-tree -p HEAD
git submodule status
git log -p
git show
git log -S x
git log -G x
git reflog -p
git help log
git range-diff a...b
git hash-object a.txt
git apply --check fix.patch
";

#[test]
fn git_is_a_build_where_the_settings_of_the_repository_name_a_program() {
    let settings: &[&[(&str, &str)]] = &[
        &[(".git/config", "[core]\n\tfsmonitor = ./x\n")],
        &[(".git/config", "[core] FsMonitor=./x\n")],
        &[(".git/config", "[diff]\n\texternal = ./x\n")],
        &[(".git/config", "[diff \"a]b\"]\n\tcommand = ./x\n")],
        &[(".git/config", "[diff \"x\"]\n\ttextconv = ./x\n")],
        &[(".git/config", "[diff.x]\n\ttextconv = ./x\n")],
        &[(".git/config", "[filter \"x\"]\n\tprocess = ./x\n")],
        &[(".git/config", "[filter \"x\"]\n\tclean = ./x\n")],
        &[(".git/config", "[core]\n\thooksPath = hooks\n")],
        &[(".git/config", "[core]\n\tpager = ./x\n")],
        &[(".git/config", "[pager]\n\tlog = ./x\n")],
        &[(".git/config", "[man]\n\tviewer = x\n[man \"x\"]\n\tcmd = ./x\n")],
        &[(".git/config", "[man \"x\"]\n\tcmd = ./x\n")],
        &[(".git/config", "[help]\n\tbrowser = x\n")],
        &[(".git/config", "[browser \"x\"]\n\tcmd = ./x\n")],
        &[(".git/config", "[tar \"tar.gz\"]\n\tcommand = ./x\n")],
        &[(".git/config", "[core]\n\tfsmonitor = \\\n ./x\n")],
        &[(".git/config", "[include]\n\tpath = ../own\n"), ("own", "[core]\nfsmonitor = ./x\n")],
        &[
            (".git/config", "[includeIf \"gitdir:**\"]\n\tpath = own\n"),
            (".git/own", "[diff]\nexternal = ./x\n"),
        ],
        &[(".git/config", "[core]\n"), (".git/config.worktree", "[core]\nfsmonitor = ./x\n")],
        &[(".git/config", "[core]\n"), (".git/hooks/post-index-change", "#!/bin/sh\n")],
        &[(".git", "gitdir: own\n"), ("own/config", "[core]\nfsmonitor = ./x\n")],
        // To git, a blank at the end is a part of the path, and a blank of Unicode is none in its settings.
        &[
            (".git", "gitdir: own \n"),
            ("own /config", "[core]\nfsmonitor = ./x\n"),
            ("own/HEAD", ""),
        ],
        &[
            (".git/commondir", "common \n"),
            (".git/common /config", "[core]\nfsmonitor = ./x\n"),
            (".git/common/config", "[core]\n"),
        ],
        &[
            (".git/config", "[include]\n\tpath = own\u{a0}\n"),
            (".git/own\u{a0}", "[core]\nfsmonitor = ./x\n"),
            (".git/own", "[core]\n"),
        ],
        // With it, git runs what the repository of a sub-module names.
        &[(".git/config", "[diff]\n\tsubmodule = diff\n")],
        &[
            (".git", "gitdir: own/worktrees/a\n"),
            ("own/worktrees/a/commondir", "../..\n"),
            ("own/config", "[core]\nfsmonitor = ./x\n"),
        ],
    ];
    for files in settings {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), files);
        for form in forms(GIT) {
            judged(&real(folder.path(), Preset::Reader), form, Ask);
            judged(&real(folder.path(), Preset::Developer), form, Allow);
        }
    }
}

#[test]
fn settings_of_a_repository_that_are_too_large_count_as_naming_a_program() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[(".git/config", &"# x\n".repeat(40_000))]);
    judged(&real(folder.path(), Preset::Reader), "git status", Ask);
    fs::remove_file(folder.path().join(".git/config")).unwrap();
    fs::create_dir(folder.path().join(".git/config")).unwrap();
    judged(&real(folder.path(), Preset::Reader), "git status", Ask);
}

#[test]
fn git_reads_where_the_settings_of_the_repository_are_the_usual_ones() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = true\n[pager]\n\tlog = false\n\
                  [remote \"origin\"]\n\turl = https://code.example/a\n\
                  \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";
    write(folder.path(), &[(".git/config", config), (".git/hooks/pre-commit", "#!/bin/sh\n")]);
    for form in forms(GIT) {
        judged(&real(folder.path(), Preset::Reader), form, Allow);
    }
}

/// Each was seen to print lines of the file that it leads to, with git 2.47.
#[cfg(unix)]
#[test]
fn git_is_asked_about_where_its_folder_leads_out_of_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "machine db password hunter2\n").unwrap();
    let repository = || {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[(".git/config", "[core]\n"), ("a.txt", "a\n")]);
        folder
    };
    let links = [
        "BISECT_LOG",
        "packed-refs",
        "shallow",
        "info/attributes",
        "objects/info/alternates",
        "objects/pack/x.idx",
        "refs/heads/x/y",
        "rebase-merge/done",
        "worktrees/a/gitdir",
    ];
    for name in links {
        let folder = repository();
        let link = folder.path().join(".git").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        for preset in [Preset::Reader, Preset::Developer] {
            judged(&real(folder.path(), preset), "git status", Ask);
            judged(&real(folder.path(), preset), "git bisect log", Ask);
        }
        // One that leads nowhere may lead there later.
        fs::remove_file(&secret).unwrap();
        judged(&real(folder.path(), Preset::Reader), "git status", Ask);
        fs::write(&secret, "machine db password hunter2\n").unwrap();
    }
    let elsewhere = outside.path().join("other/.git");
    fs::create_dir_all(&elsewhere).unwrap();
    for (file, text) in [
        (".git", format!("gitdir: {}\n", elsewhere.display())),
        (".git/commondir", format!("{}\n", elsewhere.display())),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[(file, &text)]);
        judged(&real(folder.path(), Preset::Developer), "git log", Ask);
    }
    for text in ["[core]\n\tattributesFile = ../x\n", "[fsck]\n\tskipList = ../x\n"] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[(".git/config", text)]);
        judged(&real(folder.path(), Preset::Reader), "git check-attr -a a.txt", Ask);
        judged(&real(folder.path(), Preset::Reader), "git fsck", Ask);
    }
}

#[cfg(unix)]
#[test]
fn links_in_the_folder_of_git_that_it_does_not_print_or_that_stay_inside_are_none_to_ask_about() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("hook"), "#!/bin/sh\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[(".git/config", "[core]\n"), (".git/hooks/x", ""), (".git/refs/heads/main", "")],
    );
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join(".git").join(name)).unwrap();
    };
    link(&outside.path().join("hook"), "hooks/pre-commit");
    link(Path::new("refs/heads/main"), "HEAD");
    // Emacs makes such a link beside a message that is being written.
    link(Path::new("ann@host.1:2"), ".#COMMIT_EDITMSG");
    for form in forms(GIT) {
        judged(&real(folder.path(), Preset::Reader), form, Allow);
    }
    // A working tree whose repository is elsewhere, with a way back, as `git worktree add` makes it.
    let own = outside.path().join("main/.git/worktrees/a");
    fs::create_dir_all(&own).unwrap();
    let tree = tempfile::tempdir().unwrap();
    write(tree.path(), &[(".git", &format!("gitdir: {}\n", own.display()))]);
    fs::write(own.join("gitdir"), format!("{}\n", tree.path().join(".git").display())).unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
    judged(&real(tree.path(), Preset::Reader), "git status", Allow);
}

#[test]
fn a_database_with_a_journal_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a.db", ""), ("b.db", ""), ("b.db-journal", "")]);
    let classifier = real(folder.path(), Preset::Developer);
    judged(&classifier, "sqlite3 a.db .tables", Allow);
    judged(&classifier, "sqlite3 b.db .tables", Ask);
    judged(&classifier, "sqlite3 -readonly ./b.db 'select 1'", Ask);
}

/// `brew deps x.rb` runs the file.
#[test]
fn the_name_of_a_package_that_is_a_file_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("x", "")]);
    let classifier = real(folder.path(), Preset::Reader);
    judged(&classifier, "brew deps y", Allow);
    judged(&classifier, "brew deps x", Ask);
    judged(&classifier, "brew deps y.rb", Ask);
}

#[test]
fn a_bare_repository_in_the_workspace_is_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            (".git/config", "[core]\n"),
            ("vendor/lib/HEAD", "ref: refs/heads/main\n"),
            ("vendor/lib/objects/x", ""),
            ("vendor/lib/config", "[core]\nfsmonitor = ./x\n"),
        ],
    );
    for form in ["git -C vendor/lib status", "cd vendor/lib && git status"] {
        judged(&real(folder.path(), Preset::Developer), form, Ask);
    }
}

/// Git takes a folder for a repository if `HEAD` is there, as a link that leads nowhere, too, and if `objects` and `refs` are in
/// the folder that `commondir` names.
#[cfg(unix)]
#[test]
fn a_folder_with_a_head_of_its_own_may_be_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            (".git/config", "[core]\n"),
            ("linked/objects/x", ""),
            ("linked/refs/x", ""),
            ("linked/config", "[core]\nfsmonitor = ./x\n"),
            ("parted/HEAD", "ref: refs/heads/main\n"),
            ("parted/commondir", "../common\n"),
            ("common/config", "[core]\nfsmonitor = ./x\n"),
            ("plain/a", ""),
        ],
    );
    std::os::unix::fs::symlink("refs/heads/main", folder.path().join("linked/HEAD")).unwrap();
    for name in ["linked", "parted"] {
        for form in ["git -C NAME status", "cd NAME && git diff HEAD~1 HEAD"] {
            judged(&real(folder.path(), Preset::Reader), &form.replace("NAME", name), Ask);
        }
    }
    judged(&real(folder.path(), Preset::Reader), "git -C plain status", Allow);
}

#[test]
fn a_registry_that_the_workspace_names_is_another_place() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            ".npmrc",
            "registry=https://evil.example/npm\n",
            &[
                "npm view x",
                "npm search x",
                "npm outdated",
                "npm audit",
                "npm doctor",
                "npm ls",
                "npm root",
            ],
        ),
        (".npmrc", "@own:registry = https://evil.example/npm\n", &["pnpm view x", "npm fund"]),
        (
            ".yarnrc.yml",
            "npmRegistryServer: \"https://evil.example/npm\"\n",
            &["yarn info x", "yarn outdated"],
        ),
        (
            ".venv/pip.conf",
            "[global]\nindex-url = https://evil.example/pip\n",
            &["pip index versions x", "pip list"],
        ),
        (
            ".cargo/config.toml",
            "[registries.own]\nindex = \"https://evil.example/x\"\n",
            &["cargo search x", "cargo info x"],
        ),
    ];
    for (file, text, forms) in rows {
        let folder = tempfile::tempdir().unwrap();
        for form in *forms {
            judged(&real(folder.path(), Preset::Developer), form, Allow);
        }
        write(folder.path(), &[(file, text)]);
        for form in *forms {
            let judgement = real(folder.path(), Preset::Developer).judge(form, Dialect::Bash);
            assert_eq!(judgement.decision(), Ask, "{file} {form}: {judgement}");
            let host = judgement.parts()[0].effects().iter().find_map(Effect::host);
            assert_eq!(host.as_deref(), Some("evil.example"), "{form}");
        }
        fs::write(folder.path().join(file), "# registry = x\nengine-strict=true\n").unwrap();
        for form in *forms {
            judged(&real(folder.path(), Preset::Developer), form, Allow);
        }
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_workspace_are_not_followed_unasked() {
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), &[("own.rs", "x")]);
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    write(&root, &[("src/a.rs", "x"), ("docs/b.md", "x"), (".git/config", "[core]\n")]);
    let follow = [
        "rg -L x",
        "rg --follow x src",
        "grep -R x .",
        "grep -nR x src",
        "grep --dereference-recursive x src",
        "fd -L a",
        "fd --follow a",
        "find -L src -name '*.rs'",
        "find src -follow",
        "diff -r src docs",
        "find src -exec grep -n x {} +",
        "find src -print0 | xargs -0 cat",
        "find src ! -type f -print0 | xargs -0 cat",
        "find src -type f -o -name '*.rs' -print0 | xargs -0 cat",
        "find src -type l -print0 | xargs -0 cat",
        "git ls-files -z | xargs -0 cat",
        "git ls-files -z | sort -z | xargs -0 cat",
        "cd src && git ls-files -z | xargs -0 cat",
    ];
    let plain = [
        "find src -type f -print0 | xargs -0 cat",
        "find src -type f -exec grep -n x {} +",
        "find src -name '*.rs' -exec wc -l {} +",
        "find src -print0 | xargs -0 wc -l",
        "fd -0 -t f a | xargs -0 cat",
        "rg -l0 x | xargs -0 cat",
        "grep -rlZ x src | xargs -0 cat",
        "grep -rn x .",
        "rg x",
        "grep -R x docs",
    ];
    let developer = || real(&root, Preset::Developer);
    // Links that stay inside are no reason to ask.
    symlink(root.join("docs"), root.join("src/inner")).unwrap();
    let inside = follow.iter().filter(|form| !form.contains("-o -name"));
    inside.chain(&plain).for_each(|form| judged(&developer(), form, Allow));
    symlink(outside.path().join("own.rs"), root.join("src/link.rs")).unwrap();
    for form in follow {
        judged(&developer(), form, Ask);
    }
    for form in plain {
        judged(&developer(), form, Allow);
    }
    judged(&developer(), "cat src/link.rs", Ask);

    // The link has the name that the program makes of the word.
    let implied = [
        "zcat -f docs/notes",
        "zgrep x docs/notes",
        "zless docs/notes",
        "unzip -p docs/all",
        "zdiff docs/log.gz",
        "diff docs src/b.md",
        "sdiff src/b.md docs/",
    ];
    write(&root, &[("src/b.md", "x"), ("docs/log.gz", "x")]);
    fs::remove_file(root.join("src/link.rs")).unwrap();
    for form in implied {
        judged(&developer(), form, Allow);
    }
    fs::remove_file(root.join("docs/b.md")).unwrap();
    for name in ["notes.gz", "all.zip", "log", "b.md"] {
        symlink(outside.path().join("own.rs"), root.join("docs").join(name)).unwrap();
    }
    for form in implied {
        judged(&developer(), form, Ask);
    }
}

/// A list that adds to entries leaves out a program that nothing describes, so a slip in a name would go unseen.
#[test]
fn every_program_whose_forms_are_described_is_in_the_table() {
    let programs = countersign_shell::Programs::built_in();
    let known: std::collections::HashSet<&str> = programs.names().collect();
    let text = include_str!("../../../crates/shell/src/programs/forms.txt");
    let headers = text.lines().filter_map(|line| line.strip_prefix("[+"));
    let names = headers.flat_map(|it| it.split([']', ' ']).next().unwrap().split('|'));
    let unknown: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
    assert_eq!(unknown, [""; 0]);
}

/// C1: "The help of a sub-command is allowed where the program is known to do nothing else", and not where another word stands in
/// front of it, which the program may pass on.
#[test]
fn the_help_of_a_sub_command_is_none_of_its_use() {
    let judge = |text: &str| classifier(Preset::Developer).judge(text, Dialect::Bash).decision();
    for text in
        ["git push --help", "gh pr create --help", "docker run -h", "cargo publish --help 2>&1"]
    {
        assert_eq!(judge(text), Allow, "{text}");
    }
    for text in [
        "gh pr create --title --help",
        "docker run ubuntu --help",
        "docker compose run web --help",
        "git push -- --help",
        "git push --help origin",
        "git \"$x\" --help",
        "gh extension-of-mine --help",
        "npm run deploy --help",
        "yarn deploy --help",
        "adb reboot --help",
        "npm exec tsc --help",
        "git frob -h",
    ] {
        assert_eq!(judge(text), Ask, "{text}");
    }
    let with = |table: &str, text: &str| {
        let programs = countersign_shell::Programs::built_in().with(table).unwrap();
        let reader = classifier(Preset::Reader).with_programs(programs);
        reader.judge(text, Dialect::Bash).decision()
    };
    let known = "[frob]\nflags: -v\n[frob show]\noperands: read...\n[frob drop]\ndoes: asks drops";
    assert_eq!(with(known, "frob show --help"), Allow);
    assert_eq!(with(known, "frob drop --help"), Ask, "it may not look at its options");
    assert_eq!(with(known, "frob show -h"), Ask, "a letter may be another option");
    assert_eq!(with(&format!("{known}\n[+frob]\nhelps: drop/"), "frob drop all -h"), Allow);
    let script = format!(
        "{known}\n[+frob]\nhelp: reads\n[frob run]\n[frob run x]\ndoes: builds\noperands: text"
    );
    assert_eq!(
        with(&script, "frob run --help"),
        Ask,
        "nothing is known of `run`: it may be a script"
    );
    assert_eq!(with(&script, "frob run x --help"), Ask, "it is a build");
    let builds = format!("{known}\n[frob make]\ndoes: builds");
    assert_eq!(with(&builds, "frob show --help"), Ask, "it may load the project before");
}

/// C1: "The help of a sub-command is allowed where the program is known to do nothing else": `git log --help` starts the viewer that
/// the settings name, as `git help log` does.
#[test]
fn a_page_of_git_is_shown_by_what_the_settings_name() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[(".git/HEAD", "ref: refs/heads/main\n"), (".git/config", "[core]\n")]);
    let judge = || {
        let reader = real(folder.path(), Preset::Reader);
        ["git help log", "git log --help"].map(|it| reader.judge(it, Dialect::Bash).decision())
    };
    assert_eq!(judge(), [Allow, Allow]);
    write(folder.path(), &[(".git/config", "[man \"x\"]\n\tcmd = ./x\n")]);
    assert_eq!(judge(), [Ask, Ask]);
}

#[test]
fn an_entry_that_says_nothing_about_a_form_does_not_allow_it() {
    let judge = |table: &str, text: &str| {
        let programs = countersign_shell::Programs::built_in().with(table).unwrap();
        let developer = classifier(Preset::Developer).with_programs(programs);
        developer.judge(text, Dialect::Bash).decision()
    };
    let reads = "[frob]\noperands: read...\nflags: -v";
    let builds = "[frob]\ndoes: builds\noperands: read...\nflags: -v";
    let commands = "[frob]\nflags: -v\n[frob show]\noperands: read...";
    assert_eq!(judge(reads, "frob -v"), Allow);
    for table in [builds, commands] {
        assert_eq!(judge(table, "frob"), Ask, "{table}");
        assert_eq!(judge(table, "frob -v"), Ask, "{table}");
        assert_eq!(judge(&format!("{table}\n[+frob]\nbare: builds"), "frob -v"), Allow);
    }
    assert_eq!(judge("[frob]", "frob"), Ask);
    for table in [reads, builds] {
        assert_eq!(judge(table, "cat a | frob a"), Ask, "{table}");
        assert_eq!(judge(table, "frob a < a"), Ask, "{table}");
        assert_eq!(judge(&format!("{table}\nstdin: text"), "cat a | frob a"), Allow);
        assert_eq!(judge(&format!("{table}\n[+frob]\nstdin: text"), "cat a | frob a"), Allow);
    }
    let error =
        |table: &str| countersign_shell::Programs::built_in().with(table).unwrap_err().to_string();
    assert_eq!(error("[+ls]\nflags: -x"), "programs, line 2: `flags` cannot be added to an entry");
    assert_eq!(
        error("[x]\nstdin: code"),
        "programs, line 2: `code` is not what a program takes its input for"
    );
    assert_eq!(
        error("[x]\nbare: asks x"),
        "programs, line 2: `asks x` is not what a program does without operands"
    );
    assert_eq!(
        error("[x]\nhelp: reads -h"),
        "programs, line 2: `-h` is neither `--help` nor `--version`"
    );
}
