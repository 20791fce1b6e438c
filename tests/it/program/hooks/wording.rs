//! The fields of a call beside its command, as the processes of a hook see them: words for people, and all else.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{Ended, User, ended};

/// A payload of Claude Code whose call has these fields, too.
fn with(id: &str, fields: &Value) -> Value {
    let mut payload = Call { id, ..CALL }.before();
    for (name, value) in fields.as_object().unwrap() {
        payload["tool_input"][name] = value.clone();
    }
    payload
}

impl User {
    fn tell_soon(&self, payload: &Value) -> Ended {
        let child = self.start_hook("claude", "0", &[], payload.to_string().as_bytes());
        ended(&child.wait_with_output().unwrap())
    }

    /// A grant for exactly such calls, in the session of the one ask that is pending.
    fn grants_the_pending(&self) -> Value {
        let ask = self.pending_are(1).remove(0);
        let text = |name: &str| ask[name].as_str().unwrap().to_owned();
        let (id, fingerprint) = (text("id"), text("fingerprint"));
        let make = ["grants", "make", &id, "--in", "session", "--as", "ann", "--json"];
        let made = self.run(&[&make[..], &["--fingerprint", &fingerprint]].concat());
        assert_eq!(made.status, 0, "{made:?}");
        self.decide(&ask, &["--approve"]);
        made.lines()[0].clone()
    }
}

/// P3: "words for people are left out": a model that words its description anew finds its approval, once.
#[test]
fn an_approval_is_found_by_a_call_that_is_described_in_other_words() {
    let user = User::new();
    let described = |id: &str, text: &str| with(id, &json!({"description": text}));
    assert_denied("claude", &user.tell_soon(&described("c1", "Ship it")), "waits for approval");
    let ask = user.pending_are(1).remove(0);
    assert_eq!(ask["args"]["description"], "Ship it", "the ask has the words");
    let shown = user.run(&["asks", "show", ask["id"].as_str().unwrap()]);
    assert!(shown.out.contains("`description` is in the model's words"), "{shown:?}");
    user.approve_pending();
    for other in [
        with("c2", &json!({"description": "Ship it", "timeout": 5})),
        with("c3", &json!({"description": {"text": "Ship it"}})),
        with("c4", &json!({"description": "Ship it", "command": "make install "})),
        with("c5", &json!({"justification": "Ship it"})),
    ] {
        assert_denied("claude", &user.tell_soon(&other), "waits for approval");
    }
    let again = described("c6", "Ship the app");
    assert_allowed(&user.tell("claude", &again));
    // The event after the call is about the arguments that ran.
    let mut after = again.clone();
    after["hook_event_name"] = "PostToolUse".into();
    let told = user.tell("claude", &after);
    assert_eq!((told.status, told.err.as_str()), (0, ""));
    assert!(user.states().contains(&"executed".to_owned()));
    assert_denied("claude", &user.tell_soon(&described("c7", "Ship it")), "waits for approval");
    assert_denied("claude", &user.tell_soon(&with("c8", &json!({}))), "waits for approval");
    assert_eq!(user.pending().len(), 5, "none of them is a second ask of the last");
}

/// D11: a call that a person has denied is the same call in other words.
#[test]
fn a_denied_call_is_counted_in_any_words() {
    let user = User::new();
    for n in 0..3 {
        let payload = with("c1", &json!({"description": format!("attempt {n}")}));
        assert_denied("claude", &user.tell_soon(&payload), "waits for approval");
        user.decide(&user.pending_are(1)[0], &["--deny", "no"]);
        assert_denied("claude", &user.tell_soon(&payload), "no");
    }
    let payload = with("c1", &json!({"description": "again"}));
    assert_denied("claude", &user.tell_soon(&payload), "denied this call 3 times");
}

/// A2: what a person edits is what runs, and what the person did not edit is as the call has it.
#[test]
fn an_edited_call_keeps_its_own_words() {
    let user = User::new();
    let payload = |text: &str| with("c1", &json!({"description": text}));
    user.tell_soon(&payload("Ship it"));
    let ask = user.pending_are(1).remove(0);
    let args = r#"{"command": "make check", "workdir": "/src", "description": "Ship it"}"#;
    user.decide(&ask, &["--approve", "--args", args]);
    let told = user.tell("claude", &payload("Ship the app"));
    assert_eq!(told.status, 0, "{told:?}");
    let answer: Value = serde_json::from_str(&told.out).unwrap();
    let ran = &answer["hookSpecificOutput"]["updatedInput"];
    assert_eq!(ran, &json!({"command": "make check", "description": "Ship the app"}));
}

