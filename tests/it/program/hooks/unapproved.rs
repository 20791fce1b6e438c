//! Calls that ran although no one had approved them: a closed ask says so, and a person is told (rules L10, P4).

use std::fs;

use serde_json::{Value, json};

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::inbox::{Served, text};
use crate::program::{RULES, User, ended};
use crate::support::clients::some_clients;

/// Runs this for each client at once, each with a user of its own.
fn for_each_client(play: impl Fn(&User, Call<'static>) + Sync) {
    std::thread::scope(|scope| {
        for client in some_clients(1) {
            let play = &play;
            scope.spawn(move || play(&User::new(), Call { client, ..CALL }));
        }
    });
}

/// The one ask that ran unapproved, and what is recorded about it.
#[track_caller]
fn unapproved(user: &User) -> (Value, Value) {
    let mut asks = user.asks();
    asks.retain(|ask| ask["outcome"].get("ran_unapproved").is_some());
    let [ask] = asks.as_slice() else { panic!("{asks:?}") };
    assert_eq!(ask["state"], "closed", "{ask}");
    (ask.clone(), ask["outcome"]["ran_unapproved"].clone())
}

#[test]
fn a_call_whose_ask_was_pending_when_it_ran_is_closed_as_unapproved() {
    for_each_client(|user, call| {
        assert_denied(call.client, &user.hook(&call, "0"), "waits for approval");
        // The client has given up before the hook has answered, and ran the call.
        let told = user.tell(call.client, &call.after());
        assert_eq!((told.status, told.out.as_str()), (0, ""), "a report is never denied");
        assert!(told.err.contains("although no one had approved it"), "{told:?}");
        let (ask, about) = unapproved(user);
        assert_eq!(about, json!({"ended": "returned", "as_asked": true}));
        let id = ask["id"].as_str().unwrap();
        assert!(told.err.contains(id), "{told:?}");
        let fingerprint = ask["fingerprint"].as_str().unwrap();
        let late = ["asks", "decide", id, "--fingerprint", fingerprint, "--as", "ann", "--approve"];
        assert_eq!(user.run(&late).status, 5, "no approval comes later");
        assert_denied(call.client, &user.hook(&Call { id: "c2", ..call }, "0"), "waits for");
        assert_eq!(user.pending().len(), 1, "an equal call is asked about anew");
        assert_ne!(user.pending()[0]["id"], ask["id"]);
    });
}

#[test]
fn an_approval_that_was_not_claimed_when_its_call_ran_is_void() {
    for_each_client(|user, call| {
        assert_denied(call.client, &user.hook(&call, "0"), "waits for approval");
        user.approve_pending();
        assert!(user.tell(call.client, &call.after()).err.contains("no one had approved it"));
        let (ask, _) = unapproved(user);
        assert_eq!(ask["decision"], "approve", "what the person has said stays");
        assert_denied(call.client, &user.hook(&Call { id: "c2", ..call }, "0"), "waits for");
    });
}

#[test]
fn a_hook_that_still_waits_for_a_call_that_ran_denies_it_and_asks_nothing_anew() {
    for_each_client(|user, call| {
        let child = user.start_hook(call.client, "30", &[], call.before().to_string().as_bytes());
        user.pending_are(1);
        assert!(user.tell(call.client, &call.after()).err.contains("no one had approved it"));
        let ended = ended(&child.wait_with_output().unwrap());
        assert_denied(call.client, &ended, "without its approval");
        assert_eq!(user.states(), ["closed"]);
    });
}

#[test]
fn a_call_that_ran_with_other_arguments_than_were_asked_about_says_so() {
    let user = User::new();
    assert_denied("claude", &user.hook(&CALL, "0"), "waits for approval");
    let told = user.tell("claude", &Call { command: "make all", ..CALL }.after());
    assert!(told.err.contains("other arguments than were asked about"), "{told:?}");
    let (ask, about) = unapproved(&user);
    assert_eq!(ask["args"]["command"], CALL.command);
    assert_eq!(
        (&about["as_asked"], &about["args"]["command"]),
        (&json!(false), &json!("make all"))
    );
}

/// Another hook of the client has changed the call after this one has allowed it.
#[test]
fn a_call_that_was_changed_after_it_was_allowed_is_recorded_as_unapproved() {
    for_each_client(|user, call| {
        user.own_rules(RULES);
        for (command, why) in
            [("touch a.denied", "not in this project"), ("touch a.asked", "asks first")]
        {
            let call = Call { command: "touch a", ..call };
            assert_allowed(&user.hook(&call, "5"));
            let told = user.tell(call.client, &Call { command, ..call }.after());
            assert_eq!((told.status, told.out.as_str()), (0, ""));
            assert!(told.err.contains("although it was not allowed"), "{told:?}");
            assert!(told.err.contains(why) && told.err.contains("another hook"), "{told:?}");
            let mut asks = user.asks();
            asks.retain(|ask| ask["args"]["command"] == command);
            let about = &asks[0]["outcome"]["ran_unapproved"];
            assert_eq!((asks.len(), &about["as_asked"]), (1, &json!(false)), "{asks:?}");
            assert!(about["reason"].as_str().unwrap().contains(why), "{about}");
        }
        assert_eq!(user.pending(), [] as [Value; 0], "no person is asked about what has run");
        // The next equal call is asked about.
        let next = Call { command: "touch a.asked", ..call };
        assert_denied(call.client, &user.hook(&next, "0"), "waits for approval");
    });
}

/// The rules would look at a world that the call has changed, so what was allowed is noted.
#[test]
fn a_call_that_was_allowed_as_it_ran_opens_no_store_and_is_not_judged_again() {
    for_each_client(|user, call| {
        user.own_rules(RULES);
        let call = Call { command: "touch a", ..call };
        for _ in 0..2 {
            assert_allowed(&user.hook(&call, "5"));
            let rules = user.home().join(".config/countersign/rules.toml");
            fs::write(&rules, RULES.replace("allow = \"shell\"", "deny = \"shell\"")).unwrap();
            let told = user.tell(call.client, &call.after());
            assert_eq!((told.status, told.out.as_str(), told.err.as_str()), (0, "", ""));
            // As if a person had accepted them anew.
            fs::remove_dir_all(user.state("rules")).unwrap();
            user.own_rules(RULES);
        }
        assert!(!user.state("asks.db").exists(), "there is no store");
        let session = fs::read_dir(user.state("allowed")).unwrap().flatten().next().unwrap();
        assert_eq!(fs::read_dir(session.path()).unwrap().count(), 0, "each note is taken away");
    });
}

#[test]
fn the_end_of_a_session_takes_its_notes_away() {
    let user = User::new();
    user.own_rules(RULES);
    assert_allowed(&user.hook(&Call { command: "touch a", ..CALL }, "5"));
    assert_eq!(fs::read_dir(user.state("allowed")).unwrap().count(), 1);
    user.tell("claude", &CALL.end());
    assert_eq!(fs::read_dir(user.state("allowed")).unwrap().count(), 0);
}

#[test]
fn a_call_without_a_note_that_the_rules_allow_as_it_ran_is_not_reported() {
    for_each_client(|user, call| {
        user.own_rules(RULES);
        let told = user.tell(call.client, &Call { command: "touch a", ..call }.after());
        assert_eq!((told.status, told.err.as_str()), (0, ""), "{told:?}");
        assert_eq!(user.asks(), [] as [Value; 0]);
    });
}

#[test]
fn a_call_that_is_reported_twice_is_no_second_call() {
    let user = User::new();
    user.is_approved(&CALL);
    for _ in 0..2 {
        let told = user.tell("claude", &CALL.after());
        assert_eq!((told.status, told.err.as_str()), (0, ""), "{told:?}");
    }
    assert_eq!(user.states(), ["executed"]);
}

/// S14: "A hook names the inbox without the secret", once an inbox has noted where it is.
#[test]
fn a_model_is_told_where_its_call_is_approved() {
    let user = User::new();
    assert!(!user.hook(&CALL, "0").err.contains("http://"), "no inbox was started");
    drop(Served::start(&user));
    let url = fs::read_to_string(user.state("inbox.url")).unwrap();
    let told = user.hook(&CALL, "0");
    let asks = user.run(&["asks", "list"]).lines();
    let address = format!("{}#ask={}", url.trim(), asks[0]["id"].as_str().unwrap());
    assert!(told.err.contains(&address) || told.out.contains(&address), "{address}: {told:?}");
    let secret = fs::read_to_string(user.state("inbox.secret")).unwrap();
    assert!(!told.err.contains(secret.trim()) && !told.out.contains(secret.trim()));
}

#[tokio::test]
async fn every_surface_says_that_a_call_ran_unapproved() {
    let user = User::new();
    assert_denied("claude", &user.hook(&CALL, "0"), "waits for approval");
    user.tell("claude", &CALL.after());
    let (ask, _) = unapproved(&user);
    let id = ask["id"].as_str().unwrap();
    for words in [&["--text", "asks", "list"][..], &["--text", "asks", "show", id]] {
        let shown = user.run(words);
        assert!(shown.out.contains("closed: it ran without approval"), "{shown:?}");
    }
    let verified = user.run(&["asks", "verify"]).lines().remove(0);
    assert_eq!((&verified["ok"], &verified["ran_unapproved"]), (&json!(true), &json!(1)));
    assert!(user.run(&["asks", "export"]).out.contains(r#"\"event\":\"ran_unapproved\""#));
    let served = Served::start(&user);
    let client = served.client(&user).await;
    for (query, many) in [("", 1), ("?answer=ran_unapproved", 1), ("?answer=closed", 0)] {
        let (_, past) = text(&client, &format!("{}api/history{query}", served.url)).await;
        let past: Value = serde_json::from_str(&past).unwrap();
        let asks = past["asks"].as_array().unwrap();
        assert_eq!(asks.len(), many, "{query}: {past}");
        for ask in asks {
            assert_eq!(ask["outcome"], json!({"word": "ran_unapproved", "as_asked": true}));
        }
    }
}
