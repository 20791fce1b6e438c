//! Reasoning is sent back only to the provider that produced it.

use countersign::message::ResponsePart;
use countersign::{Agent, Message};
use genai::adapter::AdapterKind;
use serde_json::{Value, json};

use super::conversations::done;
use super::provider::{Part, Provider, Reply, Wire, calls, says};
use super::tools;

fn thinking(text: &str, signature: &str) -> Part {
    Part::Thinking { text: text.into(), signature: signature.into() }
}

fn thoughts() -> Vec<Part> {
    vec![
        thinking("first", "c2lnLTE="),
        Part::Redacted("aGlkZGVu".into()),
        thinking("", "c2lnLTI="),
        says("I look."),
        calls("c1", "read", json!({})),
        calls("c2", "read", json!({})),
    ]
}

#[tokio::test]
async fn signed_reasoning_is_sent_back_unchanged() {
    for streaming in [true, false] {
        let provider = Provider::saying(Wire::Anthropic, [Reply::Says(thoughts()), done()]).await;
        let agent = Agent::new(provider.model().streaming(streaming), tools());
        let run = agent.run("go").await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
        let blocks = provider.last()["messages"][1]["content"].clone();
        let wanted = json!([
            {"type": "thinking", "thinking": "first", "signature": "c2lnLTE="},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
            {"type": "thinking", "thinking": "", "signature": "c2lnLTI="},
        ]);
        assert_eq!(blocks.as_array().unwrap()[..3], wanted.as_array().unwrap()[..]);

        // Stored and read, the history is the same; another provider sees nothing of it.
        let stored = serde_json::to_string(run.history()).unwrap();
        let history: Vec<Message> = serde_json::from_str(&stored).unwrap();
        assert_eq!(history, run.history());
        let other = Provider::saying(Wire::OpenAi, [done()]).await;
        let run = Agent::new(other.model(), tools()).run("more").history(history).await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", other.refused());
    }
}

#[tokio::test]
async fn plain_reasoning_is_sent_back_where_it_is_required() {
    let parts = || vec![thinking("hm", ""), calls("c1", "read", json!({}))];
    let provider = Provider::saying(Wire::OpenAi, [Reply::Says(parts()), done()]).await;
    let model = provider.model_of(AdapterKind::DeepSeek, "deepseek-reasoner");
    let run = Agent::new(model, tools()).run("go").await.unwrap();
    assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
    assert_eq!(provider.last()["messages"][1]["reasoning_content"], "hm");

    // OpenAI's own server would refuse the field.
    let provider = Provider::saying(Wire::OpenAi, [Reply::Says(parts()), done()]).await;
    let run = Agent::new(provider.model(), tools()).run("go").await.unwrap();
    assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
}

#[test]
fn reasoning_has_pydantic_ais_shape() {
    let part = |value: Value| serde_json::from_value::<ResponsePart>(value).unwrap();
    // As PydanticAI writes it.
    let theirs = json!({"content": "hm", "id": null, "signature": "c2ln", "provider_name": "anthropic",
        "provider_details": null, "part_kind": "thinking"});
    let ours = part(theirs.clone());
    assert!(matches!(&ours, ResponsePart::Thinking { content, signature, .. }
        if content == "hm" && signature.as_deref() == Some("c2ln")));
    assert_eq!(serde_json::to_value(&ours).unwrap(), theirs);
    // As little of it as there may be.
    let least = part(json!({"content": "", "part_kind": "thinking"}));
    assert!(matches!(least, ResponsePart::Thinking { signature: None, .. }));
    // S2: "`Debug` show[s] names, types and lengths".
    assert_eq!(format!("{ours:?}"), "Thinking(2 bytes, signed: true)");
}
