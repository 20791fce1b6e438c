//! Rules about the source itself (floors, lengths, references, versions), checked on the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The floor of each module. A module uses only modules on lower floors (see ARCHITECTURE.md).
const FLOORS: &[(&str, u32)] = &[
    ("error", 0),
    ("args", 1),
    ("caught", 1),
    ("decision", 2),
    ("outcome", 3),
    ("call", 4),
    ("deferred", 5),
    ("message", 5),
    ("show", 6),
    ("middleware", 6),
    ("handler", 6),
    ("toolset", 6),
    ("model", 6),
    ("ledger", 6),
    ("layer", 7),
    ("gate", 7),
    ("seal", 7),
    ("tools", 8),
    ("turn", 9),
    ("agent", 10),
    ("ai_sdk", 11),
    ("cli", 11),
    ("genai", 11),
    ("postgres", 11),
    ("shell", 11),
    ("sqlite", 11),
    ("testing", 11),
    ("docs", 12),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a folder with one of these endings, as paths relative to the root, sorted.
fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            // Packages that npm installed are not part of the project.
            open.extend(
                entries.filter(|path| !path.is_symlink() && !path.ends_with("node_modules")),
            );
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

/// The text of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

fn floor(module: &str) -> u32 {
    let known = FLOORS.iter().find(|(name, _)| *name == module);
    known
        .unwrap_or_else(|| {
            panic!("module `{module}` has no floor: give it one here and in ARCHITECTURE")
        })
        .1
}

/// The top-level module that a file of `src` belongs to.
fn module(path: &str) -> &str {
    path.trim_start_matches("src/").split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// The modules that a text names after `crate::`, outside of comments.
fn uses(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1)).filter_map(|rest| {
        let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        name.starts_with(char::is_lowercase).then_some(name)
    })
}

#[test]
fn a_module_uses_only_modules_on_lower_floors() {
    for path in files("src", &[".rs"]).iter().filter(|path| *path != "src/lib.rs") {
        let own = module(path);
        let text = read(path);
        for used in uses(without_tests(&text)).filter(|used| *used != own) {
            assert!(floor(used) < floor(own), "{path}: `{own}` is not above `{used}`");
        }
        // Paths through the crate root would hide the floor that a name comes from.
        for line in without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"))
        {
            let upper =
                line.split("crate::").skip(1).any(|rest| rest.starts_with(char::is_uppercase));
            assert!(!upper, "{path}: name the module in `{line}`");
        }
    }
}

#[test]
fn architecture_names_every_module_on_its_floor() {
    let page = read("ARCHITECTURE.md");
    for (module, floor) in FLOORS.iter().filter(|(module, _)| *module != "docs") {
        let row = page.lines().find(|line| line.starts_with(&format!("| {floor} |")));
        assert!(
            row.is_some_and(|row| row.contains(&format!("`{module}`"))),
            "floor {floor} does not name `{module}`"
        );
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    for path in files("src", &[".rs"]).into_iter().chain(files("examples", &[".rs"])) {
        let text = read(&path);
        let lines = without_tests(&text).lines().count();
        assert!(lines <= 400, "{path} has {lines} lines without its tests");
        assert!(text.starts_with("//!"), "{path} does not begin with its page (`//!`)");
    }
}

#[test]
fn functions_are_short() {
    for path in files("src", &[".rs"]).into_iter().chain(files("examples", &[".rs"])) {
        let text = read(&path);
        let mut start: Option<(usize, usize, &str)> = None;
        for (number, line) in without_tests(&text).lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let code = line.trim_start();
            let is_fn = [
                "fn ",
                "pub fn ",
                "pub(crate) fn ",
                "pub(super) fn ",
                "async fn ",
                "pub async fn ",
            ]
            .iter()
            .chain(&["pub(crate) async fn ", "pub(super) async fn "])
            .any(|word| code.starts_with(word));
            match start {
                None if is_fn && !code.ends_with(';') => start = Some((number, indent, code)),
                Some((first, at, name)) if indent == at && code.starts_with('}') => {
                    let lines = number - first + 1;
                    assert!(lines <= 60, "{path}: {lines} lines: {name}");
                    start = None;
                }
                Some((_, at, _)) if indent == at && code.ends_with(';') => start = None,
                _ => {}
            }
        }
    }
}

#[test]
fn no_test_is_forgotten() {
    let list = read("tests/it/main.rs");
    for entry in fs::read_dir(root().join("tests/it")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name != "main" {
            assert!(
                list.contains(&format!("mod {name};")),
                "tests/it/main.rs does not list `{name}`"
            );
        }
    }
    for path in files("tests/it", &["mod.rs"]) {
        let folder = Path::new(&path).parent().unwrap().to_path_buf();
        let list = read(&path);
        for sibling in fs::read_dir(root().join(&folder)).unwrap() {
            let name = sibling.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
            assert!(
                name == "mod" || list.contains(&format!("mod {name};")),
                "{path} does not list `{name}`"
            );
        }
    }
}

/// All texts of the project except the tests, which have to name what they forbid.
fn texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for folder in ["src", "examples", "benches", "docs", ".ci"] {
        if root().join(folder).exists() {
            for path in files(folder, &[".rs", ".md", ".toml", "/run", "/test"]) {
                texts.insert(path.clone(), read(&path));
            }
        }
    }
    for path in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.toml",
        "deny.toml",
    ] {
        texts.insert(path.to_owned(), read(path));
    }
    texts
}

