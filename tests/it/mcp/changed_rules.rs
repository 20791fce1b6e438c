//! A file of rules that changes between two runs of a guard (rule R3).

use serde_json::json;

use super::client::{Client, told};
use super::process::Desk;

/// R3: "until a person accepts the new rules, the stricter of them and those before decides. […] For the hook and the
/// guard this holds over processes".
#[tokio::test]
async fn a_guard_that_is_started_again_decides_by_the_stricter_of_both_rules() {
    let desk = Desk::new();
    let object = json!({"type": "object"});
    let mut server = desk.told();
    server["tools"] =
        json!([{"name": "read", "inputSchema": object}, {"name": "write", "inputSchema": object}]);
    let file = desk.user.home().join("rules.toml");
    let rules = file.display().to_string();
    let options =
        ["--name", "files", "--wait", "0", "--danger-accept-all-tools", "--rules", &rules];
    let allow = |tools: &str| format!("version = 1\n[[rule]]\nid = 'a'\nallow = '{tools}'\n");
    for (n, tools) in ["mcp:files/read", "mcp:files/*"].into_iter().enumerate() {
        std::fs::write(&file, allow(tools)).unwrap();
        let command = desk.guard_of("ann", &options, &server);
        let mut client = Client::earlier(command, "2025-11-25", json!({})).await;
        let (text, is_error) = told(&client.call("read", json!({})).await);
        assert!(!is_error, "{text}");
        let (text, is_error) = told(&client.call("write", json!({"n": n})).await);
        assert!(is_error, "{text}");
        let pending = desk.pending().await;
        let asked = pending.iter().find(|record| record.ask.args().get("n") == Some(&json!(n)));
        let says =
            |it: &countersign::decision::Question| it.reason().contains("the rules were changed");
        assert_eq!(asked.unwrap().ask.questions().iter().any(says), n == 1, "{asked:?}");
    }
}
