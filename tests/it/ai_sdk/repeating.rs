//! Requests that come twice: after a lost response, at the same time, or from two windows.

use std::sync::atomic::Ordering;

use countersign_ai_sdk::Principal;
use serde_json::json;

use super::client::{Client, chunks};
use super::world::World;

/// Posts, loses the response after this many chunks, and posts again. Returns whether there were so many.
async fn cut(client: &mut Client, at: usize) -> bool {
    let all = chunks(client.post_events(&client.body()).await.unwrap()).await;
    let Some(heard) = all.get(..at) else { return false };
    heard.iter().for_each(|chunk| client.apply(chunk));
    // A text that was cut off stays in the client, and is replayed after it.
    let last = heard.last().map(|chunk| chunk["type"].as_str().unwrap()).unwrap_or_default();
    client.differs = matches!(last, "text-start" | "text-delta");
    client.send().await;
    true
}

/// One call of each kind.
const ALL: &str = "read a.txt; delete b.txt; locate here; wipe disk";

#[tokio::test]
async fn a_lost_response_is_replayed_and_nothing_happens_twice() {
    // L3: "Asking again after a lost response returns the recorded outcome."
    for at in 0.. {
        let world = World::new();
        let mut ann = world.ann("c1");
        if !cut(ann.write(ALL), at).await {
            assert!(at > 10);
            break;
        }
        assert_eq!(world.bot.heard.lock().unwrap().len(), 1, "cut at {at}");
        assert_eq!(world.ran(), ["a.txt"], "cut at {at}");
        assert_eq!(ann.waiting().len(), 1, "cut at {at}");
        let asks = ann.waiting();
        let told = ann.note(&asks[0], true, None).output(&json!("here")).send().await;
        assert_eq!((told.reason(), world.ran().len()), ("stop", 2), "cut at {at}");
        world.check();
    }
}

#[tokio::test]
async fn a_lost_response_to_answers_is_replayed_and_nothing_happens_twice() {
    for at in 0.. {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say(ALL).await;
        let asks = ann.waiting();
        ann.note(&asks[0], true, None).output(&json!("here"));
        if !cut(&mut ann, at).await {
            assert!(at > 5);
            break;
        }
        let states = ["output-available", "output-available", "output-available", "output-error"];
        assert_eq!(ann.states(), states, "cut at {at}");
        assert_eq!(world.bot.heard.lock().unwrap().len(), 2, "cut at {at}");
        assert_eq!(world.ran(), ["a.txt", "b.txt"], "cut at {at}");
        ann.say("hello").await;
        world.check();
    }
}

#[tokio::test]
async fn two_concurrent_copies_of_a_request_are_one() {
    let world = World::new();
    let mut ann = world.ann("c1");
    let body = ann.write("read a.txt").body();
    let (first, second) = futures::join!(ann.post_events(&body), ann.post_events(&body));
    let (first, second) = (chunks(first.unwrap()).await, chunks(second.unwrap()).await);
    assert_eq!(first, second);
    assert_eq!(world.ran(), ["a.txt"]);

    let mut other = world.ann("c1");
    other.write("read b.txt");
    other.chats = ann.chats.clone();
    let (first, second) = (ann.write("read c.txt").body(), other.body());
    let (first, second) = futures::join!(ann.post_events(&first), other.post_events(&second));
    let busy = second.map(drop).unwrap_err();
    assert_eq!((first.is_ok(), busy.status, busy.retry_after.is_some()), (true, 409, true));
}

