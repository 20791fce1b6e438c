//! Paths in arguments: every spelling that a tool may take for a path, under rules that allow and rules that deny.

use std::rc::Rc;

use countersign_cli::hook::Client;
use serde_json::{Value, json};

use super::desk::Desk;
use super::{Door, List, Policy};

/// How a tool of files may read a path: the text, for a path from the project and the same one from the root.
fn spellings(near: &str, far: &str) -> Vec<String> {
    let percent = |text: &str, of: &str, by: &str| text.replace(of, by);
    let backslashes = near.replace('/', "\\");
    let first = near.chars().next().unwrap();
    let encoded =
        |prefix: &str| format!("{prefix}{:02x}{}", first as u32, &near[first.len_utf8()..]);
    let mut all = vec![
        near.to_owned(),
        format!("./{near}"),
        format!("docs/../{near}"),
        format!(".//{near}"),
        far.to_owned(),
        format!("/{far}"),
        format!("file://{far}"),
        format!("FILE://{far}"),
        format!("File:{far}"),
        format!("file:{far}"),
        format!("file:{near}"),
        format!("file://localhost{far}"),
        format!(" file://{far}"),
        format!("\tfile://{far}\n"),
        format!("fi\nle://{far}"),
        format!("f\tile:{far}"),
        format!("file:{}", far.replace('/', "\\")),
        format!("file:\\\\\\{}", &far[1..].replace('/', "\\")),
        format!("file://{far}?x=1"),
        format!("file://{far}#x"),
        format!("file:///{}", percent(&far[1..], "/", "%2f")),
        format!("file://{}", percent(far, "e", "%65")),
        encoded("%"),
        encoded("%25"),
        percent(near, ".", "%2e"),
        percent(near, ".", "%252E"),
        percent(near, "/", "%2f"),
        percent(near, "e", "%65"),
        backslashes.clone(),
        format!(".\\{backslashes}"),
        format!("docs\\..\\{backslashes}"),
        format!(" {near}"),
        format!("{near} "),
        format!("{near}\n"),
        format!("\n{near}"),
        format!("\t{near}\r\n"),
        format!("a://../{near}"),
        format!("x://a/../../{near}"),
        format!("x\n/../{near}"),
        format!("x\r\n/../{near}"),
        format!("docs/x\n/../../{near}"),
        json!([near]).to_string(),
        json!({"path": near}).to_string(),
        json!([[far]]).to_string(),
        json!({"a": {"b": [far]}}).to_string(),
        format!(" {} ", json!([near])),
        json!([json!([near]).to_string()]).to_string(),
        format!("{near}/."),
        format!("{near}//"),
    ];
    all.retain(|it| !it.is_empty());
    all.dedup();
    all
}

/// Texts that no reader can be sure about: too long, broken, or of a scheme that is not known.
fn unreadable(near: &str, far: &str) -> Vec<String> {
    vec![
        format!("a\0/../{near}"),
        format!("{near}\0"),
        format!("{}{near}", "a/../".repeat(2_000)),
        format!("{}{near}", "./".repeat(9_000)),
        format!("jar:file:{far}!/x"),
        format!("vscode://file{far}"),
        format!("zip://{far}"),
        format!("docs:../{near}"),
        format!("docs:/../{near}"),
        format!("content:\\..\\{near}"),
        format!("view-source:file://{far}"),
        format!("{near}%"),
        format!("{near}%zz"),
        format!("%c0%ae%c0%ae/{near}"),
    ]
}

/// Values that lead out of the project in ways of their own.
const OUTSIDE: &[&str] = &[
    "C:\\Windows\\win.ini",
    "c:/Windows",
    "\\\\server\\share\\x",
    "//server/share/x",
    "~/x",
    "~root/.ssh/id_rsa",
    "~",
    "$HOME/x",
    "${HOME}/.ssh/id_rsa",
    "link/notes.txt",
    "src/linked.txt",
    "file:link/notes.txt",
    "%6cink/notes.txt",
    "http://evil.example/x",
    "HTTPS://evil.example/x",
    "ftp://evil.example/x",
    "data:text/plain,x",
    "..",
    "../",
    "/",
    "docs/../..",
    "docs/guide/../../../x",
    "\\..\\..\\x",
    "/proc/self/environ",
    "/dev/stdin",
    "..%2f..%2fx",
    "..%5c..%5cx",
    "%2e%2e%2fx",
    "%2e%2e/%2e%2e/x",
    "docs/..%00/../../x",
    "\u{feff}../x",
    "file:..",
    "file:",
    "file://evil.example/share/x",
    "file:////evil.example/share/x",
];

