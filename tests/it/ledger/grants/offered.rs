//! Grants that a person makes in the inbox, with an approval (rule G3).

use axum::body::Body;
use axum::http::{Request, StatusCode};
use countersign::decision::{GrantPattern, Preview};
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{
    Ask, AskRecord, AskState, Claimed, FieldPattern, Grant, GrantOffer, GrantScope, Ledger,
    MemoryStore, Offers, Quorum,
};
use countersign::{Args, Decision};
use countersign_inbox::{Approver, AuthorizeError, Inbox};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::failing_store::{Failing, How};

fn asked(run: &str) -> Ask {
    let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
    Ask::new(run, "root/c1", "mail").with_questions(asked.questions().to_vec())
}

async fn sent(ledger: &Ledger, request: Request<Body>) -> (StatusCode, Value) {
    let inbox = Inbox::new(ledger.clone(), async |_| Ok::<_, AuthorizeError>(Approver::new("ann")))
        .into_router();
    let response = inbox.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn approved(ledger: &Ledger, record: &AskRecord, grant: Value) -> (StatusCode, Value) {
    let body = json!({"verdict": "approve", "fingerprint": record.fingerprint, "grant": grant})
        .to_string();
    let request = Request::post(format!("/api/asks/{}/decision", record.ask.id()))
        .header("content-type", "application/json");
    sent(ledger, request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn the_inbox_offers_and_makes_a_grant_with_an_approval() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let record = ledger.park(asked("r1")).await.unwrap();
    let request = Request::get(format!("/api/asks/{}", record.ask.id())).body(Body::empty());
    let (_, shown) = sent(&ledger, request.unwrap()).await;
    assert_eq!(shown["offers"][0]["scope"], "session", "{shown}");
    assert!(shown["offers"][0]["says"].as_str().unwrap().contains("exactly these arguments"));

    // What cannot be granted decides nothing.
    for wanted in [json!({"scope": "project"}), json!({"scope": "session", "seconds": 8_000_000})] {
        let (status, refused) = approved(&ledger, &record, wanted).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
        let now = ledger.get(record.ask.id()).await.unwrap().unwrap();
        assert_eq!(now.state, AskState::Pending);
    }
    let (status, made) =
        approved(&ledger, &record, json!({"scope": "session", "seconds": 3600})).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    let grants = ledger.grants(9).await.unwrap().records;
    assert_eq!((grants.len(), &grants[0].by[..]), (1, &["ann".to_owned()][..]));
    assert_eq!(
        (made["grant"]["id"].as_str(), grants[0].grant.valid_for()),
        (Some(&*grants[0].id), 3_600_000)
    );
    let granted = ledger.answer_by_grant(&asked("r2")).await.unwrap().unwrap();
    let by = granted.decision.unwrap().by_line();
    assert!(by.starts_with(&format!("by grant {} of ann", grants[0].id)), "{by}");
    let elsewhere = ledger.session("s2");
    assert!(elsewhere.answer_by_grant(&asked("r3")).await.unwrap().is_none());
}

/// G3: "An approval stands also where the store takes no grant, and the person is told so."
#[tokio::test]
async fn an_approval_stands_also_where_the_store_takes_no_grant() {
    let store = MemoryStore::new();
    let ledger = Ledger::new(store.clone()).session("s1");
    let record = ledger.park(asked("r1")).await.unwrap();
    // The decision is its first transaction, and the grant its second.
    let failing = Failing::at(&store, Some((1, How::Fails)));
    let failed = Ledger::new(failing.clone()).session("s1");
    let (status, told) = approved(&failed, &record, json!({"scope": "session"})).await;
    assert_eq!((status, failing.count()), (StatusCode::OK, 2), "{told}");
    let problem = told["grant"]["problem"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(problem.starts_with("The call is approved, and no grant was made"), "{problem}");
    let id = record.ask.id();
    assert_eq!(ledger.get(id).await.unwrap().unwrap().state, AskState::Decided);
    assert!(ledger.grants(9).await.unwrap().records.is_empty());
    let claimed = ledger.claim(id, "w", std::time::Duration::from_secs(60)).await.unwrap();
    assert_eq!(claimed, Claimed::Claimed { token: 1 });
}

/// The inbox offers the classes that the layer proposes, each with its number.
#[tokio::test]
async fn the_inbox_makes_a_wider_grant_by_its_number() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let ask = |run: &str, euros: u32, class: &str| {
        let class = GrantPattern::new(class, "refunds of at most 50 euros")
            .with_field("euros")
            .with_example("refund 20");
        let asked =
            Decision::ask("refunds").with_metadata(GRANTABLE, true).with_grant_patterns([class]);
        Ask::new(run, "root/c1", "refund")
            .with_args(Args::new().with("euros", euros).with("to", "bob"))
            .with_questions(asked.questions().to_vec())
    };
    let record = ledger.park(ask("r1", 5, "small")).await.unwrap();
    let request = Request::get(format!("/api/asks/{}", record.ask.id())).body(Body::empty());
    let (_, shown) = sent(&ledger, request.unwrap()).await;
    assert_eq!(
        (&shown["offers"][2]["pattern"], &shown["offers"][2]["also"]),
        (&json!(1), &json!(["refund 20"]))
    );
    let (status, _) = approved(&ledger, &record, json!({"scope": "session", "pattern": 2})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "two are offered");
    let (status, made) =
        approved(&ledger, &record, json!({"scope": "session", "pattern": 1})).await;
    assert_eq!(status, StatusCode::OK, "{made}");

    let answered = async |ask: Ask| ledger.answer_by_grant(&ask).await.unwrap().is_some();
    assert!(answered(ask("r2", 20, "small")).await);
    assert!(!answered(ask("r3", 200, "large")).await, "the layer puts it into another class");
    let other = ask("r4", 20, "small").with_args(Args::new().with("euros", 20).with("to", "eve"));
    assert!(!answered(other).await, "the rest is as it was");
}

/// G3: "the time that is chosen is the time that is shown and made".
#[tokio::test]
async fn each_offer_is_shown_for_each_time_and_is_made_for_the_time_that_was_shown() {
    for number in 0..2 {
        let ledger = Ledger::new(MemoryStore::new()).session("s1");
        let record = ledger.park(asked("r1")).await.unwrap();
        let request = Request::get(format!("/api/asks/{}", record.ask.id())).body(Body::empty());
        let (_, shown) = sent(&ledger, request.unwrap()).await;
        let offer = &shown["offers"][number];
        let time = ["1h", "12h"][number];
        assert!(
            offer["says"].as_str().unwrap().ends_with(&format!("for at most {time}")),
            "{offer}"
        );
        assert!(
            offer["rule"].as_str().unwrap().contains(&format!("valid_for = \"{time}\"")),
            "{offer}"
        );
        let wanted = json!({"scope": "session", "pattern": 0, "seconds": offer["seconds"]});
        approved(&ledger, &record, wanted).await;
        let made = ledger.grants(9).await.unwrap().records.remove(0).grant;
        assert_eq!(json!(made.valid_for() / 1000), offer["seconds"]);
    }
}

/// G3: "a grant for exactly one change of a file is not offered", as the same call is another change afterwards. The
/// others keep their numbers, so that the number of the narrowest never makes a wider one.
#[tokio::test]
async fn exactly_this_change_of_a_file_is_not_offered() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let ask = |run: &str, preview: Preview| {
        let file = GrantPattern::new("file", "the file `a.txt`, with any content");
        let asked = Decision::ask("writes").with_key("write").with_metadata(GRANTABLE, true);
        let asked = asked.with_grant_patterns([file]).with_preview(preview);
        Ask::new(run, "root/c1", "write").with_questions(asked.questions().to_vec())
    };
    let numbers = async |run: &str, preview: Preview| {
        let offers = Offers::of(&ledger.park(ask(run, preview)).await.unwrap().ask);
        offers.iter().map(GrantOffer::number).collect::<Vec<_>>()
    };
    assert_eq!(numbers("r1", Preview::diff("a.txt", "old", "new")).await, [1]);
    assert_eq!(
        numbers("r2", Preview::text("a.txt", "a letter")).await,
        [0, 1],
        "it may come again"
    );
    assert_eq!(numbers("r3", Preview::diff("a.txt", "old", "new").without_pin()).await, [0, 1]);

    let record = ledger.park(ask("r4", Preview::diff("a.txt", "old", "new"))).await.unwrap();
    let (status, _) = approved(&ledger, &record, json!({"scope": "session"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, made) =
        approved(&ledger, &record, json!({"scope": "session", "pattern": 1})).await;
    assert_eq!((status, made["grant"]["problem"].as_str()), (StatusCode::OK, None), "{made}");
}

/// G3: "a call of which something was not seen cannot be granted either": no surface shows all of such a change.
#[tokio::test]
async fn a_change_that_is_too_long_to_be_seen_whole_is_offered_no_grant() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let offers = async |run: &str, lines: usize| {
        let file = GrantPattern::new("file", "the file `a.txt`, with any content");
        let new: String = (0..lines).map(|n| format!("{n}\n")).collect();
        let asked = Decision::ask("writes").with_key("write").with_metadata(GRANTABLE, true);
        let asked = asked.with_grant_patterns([file]);
        let asked = asked.with_preview(Preview::diff("a.txt", "", &*new));
        let ask = Ask::new(run, "root/c1", "write").with_questions(asked.questions().to_vec());
        Offers::of(&ledger.park(ask).await.unwrap().ask).iter().count()
    };
    assert_eq!(offers("r1", 100).await, 1);
    assert_eq!(offers("r2", 100_000).await, 0);
}

/// G3: a request whose response was lost is sent again.
#[tokio::test]
async fn an_approval_that_is_sent_again_makes_no_second_grant() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let record = ledger.park(asked("r1")).await.unwrap();
    let first = approved(&ledger, &record, json!({"scope": "session"})).await;
    assert_eq!((first.0, first.1["grant"]["problem"].as_str()), (StatusCode::OK, None));
    let (status, again) = approved(&ledger, &record, json!({"scope": "session"})).await;
    let told = again["grant"]["problem"].as_str().unwrap_or_default();
    assert!(status == StatusCode::OK && told.starts_with("No grant was made"), "{again}");
    assert_eq!(ledger.grants(9).await.unwrap().records.len(), 1);
}

/// G2: a grant "gives its makers' votes", and one vote is not enough here.
#[tokio::test]
async fn a_call_that_two_people_have_to_approve_is_offered_no_grant() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let two = asked("r1").with_quorum(Quorum { approvals: 2, not_the_requester: false });
    assert!(Offers::of(&ledger.park(two).await.unwrap().ask).is_empty());
    assert!(!Offers::of(&ledger.park(asked("r2")).await.unwrap().ask).is_empty());
}

