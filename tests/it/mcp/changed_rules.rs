//! A file of rules that changes between two runs of a guard (rule R3).

use countersign_rules::AcceptedRules;
use serde_json::{Value, json};

use super::client::{Client, told};
use super::process::Desk;

/// A server with the tools `read` and `write`.
fn with_two_tools(desk: &Desk) -> Value {
    let object = json!({"type": "object"});
    let mut server = desk.told();
    server["tools"] =
        json!([{"name": "read", "inputSchema": object}, {"name": "write", "inputSchema": object}]);
    server
}

/// R3: "until a person accepts the new rules, the stricter of them and those before decides. […] For the hook and the
/// guard this holds over processes".
#[tokio::test]
async fn a_guard_that_is_started_again_decides_by_the_stricter_of_both_rules() {
    let desk = Desk::new();
    let server = with_two_tools(&desk);
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

/// R3: "until a person accepts the new rules, the stricter of them and those before decides", also while a guard runs, and
/// "a file that was there and is gone denies".
#[tokio::test]
async fn a_running_guard_decides_by_its_files_as_they_are() {
    let desk = Desk::new();
    let server = with_two_tools(&desk);
    let file = desk.user.home().join("rules.toml");
    let rules = file.display().to_string();
    let options =
        ["--name", "files", "--wait", "0", "--danger-accept-all-tools", "--rules", &rules];
    let allow = |tools: &str| format!("version = 1\n[[rule]]\nid = 'a'\nallow = '{tools}'\n");
    let (narrow, wide) = (allow("mcp:files/read"), allow("mcp:files/*"));
    std::fs::write(&file, &narrow).unwrap();
    let command = desk.guard_of("ann", &options, &server);
    let mut client = Client::earlier(command, "2025-11-25", json!({})).await;
    let mut called = async |tool: &str, n: u32| told(&client.call(tool, json!({"n": n})).await);
    assert!(!called("read", 0).await.1);
    assert!(called("write", 0).await.0.contains("waits for an approval"));

    // Wider rules count when they are accepted, and not before.
    std::fs::write(&file, &wide).unwrap();
    assert!(!called("read", 1).await.1);
    assert!(called("write", 1).await.0.contains("waits for an approval"));
    let asked = desk.pending().await;
    let asked = asked.iter().find(|record| record.ask.args().get("n") == Some(&json!(1))).unwrap();
    let reason = asked.ask.questions()[0].reason();
    assert!(reason.contains("run `countersign rules accept`"), "{reason}");
    let accepted = AcceptedRules::at(desk.user.state("rules"));
    accepted.accept(&file, Some(&wide)).unwrap();
    assert!(!called("write", 2).await.1);

    // Narrower ones count at once.
    let denies = format!("{wide}[[rule]]\nid = 'b'\ndeny = 'mcp:files/write'\n");
    std::fs::write(&file, &denies).unwrap();
    assert!(called("write", 3).await.0.contains("rule `b`") || called("write", 3).await.1);
    assert!(!called("read", 3).await.1);
    assert_eq!(accepted.accepted(&file).unwrap().unwrap().text.as_deref(), Some(&*denies));

    // Without rules, or with ones that cannot be read, nothing is allowed.
    let deny_all = |told: (String, bool)| {
        assert!(told.1 && told.0.contains("rules cannot be used"), "{told:?}")
    };
    std::fs::write(&file, "version = 1\n[[rule]]\nid = 'a'\nalow = '*'\n").unwrap();
    deny_all(called("read", 4).await);
    std::fs::remove_file(&file).unwrap();
    deny_all(called("read", 5).await);
    std::fs::write(&file, &denies).unwrap();
    assert!(!called("read", 6).await.1);

    // Removing the record has not made the file the rules of the user.
    std::fs::remove_dir_all(desk.user.state("rules")).unwrap();
    std::fs::write(&file, &wide).unwrap();
    deny_all(called("write", 7).await);
    assert_eq!(desk.runs().len(), 5);
}

/// R3: "a guard that began without rules takes its usual file once it is there": what asks and denies counts at once, and what
/// allows when a person has accepted it.
#[tokio::test]
async fn a_running_guard_takes_its_first_file_of_rules() {
    let desk = Desk::new();
    let server = with_two_tools(&desk);
    let options = ["--name", "files", "--wait", "0", "--danger-accept-all-tools"];
    let command = desk.guard_of("ann", &options, &server);
    let mut client = Client::earlier(command, "2025-11-25", json!({})).await;
    let mut called = async |tool: &str, n: u32| told(&client.call(tool, json!({"n": n})).await);
    let (text, is_error) = called("read", 0).await;
    assert!(is_error && text.contains("waits for an approval"), "{text}");
    assert!(text.contains("on a terminal with `countersign asks review`"), "{text}");

    let file = desk.user.home().join(".config/countersign/guard/files.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let deny = "[[rule]]\nid = 'b'\ndeny = 'mcp:files/write'\nreason = 'nothing is written'\n";
    std::fs::write(&file, format!("version = 1\n{deny}")).unwrap();
    let (text, is_error) = called("write", 1).await;
    assert!(is_error && text.contains("nothing is written"), "{text}");
    assert!(called("read", 1).await.0.contains("waits for an approval"));

    let wide = format!("version = 1\n{deny}[[rule]]\nid = 'a'\nallow = 'mcp:files/*'\n");
    std::fs::write(&file, &wide).unwrap();
    assert!(called("read", 2).await.0.contains("waits for an approval"));
    AcceptedRules::at(desk.user.state("rules")).accept(&file, Some(&wide)).unwrap();
    assert!(!called("read", 3).await.1);
    assert!(called("write", 3).await.1);
    assert_eq!(desk.runs().len(), 1);
}
