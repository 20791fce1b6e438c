//! Approvals of calls: waited for, spent once, bound to their call, and closed by the event after it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{Ended, User, ended};
use crate::support::clients::{forms, some_clients};

#[test]
fn an_approval_in_time_answers_the_call() {
    let user = User::new();
    for client in some_clients(1) {
        let call = Call { client, ..CALL };
        let payload = call.before().to_string();
        let child = user.start_hook(client, "30", &[], payload.as_bytes());
        let pending = user.pending_are(1);
        assert_eq!(pending[0]["tool"], "shell");
        assert_eq!(pending[0]["args"], json!({"command": "make install", "workdir": "/src"}));
        user.decide(&pending[0], &["--approve"]);
        let ended = ended(&child.wait_with_output().unwrap());
        assert_allowed(&ended);
        assert_eq!(
            ended.out.contains("allow"),
            client != "codex",
            "a person's yes is explicit: {ended:?}"
        );
    }
}

#[test]
fn a_late_approval_is_spent_by_the_same_call_once() {
    let user = User::new();
    for client in some_clients(2) {
        let call = Call { client, ..CALL };
        let asked = user.hook(&call, "0");
        assert_denied(client, &asked, "call again with the same arguments");
        let ask = user.pending_are(1).remove(0);
        assert!(asked.err.contains(ask["id"].as_str().unwrap()));
        user.decide(&ask, &["--approve"]);
        let again = Call { id: "c2", ..call };
        assert_allowed(&user.hook(&again, "5"));
        let third = Call { id: "c3", ..call };
        assert_denied(client, &user.hook(&third, "0"), "waits for approval");
        user.decide(&user.pending_are(1)[0], &["--deny", "enough"]);
        assert_denied(client, &user.hook(&third, "0"), "enough");
    }
}

#[cfg(unix)]
fn call<'a>(directory: &'a str, id: &'a str, command: &'a str) -> Call<'a> {
    Call { id, command, directory, ..CALL }
}

/// P4: "A temporary file that an approved command of the session has written is read unasked", as long as it is that file.
#[cfg(unix)]
#[test]
fn a_temporary_file_that_an_approved_command_wrote_is_read_unasked() {
    let user = User::new();
    user.own_rules("version = 2\npreset = 'developer'\n");
    let directory = user.home().join("p");
    std::fs::create_dir_all(&directory).unwrap();
    let directory = directory.to_str().unwrap();
    let name = |what: &str| format!("/tmp/countersign-{}-{what}", std::process::id());
    let (file, other, link) = (name("out"), name("other"), name("link"));
    let writes = format!("ls > {file}; ls >> {other}");
    let reads = format!("tail -5 {file}");
    let is_read = |id: &str| user.hook(&call(directory, id, &reads), "0").status == 0;

    std::fs::write(&file, "of another program").unwrap();
    std::fs::write(&other, "of another program").unwrap();
    assert!(!is_read("c1"));
    assert_denied("claude", &user.hook(&call(directory, "c2", &writes), "0"), "waits for approval");
    assert!(!is_read("c3"), "nothing is approved yet");
    // The reading that was asked about before stays a question.
    let of_writing = user.pending().into_iter().filter(|ask| ask.to_string().contains("ls >> "));
    of_writing.for_each(|ask| user.decide(&ask, &["--approve"]));
    assert_allowed(&user.hook(&call(directory, "c4", &writes), "5"));
    std::thread::sleep(Duration::from_millis(1100));
    std::fs::write(&file, "written").unwrap();
    assert!(is_read("c6") && is_read("c7"));
    for (id, command) in [
        ("c8", format!("cat {other}")),
        ("c9", format!("rm {file}")),
        ("c10", format!("echo x > {file}")),
        ("c11", format!("sh {file}")),
    ] {
        assert_ne!(user.hook(&call(directory, id, &command), "0").status, 0, "{command}");
    }
    let session = Call { session: "s2", ..call(directory, "c12", &reads) };
    assert_ne!(user.hook(&session, "0").status, 0, "another session");
    std::fs::hard_link(&file, &link).unwrap();
    assert!(!is_read("c13"), "it has another name");
    std::fs::remove_file(&link).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&other, &file).unwrap();
    assert!(!is_read("c14"), "it is a link");
    for path in [&file, &other] {
        std::fs::remove_file(path).unwrap();
    }
}

