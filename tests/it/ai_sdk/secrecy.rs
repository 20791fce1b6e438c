//! S2: no log, error or `Debug` of a chat shows argument values.

use countersign_ai_sdk::{ChatRequest, Chunk, Role, UiMessage};
use serde_json::json;

use super::client::Client;
use super::world::World;
use crate::support::{Buffer, subscriber};

const MARKER: &str = "hunter2";

/// Approves the pending call with other arguments.
async fn edit(ann: &mut Client, args: serde_json::Value) {
    let ask = ann.waiting().remove(0);
    let mut body = ann.note(&ask, true, None).body();
    body["overrideArgs"] = json!({ask: args});
    body["secret"] = MARKER.into();
    let request = ChatRequest::read(body.to_string().as_bytes()).unwrap();
    assert!(!format!("{request:?}").contains(MARKER), "{request:?}");
    let told = ann.post(&body).await.unwrap();
    let mut message = UiMessage::new("m1", Role::Assistant);
    for chunk in &told.chunks {
        let chunk: Chunk = serde_json::from_value(chunk.clone()).unwrap();
        message.apply(&chunk);
        assert!(!format!("{chunk:?}").contains(MARKER), "{chunk:?}");
    }
    assert!(!format!("{message:?} {:?}", ann.chats).contains(MARKER), "{message:?}");
}

#[test]
fn no_argument_value_reaches_a_log_or_debug() {
    let buffer = Buffer::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let chats = async {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say(&format!("delete {MARKER}; explode {MARKER}; wipe {MARKER}; locate {MARKER}"))
            .await;
        let asks = ann.waiting();
        ann.note(&asks[0], true, None).note(&asks[1], true, None).output(&json!(MARKER));
        ann.send().await;
        ann.say(&format!("delete {MARKER}")).await;
        edit(&mut ann, json!({"path": MARKER, "invalid": MARKER})).await;
        edit(&mut ann, json!({"path": MARKER})).await;
        assert_eq!(world.ran(), [MARKER, MARKER, MARKER], "explode runs, and fails");
        world.bot.fails.store(true, std::sync::atomic::Ordering::Release);
        ann.say("hello").await;
    };
    tracing::subscriber::with_default(subscriber(&buffer), || runtime.block_on(chats));
    let log = buffer.text();
    assert!(log.contains("the run of a chat failed"), "{log}");
    let line = log.lines().find(|line| line.contains(MARKER));
    assert_eq!(line, None);
}
