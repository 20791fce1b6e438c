//! Rules about the source itself (floors, lengths, references, versions), checked on the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floor of each module. A module uses only modules on lower floors (see ARCHITECTURE.md).
const FLOORS: &[(&str, u32)] = &[
    ("error", 0),
    ("args", 1),
    ("panic", 1),
    ("telemetry", 1),
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
    ("layer", 7),
    ("gate", 7),
    ("tools", 8),
    ("turn", 9),
    ("ledger", 10),
    ("agent", 11),
    ("seal", 11),
    ("ai_sdk", 12),
    ("genai", 12),
    ("inbox", 12),
    ("postgres", 12),
    ("shell", 12),
    ("sqlite", 12),
    ("terminal", 12),
    ("testing", 12),
    ("config", 13),
    ("program_files", 13),
    ("mcp", 14),
    ("reader", 14),
    ("rules", 15),
    ("hook", 16),
    ("docs", 17),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
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
    // The program is a crate of its own, which sees the public items alone.
    let is_library = |path: &&String| *path != "src/lib.rs" && !path.starts_with("src/bin/");
    for path in files("src", &[".rs"]).iter().filter(is_library) {
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
fn files_are_short_and_have_a_description() {
    for path in files("src", &[".rs"]).into_iter().chain(files("examples", &[".rs"])) {
        let text = read(&path);
        let code = without_tests(&text).lines().map(str::trim);
        let lines = code.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        assert!(lines <= 500, "{path} has {lines} lines of code without its tests");
        assert!(text.starts_with("//!"), "{path} does not begin with its page (`//!`)");
    }
}

/// What is public and documented in fewer than four words: items, fields of public enums and methods of public traits.
fn short_docs(text: &str) -> Vec<String> {
    let (mut found, mut doc, mut within, mut attribute) = (Vec::new(), String::new(), false, false);
    for line in without_tests(text).lines() {
        let code = line.trim();
        if let Some(words) = code.strip_prefix("///") {
            doc += words;
        } else if attribute || code.starts_with("#[") {
            attribute = !code.ends_with(']');
        } else {
            if !doc.is_empty()
                && doc.split_whitespace().count() < 4
                && (within || code.starts_with("pub "))
            {
                found.push(format!("`{}` of `{code}`", doc.trim()));
            }
            doc.clear();
            if line.starts_with("pub enum ") || line.starts_with("pub trait ") {
                within = !line.ends_with('}');
            } else if line.starts_with('}') {
                within = false;
            }
        }
    }
    found
}

#[test]
fn what_is_public_is_explained_in_four_words_or_more() {
    for path in files("src", &[".rs"]) {
        let found = short_docs(&read(&path));
        assert!(found.is_empty(), "{path}: too short: {found:#?}");
    }
    let text = "/// Why.\npub fn why() {}\n/// How.\nfn how() {}\npub enum When {\n    /// Now.\n    Now,\n}\n";
    assert_eq!(short_docs(text).len(), 2);
}

/// Files that name a document that is not there. The list only shrinks.
const NAMES_NOTHING: &[(&str, &str)] = &[];

/// The documents that a text names, by a link, a path in `docs`, or a section, and that are not there.
fn missing_documents(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let prose: Vec<_> = match path.ends_with(".rs") {
        true => text.lines().filter(|line| line.trim().starts_with("//")).collect(),
        false => text.lines().collect(),
    };
    let prose = prose.join("\n");
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let files =
        links.filter(|link| link.contains('.') && !link.contains(':') && !link.contains('('));
    let words = prose.split(|c: char| !(c.is_alphanumeric() || "./-_".contains(c)));
    let pages = words.filter(|word| word.starts_with("docs/") && word.ends_with(".md"));
    let sections = prose.split(" §").filter_map(|before| before.rsplit([' ', '(', '\n']).next());
    let shouted = |word: &&str| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase());
    let sections = sections.filter(shouted).map(|name| format!("{name}.md"));
    let mut missing: Vec<_> = files.chain(pages).map(str::to_owned).chain(sections).collect();
    missing.retain(|name| !root().join(name).exists() && !root().join(folder).join(name).exists());
    missing
}

#[test]
fn every_document_that_is_named_is_there() {
    for (path, text) in texts() {
        let mut missing = missing_documents(&path, &text);
        for (_, name) in NAMES_NOTHING.iter().filter(|(file, _)| *file == path) {
            let at = missing.iter().position(|missing| *missing == format!("{name}.md"));
            missing.remove(at.unwrap_or_else(|| panic!("NAMES_NOTHING: {path} is in order")));
        }
        assert!(missing.is_empty(), "{path} names {missing:?}");
    }
    for text in ["// (DESIGN §1)", "// see `docs/none.md`", "// [here](none.md)"] {
        assert_eq!(missing_documents("src/lib.rs", text).len(), 1, "{text}");
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

/// Test modules about more than one module of `src`. The table in `tests/it/main.rs` says what each is for.
const ACROSS_MODULES: [&str; 12] = [
    "agents",
    "assistant",
    "conformance",
    "corpus",
    "examples",
    "main",
    "program",
    "properties",
    "pydantic",
    "readers",
    "secrecy",
    "proposals",
];

#[test]
fn integration_tests_mirror_the_modules_of_src() {
    for entry in fs::read_dir(root().join("tests/it")).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        let module = ["src/NAME", "src/NAME.rs"]
            .iter()
            .any(|path| root().join(path.replace("NAME", &name)).exists());
        assert!(
            module || name == "support" || ACROSS_MODULES.contains(&name.as_str()),
            "tests/it/{name} is named after no module of src"
        );
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
fn no_work_is_left_undone_or_switched_off() {
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

/// Words without a noun behind them, in comments, messages, pages and names. CONTRIBUTING lists what to write instead.
const VAGUE: [&str; 15] = [
    "whoever",
    "somebody",
    "nobody",
    "anybody",
    "everybody",
    "what waits",
    "what it came to",
    "what came of",
    "goes on",
    "going on",
    "gone on",
    "went on",
    "once more",
    "by now",
    "as it should be",
];

/// The account `nobody` of the operating system, and a role of that name.
const NOBODYS_ACCOUNT: [&str; 2] =
    ["tests/it/postgres/connecting.rs", "tests/it/support/postgres.rs"];

#[test]
fn texts_and_names_avoid_vague_words() {
    let folders = ["src", "tests", "examples", "benches", "docs", ".ci", "fuzz"];
    let endings = [".rs", ".md", ".mjs", ".js", ".ts", ".tsx", ".html", ".tsv", ".sh", "/test"];
    let pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(str::to_owned);
    for path in folders.iter().flat_map(|folder| files(folder, &endings)).chain(pages) {
        if path == "tests/house.rs" || path.contains("/dist/") || path.contains("/target/") {
            continue;
        }
        // Without comment signs and line ends, and with names as words, so that a phrase is found everywhere.
        let lines = read(&path).to_lowercase().replace('_', " ");
        let lines = lines.lines().map(|line| line.trim_start().trim_start_matches(['/', '!', '*']));
        let text = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        for vague in VAGUE {
            let exempt = vague == "nobody" && NOBODYS_ACCOUNT.contains(&&*path);
            let found = text.match_indices(vague).find(|(at, _)| {
                let before = text[..*at].chars().next_back();
                let after = text[at + vague.len()..].chars().next();
                ![before, after].into_iter().flatten().any(char::is_alphanumeric)
            });
            assert!(exempt || found.is_none(), "{path} says `{vague}`");
        }
    }
}

#[test]
fn the_project_names_no_machine_or_registry() {
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
                [format!("--example {name}"), format!("cargo run -p {name}")]
                    .iter()
                    .any(|command| list.contains(command)),
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

/// The statements of a text that import, each in one line, with how visible what they import is.
fn imports(text: &str) -> Vec<(bool, String)> {
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join(" ");
    let statements = code.split(';').filter_map(|statement| {
        let at = statement.rfind("use ")?;
        let before = statement[..at].trim_end();
        let is_pub = before.ends_with("pub") || before.ends_with(')');
        let starts = before.is_empty() || is_pub || before.ends_with(['}', ']', ';']);
        starts.then(|| (is_pub, statement[at + 4..].split_whitespace().collect::<String>()))
    });
    statements.collect()
}

/// The paths of an import, without its braces.
fn paths(import: &str) -> Vec<String> {
    let Some((before, rest)) = import.split_once('{') else { return vec![import.to_owned()] };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut part, mut found) = (0, String::new(), Vec::new());
    for c in inner.chars().chain([',']) {
        match c {
            ',' if depth == 0 => found.push(std::mem::take(&mut part)),
            c => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                part.push(c);
            }
        }
    }
    let parts = found.iter().filter(|part| !part.is_empty());
    parts.flat_map(|part| paths(&format!("{before}{part}"))).collect()
}

/// A file or a folder, as a part of the folder that it is in.
fn part(path: &str, folder: &str) -> String {
    let rest = path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/');
    rest.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned()
}

/// Which parts of a folder name which others; what `mod.rs` re-exports is where it is defined.
fn imports_within(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let paths_of = |text: &str| -> Vec<(bool, String)> {
        let all = imports(text).into_iter();
        all.flat_map(|(is_pub, it)| paths(&it).into_iter().map(move |path| (is_pub, path)))
            .collect()
    };
    let files: Vec<_> = files(folder, &[".rs"]);
    let parts: BTreeSet<_> = files.iter().map(|path| part(path, folder)).collect();
    let root = format!("{folder}/mod.rs");
    let top = if files.contains(&root) { read(&root) } else { String::new() };
    let mut exported = BTreeMap::new();
    for (_, path) in paths_of(without_tests(&top)) {
        let names: Vec<_> = path.trim_start_matches("self::").split("::").collect();
        if let [first, .., last] = names[..] {
            let own = parts.contains(first).then(|| first.to_owned());
            exported.insert(last.to_owned(), own);
        }
    }
    let within = format!("crate::{}::", folder.trim_start_matches("src/").replace('/', "::"));
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &files {
        let (own, text) = (part(path, folder), read(path));
        let is_direct = path.matches('/').count() == folder.matches('/').count() + 1;
        let mut named = Vec::new();
        for (is_pub, path) in paths_of(without_tests(&text)) {
            let path = match own.as_str() {
                "mod" if !is_pub => Some(path.trim_start_matches("self::")),
                "mod" => None,
                _ if is_direct && path.starts_with("super::") => path.strip_prefix("super::"),
                _ => path.strip_prefix(&within),
            };
            named.extend(path.map(|path| path.split("::").next().unwrap_or(path).to_owned()));
        }
        for line in without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"))
        {
            let inline = line.split("super::").skip(1).filter(|_| is_direct && own != "mod");
            named.extend(inline.map(|rest| {
                rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap().to_owned()
            }));
        }
        for name in named {
            let target = match exported.get(&name) {
                _ if parts.contains(&name) => Some(name),
                Some(target) => target.clone(),
                None if own == "mod" || name.is_empty() => None,
                None => Some("mod".to_owned()),
            };
            graph.entry(own.clone()).or_default().extend(target.filter(|it| *it != own));
        }
    }
    graph
}

/// What a part leads to.
fn reached<'g>(
    graph: &'g BTreeMap<String, BTreeSet<String>>,
    from: &'g String,
) -> BTreeSet<&'g String> {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(at) = open.pop() {
        open.extend(graph.get(at).into_iter().flatten().filter(|next| seen.insert(*next)));
    }
    seen
}

/// The parts that lead back to themselves, together with those that they do so through.
fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let all: BTreeMap<_, _> = graph.keys().map(|from| (from, reached(graph, from))).collect();
    let circle = |from: &String| {
        let back = |to: &&&String| all.get(**to).is_some_and(|reached| reached.contains(from));
        all[from].iter().filter(back).map(|to| (*to).clone()).collect::<Vec<_>>()
    };
    graph.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn the_files_of_a_folder_do_not_import_each_other_in_a_circle() {
    let mut folders: Vec<_> = files("src", &[".rs"])
        .iter()
        .filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned()))
        .collect();
    folders.dedup();
    let mut found = BTreeSet::new();
    for folder in folders.iter().filter(|folder| *folder != "src") {
        found.extend(
            circles(&imports_within(folder)).into_iter().map(|circle| (folder.clone(), circle)),
        );
    }
    assert_eq!(found, BTreeSet::new(), "files of a folder that import each other in a circle");
}

