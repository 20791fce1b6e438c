//! Ann at the inbox, over HTTP.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use countersign::ledger::Approver;
use countersign_inbox::{AuthorizeError, Inbox};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{Case, Place, SurfaceDriver, WHO};

pub(super) struct InboxPage {
    place: Place,
    app: Router,
    id: String,
    /// The fingerprint of what the page shows.
    fingerprint: String,
}

impl InboxPage {
    async fn send(&self, request: Request<Body>) -> Value {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    async fn decide(&self, answer: &Value) -> String {
        let request = Request::post(format!("/api/asks/{}/decision", self.id))
            .header("content-type", "application/json")
            .body(Body::from(answer.to_string()));
        self.send(request.unwrap()).await.to_string()
    }
}

impl SurfaceDriver for InboxPage {
    async fn open(case: &Case) -> Self {
        let place = Place::new().await;
        let parked = place.park(case).await;
        let authorize = async |_| Ok::<_, AuthorizeError>(Approver::new(WHO));
        let app = Inbox::new(place.ledger.clone(), authorize).into_router();
        Self { place, app, id: parked.ask.id().to_owned(), fingerprint: String::new() }
    }

    fn place(&self) -> &Place {
        &self.place
    }

    async fn show(&mut self) -> Option<String> {
        let request = Request::get(format!("/api/asks/{}", self.id)).body(Body::empty()).unwrap();
        let ask = self.send(request).await;
        self.fingerprint = ask["fingerprint"].as_str().unwrap().to_owned();
        let mut shown = Vec::new();
        texts(&ask["view"], &mut shown);
        Some(shown.join("\n"))
    }

    async fn approve(&mut self) -> String {
        self.decide(&json!({"verdict": "approve", "fingerprint": self.fingerprint})).await
    }

    async fn deny(&mut self, reason: &str) -> String {
        let no = json!({"verdict": "deny", "fingerprint": self.fingerprint, "message": reason});
        self.decide(&no).await;
        reason.to_owned()
    }

    async fn edit(&mut self, args: &str) -> Option<String> {
        let yes = json!({"verdict": "approve", "fingerprint": self.fingerprint, "args": args});
        Some(self.decide(&yes).await)
    }

    async fn approve_something_else(&mut self) -> Option<String> {
        self.fingerprint = "0".repeat(64);
        Some(self.approve().await)
    }

    async fn leave(&mut self) {}
}

/// The texts that the page draws of a view: each line of a change behind its sign.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => match (fields.get("sign"), fields.get("text")) {
            (Some(sign), Some(Value::String(text))) => {
                let sign = match sign.as_str() {
                    Some("added") => "+",
                    Some("removed") => "-",
                    _ => " ",
                };
                out.push(format!("{sign}{text}"));
            }
            _ => fields.values().for_each(|value| texts(value, out)),
        },
        _ => {}
    }
}
