//! The messages that pass beside calls: completions, log messages, updates of resources, and changes of lists (rules M1, M5).

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, forms, yes};
use super::process::{Desk, wait};
use super::translating::{before, before_command, fixture};

const ERA: &str = "2025-11-25";

/// A client of a guard that allows every request, before a server of an earlier revision.
async fn allowed(desk: &Desk) -> Client {
    Client::earlier(before(desk, ERA, &[]), ERA, json!({})).await
}

fn completion() -> Value {
    json!({
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "par"},
    })
}

/// Notifications of this kind, as the client got them.
fn notified<'a>(client: &'a Client, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let method = format!("notifications/{kind}");
    client.notified.iter().filter(move |it| it["method"] == *method).map(|it| &it["params"])
}

/// Waits for a notification that follows others.
async fn until(client: &mut Client, kind: &str) {
    until_all(client, kind, 1).await;
}

/// Waits until this many notifications of a kind have arrived.
async fn until_all(client: &mut Client, kind: &str, number: usize) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(30) {
        if notified(client, kind).count() >= number {
            return;
        }
        // Notifications are read with the next response.
        client.ask("ping", json!({})).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("not {number} of {kind}: {:?}", client.notified)
}

// "A completion is judged as a call, and no person is asked."
#[tokio::test]
async fn a_completion_is_the_servers_where_it_is_allowed_and_empty_elsewhere() {
    for era in [ERA, "2026-07-28"] {
        let desk = Desk::new();
        let mut client = Client::newest(before(&desk, era, &[]), forms()).await;
        let response = client.ask("completion/complete", completion()).await;
        let completion = &response["result"]["completion"];
        assert_eq!(completion["values"], json!(["paris", "park", "party"]), "{era}: {response}");
        assert_eq!(completion["total"], 3);
    }
    for rule in ["ask = 'mcp:asking/completion/*'", "deny = 'mcp:asking/completion/*'", ""] {
        let desk = Desk::new();
        let rules = desk.user.home().join("more.toml");
        let rule =
            if rule.is_empty() { String::new() } else { format!("[[rule]]\nid = 'no'\n{rule}\n") };
        std::fs::write(&rules, format!("version = 1\n{rule}")).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/fixture.py");
        let (rules, script) = (rules.display().to_string(), script.display().to_string());
        let options = ["--name", "asking", "--danger-accept-all-tools", "--rules", &rules];
        let guard = desk.guard_before("ann", &options, &["python3", &script, ERA]);
        let mut client = Client::earlier(guard, ERA, forms()).await;
        let response = client.ask("completion/complete", completion()).await;
        assert_eq!(response["result"]["completion"]["values"], json!([]), "{response}");
        let response = client.ask("resources/subscribe", json!({"uri": "test://a"})).await;
        assert!(response["error"]["message"].as_str().unwrap().contains("not allowed"));
        assert!(client.asked.is_empty() && desk.pending().await.is_empty(), "no one is asked");
    }
}

// M1: "Reading a resource and getting a prompt are judged as calls."
#[tokio::test]
async fn reading_a_resource_and_getting_a_prompt_are_judged_as_calls() {
    let requests = [
        ("resources/read", json!({"uri": "test://static-text"}), "contents"),
        ("prompts/get", json!({"name": "test_simple_prompt"}), "messages"),
    ];
    for (method, params, part) in requests {
        for decision in ["allow", "ask", "deny"] {
            let desk = Desk::new();
            let rules = desk.user.home().join("more.toml");
            let rule = format!(
                "id = 'it'\n{decision} = 'mcp:asking/{method}'\nreason = 'so says the rule'\n"
            );
            std::fs::write(&rules, format!("version = 1\n[[rule]]\n{rule}")).unwrap();
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/fixture.py");
            let (rules, script) = (rules.display().to_string(), script.display().to_string());
            let options = [
                "--name",
                "asking",
                "--wait",
                "20",
                "--danger-accept-all-tools",
                "--rules",
                &rules,
            ];
            let guard = desk.guard_before("ann", &options, &["python3", &script, ERA]);
            let mut client = Client::earlier(guard, ERA, forms()).await;
            client.person = Some(yes());
            let response = client.ask(method, params.clone()).await;
            let is_given = response["result"][part].as_array().is_some_and(|it| !it.is_empty());
            assert_eq!(is_given, decision != "deny", "{method}, {decision}: {response}");
            let asked: Vec<_> = client.asked.iter().map(|it| it["message"].to_string()).collect();
            assert_eq!(asked.len(), usize::from(decision == "ask"), "{method}, {decision}");
            assert!(
                asked.iter().all(|it| it.contains(method) && it.contains("so says the rule")),
                "{asked:?}"
            );
            if decision == "deny" {
                assert!(response.to_string().contains("so says the rule"), "{response}");
            }
        }
    }
}

