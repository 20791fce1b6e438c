//! The inbox's webhooks, where several processes serve one store. The page and the API are tested in `tests/browser`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::routing::post;
use axum::{Json, Router};
use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, AskState, Ledger, MemoryStore};
use countersign_inbox::{Approver, AuthorizeError, Inbox, Webhook};
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower::ServiceExt as _;

/// Longer than events are collected before a message, and than a process waits for the turn of another one.
const LONG: Duration = Duration::from_secs(6);

/// What a target has heard: the heading, and the path of the ask.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<(String, String)>>>);

impl Heard {
    async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let hook = async |State(heard): State<Self>, Json(message): Json<Value>| {
            for (heading, told) in message["metadata"]["event_payload"].as_object().unwrap() {
                for ask in told["asks"].as_array().into_iter().flatten() {
                    let tool = ask["tool"].as_str().unwrap().to_owned();
                    heard.0.lock().unwrap().push((heading.clone(), tool));
                }
            }
        };
        let app = Router::new().route("/", post(hook)).with_state(self.clone());
        tokio::spawn(async { axum::serve(listener, app).await });
        url
    }

    /// What was heard since the last time, in order of the heading and tool, once there is as much as this and nothing
    /// follows it.
    async fn take(&self, count: usize) -> Vec<(String, String)> {
        let there = || self.0.lock().unwrap().len() >= count;
        for _ in 0..300 {
            if count > 0 && there() {
                break;
            }
            let pause = if count > 0 { Duration::from_millis(100) } else { LONG / 300 };
            tokio::time::sleep(pause).await;
        }
        tokio::time::sleep(LONG / 6).await;
        let mut heard = std::mem::take(&mut *self.0.lock().unwrap());
        heard.sort();
        heard
    }
}

/// A process with an inbox over the store.
struct Instance {
    stop: Option<oneshot::Sender<()>>,
    router: Router,
}

impl Instance {
    async fn start(path: &std::path::Path, url: &str) -> Self {
        let ledger = Ledger::new(SqliteStore::open(path).await.unwrap());
        let (stop, stopped) = oneshot::channel();
        let webhook = Webhook::new(url, b"a secret of 16 bytes").unwrap();
        let inbox = Inbox::new(ledger, async |_| Ok::<_, AuthorizeError>(Approver::new("ann")));
        let inbox = inbox.webhook(webhook).shutdown(async {
            let _ = stopped.await;
        });
        Self { stop: Some(stop), router: inbox.into_router() }
    }

    /// Ends as a service does that is told to.
    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(self.router);
    }
}

fn told(heading: &str, tool: &str) -> (String, String) {
    (heading.to_owned(), tool.to_owned())
}

/// S10: "Of several processes with one webhook, one tells, and what was told is not told again."
#[tokio::test(flavor = "multi_thread")]
async fn of_several_instances_one_tells_and_a_restart_tells_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asks.db");
    let ledger = Ledger::new(SqliteStore::open(&path).await.unwrap());
    let park = async |tool: &str| -> AskRecord {
        ledger.park(Ask::new(format!("run {tool}"), "root/c1", tool)).await.unwrap()
    };
    let deny = async |record: &AskRecord| {
        let no = Answer::Deny { message: String::new() };
        ledger.decide(record.ask.id(), &record.fingerprint, "ann", no).await.unwrap();
    };
    let heard = Heard::default();
    let url = heard.listen().await;
    let (first, second) = (Instance::start(&path, &url).await, Instance::start(&path, &url).await);

    let one = park("one").await;
    park("two").await;
    assert_eq!(heard.take(2).await, [told("new", "one"), told("new", "two")]);
    deny(&one).await;
    assert_eq!(heard.take(1).await, [told("decided", "one")]);

    // Whichever tells, the other one continues.
    first.stop().await;
    park("three").await;
    assert_eq!(heard.take(1).await, [told("new", "three")]);
    second.stop().await;
    let four = park("four").await;
    let five = park("five").await;
    deny(&five).await;
    assert_eq!(heard.take(0).await, [], "no process is there");

    let third = Instance::start(&path, &url).await;
    assert_eq!(heard.take(1).await, [told("new", "four")], "what came meanwhile");
    third.stop().await;
    deny(&four).await;
    let _fourth = Instance::start(&path, &url).await;
    assert_eq!(heard.take(1).await, [told("decided", "four")], "what was decided meanwhile");
}

