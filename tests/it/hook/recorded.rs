//! Payloads that the clients have sent, as they are and changed.

use countersign::{Decision, ToolCall, decide_fn};
use countersign_cli::hook::{Client, Hook};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::clients::forms;

use super::{Recorded, allowing, answered, assert_denied, before, denying, recorded};

#[test]
fn every_recorded_call_is_allowed_and_denied_in_the_form_of_its_client() {
    for it in before() {
        let payload = it.payload.to_string();
        assert_denied(it.client, &answered(&denying(it.client), payload.as_bytes()), "not here");
        if it.tool == "write_bash" {
            continue;
        }
        let allowed = answered(&allowing(it.client), payload.as_bytes());
        assert_eq!((allowed.status(), allowed.stderr()), (0, ""), "{} {}", it.client, it.tool);
        assert_eq!(allowed.stdout(), allowed_answer(it.client), "{} {}", it.client, it.tool);
    }
    assert!(before().len() >= 20);
}

#[test]
fn an_explicit_allow_is_one_that_the_client_knows() {
    for it in before().into_iter().filter(|it| it.tool != "write_bash") {
        let hook = allowing(it.client).explicit_allow(true);
        let reply = answered(&hook, it.payload.to_string().as_bytes());
        let text = std::str::from_utf8(reply.stdout()).unwrap();
        // Codex runs the tool for other reasons than an allow: it takes a bare one for an error.
        let has_allow = forms(it.client.name()).has_explicit_allow();
        assert!(text.contains("allow") == has_allow && has_allow != text.is_empty(), "{text}");
    }
}

#[test]
fn without_layers_every_call_is_asked_about_and_has_to_be_repeated() {
    for it in before() {
        let reply = answered(&Hook::new(it.client), it.payload.to_string().as_bytes());
        assert_denied(it.client, &reply, "call again with the same arguments");
    }
}

