//! Grants that a person makes in the inbox, with an approval (rule G3).

use axum::body::Body;
use axum::http::{Request, StatusCode};
use countersign::decision::GrantPattern;
use countersign::deferred::metadata::GRANTABLE;
use countersign::inbox::{Approver, AuthorizeError, Inbox};
use countersign::ledger::{Ask, AskState, Ledger, MemoryStore, Record};
use countersign::{Args, Decision};
use serde_json::{Value, json};
use tower::ServiceExt as _;

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

async fn approved(ledger: &Ledger, record: &Record, grant: Value) -> (StatusCode, Value) {
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
        (&shown["offers"][1]["pattern"], &shown["offers"][1]["also"]),
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
