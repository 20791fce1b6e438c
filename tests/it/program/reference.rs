//! `docs/reference.md` has everything that the program takes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::User;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/reference.md")).unwrap()
}

#[test]
fn the_committed_reference_is_the_one_that_the_program_prints() {
    let path = root().join("docs/reference.md");
    let printed = User::new().run(&["reference"]);
    assert_eq!(printed.status, 0, "{printed:?}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &printed.out).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        printed.out,
        "write it again with UPDATE=1"
    );
}

/// The commands below these words, and the options, by the help.
fn of_help(user: &User, words: &[String]) -> (Vec<String>, BTreeSet<String>) {
    let mut args: Vec<_> = words.iter().map(String::as_str).collect();
    args.push("--help");
    let help = user.run(&args).out;
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let list = list.lines().take_while(|line| !line.trim().is_empty());
    // The text of a command may continue on the next line, further to the right.
    let named = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let options = lines.flat_map(|line| {
        line.split([' ', ',', '=', '[']).filter(|it| it.starts_with("--")).take(1)
    });
    let options = options.filter(|it| it.len() > 2).map(str::to_owned).collect();
    (names.filter(|it| it != "help").collect(), options)
}

/// Every option that a help shows is below the heading of its command.
#[test]
fn every_command_and_option_of_a_help_is_in_the_reference() {
    let (user, page) = (User::new(), page());
    let clients: Vec<_> = crate::support::clients::clients().collect();
    let (mut open, mut seen) = (vec![Vec::<String>::new()], 0);
    while let Some(words) = open.pop() {
        let (names, options) = of_help(&user, &words);
        let heading = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => "## Commands".to_owned(),
            ["hook", client] if clients.contains(&client) => {
                "### countersign hook CLIENT".to_owned()
            }
            ref words => format!("### countersign {}", words.join(" ")),
        };
        let section = page.split(&format!("{heading}\n")).nth(1);
        let section = section.unwrap_or_else(|| panic!("{heading} is missing"));
        let section = section.split("\n### ").next().unwrap();
        for option in options {
            let global =
                ["--config", "--json", "--text", "--help", "--version"].contains(&option.as_str());
            assert!(global || section.contains(&format!("`{option}")), "{heading}: {option}");
            seen += 1;
        }
        open.extend(names.into_iter().map(|name| [words.clone(), vec![name]].concat()));
    }
    assert!(seen > 150, "{seen} options were found");
}

/// The keys of the configuration, as its reader names them, and those of a file of rules.
#[test]
fn every_key_and_variable_is_in_the_reference() {
    let page = page();
    for table in ["", "inbox", "inbox.webhook", "journal"] {
        let user = User::new();
        let head = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        user.configure(&format!("{head}unheard_of = 1\n"));
        let refused = user.run(&["asks", "list"]);
        let (_, known) =
            refused.err.split_once("expected ").unwrap_or_else(|| panic!("{refused:?}"));
        let keys: Vec<_> = known.split('`').skip(1).step_by(2).collect();
        assert!(keys.len() >= 3, "{refused:?}");
        for key in keys.into_iter().filter(|key| !["inbox", "journal", "webhook"].contains(key)) {
            let key = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            assert!(page.contains(&format!("| `{key}` |")), "{key}");
        }
    }
    let schema = countersign_rules::schema();
    let tables = [
        "/properties",
        "/$defs/rule/properties",
        "/$defs/conditions/additionalProperties/oneOf/2/properties",
    ];
    for key in
        tables.iter().flat_map(|place| schema.pointer(place).unwrap().as_object().unwrap().keys())
    {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
    let mut folders =
        ["cli", "terminal"].map(|name| root().join("crates").join(name).join("src")).to_vec();
    let mut variables = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
            let found = words.filter(|it| it.starts_with("COUNTERSIGN_") && !it.contains("_TEST_"));
            variables.extend(found.map(str::to_owned));
        }
    }
    assert!(variables.len() >= 4, "{variables:?}");
    for name in variables {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}
