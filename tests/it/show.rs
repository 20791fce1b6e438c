//! The view of a call, over random texts: it is masked by its shape, and cannot act on a screen (rules S1,
//! S4).

use countersign::show::{CallView, Field, Limits, escape, json};
use countersign::{Args, Decision, ToolsExt as _, Turn, decide_fn};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call, cases};

/// The argument of this name, as it is shown in full.
fn field(name: &str, text: &str) -> Field {
    let view = CallView::of_call(&call("c1", "act", json!({name: text})), Limits::none());
    view.args.into_iter().next().expect("the call has one argument")
}

/// A key of a machine in the place of a secret.
fn is_masked(text: &str) -> bool {
    field("token", text).masked
}

fn pem(body: &str) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----")
}

fn words(least: usize) -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof!["[a-z]{1,12}", "[A-Z][a-z]{1,10}", "[A-Z]{2,6}", "[0-9]{1,6}"];
    vec(word, least..12)
}

fn commands() -> impl Strategy<Value = String> {
    let program = prop::sample::select(vec![
        "rm",
        "sh",
        "curl",
        "/usr/bin/python3",
        "./run1.sh",
        "git",
        "sudo",
        "dd",
        "sha256sum",
        "a2enmod",
        "$(x1y2z3a4)",
    ]);
    let word = prop_oneof![
        "[a-z]{1,8}",
        "-[a-zA-Z]{1,3}",
        "--[a-z]{2,8}(-[a-z]{2,8})?",
        "(/[a-z0-9.]{1,8}){1,4}",
        "[a-z]{1,6}[0-9]?\\.[a-z]{2,3}",
        "\\$[A-Z]{1,6}",
        "[;|&<>]",
        "[0-9]{1,6}",
    ];
    (program, vec(word, 1..8)).prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

fn places() -> impl Strategy<Value = String> {
    prop_oneof![
        "(/[a-z0-9._-]{1,12}){1,6}",
        "\\.{1,2}(/[a-z0-9._]{1,10}){1,5}",
        "[a-z]{1,8}(/[a-z0-9.]{1,10}){1,4}",
        "([a-z0-9]{1,10}\\.){1,4}[a-z]{2,6}",
        "[0-9]{1,3}(\\.[0-9]{1,3}){3}",
        "https?://[a-z0-9.]{1,20}(/[a-z0-9]{1,20}){0,3}",
        "([a-z0-9]{1,10}\\.){1,3}[a-z]{2,6}:[0-9]{2,5}",
        "[A-Z][a-z]{2,8}[0-9]{0,2}(/([A-Z][a-z]{2,8}[0-9]{0,2}){1,3}){1,5}(/[A-Z][a-z])?",
        "-?[0-9]{1,30}(\\.[0-9]{1,9})?",
    ]
}

/// Words of three letters and more, each with a number or without, and a short one among them.
fn segment() -> impl Strategy<Value = String> {
    let word = prop_oneof!["[A-Z][a-z]{2,9}", "[A-Z]{3,6}[0-9]", "[0-9]{1,3}[a-z]{3,10}"];
    let numbered = (word, "[0-9]{0,3}").prop_map(|(word, number)| word + &number);
    (vec(numbered, 2..5), prop::option::of("[A-Z][a-z]?[0-9]{0,2}"))
        .prop_map(|(words, short)| words.concat() + &short.unwrap_or_default())
}

/// The bytes of a random generator, in base64.
fn base64() -> impl Strategy<Value = String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    vec(0..64_usize, 44).prop_map(|all| all.iter().map(|at| char::from(ALPHABET[*at])).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(256)))]

    /// S4: "Masking never hides a command, path, host, script line, boolean, number or sentence", whatever the argument is
    /// called.
    #[test]
    fn what_is_decided_about_is_never_masked(
        sentence in words(2), command in commands(), place in places(), script in vec(commands(), 1..6),
    ) {
        let script = script.join("\n");
        for text in [sentence.join(" "), command, place, pem(&script), script] {
            for name in ["note", "token", "password", "command", "path", "script", "url"] {
                let field = field(name, &text);
                prop_assert!(!field.masked && !field.left_out, "{name}: {text}");
                let whole = [escape(&text), format!("\"{}\"", escape(&text))];
                prop_assert!(whole.contains(&field.value()), "{name}: {}", field.value());
            }
        }
    }

    /// S4: what a machine made at random is masked.
    #[test]
    fn keys_are_masked(hex in "[0-9a-f]{32}", key in "[0-9A-Za-z]{32}", github in "[0-9A-Za-z]{36}") {
        for text in [hex, key, format!("ghp_{github}")] {
            prop_assume!(text.matches(|c: char| c.is_ascii_digit()).count() > 3 && text.contains(char::is_alphabetic));
            let mask = format!("\\{{masked: {} characters}}", text.len());
            for name in ["token", "password"] {
                prop_assert_eq!(field(name, &text).value(), mask.clone());
            }
        }
    }

    /// Nothing that is shown of a call can act on a screen, and no line is too long.
    #[test]
    fn nothing_shown_acts_on_a_screen(
        [name, key, value] in [hostile(), hostile(), hostile()], width in 0_usize..120,
    ) {
        let args = json!({key: value.clone(), "nested": {"command": value.clone(), "list": [value.clone(), 1]}});
        let view = asked(&name, &args, &value);
        for line in view.text(width).split('\n') {
            prop_assert!(line.chars().count() <= width.max(24), "{line}");
            prop_assert!(!line.contains(acts), "{line:?}");
        }
        let args = Args::try_from(args).unwrap();
        prop_assert_eq!(Args::parse(&json(&args)).unwrap(), args);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(512)))]

    /// S4: "Masking never hides a … path".
    #[test]
    fn a_path_of_words_and_numbers_is_not_masked(path in vec(segment(), 2..7)) {
        let path = path.join("/");
        prop_assert!(!is_masked(&path) && !field("password", &path).masked, "{}", path);
    }

    #[test]
    fn hexadecimal_is_masked(digits in "[0-9a-f]{30}") {
        let text = format!("{digits}0f");
        prop_assert!(is_masked(&text) && is_masked(&text.to_uppercase()), "{}", text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// No shape tells every key from every path, and in doubt a value is shown: on average one of 25. More than three
    /// times as many do not come by chance.
    #[test]
    fn most_keys_in_base64_are_masked(keys in vec(base64(), 500)) {
        let shown = keys.iter().filter(|key| !is_masked(key)).count();
        prop_assert!(shown < 65, "{} of {}", shown, keys.len());
    }
}

/// A control character, a bidirectional or zero-width one, or a tag.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Any text, and texts of characters that a screen acts on.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \\t\\n\\r\\\\\"a\u{1b}\u{202e}\u{200b}\u{301}\u{e0041}\u{ff3c}]{0,60}",
    ]
}

/// A call that a layer asks about, with this text as the reason and as metadata, as an approver sees it.
fn asked(name: &str, args: &serde_json::Value, text: &str) -> CallView {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (reason, key) = (text.to_owned(), name.to_owned());
    let policy = decide_fn(move |_, _| {
        Decision::ask(reason.clone()).with_metadata(key.clone(), reason.clone())
    });
    let turn = Turn::new(Recorder::new([name]).layered(policy));
    let report = runtime.block_on(turn.run(vec![call("c1", name, args.clone())])).unwrap();
    let requests = report.deferred().expect("the call is pending");
    CallView::of(&requests, "c1", Limits::default()).unwrap()
}

/// S11: after commands, paths and addresses, the arguments stand in the order of the call, as a model that keeps to the
/// schema of the tool writes them.
#[test]
fn arguments_stand_in_the_order_of_the_call() {
    let args =
        r#"{"owner": "acme", "repo": "shop", "title": "x", "body": "y", "path": "src/cart.rs"}"#;
    let args: serde_json::Value = serde_json::from_str(args).unwrap();
    let view = CallView::of_call(&call("c1", "create_issue", args), Limits::none());
    let names: Vec<_> = view.args.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["path", "owner", "repo", "title", "body"]);
}
