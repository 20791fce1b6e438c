//! Rules about the source itself (tiers, lengths, references, versions), checked on the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The tier of each module of the core. A module uses only modules of lower tiers (see ARCHITECTURE.md). The crates
/// around the core depend on each other in one direction, which cargo holds.
const TIERS: &[(&str, u32)] = &[
    ("error", 0),
    ("args", 1),
    ("panic", 1),
    ("telemetry", 1),
    ("decision", 2),
    ("origin", 2),
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
    ("testing", 12),
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

/// The crates around the core, as folders of `crates`.
fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// The source files of the core and of the crates around it.
fn sources() -> Vec<String> {
    let folders = crates().into_iter().map(|name| format!("crates/{name}/src"));
    ["src".to_owned()]
        .into_iter()
        .chain(folders)
        .flat_map(|folder| files(&folder, &[".rs"]))
        .collect()
}

/// The text of a file before its tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

/// A line of code without its visibility (`pub`, `pub(crate)`, `pub(in crate::shell)`).
fn without_visibility(code: &str) -> &str {
    let code = code.trim_start();
    match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(code, |(_, rest)| rest),
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => code,
    }
}

/// Returns `true` if a line begins a function, of any visibility and kind.
fn is_function(code: &str) -> bool {
    let mut code = without_visibility(code);
    let kinds = ["const ", "async ", "unsafe ", "extern \"C\" "];
    while let Some(rest) = kinds.iter().find_map(|kind| code.strip_prefix(kind)) {
        code = rest;
    }
    code.starts_with("fn ")
}

#[test]
fn every_visibility_and_every_kind_of_function_is_seen() {
    for code in ["fn a()", "pub fn a()", "pub(in crate::b) const fn a()", "pub(crate) async fn a()"]
    {
        assert!(is_function(code), "{code}");
    }
    assert!(!is_function("pub const A: fn() = b;") && !is_function("pub(super) struct A;"));
    assert_eq!(without_visibility("pub(in super::super) enum A {"), "enum A {");
}

fn tier(module: &str) -> u32 {
    let known = TIERS.iter().find(|(name, _)| *name == module);
    known
        .unwrap_or_else(|| {
            panic!("module `{module}` has no tier: give it one here and in ARCHITECTURE")
        })
        .1
}

