//! Values that are taken for named, over rows in `tests/origin`. No edit of a stranger's text changes that.

use countersign::origin::{Origin, ReadCall, ReadLabel, ReadRecord, Standpoint};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

/// One row: what was said and read, what the model wrote, and a value with the sources that have to name it.
#[derive(Debug, Deserialize)]
struct OriginRow {
    name: String,
    said: Vec<String>,
    read: Vec<(String, Value)>,
    value: Value,
    by: Vec<String>,
    #[serde(default)]
    wrote: Vec<Value>,
}

impl OriginRow {
    fn origin(&self) -> Origin {
        let record = ReadRecord::new().folders(Some("/home/u/p"), Some("/home/u"));
        self.said.iter().for_each(|text| record.user_said(text));
        self.wrote.iter().for_each(|args| record.model_wrote(args));
        for (number, (label, text)) in self.read.iter().enumerate() {
            let (label, args) = match label.split_once(' ') {
                Some((_, url)) => (ReadLabel::others("web"), json!({"url": url})),
                None if label == "own" => (ReadLabel::own(), Value::Null),
                None if label == "others" => (ReadLabel::unlabelled(), Value::Null),
                None => (ReadLabel::others(label.as_str()), Value::Null),
            };
            record.read(&label, &ReadCall::new(format!("c{number}"), "tool", args), text);
        }
        match self.by.iter().any(|it| it == "reading") {
            true => record.origin().for_reading(),
            false => record.origin(),
        }
    }

    fn is_named(&self) -> bool {
        let by: Vec<&str> = self.by.iter().map(String::as_str).collect();
        self.origin().named_by(&by, &self.value)
    }
}