#[tokio::test]
async fn log_messages_reach_a_client_that_asks_for_them_from_its_level_on() {
    let desk = Desk::new();
    for (level, expected) in [(None, 0), (Some("info"), 4), (Some("error"), 1), (Some("alert"), 0)]
    {
        let mut client = allowed(&desk).await;
        if let Some(level) = level {
            let response = client.ask("logging/setLevel", json!({"level": level})).await;
            assert_eq!(response["result"], json!({}), "{response}");
        }
        client.call("test_tool_with_logging", json!({})).await;
        let told: Vec<_> = notified(&client, "message").map(|it| it["data"].clone()).collect();
        assert_eq!(told.len(), expected, "{level:?}: {told:?}");
        if level == Some("info") {
            // All of them come before the result, in their order.
            assert_eq!(
                (&told[0], &told[3]),
                (&json!("Tool execution started"), &json!("Tool execution has ended"))
            );
            assert_eq!(notified(&client, "message").next().unwrap()["logger"], "fixture");
        }
    }
}

#[tokio::test]
async fn a_client_of_an_earlier_revision_is_told_of_changes_by_their_kind() {
    let desk = Desk::new();
    let mut client = allowed(&desk).await;
    for uri in ["test://a", "test://b", "test://a"] {
        let response = client.ask("resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(response["result"], json!({}), "{response}");
    }
    client.ask("resources/unsubscribe", json!({"uri": "test://b"})).await;
    let response = client.call("test_changes", json!({})).await;
    assert_eq!(response["result"]["content"][0]["text"], "test://a", "{response}");
    for kind in ["tools", "prompts", "resources"] {
        until(&mut client, &format!("{kind}/list_changed")).await;
    }
    until_all(&mut client, "resources/updated", 2).await;
    // The server has announced an update of another resource between these.
    client.ask("ping", json!({})).await;
    let mut updated: Vec<_> =
        notified(&client, "resources/updated").map(|it| it["uri"].clone()).collect();
    updated.sort_by_key(ToString::to_string);
    assert_eq!(updated, [json!("test://a"), json!("test://a/below")]);
}

#[tokio::test]
async fn a_client_of_the_newest_revision_is_streamed_the_changes_it_wants() {
    for era in [ERA, "2026-07-28"] {
        let desk = Desk::new();
        let mut client = Client::newest(before(&desk, era, &[]), json!({})).await;
        let wants = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://a"]});
        let listening = client.begin("subscriptions/listen", json!({"notifications": wants})).await;
        until(&mut client, "subscriptions/acknowledged").await;
        let accepted = notified(&client, "subscriptions/acknowledged").next().unwrap().clone();
        assert_eq!(accepted["notifications"], json!({"promptsListChanged": true}), "{accepted}");
        if era == ERA {
            client.call("test_changes", json!({})).await;
            until(&mut client, "prompts/list_changed").await;
        }
        for other in ["tools/list_changed", "resources/list_changed", "resources/updated"] {
            assert_eq!(notified(&client, other).count(), 0, "{other}: {:?}", client.notified);
        }
        assert!(listening > 0);
    }
}

/// Calls the tool that announces changes until its response has this text.
async fn until_changes_say(client: &mut Client, text: &str) {
    let mut response = Value::Null;
    for _ in 0..1_500 {
        response = client.call("test_changes", json!({})).await;
        if response.to_string().contains(text) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("no {text}: {response}")
}

// A client finds its subscriptions and its level of log messages again after the server was restarted, also where the
// first attempts to restart it have failed.
#[tokio::test]
async fn subscriptions_survive_a_restart_of_the_server() {
    for failed_starts in [0, 1] {
        let desk = Desk::new();
        let broken = desk.user.home().join("broken");
        let command = "test ! -e \"$0\" && exec python3 \"$1\" \"$2\"";
        let command = ["sh", "-c", command, &broken.display().to_string(), &fixture(), ERA];
        let mut client =
            Client::earlier(before_command(&desk, &[], &command), ERA, json!({})).await;
        client.ask("resources/subscribe", json!({"uri": "test://a"})).await;
        client.ask("logging/setLevel", json!({"level": "info"})).await;
        let before = client.call("test_process", json!({})).await;
        let process = before["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        std::process::Command::new("kill").args(["-9", &process]).status().unwrap();
        let exe = Path::new("/proc").join(&process).join("exe");
        wait("the server has ended", || !exe.exists()).await;
        for _ in 0..failed_starts {
            std::fs::write(&broken, "").unwrap();
            until_changes_say(&mut client, "does not answer").await;
            std::fs::remove_file(&broken).unwrap();
        }
        until_changes_say(&mut client, r#""text":"test://a""#).await;
        until(&mut client, "resources/updated").await;
        client.call("test_tool_with_logging", json!({})).await;
        assert_eq!(notified(&client, "message").count(), 4, "{:?}", client.notified);
    }
}