/// The module of the core that a file of `src` belongs to, or the crate that it belongs to.
fn module(path: &str) -> &str {
    let within = path.trim_start_matches("src/").trim_start_matches("crates/");
    within.split('/').next().unwrap_or_default().trim_end_matches(".rs")
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
fn a_module_uses_only_modules_of_lower_tiers() {
    for path in files("src", &[".rs"]).iter().filter(|path| *path != "src/lib.rs") {
        let own = module(path);
        let text = read(path);
        for used in uses(without_tests(&text)).filter(|used| *used != own) {
            assert!(tier(used) < tier(own), "{path}: `{own}` is not above `{used}`");
        }
        // Paths through the crate root would hide the tier that a name comes from.
        for line in without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"))
        {
            let upper =
                line.split("crate::").skip(1).any(|rest| rest.starts_with(char::is_uppercase));
            assert!(!upper, "{path}: name the module in `{line}`");
        }
    }
}

#[test]
fn architecture_names_every_module_in_its_tier_and_every_crate() {
    let page = read("ARCHITECTURE.md");
    for name in crates() {
        let row = format!("| `crates/{name}` |");
        assert!(page.lines().any(|line| line.starts_with(&row)), "no row begins with {row}");
    }
    for (module, tier) in TIERS {
        let row = page.lines().find(|line| line.starts_with(&format!("| {tier} |")));
        assert!(
            row.is_some_and(|row| row.contains(&format!("`{module}`"))),
            "tier {tier} does not name `{module}`"
        );
    }
}

#[test]
fn files_are_short_and_have_a_description() {
    for path in sources().into_iter().chain(files("examples", &[".rs"])) {
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

/// The public enums of a text whose comment has no reason for being exhaustive, and that may not grow.
fn enums_without_a_reason(text: &str) -> Vec<&str> {
    let (mut above, mut found) = (String::new(), Vec::new());
    for line in without_tests(text).lines() {
        if let Some(rest) = line.strip_prefix("pub enum ") {
            let is_closed = !above.contains("non_exhaustive");
            if is_closed && !above.contains("xhaustive on purpose") {
                found.push(rest.split([' ', '<']).next().unwrap_or_default());
            }
        }
        match line.starts_with("///") || line.starts_with([' ', '#', ')']) {
            true => above += line,
            false => above.clear(),
        }
    }
    found
}

/// An enum either grows without breaking those who use it, or has to break them: then it says why.
#[test]
fn a_public_enum_may_grow_or_says_why_not() {
    let all: Vec<_> = sources().iter().map(read).collect();
    let found: Vec<_> = all.iter().flat_map(|text| enums_without_a_reason(text)).collect();
    assert_eq!(found, Vec::<&str>::new(), "no `#[non_exhaustive]`, and no `Exhaustive on purpose`");
    assert_eq!(enums_without_a_reason("/// A.\npub enum A {\n    B,\n}\n"), ["A"]);
    assert!(enums_without_a_reason("#[non_exhaustive]\npub enum A {}\n").is_empty());
}

#[test]
fn what_is_public_is_explained_in_four_words_or_more() {
    for path in sources() {
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
    for path in sources().into_iter().chain(files("examples", &[".rs"])) {
        let text = read(&path);
        let mut start: Option<(usize, usize, &str)> = None;
        for (number, line) in without_tests(&text).lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let code = line.trim_start();
            let is_fn = is_function(code);
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
    let roots = ["main", "doors"];
    let lists = roots.map(|root| read(format!("tests/it/{root}.rs")));
    for entry in fs::read_dir(root().join("tests/it")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !roots.contains(&&*name) {
            let count = lists.iter().filter(|list| list.contains(&format!("mod {name};"))).count();
            let expected = if name == "support" { 2 } else { 1 };
            assert_eq!(count, expected, "tests/it/main.rs and doors.rs list `{name}`");
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

/// Test modules about more than one module or crate. The table in `tests/it/main.rs` says what each is for.
const ACROSS_MODULES: [&str; 14] = [
    "agents",
    "assistant",
    "conformance",
    "corpus",
    "doors",
    "examples",
    "main",
    "program",
    "properties",
    "pydantic",
    "readers",
    "secrecy",
    "surfaces",
    "proposals",
];

#[test]
fn integration_tests_mirror_the_modules_of_the_core_and_the_crates() {
    for entry in fs::read_dir(root().join("tests/it")).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        let is_module = ["src/NAME", "src/NAME.rs", "crates/cli/src/NAME"]
            .iter()
            .any(|path| root().join(path.replace("NAME", &name)).exists());
        let module = is_module || crates().contains(&name.replace('_', "-"));
        assert!(
            module || name == "support" || ACROSS_MODULES.contains(&name.as_str()),
            "tests/it/{name} is named after no module and no crate"
        );
    }
}

/// All texts of the project except the tests, which have to name what they forbid.
fn texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for folder in ["src", "crates", "examples", "benches", "docs", ".ci"] {
        if root().join(folder).exists() {
            for path in files(
                folder,
                &[".rs", ".md", ".toml", "/run", "/test", "/long", "/nightly", "/places", "/steps"],
            ) {
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

/// The words of the code of a text, and those of the examples in its documentation.
fn code_words(text: &str) -> [BTreeSet<String>; 2] {
    let (mut code, mut examples, mut is_example) = (BTreeSet::new(), BTreeSet::new(), false);
    for line in text.lines().map(str::trim_start) {
        let comment = line.starts_with("//");
        is_example ^= comment && line.contains("```");
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        match comment {
            false => code.extend(words.map(str::to_owned)),
            true if is_example => examples.extend(words.map(str::to_owned)),
            true => {}
        }
    }
    [code, examples]
}

/// The names of a crate's public functions, and the words of its code.
#[derive(Default)]
struct CrateCode {
    functions: BTreeSet<String>,
    words: BTreeSet<String>,
}

/// Every crate, and the words of all tests and examples: those of packages, of pages and of documentation. The program is a
/// caller of the library in its package.
fn callers() -> (BTreeMap<String, CrateCode>, BTreeSet<String>) {
    let (mut crates, mut outside) = (BTreeMap::<String, CrateCode>::new(), BTreeSet::new());
    for path in sources() {
        let folder = path.split("/src/").next().filter(|folder| folder.starts_with("crates/"));
        let folder = match path.contains("/src/commands/") {
            true => "the program",
            false => folder.unwrap_or("src"),
        };
        let text = read(&path);
        let of_crate = crates.entry(folder.to_owned()).or_default();
        let lines = without_tests(&text).lines().map(str::trim_start);
        let public = lines.filter(|line| line.starts_with("pub ") && is_function(line));
        of_crate.functions.extend(public.filter_map(|line| {
            let name = line.split("fn ").nth(1)?;
            Some(name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?.to_owned())
        }));
        let [code, examples] = code_words(without_tests(&text));
        of_crate.words.extend(code);
        outside.extend(examples);
        outside.extend(code_words(&text[without_tests(&text).len()..])[0].clone());
    }
    for folder in ["tests", "examples", "benches", "fuzz", "crates/python/examples"] {
        for path in files(folder, &[".rs"]).iter().filter(|path| !path.contains("/target/")) {
            outside.extend(code_words(&read(path)).into_iter().flatten());
        }
    }
    for path in files("docs", &[".md"]).into_iter().chain(["README.md".to_owned()]) {
        for code in read(&path).split("```rust").skip(1) {
            outside.extend(code_words(code.split("```").next().unwrap_or_default())[0].clone());
        }
    }
    (crates, outside)
}

/// By name: a function whose name others have, too, may have no caller and not be found. With `--nocapture` the numbers of
/// each crate are printed.
#[test]
fn every_public_function_has_a_caller_outside_of_its_crate_a_test_or_an_example() {
    let (crates, outside) = callers();
    let mut unused = Vec::new();
    for (folder, own) in crates.iter().filter(|(folder, _)| *folder != "the program") {
        let others = || crates.iter().filter(|(other, _)| *other != folder);
        let is_called = |name: &&String| {
            outside.contains(*name) || others().any(|(_, other)| other.words.contains(*name))
        };
        println!("{folder}: {} names of public functions", own.functions.len());
        let alone = own.functions.iter().filter(|name| !is_called(name));
        unused.extend(alone.map(|name| format!("{folder}: {name}")));
    }
    assert_eq!(unused, Vec::<String>::new(), "public, and called by nothing outside");
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
    let folders = ["src", "crates", "tests", "examples", "benches", "docs", ".ci", "fuzz"];
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
        let is_ours =
            |line: &&str| line.trim_start().starts_with("countersign") && line.contains(" = ");
        for line in text.lines().filter(is_ours) {
            let alone = line.split_once(" = \"").filter(|_| !line.contains('{'));
            let Some((_, after)) = line.split_once("version = \"").or(alone) else { continue };
            let named = after.split('"').next().unwrap_or_default();
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
    let entries = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let servers = entries("examples/servers").into_iter().filter(|path| path.join("src").exists());
    for path in entries("examples").into_iter().chain(servers) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !["README", "python", "servers"].contains(&name.as_str()) {
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
                    page.lines().any(|line| line.starts_with(&format!("### {rule} "))),
                    "{path} names rule {rule}, which docs/rules.md does not list"
                );
            }
        }
    }
}

/// The rules that a text names: `rule D3`, `rules G1, G2` and `rules L1 to L4`, also where the name is in the next line of
/// a comment.
fn named_rules(text: &str) -> BTreeSet<String> {
    let marks = ['/', '!', '#', ' '];
    let lines: Vec<_> = text.lines().map(|line| line.trim_start_matches(marks)).collect();
    let prose = lines.join(" ").to_lowercase();
    let mut named = BTreeSet::new();
    for rest in prose.split("rule ").skip(1).chain(prose.split("rules ").skip(1)) {
        let (mut last, mut is_range) = (None, false);
        for word in rest.split_whitespace() {
            let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let number = name.get(1..).and_then(|number| number.parse::<u32>().ok());
            let rule = name.chars().next().filter(char::is_ascii_lowercase).zip(number);
            if let Some((letter, number)) = rule {
                let from = last.filter(|_| is_range).unwrap_or(number);
                let letter = letter.to_ascii_uppercase();
                named.extend((from..=number).map(|number| format!("{letter}{number}")));
                last = Some(number);
            } else if !["and", "or", "to"].contains(&name) {
                break;
            }
            is_range = name == "to";
            if word.ends_with([')', '.', ':', ';']) {
                break;
            }
        }
    }
    named
}

#[test]
fn rules_are_found_in_lists_in_ranges_and_over_lines() {
    let named = |text: &str| named_rules(text).into_iter().collect::<Vec<_>>();
    assert_eq!(named("/// A (rule\n/// D5). The rule is B."), ["D5"]);
    assert_eq!(named("(rules G1, G2 and L1 to L3)."), ["G1", "G2", "L1", "L2", "L3"]);
    assert_eq!(named("Rule T6: late. A1 is no name here."), ["T6"]);
}

/// The path of a file that ARCHITECTURE names within `src`, within the `src` of a crate, or as an example.
fn path_of(name: &str) -> String {
    if name.starts_with("examples/") {
        return name.to_owned();
    }
    let within =
        name.split_once('/').filter(|(folder, _)| crates().contains(&(*folder).to_owned()));
    within.map_or(format!("src/{name}"), |(folder, rest)| format!("crates/{folder}/src/{rest}"))
}

/// The modules in lower case that a page names: `mcp::server::asks`.
fn named_modules(page: &str) -> Vec<&str> {
    let is_module = |name: &&str| {
        name.contains("::")
            && name.split("::").all(|part| part.starts_with(|c: char| c.is_ascii_lowercase()))
            && name.chars().all(|c| c.is_ascii_lowercase() || "_:".contains(c))
    };
    page.split('`').skip(1).step_by(2).filter(is_module).collect()
}

#[test]
fn the_modules_that_the_choices_name_are_there() {
    let page = read("docs/choices.md");
    let named = named_modules(&page);
    assert!(named.len() > 20, "the choices say where each of them is");
    for name in named {
        let (first, rest) = name.split_once("::").unwrap();
        let folder = first.replace('_', "-");
        let path = match crates().contains(&folder) {
            true => format!("crates/{folder}/src/{}", rest.replace("::", "/")),
            false => format!("src/{}", name.replace("::", "/")),
        };
        let is_there = root().join(&path).is_dir() || root().join(format!("{path}.rs")).exists();
        assert!(is_there, "docs/choices.md names `{name}`, and there is no {path}.rs");
    }
    assert_eq!(named_modules("`a::b_c`, `a::B`, `x` and `a::b()`"), ["a::b_c"]);
}

#[test]
fn architecture_says_which_files_keep_each_rule() {
    let page = read("ARCHITECTURE.md");
    let section = page.split("\n## Where each promise is kept\n").nth(1).unwrap();
    let rows = section.split("\n## ").next().unwrap().lines().filter_map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        let (rules, _, files) = (cells.next()?, cells.next()?, cells.next()?);
        rules.ends_with(|c: char| c.is_ascii_digit()).then_some((rules, files))
    });
    let mut kept = BTreeMap::<String, Vec<String>>::new();
    for (rules, names) in rows {
        // A name without a folder is beside the file before it.
        let (mut folder, mut paths) = (String::new(), Vec::new());
        for name in names.split('`').skip(1).step_by(2) {
            let is_file = [".rs", ".js", ".css", ".txt", ".toml", ".tsx"];
            let is_file = is_file.iter().any(|ending| name.ends_with(ending));
            let path = match name.contains('/') {
                true => path_of(name),
                false if is_file && root().join(&folder).join(name).exists() => {
                    format!("{folder}/{name}")
                }
                false if is_file => path_of(name),
                false => continue,
            };
            assert!(root().join(&path).exists(), "{rules}: there is no file {path}");
            folder = path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
            paths.push(path);
        }
        for rule in rules.split(", ") {
            kept.entry(rule.to_owned()).or_default().extend(paths.clone());
        }
    }
    for (rule, paths) in &kept {
        let files = paths.iter().filter(|path| root().join(path).is_file());
        let is_named = files.into_iter().any(|path| named_rules(&read(path)).contains(rule));
        assert!(is_named, "{rule}: none of {paths:?} has the words `rule {rule}`");
    }
    let promises = promises(&read("docs/rules.md"));
    let ids = promises.iter().map(|it| it.heading.split(' ').next().unwrap().to_owned());
    let kept: BTreeSet<_> = kept.into_keys().collect();
    assert_eq!(kept, ids.collect(), "ARCHITECTURE has a row for each rule of the rules page");
}

/// A promise of the rules page: its heading, and the sentences below it, each in one line.
struct Promise {
    heading: String,
    sentences: Vec<String>,
}

/// The promises of a page that is written like the rules page.
fn promises(page: &str) -> Vec<Promise> {
    let (mut found, mut is_sentence) = (Vec::<Promise>::new(), false);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            found.push(Promise { heading: heading.to_owned(), sentences: Vec::new() });
        }
        let (begins, continues) = (line.starts_with("- "), line.starts_with("  ") && is_sentence);
        is_sentence = begins || continues;
        let Some(promise) = found.last_mut().filter(|_| is_sentence) else { continue };
        if begins {
            promise.sentences.push(String::new());
        }
        let sentence = promise.sentences.last_mut().unwrap();
        *sentence = format!("{sentence} {}", line.trim_start_matches(['-', ' '])).trim().to_owned();
    }
    found
}

/// The tests that a sentence of the rules page ends with; none where it ends with `(test: none yet)`. `None` if it has
/// another form.
fn tests_of(sentence: &str) -> Option<Vec<&str>> {
    let (said, tests) = sentence.rsplit_once(" (test: ")?;
    let tests = tests.strip_suffix(')').filter(|_| said.ends_with('.'))?;
    if tests == "none yet" {
        return Some(Vec::new());
    }
    tests.split(", ").map(|test| test.strip_prefix('`')?.strip_suffix('`')).collect()
}

/// The files that may have a test of the rules page, by the modules in its name.
fn files_of(modules: &[&str]) -> Vec<String> {
    let (folder, modules) = match modules {
        ["house"] => ("tests".to_owned(), modules),
        ["browser", modules @ ..] => ("tests/browser".to_owned(), modules),
        ["testing", "ledger_contract", modules @ ..] => {
            ("src/testing/ledger_contract".to_owned(), modules)
        }
        ["countersign", modules @ ..] => ("src".to_owned(), modules),
        [first, modules @ ..] if first.starts_with("countersign_") => {
            (first.replace("countersign_", "crates/").replace('_', "-") + "/src", modules)
        }
        modules => ("tests/it".to_owned(), modules),
    };
    let path = format!("{folder}/{}", modules.join("/"));
    vec![format!("{path}.rs"), format!("{path}/mod.rs")]
}

/// Returns `true` if a test of the rules page is there: a test, or a function that its own file names again. A part of
/// the contract of stores is called by its `check`, and a macro makes tests of some functions for each store or
/// surface.
fn is_there(test: &str) -> bool {
    let names: Vec<_> = test.split("::").collect();
    let Some((name, modules)) = names.split_last().filter(|(_, modules)| !modules.is_empty())
    else {
        return false;
    };
    let files = files_of(modules).into_iter().filter(|path| root().join(path).exists());
    files.map(read).any(|text| {
        let words = || text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let is_function = ['(', '<'].iter().any(|end| text.contains(&format!("fn {name}{end}")));
        has_test(&text, name) || is_function && words().filter(|word| word == name).count() > 1
    })
}

#[test]
fn every_sentence_of_a_promise_names_the_tests_that_prove_it() {
    let page = read("docs/rules.md");
    let promises = promises(&page);
    let (mut unproven, mut ids) = (Vec::new(), BTreeSet::new());
    for promise in &promises {
        let heading = &promise.heading;
        let (id, title) = heading.split_once(' ').unwrap_or_else(|| panic!("no title: {heading}"));
        let is_id = id.starts_with(|c: char| c.is_ascii_uppercase())
            && id[1..].parse::<u32>().is_ok_and(|number| number < 100);
        assert!(is_id && !title.is_empty() && ids.insert(id), "no name of its own: {heading}");
        assert!(!promise.sentences.is_empty(), "{heading}: no sentence can be tested");
        for sentence in &promise.sentences {
            let tests = tests_of(sentence)
                .unwrap_or_else(|| panic!("{heading}: no `. (test: …)` at the end: {sentence}"));
            let missing: Vec<_> = tests.iter().filter(|test| !is_there(test)).collect();
            assert!(missing.is_empty(), "{heading}: there is no test {missing:?}");
            if tests.is_empty() {
                unproven.push(sentence);
            }
        }
    }
    let bullets = page.lines().filter(|line| line.starts_with("- ")).count();
    let sentences: usize = promises.iter().map(|promise| promise.sentences.len()).sum();
    assert_eq!(sentences, bullets, "a bullet stands above the first promise");
    assert!(unproven.is_empty(), "sentences without a test: {unproven:#?}");
}

#[test]
fn a_sentence_without_a_test_is_found() {
    let promises =
        promises("### A1 One\n\n- It holds.\n  (test: `a::b`,\n  `c::d`)\n- So.\n\nNo rule.\n");
    assert_eq!((promises.len(), promises[0].heading.as_str()), (1, "A1 One"));
    assert_eq!(promises[0].sentences, ["It holds. (test: `a::b`, `c::d`)", "So."]);
    assert_eq!(tests_of(&promises[0].sentences[0]), Some(vec!["a::b", "c::d"]));
    assert_eq!(tests_of("So. (test: none yet)"), Some(Vec::new()));
    for sentence in ["So.", "So (test: `a::b`)", "So. (test: a::b)", "So. (test: `a::b`) And."] {
        assert_eq!(tests_of(sentence), None, "{sentence}");
    }
    for test in [
        "turn::passes::every_pass_of_every_call_is_audited_once",
        "browser::http::many_are_decided_at_once_each_by_its_own_fingerprint",
        "testing::ledger_contract::series::three_denials_end_the_asking",
        "countersign::args::canonical::integers_keep_every_digit",
        "ledger::keys::a_process_without_the_key_is_refused_before_it_writes",
    ] {
        assert!(is_there(test), "{test}");
    }
    for nothing in [
        "",
        "turn",
        "turn::passes",
        "turn::passes::nothing",
        "turn::passes::audited_calls",
        "none::test",
    ] {
        assert!(!is_there(nothing), "{nothing}");
    }
}

/// The files with code that depends on a cargo feature within an item, each with the reason why no decision depends on it.
const BY_FEATURE: &[(&str, &str)] = &[
    ("src/lib.rs", "without `agent` the compiler says nothing about what only upper tiers use"),
    (
        "src/telemetry.rs",
        "it exports metrics and links of traces, which nothing that decides reads",
    ),
    (
        "crates/stores/src/url.rs",
        "an address of a store without its feature is an error that names the feature",
    ),
];

/// The lines of code that depend on a cargo feature, and add no whole module, function, type or name at the root of a file.
fn depends_on_a_feature(text: &str) -> Vec<&str> {
    let lines: Vec<_> = text.lines().collect();
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let names_one = |line: &&str| !is_comment(line) && line.contains("feature = \"");
    let found = lines.iter().copied().enumerate().filter(|(_, line)| names_one(line));
    let within = found.filter(|(at, line)| {
        let adds = line.starts_with("#[cfg(feature = \"") && line.ends_with("\")]");
        let attributed = |line: &&&str| line.starts_with("#[") || is_comment(line);
        let item = lines[at + 1..].iter().find(|line| !attributed(line)).copied().unwrap_or("");
        let kinds = ["mod ", "use ", "fn ", "async fn ", "struct ", "enum ", "trait ", "type "];
        let is_item = kinds.iter().any(|kind| without_visibility(item).starts_with(kind));
        !(adds && is_item && !item.starts_with(' '))
    });
    within.map(|(_, line)| line).collect()
}

/// The features of a manifest, with what each switches on.
fn features_of(manifest: &str) -> BTreeMap<&str, &str> {
    let section = manifest.split("\n[features]\n").nth(1).unwrap_or_default();
    let lines = section.split("\n[").next().unwrap_or_default().lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = ")).collect()
}

/// Rule D4: a feature adds what can be called, and changes nothing that is there without it. So `cfg` stands in front of whole
/// items, and a feature switches on dependencies and other features, and nothing in a dependency that is there anyway.
#[test]
fn no_cargo_feature_changes_a_decision() {
    let mut listed: BTreeSet<_> = BY_FEATURE.iter().map(|(path, _)| *path).collect();
    for path in sources() {
        let text = read(&path);
        let within = depends_on_a_feature(without_tests(&text));
        let is_listed = BY_FEATURE.iter().any(|(listed, _)| *listed == path);
        assert!(within.is_empty() || is_listed, "{path}: {within:#?}");
        if !within.is_empty() {
            listed.remove(&*path);
        }
        for other in ["CARGO_FEATURE_", "debug_assertions"] {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let found: Vec<_> = code.filter(|line| line.contains(other)).collect();
            assert!(found.is_empty(), "{path}: {found:?}");
        }
    }
    assert!(listed.is_empty(), "nothing depends on a feature in {listed:?}");
    let manifests = crates().into_iter().map(|name| format!("crates/{name}/Cargo.toml"));
    for path in ["Cargo.toml".to_owned()].into_iter().chain(manifests) {
        let manifest = read(&path);
        let features = features_of(&manifest);
        for (feature, switched) in &features {
            for on in switched.split('"').skip(1).step_by(2) {
                let is_dependency = on.strip_prefix("dep:").is_some_and(|name| {
                    let begins = format!("{name} = ");
                    let mut lines = manifest.lines().filter(|line| line.starts_with(&begins));
                    lines.any(|line| line.contains("optional = true"))
                });
                assert!(is_dependency || features.contains_key(on), "{path}: `{feature}`: {on}");
            }
        }
    }
}

#[test]
fn code_that_depends_on_a_feature_is_found() {
    for adds in [
        "#[cfg(feature = \"seal\")]\npub mod seal;",
        "#[cfg(feature = \"schema\")]\n#[must_use]\npub fn schema_tool() {",
        "/// #[cfg(feature = \"schema\")] {\nfn a() {}",
    ] {
        assert_eq!(depends_on_a_feature(adds), [""; 0], "{adds}");
    }
    for within in [
        "#[cfg(not(feature = \"seal\"))]\npub fn decide() {",
        "    #[cfg(feature = \"seal\")]\n    fn decide(&self) {",
        "#[cfg(feature = \"seal\")]\nimpl ToolMiddleware for Never {",
        "#[cfg(feature = \"seal\")]\nconst MAX_DENIALS: u32 = 9;",
        "    if cfg!(feature = \"seal\") {",
    ] {
        assert_eq!(depends_on_a_feature(within).len(), 1, "{within}");
    }
    let manifest =
        "[package]\n\n[features]\n# One.\na = [\"dep:b\"]\nc = [\"a\", \"d/e\"]\n\n[lib]\nf = 1\n";
    assert_eq!(
        features_of(manifest),
        BTreeMap::from([("a", "[\"dep:b\"]"), ("c", "[\"a\", \"d/e\"]")])
    );
}

/// The code by which a decision becomes weaker, with the function that alone may have it.
const WEAKENED_IN: &[(&str, &str, &str)] = &[
    ("src/handler/ready_made.rs", "danger_approve_all", "ApproveAll { result"),
    ("src/middleware/first.rs", "danger_first_decision_wins", "FirstDecision { members"),
    ("src/turn/config.rs", "danger_trace_arguments", "trace_args = true"),
    ("src/seal/keys.rs", "danger_with_guessable_secret", "audience: None }.accept("),
    ("crates/ai-sdk/src/chats.rs", "danger_sealed", "ChatStore::Client(Sealed"),
    ("crates/mcp/src/guard/mod.rs", "danger_accept_all_tools", "pinned = false"),
    ("crates/mcp/src/guard/mod.rs", "danger_observe", "observes = true"),
];

/// How a text describes what weakens a decision.
const WEAKER: &[&str] = &[
    "allow all",
    "allow every",
    "allows all",
    "allows every",
    "approve all",
    "approves all",
    "approves every",
    "accept all",
    "accept every",
    "accepts all",
    "accepts every",
    "unasked",
    "without asking",
    "trusts that",
    "first decision wins",
    "easy to guess",
];

/// What is described with such words and weakens nothing, each with the reason.
const NOT_WEAKER: &[(&str, &str, &str)] = &[
    (
        "crates/cli/src/commands/guard/init.rs",
        "yes",
        "it accepts what the tools are, and each call is asked about",
    ),
    (
        "crates/cli/src/commands/hook/install.rs",
        "edits",
        "it is a rule that a person chooses, below the floor",
    ),
    (
        "crates/rules/src/builder.rs",
        "edits_in_workspace",
        "it is a rule that a person chooses, below the floor",
    ),
    ("crates/rules/src/preset.rs", "edits_text", "it is the text of that rule"),
    ("crates/cli/src/config/mod.rs", "own_places", "it adds to what the floor asks about"),
    ("crates/cli/src/hook/installing/mod.rs", "own_place", "it adds to what the floor asks about"),
    (
        "crates/shell/src/places/search_path.rs",
        "unchecked",
        "the commands run on another machine, where nothing can be looked up",
    ),
    ("src/agent/mod.rs", "max_repeats", "calls are denied without asking"),
    ("src/agent/mod.rs", "run_with_blocking_approval", "calls are denied without asking"),
    ("src/turn/config.rs", "max_repeats", "calls are denied without asking"),
    ("src/turn/config.rs", "max_pending", "calls are denied without asking"),
    ("src/decision/mod.rs", "undecided", "it is no decision"),
    ("src/deferred/answers.rs", "approve_tool", "it is the answer of a person"),
    ("src/middleware/chain.rs", "new", "an empty chain leaves the decision to the other layers"),
    ("src/middleware/closure.rs", "decide_fn", "it says what an ALLOW costs"),
];

/// The public functions of a file, and in the program also the options of its commands: their names, and their
/// descriptions without examples.
fn described(path: &str, text: &str) -> Vec<(String, String)> {
    let (mut found, mut said) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim_start) {
        if let Some(words) = line.strip_prefix("///") {
            said = format!("{said}{}", words.to_lowercase());
        } else if !line.starts_with("#[") {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let (rest, ends) = match line.starts_with("pub ") && is_function(line) {
                true => (line.split("fn ").nth(1).unwrap_or_default(), &["(", "<"][..]),
                false if path.contains("/src/commands/") => (line, &[": "][..]),
                false => ("", &[][..]),
            };
            let (name, rest) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(0));
            if ends.iter().any(|end| rest.starts_with(end)) {
                let before_example = said.split("```").next().unwrap_or_default().to_owned();
                found.push((name.to_owned(), before_example));
            }
            said.clear();
        }
    }
    found
}

/// The lines of code with this text, outside of the function of this name.
fn outside_of<'a>(text: &'a str, function: &str, code: &str) -> Vec<&'a str> {
    let (mut found, mut end) = (Vec::new(), None);
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if is_function(line) && line.contains(&format!("fn {function}(")) {
            end = Some(indent);
        }
        let is_comment = line.trim_start().starts_with("//");
        if end.is_none() && !is_comment && line.contains(code) {
            found.push(line);
        }
        end = end.filter(|indent| line != format!("{}}}", " ".repeat(*indent)));
    }
    found
}