/// A rule that allows, over what is inside.
const ALLOWING: &[(&str, &str)] = &[
    (
        "paths: allow path.within",
        "[[rule]]\nid = 'r'\nallow = ['read_doc', 'mcp:fs/*']\nwhere.path.within = '.'\n",
    ),
    (
        "paths: allow path.path",
        "[[rule]]\nid = 'r'\nallow = ['read_doc', 'mcp:fs/*']\nwhere.path.path = ['src/**', 'docs/**', 'README.md']\n",
    ),
    (
        "paths: allow any_path.within",
        "[[rule]]\nid = 'r'\nallow = ['read_doc', 'mcp:fs/*']\nwhere.any_path.within = '.'\n",
    ),
    (
        "paths: allow any_path.path",
        "[[rule]]\nid = 'r'\nallow = ['read_doc', 'mcp:fs/*']\nwhere.any_path = ['src/**', 'docs/**', 'README.md']\n",
    ),
];

/// A rule that denies what is in the secrets, beside one that allows everything.
const DENYING: &[(&str, &str)] = &[
    (
        "paths: deny path.path",
        "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.path.path = ['**/.env', 'secrets/**']\n",
    ),
    (
        "paths: deny path.within",
        "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.path.within = ['.env', 'secrets']\n",
    ),
    (
        "paths: deny any_path.path",
        "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.any_path = ['**/.env', 'secrets/**']\n",
    ),
    (
        "paths: deny any_path.within",
        "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.any_path.within = ['.env', 'secrets']\n",
    ),
    (
        "paths: ask path.path",
        "[[rule]]\nid = 'r'\nask = ['read_doc', 'mcp:fs/*']\nwhere.path.path = ['**/.env', 'secrets/**']\n",
    ),
];

/// A rule that denies what is outside, beside one that allows everything.
const KEEPING_IN: &[(&str, &str)] = &[
    ("paths: deny path.outside", "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.path.outside = '.'\n"),
    (
        "paths: deny any_path.outside",
        "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.any_path.outside = '.'\n",
    ),
];

const ALL: &str = "[[rule]]\nid = 'all'\nallow = ['*', 'mcp:*/*']\n";

/// The text of the rules, for as long as the program runs.
pub(super) fn policy(text: &str, also_all: bool) -> Policy {
    let all = if also_all { ALL } else { "" };
    Policy::Text(Box::leak(format!("version = 1\n{all}{text}").into_boxed_str()))
}

fn argument(list: &mut List, path: &str) -> Value {
    match list.dice.roll(4) {
        0 => json!({"path": [path]}),
        1 => json!({"path": ["README.md", path]}),
        _ => json!({ "path": path }),
    }
}

