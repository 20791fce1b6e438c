//! "Always", for the tools of a guarded server (rule G3).

use countersign::deferred::Answer;
use countersign::ledger::{AskState, GrantOutcome, GrantPlace, Offers};
use serde_json::{Value, json};

use super::client::{Client, told};
use super::process::Desk;

const RULES: &str = "version = 1\n[[rule]]\nid = 'w'\nask = 'mcp:files/write'\n\
                     [[rule]]\nid = 'each'\nask = 'mcp:files/pay'\nevery_time = true\n";

fn tools() -> Value {
    let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = |name: &str| json!({"name": name, "inputSchema": number});
    json!([tool("write"), tool("pay"), tool("drop")])
}

/// G3: "this tool with any arguments", beside exactly these, where each rule that asks agrees; also without a file of rules.
#[tokio::test]
async fn a_tool_may_be_granted_with_these_values_or_with_any() {
    for has_rules in [true, false] {
        let desk = Desk::new();
        let mut server = desk.told();
        server["tools"] = tools();
        let file = desk.user.home().join("rules.toml");
        std::fs::write(&file, RULES).unwrap();
        let file = file.display().to_string();
        let rules = if has_rules { vec!["--rules", &*file] } else { Vec::new() };
        let options = ["--name", "files", "--wait", "0", "--danger-accept-all-tools"];
        let command = desk.guard_of("ann", &[&options[..], &rules].concat(), &server);
        let mut client = Client::earlier(command, "2025-11-25", json!({})).await;
        let ledger = desk.ledger().await;
        client.call("write", json!({"n": 1})).await;
        let [asked] = &desk.pending().await[..] else { panic!("one ask is pending") };
        let offers = Offers::of(&asked.ask);
        let sentences: Vec<_> = offers.iter().map(|offer| offer.sentence()).collect();
        let expected = ["with exactly these arguments", "with any arguments"]
            .map(|how| format!("`mcp:files/write` {how}, in this session, for at most 12h"));
        assert_eq!(sentences, expected, "{has_rules}");

        let tool = offers.choose(GrantPlace::Session, 1, None).unwrap();
        assert!(tool.grant().to_toml().contains("any_args = \"all\""));
        let yes = Answer::Approve { args: None };
        ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", yes).await.unwrap();
        assert!(matches!(tool.make(&ledger, "ann").await, GrantOutcome::Made(_)));
        for arguments in [json!({"n": 1}), json!({"n": 2}), json!({})] {
            let (text, is_error) = told(&client.call("write", arguments).await);
            assert!(!is_error, "{text}");
        }
        // Another tool is asked about, and one that is asked about each time is offered nothing.
        for tool in ["drop", "pay"] {
            assert!(told(&client.call(tool, json!({"n": 1})).await).1);
        }
        let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
        let pay = pending.iter().find(|it| it.ask.tool() == "mcp:files/pay").unwrap();
        assert_eq!((pending.len(), Offers::of(&pay.ask).is_empty()), (2, has_rules));
        assert_eq!(desk.runs().len(), 3);
    }
}
