//! Grants behind a hook (rule G2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use countersign::deferred::Answer;
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{Ask, AskRecord, AskState, Grant, GrantPlace, Ledger, MemoryStore};
use countersign::{Decision, decide_fn};
use countersign_cli::hook::{Client, Hook};
use serde_json::json;

/// G2: "no person denied this call in this run": a no is about the call, under whichever questions it was asked.
#[tokio::test]
async fn a_grant_answers_no_call_that_was_denied_under_other_questions() {
    let ledger = Ledger::new(MemoryStore::new());
    let late = Arc::new(AtomicBool::new(false));
    let is_late = Arc::clone(&late);
    let asks = decide_fn(move |_, _| {
        let asked = Decision::ask("makes").with_key("make").with_metadata(GRANTABLE, true);
        match is_late.load(Ordering::SeqCst) {
            true => asked.and(Decision::ask("it is late").with_key("late")),
            false => asked,
        }
    });
    let hook = Hook::new(Client::Claude).layered(asks.named("makes"));
    let calls = async || {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": "make"},
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let store = async { Ok(ledger.clone()) };
        hook.answer(payload.as_bytes(), until, store).await.stderr().to_owned()
    };
    let pending = async || -> AskRecord {
        ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0)
    };
    let answer = async |answer: Answer| {
        let asked = pending().await;
        ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", answer).await.unwrap();
    };

    assert!(calls().await.contains("waits for approval"));
    let asked = pending().await.ask;
    let scope = GrantPlace::Session.scope(&asked).unwrap();
    ledger.make_grant(Grant::of(&asked, scope).unwrap(), &["ann"]).await.unwrap();
    answer(Answer::Approve { args: None }).await;
    for _ in 0..3 {
        assert_eq!(calls().await, "", "approved, and then granted");
    }
    late.store(true, Ordering::SeqCst);
    assert!(
        calls().await.contains("waits for approval"),
        "the grant does not cover the second question"
    );
    answer(Answer::Deny { message: "not now".to_owned() }).await;
    assert!(calls().await.contains("not now"));
    late.store(false, Ordering::SeqCst);
    let said = calls().await;
    assert!(said.contains("waits for approval"), "the no is still the last answer: {said}");
    answer(Answer::Approve { args: None }).await;
    assert_eq!(calls().await, "");
    assert_eq!(calls().await, "", "a later yes counts again");
}