/// The features that a text asks for with `cfg`.
fn features_asked_for(text: &str) -> Vec<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let cfgs = code.filter(|line| line.contains("cfg") && line.contains("feature = \""));
    let named = cfgs.flat_map(|line| line.split("feature = \"").skip(1));
    named.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn a_module_knows_no_feature_of_the_floors_above() {
    for path in files("src", &[".rs"]).iter().filter(|path| *path != "src/lib.rs") {
        let text = read(path);
        for feature in features_asked_for(without_tests(&text)) {
            let above = FLOORS.iter().find(|(name, _)| *name == feature.replace('-', "_"));
            let is_below = above.is_some_and(|(_, above)| *above >= floor(module(path)));
            assert!(
                !is_below || module(path) == "docs",
                "{path}: `cfg` of the feature `{feature}`"
            );
        }
    }
    assert_eq!(features_asked_for("#[cfg(any(feature = \"a\", feature = \"b\"))]"), ["a", "b"]);
}

/// The names that a module keeps to the crate: what its files declare with `pub(crate)`, and what it re-exports so.
fn private_names(module: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let single = format!("src/{module}.rs");
    let mut paths = files(&format!("src/{module}"), &[".rs"]);
    paths.extend(root().join(&single).exists().then_some(single));
    for path in &paths {
        let text = read(path);
        for line in without_tests(&text).lines() {
            let Some(rest) = line.strip_prefix("pub(crate) ") else { continue };
            let mut words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let kinds =
                ["async", "const", "enum", "fn", "mod", "static", "struct", "trait", "type"];
            let name = words.find(|word| !kinds.contains(word)).unwrap_or_default();
            names.insert(name.to_owned());
        }
        let statements = without_tests(&text).split("pub(crate) use ").skip(1);
        for statement in statements.filter_map(|rest| rest.split(';').next()) {
            let compact: String = statement.split_whitespace().collect();
            names.extend(self::paths(&compact).iter().filter_map(|path| {
                let last = path.rsplit("::").next()?;
                (last != "*").then(|| last.to_owned())
            }));
        }
    }
    names
}

