//! `--ask client`: the client asks in its own session, and the call counts as approved when it has ended (rule P3).

use serde_json::{Value, json};

use super::{CALL, Call, assert_allowed, assert_denied, ended};
use crate::program::{Ended, RULES, User};
use crate::support::clients::{ToldCall, forms};

const ASKING: [&str; 2] = ["claude", "copilot"];

impl User {
    fn asks_in_client(&self, call: &Call<'_>, limit: &str) -> Ended {
        let payload = call.before().to_string();
        let child = self.start_hook(call.client, limit, &["--ask", "client"], payload.as_bytes());
        ended(&child.wait_with_output().unwrap())
    }
}

/// The reason for which the client was told to ask.
#[track_caller]
fn asked(client: &str, ended: &Ended) -> String {
    let answer: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let answer = if client == "claude" { &answer["hookSpecificOutput"] } else { &answer };
    assert_eq!((&answer["permissionDecision"], ended.status), (&json!("ask"), 0), "{ended:?}");
    answer["permissionDecisionReason"].as_str().unwrap().to_owned()
}

#[test]
fn a_call_that_was_approved_in_the_client_is_recorded_when_it_has_ended() {
    for client in ASKING {
        let user = User::new();
        user.own_rules(RULES);
        let call = Call { client, command: "touch x.asked", ..CALL };
        for (times, id) in ["c1", "c2"].into_iter().enumerate() {
            let call = Call { id, ..call };
            let reason = asked(client, &user.asks_in_client(&call, "20"));
            assert!(reason.contains("asks first"), "{reason}");
            assert_eq!(user.asks().len(), times, "nothing is approved before the call has ended");
            assert_eq!(user.tell(client, &call.after()).err, "");
            let asks = user.asks();
            assert_eq!(asks.len(), times + 1, "{asks:?}");
            for ask in &asks {
                let outcome = &ask["outcome"];
                assert_eq!(
                    (&ask["state"], &outcome["as_approved"]),
                    (&json!("executed"), &json!(true))
                );
                assert_eq!(ask["decided_by"], format!("the question of {client}"), "{ask}");
            }
        }
        assert_eq!(user.run(&["asks", "verify"]).status, 0);
        // What is allowed and what is denied stays so.
        assert_allowed(&user.asks_in_client(&Call { command: "ls", ..call }, "20"));
        let denied = user.asks_in_client(&Call { command: "touch x.denied", ..call }, "20");
        assert_denied(client, &denied, "not in this project");
    }
}

#[test]
fn a_call_that_was_refused_in_the_client_leaves_no_approval() {
    for client in ASKING {
        let user = User::new();
        user.own_rules(RULES);
        let call = Call { client, command: "touch x.asked", ..CALL };
        asked(client, &user.asks_in_client(&call, "20"));
        // The person has said no, and the session ends later.
        user.tell(client, &call.end());
        assert!(user.asks().is_empty());
        // A report that comes after that is of a call that no one has approved.
        let told = user.tell(client, &call.after());
        assert!(told.err.contains("no one had approved it"), "{told:?}");
    }
}

/// P3: "otherwise nothing is approved": an equal call is another call, also for a client without call ids.
#[test]
fn a_call_that_was_refused_in_the_client_approves_no_later_one() {
    let user = User::new();
    user.own_rules(RULES);
    let denies = format!(
        "{RULES}\n[[rule]]\nid = \"never\"\ndeny = \"shell\"\nwhere.any_path = [\"**/*.asked\", \"**/*.now\"]\n\
         reason = \"not any more\"\n"
    );
    let call = Call { client: "copilot", command: "touch x.asked", ..CALL };
    let allowed = Call { command: "touch x.now", ..call };
    asked("copilot", &user.asks_in_client(&call, "20"));
    assert_allowed(&user.asks_in_client(&allowed, "20"));
    // The person says no to both in the client, which reports nothing. Later both run although they are denied.
    user.own_rules(&denies);
    for call in [call, allowed] {
        assert_denied("copilot", &user.asks_in_client(&call, "20"), "not any more");
        let told = user.tell("copilot", &call.after());
        assert!(told.err.contains("ran although it was not allowed"), "{told:?}");
    }
    let asks = user.asks();
    assert!(asks.iter().all(|ask| ask["outcome"].get("ran_unapproved").is_some()), "{asks:?}");
}

#[test]
fn a_call_that_ends_with_other_arguments_was_not_approved() {
    let user = User::new();
    user.own_rules(RULES);
    let call = Call { command: "touch x.asked", ..CALL };
    asked("claude", &user.asks_in_client(&call, "20"));
    let told = user.tell("claude", &Call { command: "touch y.asked", ..call }.after());
    assert!(told.err.contains("no one had approved it"), "{told:?}");
    let asks = user.asks();
    assert!(asks.len() == 1 && asks[0]["outcome"].get("ran_unapproved").is_some(), "{asks:?}");
}