/// G1: a grant for exactly such calls answers them in any words, and with nothing else beside them.
#[test]
fn a_grant_answers_calls_that_are_described_in_other_words() {
    let user = User::new();
    user.configure("");
    std::fs::write(user.home().join(".config/countersign/rules.toml"), "version = 1\n").unwrap();
    user.tell_soon(&with("c1", &json!({"description": "Ship it"})));
    user.grants_the_pending();
    for fields in [json!({"description": "Ship it"}), json!({"description": "Ship"}), json!({})] {
        assert_allowed(&user.tell("claude", &with("c2", &fields)));
    }
    // The first of them has used the approval.
    for fields in [json!({"timeout": 5}), json!({"description": ["Ship it"]}), json!({"env": 1})] {
        assert_denied("claude", &user.tell_soon(&with("c3", &fields)), "waits for approval");
    }
}

/// R8: the rules of a hook overlook nothing that a call carries, and a switch of the sandbox is asked about under any
/// rules.
#[test]
fn a_hook_overlooks_nothing_beside_a_command() {
    let user = User::new();
    user.configure("");
    let rules = user.home().join(".config/countersign/rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
                [[rule]]\nid = 'sandbox'\nallow = 'shell'\nwhere.dangerouslyDisableSandbox.exists = true\n";
    std::fs::write(rules, text).unwrap();
    for (fields, why) in [
        (json!({"env": {"A": "b"}}), "`env` of `shell` is an argument that is not known here"),
        (json!({"shell": "/tmp/x"}), "`shell` of `shell` is an argument"),
        (json!({"timeout": "9; x"}), "`timeout` of `shell` has a value"),
        (json!({"dangerouslyDisableSandbox": true}), "may switch the sandbox off"),
    ] {
        assert_denied("claude", &user.tell_soon(&with("c1", &fields)), why);
    }
    let daily = json!({
        "description": "d", "timeout": 9, "run_in_background": false, "dangerouslyDisableSandbox": false,
    });
    assert_allowed(&user.tell("claude", &with("c1", &daily)));
}

/// G1: a grant for a command that runs a script holds while the script stays the same, and says so.
#[test]
fn a_grant_for_a_script_holds_while_the_script_stays_the_same() {
    let user = User::new();
    user.configure("");
    std::fs::write(user.home().join(".config/countersign/rules.toml"), "version = 1\n").unwrap();
    let project = user.home().join("project");
    std::fs::create_dir_all(&project).unwrap();
    let script = project.join("x.py");
    std::fs::write(&script, "print(1)").unwrap();
    let directory = project.to_str().unwrap();
    let run = |id: &str| {
        let call = Call { command: "python3 x.py", directory, id, ..CALL };
        let mut hook = user.command(&["hook", "claude", "--limit", "90", "--wait", "0"]);
        hook.current_dir(&project).env("CLAUDE_PROJECT_DIR", &project);
        hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = hook.spawn().unwrap();
        let payload = call.before().to_string();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
        ended(&child.wait_with_output().unwrap())
    };
    assert_denied("claude", &run("c1"), "waits for approval");
    let grant = user.grants_the_pending();
    let says = grant["says"].as_str().unwrap();
    assert!(says.ends_with("in this session, while `x.py` stays the same"), "{says}");
    for id in ["c1", "c2", "c3"] {
        assert_allowed(&run(id));
    }
    std::fs::write(&script, "print(2)").unwrap();
    assert_denied("claude", &run("c4"), "waits for approval");
    std::fs::write(&script, "print(1)").unwrap();
    assert_allowed(&run("c5"));
}

/// S11: the notes of a hook are details: a list does without them, and says where they are.
#[test]
fn a_list_has_the_calls_without_their_details() {
    let user = User::new();
    assert_denied("claude", &user.hook(&CALL, "0"), "waits for approval");
    let ask = user.pending_are(1).remove(0);
    let id = ask["id"].as_str().unwrap();
    let listed = user.run(&["--text", "asks", "list"]).out;
    let shown = user.run(&["--text", "asks", "show", id]).out;
    for detail in ["# note by hook", "hook.payload"] {
        assert!(shown.contains(detail), "{detail}: {shown}");
        assert!(!listed.contains(detail), "{detail}: {listed}");
    }
    let call = shown.lines().find(|line| line.contains("wants to")).unwrap();
    assert!(listed.contains(call), "{call}: {listed}");
    assert!(
        listed.contains("\n`countersign asks show ASK` shows one with its details"),
        "{listed}"
    );
    assert!(!listed.contains("left out"), "{listed}");
}
