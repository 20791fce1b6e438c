//! The server without a browser: requests of other sites, other programs and broken clients.

use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskState, Quorum};
use reqwest::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::service::Place;

/// The time limit of every operation of a server.
const PATIENCE: Duration = Duration::from_secs(60);

const TRUE: Value = Value::Bool(true);

/// A client that sends JSON and is logged in.
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    cookie: String,
}

impl Client {
    pub(crate) async fn of(url: &str, name: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut client = Self { http, url: url.to_owned(), cookie: String::new() };
        let reply = client.request(Method::POST, "/api/login").json(&json!({"name": name})).send();
        let reply = reply.await.unwrap();
        assert_eq!(reply.status(), 200);
        let cookie = reply.headers()["set-cookie"].to_str().unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Strict"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        client.cookie = cookie.split(';').next().unwrap().to_owned();
        client
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url)).header(COOKIE, &self.cookie)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        said(self.request(Method::POST, path).json(body)).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        said(self.request(Method::GET, path)).await
    }

    pub(crate) async fn start(&self, prompt: &str) {
        let (status, said) = self.post("/api/runs", &json!({"prompt": prompt})).await;
        assert_eq!(status, 201, "{said}");
    }

    /// The only pending ask.
    async fn ask(&self) -> Value {
        self.get("/api/asks").await.1["asks"][0].clone()
    }
}

async fn said(request: RequestBuilder) -> (u16, Value) {
    let reply = request.send().await.unwrap();
    let status = reply.status().as_u16();
    let text = reply.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}")))
}

