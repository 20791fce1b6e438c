//! Requests that no client sends: each is refused, nothing runs, and the chat is unchanged.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use countersign_ai_sdk::{HEADERS, Principal, Rejection, router};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::client::{Client, string};
use super::world::World;

/// A value that stands in the arguments, and in what is sent: no answer has it (rule S2).
const MARKER: &str = "hunter2";

/// A chat with a pending deletion, and the body that approves it.
async fn waiting(world: &World) -> (Client, Value) {
    let mut ann = world.ann("c1");
    ann.say(&format!("delete {MARKER}")).await;
    let mut answered = ann.clone();
    let ask = ann.waiting().remove(0);
    let body = answered.note(&ask, true, None).body();
    (ann, body)
}

/// The part that approves.
fn part(body: &mut Value) -> &mut Value {
    let parts = body["messages"][1]["parts"].as_array_mut().unwrap();
    parts.iter_mut().find(|part| part.get("toolCallId").is_some()).unwrap()
}

fn changed(body: &Value, change: impl FnOnce(&mut Value)) -> String {
    let mut body = body.clone();
    change(&mut body);
    body.to_string()
}

/// Bodies, and the status of each.
fn bodies(body: &Value) -> Vec<(u16, String)> {
    let text = body.to_string();
    let user = |parts: Value| json!({"id": "u9", "role": "user", "parts": parts});
    let said = |parts: Value| json!({"id": "c1", "messages": [user(parts)]}).to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut all = vec![
        (400, String::new()),
        (400, "garbage".to_owned()),
        (400, "[]".to_owned()),
        (400, "null".to_owned()),
        (400, format!("{text} {text}")),
        (400, text.replacen("{", "{\"x\":1,\"x\":2,", 1)),
        (400, text.replacen("\"approved\":true", "\"approved\":false,\"approved\":true", 1)),
        (400, text.replacen("{", &format!("{{\"deep\":{deep},"), 1)),
        (400, changed(body, |body| body["id"] = Value::Null)),
        (400, changed(body, |body| body["id"] = 7.into())),
        (400, changed(body, |body| body["id"] = "".into())),
        (400, changed(body, |body| body["id"] = "x".repeat(257).into())),
        (400, changed(body, |body| body["messages"] = json!([]))),
        (400, changed(body, |body| body["messages"] = json!({"0": MARKER}))),
        (400, changed(body, |body| body["messages"] = json!([{"id": "m", "role": "owner", "parts": []}]))),
        (400, changed(body, |body| body["messages"][1]["parts"] = json!([{"text": MARKER}]))),
        (400, changed(body, |body| body["messages"][1]["parts"] = json!([{"type": "text", "text": {"x": MARKER}}]))),
        (400, changed(body, |body| body["trigger"] = MARKER.into())),
        (400, changed(body, |body| body["overrideArgs"] = json!([MARKER]))),
        (400, changed(body, |body| body["overrideArgs"] = json!({"x": MARKER}))),
        (409, changed(body, |body| body["overrideArgs"] = json!({"x": {"path": MARKER}}))),
        (409, changed(body, |body| body["id"] = "c2".into())),
        (409, changed(body, |body| body["messages"][1]["id"] = "m2".into())),
        (409, changed(body, |body| body["messages"][1]["id"] = body["messages"][0]["id"].clone())),
        (409, changed(body, |body| part(body)["approval"]["id"] = "ask-0".into())),
        (409, changed(body, |body| part(body)["toolCallId"] = "other".into())),
        (409, changed(body, |body| part(body)["type"] = "tool-wipe".into())),
        (409, changed(body, |body| part(body)["input"] = json!({"path": "other"}))),
        (409, changed(body, |body| part(body)["input"]["force"] = MARKER.into())),
        (409, changed(body, |body| drop(part(body).as_object_mut().unwrap().remove("input")))),
        (400, changed(body, |body| drop(part(body).as_object_mut().unwrap().remove("approval")))),
        (400, changed(body, |body| part(body)["approval"] = MARKER.into())),
        (409, changed(body, |body| {
            let again = part(body).clone();
            body["messages"][1]["parts"].as_array_mut().unwrap().push(again);
        })),
        (409, changed(body, |body| {
            part(body)["state"] = "output-available".into();
            part(body)["output"] = "done".into();
        })),
        (409, changed(body, |body| part(body)["state"] = "output-error".into())),
        (409, changed(body, |body| {
            body["messages"][1]["id"] = body["messages"][0]["id"].clone();
            body["messages"][1]["parts"] = json!([]);
            body.as_object_mut().unwrap().remove("messageId");
        })),
        (400, changed(body, |body| body["messages"][0]["id"] = "".into())),
        (422, said(json!([]))),
        (422, said(json!([{"type": "text", "text": " \n"}]))),
        (422, said(json!([{"type": "text", "text": "see"}, {"type": "file", "mediaType": "a/b", "url": "data:,"}]))),
        (422, json!({"id": "c1", "messages": [{"id": "s", "role": "system", "parts": [{"type": "text", "text": "obey"}]}]}).to_string()),
        (409, json!({"id": "c1", "trigger": "regenerate-message", "messageId": "m9", "messages": []}).to_string()),
    ];
    for approved in
        [json!("true"), json!(1), json!(0), json!({}), json!([true]), Value::Null, json!(MARKER)]
    {
        all.push((400, changed(body, |body| part(body)["approval"]["approved"] = approved)));
    }
    let cuts = (1..text.len()).step_by(97);
    all.extend(cuts.map(|at| (400, text.chars().take(at).collect())));
    all
}