/// Rule D5: what weakens a decision is reached by a name that begins with `danger_`, and by no other.
#[test]
fn what_weakens_a_decision_has_a_name_that_says_so() {
    let (mut known, mut harmless) = (BTreeSet::new(), BTreeSet::new());
    for path in sources().into_iter().filter(|path| !path.contains("/testing/")) {
        let text = read(&path);
        let text = without_tests(&text);
        for (file, function, code) in WEAKENED_IN {
            let found = outside_of(text, function, code);
            assert!(found.is_empty(), "{path} does what `{function}` of {file} does: {found:?}");
        }
        for (name, says) in described(&path, text) {
            let is_danger = name.starts_with("danger_");
            if is_danger && !path.contains("/src/commands/") {
                known.insert((path.clone(), name.clone()));
            }
            let weaker: Vec<_> = WEAKER.iter().filter(|words| says.contains(*words)).collect();
            if weaker.is_empty() || is_danger {
                continue;
            }
            let listed = NOT_WEAKER.iter().any(|(file, it, _)| (*file, *it) == (&*path, &*name));
            assert!(
                listed,
                "{path}: `{name}` is described with {weaker:?}: call it `danger_…`, or say in NOT_WEAKER why it weakens nothing"
            );
            harmless.insert((path.clone(), name));
        }
    }
    let listed = WEAKENED_IN.iter().map(|(file, name, _)| ((*file).to_owned(), (*name).to_owned()));
    assert_eq!(known, listed.collect(), "WEAKENED_IN has each public function `danger_…`");
    let listed = NOT_WEAKER.iter().map(|(file, name, _)| ((*file).to_owned(), (*name).to_owned()));
    assert_eq!(harmless, listed.collect(), "NOT_WEAKER has no more than is described so");
    for (file, function, code) in WEAKENED_IN {
        let text = read(file);
        assert!(!outside_of(&text, "none", code).is_empty(), "{function} does something else now");
        // No other way makes what such a function makes.
        for made in ["ApproveAll", "FirstDecision"] {
            let by_default = text.split(&format!("pub struct {made} ")).next().unwrap_or_default();
            let derives = by_default.rsplit("\n\n").next().unwrap_or_default();
            let is_made = text.contains(&format!("Default for {made}"));
            assert!(!derives.contains("Default") && !is_made, "{file}: {made} has a default");
        }
    }
}

