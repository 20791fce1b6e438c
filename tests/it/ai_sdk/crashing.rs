//! A server that dies, or loses its store, at any moment of a response (rules L2, L3, L5).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::client::{Client, chunks};
use super::world::World;
use crate::support::failing_store::{Failing, How};

/// The request of a client whose server dies.
#[derive(Debug, Clone, Copy)]
enum Scene {
    /// Sends a new message.
    Says,
    /// Approves one call, denies another, and gives the result of a third.
    Answers,
    /// Denies one of two calls, and does not answer the other.
    Denies,
    /// Sends a message while calls are pending.
    GoesOn,
}

const ALL: [Scene; 4] = [Scene::Says, Scene::Answers, Scene::Denies, Scene::GoesOn];

/// A chat, and the next body of its client.
async fn scene(world: &World, scene: Scene) -> Client {
    let mut ann = world.ann("c1");
    ann.say("hello").await;
    if matches!(scene, Scene::Says) {
        ann.write("delete a.txt; delete b.txt; locate here; read c.txt");
        return ann;
    }
    ann.say("delete a.txt; delete b.txt; locate here; read c.txt").await;
    let asks = ann.waiting();
    match scene {
        Scene::Answers => {
            ann.note(&asks[0], true, None).note(&asks[1], false, None).output(&json!("here"));
        }
        Scene::Denies => drop(ann.note(&asks[1], false, None).body()),
        _ => drop(ann.write("read d.txt").body()),
    }
    ann
}

/// Posts to a server whose transaction of this number fails. Returns whether there was one.
fn dies(world: &World, client: &Client, at: usize, how: How) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failing = Failing::at(&world.store, Some((at, how)));
    let server = world.clone().over(failing.clone());
    let mut client = client.clone();
    client.chats = server.chats();
    let posts = async {
        match client.post_events(&client.body()).await {
            Ok(events) => drop(chunks(events).await),
            Err(refused) => assert!(refused.status >= 409, "{refused}"),
        }
    };
    runtime.block_on(failing.work(posts));
    // The tasks of the process end with it.
    drop(runtime);
    failing.count() > at
}

/// Another server continues the chat when the lease of the first one has expired.
async fn continues(world: &World, mut ann: Client, scene: Scene, what: &str) {
    world.wait(Duration::from_secs(31));
    ann.chats = world.chats();
    ann.send().await;
    for ask in ann.waiting() {
        ann.note(&ask, true, None);
    }
    if ann.states().contains(&"input-available") {
        ann.output(&json!("here"));
    }
    ann.send().await;
    let ran = world.ran();
    let denied =
        matches!(scene, Scene::Answers | Scene::Denies) && ran.contains(&"b.txt".to_owned());
    assert!(!denied, "{what}: A3: a no is final: {ran:?}");
    let left = matches!(scene, Scene::GoesOn) && ran.contains(&"a.txt".to_owned());
    assert!(!left, "{what}: it was not approved: {ran:?}");

    ann.say("delete z.txt").await;
    ann.answer(true).await;
    let ids: Vec<_> = world.recorder.ran().into_iter().map(|ran| ran.id).collect();
    let once: BTreeSet<_> = ids.iter().collect();
    assert_eq!(once.len(), ids.len(), "{what}: a call ran twice");
    assert!(world.ran().contains(&"z.txt".to_owned()), "{what}");
    world.check();
}

#[test]
fn a_server_that_dies_at_any_moment_runs_nothing_twice_and_another_continues() {
    for (on, how) in ALL.into_iter().flat_map(|on| How::ALL.map(|how| (on, how))) {
        for at in 0.. {
            let world = World::new();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap();
            let ann = runtime.block_on(scene(&world, on));
            if !dies(&world, &ann, at, how) {
                assert!(at > 1, "{on:?} has transactions");
                break;
            }
            runtime.block_on(continues(&world, ann, on, &format!("{on:?}, {how:?} at {at}")));
        }
    }
}
