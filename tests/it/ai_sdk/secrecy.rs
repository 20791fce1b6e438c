//! S2: no log, error or `Debug` of a chat shows argument values.

use std::io;
use std::sync::{Arc, Mutex};

use countersign::ai_sdk::{ChatRequest, Chunk, Role, UiMessage};
use serde_json::json;

use super::client::Client;
use super::world::World;

const MARKER: &str = "hunter2";

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Approves what waits with other arguments.
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
    let writer = buffer.clone();
    // A callsite that a test without a subscriber reaches first would else be switched off for every test after it.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
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
    tracing::subscriber::with_default(subscriber, || runtime.block_on(chats));
    let log = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the run of a chat failed"), "{log}");
    let line = log.lines().find(|line| line.contains(MARKER));
    assert_eq!(line, None);
}