/// A server with one ask, and a client that may decide it.
async fn one_ask(place: &Place) -> (crate::service::Process, Client, Value) {
    let server = place.server(&[]);
    let ann = Client::of(&server.url, "ann").await;
    ann.start(r#"delete_file {"path": "a.log"}"#).await;
    let ask = ann.ask().await;
    (server, ann, ask)
}

fn path(ask: &Value) -> String {
    format!("/api/asks/{}/decision", ask["id"].as_str().unwrap())
}

fn yes(ask: &Value) -> Value {
    json!({"verdict": "approve", "fingerprint": ask["fingerprint"]})
}

async fn still_waits(place: &Place) {
    let ask = place.ask("path", "a.log").await;
    assert_eq!((ask.state, ask.votes.len(), place.ran().len()), (AskState::Pending, 0, 0));
}

#[tokio::test]
async fn other_sites_cannot_decide() {
    let place = Place::sqlite().await;
    let (server, ann, ask) = one_ask(&place).await;
    let decide = || ann.request(Method::POST, &path(&ask));
    let port = server.port();
    let own = format!("http://127.0.0.1:{port}");

    let elsewhere = ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", ""];
    for origin in elsewhere.into_iter().chain([&*format!("{own}.evil.example")]) {
        let (status, said) = said(decide().header(ORIGIN, origin).json(&yes(&ask))).await;
        assert_eq!((status, &said["error"]), (403, &json!("wrong_origin")), "{origin}");
    }
    for site in ["cross-site", "same-site", "none"] {
        let (status, said) = said(decide().header("sec-fetch-site", site).json(&yes(&ask))).await;
        assert_eq!((status, &said["error"]), (403, &json!("wrong_origin")), "{site}");
    }
    // The name of another host that points here.
    let other = format!("127.0.0.2:{port}");
    for host in ["evil.example", "127.0.0.1", "", &*format!("evil.example:{port}"), &*other] {
        for method in [Method::GET, Method::POST] {
            let request = ann.request(method, "/api/asks").header(HOST, host);
            let (status, said) = said(request.json(&json!({}))).await;
            assert_eq!((status, &said["error"]), (403, &json!("wrong_host")), "{host}");
        }
    }
    // The content types that a form can send without a preflight request.
    let form = [
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
        "",
        "application/jsonx",
    ];
    for kind in form {
        let request = decide().header(CONTENT_TYPE, kind).body(yes(&ask).to_string());
        let (status, said) = said(request).await;
        assert_eq!((status, &said["error"]), (415, &json!("not_json")), "{kind}");
    }
    let (status, _) = said(decide().body(yes(&ask).to_string())).await;
    assert_eq!(status, 415, "no type at all");
    // A preflight request of another site is not allowed.
    let preflight =
        ann.request(Method::OPTIONS, &path(&ask)).header(ORIGIN, "https://evil.example");
    let preflight = preflight.header("access-control-request-method", "POST").send().await.unwrap();
    assert!(!preflight.status().is_success());
    assert!(preflight.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
    still_waits(&place).await;

    let (status, won) = said(decide().header(ORIGIN, &own).json(&yes(&ask))).await;
    assert_eq!((status, &won["result"]), (200, &json!("won")), "and its own page can");
}

#[tokio::test]
async fn changes_need_a_post_and_a_name() {
    let place = Place::sqlite().await;
    let (server, ann, ask) = one_ask(&place).await;
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::PATCH] {
        for path in [&*path(&ask), "/api/runs", "/api/login"] {
            let reply = ann.request(method.clone(), path).json(&yes(&ask)).send().await.unwrap();
            assert_eq!(reply.status(), 405, "{method} {path}");
            assert!(reply.headers().get("set-cookie").is_none());
        }
    }
    let id = ask["id"].as_str().unwrap();
    for path in [
        "/",
        "/?as=bob",
        "/api/asks",
        &*format!("/api/asks/{id}?verdict=approve"),
        "/api/history",
        "/healthz",
    ] {
        assert_eq!(ann.request(Method::GET, path).send().await.unwrap().status(), 200, "{path}");
    }
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let anonymous = Client { http, url: server.url.clone(), cookie: String::new() };
    for cookie in [
        "",
        "approvals_demo_name=",
        "approvals_demo_name=a b",
        "approvals_demo_name=../x",
        "name=ann",
    ] {
        let anonymous = Client {
            http: anonymous.http.clone(),
            url: anonymous.url.clone(),
            cookie: cookie.into(),
        };
        for (status, said) in [
            anonymous.post(&path(&ask), &yes(&ask)).await,
            anonymous.post("/api/runs", &json!({})).await,
            anonymous.get("/api/asks").await,
            anonymous.get("/api/history").await,
            anonymous.get("/api/changes").await,
            anonymous.get(&format!("/api/asks/{id}")).await,
        ] {
            assert_eq!((status, &said["error"]), (401, &json!("unauthenticated")), "{cookie}");
        }
    }
    assert_eq!(anonymous.get("/api/me").await.1["name"], Value::Null);
    still_waits(&place).await;
}

#[tokio::test]
async fn every_refusal_has_a_status_and_a_word() {
    let place = Place::sqlite().await;
    let (_server, ann, ask) = one_ask(&place).await;
    let (at, fingerprint) = (path(&ask), &ask["fingerprint"]);
    let send = |body: &str| {
        let body = body.to_owned();
        said(ann.request(Method::POST, &at).header(CONTENT_TYPE, "application/json").body(body))
    };
    let refused =
        |(status, said): (u16, Value)| (status, said["error"].as_str().unwrap().to_owned());
    let is = |status, word: &str| (status, word.to_owned());
    assert_eq!(refused(send("{").await), is(400, "bad_json"));
    assert_eq!(refused(send("").await), is(400, "bad_json"));
    for body in [
        json!([]),
        json!({"verdict": "approve"}),
        json!({"verdict": "perhaps", "fingerprint": fingerprint}),
        json!({"verdict": "deny", "fingerprint": fingerprint}),
        json!({"verdict": "deny", "fingerprint": fingerprint, "message": 1}),
        json!({"verdict": "approve", "fingerprint": fingerprint, "args": {"path": "b"}}),
        json!({"verdict": "approve", "fingerprint": fingerprint, "as": "bob"}),
    ] {
        assert_eq!(refused(send(&body.to_string()).await), is(422, "bad_request"), "{body}");
    }
    for args in
        ["{", "[]", "1", r#"{"path": 1}"#, r#"{"paths": "a"}"#, r#"{"path": "a", "path": "b"}"#, ""]
    {
        let body = json!({"verdict": "approve", "fingerprint": fingerprint, "args": args});
        assert_eq!(refused(send(&body.to_string()).await), is(422, "bad_args"), "{args}");
    }
    let body = json!({"verdict": "approve", "fingerprint": "0".repeat(64)});
    assert_eq!(refused(send(&body.to_string()).await), is(422, "mismatch"));
    let long = "x".repeat(1_100_000);
    let body = json!({"verdict": "deny", "fingerprint": fingerprint, "message": long});
    assert_eq!(refused(send(&body.to_string()).await), is(413, "too_large"));
    for id in [&*"0".repeat(32), "x", "%00", "%27%20OR%201=1--", "..%2f..", "é"] {
        assert_eq!(
            refused(ann.get(&format!("/api/asks/{id}")).await),
            is(404, "unknown_ask"),
            "{id}"
        );
        let decided = ann.post(&format!("/api/asks/{id}/decision"), &yes(&ask)).await;
        assert_eq!(refused(decided), is(404, "unknown_ask"), "{id}");
    }
    assert_eq!(refused(ann.get("/nothing").await), is(404, "not_found"));
    assert_eq!(refused(ann.post("/api/runs", &json!({"prompt": ""})).await), is(422, "bad_prompt"));
    assert_eq!(refused(ann.post("/api/login", &json!({"name": "a b"})).await), is(422, "bad_name"));
    let body = json!({"verdict": "approve", "fingerprint": fingerprint, "by": "bob"});
    assert_eq!(refused(send(&body.to_string()).await), is(403, "wrong_person"));
    still_waits(&place).await;

    let no = json!({"verdict": "deny", "fingerprint": fingerprint, "message": "no"});
    let bob = Client::of(&ann.url, "bob").await;
    assert_eq!(bob.post(&at, &no).await.1["result"], "won");
    assert_eq!(bob.post(&at, &no).await.1["again"], true, "a repeated decision is no error");
    let (status, lost) = ann.post(&at, &yes(&ask)).await;
    assert_eq!((status, &lost["error"]), (409, &json!("already_decided")));
    assert_eq!(lost["message"], "Already decided by bob: denied.");
    assert_eq!(
        (&lost["winner"]["by"], &lost["winner"]["message"]),
        (&json!(["bob"]), &json!("no"))
    );
    ann.start(r#"delete_file {"path": "b.log"}"#).await;
    let ask = ann.ask().await;
    place.ledger().cancel(ask["id"].as_str().unwrap(), "carol").await.unwrap();
    assert_eq!(refused(ann.post(&path(&ask), &yes(&ask)).await), is(410, "cancelled"));
    assert!(place.ran().is_empty());
}

#[tokio::test]
async fn the_requester_of_a_transfer_may_not_approve_it() {
    let place = Place::sqlite().await;
    let server = place.server(&[]);
    let ann = Client::of(&server.url, "ann").await;
    ann.start(r#"transfer {"amount_eur": 1, "to": "DE02"}"#).await;
    let ask = ann.ask().await;
    assert_eq!((&ask["quorum"]["may_approve"], &ask["wanted_by"]), (&json!(false), &json!("ann")));
    let (status, said) = ann.post(&path(&ask), &yes(&ask)).await;
    assert_eq!((status, &said["error"]), (403, &json!("not_allowed")));
    let bob = Client::of(&server.url, "bob").await;
    assert_eq!(bob.post(&path(&ask), &yes(&ask)).await.1["approvals"], 1);
    assert_eq!(bob.post(&path(&ask), &yes(&ask)).await.1["again"], true, "no person counts twice");
    assert_eq!(place.ask("to", "DE02").await.state, AskState::Pending);
}

#[tokio::test]
async fn spellings_of_a_name_are_one_person_and_aged_votes_are_hidden() {
    // L1: "People are compared by a canonical form of their names"; A8: "A vote that is too old does not count".
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let two = Quorum { approvals: 2, not_the_requester: true };
    let voted = async |run: &str, valid_for: Duration| {
        let ask = Ask::new(run, "root/c1", "transfer").with_principal("Ann").with_quorum(two);
        let ask = place.ledger().park(ask.with_valid_for(valid_for)).await.unwrap();
        let yes = Answer::Approve { args: None };
        place.ledger().decide(ask.ask.id(), &ask.fingerprint, "bob", yes).await.unwrap();
        format!("/api/asks/{}", ask.ask.id())
    };
    let new = voted("new", PATIENCE).await;
    let old = voted("old", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;

    let (ann, bob) = (Client::of(&server.url, "ANN").await, Client::of(&server.url, "Bob").await);
    assert_eq!(ann.get(&new).await.1["quorum"]["may_approve"], false, "ANN wants it");
    let seen = bob.get(&new).await.1;
    assert_eq!((&seen["quorum"]["voted"], &seen["proposals"][0]["own"]), (&TRUE, &TRUE), "{seen}");
    let seen = bob.get(&old).await.1;
    assert_eq!((&seen["quorum"]["voted"], &seen["proposals"]), (&json!(false), &json!([])));
    let body = json!({"verdict": "approve", "fingerprint": seen["fingerprint"], "by": "bob"});
    let (status, said) = bob.post(&format!("{old}/decision"), &body).await;
    assert_eq!((status, &said["approvals"], &said["again"]), (200, &json!(1), &json!(false)));
}

#[tokio::test]
async fn a_requester_has_one_share_under_every_spelling_of_the_name() {
    // S6: "of each requester ten entries come before any other's eleventh".
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let park = async |run: String, who: &str| {
        let ask = Ask::new(run, "root/c1", "delete_file").with_principal(who);
        place.ledger().park(ask).await.unwrap();
    };
    for n in 0..6 {
        for who in ["mallory", "Mallory", "MALLORY"] {
            park(format!("{n} of {who}"), who).await;
        }
    }
    park("of ann".into(), "ann").await;
    let asks = Client::of(&server.url, "ann").await.get("/api/asks").await.1["asks"].clone();
    let at = asks.as_array().unwrap().iter().position(|ask| ask["wanted_by"] == "ann");
    assert_eq!(at, Some(10), "{asks}");
}

async fn sql_is_text(place: Place) {
    const SQL: &str = "'; DROP TABLE countersign_rows; --\" OR 1=1 \u{0}\\";
    let server = place.server(&[]);
    let ann = Client::of(&server.url, "ann").await;
    ann.start(&format!("delete_file {}", json!({"path": SQL}))).await;
    let ask = ann.ask().await;
    for (path, body) in [
        (path(&ask), json!({"verdict": "approve", "fingerprint": SQL})),
        (format!("/api/asks/{}/decision", SQL.len()), yes(&ask)),
        ("/api/login".to_owned(), json!({"name": SQL})),
        ("/api/runs".to_owned(), json!({"prompt": SQL})),
    ] {
        let (status, said) = ann.post(&path, &body).await;
        assert!((400..500).contains(&status), "{path}: {status} {said}");
    }
    let edit = json!({"path": format!("{SQL}2")}).to_string();
    let edit = json!({"verdict": "approve", "fingerprint": ask["fingerprint"], "args": edit});
    assert_eq!(ann.post(&path(&ask), &edit).await.1["result"], "won");
    place.until(ask["id"].as_str().unwrap(), AskState::Executed).await;
    assert_eq!(place.times("path", &format!("{SQL}2")), 1);
    ann.start(&format!("delete_file {}", json!({"path": "b"}))).await;
    let ask = ann.ask().await;
    let no = json!({"verdict": "deny", "fingerprint": ask["fingerprint"], "message": SQL});
    assert_eq!(ann.post(&path(&ask), &no).await.1["result"], "won");
    let said = place.over(&[ask["run"].as_str().unwrap().to_owned()]).await;
    assert_eq!(said, [format!("delete_file: {SQL}")]);
    assert_eq!(place.asks().await.len(), 2, "and the tables are still there");
}

#[tokio::test]
async fn sql_in_any_field_is_text_over_sqlite() {
    sql_is_text(Place::sqlite().await).await;
}

#[tokio::test]
async fn sql_in_any_field_is_text_over_postgres() {
    sql_is_text(Place::postgres().await).await;
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline() {
    let place = Place::sqlite().await;
    let (server, ann, _) = one_ask(&place).await;
    let page = ann.request(Method::GET, "/").send().await.unwrap().text().await.unwrap();
    let files = page.split(['"', '\'']).filter(|it| it.starts_with("/files/"));
    let files: Vec<_> = files.map(str::to_owned).collect();
    assert!(files.len() >= 4, "{files:?}");
    let other = ["/", "/api/asks", "/nothing", "/files/0000/page.js", "/demo", "/login"];
    for path in files.iter().map(String::as_str).chain(other) {
        let reply = ann.request(Method::GET, path).send().await.unwrap();
        if ["/demo", "/login"].contains(&path) {
            let policy = reply.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'; "), "{path}: {policy}");
            continue;
        }
        let header = |name: &str| reply.headers()[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; "), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        // A file has its version in its address, and may be kept.
        let kept = header("cache-control").contains("immutable");
        assert_eq!(kept, files.iter().any(|file| file == path), "{path}");
        let text = reply.text().await.unwrap().replace("http://www.w3.org/2000/svg", "");
        for word in
            ["http://", "https://", "innerHTML", "eval(", "onclick=", "style=\"", "document.write"]
        {
            assert!(!text.contains(word), "{path} has `{word}`");
        }
    }
    assert!(server.url.starts_with("http://127.0.0.1:"), "this machine only");
}

#[tokio::test]
async fn the_demo_login_serves_this_machine_only() {
    // D5: "What weakens a decision is called `danger_…`."
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let (status, said) = Place::refuses(&["--listen", address]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("--danger-anyone-may-log-in"), "{said}");
    }
    let place = Place::sqlite().await;
    let server = place.server_at(0, &["--allow-host", "Inbox.Example"]);
    let ann = Client::of(&server.url, "ann").await;
    for (host, status) in
        [("inbox.example", 200), ("INBOX.example", 200), ("inbox.example.evil", 403)]
    {
        let reply = ann.request(Method::GET, "/api/asks").header(HOST, host).send().await.unwrap();
        assert_eq!(reply.status(), status, "{host}");
    }
    // S2: a store that cannot be used is not printed with its password.
    let (status, said) = Place::refuses(&["--store", "mysql://ann:secret@db/x"]);
    assert_eq!(status, Some(1));
    assert!(said.contains("is no store") && !said.contains("secret"), "{said}");
}

/// Connections that are opened and send no whole request: nothing, half of a head, or a head without its body.
pub(crate) async fn half_open(url: &str, many: usize) -> Vec<TcpStream> {
    let address = url.strip_prefix("http://").unwrap();
    let sent = [
        String::new(),
        format!("GET / HTTP/1.1\r\nHost: {address}\r\n"),
        format!(
            "POST /api/login HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
        ),
    ];
    let mut open = Vec::new();
    for sent in sent.iter().cycle().take(many) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        open.push(stream);
    }
    open
}

/// Waits until the server has closed all of them.
pub(crate) async fn closed(open: Vec<TcpStream>) {
    for mut stream in open {
        // A connection that is reset is closed, too.
        let mut said = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut said));
        let _ = read.await.expect("the server closes it");
    }
}

#[tokio::test]
async fn connections_without_a_request_are_closed_and_keep_no_client_out() {
    let place = Place::sqlite().await;
    let server = place.server(&["--max-connections", "8", "--header-timeout-s", "1"]);
    let open = half_open(&server.url, 30).await;
    // As many as that are open, and more wait: a page gets its answer all the same.
    let ann = Client::of(&server.url, "ann").await;
    assert_eq!(ann.request(Method::GET, "/api/alive").send().await.unwrap().status(), 204);
    closed(open).await;
    for args in [["--max-connections", "0"], ["--header-timeout-s", "0"]] {
        assert_eq!(Place::refuses(&args).0, Some(2), "{args:?}");
    }
}

#[tokio::test]
async fn the_list_is_paged_by_deadline_with_a_share_for_each_requester() {
    // S6: "every ask reachable; oldest or soonest deadline first; equal calls grouped; a per-requester share".
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let (ann, mallory) =
        (Client::of(&server.url, "ann").await, Client::of(&server.url, "mallory").await);
    let flood: Vec<_> = (0..25).map(|n| format!(r#"delete_file {{"path": "{n:02}"}}"#)).collect();
    mallory.start(&flood.join("\n")).await;
    ann.start("send_report {\"to\": \"a\"}\nsend_report {\"to\": \"a\"}").await;
    let latest = ann.get("/api/asks").await.1["latest"].clone();
    tokio::time::sleep(Duration::from_millis(5)).await;
    ann.start(r#"restart_server {"host": "db"}"#).await;

    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let (status, page) = ann.get(&format!("/api/asks?limit=4&since={latest}{next}")).await;
        assert_eq!((status, &page["total"], &page["newer"]), (200, &json!(28), &json!(1)));
        let asks = page["asks"].as_array().unwrap();
        assert!((1..=4).contains(&asks.len()));
        seen.extend(asks.clone());
        let Some(after) = page["next"].as_str() else { break };
        next = format!("&after={after}");
    }
    let of =
        |ask: &Value| (ask["wanted_by"].as_str().unwrap().to_owned(), ask["view"]["tool"].clone());
    let first: Vec<_> = seen.iter().take(12).map(of).collect();
    assert_eq!(first[0], ("ann".to_owned(), json!("restart_server")), "it has a deadline");
    assert_eq!(first[11], ("ann".to_owned(), json!("send_report")), "behind ten of mallory's");
    assert_eq!(seen[11]["same"].as_array().unwrap().len(), 1, "equal calls are one entry");
    let mut ids: Vec<_> = seen.iter().map(|ask| ask["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((seen.len(), ids.len()), (27, 27), "each is there once");

    for wrong in ["limit=x", "after=x", "after=1.2", "offset=3", "limit=1&limit=2"] {
        let (status, refused) = ann.get(&format!("/api/asks?{wrong}")).await;
        assert_eq!((status, &refused["error"]), (422, &json!("bad_request")), "{wrong}");
    }
}

#[tokio::test]
async fn a_page_of_another_version_decides_nothing() {
    let place = Place::sqlite().await;
    let (_server, ann, ask) = one_ask(&place).await;
    for path in [path(&ask), "/api/decisions".to_owned(), "/api/states".to_owned()] {
        let request =
            ann.request(Method::POST, &path).header("countersign-page", "0123456789abcdef");
        let (status, refused) = said(request.json(&yes(&ask))).await;
        assert_eq!((status, &refused["error"]), (412, &json!("other_version")), "{path}");
    }
    still_waits(&place).await;
    let version = ann.get("/api/me").await.1["version"].as_str().unwrap().to_owned();
    let request = ann.request(Method::POST, &path(&ask)).header("countersign-page", version);
    assert_eq!(said(request.json(&yes(&ask))).await.1["result"], "won");
}

#[tokio::test]
async fn many_are_decided_at_once_each_by_its_own_fingerprint() {
    // S6: "select and decide many, each bound to its own fingerprint".
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let ann = Client::of(&server.url, "ann").await;
    let calls: Vec<_> = (0..5).map(|n| format!(r#"delete_file {{"path": "{n}"}}"#)).collect();
    ann.start(&calls.join("\n")).await;
    let asks = ann.get("/api/asks").await.1["asks"].as_array().unwrap().clone();
    let (first, second, third) = (&asks[0], &asks[1], &asks[2]);
    let about = |ask: &Value, more: Value| {
        let mut about = json!({"id": ask["id"], "fingerprint": ask["fingerprint"]});
        about.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        about
    };
    let decisions = json!({"decisions": [
        about(first, json!({"verdict": "approve"})),
        about(second, json!({"verdict": "approve", "fingerprint": first["fingerprint"]})),
        about(third, json!({"verdict": "deny", "message": "no"})),
        about(third, json!({"verdict": "approve"})),
        {"id": "0".repeat(32), "fingerprint": "x", "verdict": "approve"},
    ]});
    let (status, said) = ann.post("/api/decisions", &decisions).await;
    assert_eq!(status, 200, "{said}");
    let results = said["results"].as_array().unwrap();
    let word = |n: usize| results[n]["result"].as_str().or(results[n]["error"].as_str()).unwrap();
    let words: Vec<_> = (0..5).map(word).collect();
    assert_eq!(words, ["won", "mismatch", "won", "already_decided", "unknown_ask"]);
    assert_eq!(ann.get("/api/asks").await.1["total"], 3, "the others are still pending");
    let too_many: Vec<_> = (0..501).map(|_| about(second, json!({"verdict": "approve"}))).collect();
    assert_eq!(ann.post("/api/decisions", &json!({"decisions": too_many})).await.0, 422);
}

#[tokio::test]
async fn the_list_is_searched_filtered_and_ordered_by_the_server() {
    // S6: "search; filter by agent, tool, run, requester".
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let (ann, bob) = (Client::of(&server.url, "ann").await, Client::of(&server.url, "bob").await);
    ann.start("delete_file {\"path\": \"Invoices/a.pdf\"}\nsend_report {\"to\": \"x\"}").await;
    bob.start("cleaner {\"prompt\": \"delete_file {\\\"path\\\": \\\"tmp/b\\\"}\"}\nsend_report {\"to\": \"y\"}").await;
    let find = async |query: &str| {
        let (status, list) = ann.get(&format!("/api/asks?{query}")).await;
        assert_eq!((status, &list["total"]), (200, &json!(4)), "{query}: {list}");
        let asks = list["asks"].as_array().unwrap().clone();
        assert_eq!(list["matches"], asks.len(), "{query}");
        asks.iter()
            .map(|ask| ask["view"]["headline"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(find("q=invoices+delete").await.len(), 1, "words, in any case and order");
    assert_eq!(find("q=invoices+tmp").await.len(), 0);
    assert_eq!(find("tool=send_report").await.len(), 2);
    assert_eq!(find("requester=BOB").await.len(), 2);
    assert_eq!(find("agent=root/cleaner").await.len(), 1);
    assert_eq!(find("tool=send_report&requester=bob").await.len(), 1);
    let oldest = find("sort=oldest").await;
    let newest = find("sort=newest").await;
    assert_eq!(
        (oldest[0].contains("Invoices") || oldest[0].contains("\"x\""), newest.len()),
        (true, 4)
    );
    let runs: Vec<_> = ann.get("/api/asks?group=run&sort=newest").await.1["asks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ask| ask["run"].clone())
        .collect();
    assert_eq!(runs[2], runs[3], "the calls of ann's run stand together: {runs:?}");
    let filters = ann.get("/api/asks").await.1["filters"].clone();
    assert_eq!(filters["tool"]["values"].as_array().unwrap().len(), 2);
    assert_eq!(ann.get("/api/asks?sort=random").await.0, 422);
    assert_eq!(ann.get(&format!("/api/asks?q={}", "x".repeat(600))).await.0, 422);
}

#[tokio::test]
async fn the_past_can_be_read_with_its_run_its_numbers_and_its_log() {
    // S9: "History by date with search, filter, who, why, link to the run and its conversation; verify and export".
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let (ann, bob) = (Client::of(&server.url, "ann").await, Client::of(&server.url, "bob").await);
    ann.start(
        "delete_file {\"path\": \"a\"}\ndelete_file {\"path\": \"b\"}\nsend_report {\"to\": \"x\"}",
    )
    .await;
    let asks = ann.get("/api/asks").await.1["asks"].as_array().unwrap().clone();
    assert_eq!(bob.post(&path(&asks[0]), &yes(&asks[0])).await.0, 200);
    let no = json!({"verdict": "deny", "fingerprint": asks[1]["fingerprint"], "message": "<b>not</b> today"});
    assert_eq!(ann.post(&path(&asks[1]), &no).await.0, 200);
    let found = async |query: &str| {
        let (status, list) = ann.get(&format!("/api/history?{query}")).await;
        assert_eq!(status, 200, "{query}: {list}");
        list["asks"].as_array().unwrap().len()
    };
    assert_eq!((found("").await, found("who=BOB").await, found("answer=deny").await), (2, 1, 1));
    assert_eq!(
        (found("q=today").await, found("q=yesterday").await, found("to=1").await),
        (1, 0, 0)
    );
    assert_eq!((found("from=1").await, found("limit=1").await), (2, 1));
    let first = ann.get("/api/history?limit=1").await.1;
    let rest = format!("limit=5&after={}", first["next"].as_str().unwrap());
    assert_eq!(found(&rest).await, 1);
    assert_eq!(first["asks"][0]["view"]["questions"][0]["asked_by"], "Policy", "why it was asked");

    let run = asks[0]["run"].as_str().unwrap();
    let told = ann.get(&format!("/api/runs/{run}")).await.1;
    let parts = told["conversation"]["parts"].as_array().unwrap();
    assert_eq!(
        (parts[0]["from"].as_str(), told["asks"].as_array().unwrap().len()),
        (Some("user"), 3)
    );
    assert!(parts.iter().any(|part| part["from"] == "call"), "{told}");
    assert_eq!(ann.get("/api/runs/unknown").await.1["error"], "unknown_run");

    let numbers = ann.get("/api/numbers").await.1;
    assert_eq!(
        (&numbers["waiting"], &numbers["decided"], &numbers["denied_per_mille"]),
        (&json!(1), &json!(2), &json!(500))
    );
    assert!(numbers["p95_ms"].as_i64() >= numbers["p50_ms"].as_i64(), "{numbers}");

    let (status, verified) = ann.post("/api/verify", &json!({})).await;
    assert_eq!((status, &verified["ok"]), (200, &TRUE), "{verified}");
    let log = ann.request(Method::GET, "/api/export").send().await.unwrap().text().await.unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as u64 - 1, verified["entries"].as_u64().unwrap());
    assert_eq!(lines.last().unwrap()["end"], true, "an export says that it is whole");
}

/// L8: "A row that was changed or removed outside of the ledger is refused", and the others can be decided.
#[tokio::test(flavor = "multi_thread")]
async fn an_ask_that_was_changed_in_the_store_is_shown_as_undecidable() {
    let place = Place::sqlite().await;
    let (_server, ann, ask) = one_ask(&place).await;
    let id = ask["id"].as_str().unwrap();
    place.sql(&format!(
        "UPDATE countersign_rows SET doc = replace(doc, 'a.log', 'b.log') WHERE id = '{id}'"
    ));
    ann.start(r#"delete_file {"path": "c.log"}"#).await;
    let (status, list) = ann.get("/api/asks").await;
    assert_eq!((status, list["total"].as_u64()), (200, Some(1)), "{list}");
    assert_eq!(list["refused"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["refused"][0]["id"], id);
    let why = list["refused"][0]["why"].as_str().unwrap();
    assert!(why.contains("changed outside of the ledger"), "{why}");
    let yes = |ask: &Value| json!({"verdict": "approve", "fingerprint": ask["fingerprint"]});
    let (status, said) = ann.post(&path(&ask), &yes(&ask)).await;
    assert_eq!((status, said["error"].as_str()), (500, Some("changed")), "{said}");
    assert_eq!(ann.get("/healthz").await.0, 200);
    assert_eq!(ann.get("/api/history").await.0, 200);

    let other = &list["asks"][0];
    let (status, said) = ann.post(&path(other), &yes(other)).await;
    assert_eq!(status, 200, "{said}");
    place.until(other["id"].as_str().unwrap(), AskState::Executed).await;
    assert_eq!(place.times("path", "c.log"), 1, "its worker continues");
    assert!(place.ran().iter().all(|ran| ran["args"]["path"] == "c.log"), "nothing else runs");
}