/// G3: "each is shown as a sentence with its time, as a rule in TOML"; S1: nothing in it is hidden.
#[test]
fn the_rule_of_a_grant_is_toml_with_nothing_hidden() {
    let args = Args::new()
        .with("to", "bob \u{202e}\"and\" 'ann'\n")
        .with("lines", 3)
        .with("copy to", json!([{"name": "eve"}, true]));
    let ask = asked("r1").with_args(args);
    let grant = Grant::of(&ask, GrantScope::Session("s 1".into())).unwrap();
    let grant = grant.with_field("lines", FieldPattern::between(0, 20)).unwrap().with_uses(5);
    assert_eq!(
        grant.with_valid_for(std::time::Duration::from_secs(5400)).to_toml(),
        r#"tool = "mail"
in = "session s 1"
valid_for = "90m"
uses = 5
agent = "root"
answers = ["sends mail"]

[args]
"copy to" = [{ name = "eve" }, true]
lines = "from 0 to 20"
to = "bob \u202E\"and\" 'ann'\n"
"#
    );
}

#[tokio::test]
async fn a_call_that_may_not_be_granted_is_offered_no_grant() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let questions = Decision::ask("sends mail").questions().to_vec();
    let ask = Ask::new("r1", "root/c1", "mail").with_questions(questions);
    let record = ledger.park(ask).await.unwrap();
    let request = Request::get(format!("/api/asks/{}", record.ask.id())).body(Body::empty());
    let (_, shown) = sent(&ledger, request.unwrap()).await;
    assert_eq!((&shown["offers"], &shown["grantable"]), (&json!([]), &json!(false)));
    let (status, _) = approved(&ledger, &record, json!({"scope": "session"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

/// G3: "Examples of what else it would allow, and of what looks alike and it never allows, are shown with it".
#[tokio::test]
async fn an_offer_says_what_it_would_never_allow() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let class = GrantPattern::new("add", "any `add`")
        .with_field("command")
        .with_example("add a")
        .with_never("add ../b\u{202e}");
    let asked = Decision::ask("adds").with_metadata(GRANTABLE, true).with_grant_patterns([class]);
    let ask = Ask::new("r1", "root/c1", "shell").with_questions(asked.questions().to_vec());
    let offers = Offers::of(&ledger.park(ask).await.unwrap().ask);
    let offers: Vec<GrantOffer> = offers.iter().cloned().collect();
    assert!(offers[0].never().is_empty());
    assert_eq!(offers[1].never(), ["add ../b\u{202e}"]);
    assert_eq!(offers[1].shown()["never"], json!([r"add ../b\u{202e}"]));
}

/// G3: "a page offers it for the session, or for the project for up to 90 days".
#[tokio::test]
async fn a_grant_for_the_project_is_offered_for_90_days() {
    let project = countersign::ledger::Project::at("host", "/usr/lib").unwrap();
    let ledger = Ledger::new(MemoryStore::new()).session("s1").project(project);
    let offers = Offers::of(&ledger.park(asked("r1")).await.unwrap().ask);
    let shown: Vec<(Value, Value)> =
        offers.shown().map(|it| (it["scope"].clone(), it["seconds"].clone())).collect();
    let of = |place: &str, seconds: u64| (json!(place), json!(seconds));
    assert_eq!(
        shown,
        [
            of("session", 3600),
            of("session", 43_200),
            of("project", 43_200),
            of("project", 90 * 86_400)
        ]
    );
}

/// A class may free all pins that begin in one way, and calls of a class may lack the arguments in which they differ.
#[tokio::test]
async fn a_class_frees_the_pins_and_the_arguments_that_it_names() {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let ask = |run: &str, pin: (&str, &str), args: Args| {
        let class = GrantPattern::new("run", "any run")
            .with_field("command")
            .with_field("timeout")
            .with_pin("content of ");
        let asked =
            Decision::ask("runs").with_metadata(GRANTABLE, true).with_grant_patterns([class]);
        let asked = asked.with_pin(pin.0, pin.1);
        Ask::new(run, "root/c1", "shell").with_args(args).with_questions(asked.questions().to_vec())
    };
    let args = || Args::new().with("command", "x").with("directory", "a");
    let first = ask("r1", ("content of Makefile", "1"), args());
    let scope = GrantScope::Session("s1".into());
    let grant = Grant::of_class(&first, scope, "run").unwrap();
    assert!(!grant.sentence().contains("Makefile"), "{}", grant.sentence());
    assert!(!grant.to_toml().contains("Makefile"), "{}", grant.to_toml());
    ledger.make_grant(grant, &["ann"]).await.unwrap();
    let answered = async |ask: Ask| ledger.answer_by_grant(&ask).await.unwrap().is_some();
    let other = args().with("command", "y").with("timeout", 5);
    assert!(answered(ask("r2", ("content of package.json", "2"), other.clone())).await);
    assert!(!answered(ask("r3", ("contents", "2"), other.clone())).await, "another pin");
    assert!(!answered(ask("r4", ("content of x", "2"), other.with("env", "x"))).await);
    assert!(!answered(ask("r5", ("content of x", "2"), args().with("directory", "b"))).await);
}
