//! The entry of a guard that the pages of earlier versions name works with this version.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, forms, told, yes};
use super::process::Desk;

/// The words of the entry, in front of a server that logs its runs.
fn words(entry: &Value, desk: &Desk) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.py");
    let server = ["python3".to_owned(), script.display().to_string(), desk.told().to_string()];
    let args = entry["mcpServers"]["files"]["args"].as_array().unwrap();
    let words = args.iter().flat_map(|word| match word.as_str().unwrap() {
        "SERVER" => server.to_vec(),
        word => vec![word.to_owned()],
    });
    words.collect()
}

#[tokio::test]
async fn an_entry_that_an_earlier_version_has_named_starts_a_guard_that_asks() {
    let entry = serde_json::from_str(include_str!("../../entries/guard.json")).unwrap();
    let desk = Desk::new();
    let words = words(&entry, &desk);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let mut client = Client::earlier(desk.user.command(&words), "2025-06-18", forms()).await;
    desk.accept_tools().await;
    client.person = Some(yes());
    let (text, error) = told(&client.call("write", json!({"n": 1})).await);
    assert!(!error && text.starts_with("wrote"), "{text}");
    assert_eq!((client.asked.len(), desk.runs().len()), (1, 1));
}