/// S10: a target "is notified of expiring asks, too", once each, and "one that hangs delays nothing else".
#[tokio::test(flavor = "multi_thread")]
async fn expiring_asks_are_announced_once_and_a_target_that_hangs_delays_no_other() {
    let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/", hangs.local_addr().unwrap());
    // It takes the message, and never answers.
    let held = tokio::spawn(async move { hangs.accept().await.unwrap() });
    let heard = Heard::default();
    let ledger = Ledger::new(MemoryStore::new());
    let mut inbox =
        Inbox::new(ledger.clone(), async |_| Ok::<_, AuthorizeError>(Approver::new("ann")));
    for url in [silent, heard.listen().await] {
        inbox = inbox.webhook(Webhook::new(&url, b"a secret of 16 bytes").unwrap());
    }
    let router = inbox.into_router();
    let soon = Ask::new("run soon", "root/c1", "soon").with_expires_in(Duration::from_secs(60));
    ledger.park(soon).await.unwrap();
    ledger.park(Ask::new("run never", "root/c1", "never")).await.unwrap();
    let both = [told("expiring", "soon"), told("new", "never")];
    assert_eq!(heard.take(2).await, both, "each under what counts most");
    let _never_answered = held.await.unwrap();
    let asked = router.clone().oneshot(Request::get("/api/asks").body(Body::empty()).unwrap());
    // The target that hangs has ten seconds.
    let answer = tokio::time::timeout(Duration::from_secs(9), asked).await;
    assert!(answer.expect("the page answers at once").unwrap().status().is_success());
    assert_eq!(heard.take(0).await, [], "each is told once");
}

/// The page of `with_decides` says: "a decision about one is refused with `403`".
#[tokio::test]
async fn an_ask_that_a_person_may_see_and_not_decide_stays_pending() {
    let ledger = Ledger::new(MemoryStore::new());
    let app = Inbox::new(ledger.clone(), async |_| {
        let decides = |record: &AskRecord| record.ask.tool() != "transfer";
        Ok::<_, AuthorizeError>(Approver::new("bob").with_decides(decides))
    })
    .into_router();
    for (tool, status, state) in
        [("transfer", 403, AskState::Pending), ("list", 200, AskState::Decided)]
    {
        let parked = ledger.park(Ask::new("run-1", format!("root/{tool}"), tool)).await.unwrap();
        let (id, fingerprint) = (parked.ask.id(), &parked.fingerprint);
        let seen = Request::get(format!("/api/asks/{id}")).body(Body::empty()).unwrap();
        let shown = app.clone().oneshot(seen).await.unwrap();
        assert_eq!(shown.status(), 200, "{tool} is shown");
        let shown = axum::body::to_bytes(shown.into_body(), 1 << 20).await.unwrap();
        let shown: Value = serde_json::from_slice(&shown).unwrap();
        for button in ["may_approve", "may_decide"] {
            assert_eq!(shown["quorum"][button], status == 200, "{tool}: {shown}");
        }
        let answer = json!({"verdict": "approve", "fingerprint": fingerprint}).to_string();
        let decide = Request::post(format!("/api/asks/{id}/decision"))
            .header("content-type", "application/json")
            .body(Body::from(answer))
            .unwrap();
        assert_eq!(app.clone().oneshot(decide).await.unwrap().status(), status, "{tool}");
        assert_eq!(ledger.get(id).await.unwrap().unwrap().state, state, "{tool}");
    }
}