#[test]
fn what_weakens_a_decision_is_found_under_another_name() {
    let text = "/// Allows every call.\n///\n/// ```\n/// without asking\n/// ```\n#[must_use]\npub fn relaxed() -> Self {\n    \
                Self { open: true }\n}\n\n/// Run unasked.\nopen: bool,\nfn private() {}\n";
    let of = |path: &str| described(path, text);
    assert_eq!(of("src/a.rs"), [("relaxed".to_owned(), " allows every call. ".to_owned())]);
    let options = of("crates/cli/src/commands/a.rs");
    assert!(options.contains(&("open".to_owned(), " run unasked.".to_owned())), "{options:?}");
    assert_eq!(outside_of(text, "relaxed", "open: true"), [""; 0]);
    assert_eq!(outside_of(text, "other", "open: true"), ["    Self { open: true }"]);
    assert_eq!(outside_of(&format!("{text}open: true"), "relaxed", "open: true"), ["open: true"]);
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

/// Returns `true` if a test file has a test of this name.
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

/// The folder that is the root of the crate of a folder. The program is a crate beside the library of its package.
fn crate_root(folder: &str) -> &str {
    let end = |after: &str| folder.find(after).map(|at| at + after.len());
    end("/src/commands").or(end("/src")).map_or("src", |end| &folder[..end])
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
    let root = ["mod", "lib"].map(|name| format!("{folder}/{name}.rs"));
    let root = root.iter().find(|path| files.contains(path));
    let top = root.map(read).unwrap_or_default();
    let mut exported = BTreeMap::new();
    for (_, path) in paths_of(without_tests(&top)) {
        let names: Vec<_> = path.trim_start_matches("self::").split("::").collect();
        if let [first, .., last] = names[..] {
            let own = parts.contains(first).then(|| first.to_owned());
            exported.insert(last.to_owned(), own);
        }
    }
    let below = folder.strip_prefix(crate_root(folder)).unwrap_or_default();
    let below = below.trim_start_matches('/').replace('/', "::");
    let within = if below.is_empty() { "crate::".to_owned() } else { format!("crate::{below}::") };
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &files {
        let (own, text) = (part(path, folder), read(path));
        let own = if Some(path) == root { "mod".to_owned() } else { own };
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
            let named_whole = line.split(&within).skip(1).filter(|_| own != "mod");
            named.extend(inline.chain(named_whole).map(|rest| {
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
    let mut folders: Vec<_> =
        sources().iter().filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())).collect();
    folders.dedup();
    let mut found = BTreeSet::new();
    for folder in folders.iter().filter(|folder| *folder != "src") {
        found.extend(
            circles(&imports_within(folder)).into_iter().map(|circle| (folder.clone(), circle)),
        );
    }
    assert_eq!(found, BTreeSet::new(), "files of a folder that import each other in a circle");
}

/// The number of cells of a row of a table, whose cells may contain `\|`.
fn cells(row: &str) -> usize {
    let row = row.trim().trim_start_matches('|');
    let (mut count, mut escaped, mut open) = (0, false, false);
    for c in row.chars() {
        match c {
            '|' if !escaped => (count, open) = (count + 1, false),
            c => open |= !c.is_whitespace(),
        }
        escaped = c == '\\' && !escaped;
    }
    count + usize::from(open)
}

/// The rows of tables that have another number of cells than their header, with their lines.
fn uneven_rows(text: &str, is_code: bool) -> Vec<(usize, String)> {
    let (mut header, mut found) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let prose = match line.trim_start().strip_prefix("//") {
            Some(comment) if is_code => comment.trim_start_matches(['/', '!']).trim_start(),
            _ if is_code => "",
            _ => line,
        };
        if !prose.starts_with('|') {
            header = None;
        } else if cells(prose) != *header.get_or_insert_with(|| cells(prose)) {
            found.push((number + 1, prose.to_owned()));
        }
    }
    found
}

#[test]
fn a_row_of_a_table_has_the_cells_of_its_header() {
    for (path, text) in texts() {
        let found = uneven_rows(&text, path.ends_with(".rs"));
        assert!(found.is_empty(), "{path}: rows with other numbers of cells: {found:#?}");
    }
    let table = "| a | b |\n|---|---|\n| `x \\| y` | z |\n| one |\n\n| a |\n|---|\n| `x || y` |\n";
    let found = uneven_rows(table, false);
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 8]);
    assert_eq!(uneven_rows("//! | a | b |\n//! | a |\nlet a = 1;\n", true).len(), 1);
}