/// D11: "A call of a hook without a session is one by itself": the same text may come from another conversation, so that
/// neither the denials of earlier calls nor their open ask are its own.
#[tokio::test]
async fn a_call_without_a_session_is_asked_about_by_itself() {
    let ledger = Ledger::new(MemoryStore::new());
    let hook = Hook::new(Client::Claude)
        .layered(decide_fn(|_, _| Decision::ask("makes").with_key("make")).named("makes"));
    let payload = json!({
        "hook_event_name": "PreToolUse", "cwd": "/src", "tool_use_id": "c", "tool_name": "Bash",
        "tool_input": {"command": "make"},
    });
    let payload = payload.to_string();
    let call = async || {
        let store = async { Ok(ledger.clone()) };
        let until = Instant::now() + Duration::from_secs(20);
        hook.answer(payload.as_bytes(), until, store).await.stderr().to_owned()
    };
    let people = async |calls: usize| {
        for _ in 0..1_000 {
            let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
            if pending.len() == calls {
                for asked in pending {
                    let no = Answer::Deny { message: "not now".to_owned() };
                    ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", no).await.unwrap();
                }
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{calls} calls are not asked about at a time");
    };
    for _ in 0..5 {
        let (told, ()) = tokio::join!(call(), people(1));
        assert!(told.contains("not now") && !told.contains("times"), "{told}");
    }
    let (one, other, ()) = tokio::join!(call(), call(), people(2));
    assert!(one.contains("not now") && other.contains("not now"), "{one} {other}");
}

/// D11: "at most 1 000 calls of a requester are pending at a time", as many as others may have asked since.
#[tokio::test]
async fn a_requester_with_a_thousand_pending_calls_is_not_asked_about_another() {
    let ledger = Ledger::new(MemoryStore::new());
    let park = async |name: &str, n: u32| {
        let ask = Ask::new(format!("{name} {n}"), "root/c1", "x").with_principal(name);
        ledger.park(ask).await.unwrap()
    };
    let hook = Hook::new(Client::Claude)
        .principal("ann")
        .layered(decide_fn(|_, _| Decision::ask("makes")).named("makes"));
    let calls = async |command: &str| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": command},
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let store = async { Ok(ledger.clone()) };
        hook.answer(payload.as_bytes(), until, store).await.stderr().to_owned()
    };
    for n in 0..999 {
        park("Ann ", n).await;
    }
    assert!(calls("make 1").await.contains("waits for approval"), "the thousandth is asked about");
    assert!(calls("make 2").await.contains("1000 calls of this requester are pending"));
    for n in 0..1000 {
        park("bob", n).await;
    }
    assert!(
        calls("make 3").await.contains("1000 calls of this requester are pending"),
        "those of others do not count"
    );
    assert!(calls("make 1").await.contains("waits for approval"), "it is pending already");
    assert_eq!(ledger.pending_of("ann").await.unwrap(), 1000);
}

/// G3: classes are offered and answer in the hook, too: a command with other operands, an MCP tool with any values.
#[tokio::test]
async fn a_class_that_the_rules_propose_is_granted_in_the_hook() {
    use countersign::ToolMiddlewareExt as _;
    use countersign::ledger::Offers;
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("docs")).unwrap();
    let text = "version = 2\npreset = 'developer'\n[[rule]]\nid = 'large'\nask = 'mcp:shop/*'\nwhere.amount = '> 100'";
    let rules =
        countersign_rules::Rules::builder().root(&root).text("mine.toml", text).load().unwrap();
    let ledger = Ledger::new(MemoryStore::new());
    let hook = Hook::new(Client::Claude).layered(rules.into_layer());
    let calls = async |tool: &str, args: serde_json::Value| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": root, "tool_use_id": "c", "tool_name": tool,
            "tool_input": args,
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let reply = hook.answer(payload.as_bytes(), until, async { Ok(ledger.clone()) }).await;
        reply.stderr().to_owned()
    };
    let grant = async |class: &str| {
        let asked = ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0);
        let offers = Offers::of(&asked.ask).in_place(GrantPlace::Session);
        let offer = offers.iter().find(|it| it.sentence().contains(class)).cloned();
        let offer = offer.unwrap_or_else(|| {
            panic!("{class}: {:?}", offers.iter().map(|it| it.sentence()).collect::<Vec<_>>())
        });
        ledger.make_grant(offer.into_grant(), &["ann"]).await.unwrap();
        let yes = Answer::Approve { args: None };
        ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", yes).await.unwrap();
    };
    assert!(
        calls("Bash", json!({"command": "git add docs/a.md"})).await.contains("waits for approval")
    );
    grant("any `git add` of files of the workspace").await;
    for command in ["git add docs/a.md", "git add docs/b.md docs/c.md"] {
        assert_eq!(
            calls("Bash", json!({"command": command, "description": command})).await,
            "",
            "{command}"
        );
    }
    for command in ["git add ../x", "git add docs && git push", "git commit -m x", "git add .env"] {
        assert!(
            calls("Bash", json!({"command": command})).await.contains("waits for approval"),
            "{command}"
        );
    }
    assert!(
        calls("mcp__shop__quote", json!({"amount": 3, "tags": ["a"]}))
            .await
            .contains("waits for approval")
    );
    grant("any arguments").await;
    for args in [
        json!({"amount": 3, "tags": ["a"]}),
        json!({"amount": 70, "tags": ["docs/b", "c", "d"], "to": "eve"}),
    ] {
        assert_eq!(calls("mcp__shop__quote", args.clone()).await, "", "{args}");
    }
    let large = json!({"amount": 300, "tags": []});
    assert!(
        calls("mcp__shop__quote", large).await.contains("waits for approval"),
        "another rule asks"
    );
    assert!(
        calls("mcp__shop__other", json!({"amount": 3, "tags": []}))
            .await
            .contains("waits for approval")
    );
}