/// Runs this for each client at once, each with a user of its own.
fn for_each_client(play: impl Fn(&User, Call<'static>) + Sync) {
    std::thread::scope(|scope| {
        for client in some_clients(0) {
            let play = &play;
            scope.spawn(move || play(&User::new(), Call { client, ..CALL }));
        }
    });
}

#[test]
fn an_approval_is_for_one_session_directory_client_and_arguments() {
    for_each_client(|user, call| {
        assert_denied(call.client, &user.hook(&call, "0"), "waits for approval");
        user.approve_pending();
        for other in [
            Call { session: "s2", ..call },
            Call { directory: "/src/other", ..call },
            Call { command: "make install2", ..call },
            // The id of a call that was approved says nothing about its arguments.
            Call { command: "make install ", ..call },
            Call { client: if call.client == "codex" { "claude" } else { "codex" }, ..call },
        ] {
            assert_denied(other.client, &user.hook(&other, "0"), "waits for approval");
        }
        let mut agent = call.before();
        agent["agent_id"] = "a1".into();
        assert_denied(call.client, &user.tell(call.client, &agent), "waits for approval");
        assert_allowed(&user.hook(&call, "5"));
        assert_eq!(user.pending().len(), 6);
    });
}

/// An argument that no rule knows is one all the same.
#[test]
fn an_approval_is_not_for_a_call_with_one_argument_more() {
    for_each_client(|user, call| {
        assert_denied(call.client, &user.hook(&call, "0"), "waits for approval");
        user.approve_pending();
        let mut more = call.before();
        let input =
            ["tool_input", "toolArgs", "args"].into_iter().find(|it| more.get(it).is_some());
        more[input.unwrap()]["run_in_background"] = true.into();
        assert_denied(call.client, &user.tell(call.client, &more), "waits for approval");
        assert_allowed(&user.hook(&call, "5"));
    });
}

#[test]
fn two_calls_at_once_after_one_approval_run_once() {
    let user = User::new();
    for client in some_clients(1) {
        let call = Call { client, ..CALL };
        user.hook(&call, "0");
        user.approve_pending();
        let payloads = ["c2", "c3"].map(|id| Call { id, ..call }.before().to_string());
        let children = payloads.map(|it| user.start_hook(client, "0", &[], it.as_bytes()));
        let all = children.map(|child| ended(&child.wait_with_output().unwrap()));
        assert_eq!(all.iter().filter(|it| it.status == 0).count(), 1, "{all:?}");
        user.decide(&user.pending_are(1)[0], &["--deny", "no"]);
    }
}

#[test]
fn eight_hooks_at_once_share_a_store_and_each_run_has_its_own_approval() {
    let user = User::new();
    let ids = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let payloads = ids.map(|id| Call { id, ..CALL }.before().to_string());
    let mut children = payloads.map(|it| user.start_hook("claude", "60", &[], it.as_bytes()));
    for _ in 0..3 {
        user.decide(&user.pending_are(1)[0], &["--approve"]);
        // The others ask again, together.
        user.pending_are(1);
    }
    // A hook that comes to an ask after its denial was told asks anew, so that there may be more than one no.
    let begun = Instant::now();
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "a hook waits without an ask");
        for ask in user.pending() {
            user.decide(&ask, &["--deny", "enough"]);
        }
    }
    let all = children.map(|child| ended(&child.wait_with_output().unwrap()));
    assert_eq!(all.iter().filter(|it| it.status == 0).count(), 3, "{all:?}");
    for denied in all.iter().filter(|it| it.status != 0) {
        assert_denied("claude", denied, "enough");
    }
    assert_eq!(user.run(&["asks", "verify"]).status, 0);
}

#[test]
fn an_execution_is_closed_by_the_event_after_the_call() {
    for client in some_clients(2) {
        let user = User::new();
        let call = Call { client, ..CALL };
        user.is_approved(&call);
        assert_eq!(user.states(), ["claimed"]);
        let told = user.tell(client, &call.after());
        assert_eq!((told.status, told.out.as_str(), told.err.as_str()), (0, "", ""), "{client}");
        assert_eq!(user.states(), ["executed"]);
        assert_eq!(user.asks()[0]["outcome"]["as_approved"], true);
    }
}

#[test]
fn changed_arguments_after_the_call_are_reported() {
    let user = User::new();
    user.is_approved(&CALL);
    let told = user.tell("claude", &Call { command: "make all", ..CALL }.after());
    assert_eq!((told.status, told.out.as_str()), (0, ""));
    assert!(told.err.contains("with other arguments"), "{told:?}");
    assert_eq!(user.asks()[0]["outcome"]["as_approved"], false);
}

#[test]
fn without_an_event_after_the_call_its_outcome_is_unknown_at_the_end_of_the_session() {
    for_each_client(|user, call| {
        user.is_approved(&call);
        let end = call.end();
        assert_eq!(user.tell(call.client, &end).status, 0);
        assert_eq!(user.states(), ["unknown"]);
        assert_denied(call.client, &user.hook(&call, "0"), "waits for approval");
        assert_eq!(user.pending().len(), 1, "what may have run is a new question");
    });
}