#[tokio::test]
async fn two_servers_count_one_answer_once() {
    // L1: "of any number of processes one wins"; L5: "A run is resumed by one worker".
    for _ in 0..20 {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say("delete a.txt").await;
        let ask = ann.waiting().remove(0);
        let mut elsewhere = ann.clone();
        elsewhere.chats = world.chats();
        let (yes, no) =
            (ann.note(&ask, true, None).body(), elsewhere.note(&ask, false, None).body());
        elsewhere.differs = true;
        ann.differs = true;
        let (first, second) = futures::join!(ann.post(&yes), elsewhere.post(&no));
        for refused in [&first, &second].into_iter().filter_map(|it| it.as_ref().err()) {
            assert_eq!(refused.status, 409, "{refused}");
        }
        assert!(first.is_ok() || second.is_ok());
        let ran = world.ran();
        assert!(ran.is_empty() || ran == ["a.txt"], "{ran:?}");
        let mut ann = ann.clone();
        ann.say("hello").await;
        world.check();
    }
}

#[tokio::test]
async fn only_the_last_message_has_to_be_posted() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("hello").await;
    ann.say("delete a.txt").await;
    let ask = ann.waiting().remove(0);
    ann.note(&ask, true, None);
    let body = json!({"id": "c1", "message": ann.last()});
    let told = ann.post(&body).await.unwrap();
    assert_eq!((told.reason(), world.ran()), ("stop", vec!["a.txt".to_owned()]));
    world.check();
}

#[tokio::test]
async fn another_server_continues_a_chat() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("hello").await;
    ann.say("delete a.txt").await;
    ann.chats = world.chats();
    ann.answer(true).await;
    ann.chats = world.chats();
    ann.say("read b.txt").await;
    assert_eq!(world.ran(), ["a.txt", "b.txt"]);
    let kept = ann.chats.messages(&ann.principal, "c1").await.unwrap().unwrap();
    assert_eq!(kept.len(), ann.messages.len());
    world.check();
}

#[tokio::test]
async fn naming_a_chat_does_not_block_its_owner() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("hello").await;
    let body = ann.write("read a.txt").body();
    let bob = Client { principal: Principal::new("bob"), ..ann.clone() };
    let (foreign, own) = futures::join!(bob.post_events(&body), ann.post_events(&body));
    assert_eq!(foreign.map(drop).unwrap_err().status, 404);
    assert_eq!(ann.take(own.unwrap()).await.reason(), "stop");
}

#[tokio::test]
async fn a_window_with_an_older_message_leaves_pending_calls_unchanged() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("delete a.txt").await;
    let mut old = ann.clone();
    let ask = ann.waiting().remove(0);
    ann.answer(true).await;
    ann.say("delete c.txt").await;
    let told = old.note(&ask, true, None).send().await;
    assert_eq!(
        told.text(),
        r#"I heard: success: {"done":"a.txt"}"#,
        "it hears the rest of its own"
    );
    assert_eq!(told.of("tool-approval-request").len(), 0);
    let told = old.send().await;
    assert_eq!(told.text(), "", "and has all of it then");

    let mut late = ann.clone();
    world.bot.fails.store(true, Ordering::Release);
    late.say("hello").await;
    assert_eq!(old.send().await.text(), "", "a failed response continues in its own message");
    assert_eq!(late.send().await.text(), "I heard: hello");
    ann = late;
    ann.say("delete b.txt").await;
    ann.answer(true).await;
    assert_eq!(
        (ann.states(), world.ran()),
        (vec!["output-available"], vec!["a.txt".into(), "b.txt".into()])
    );
    world.check();
}

#[tokio::test]
async fn a_message_during_the_stop_of_a_response_is_refused_with_409() {
    let world = World::new();
    let mut ann = world.ann("c1");
    world.bot.hangs.store(true, Ordering::Release);
    let body = ann.write("hello").body();
    let events = ann.post_events(&body).await.unwrap();
    ann.chats.stop(&ann.principal, "c1");
    let mut next = ann.clone();
    let busy = next.write("read a.txt").body();
    let busy = next.post_events(&busy).await.map(drop).unwrap_err();
    assert_eq!((busy.status, busy.retry_after.is_some()), (409, true));
    ann.take(events).await;
    ann.say("read a.txt").await;
    assert_eq!(world.ran(), ["a.txt"]);
    world.check();
}