/// The lines of `.ci/long-tests`, and true where `.ci/test` runs the tests, too.
fn long_tests() -> Vec<(String, bool)> {
    let text = read(".ci/long-tests");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| match line.strip_prefix('+') {
        Some(line) => (line.to_owned(), true),
        None => (line.to_owned(), false),
    });
    lines.collect()
}

#[test]
fn every_line_of_the_long_tests_names_tests() {
    let lines = long_tests();
    assert!(lines.len() > 9, "`.ci/long` runs tests");
    for (line, _) in lines {
        let path = format!("tests/it/{}", line.trim_end_matches("::").replace("::", "/"));
        let is_module = line.ends_with("::")
            && (root().join(&path).is_dir() || root().join(format!("{path}.rs")).exists());
        let name = line.rsplit("::").next().unwrap_or_default();
        let is_name = !name.is_empty()
            && files("tests/it", &[".rs"]).iter().any(|path| {
                let text = read(path);
                text.contains(&format!("fn {name}")) || text.contains(&format!("mod {name}"))
            });
        assert!(is_module || is_name, "`.ci/long-tests`: no test has `{line}` in its name");
    }
}

/// The promises that only other people's programs can show; `.ci/long` has their tests.
const SHOWN_BY_OTHERS: &[&str] = &[];

