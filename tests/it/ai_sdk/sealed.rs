//! Chats that the client keeps, sealed (rule L6).

use std::time::Duration;

use countersign::seal::SealKeys;
use countersign_ai_sdk::{Chats, Principal};
use serde_json::{Value, json};

use super::client::Client;
use super::world::World;

const NOTHING: [&str; 0] = [];

/// A secret of 32 different bytes.
fn secret(first: u8) -> Vec<u8> {
    (first..first + 32).collect()
}

fn keys(name: &str) -> SealKeys {
    SealKeys::new(name, secret(7)).unwrap()
}

fn sealed(world: &World, keys: SealKeys) -> Client {
    // No ledger: there is nothing at the server.
    Client::new(Chats::danger_sealed(world.agent(), keys), Principal::new("ann"), "c1")
}

/// The part that carries the chat.
fn state(message: &mut Value) -> &mut Value {
    let parts = message["parts"].as_array_mut().unwrap();
    parts.iter_mut().find(|part| part["type"] == "data-countersign").unwrap()
}

/// A chat with a pending deletion, and the body that approves it.
async fn approving(world: &World) -> (Client, Value) {
    let mut ann = sealed(world, keys("k"));
    ann.say("delete a.txt").await;
    let ask = ann.waiting().remove(0);
    let body = ann.note(&ask, true, None).body();
    (ann, body)
}

#[tokio::test]
async fn a_sealed_chat_continues_at_any_server_with_the_keys() {
    let world = World::new();
    let mut ann = sealed(&world, keys("k"));
    ann.say("hello").await;
    ann.say("delete a.txt; locate here; wipe disk").await;
    ann.chats = sealed(&world, keys("k")).chats;
    let ask = ann.waiting().remove(0);
    ann.note(&ask, true, None).output(&json!("here")).send().await;
    assert_eq!(world.ran(), ["a.txt"]);
    ann.say("delete b.txt").await;
    ann.chats = sealed(
        &world,
        SealKeys::new("new", secret(8)).unwrap().and_accept("k", secret(7)).unwrap(),
    )
    .chats;
    ann.answer(false).await;
    ann.say("read c.txt").await;
    assert_eq!(world.ran(), ["a.txt", "c.txt"]);
    assert_eq!(world.bot.heard.lock().unwrap().last().unwrap().len(), 13, "the model knows it all");
    world.check();
}

#[tokio::test]
async fn a_sealed_state_with_any_change_is_refused() {
    let world = World::new();
    let (ann, body) = approving(&world).await;
    let original = state(&mut body.clone()["messages"][1]).clone();
    for key in ["state", "seal"] {
        let text = original["data"][key].as_str().unwrap().to_owned();
        for at in (0..text.len()).step_by(if key == "seal" { 1 } else { 17 }) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let mut forged = body.clone();
            state(&mut forged["messages"][1])["data"][key] = changed.into();
            let refused = ann.post_events(&forged).await.map(drop).unwrap_err();
            assert_eq!(refused.status, 409, "{key} at {at}: {refused}");
        }
        let mut forged = body.clone();
        state(&mut forged["messages"][1])["data"][key] = "".into();
        assert!(ann.post_events(&forged).await.is_err());
    }
    assert_eq!(world.ran(), NOTHING);
}

#[tokio::test]
async fn a_sealed_state_is_valid_for_its_chat_principal_and_time_only() {
    let world = World::new();
    let (ann, body) = approving(&world).await;
    let bob = Client { principal: Principal::new("bob"), ..ann.clone() };
    assert_eq!(bob.post_events(&body).await.map(drop).unwrap_err().status, 404);
    let mut other = body.clone();
    other["id"] = "c2".into();
    assert_eq!(ann.post_events(&other).await.map(drop).unwrap_err().status, 404);

    let late = sealed(&world, keys("other")).chats;
    let unknown = Client { chats: late, ..ann.clone() };
    assert_eq!(unknown.post_events(&body).await.map(drop).unwrap_err().status, 409);

    let mut longest = sealed(&world, keys("k"));
    longest.chats = longest.chats.sealed_for(Duration::MAX);
    longest.say("hello").await;
    longest.say("hello again").await;

    let mut brief = sealed(&world, keys("k"));
    brief.chats = brief.chats.sealed_for(Duration::ZERO);
    brief.say("delete b.txt").await;
    let ask = brief.waiting().remove(0);
    let body = brief.note(&ask, true, None).body();
    assert_eq!(brief.post_events(&body).await.map(drop).unwrap_err().status, 409);
    assert_eq!(world.ran(), NOTHING);
}

#[tokio::test]
async fn an_answer_without_the_sealed_state_is_refused() {
    let world = World::new();
    let (ann, mut body) = approving(&world).await;
    let parts = body["messages"][1]["parts"].as_array_mut().unwrap();
    parts.retain(|part| part["type"] != "data-countersign");
    assert_eq!(ann.post_events(&body).await.map(drop).unwrap_err().status, 409);
    assert_eq!(world.ran(), NOTHING);
}

#[tokio::test]
async fn without_a_ledger_a_sealed_state_can_be_used_twice() {
    // The documented limit: "one approval can run its call several times, and a denial can be followed by an approval".
    let world = World::new();
    let (ann, body) = approving(&world).await;
    let ask = ann.asks.keys().next().unwrap().clone();
    let mut no = ann.clone();
    no.note(&ask, false, None).send().await;
    for _ in 0..2 {
        ann.clone().post(&body).await.unwrap();
    }
    assert_eq!(world.ran(), ["a.txt", "a.txt"]);
    world.check();
}

#[tokio::test]
async fn the_readable_messages_have_no_effect_on_sealed_calls() {
    // The sealed calls run, and not those of the readable messages.
    let world = World::new();
    let (ann, mut body) = approving(&world).await;
    body["messages"][0]["parts"][0]["text"] = "delete everything".into();
    let told = ann.clone().post(&body).await.unwrap();
    assert_eq!((told.reason(), world.ran()), ("stop", vec!["a.txt".to_owned()]));
    let parts = body["messages"][1]["parts"].as_array_mut().unwrap();
    let part = parts.iter_mut().find(|part| part.get("toolCallId").is_some()).unwrap();
    part["input"]["path"] = "b.txt".into();
    assert_eq!(ann.post_events(&body).await.map(drop).unwrap_err().status, 409);
    assert_eq!(world.ran(), ["a.txt"]);
}
