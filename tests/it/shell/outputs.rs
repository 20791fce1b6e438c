//! The outputs of builds: what they would replace is asked about (rule C1).

use std::fs;
use std::path::Path;
use std::process::Command;

use countersign_shell::{Classifier, Dialect, Preset, Programs, SearchPath, Workspace};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{allows, asks, classifier};

/// A workspace with files, in which git tracks the first of them.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(tracked: &[&str], others: &[&str]) -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        place.git(&["init", "-q"]);
        tracked.iter().for_each(|name| place.write(name, b"text of a person\n"));
        if !tracked.is_empty() {
            place.git(&[&["add", "-f", "--"], tracked].concat());
        }
        others.iter().for_each(|name| place.write(name, b"text of a person\n"));
        place
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn git(&self, args: &[&str]) {
        let names = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let ran =
            Command::new("git").args(names).args(args).current_dir(self.root()).output().unwrap();
        assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn asked(&self, text: &str) -> Option<String> {
        let workspace = Workspace::new(self.root());
        let classifier =
            Classifier::new(workspace, Preset::Developer).with_search_path(SearchPath::unchecked());
        let judgement = classifier.judge(text, Dialect::Bash);
        (!judgement.decision().is_allow()).then(|| judgement.to_string())
    }

    #[track_caller]
    fn allows(&self, text: &str) {
        assert_eq!(self.asked(text), None, "{text}");
    }

    #[track_caller]
    fn asks(&self, text: &str) {
        assert!(self.asked(text).is_some(), "{text} is allowed");
    }
}

/// Each way in which a builder is told where to write, with the output as `OUT`.
const FILES: &[&str] = &[
    "lessc x.less OUT",
    "sass x.scss OUT",
    "sass x.scss:OUT",
    "sass x.scss:dist/a.css y.scss:OUT",
    "csso x.css OUT",
    "typst compile x.typ OUT",
    "terser a.mjs -o OUT",
    "esbuild a.mjs --outfile=OUT",
    "uglifyjs a.mjs -o OUT",
    "rollup -o OUT a.mjs",
    "postcss a.pcss -o OUT",
    "tailwindcss -i a.pcss -o OUT",
    "gcc x.c -o OUT",
    "gcc -oOUT x.c",
    "gcc -MD -MF OUT -c x.c",
    "go build -o OUT .",
    "go test -coverprofile=OUT ./...",
    "tsc --outFile OUT",
    "tsc --tsBuildInfoFile OUT",
    "rustc -o OUT a.rs",
    "nasm -o OUT a.asm",
    "coverage xml -o OUT",
    "pytest --junitxml=OUT",
    "pytest --cov --cov-report=xml:OUT",
    "phpunit --log-junit OUT",
    "dot -Tsvg -o OUT a.dot",
    "dot -Tsvg -oOUT a.dot",
    "madge --image OUT src",
    "depcruise --output-to OUT src",
    "gcovr --html OUT",
    "ghc -o OUT a.hs",
    "nim c -o:OUT a.nim",
];

const FOLDERS: &[&str] = &[
    "sphinx-build docs OUT",
    "sphinx-build -b html docs OUT",
    "vite build --outDir OUT",
    "vite build --outDir=OUT",
    "playwright test --output=OUT",
    "mkdocs build -d OUT",
    "mkdocs build --site-dir=OUT",
    "tsup --clean --out-dir OUT",
    "jekyll build -d OUT",
    "mdbook build -d OUT",
    "hugo --destination OUT",
    "zola build --output-dir OUT",
    "ng build --output-path OUT",
    "next build --dist-dir OUT",
    "astro build --outDir OUT",
    "typedoc --out OUT src/index.ts",
    "babel src -d OUT",
    "swc src -d OUT",
    "esbuild src/x.ts --outdir=OUT",
    "tsc --outDir OUT",
    "tsc --declarationDir OUT",
    "webpack --output-path OUT",
    "cargo test --target-dir=OUT",
    "cmake -B OUT",
    "cmake -S . -BOUT",
    "jest --coverage --coverageDirectory OUT",
    "pytest --basetemp=OUT",
    "phpunit --coverage-html OUT",
    "coverage html -d OUT",
    "c8 --report-dir OUT mocha",
    "javac -d OUT A.java",
    "kotlinc -d OUT a.kt",
    "rustc --out-dir OUT a.rs",
    "pdflatex -output-directory=OUT x.tex",
    "dotnet build -o OUT",
    "meson setup OUT",
];