#[test]
fn what_has_to_be_asked_every_time_is_asked_in_the_inbox() {
    let user = User::new();
    user.own_rules("version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n");
    for client in ASKING {
        let call = Call { client, command: "touch .git/config", ..CALL };
        assert_denied(client, &user.asks_in_client(&call, "0"), "waits for approval");
    }
    assert_eq!(user.pending().len(), ASKING.len());
}

#[test]
fn a_call_that_certain_people_have_to_approve_is_asked_in_the_inbox() {
    for of_people in ["people = 2", "not_the_requester = true", "approvers = [\"bob\"]"] {
        let user = User::new();
        let rule = format!(
            "[[rule]]\nid = \"it\"\nask = \"shell\"\nwhere.command.runs = [\"touch\"]\n{of_people}\n"
        );
        user.own_rules(&format!("version = 2\n{rule}"));
        for client in ASKING {
            let call = Call { client, command: "touch x.asked", ..CALL };
            assert_denied(client, &user.asks_in_client(&call, "0"), "waits for approval");
        }
        assert_eq!(user.pending().len(), ASKING.len(), "{of_people}");
    }
}

#[test]
fn an_ask_that_is_open_in_the_inbox_is_answered_there() {
    let user = User::new();
    user.own_rules(RULES);
    let call = Call { command: "touch x.asked", ..CALL };
    assert_denied("claude", &user.hook(&call, "0"), "waits for approval");
    assert_denied("claude", &user.asks_in_client(&call, "0"), "waits for approval");
    user.approve_pending();
    assert_allowed(&user.asks_in_client(&call, "20"));
}

/// P3: "a grant answers first, too".
#[test]
fn a_grant_answers_before_the_client_is_told_to_ask() {
    let user = User::new();
    user.own_rules(RULES);
    for client in ASKING {
        let call = Call { client, command: "touch x.asked", ..CALL };
        assert_denied(client, &user.hook(&call, "0"), "waits for approval");
        let ask = user.pending().remove(0);
        let (id, fingerprint) = (ask["id"].as_str().unwrap(), ask["fingerprint"].as_str().unwrap());
        let make = ["grants", "make", id, "--in", "session", "--as", "ann", "--fingerprint"];
        let made = user.run(&[&make[..], &[fingerprint, "--for", "2h"]].concat());
        assert_eq!(made.status, 0, "{made:?}");
        user.decide(&ask, &["--approve"]);
        for id in ["c1", "c2", "c3"] {
            let answer = user.asks_in_client(&Call { id, ..call }, "20");
            assert_allowed(&answer);
            assert!(!answer.out.contains("\"ask\""), "{answer:?}");
        }
        let other = Call { session: "s2", ..call };
        asked(client, &user.asks_in_client(&other, "20"));
    }
}

#[test]
fn a_client_without_a_question_of_its_own_is_never_told_to_ask() {
    for client in ["codex", "gemini", "opencode"] {
        let user = User::new();
        user.own_rules(RULES);
        let call = Call { client, command: "touch x.asked", ..CALL };
        assert_denied(client, &user.asks_in_client(&call, "0"), "waits for approval");
        let installed = user.run(&["hook", "install", client, "--", "--ask", "client"]);
        assert!(
            installed.status == 2 && installed.err.contains("for claude and copilot"),
            "{installed:?}"
        );
        assert!(!user.file_of(client).exists());
    }
    let user = User::new();
    for client in ASKING {
        let installed = user.run(&["hook", "install", client, "--", "--ask", "client"]);
        assert_eq!(installed.status, 0, "{installed:?}");
        let text = std::fs::read_to_string(user.file_of(client)).unwrap();
        assert!(text.contains(" --ask client"), "{text}");
    }
}

/// P3: "With `--ask edits` they ask in the session about edits of the project's files, and the inbox has the rest".
#[test]
fn with_edits_only_an_edit_that_no_rule_names_is_asked_about_in_the_client() {
    let edit = |client: &str, path: &str| {
        let forms = forms(client);
        let tool = forms.tool("write").unwrap();
        let args = json!({tool[1]: path, tool[2]: "x"});
        let (session, directory) = ("s1", "/src");
        forms.payload(
            forms.text("before"),
            &ToldCall { session, directory, id: "c1", tool: tool[0], args },
        )
    };
    for client in ASKING {
        let user = User::new();
        user.own_rules("version = 1\n[[rule]]\nid = 'looked-at'\nask = 'write_file'\nwhere.path = '**/LICENSE'\n");
        let tells = |payload: &Value| {
            let options = ["--preset", "developer", "--ask", "edits", "--root", "/src"];
            let child = user.start_hook(client, "0", &options, payload.to_string().as_bytes());
            ended(&child.wait_with_output().unwrap())
        };
        asked(client, &tells(&edit(client, "/src/docs/a.md")));
        assert!(user.asks().is_empty(), "the client asks");
        for path in ["/src/LICENSE", "/src/build.rs", "/src/.git/config", "/etc/x"] {
            assert_denied(client, &tells(&edit(client, path)), "waits for approval");
        }
        let push = Call { client, command: "git push", ..CALL };
        assert_denied(client, &tells(&push.before()), "waits for approval");
        assert_eq!(user.pending().len(), 5);
    }
}