#[test]
fn changed_arguments_are_sent_back_whole_and_in_the_clients_names() {
    let rename = decide_fn(|_, call: &ToolCall| {
        let mut args = call.args().clone();
        for name in ["command", "path", "content", "patch", "name"] {
            if let Some(text) = call.args().str(name) {
                args = args.with(name, text.replace("allowed-", "rewritten-"));
            }
        }
        Decision::allow().with_args(args)
    });
    let mut seen = 0;
    for it in before() {
        let args = ["tool_input", "toolArgs", "args"].iter().find_map(|name| it.payload.get(*name));
        let args = args.unwrap();
        let text = args.to_string();
        // The paths of a patch are its text's, so that a patch cannot be changed by a layer that knows only the text.
        if !text.contains("allowed-") || text.contains("allowed}}") || it.tool == "apply_patch" {
            continue;
        }
        let hook = Hook::new(it.client).layered(rename.clone().named("rename"));
        let reply = answered(&hook, it.payload.to_string().as_bytes());
        let expected: Value =
            serde_json::from_str(&text.replace("allowed-", "rewritten-")).unwrap();
        let Some(place) = forms(it.client.name()).changed() else {
            assert_denied(it.client, &reply, "call the tool again with these arguments: ");
            let (_, told) = reply.stderr().split_once("with these arguments: ").unwrap();
            assert_eq!(serde_json::from_str::<Value>(told).unwrap(), expected);
            continue;
        };
        let answer: Value = serde_json::from_slice(reply.stdout()).unwrap();
        assert_eq!(answer.pointer(place), Some(&expected), "{} {}", it.client, it.tool);
        assert!(answer.to_string().contains("allow"));
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn unknown_events_are_denied_and_events_after_a_call_decide_nothing() {
    for it in before() {
        let fields = it.payload.as_object().unwrap();
        let event = ["hook_event_name", "hookName", "hookEventName"]
            .iter()
            .find(|name| fields.contains_key(**name));
        let event = event.copied().unwrap_or("hookName");
        let with = |name: &str| {
            let mut payload = it.payload.clone();
            payload[event] = name.into();
            answered(&allowing(it.client), payload.to_string().as_bytes())
        };
        for unknown in ["PreToolUse2", "BeforeModel", "", "pretooluse", "Stop"] {
            if unknown.is_empty() && it.client == Client::Copilot {
                continue; // the same as none, which Copilot sends
            }
            assert_denied(it.client, &with(unknown), "hook");
        }
        let reply = with(forms(it.client.name()).text("after"));
        assert_eq!((reply.status(), reply.stdout()), (0, &b""[..]), "{}: {reply:?}", it.client);
    }
    for it in recorded().iter().filter(|it| it.event.eq_ignore_ascii_case("PermissionRequest")) {
        let reply = answered(&allowing(it.client), it.payload.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(reply.stdout()).unwrap();
        let decision = answer.pointer("/hookSpecificOutput/decision").unwrap_or(&answer);
        assert_eq!((&decision["behavior"], reply.status()), (&json!("deny"), 2), "{answer}");
    }
}

/// P2: a report that a call or a session has ended is never answered by a denial. P4: of a call that is not allowed a person
/// is told.
#[test]
fn every_recorded_report_is_answered_by_silence_or_by_a_remark_about_what_ran() {
    let is_report = |it: &Recorded| {
        let event = it.event.to_ascii_lowercase();
        event.starts_with("posttool") || event == "aftertool" || event == "sessionend"
    };
    let reports: Vec<_> = recorded().into_iter().filter(is_report).collect();
    for it in &reports {
        // The installed command names the event, which Copilot leaves out.
        let hook = denying(it.client).event(&it.event);
        let payload = it.payload.to_string();
        assert!(hook.read(payload.as_bytes()).is_report(), "{payload}");
        let reply = answered(&hook, payload.as_bytes());
        assert_eq!((reply.status(), reply.stdout()), (0, &b""[..]), "{payload}");
        let is_call = !it.event.eq_ignore_ascii_case("sessionEnd");
        let is_told = reply.stderr().contains("although it was not allowed");
        assert!(is_told == is_call && is_call != reply.stderr().is_empty(), "{payload} {reply:?}");
        if is_call {
            let hook = allowing(it.client).event(&it.event);
            assert_eq!(answered(&hook, payload.as_bytes()).stderr(), "", "{payload}");
        }
    }
    assert!(reports.len() >= 12, "{}", reports.len());
}

#[test]
fn an_invalid_payload_is_denied() {
    let deep = format!("{}{}", r#"{"a":"#.repeat(100), "1}".repeat(100));
    let big = format!(r#"{{"hook_event_name": "PreToolUse", "text": "{}"}}"#, "x".repeat(10 << 20));
    let repeated = r#"{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/", "tool_name": "Bash",
        "tool_input": {"command": "ls"}, "tool_input": {"command": "rm -rf /"}}"#;
    for client in Client::ALL {
        for payload in [
            "",
            "null",
            "[]",
            "{}",
            "{",
            "PreToolUse",
            "\u{0}",
            "\u{feff}{}",
            repeated,
            &deep,
            &big,
        ] {
            assert_denied(
                client,
                &answered(&allowing(client), payload.as_bytes()),
                "cannot be used",
            );
        }
        assert_denied(client, &answered(&allowing(client), &[0xff, 0xfe]), "cannot be used");
    }
}

/// Values of other types than a client sends.
fn other() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(7)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!(["a"])),
        Just(json!({})),
        Just(json!("")),
        Just(json!("other")),
        Just(json!({"command": ["a"]})),
    ]
}

/// Changes of a payload: each the place, and the value that is put there, or none where the field is removed.
fn changes() -> impl Strategy<Value = Vec<(Vec<prop::sample::Index>, Option<Value>)>> {
    let places = prop::collection::vec(any::<prop::sample::Index>(), 1..3);
    prop::collection::vec((places, prop::option::of(other())), 1..4)
}

/// The answer to a client for an allowed call: most of them nothing, so that their own rules still count.
fn allowed_answer(client: Client) -> Vec<u8> {
    let answer = forms(client.name()).answer("allowed", "");
    answer.map(|answer| answer.to_string().into_bytes()).unwrap_or_default()
}

fn change(value: &mut Value, places: &[prop::sample::Index], to: Option<Value>) {
    let Some((first, rest)) = places.split_first() else { return };
    let Value::Object(fields) = value else { return };
    if fields.is_empty() {
        return;
    }
    let names: Vec<_> = fields.keys().cloned().collect();
    let name = names[first.index(names.len())].clone();
    match rest {
        [] => {
            match to {
                Some(to) => fields.insert(name, to),
                None => fields.remove(&name),
            };
        }
        rest if fields[&name].is_object() => change(fields.get_mut(&name).unwrap(), rest, to),
        _ => drop(fields.insert(name, to.unwrap_or(Value::Null))),
    }
}

/// One of the recorded payloads with these changes, and its client.
fn mutated(
    which: prop::sample::Index,
    changes: Vec<(Vec<prop::sample::Index>, Option<Value>)>,
) -> (Client, Vec<u8>) {
    let all = before();
    let it = &all[which.index(all.len())];
    let mut payload = it.payload.clone();
    for (places, to) in changes {
        change(&mut payload, &places, to);
    }
    (it.client, payload.to_string().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// A payload that was changed anyhow is never allowed by a stack that denies, the answer is always one that the
    /// client obeys, and nothing panics.
    #[test]
    fn a_mutated_payload_never_passes_a_stack_that_denies(
        which in any::<prop::sample::Index>(), changes in changes(),
    ) {
        let (client, payload) = mutated(which, changes);
        let reply = answered(&denying(client), &payload);
        assert_denied(client, &reply, "");
    }

    /// A payload that was changed anyhow is answered by a stack that allows and changes nothing with one of two
    /// answers: that of an allowed call of this client, or a denial that it obeys.
    #[test]
    fn a_mutated_payload_is_allowed_or_denied_in_the_form_of_its_client(
        which in any::<prop::sample::Index>(), changes in changes(),
    ) {
        let (client, payload) = mutated(which, changes);
        let reply = answered(&allowing(client), &payload);
        match reply.status() {
            0 => prop_assert_eq!(reply.stdout(), allowed_answer(client)),
            _ => assert_denied(client, &reply, ""),
        }
    }

    /// The same for text that is cut, or in which a byte was changed.
    #[test]
    fn damaged_text_of_a_payload_never_passes_a_stack_that_denies(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in prop::option::of(any::<u8>()),
    ) {
        let all = before();
        let it = &all[which.index(all.len())];
        let mut text = it.payload.to_string().into_bytes();
        let at = at.index(text.len());
        match byte {
            Some(byte) => text[at] = byte,
            None => text.truncate(at),
        }
        assert_denied(it.client, &answered(&denying(it.client), &text), "");
    }

    /// Unknown fields around a call are ignored, and unknown fields of its input are arguments. A field around it whose name
    /// begins with `mcp` may say that a server has the tool: then it is not taken for the client's own.
    #[test]
    fn unknown_fields_of_the_envelope_change_nothing(
        which in any::<prop::sample::Index>(), name in "(mcp|[a-z]{3})[a-z]{9}", value in other(),
    ) {
        let all = before();
        let it = &all[which.index(all.len())];
        let mut payload = it.payload.clone();
        payload.as_object_mut().unwrap().insert(name.clone(), value.clone());
        let plain = Hook::new(it.client).translate(it.payload.to_string().as_bytes());
        let more = Hook::new(it.client).translate(payload.to_string().as_bytes());
        if name.starts_with("mcp") {
            payload.as_object_mut().unwrap().remove(&name);
        } else {
            prop_assert_eq!(&plain, &more);
        }
        let input = ["tool_input", "toolArgs", "args"].into_iter().find(|it| payload.get(it).is_some()).unwrap();
        payload[input].as_object_mut().unwrap().insert(name.clone(), value.clone());
        let (tool, args) = Hook::new(it.client).translate(payload.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&tool, &plain.unwrap().0);
        prop_assert_eq!(args.get(&name), Some(&value));
    }
}