/// Nothing is known about these places but their names.
#[test]
fn an_output_that_is_named_as_peoples_files_are_is_asked_about() {
    let protected =
        [".git/config", "CLAUDE.md", ".github/workflows/x.yml", "package.json", "Cargo.toml"];
    for form in FILES {
        for out in protected.into_iter().chain([
            "README.md",
            "LICENSE",
            "src/main.rs",
            "src/main.js",
            "../x",
        ]) {
            asks(&form.replace("OUT", out));
        }
        for out in ["dist/x", "target/deep/x", "packages/a/build/x"] {
            allows(&form.replace("OUT", out));
        }
    }
    for form in FOLDERS {
        for out in protected.into_iter().chain([".", "./", "src", "docs", "src/..", "..", ".git"]) {
            asks(&form.replace("OUT", out));
        }
        for out in ["dist", "target/x", "site", "packages/a/build"] {
            allows(&form.replace("OUT", out));
        }
    }
}

#[test]
fn an_output_that_exists_is_asked_about_unless_it_is_a_folder_of_builds() {
    let files = ["notes", "packages/a/notes", "out/README.md", "src/main"];
    let folders = ["src", "packages", "assets/new", "out"];
    let place = Place::new(
        &["notes", "packages/a/notes", "out/README.md", "src/main", "src/index.ts"],
        &["mine", "assets/new/x", "dist/x", "dist/deep/x", "packages/a/dist/x", ".gitignore"],
    );
    place.write(".gitignore", b"mine\n");
    for form in FILES {
        for out in files.into_iter().chain(["mine"]) {
            place.asks(&form.replace("OUT", out));
        }
        for out in ["dist/x", "dist/new", "packages/a/dist/x", "app", "new/x"] {
            place.allows(&form.replace("OUT", out));
        }
    }
    for form in FOLDERS {
        for out in folders.into_iter().chain([".", "src/.."]) {
            place.asks(&form.replace("OUT", out));
        }
        for out in ["dist", "dist/deep", "packages/a/dist", "new", "build"] {
            place.allows(&form.replace("OUT", out));
        }
    }
}

#[test]
fn a_folder_of_builds_that_is_a_link_counts_as_what_it_leads_to() {
    let place = Place::new(&["src/index.ts"], &["real/x"]);
    std::os::unix::fs::symlink("src", place.root().join("dist")).unwrap();
    std::os::unix::fs::symlink("real", place.root().join("build")).unwrap();
    place.asks("vite build --outDir dist");
    place.asks("esbuild a.mjs --outfile=dist/index.ts");
    place.asks("vite build --outDir build");
}

#[test]
fn daily_builds_stay_unasked_where_their_outputs_exist() {
    let place = Place::new(
        &["src/a.ts", "src/a.test.ts", "tests/x.py", "main.c", "x.ts", "docs/index.md", "Makefile"],
        &[
            "dist/x.js",
            "target/x/y",
            "target/report.xml",
            "site/index.html",
            "build/CMakeCache.txt",
            "coverage.out",
            "main.o",
        ],
    );
    place.write("app", b"\x7fELF\x02\x01");
    for text in [
        "vite build",
        "vite build --outDir dist",
        "tsc --outDir dist",
        "tsc x.ts",
        "esbuild src/a.ts --outfile=dist/x.js",
        "cargo test --target-dir target/x",
        "cargo test name",
        "mkdocs build -d site",
        "pytest --junitxml=target/report.xml",
        "pytest tests/x.py",
        "pytest tests/x.py::test_a",
        "jest src/a.test.ts",
        "vitest run src/a.test.ts",
        "eslint src",
        "eslint --fix src",
        "prettier --write src docs",
        "gcc main.c",
        "gcc main.c -o app",
        "gcc -c main.c -o main.o",
        "go build ./...",
        "go build -o app .",
        "go build -o /dev/null ./...",
        "go test -coverprofile=coverage.out ./...",
        "make test",
        "cmake -B build",
        "cmake --build build",
        "cd build && cmake --build .",
        "cmake --build .",
        "sass src/a.scss",
        "typst compile paper.typ",
        "mocha --reporter spec",
        "golangci-lint run ./...",
    ] {
        place.allows(text);
    }
}