#[test]
fn nothing_is_left_undone_or_switched_off() {
    for (path, text) in texts() {
        for word in [
            "todo!(",
            "unimplemented!(",
            "FIXME",
            "XXX",
            "#[ignore",
            "```ignore",
            "```rust,ignore",
            "#[should_panic",
        ] {
            assert!(!text.contains(word), "{path} contains `{word}`");
        }
    }
    for path in files("tests", &[".rs"]).iter().filter(|path| *path != "tests/house.rs") {
        let text = read(path);
        for word in ["#[ignore", "#[should_panic", "todo!("] {
            assert!(!text.contains(word), "{path} contains `{word}`");
        }
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let registry = ["index.", "crates", ".io-"].concat();
    for (path, text) in texts() {
        for word in ["/work/", "/root/", "/home/", "../shared", registry.as_str()] {
            assert!(!text.contains(word), "{path} names `{word}`");
        }
    }
}

#[test]
fn versions_in_texts_are_the_crates_version() {
    let manifest = read("Cargo.toml");
    let field = |name: &str| {
        let line = manifest.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let (version, rust) = (field("version"), field("rust-version"));
    let short = version.rsplit_once('.').unwrap().0.to_owned();
    for (path, text) in texts() {
        for line in text.lines().filter(|line| {
            line.trim_start().starts_with("countersign = ") && !line.contains("path =")
        }) {
            let named = line.split('"').nth(1).unwrap_or_default();
            assert!(named == version || named == short, "{path}: {line}");
        }
    }
    assert!(
        read("README.md").contains(&format!("Rust {rust}")),
        "the README names the Rust version"
    );
    assert!(
        read("CHANGELOG.md").contains(&format!("## {version}")),
        "the CHANGELOG has a section for {version}"
    );
}

#[test]
fn every_example_is_listed_and_every_feature_explained() {
    let list = read("examples/README.md");
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name != "README" {
            assert!(
                list.contains(&format!("--example {name}")),
                "examples/README.md does not list `{name}`"
            );
        }
    }
    let manifest = read("Cargo.toml");
    let features = manifest.split("[features]").nth(1).unwrap().split("\n[").next().unwrap();
    let mut comment = false;
    let page = read("src/lib.rs");
    for line in features.lines().filter(|line| !line.is_empty()) {
        if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            assert!(comment || name == "default", "feature `{name}` has no comment");
            assert!(
                name == "default" || page.contains(&format!("| `{name}` |")),
                "src/lib.rs does not list `{name}`"
            );
        }
        comment = line.starts_with('#');
    }
}

#[test]
fn every_rule_named_in_the_code_is_on_the_rules_page() {
    let page = read("docs/rules.md");
    for (path, text) in texts() {
        for rest in text.split("(rule ").skip(1).chain(text.split("(rules ").skip(1)) {
            let named = rest.split(')').next().unwrap_or_default();
            for rule in named
                .split([',', ' ', ';'])
                .filter(|word| word.len() <= 3 && word.ends_with(|c: char| c.is_ascii_digit()))
            {
                assert!(
                    page.contains(&format!("**{rule}**")),
                    "{path} names rule {rule}, which docs/rules.md does not list"
                );
            }
        }
    }
}

/// The groups of PydanticAI's conformance table, with the number of rows in each.
const GROUPS: &[(char, usize)] = &[
    ('A', 19),
    ('B', 15),
    ('C', 15),
    ('D', 22),
    ('E', 29),
    ('F', 10),
    ('G', 9),
    ('H', 10),
    ('I', 14),
];

/// Whether a test file has a test of this name.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    });
    at.is_some_and(|at| {
        ["#[test]", "#[tokio::test"].iter().any(|test| lines[at - 1].starts_with(test))
    })
}

/// The reason why a reference in the column `held` leads nowhere, or `None` if it is valid.
fn missing(held: &str) -> Option<String> {
    if let Some(heading) = held.strip_prefix("difference: ") {
        let there = read("docs/pydantic.md").lines().any(|line| line == format!("## {heading}"));
        return (!there).then(|| format!("docs/pydantic.md has no heading `{heading}`"));
    }
    let Some((modules, test)) = held.rsplit_once("::") else {
        let there = ["scenarios", "expected"]
            .iter()
            .all(|folder| root().join(format!("tests/conformance/{folder}/{held}.json")).exists());
        return (!there).then(|| format!("there is no scenario `{held}`"));
    };
    let path = format!("tests/it/{}.rs", modules.replace("::", "/"));
    let there = root().join(&path).exists() && has_test(&read(&path), test);
    (!there).then(|| format!("{path} has no test `{test}`"))
}

#[test]
fn every_row_of_pydantic_ais_table_is_held_by_a_test_or_is_a_difference() {
    let table = read("tests/conformance/rows.tsv");
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let groups = GROUPS.iter().flat_map(|(group, rows)| std::iter::repeat_n(group, *rows));
    let expected: Vec<_> =
        groups.enumerate().map(|(n, group)| format!("{group}{}", n + 1)).collect();
    let ids: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(ids, expected, "each row once, in order");
    for row in &rows {
        let [id, behaviour, held] = row[..] else { panic!("three columns: {row:?}") };
        assert!(!behaviour.is_empty(), "{id} says nothing");
        for held in held.split("; ") {
            assert_eq!(missing(held), None, "{id}");
        }
    }
    for nothing in [
        "difference: Nothing",
        "no_scenario",
        "answers::no_test",
        "no_module::test",
        "answers::read",
    ] {
        assert!(missing(nothing).is_some(), "{nothing}");
    }
}
