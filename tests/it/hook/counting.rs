//! Limits of rules behind a hook, which sees a call again after its approval (rule R7).

use std::time::{Duration, Instant};

use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::{Decision, ToolMiddlewareExt, decide_fn};
use countersign_cli::hook::{Client, Hook};
use countersign_rules::Rules;
use serde_json::json;
use tower::ServiceBuilder;

/// Two calls in an hour; what is beyond is denied.
const TWO: &str = "at_most = { calls = 2, within = '1h', else = 'deny' }";

/// One agent, whose calls are equal.
struct Agent {
    hook: Hook,
    ledger: Ledger,
}

impl Agent {
    /// Behind these rules, and a layer outside of them that asks about all that contains `slow`.
    fn new(effect: &str) -> Self {
        let ledger = Ledger::new(MemoryStore::new());
        let text = format!("version = 1\n[[rule]]\nid = 'few'\n{effect} = 'shell'\n{TWO}");
        let rules = Rules::builder().lexical().text("mine.toml", text).counts(ledger.clone());
        let asks = decide_fn(|_, call: &countersign::ToolCall| {
            match call.args().str("command").is_some_and(|it| it.contains("slow")) {
                true => Decision::ask("slow"),
                false => Decision::allow(),
            }
        });
        let rules = rules.load().unwrap().into_layer();
        let both = ServiceBuilder::new().layer(asks.named("slow")).layer(rules);
        Self { hook: Hook::new(Client::Claude).layered(both), ledger }
    }

    /// What the client is told about a call: nothing if it may run.
    async fn calls(&self, command: &str) -> String {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": command},
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let store = async { Ok(self.ledger.clone()) };
        let reply = self.hook.answer(payload.as_bytes(), until, store).await;
        assert_eq!(reply.is_denial(), !reply.stderr().is_empty());
        reply.stderr().to_owned()
    }

    async fn approves(&self) {
        let pending = self.ledger.list(Some(AskState::Pending), 10).await.unwrap().records;
        assert_eq!(pending.len(), 1);
        for record in pending {
            let (id, fingerprint) = (record.ask.id(), &record.fingerprint);
            let yes = Answer::Approve { args: None };
            self.ledger.decide(id, fingerprint, "ann", yes).await.unwrap();
        }
    }

    /// Makes a call until a person is asked, and again after the approval, so that it runs.
    async fn runs_after_an_approval(&self, command: &str) {
        for _ in 0..3 {
            assert!(self.calls(command).await.contains("waits for approval"));
        }
        self.approves().await;
        assert_eq!(self.calls(command).await, "");
    }
}

// R7: "`at_most` counts calls that reached the rule, once per call".
#[tokio::test]
async fn a_call_that_is_made_again_until_it_is_approved_counts_once() {
    let agent = Agent::new("ask");
    for _ in 0..2 {
        agent.runs_after_an_approval("make").await;
    }
    assert!(agent.calls("make").await.contains("at most 2 calls"));
    assert!(agent.calls("make other").await.contains("at most 2 calls"));
}

#[tokio::test]
async fn a_call_that_another_layer_asks_about_counts_once() {
    let agent = Agent::new("allow");
    agent.runs_after_an_approval("slow").await;
    assert_eq!(agent.calls("fast").await, "");
    assert!(agent.calls("fast").await.contains("at most 2 calls"));
}

#[tokio::test]
async fn an_open_ask_lets_no_other_call_run_uncounted() {
    let agent = Agent::new("allow");
    assert!(agent.calls("slow").await.contains("waits for approval"));
    assert_eq!(agent.calls("fast").await, "");
    for _ in 0..3 {
        assert!(agent.calls("fast").await.contains("at most 2 calls"));
    }
    // The call that was counted has its place, although the limit is reached.
    agent.approves().await;
    assert_eq!(agent.calls("slow").await, "");
    assert!(agent.calls("slow").await.contains("at most 2 calls"));
}

#[tokio::test]
async fn equal_calls_at_the_same_time_are_two_calls() {
    let agent = Agent::new("ask");
    assert!(agent.calls("make").await.contains("waits for approval"));
    agent.approves().await;
    let said = futures::future::join_all((0..4).map(|_| agent.calls("make"))).await;
    assert_eq!(said.iter().filter(|text| text.is_empty()).count(), 1, "{said:?}");
    agent.approves().await;
    assert_eq!(agent.calls("make").await, "");
    assert!(agent.calls("make").await.contains("at most 2 calls"));
}