#[test]
fn a_promise_is_tested_without_other_programs() {
    let left_out: Vec<_> = long_tests().into_iter().filter(|(_, short)| !short).collect();
    // The browser is a test of its own, which `.ci/long` runs.
    let is_long = |test: &str| {
        test.starts_with("browser::") || left_out.iter().any(|(line, _)| test.contains(line))
    };
    let page = read("docs/rules.md");
    let only_long = promises(&page).into_iter().filter(|promise| {
        let tests = promise.sentences.iter().filter_map(|it| tests_of(it)).flatten();
        let tests: Vec<_> = tests.collect();
        !tests.is_empty() && tests.iter().all(|test| is_long(test))
    });
    let only_long: Vec<_> = only_long.map(|promise| promise.heading).collect();
    let names: Vec<_> = only_long.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(names, SHOWN_BY_OTHERS, "promises without a test in `.ci/test`: {only_long:#?}");
}

/// The test binaries of the workspace, as `--test NAME`, by the manifests of the packages of tests.
fn test_binaries() -> Vec<String> {
    let manifests = files("tests", &["Cargo.toml"]);
    let texts: Vec<_> =
        manifests.iter().filter(|it| !OWN_WORKSPACES.contains(&it.as_str())).map(read).collect();
    let lines = texts.iter().flat_map(|text| {
        text.split("[[test]]")
            .skip(1)
            .filter_map(|rest| rest.lines().find(|it| it.starts_with("name = ")))
    });
    lines.map(|line| line.trim_start_matches("name = ").trim_matches('"').to_owned()).collect()
}