#[test]
fn programs_that_linkers_wrote_are_replaced_unless_git_tracks_them() {
    let place = Place::new(&["tracked"], &["script"]);
    place.write("tracked", b"\x7fELF\x02\x01");
    place.write("script", b"#!/bin/sh\n");
    place.asks("gcc main.c -o tracked");
    place.asks("gcc main.c -o script");
}

#[test]
fn formatters_rewrite_their_operands() {
    let place = Place::new(&["src/a.py", "src/a.ts"], &[]);
    for text in [
        "black src/a.py",
        "ruff format src",
        "eslint --fix src/a.ts",
        "gofmt -w src",
        "rustfmt src/a.rs",
    ] {
        place.allows(text);
    }
}

/// Returns `true` if an output of a build in a folder is asked about.
fn asks_for(place: &Place, folder: &str) -> bool {
    place.asked(&format!("tsc --outDir {folder}")).is_some()
}

/// The index is read in each version, and compared with what git lists.
#[test]
fn the_index_is_read_as_git_reads_it() {
    for version in ["2", "3", "4"] {
        let long = format!("{}/dist", "long".repeat(50));
        let tracked =
            ["dist/a.js", "build-x/a", "a/target/b/c", "a/b", "zz/out/ü", &format!("{long}/x")];
        let others = ["out/x", "a/dist/x", "target/x", "build/x", "a/coverage/x", "zz/tmp/x"];
        let place = Place::new(&tracked, &others);
        if version == "3" {
            place.write("a/gen/later", b"x");
            place.git(&["add", "-N", "a/gen/later"]);
        }
        // A name that is longer than the field for its length.
        let name = format!("{}x", "n/".repeat(2100));
        let blob = format!("100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,{name}");
        place.git(&["update-index", "--add", "--cacheinfo", &blob]);
        place.git(&["update-index", "--index-version", if version == "4" { "4" } else { "2" }]);
        let index = fs::read(place.root().join(".git/index")).unwrap();
        assert_eq!(index[7], version.as_bytes()[0] - b'0');
        let folders = [
            "dist",
            "out",
            "a/target",
            "a/target/b",
            "a/dist",
            "target",
            "build",
            "a/coverage",
            "a/gen",
            "zz/out",
            "zz/tmp",
            &long,
        ];
        for folder in folders {
            let listed = Command::new("git")
                .args(["ls-files", "-z", "--", folder])
                .current_dir(place.root())
                .output();
            let tracked = !listed.unwrap().stdout.is_empty();
            let exists = place.root().join(folder).exists();
            assert_eq!(asks_for(&place, folder), tracked && exists, "version {version}: {folder}");
        }
    }
}