/// A request to the page, and its status and body.
async fn get(app: &Router, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let reply = app.clone().oneshot(request).await.unwrap();
    let status = reply.status().as_u16();
    let body = axum::body::to_bytes(reply.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// A request with this body to the page, and its status and body.
async fn posted(app: &Router, path: &str, body: &Value) -> (u16, String) {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let reply = app.clone().oneshot(request).await.unwrap();
    let status = reply.status().as_u16();
    let body = axum::body::to_bytes(reply.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// S6: "What a person may not see (`Approver::with_sees`) is in no list, history, number or run, and is unknown by its id."
#[tokio::test]
async fn what_a_person_may_not_see_is_nowhere_on_the_page() {
    let ledger = Ledger::new(MemoryStore::new());
    let page = |sees: fn(&AskRecord) -> bool| {
        let person =
            move |_| async move { Ok::<_, AuthorizeError>(Approver::new("bob").with_sees(sees)) };
        Inbox::new(ledger.clone(), person).into_router()
    };
    let park = async |run: &str, tool: &str| {
        let args = countersign::Args::new().with("to", format!("account of {tool}"));
        let ask = Ask::new(run, format!("root/{tool}"), tool).with_args(args);
        ledger.park(ask.with_principal(tool)).await.unwrap()
    };
    let [open, settled] = [park("run-1", "bribe").await, park("run-1", "bribes").await];
    park("run-1", "list").await;
    ledger.save_run("run-2", json!({"history": "a bribe"}), None).await.unwrap();
    park("run-2", "bribery").await;
    let no = Answer::Deny { message: "no bribe".to_owned() };
    ledger.decide(settled.ask.id(), &settled.fingerprint, "ann", no).await.unwrap();

    let (bob, all) = (page(|record| !record.ask.tool().starts_with("brib")), page(|_| true));
    let decision = json!({"verdict": "approve", "fingerprint": open.fingerprint});
    let mut one_of_many = decision.clone();
    one_of_many["id"] = json!(open.ask.id());
    let id = |record: &AskRecord| format!("/api/asks/{}", record.ask.id());
    for (path, body, expected) in [
        ("/api/asks".to_owned(), None, 200),
        ("/api/asks?q=brib".to_owned(), None, 200),
        ("/api/asks?requester=bribe&group=run".to_owned(), None, 200),
        (id(&open), None, 404),
        (id(&settled), None, 404),
        ("/api/history".to_owned(), None, 200),
        ("/api/history?q=bribe".to_owned(), None, 200),
        ("/api/runs/run-1".to_owned(), None, 200),
        ("/api/runs/run-2".to_owned(), None, 404),
        ("/api/states".to_owned(), Some(json!({"asks": {open.ask.id(): 0}})), 200),
        (format!("{}/decision", id(&open)), Some(decision), 404),
        ("/api/decisions".to_owned(), Some(json!({"decisions": [one_of_many]})), 200),
        ("/api/verify".to_owned(), Some(json!({})), 403),
        ("/api/export".to_owned(), None, 403),
    ] {
        let (status, text) = match &body {
            Some(body) => posted(&bob, &path, body).await,
            None => get(&bob, &path).await,
        };
        assert_eq!(status, expected, "{path}: {text}");
        let said = text.replace(open.ask.id(), "");
        assert!(!said.contains("brib"), "{path}: {text}");
    }
    let numbers = async |app: &Router| -> Value {
        serde_json::from_str(&get(app, "/api/numbers").await.1).unwrap()
    };
    assert_eq!(
        (&numbers(&bob).await["waiting"], &numbers(&all).await["waiting"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(
        (&numbers(&bob).await["decided"], &numbers(&all).await["decided"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(ledger.get(open.ask.id()).await.unwrap().unwrap().state, AskState::Pending);
    assert_eq!(get(&all, &id(&open)).await.0, 200);
}

/// S6: the conversation of a run shows all of its calls, so a person who may not see one of them gets none, however many asks
/// are newer than that one.
#[tokio::test]
async fn a_conversation_is_shown_to_those_who_may_see_every_call_of_its_run() {
    let ledger = Ledger::new(MemoryStore::new());
    ledger.save_run("run-1", json!({"history": "a bribe"}), None).await.unwrap();
    let page = |approver: fn() -> Approver| {
        let person = move |_| async move { Ok::<_, AuthorizeError>(approver()) };
        Inbox::new(ledger.clone(), person).into_router()
    };
    let bob = page(|| Approver::new("bob").with_sees(|record| record.ask.tool() != "bribe"));
    let all = page(|| Approver::new("ann"));
    let conversation = async |app: &Router| -> Value {
        let (status, text) = get(app, "/api/runs/run-1").await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["conversation"].clone()
    };
    ledger.park(Ask::new("run-1", "root/bribe", "bribe")).await.unwrap();
    for n in 0..500 {
        ledger.park(Ask::new("run-1", format!("root/{n}"), "list")).await.unwrap();
    }
    assert_eq!(conversation(&bob).await, Value::Null);
    // Of this state only its form is wrong.
    let why = "The stored conversation cannot be read by this version.";
    assert_eq!(conversation(&all).await, json!({"why": why}));
}

/// S9: "The past can be read: the deciders, the reasons and the outcome", and "exported with permission".
#[tokio::test(flavor = "multi_thread")]
async fn the_past_is_searched_counted_and_exported_by_who_may_audit() {
    let ledger = Ledger::new(MemoryStore::new());
    let page = |audits: bool| {
        let approver = move || Approver::new("ann").with_audit(audits);
        let person = move |_| async move { Ok::<_, AuthorizeError>(approver()) };
        Inbox::new(ledger.clone(), person).into_router()
    };
    let (auditor, other) = (page(true), page(false));
    for (tool, answer) in [
        ("delete", Answer::Deny { message: "not today".to_owned() }),
        ("list", Answer::Approve { args: None }),
    ] {
        let parked = ledger.park(Ask::new("run-1", format!("root/{tool}"), tool)).await.unwrap();
        ledger.decide(parked.ask.id(), &parked.fingerprint, "bob", answer).await.unwrap();
    }
    for (query, tools) in [
        ("", 2),
        ("q=today", 1),
        ("q=tomorrow", 0),
        ("answer=deny", 1),
        ("who=bob", 2),
        ("to=1", 0),
    ] {
        let (status, text) = get(&other, &format!("/api/history?{query}")).await;
        let list: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status, list["asks"].as_array().unwrap().len()),
            (200, tools),
            "{query}: {text}"
        );
    }
    let numbers: Value = serde_json::from_str(&get(&other, "/api/numbers").await.1).unwrap();
    assert_eq!((&numbers["decided"], &numbers["denied_per_mille"]), (&json!(2), &json!(500)));
    assert_eq!(get(&other, "/api/export").await.0, 403, "only with permission");
    let (status, log) = get(&auditor, "/api/export").await;
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((status, &last["end"]), (200, &json!(true)), "an export says that it is whole");
}