/// The modules that use only public items of the rest of the crate.
const ADAPTERS: &[&str] =
    &["ai_sdk", "genai", "postgres", "shell", "sqlite", "terminal", "testing"];

#[test]
fn an_adapter_imports_only_what_is_public() {
    let private: BTreeMap<_, _> =
        FLOORS.iter().map(|(module, _)| (*module, private_names(module))).collect();
    let mut seen = 0;
    for path in ADAPTERS.iter().flat_map(|adapter| files(&format!("src/{adapter}"), &[".rs"])) {
        let text = read(&path);
        for (_, import) in imports(without_tests(&text)) {
            for named in paths(&import) {
                let parts: Vec<_> = named.split("::").collect();
                let ["crate", used, rest @ ..] = &parts[..] else { continue };
                if *used == module(&path) {
                    continue;
                }
                seen += 1;
                let kept = rest.iter().find(|name| private[used].contains(**name));
                assert_eq!(kept, None, "{path}: `{named}` is private to the crate");
            }
        }
    }
    assert!(seen > 50 && private["call"].contains("CallRecord"), "the check sees imports");
}

#[test]
fn a_name_stands_for_one_type() {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("src", &[".rs"]) {
        let text = read(&path);
        for line in without_tests(&text).lines() {
            let code = line.trim_start();
            let is_public = code.starts_with("pub");
            let is_private = !is_public || code.starts_with("pub(super)");
            let code = code
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            let words = ["struct ", "enum ", "trait ", "union "];
            // A `type` within an implementation is an associated one.
            let alias =
                code.strip_prefix("type ").filter(|_| code.len() == line.len() || is_public);
            let Some(rest) = words.iter().find_map(|word| code.strip_prefix(word)).or(alias) else {
                continue;
            };
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if !(is_private && ["Inner", "State"].contains(&name)) {
                types.entry(name.to_owned()).or_default().insert(path.to_owned());
            }
        }
    }
    let several = types.iter().filter(|(_, files)| files.len() > 1);
    assert_eq!(
        several.collect::<Vec<_>>(),
        [],
        "names of several types: give each a more exact one"
    );
}