/// P3: "for its client, session, agent, directory, person, tool, arguments and questions": an equal call that is made for another
/// person is another call.
#[tokio::test]
async fn an_approval_for_one_person_is_none_for_another() {
    let ledger = Ledger::new(MemoryStore::new());
    let called = async |who: &str| {
        let hook = Hook::new(Client::Claude)
            .principal(who)
            .layered(decide_fn(|_, _| Decision::ask("makes")).named("makes"));
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": "make"},
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let store = async { Ok(ledger.clone()) };
        hook.answer(payload.as_bytes(), until, store).await.stderr().to_owned()
    };
    let pending = async || ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
    assert!(called("ann").await.contains("waits for approval"));
    let [anns] = &pending().await[..] else { panic!("one ask is pending") };
    let yes = Answer::Approve { args: None };
    ledger.decide(anns.ask.id(), &anns.fingerprint, "eve", yes).await.unwrap();
    assert!(called("bob").await.contains("waits for approval"));
    let [bobs] = &pending().await[..] else { panic!("one ask is pending") };
    assert_eq!(bobs.ask.principal(), Some("bob"));
}

/// G3: what is remembered answers in the hook: a program that is not known, with other names, and a chain. What is beside it is
/// asked about, and so is everything once the grant is revoked.
#[tokio::test]
async fn classes_of_unknown_programs_and_of_chains_answer_in_the_hook() {
    use countersign::ToolMiddlewareExt as _;
    use countersign::ledger::Offers;
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("docs")).unwrap();
    let rules = countersign_rules::Rules::builder()
        .root(&root)
        .search_path(countersign_shell::SearchPath::new(["/usr/bin", "/bin"]))
        .text("mine.toml", "version = 2\npreset = 'developer'")
        .load()
        .unwrap();
    let ledger = Ledger::new(MemoryStore::new());
    let hook = Hook::new(Client::Claude).layered(rules.into_layer());
    let is_asked = async |args: serde_json::Value| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": root, "tool_use_id": "c", "tool_name": "Bash",
            "tool_input": args,
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let reply = hook.answer(payload.as_bytes(), until, async { Ok(ledger.clone()) }).await;
        assert_eq!(reply.is_denial(), reply.stderr().contains("waits for approval"), "{reply:?}");
        reply.is_denial()
    };
    let grant = async |class: &str| {
        let asked = ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0);
        let offers = Offers::of(&asked.ask).in_place(GrantPlace::Session);
        let offer = offers.iter().find(|it| it.sentence().contains(class)).cloned().unwrap();
        assert!(!offer.examples().is_empty() && !offer.never().is_empty());
        let made = ledger.make_grant(offer.into_grant(), &["ann"]).await.unwrap();
        let yes = Answer::Approve { args: None };
        ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", yes).await.unwrap();
        made.id
    };
    let command = |text: &str| json!({"command": text});
    assert!(is_asked(command("frobnicate show a-1 --json")).await);
    let made = grant("any `frobnicate show` with --json").await;
    for same in
        ["frobnicate show a-1 --json", "cd docs && frobnicate show b-2 ./c.md --json | head -3"]
    {
        assert!(!is_asked(command(same)).await, "{same}");
    }
    let mut patient = command("frobnicate show c-3 --json");
    patient["timeout"] = json!(60_000);
    patient["description"] = json!("Show it");
    assert!(!is_asked(patient).await);
    for other in [
        "frobnicate show ../x --json",
        "frobnicate list a-1 --json",
        "frobnicate show a --json && rm x",
    ] {
        assert!(is_asked(command(other)).await, "{other}");
    }
    ledger.revoke_grant(&made, "ann").await.unwrap();
    assert!(is_asked(command("frobnicate show d-4 --json")).await, "it was revoked");

    assert!(is_asked(command("git add docs && git commit -m one")).await);
    grant("any `git commit`").await;
    assert!(!is_asked(command("git add -A && git commit -m \"$(cat <<'EOF'\ntwo\nEOF\n)\"")).await);
    for other in
        ["git add docs && git commit -m x && git push", "git add docs && git commit --amend -m x"]
    {
        assert!(is_asked(command(other)).await, "{other}");
    }
}
