//! Conversations: every kind of result in the shape that both providers accept.

use std::sync::{Arc, Mutex};

use countersign::agent::text;
use countersign::deferred::CallResult;
use countersign::outcome::{ModelRetry, ToolFailed, ToolReturn};
use countersign::turn::RunEvent;
use countersign::{
    Agent, Args, DeferredToolResults, FunctionToolset, SuspendedRun, Tools, ToolsExt, decide_fn,
};
use serde_json::{Value, json};

use super::provider::{BOTH, EVERY, Provider, Reply, Wire, calls, says, told, writes};
use super::tools;
use crate::support::{Recorder, by_name};

/// The tools behind a stack that allows, asks and denies by their names.
pub(crate) fn guarded(tools: &Recorder) -> Tools {
    tools.clone().layered(decide_fn(by_name))
}

pub(crate) fn done() -> Reply {
    Reply::Says(vec![says("done")])
}

/// Stored, and read again.
pub(crate) fn stored(run: &SuspendedRun) -> SuspendedRun {
    serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap()
}

#[tokio::test]
async fn text_is_streamed_as_it_arrives() {
    for (wire, streaming) in EVERY {
        let provider = Provider::saying(wire, [Reply::Says(vec![says("How do you do?")])]).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        let agent =
            Agent::new(provider.model().streaming(streaming), tools()).instructions("Be polite.");
        let run = agent.run("Hello").watch(move |event| {
            if let RunEvent::TextDelta { text } = event {
                hear.lock().unwrap().push(text.clone());
            }
        });
        assert_eq!(run.await.unwrap().text(), Some("How do you do?"), "{wire:?}");
        let heard = heard.lock().unwrap().clone();
        assert_eq!(heard.concat(), "How do you do?");
        assert_eq!(heard.len(), if streaming { 2 } else { 1 });
        let request = provider.last();
        assert_eq!(request["stream"], streaming);
        assert_eq!(request["tools"].as_array().unwrap().len(), 6);
        let system = match wire {
            Wire::OpenAi => &request["messages"][0]["content"],
            Wire::Anthropic => &request["system"],
        };
        assert_eq!(system, "Be polite.");
    }
}