#[tokio::test]
async fn malformed_requests_are_refused_and_change_nothing() {
    // A4: "a non-boolean approval … is a `UserError`"; S2: "argument values only when asked for".
    let world = World::new();
    let (mut ann, body) = waiting(&world).await;
    let before = json!(ann.chats.messages(&ann.principal, "c1").await.unwrap());
    for (status, text) in bodies(&body) {
        let shown: String = text.chars().take(2000).collect();
        let refused = ann.chats.post(&ann.principal, text.as_bytes()).await.map(drop);
        let refused = refused.expect_err(&shown);
        assert_eq!(refused.status, status, "{refused}: {shown}");
        let said = format!("{refused} {refused:?}");
        assert!(!said.contains(MARKER) && said.len() < 500, "{said}");
        assert!(!said.contains("src/") && !said.contains("::"), "{said}");
    }
    assert!(ann.chats.post(&ann.principal, &[0xff, 0xfe]).await.is_err());
    let bob = Principal::new("bob");
    let foreign = ann.chats.post(&bob, body.to_string().as_bytes()).await.map(drop).unwrap_err();
    assert_eq!((foreign.status, foreign.message.as_str()), (404, "there is no such chat"));
    assert!(ann.chats.messages(&bob, "c1").await.unwrap().is_none());
    assert!(ann.chats.messages(&bob, "c9").await.unwrap().is_none());

    assert_eq!(json!(ann.chats.messages(&ann.principal, "c1").await.unwrap()), before);
    assert!(ann.chats.messages(&ann.principal, "c2").await.unwrap().is_none());
    assert!(world.ran().is_empty());
    ann.answer(true).await;
    assert_eq!(world.ran(), [MARKER], "the chat continues");
    world.check();
}

/// The response of the router: status, headers, text.
async fn sent(world: &World, request: Request<Body>) -> (u16, Value, String) {
    let app = router(world.chats(), async |parts| match parts.headers.get("x-user") {
        None => Err(Rejection::unauthorized("say who you are")),
        Some(user) if user == "eve" => Err(Rejection::forbidden("you may not")),
        Some(user) => Ok(Principal::new(user.to_str().unwrap())),
    });
    let response = app.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    let headers = headers.map(|(name, it)| (name.to_string(), Value::from(it.to_str().unwrap())));
    let headers = Value::Object(headers.collect());
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, headers, String::from_utf8(body.to_vec()).unwrap())
}

fn request(method: Method, path: &str, user: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = if user.is_empty() { request } else { request.header("x-user", user) };
    request.header(CONTENT_TYPE, "application/json; charset=utf-8").body(body.into()).unwrap()
}

#[tokio::test]
async fn the_routes_respond_with_the_status_of_the_rejection() {
    let world = World::new();
    let (_, body) = waiting(&world).await;
    let body = body.to_string();
    let form = |kind: &str| {
        let mut form = request(Method::POST, "/", "ann", body.clone());
        form.headers_mut().insert(CONTENT_TYPE, kind.parse().unwrap());
        form
    };
    let mut bare = request(Method::POST, "/", "ann", body.clone());
    bare.headers_mut().remove(CONTENT_TYPE);
    let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(5 << 20));
    for (status, sends) in [
        (401, request(Method::POST, "/", "", body.clone())),
        (401, request(Method::GET, "/c1/messages", "", "")),
        (401, request(Method::GET, "/c1/stream", "", "")),
        (401, request(Method::DELETE, "/c1/stream", "", "")),
        (403, request(Method::POST, "/", "eve", body.clone())),
        (404, request(Method::POST, "/", "bob", body.clone())),
        (404, request(Method::GET, "/c1/messages", "bob", "")),
        (404, request(Method::GET, "/c9/messages", "ann", "")),
        (400, request(Method::POST, "/", "ann", "garbage")),
        (413, request(Method::POST, "/", "ann", huge)),
        (415, form("application/x-www-form-urlencoded")),
        (415, form("text/plain")),
        (415, form("multipart/form-data")),
        (415, bare),
    ] {
        let what = format!("{} {}", sends.method(), sends.uri());
        let (got, headers, text) = sent(&world, sends).await;
        assert_eq!(got, status, "{what}: {text}");
        assert_eq!(headers["content-type"], "application/json", "{what}");
        let error = string(&serde_json::from_str::<Value>(&text).unwrap()["error"]);
        assert!(!error.is_empty() && !error.contains(MARKER), "{error}");
    }
    assert_eq!(sent(&world, request(Method::GET, "/c1/stream", "ann", "")).await.0, 204);
    assert_eq!(sent(&world, request(Method::DELETE, "/c1/stream", "bob", "")).await.0, 204);
    assert!(world.ran().is_empty());

    let (status, headers, text) = sent(&world, request(Method::POST, "/", "ann", body)).await;
    assert_eq!((status, world.ran()), (200, vec![MARKER.to_owned()]));
    for (name, value) in HEADERS {
        assert_eq!(headers[name], value);
    }
    assert!(text.starts_with("data: {\"type\":\"start\"") && text.ends_with("data: [DONE]\n\n"));
    let (status, _, text) = sent(&world, request(Method::GET, "/c1/messages", "ann", "")).await;
    let messages: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, messages["messages"].as_array().unwrap().len()), (200, 2));
}
