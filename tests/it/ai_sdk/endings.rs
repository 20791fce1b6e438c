//! Responses that are stopped, fail, or have no subscriber.

use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign_ai_sdk::{Events, KEEP_ALIVE, Principal};

use super::client::{Client, chunks};
use super::world::World;

/// Reads the response up to this text.
async fn until(events: &mut Events, told: &str) -> String {
    let mut said = String::new();
    while !said.contains(told) {
        said += std::str::from_utf8(&events.next().await.expect(&said)).unwrap();
    }
    said
}

/// Sends this to a model that hangs, and waits for the beginning of the response.
async fn hanging(world: &World, ann: &mut Client, text: &str) -> Events {
    world.bot.hangs.store(true, Ordering::Release);
    let body = ann.write(text).body();
    let mut events = ann.post_events(&body).await.unwrap();
    until(&mut events, "thinking").await;
    ann.chats.resume(&ann.principal, &ann.chat).unwrap()
}

#[tokio::test]
async fn a_response_is_stopped_in_the_middle_of_a_text_and_the_chat_continues() {
    let world = World::new();
    let mut ann = world.ann("c1");
    let events = hanging(&world, &mut ann, "hello").await;
    let bob = Principal::new("bob");
    assert!(!ann.chats.stop(&bob, "c1"), "it is not his");
    assert!(ann.chats.stop(&ann.principal, "c1"));
    let told = ann.take(events).await;
    assert_eq!((told.reason(), told.text().as_str()), ("abort", "thinking "));
    assert!(!ann.chats.stop(&ann.principal, "c1"), "there is none any more");

    let again = ann.clone().send().await;
    assert_eq!((again.reason(), again.text().as_str()), ("stop", "I heard: hello"));
    ann.say("delete a.txt").await;
    ann.answer(true).await;
    assert_eq!(world.ran(), ["a.txt"]);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_stopped_call_is_not_run_again_and_user_and_model_are_told() {
    // L2: "A crash between leaves *unknown*, never silently run again".
    let world = World::new().taking(Duration::from_secs(5));
    let mut ann = world.ann("c1");
    ann.say("delete a.txt; delete b.txt").await;
    for ask in ann.waiting() {
        ann.note(&ask, true, None);
    }
    let events = ann.post_events(&ann.body()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(ann.chats.stop(&ann.principal, "c1"));
    assert_eq!(ann.take(events).await.reason(), "abort");
    assert_eq!(world.ran(), ["a.txt", "b.txt"]);

    let told = ann.send().await;
    assert_eq!((told.reason(), ann.states()), ("stop", vec!["output-error", "output-error"]));
    let told = world.told();
    assert!(told.iter().all(|told| told.starts_with("interrupted: ")), "{told:?}");
    assert_eq!(world.ran(), ["a.txt", "b.txt"], "once");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_new_message_after_a_stop_leaves_no_call_without_a_result() {
    let world = World::new().taking(Duration::from_secs(5));
    let mut ann = world.ann("c1");
    let body = ann.write("read a.txt; read b.txt; wipe disk").body();
    let events = ann.post_events(&body).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(ann.chats.stop(&ann.principal, "c1"));
    assert_eq!(ann.take(events).await.reason(), "abort");
    ann.say("hello").await;
    assert_eq!(world.ran(), ["a.txt", "b.txt"]);
    world.check();
}

#[tokio::test]
async fn a_later_subscriber_gets_a_response_from_its_first_chunk_on() {
    let world = World::new();
    let mut ann = world.ann("c1");
    let mut first = hanging(&world, &mut ann, "hello").await;
    let heard = until(&mut first, "thinking").await;
    assert!(heard.starts_with("data: {\"type\":\"start\""), "{heard}");
    assert!(ann.chats.resume(&Principal::new("bob"), "c1").is_none(), "it is not his");
    assert!(ann.chats.resume(&ann.principal, "c2").is_none());
    drop(first);
    let rest = ann.chats.resume(&ann.principal, "c1").expect("it continues without a subscriber");
    ann.chats.stop(&ann.principal, "c1");
    assert_eq!(chunks(rest).await.last().unwrap()["type"], "abort");
    assert!(ann.chats.resume(&ann.principal, "c1").is_none(), "it is over");
}

#[tokio::test]
async fn a_response_without_subscribers_is_stopped_if_configured() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.chats = world.chats().stop_on_disconnect();
    let events = hanging(&world, &mut ann, "hello").await;
    let other = ann.chats.resume(&ann.principal, "c1").unwrap();
    drop(events);
    assert!(ann.chats.resume(&ann.principal, "c1").is_some(), "one subscriber is left");
    drop(other);
    while ann.chats.resume(&ann.principal, "c1").is_some() {
        tokio::task::yield_now().await;
    }
    ann.say("read a.txt").await;
    assert_eq!(world.ran(), ["a.txt"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_sends_keep_alive_comments() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.chats = world.chats().keep_alive(Duration::from_secs(7));
    let mut events = hanging(&world, &mut ann, "hello").await;
    until(&mut events, "thinking").await;
    let before = tokio::time::Instant::now();
    for seconds in [7, 14] {
        assert_eq!(events.next().await.unwrap(), KEEP_ALIVE);
        assert_eq!(before.elapsed().as_secs(), seconds);
    }
}

#[tokio::test]
async fn a_model_error_is_not_quoted_and_the_request_is_repeated() {
    let world = World::new();
    let mut ann = world.ann("c1");
    world.bot.fails.store(true, Ordering::Release);
    let told = ann.say("delete a.txt").await;
    assert_eq!((told.reason(), told.text().as_str()), ("error", "partial "));
    assert!(!format!("{:?}", told.chunks).contains("secret-inside"), "{told:?}");
    let told = ann.send().await;
    assert_eq!((told.reason(), ann.waiting().len()), ("tool-calls", 1));

    world.bot.fails.store(true, Ordering::Release);
    let told = ann.answer(true).await;
    assert_eq!((told.reason(), world.ran()), ("error", vec!["a.txt".to_owned()]));
    assert_eq!(ann.states(), ["output-available"], "its outcome was told before");
    let told = ann.send().await;
    assert_eq!(told.text(), r#"I heard: success: {"done":"a.txt"}"#);
    assert_eq!(world.ran(), ["a.txt"]);
    world.check();
}

#[tokio::test]
async fn the_text_of_an_error_can_be_configured() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.chats = world.chats().error_text(|error| format!("sorry: {error}"));
    world.bot.fails.store(true, Ordering::Release);
    let told = ann.say("hello").await;
    let text = told.of("error")[0]["errorText"].as_str().unwrap();
    assert!(text.starts_with("sorry: ") && text.contains("model"), "{text}");
}

#[tokio::test]
async fn an_empty_response_does_not_make_clients_send_for_ever() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("be silent").await;
    ann.say("read a.txt silently").await;
    ann.say("wipe disk silently").await;
    ann.say("delete b.txt silently").await;
    ann.answer(true).await;
    assert_eq!(world.ran(), ["a.txt", "b.txt"]);
    world.check();
}

#[test]
fn a_worker_that_dies_in_a_call_leaves_it_unknown_and_another_continues() {
    // L2: "A crash between leaves *unknown*, never silently run again unless the tool is idempotent".
    let world = World::new().taking(Duration::from_secs(3600));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut ann = world.ann("c1");
    let first = runtime();
    first.block_on(async {
        ann.say("delete a.txt").await;
        let ask = ann.waiting().remove(0);
        let body = ann.note(&ask, true, None).body();
        let _events = ann.post_events(&body).await.unwrap();
        while world.ran().is_empty() {
            tokio::task::yield_now().await;
        }
    });
    drop(first);

    runtime().block_on(async {
        let mut late = ann.clone();
        late.chats = world.chats();
        let busy = late.post(&late.body()).await.unwrap_err();
        assert_eq!(busy.status, 409, "L5: the one that died still holds it: {busy}");
        assert!(busy.retry_after.is_some());
        world.wait(Duration::from_secs(31));
        let told = late.send().await;
        assert_eq!((told.reason(), late.states()), ("stop", vec!["output-error"]));
        let told = world.told();
        assert!(told.len() == 1 && told[0].starts_with("interrupted: "), "{told:?}");
        assert_eq!(world.ran(), ["a.txt"], "once");
    });
    world.check();
}