/// A target without tests is not built as a test binary (`test = false`), so a test that is written there would not run.
#[test]
fn a_target_that_is_left_out_of_the_tests_has_none() {
    let left_out: Vec<_> = ["crates", "examples", "tests"]
        .iter()
        .flat_map(|folder| files(folder, &["Cargo.toml"]))
        .filter(|manifest| read(manifest).contains("test = false"))
        .collect();
    assert!(left_out.len() > 10, "{left_out:?}");
    for manifest in left_out {
        let sources = files(manifest.trim_end_matches("/Cargo.toml"), &[".rs"]);
        let with_tests: Vec<_> =
            sources.iter().filter(|path| read(path).contains("#[cfg(test)]")).collect();
        assert!(with_tests.is_empty(), "{manifest} says `test = false`: {with_tests:?}");
    }
}

/// A program is built as a test binary where its package does not say `test = false`, and `.ci/test` names those that it runs.
#[test]
fn each_program_with_tests_is_named_in_the_test_run() {
    let script = read(".ci/test");
    for folder in ["crates/cli", "examples"] {
        for manifest in files(folder, &["Cargo.toml"]) {
            let own_workspace = manifest.starts_with("examples/servers/");
            let text = read(&manifest);
            let name =
                text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or_default();
            let program = if folder == "examples" { name.trim_matches('"') } else { "countersign" };
            if !own_workspace && !text.contains("test = false") {
                assert!(script.contains(&format!("--bin {program}")), "{manifest}");
            }
        }
    }
}

/// Packages that are workspaces of their own. `.ci/nightly` runs them.
const OWN_WORKSPACES: [&str; 3] =
    ["tests/lab/Cargo.toml", "tests/loom/Cargo.toml", "tests/model/Cargo.toml"];

#[test]
fn each_test_binary_is_run_by_one_script() {
    let (test, long) = (read(".ci/test"), read(".ci/long"));
    let binaries = test_binaries();
    assert!(binaries.iter().any(|name| name == "house"), "{binaries:?}");
    for name in binaries {
        let runs = |script: &str| {
            script
                .split_whitespace()
                .collect::<Vec<_>>()
                .windows(2)
                .any(|it| it == ["--test", &name])
        };
        // These two are divided by `.ci/long-tests`.
        let expected = if ["it", "doors"].contains(&&*name) {
            (true, true)
        } else {
            (runs(&test), !runs(&test))
        };
        assert_eq!((runs(&test), runs(&long)), expected, "{name}");
    }
    assert_eq!(
        read(".ci/run").matches("/test\"").count(),
        1,
        "`.ci/run` runs `.ci/test` and nothing else"
    );
    let nightly = read(".ci/nightly");
    for manifest in OWN_WORKSPACES {
        let folder = manifest.trim_end_matches("/Cargo.toml");
        assert!(
            nightly.contains(folder) || nightly.contains(&folder.replace("tests/", ".ci/")),
            "{folder}"
        );
    }
}

/// The crates that each crate around the core needs, besides the core itself. A new arrow is a decision: it goes here and
/// into the picture in ARCHITECTURE.
const ARROWS: &[(&str, &[&str])] = &[
    ("ai-sdk", &[]),
    ("cli", &["inbox", "mcp", "rules", "shell", "stores", "terminal"]),
    ("genai", &[]),
    ("inbox", &[]),
    ("mcp", &["shell"]),
    ("postgres", &[]),
    ("python", &["cli", "rules", "shell", "stores"]),
    ("rules", &["shell"]),
    ("shell", &[]),
    ("sqlite", &[]),
    ("stores", &["postgres", "sqlite"]),
    ("terminal", &[]),
];

/// The crates of this project that a kind of section of a manifest names, for all targets or for some, without the core.
fn needed(manifest: &str, kind: &str) -> BTreeSet<String> {
    let sections = manifest.split("\n[").filter_map(|section| section.split_once("]\n"));
    let of_target = |name: &str| name.starts_with("target.") && name.ends_with(&format!(".{kind}"));
    let is_kind = |name: &str| name == kind || of_target(name);
    let lines = sections.filter(|(name, _)| is_kind(name)).flat_map(|(_, body)| body.lines());
    let names = lines.filter_map(|line| line.strip_prefix("countersign-"));
    names.filter_map(|rest| rest.split([' ', '.']).next()).map(str::to_owned).collect()
}

#[test]
fn an_arrow_for_one_target_is_an_arrow() {
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\ncountersign = \"0.1\"\ncountersign-shell.workspace = true\n\n\
                    [target.'cfg(unix)'.dependencies]\ncountersign-sqlite = \"0.1\"\n\n\
                    [workspace.dependencies]\ncountersign-mcp = \"0.1\"\n\n[dev-dependencies]\ncountersign-rules = \"0.1\"\n";
    assert!(needed(manifest, "dependencies").iter().eq(["shell", "sqlite"]));
    assert!(needed(manifest, "dev-dependencies").iter().eq(["rules"]));
}