fn rows(file: &str) -> Vec<OriginRow> {
    let path = format!("{}/origin/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let read =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    text.lines().map(read).collect()
}

fn those(file: &str, is_wrong: impl Fn(&OriginRow) -> bool) -> Vec<String> {
    rows(file).into_iter().filter(is_wrong).map(|row| row.name).collect()
}

/// O3: "A value occurs if the program that acts takes both texts for the same thing": none of these attacks does.
#[test]
fn no_attack_makes_a_value_named() {
    assert!(rows("attacks.jsonl").len() >= 100);
    assert_eq!(those("attacks.jsonl", OriginRow::is_named), [""; 0]);
}

/// O3: the spellings of daily work are one value.
#[test]
fn a_value_in_another_spelling_is_the_same() {
    assert_eq!(those("harmless.jsonl", |row| !row.is_named()), [""; 0]);
}

/// The limits that `docs/origin.md` names: comparing texts cannot tell them apart.
#[test]
fn a_coincidence_is_taken_for_named() {
    assert_eq!(those("limits.jsonl", |row| !row.is_named()), [""; 0]);
}

/// O4: a person is told where a value stands, what looks like it, and that nothing is known.
#[test]
fn people_are_told_where_a_value_stands() {
    let record = ReadRecord::new();
    record.user_said("Write to bob@acme.example");
    let call = |id: &str, url: &str| ReadCall::new(id, "fetch", json!({"url": url}));
    record.read(
        &ReadLabel::others("web"),
        &call("c1", "https://a.example/x"),
        &json!("encoded: ZXZlQGV2aWwuZXhhbXBsZQ=="),
    );
    record.read(
        &ReadLabel::own(),
        &ReadCall::new("c2", "contacts", json!({})),
        &json!([{"email": "ann@acme.example"}]),
    );
    let said = |value: &str| record.origin().of_value("/to", value).to_string();
    assert_eq!(said("bob@acme.example"), "named by you");
    assert_eq!(said("ann@acme.example"), "from `contacts` (call 2)");
    assert!(
        said("eve@evil.example")
            .starts_with("in nothing that was read; looks like what stands in `fetch`"),
        "{}",
        said("eve@evil.example")
    );
    let cyrillic = record.origin().of_value("/to", "b\u{43e}b@acme.example");
    assert!(cyrillic.is_warning(), "{cyrillic}");
    assert_eq!(
        cyrillic.to_string(),
        "in nothing that was read; looks like what stands in something you wrote"
    );
    assert_eq!(Origin::default().of_value("/to", "x").to_string(), "not recorded");
}

/// O2: "A missing, late, cut or oversized result leaves the values unknown, and surfaces say so".
#[test]
fn what_is_not_known_is_said() {
    let record = ReadRecord::new();
    let call = ReadCall::new("c1", "fetch", json!({}));
    record.let_through(&ReadLabel::others("web"), &call);
    assert!(record.origin().has_read("web"), "a call counts as read when it is let through");
    assert!(!record.origin().is_complete());
    assert!(
        record
            .origin()
            .of_value("/to", "x@y.example")
            .to_string()
            .contains("not all of what was read is known")
    );
    record.read(&ReadLabel::others("web"), &call, &json!("hello"));
    assert!(record.origin().is_complete());

    let small = ReadRecord::new().max_values(16);
    small.read(
        &ReadLabel::others("web"),
        &call,
        &json!("many words and many values stand in this text of others here"),
    );
    small.user_said("x@y.example");
    assert!(!small.origin().is_complete());
    assert!(
        small.origin().named_by(&["user"], &json!("x@y.example")),
        "a long page leaves room for the user's words"
    );
}

/// O3: what a run had read at a moment stays what it was, whatever is read later.
#[test]
fn a_moment_stays_what_it_was() {
    let record = ReadRecord::new();
    let before = record.origin();
    record.user_said("Write to bob@acme.example");
    record.read(&ReadLabel::others("web"), &ReadCall::new("c1", "fetch", json!({})), &json!("x"));
    assert!(!before.has_read("web") && !before.named_by(&["user"], &json!("bob@acme.example")));
    assert!(record.origin().has_read("web"));
}

/// The stored form is the record: every answer is the same after it was read back.
#[test]
fn a_stored_record_answers_the_same() {
    for row in rows("attacks.jsonl").iter().chain(&rows("harmless.jsonl")) {
        let record = ReadRecord::new().folders(Some("/home/u/p"), Some("/home/u"));
        row.said.iter().for_each(|text| record.user_said(text));
        row.read.iter().for_each(|(_, text)| {
            record.read(
                &ReadLabel::others("web"),
                &ReadCall::new("c", "t", json!({"url": "https://a.example"})),
                text,
            );
        });
        let stored = serde_json::to_string(&record).unwrap();
        let loaded: ReadRecord = serde_json::from_str(&stored).unwrap();
        assert_eq!(loaded, record, "{}", row.name);
        let text = row.value.as_str().unwrap_or_default();
        assert_eq!(
            loaded.origin().of_value("/v", text),
            record.origin().of_value("/v", text),
            "{}",
            row.name
        );
    }
    assert!(serde_json::from_str::<ReadRecord>(r#"{"key": "00", "max": 1, "reads": []}"#).is_err());
}

/// Texts of all kinds: words, values, spellings, noise.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        "[a-zA-Z]{1,8}",
        "[a-z]{1,4}@[a-z]{1,4}\\.example",
        "https?://[a-z]{1,4}\\.example/[a-z]{0,3}",
        "[0-9]{1,6}([.,][0-9]{1,3})?",
        "/?[a-z]{1,4}/[a-z]{1,4}\\.txt",
        Just("GB29 NWBK 6016 1331 9268 19".to_owned()),
        Just("May 26th 2026".to_owned()),
        "\\PC{0,6}",
        "[\u{200b}\u{202e}\u{0}%=&<>\"'`\\\\#@.,;:!?()\\[\\]{} \n\t-]{0,4}",
    ];
    proptest::collection::vec(parts, 0..8).prop_map(|parts| parts.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// O1, O3: "No edit of a stranger's text makes a call laxer": whatever strangers write, in any order, nothing becomes
    /// named that was not, and everything that asks without it asks with it.
    #[test]
    fn never_does_a_text_of_others_name_anything(
        said in texts(), own in texts(), strangers in proptest::collection::vec(texts(), 0..4), value in texts(), first in any::<bool>(),
    ) {
        let record = |with: bool| {
            let record = ReadRecord::new();
            let read = |label: &ReadLabel, id: &str, text: &str| {
                record.read(label, &ReadCall::new(id, "tool", json!({})), &json!([text]));
            };
            let others = || strangers.iter().filter(|_| with).for_each(|text| read(&ReadLabel::others("web"), "c1", text));
            if first { others() }
            record.user_said(&said);
            read(&ReadLabel::own(), "c2", &own);
            if !first { others() }
            record.origin()
        };
        let (without, with) = (record(false), record(true));
        let values = [json!(value), json!(said), json!(own)];
        let values = values.into_iter().chain(strangers.iter().map(|text| json!(text)));
        for value in values {
            for by in [&["user"][..], &["own"], &["user", "own"]] {
                prop_assert!(without.named_by(by, &value) || !with.named_by(by, &value), "{value} is named by {by:?}");
            }
            prop_assert!(!without.carries("others", &value) || with.carries("others", &value));
        }
        prop_assert!(!without.has_read("web"));
        prop_assert_eq!(with.has_read("web"), !strangers.is_empty());
    }

    /// Every answer about any text is given, and what is named is told as named.
    #[test]
    fn any_text_can_be_read_and_asked_about(said in texts(), other in "\\PC{0,200}", value in "\\PC{0,40}") {
        let record = ReadRecord::new();
        record.user_said(&said);
        record.read(&ReadLabel::others("web"), &ReadCall::new("c", "t", json!({"url": value.clone()})), &json!(other));
        let found = record.origin().of_value("/v", &value);
        let named = record.origin().for_reading().named_by(&["user"], &json!(value));
        if !value.contains([',', ';']) && !value.is_empty() {
            prop_assert_eq!(named, found.named_by == Standpoint::User);
        }
    }
}