/// The types whose methods are in more than two files of their module, with the number of files. A file has the methods
/// for one use of an agent (`Agent`), one kind of row (`Ledger`), one part of a response (`RunLoop`), one part of the
/// grammar (`Lexer`, `Simple`) or one transport (`Shared`).
const SPREAD: [(&str, usize); 6] =
    [("Agent", 3), ("Ledger", 4), ("Lexer", 3), ("RunLoop", 3), ("Shared", 3), ("Simple", 5)];

#[test]
fn the_methods_of_a_type_are_in_at_most_two_files_of_a_module() {
    let mut found: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for path in files("src", &[".rs"]) {
        let text = read(&path);
        for line in without_tests(&text).lines().filter(|line| line.starts_with("impl")) {
            let code = line.trim_start_matches("impl").trim_end_matches(['{', ' ']);
            if code.contains(" for ") {
                continue;
            }
            let name = code.rsplit(' ').find(|word| word.starts_with(char::is_uppercase));
            let name = name.unwrap_or_default().split('<').next().unwrap_or_default();
            let of = (module(&path).to_owned(), name.to_owned());
            found.entry(of).or_default().insert(path.to_owned());
        }
    }
    let spread = found.iter().filter(|(_, files)| files.len() > 2);
    let spread: Vec<_> = spread.map(|((_, name), files)| (name.as_str(), files.len())).collect();
    let allowed = |(name, files): &(&str, usize)| {
        SPREAD.iter().any(|(allowed, most)| allowed == name && files <= most)
    };
    let more: Vec<_> = spread.iter().filter(|it| !allowed(it)).collect();
    assert_eq!(more, [&("", 0); 0], "put the methods of these types into two files");
}