#[test]
fn repositories_in_other_forms_are_read() {
    // A worktree, whose `.git` is a file.
    let place = Place::new(&["dist/a.js", "a"], &[]);
    place.git(&["commit", "-qm", "x"]);
    place.git(&["worktree", "add", "-q", "out/tree"]);
    fs::create_dir_all(place.root().join("out/tree/build")).unwrap();
    assert!(asks_for(&place, "out/tree"), "a repository in a folder of builds");
    assert!(asks_for(&place, "out/tree/dist"));
    assert!(!asks_for(&place, "out/tree/build"));
    // A pointer to nowhere, and one that is none.
    for pointer in ["gitdir: /nowhere\n", "x", ""] {
        place.write("out/tree/.git", pointer.as_bytes());
        assert!(asks_for(&place, "out/tree/build"), "{pointer:?}");
    }
    // No repository, and one without an index.
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("dist")).unwrap();
    let place = Place { folder };
    assert!(!asks_for(&place, "dist"));
    place.git(&["init", "-q"]);
    assert!(!asks_for(&place, "dist"));
    // Hashes of 32 bytes.
    let folder = TempDir::new().unwrap();
    let place = Place { folder };
    place.git(&["init", "-q", "--object-format=sha256"]);
    place.write("dist/a", b"x");
    place.write("build/a", b"x");
    place.git(&["add", "dist"]);
    assert!(asks_for(&place, "dist"));
    assert!(!asks_for(&place, "build"));
    // The entries stand in another file.
    let place = Place::new(&["dist/a"], &["build/a"]);
    place.git(&["update-index", "--split-index"]);
    assert!(asks_for(&place, "dist"));
    assert!(asks_for(&place, "build"), "an index of two files is not read");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever stands in an index, nothing panics; what is no index counts as tracking everything.
    #[test]
    fn a_damaged_index_tracks_everything(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let place = Place::new(&[], &["dist/a"]);
        let index = place.root().join(".git/index");
        for start in [&b""[..], b"DIRC\0\0\0\x02\0\0\0\x03", b"DIRC\0\0\0\x04\0\0\0\x01"] {
            fs::write(&index, [start, &bytes].concat()).unwrap();
            prop_assert!(asks_for(&place, "dist"));
        }
    }

    #[test]
    fn a_changed_or_cut_index_does_no_harm(at in 0usize..400, byte in any::<u8>(), version in 0usize..2) {
        let place = Place::new(&["a", "dist/b/c", "src/d"], &["build/x"]);
        place.git(&["update-index", "--index-version", ["2", "4"][version]]);
        let index = place.root().join(".git/index");
        let whole = fs::read(&index).unwrap();
        let at = at % whole.len();
        fs::write(&index, &whole[..at]).unwrap();
        prop_assert!(asks_for(&place, "dist"), "cut at {}", at);
        let mut changed = whole.clone();
        changed[at] = byte;
        let is_same = changed == whole;
        fs::write(&index, changed).unwrap();
        // Git itself says whether a changed index still tracks what is in the folder. Where it refuses to read it, everything
        // counts as tracked.
        let tracked = Command::new("git")
            .args(["-c", "core.fsmonitor=false", "ls-files", "dist"])
            .current_dir(place.root())
            .output()
            .unwrap();
        let asks = asks_for(&place, "dist");
        prop_assert!(!is_same || asks, "an index that is as it was");
        if tracked.status.success() && !tracked.stdout.is_empty() {
            prop_assert!(asks, "at {} {}: git tracks {:?}", at, byte, tracked.stdout);
        }
    }
}

/// The clear rule of the format: a path of no described part may be written, and options have telling names.
#[test]
fn a_path_that_the_table_does_not_call_an_input_is_an_output() {
    let judge = |table: &'static str, text: &str| {
        let programs = Programs::built_in().with(table).unwrap();
        let classifier = classifier(Preset::Developer).with_programs(programs);
        classifier.judge(text, Dialect::Bash).decision().is_allow()
    };
    let open = "[frob]\ndoes: builds\nbare: builds\noperands: {build|src*|@path}...\nvalues: --x=text --outDir|--dest|-outputdir|--report-file|--js_out=text --out-format=text";
    assert!(judge(open, "frob build dist/x"));
    assert!(!judge(open, "frob src"));
    assert!(!judge(open, "frob x.less README.md"));
    assert!(!judge(open, "frob x.less .git/config"));
    for option in ["--outDir", "--dest", "-outputdir", "--report-file", "--js_out"] {
        assert!(!judge(open, &format!("frob {option}=src")), "{option}");
        assert!(judge(open, &format!("frob {option}=dist/x")), "{option}");
    }
    assert!(judge(open, "frob --x=src --out-format=json"));
    let inputs = "[frob]\ndoes: builds\nmarks: inputs\noperands: {build|src*|@path}...";
    assert!(judge(inputs, "frob src x.less README.md"));
    let reads = "[frob]\noperands: {build|src*|@path}...";
    assert!(judge(reads, "frob src x.less README.md"));
}