#[test]
fn without_a_session_only_an_answer_in_time_counts() {
    for_each_client(|user, call| {
        let mut payload = call.before();
        let fields = payload.as_object_mut().unwrap();
        assert!(
            ["session_id", "sessionId", "conversation_id"]
                .into_iter()
                .any(|it| fields.remove(it).is_some())
        );
        let payload = payload.to_string();
        let child = user.start_hook(call.client, "0", &[], payload.as_bytes());
        assert_denied(call.client, &ended(&child.wait_with_output().unwrap()), "in time");
        assert_eq!(user.states(), ["cancelled"]);
        let child = user.start_hook(call.client, "30", &[], payload.as_bytes());
        user.decide(&user.pending_are(1)[0], &["--approve"]);
        assert_allowed(&ended(&child.wait_with_output().unwrap()));
    });
}

#[test]
fn edited_arguments_are_the_ones_that_run() {
    for_each_client(|user, call| {
        let child = user.start_hook(call.client, "30", &[], call.before().to_string().as_bytes());
        let pending = user.pending_are(1);
        let args = r#"{"command": "make check", "workdir": "/src"}"#;
        user.decide(&pending[0], &["--approve", "--args", args]);
        let ended = ended(&child.wait_with_output().unwrap());
        let Some(place) = forms(call.client).changed() else {
            // The client would run the call as it was made, so the approval is not used up.
            assert_denied(
                call.client,
                &ended,
                r#"again with these arguments: {"command":"make check"}"#,
            );
            return assert_eq!(user.states(), ["decided"]);
        };
        assert_eq!(ended.status, 0, "{ended:?}");
        let answer: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(answer.pointer(place), Some(&json!({"command": "make check"})), "{answer}");
        let told = user.tell(call.client, &Call { command: "make check", ..call }.after());
        assert_eq!((told.status, told.err.as_str()), (0, ""));
        assert_eq!(user.asks()[0]["outcome"]["as_approved"], true);
    });
}

/// A call that is asked about under rules, and the folder in which it is made.
#[cfg(unix)]
fn with_an_edited_push(play: impl Fn(&User, &dyn Fn(&'static str) -> Ended)) {
    let user = User::new();
    user.own_rules("version = 2\npreset = 'developer'\n");
    let directory = user.home().join("p");
    std::fs::create_dir_all(&directory).unwrap();
    let directory = directory.to_str().unwrap();
    let push = |id: &'static str| user.hook(&call(directory, id, "git push origin main"), "0");
    assert_denied("claude", &push("c1"), "waits for approval");
    let ask = user.pending_are(1).remove(0);
    let mut args = ask["args"].clone();
    args["command"] = EDITED.into();
    user.decide(&ask, &["--approve", "--args", &args.to_string()]);
    play(&user, &push);
}

#[cfg(unix)]
const EDITED: &str = "git push origin main --dry-run";

/// P3: "an equal call of the agent waits for that answer, and runs in the edited form once."
#[cfg(unix)]
#[test]
fn an_edit_that_is_asked_about_again_is_found_by_the_call_as_it_was() {
    with_an_edited_push(|user, push| {
        // The agent does not know of the edit, and calls again with what it had.
        for id in ["c2", "c3"] {
            assert_denied("claude", &push(id), "waits for approval");
            let asked = user.pending_are(1).remove(0);
            assert_eq!(asked["args"]["command"], EDITED);
            let told = asked["questions"].to_string();
            assert!(told.contains("ann has edited this call and approved it"), "{told}");
        }
        user.approve_pending();
        let ran = push("c4");
        assert_eq!(ran.status, 0, "{ran:?}");
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        let input = answer.pointer(forms("claude").changed().unwrap()).unwrap();
        assert_eq!(input["command"], EDITED);
        // It is spent: the next call is a new question about what the agent calls.
        assert_denied("claude", &push("c5"), "waits for approval");
        assert_eq!(user.pending_are(1)[0]["args"]["command"], "git push origin main");
    });
}

/// P3: "If the edited form is denied, the call is told so, and the next equal one is asked about as the agent has it."
#[cfg(unix)]
#[test]
fn a_no_to_an_edited_call_ends_the_edit() {
    with_an_edited_push(|user, push| {
        assert_denied("claude", &push("c2"), "waits for approval");
        user.decide(&user.pending_are(1)[0], &["--deny", "not that either"]);
        assert_denied("claude", &push("c3"), "not that either");
        assert_denied("claude", &push("c4"), "waits for approval");
        assert_eq!(user.pending_are(1)[0]["args"]["command"], "git push origin main");
    });
}