/// The names that a text makes public with `pub use`, each with the path it is taken from.
fn reexports(text: &str) -> Vec<(String, String)> {
    let code: String = without_tests(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join(" ");
    let mut found = Vec::new();
    for statement in code.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let (from, names) = match statement.split_once('{') {
            Some((from, names)) => (from, names.trim_end_matches('}')),
            None => statement.rsplit_once("::").unwrap_or(("", statement)),
        };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        found.extend(names.map(|name| (from.trim_end_matches("::").to_owned(), name.to_owned())));
    }
    found
}

#[test]
fn the_crate_root_has_few_names_and_other_items_have_one_path() {
    let root = reexports(&read("src/lib.rs"));
    assert!(
        root.len() <= 35,
        "the crate root has {} names, and at most 35 are allowed",
        root.len()
    );
    for path in files("src", &[".rs"]).iter().filter(|path| *path != "src/lib.rs") {
        let text = read(path);
        for (from, name) in reexports(&text) {
            assert!(!from.starts_with("crate"), "{path}: `{name}` has a path in `{from}` already");
            let public =
                without_tests(&text).lines().any(|line| line == format!("pub mod {from};"));
            assert!(!public, "{path}: `{name}` is in the public module `{from}`, and again here");
        }
    }
}

#[test]
fn a_getter_has_the_name_of_what_it_reads() {
    for path in files("src", &[".rs"]) {
        let text = read(&path);
        let getter = text.lines().find(|line| {
            // `get_info`, `get_prompt` and `get_tool` are methods of traits of `rmcp`.
            line.contains("fn get_")
                && !["fn get_info(", "fn get_prompt(", "fn get_tool("]
                    .iter()
                    .any(|it| line.contains(it))
        });
        assert!(getter.is_none(), "{path}: `x()` reads and `with_x()` sets, in {getter:?}");
    }
}