#[test]
fn an_arrow_between_crates_is_on_the_list() {
    let known: Vec<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(crates(), known);
    for (name, arrows) in ARROWS {
        let found = needed(&read(format!("crates/{name}/Cargo.toml")), "dependencies");
        assert!(found.iter().eq(arrows.iter()), "crates/{name} needs {found:?}");
    }
    // Who depends on the core, or tests it, builds none of the crates around it.
    let core = read("Cargo.toml");
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        assert_eq!(needed(&core, section), BTreeSet::new(), "[{section}] of the core");
    }
}

/// The dependencies of a package, as they are called in code.
fn dependencies(manifest: &str) -> Vec<String> {
    let sections = manifest.split("\n[").filter(|section| {
        let name = section.split(']').next().unwrap_or_default();
        name.ends_with("dependencies") && !name.starts_with("workspace")
    });
    let lines = sections.flat_map(|section| section.lines().skip(1));
    let keys = lines.filter_map(|line| line.split(['.', ' ']).next());
    let is_name = |key: &&str| key.starts_with(|first: char| first.is_ascii_lowercase());
    keys.filter(is_name).map(|key| key.replace('-', "_")).collect()
}

/// The code of a package, with the files of other packages that it takes in.
fn code_of(folder: &str) -> String {
    let mut code = String::new();
    for path in files(folder, &[".rs"]) {
        let text = read(&path);
        for line in text.lines().filter_map(|line| line.strip_prefix("#[path = \"")) {
            let other = Path::new(&path).with_file_name(line.trim_end_matches("\"]"));
            match other.ends_with("mod.rs") {
                true => code += &code_of(&other.with_file_name("").to_string_lossy()),
                false => code += &read(other),
            }
        }
        code += &text;
    }
    code
}

/// A build compiles each dependency of a package, also one that its code does not name.
#[test]
fn the_code_of_a_package_names_its_dependencies() {
    let folders = ["benches", "crates", "examples", "fuzz", "tests"];
    let manifests = folders.into_iter().flat_map(|folder| files(folder, &["Cargo.toml"]));
    let manifests = ["Cargo.toml".to_owned()].into_iter().chain(manifests);
    let mut unused = Vec::new();
    // The pages are the code of the guide.
    for manifest in manifests.filter(|path| path != "tests/guide/Cargo.toml") {
        let folder = manifest.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let code = match folder {
            "" => ["src", "examples"].map(code_of).concat(),
            folder => code_of(folder),
        };
        let words: BTreeSet<_> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let names = dependencies(&read(&manifest));
        assert!(!names.is_empty() || folder == "examples/servers", "{manifest}");
        let gone = names.into_iter().filter(|name| !words.contains(name.as_str()));
        unused.extend(gone.map(|name| format!("{manifest}: {name}")));
    }
    assert!(unused.is_empty(), "{unused:#?}");
}

/// Folders within a crate that the rest of the crate stands on, and that use nothing of it.
const BELOW: [(&str, &str); 2] =
    [("crates/cli/src/config", "config"), ("crates/rules/src/readings", "readings")];

#[test]
fn a_folder_that_others_stand_on_uses_nothing_of_its_crate() {
    for (folder, name) in BELOW {
        let files = files(folder, &[".rs"]);
        assert!(!files.is_empty(), "{folder}");
        for path in files {
            let text = read(&path);
            let above: Vec<_> = uses(without_tests(&text)).filter(|used| *used != name).collect();
            assert!(above.is_empty(), "{path} uses {above:?}");
        }
    }
}

#[test]
fn only_the_crate_of_stores_has_features_around_the_core() {
    for name in crates() {
        let manifest = read(format!("crates/{name}/Cargo.toml"));
        // Its features choose which crates it opens stores of.
        let chooses = name == "stores";
        assert!(
            chooses || !manifest.contains("[features]"),
            "crates/{name}: a feature is a crate of its own"
        );
    }
}

#[test]
fn a_name_stands_for_one_type() {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources() {
        let text = read(&path);
        for line in without_tests(&text).lines() {
            let code = line.trim_start();
            let is_public = code.starts_with("pub");
            let is_private = !is_public || code.starts_with("pub(super)");
            let code = without_visibility(code);
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
/// for one use of an agent (`Agent`), one kind of row, opening the store or a limit (`Ledger`), one part of a response (`RunLoop`), one part of the
/// grammar (`Lexer`, `Simple`) or one transport (`Shared`).
const SPREAD: [(&str, usize); 6] =
    [("Agent", 3), ("Ledger", 6), ("Lexer", 3), ("RunLoop", 3), ("Shared", 3), ("Simple", 5)];

/// Adding a client of the hook is one file: no other one asks which client it is.
#[test]
fn a_client_of_the_hook_is_named_in_its_own_file_only() {
    let is_name = |rest: &str| {
        let name: Vec<_> = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        matches!(name[..], [first, second, ..] if first.is_uppercase() && second.is_lowercase())
    };
    for path in sources() {
        let is_hook = ["crates/cli/src/hook/", "crates/cli/src/commands/hook/"];
        if !is_hook.iter().any(|folder| path.starts_with(folder)) || path.contains("/clients/") {
            continue;
        }
        let text = read(&path);
        let code = without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.flat_map(|line| line.split("Client::").skip(1)).find(|rest| is_name(rest));
        assert_eq!(named, None, "{path} asks which client it is: say it in the client's own file");
    }
}

/// A repository may put a link to a device in the place of a client's settings, so that they are read by `settings_text`, within
/// bounds. What else the hook reads is its own, or the user's.
#[test]
fn a_clients_files_are_read_within_bounds() {
    let own = ["asking/allowed.rs", "installing/named.rs", "judging/environment.rs"];
    // The installed settings, which are changed and put back.
    let installed = ["installing/file.rs", "installing/mod.rs"];
    for path in sources() {
        let Some(file) = path.strip_prefix("crates/cli/src/hook/") else { continue };
        let text = read(&path);
        let mut code =
            without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        let is_listed = own.iter().chain(&installed).any(|known| *known == file);
        let reads =
            code.find(|line| line.contains("read_to_string(") || line.contains("fs::read("));
        assert!(is_listed || reads.is_none(), "{path}: read this by `settings_text`: {reads:?}");
    }
}

#[test]
fn the_methods_of_a_type_are_in_at_most_two_files_of_a_module() {
    let mut found: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for path in sources() {
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
    for path in sources() {
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