fn add(
    list: &mut List,
    rules: &[(&'static str, &str)],
    also_all: bool,
    why: &'static str,
    texts: &[String],
    share: u64,
) {
    for (kind, text) in rules {
        let policy = policy(text, also_all);
        for path in texts {
            if list.dice.roll(100) >= share {
                continue;
            }
            let door = *list.one(&[&Door::Library, &Door::Guard]);
            let args = argument(list, path);
            list.of(kind, why).at(door, policy).call("read_doc", args);
        }
    }
}

/// What tools take for a file beside a plain path: options, revisions, patterns, several names in one text.
fn operands(list: &mut List) {
    let texts = [
        "--file=.env",
        "-f.env",
        "@.env",
        "HEAD:.env",
        ".env:stream",
        "path=.env",
        "README.md .env",
        "README.md,.env",
        "docs:.env",
        ".en?",
        "{.env,x}",
        "s?crets/key.txt",
        "secret*/key.txt",
        ".e*",
        "--include=secrets/key.txt",
    ];
    for (kind, rules) in &DENYING[2..3] {
        let _ = kind;
        let policy = policy(rules, true);
        for text in texts {
            list.of(
                "paths: deny any_path, as operands",
                "a program takes a part of the text for the file",
            )
            .at(Door::Library, policy)
            .call("run_tool", json!({ "target": text }));
        }
    }
}

pub(super) fn rows(list: &mut List, desk: &Rc<Desk>) {
    list.on(desk);
    let (root, home) = (desk.root.display().to_string(), desk.home.display().to_string());
    let mut outside: Vec<String> =
        spellings("../outside/notes.txt", &format!("{home}/outside/notes.txt"));
    outside.extend(spellings("../../../../../etc/passwd", "/etc/passwd").into_iter().step_by(3));
    outside.extend(OUTSIDE.iter().map(|it| (*it).to_owned()));
    outside.extend(unreadable("../outside/notes.txt", &format!("{home}/outside/notes.txt")));
    add(list, ALLOWING, false, "the path leads out of what is allowed (rule X2)", &outside, 60);
    let mut secret = spellings(".env", &format!("{root}/.env"));
    secret.extend(spellings("secrets/key.txt", &format!("{root}/secrets/key.txt")));
    secret.extend(unreadable("secrets/key.txt", &format!("{root}/secrets/key.txt")));
    add(list, DENYING, true, "the path leads to what is denied (rule X2)", &secret, 45);
    let mut out: Vec<String> =
        spellings("../outside/notes.txt", &format!("{home}/outside/notes.txt"));
    out.extend(
        OUTSIDE
            .iter()
            .filter(|it| !it.contains("://evil") && !it.starts_with("data"))
            .map(|it| (*it).to_owned()),
    );
    out.extend(unreadable("../outside/notes.txt", &format!("{home}/outside/notes.txt")));
    add(list, KEEPING_IN, true, "the path leads out of what is not denied (rule X2)", &out, 50);
    composed(list);
    operands(list);
    let files = "[[rule]]\nid = 'r'\nallow = ['read_file', 'list_files', 'write_file']\nwhere.path.within = '.'\n";
    let policy = policy(files, false);
    for client in [Client::Claude, Client::Gemini, Client::Opencode] {
        let (tool, field) = match client {
            Client::Claude => ("Read", "file_path"),
            Client::Gemini => ("read_file", "absolute_path"),
            _ => ("read", "filePath"),
        };
        for path in outside.iter().filter(|it| it.len() < 4_000) {
            if list.dice.roll(100) < 45 {
                list.of(
                    "paths: allow within, by a hook",
                    "the path leads out of what is allowed (rule X2)",
                )
                .at(Door::Hook(client), policy)
                .call(tool, json!({ field: path }));
            }
        }
    }
}

/// One name in two forms of Unicode.
fn composed(list: &mut List) {
    let policy = policy(
        "[[rule]]\nid = 'r'\ndeny = '*'\nwhere.any_path = '**/geh\u{e9}im/**'\n[[rule]]\nid = 's'\ndeny = '*'\nwhere.path.within = 'geh\u{e9}im'\n",
        true,
    );
    for path in [
        "gehe\u{301}im/x",
        "./gehe\u{301}im/x",
        "geh%C3%A9im/x",
        "gehe%CC%81im/x",
        "file:gehe\u{301}im/x",
        "GEHE\u{301}IM/x",
    ] {
        list.of(
            "paths: deny, composed",
            "some systems take both forms of a letter for one (rule X2)",
        )
        .at(Door::Library, policy)
        .call("read_doc", json!({ "path": path }));
    }
}

/// Rule R2: a field and `any_path` have one reader.
#[test]
fn a_field_and_any_path_give_the_same_answer_for_the_same_text() {
    let desk = Desk::new();
    let (root, home) = (desk.root.display().to_string(), desk.home.display().to_string());
    let mut texts = spellings("../outside/notes.txt", &format!("{home}/outside/notes.txt"));
    texts.extend(spellings(".env", &format!("{root}/.env")));
    texts.extend(spellings("src/main.rs", &format!("{root}/src/main.rs")));
    texts.extend(unreadable("src/main.rs", &format!("{root}/src/main.rs")));
    texts.extend(OUTSIDE.iter().map(|it| (*it).to_owned()));
    let conditions = [
        ("allow", "within = '.'"),
        ("allow", "path = ['src/**', '*.md']"),
        ("allow", "outside = '/etc'"),
        ("deny", "within = 'secrets'"),
        ("deny", "path = '**/.env'"),
        ("deny", "outside = '.'"),
        ("ask", "path = ['**/.env', 'src/**']"),
    ];
    let mut differ = Vec::new();
    for (effect, condition) in conditions {
        let of = |field: &str| {
            let text =
                format!("[[rule]]\nid = 'r'\n{effect} = ['read_doc']\nwhere.{field}.{condition}\n");
            policy(&text, effect != "allow")
        };
        let (field, any) = (of("path"), of("any_path"));
        for text in &texts {
            let args = json!({ "path": text });
            let judge = |policy| desk.allows(Door::Library, policy, "read_doc", &args);
            if judge(field) != judge(any) {
                differ.push(format!("{effect} {condition}: {text:?}: path {}", judge(field)));
            }
        }
    }
    println!("{} of {}", differ.len(), texts.len() * conditions.len());
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