#[tokio::test]
async fn every_kind_of_result_has_its_own_form() {
    // D2: "The model is told its reason word for word." T3: "Every call ends with one result, in model order."
    for (wire, streaming) in EVERY {
        let all = ["read", "deny", "ask", "fail", "again", "search"];
        let named = all.map(|name| calls(&format!("c_{name}"), name, json!({"n": 1})));
        let provider = Provider::saying(wire, [Reply::Says(named.to_vec()), done()]).await;
        let recorder = tools();
        let agent = Agent::new(provider.model().streaming(streaming), guarded(&recorder));
        let agent = agent.output(text().or_deferred());
        let run = stored(&agent.run("go").await.unwrap().into_suspended().unwrap());
        let requests = run.requests();
        let answers = requests.answer().approve("c_ask").result("c_search", json!(["a", 2]));
        let answers = answers.build().unwrap();
        let run = agent.resume(run, answers).saying("And be quick.").await.unwrap();
        assert_eq!(run.text(), Some("done"), "{wire:?}: {:?}", provider.refused());
        let anthropic = wire == Wire::Anthropic;
        let error = |text: &str| match anthropic {
            true => text.to_owned(),
            false => json!({ "error": text }).to_string(),
        };
        let wanted = [
            told("c_read", r#"{"n":1}"#, false),
            told("c_deny", "no", anthropic),
            told("c_ask", r#"{"n":1}"#, false),
            told("c_fail", &error("the disk is full"), anthropic),
            told("c_again", &error("name a file"), anthropic),
            told("c_search", r#"["a",2]"#, false),
        ];
        assert_eq!(provider.told(), wanted, "{wire:?}");
        let last = provider.last()["messages"].as_array().unwrap().last().unwrap().to_string();
        assert!(last.contains("And be quick."), "{last}");
        assert_eq!(recorder.ids(), ["c_again", "c_ask", "c_fail", "c_read"]);
    }
}

#[tokio::test]
async fn denied_failed_and_retried_answers_reach_the_model() {
    for wire in BOTH {
        let parts = ["a", "b", "c", "d"]
            .map(|id| calls(id, if id < "c" { "ask" } else { "search" }, json!({})));
        let provider = Provider::saying(wire, [Reply::Says(parts.to_vec()), done()]).await;
        let agent = Agent::new(provider.model(), guarded(&tools())).output(text().or_deferred());
        let run = stored(&agent.run("go").await.unwrap().into_suspended().unwrap());
        // The first is edited, and the model is not told.
        let requests = run.requests();
        let answers = requests.answer().approve_with("a", Args::new().with("edited", true));
        let answers = answers.deny("b", "not on a Sunday").result("c", ModelRetry::new("say more"));
        let answers = answers.result("d", ToolFailed::new("gone")).build().unwrap();
        let run = agent.resume(run, answers).await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
        let anthropic = wire == Wire::Anthropic;
        let error = |text: &str| match anthropic {
            true => text.to_owned(),
            false => json!({ "error": text }).to_string(),
        };
        let wanted = [
            told("a", r#"{"edited":true}"#, false),
            told("b", "not on a Sunday", anthropic),
            told("c", &error("say more"), anthropic),
            told("d", &error("gone"), anthropic),
        ];
        assert_eq!(provider.told(), wanted);
    }
}

#[tokio::test]
async fn additional_content_of_a_tool_follows_all_results() {
    for wire in BOTH {
        let two = vec![calls("c1", "search", json!({})), calls("c2", "search", json!({}))];
        let provider = Provider::saying(wire, [Reply::Says(two), done()]).await;
        let agent = Agent::new(provider.model(), tools()).output(text().or_deferred());
        let run = agent.run("go").await.unwrap().into_suspended().unwrap();
        let reading = |text: &str, value: Value| {
            CallResult::Return(ToolReturn { content: Some(text.into()), ..ToolReturn::new(value) })
        };
        let answers = DeferredToolResults::new()
            .result("c1", reading("the first page", json!(null)))
            .result("c2", reading("  ", json!("")));
        let run = agent.resume(run, answers).await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
        // An empty result is still one; an empty text is nothing to read.
        assert_eq!(provider.told(), [told("c1", "null", false), told("c2", "\"\"", false)]);
        let messages = provider.last()["messages"].clone();
        let messages = messages.as_array().unwrap();
        match wire {
            Wire::OpenAi => {
                let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
                assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
                assert_eq!(messages[4]["content"], "the first page");
            }
            Wire::Anthropic => {
                assert_eq!(messages.len(), 3);
                let last = json!({"type": "text", "text": "the first page"});
                assert_eq!(messages[2]["content"][2], last);
            }
        }
    }
}

#[tokio::test]
async fn unreadable_arguments_fail_only_their_own_call() {
    // T5: "Arguments are read once; repeated keys and integers that would lose digits are errors. Invalid arguments …
    // go back to the model before any person is asked."
    let unreadable = [
        r#"{"n": "#,
        "[1]",
        "7",
        r#""{}""#,
        r#"{"n": 1, "n": 2}"#,
        r#"{"n": 123456789012345678901234567890}"#,
    ];
    for wire in BOTH {
        for bad in unreadable {
            let parts = vec![calls("good", "read", json!({"n": 1})), writes("bad", "read", bad)];
            let provider = Provider::saying(wire, [Reply::Says(parts), done()]).await;
            let recorder = tools();
            let run = Agent::new(provider.model(), recorder.clone()).run("go").await.unwrap();
            assert_eq!(run.text(), Some("done"), "{bad}: {:?}", provider.refused());
            assert_eq!(recorder.ids(), ["good"], "{bad}");
            let told = provider.told();
            assert_eq!(told[0].content, r#"{"n":1}"#);
            assert!(told[1].content.contains("Not executed"), "{}", told[1].content);
        }
        // Nothing at all means that there are none.
        for none in ["", " ", "null", "{}"] {
            let parts = vec![writes("c1", "read", none)];
            let provider = Provider::saying(wire, [Reply::Says(parts), done()]).await;
            let recorder = tools();
            let run = Agent::new(provider.model(), recorder.clone()).run("go").await.unwrap();
            assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
            assert_eq!(recorder.ids(), ["c1"], "{wire:?} {none:?}");
        }
    }
}

#[tokio::test]
async fn ids_and_names_that_the_next_provider_refuses_are_replaced_on_the_way() {
    let odd = ["functions.read:0", "call00001", "a b", &"x".repeat(80), "ü"];
    let mut parts: Vec<_> = odd.iter().map(|id| calls(id, "read", json!({"id": id}))).collect();
    parts.push(calls("named", "rm -rf /", json!({})));
    parts.push(calls("unnamed", "", json!({})));
    let first = Provider::saying(Wire::OpenAi, [Reply::Says(parts), done()]).await;
    let agent = Agent::new(first.model(), tools());
    let run = agent.run("go").await.unwrap();
    assert_eq!(run.text(), Some("done"), "{:?}", first.refused());
    let history = run.history().to_vec();
    let used: Vec<_> =
        history.iter().flat_map(|it| it.tool_calls()).map(|call| call.id()).collect();
    assert_eq!(used[..5], odd, "the history keeps what the model said");

    let script = [Reply::Says(vec![calls("c1", "read", json!({}))]), done()];
    let second = Provider::saying(Wire::Anthropic, script).await;
    let agent = Agent::new(second.model(), tools());
    let run = agent.run("more").history(history.clone()).await.unwrap();
    assert_eq!(run.text(), Some("done"), "{:?}", second.refused());
    let [one, two] = &second.requests()[..] else { panic!("two requests") };
    // The same each time, so that caches of prompts hold.
    let length = one["messages"].as_array().unwrap().len();
    assert_eq!(
        one["messages"].as_array().unwrap()[..],
        two["messages"].as_array().unwrap()[..length]
    );
    let blocks = one["messages"][1]["content"].as_array().unwrap().clone();
    let ids: Vec<_> = blocks.iter().map(|block| block["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        ["call00002", "call00001", "call00003", "call00004", "call00005", "named", "unnamed"]
    );
    assert_eq!(blocks[5]["name"], "rm_-rf__");
    assert_eq!(blocks[6]["name"], "unknown");
}

#[tokio::test]
async fn empty_texts_are_not_sent() {
    for wire in BOTH {
        let script = [
            Reply::Says(vec![]),
            Reply::Says(vec![says(" "), calls("c1", "read", json!({}))]),
            done(),
        ];
        let provider = Provider::saying(wire, script).await;
        let agent = Agent::new(provider.model(), tools()).instructions(" ");
        let run = agent.run("go").await.unwrap();
        assert_eq!(run.text(), Some(""));
        let run = agent.run("are you there?").history(run.history().to_vec()).await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
        let first = &provider.last()["messages"][0]["content"];
        assert!(
            first.to_string().contains("go") && first.to_string().contains("are you there?"),
            "{first}"
        );

        let provider = Provider::saying(wire, [done()]).await;
        let run = Agent::new(provider.model(), FunctionToolset::new()).run("go").await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
        assert_eq!(provider.last().get("tools"), None);
    }
}

#[tokio::test]
async fn a_closed_run_continues_with_a_new_prompt() {
    // T3: "Every call ends with one result", also without an answer.
    for wire in BOTH {
        let waiting = vec![calls("c1", "ask", json!({})), calls("c2", "read", json!({}))];
        let provider = Provider::saying(wire, [Reply::Says(waiting), done()]).await;
        let agent = Agent::new(provider.model(), guarded(&tools())).output(text().or_deferred());
        let run = agent.run("go").await.unwrap().into_suspended().unwrap();
        let history = stored(&run).close("the user has changed the subject");
        let run = agent.run("never mind").history(history).await.unwrap();
        assert_eq!(run.text(), Some("done"), "{:?}", provider.refused());
        let told = provider.told();
        assert_eq!(told.len(), 2);
        assert!(
            told[0].content.contains("the user has changed the subject"),
            "{}",
            told[0].content
        );
    }
}
