//! `countersign inbox`: the page over a store, behind a secret that is in no address but the one that logs a browser in.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use super::User;

/// Headers of a request.
type Headers<'a> = &'a [(&'a str, &'a str)];

/// A process of the inbox, and the address that it has printed.
pub(super) struct Served {
    process: Child,
    pub(super) url: String,
}

impl Served {
    pub(super) fn start(user: &User) -> Self {
        Self::with(user, &[])
    }

    fn with(user: &User, more: &[&str]) -> Self {
        let mut command = user.command(&[&["inbox", "--principal", "ann"], more].concat());
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, url: line.trim().to_owned() }
    }

    /// The address on this machine of an inbox with `--listen 127.0.0.1:0`, whatever address it has printed.
    fn local(&self) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/net/tcp", self.process.id()));
        let inodes = std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap();
        let links = inodes.filter_map(|it| std::fs::read_link(it.unwrap().path()).ok());
        let sockets: Vec<_> = links.map(|it| it.display().to_string()).collect();
        let text = text.unwrap();
        let listens = |line: &&str| {
            let parts: Vec<_> = line.split_whitespace().collect();
            parts.get(3) == Some(&"0A")
                && sockets.contains(&format!("socket:[{}]", parts.get(9).unwrap_or(&"")))
        };
        let line = text.lines().find(listens).expect("it listens");
        let port = line.split_whitespace().nth(1).unwrap().rsplit_once(':').unwrap().1;
        format!("http://127.0.0.1:{}", u16::from_str_radix(port, 16).unwrap())
    }

    /// A browser that has exchanged the secret.
    pub(super) async fn client(&self, user: &User) -> Client {
        Session::open(&self.url, &secret(user)).await.client()
    }

    /// Ends the process, and returns what it has written to stderr.
    fn end(mut self) -> String {
        drop(self.process.kill());
        drop(self.process.wait());
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A free port, held by a socket that does not listen. While it is held, no other socket is given the port, and an inbox that
/// asks for it by its number gets it: also the second one, some time after the first one has ended.
struct Reserved {
    _socket: tokio::net::TcpSocket,
    address: String,
}

impl Reserved {
    fn new() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        Self { _socket: socket, address }
    }
}

/// The secret, as the user can read it.
fn secret(user: &User) -> String {
    std::fs::read_to_string(user.state("inbox.secret")).unwrap().trim().to_owned()
}

/// Sends a secret as the page does.
fn exchange(url: &str, secret: &str) -> RequestBuilder {
    Client::new().post(format!("{url}api/session")).json(&json!({"secret": secret}))
}

/// Both halves of a session.
struct Session {
    set: String,
    cookie: String,
    token: String,
}

impl Session {
    async fn open(url: &str, secret: &str) -> Self {
        Self::of(exchange(url, secret).send().await.unwrap()).await
    }

    async fn of(reply: Response) -> Self {
        assert_eq!(reply.status(), 200);
        let set = reply.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        let cookie = set.split(';').next().unwrap().to_owned();
        let body: Value = reply.json().await.unwrap();
        assert_eq!(body["name"], "ann");
        Self { set, cookie, token: body["session"].as_str().unwrap().to_owned() }
    }

    fn client(&self) -> Client {
        with(&[("cookie", &self.cookie), ("countersign-session", &self.token)])
    }
}

/// A client with these headers.
fn with(headers: &[(&str, &str)]) -> Client {
    let header = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    let headers: HeaderMap = headers.iter().map(header).collect();
    Client::builder().default_headers(headers).build().unwrap()
}

fn park(user: &User, tool: &str) -> Value {
    use std::io::Write as _;
    let mut command = user.command(&["asks", "park"]);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let ask = json!({"tool": tool, "args": {"path": "a.log"}, "questions": ["deletes"]});
    process.stdin.take().unwrap().write_all(ask.to_string().as_bytes()).unwrap();
    super::ended(&process.wait_with_output().unwrap()).lines().remove(0)
}

pub(super) async fn text(client: &Client, url: &str) -> (u16, String) {
    let reply = client.get(url).send().await.unwrap();
    (reply.status().as_u16(), reply.text().await.unwrap())
}

#[tokio::test]
async fn the_printed_address_is_that_of_a_page_with_all_its_files_and_shows_nothing_without_the_secret()
 {
    let user = User::new();
    park(&user, "delete_file");
    let served = Served::start(&user);
    let client = Client::new();
    let (status, page) = text(&client, &served.url).await;
    assert_eq!(status, 200, "{page}");
    let files: Vec<_> = page.split(['"']).filter(|part| part.contains("/files/")).collect();
    assert!(files.len() >= 3, "a page with a style and scripts: {page}");
    for file in files {
        let (status, _) = text(&client, &format!("{}{}", served.url, &file[1..])).await;
        assert_eq!(status, 200, "{file}");
    }
    for path in ["asks", "history", "numbers", "changes", "export", "asks/x", "runs/x"] {
        let (status, told) = text(&client, &format!("{}api/{path}", served.url)).await;
        assert_eq!(status, 401, "{path}");
        assert!(told.contains("not logged in") && !told.contains("delete_file"), "{told}");
    }
}

#[tokio::test]
async fn a_decision_on_the_page_is_in_the_store() {
    let user = User::new();
    let ask = park(&user, "delete_file");
    let served = Served::start(&user);
    let client = served.client(&user).await;
    let (status, listed) = text(&client, &format!("{}api/asks", served.url)).await;
    assert!(status == 200 && listed.contains("delete_file"), "{listed}");
    let id = ask["id"].as_str().unwrap();
    let decide = format!("{}api/asks/{id}/decision", served.url);
    let decision = json!({"verdict": "approve", "fingerprint": ask["fingerprint"]});
    let reply = client.post(&decide).json(&decision).send().await.unwrap();
    assert_eq!(reply.status().as_u16(), 200, "{}", reply.text().await.unwrap());
    let shown = user.run(&["asks", "show", id]).lines().remove(0);
    assert_eq!((&shown["state"], &shown["decided_by"]), (&json!("decided"), &json!("ann")));
}

/// S14: "The secret is in a private file, and in no argument, output but the terminal's, request line or log."
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_secret_is_in_a_private_file_and_nowhere_else() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    let served = Served::with(&user, &["--json"]);
    let secret = secret(&user);
    assert_eq!(secret.len(), 64);
    let mode = std::fs::metadata(user.state("inbox.secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let line: Value = serde_json::from_str(&served.url).unwrap();
    let url = line["url"].as_str().unwrap().to_owned();
    drop(Session::open(&url, &secret).await);
    assert_eq!(
        exchange(&url, "0123456789abcdef0123456789abcdef").send().await.unwrap().status(),
        401
    );
    let process = format!("/proc/{}", served.process.id());
    for place in ["cmdline", "environ"] {
        let text = std::fs::read(format!("{process}/{place}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(&secret), "{place}");
    }
    assert!(!served.url.contains(&secret));
    let noted = std::fs::read_to_string(user.state("inbox.url")).unwrap();
    assert_eq!(noted.trim(), url, "a guard and a hook find the address, without the secret");
    assert!(!served.end().contains(&secret));

    // A file that others can read is a secret no more.
    std::fs::set_permissions(user.state("inbox.secret"), PermissionsExt::from_mode(0o644)).unwrap();
    let refused = user.run(&["inbox"]);
    assert!(
        refused.status == 2 && refused.err.contains("others can read this secret"),
        "{refused:?}"
    );
    assert!(!refused.err.contains(&secret));
}

/// S14: "shown once": a terminal sees it at the first start and after `--new-secret`.
#[cfg(unix)]
#[test]
fn a_terminal_is_shown_the_secret_once() {
    let user = User::new();
    let shown = |args: &[&str]| {
        let (mut terminal, pts) = pty_process::blocking::open().unwrap();
        terminal.resize(pty_process::Size::new(60, 400)).unwrap();
        let plain = user.command(args);
        let mut command = pty_process::blocking::Command::new(plain.get_program());
        command = command.args(args).env_clear().env("HOME", user.home()).current_dir(user.home());
        let mut process = command.spawn(pts).unwrap();
        let (mut text, mut part) = (String::new(), [0; 4096]);
        while !text.contains("Ctrl-C ends the inbox") {
            let read = terminal.read(&mut part).unwrap();
            text += &String::from_utf8_lossy(&part[..read]);
        }
        drop(process.kill());
        drop(process.wait());
        text
    };
    let first = shown(&["inbox"]);
    let old = secret(&user);
    assert!(first.contains(&format!("/#secret={old}")), "{first}");
    assert!(!first.contains('█'), "a phone cannot reach this address, so there is no code for it");
    let second = shown(&["inbox"]);
    assert!(!second.contains(&old) && second.contains("inbox.secret"), "{second}");
    let public = ["inbox", "--new-secret", "--public-url", "https://inbox.example/"];
    let third = shown(&public);
    let new = secret(&user);
    assert!(
        new != old && third.contains(&format!("https://inbox.example/#secret={new}")),
        "{third}"
    );
    assert!(third.contains('█') || third.contains('▀'), "a phone's camera reads it: {third}");
}

/// S14: "A session has two halves, and needs both."
#[tokio::test]
async fn a_stolen_address_or_cookie_opens_nothing() {
    let user = User::new();
    park(&user, "delete_file");
    let served = Served::start(&user);
    let secret = secret(&user);
    let session = Session::open(&served.url, &secret).await;
    let other = Session::open(&served.url, &secret).await;
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(session.set.contains(word), "{}", session.set);
    }
    assert!(!session.set.contains("Secure"), "the page is not behind TLS: {}", session.set);
    assert!(!session.set.contains(&secret) && !session.token.contains(&secret));
    let (cookie, token) = (session.cookie.as_str(), session.token.as_str());
    let (name, value) = cookie.split_once('=').unwrap();
    let (about, mac) = value.rsplit_once('.').unwrap();
    let (id, until) = about.split_once('.').unwrap();
    let longer = format!("{name}={id}.{}.{mac}", until.parse::<u64>().unwrap() + 1);
    let over = format!("{name}={id}.1.{mac}");
    let tossed = format!("{name}=of-another-port; {cookie}");
    let token_half = ("countersign-session", token);
    let tries: [(&str, Headers<'_>, u16); 8] = [
        ("both halves", &[("cookie", cookie), token_half], 200),
        ("a cookie of another port beside it", &[("cookie", &tossed), token_half], 200),
        ("the cookie alone, as a server at another port gets it", &[("cookie", cookie)], 401),
        ("the token alone, as a script could read it", &[token_half], 401),
        ("the token of another session", &[("cookie", &other.cookie), token_half], 401),
        ("a longer time", &[("cookie", &longer), token_half], 401),
        ("a time that is over", &[("cookie", &over), token_half], 401),
        ("the secret as a token", &[("cookie", cookie), ("countersign-session", &secret)], 401),
    ];
    for (about, headers, expected) in tries {
        let (status, _) = text(&with(headers), &format!("{}api/asks", served.url)).await;
        assert_eq!(status, expected, "{about}");
    }
    for path in [format!("{secret}/"), format!("?secret={secret}"), format!("{secret}/api/asks")] {
        let (_, told) = text(&Client::new(), &format!("{}{path}", served.url)).await;
        assert!(!told.contains("delete_file"), "the secret in a request line opens nothing");
    }
}

/// S14: "Only the page itself exchanges the secret."
#[tokio::test]
async fn a_page_of_another_origin_exchanges_nothing() {
    let user = User::new();
    let served = Served::start(&user);
    let secret = secret(&user);
    let port = served.url.trim_end_matches('/').rsplit_once(':').unwrap().1;
    let own = format!("http://127.0.0.1:{port}");
    let tries: [(Headers<'_>, u16, &str); 6] = [
        (&[("origin", &own), ("sec-fetch-site", "same-origin")], 200, ""),
        (&[("origin", "http://127.0.0.1:1")], 403, "wrong_origin"),
        (&[("origin", "https://evil.example")], 403, "wrong_origin"),
        (&[("sec-fetch-site", "same-site")], 403, "wrong_origin"),
        (&[("origin", "null")], 403, "wrong_origin"),
        (&[("host", "evil.example"), ("origin", "http://evil.example")], 403, "wrong_host"),
    ];
    for (headers, status, word) in tries {
        let reply = headers
            .iter()
            .fold(exchange(&served.url, &secret), |request, (name, value)| {
                request.header(*name, *value)
            })
            .send()
            .await
            .unwrap();
        assert_eq!(reply.status().as_u16(), status, "{headers:?}");
        assert_eq!(reply.headers().contains_key(SET_COOKIE), status == 200);
        assert!(reply.text().await.unwrap().contains(word));
    }
    // A form of another page.
    let form =
        Client::new().post(format!("{}api/session", served.url)).body(format!("secret={secret}"));
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(form.send().await.unwrap().status(), 415);
}

/// S14: "`inbox --new-secret` voids it and all sessions, also in inboxes that run."
#[tokio::test]
async fn a_new_secret_voids_the_old_one_and_all_sessions() {
    let user = User::new();
    let served = Served::start(&user);
    let old = secret(&user);
    let client = served.client(&user).await;
    let asks = format!("{}api/asks", served.url);
    assert_eq!(text(&client, &asks).await.0, 200);
    let mut stream = client.get(format!("{}api/changes", served.url)).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let second = Served::with(&user, &["--new-secret"]);
    let new = secret(&user);
    assert_ne!(old, new);
    assert_eq!(text(&client, &asks).await.0, 401, "of an inbox that has run all the time");
    park(&user, "push");
    let told = stream.chunk().await.unwrap();
    assert_eq!(told, None, "a stream that was open ends with the secret");
    let (_, me) = text(&client, &format!("{}api/me", served.url)).await;
    assert!(me.contains(r#""name":null"#) && me.contains(r#""secret":true"#), "{me}");
    for url in [&served.url, &second.url] {
        assert_eq!(exchange(url, &old).send().await.unwrap().status(), 401);
        drop(Session::open(url, &new).await);
    }
}

/// An inbox that was started again is at the same address, and knows its sessions.
#[tokio::test]
async fn a_restart_keeps_the_address_and_the_sessions() {
    let (user, port) = (User::new(), Reserved::new());
    let served = Served::with(&user, &["--listen", &port.address]);
    let (url, client) = (served.url.clone(), served.client(&user).await);
    drop(served);
    let again = Served::start(&user);
    assert_eq!(again.url, url);
    assert_eq!(text(&client, &format!("{url}api/asks")).await.0, 200);
    // A second inbox cannot have the port of the first, and says so.
    let beside = Served::start(&user);
    assert_ne!(beside.url, url);
    assert!(beside.end().contains("is in use"));
}

/// S14: "`--public-url` works behind a proxy", which keeps or replaces host and path.
#[tokio::test]
async fn a_page_behind_a_proxy_is_reached_by_its_public_address() {
    let user = User::new();
    let ask = park(&user, "delete_file");
    let public = "https://inbox.example/approvals/";
    let served = Served::with(&user, &["--listen", "127.0.0.1:0", "--public-url", public]);
    assert_eq!(served.url, public);
    let noted = std::fs::read_to_string(user.state("inbox.url")).unwrap();
    assert_eq!(noted.trim(), public);
    let local = served.local();
    let port = local.rsplit_once(':').unwrap().1;
    let secret = secret(&user);
    for (host, path) in [
        ("inbox.example".to_owned(), "/approvals/"),
        ("inbox.example".to_owned(), "/"),
        (format!("127.0.0.1:{port}"), "/approvals/"),
        (format!("127.0.0.1:{port}"), "/"),
    ] {
        let client = with(&[("host", &host)]);
        let base = format!("{local}{path}");
        let (status, page) = text(&client, &base).await;
        assert!(status == 200 && page.contains(r#"content="/approvals""#), "{host}{path}: {page}");
        let request = client.post(format!("{base}api/session")).json(&json!({"secret": secret}));
        let request = request.header("origin", "https://inbox.example");
        let session = Session::of(request.send().await.unwrap()).await;
        assert!(
            session.set.starts_with("__Secure-") && session.set.contains("; Secure"),
            "{}",
            session.set
        );
        assert!(session.set.contains("Path=/approvals/"), "{}", session.set);
        let decide = format!("{base}api/asks/{}/decision", ask["id"].as_str().unwrap());
        let wrong = json!({"verdict": "approve", "fingerprint": "of another call"});
        let decide = session.client().post(decide).json(&wrong).header("host", &host);
        let reply = decide.header("origin", "https://inbox.example").send().await.unwrap();
        assert_eq!(
            reply.status(),
            422,
            "the proxy is no reason to refuse: {}",
            reply.text().await.unwrap()
        );
    }
    let client = with(&[("host", "evil.example")]);
    assert_eq!(text(&client, &format!("{local}/")).await.0, 403);
    for wrong in [
        "inbox.example",
        "ftp://inbox.example/",
        "https://ann:pw@inbox.example/",
        "https://inbox.example/?secret=1",
    ] {
        let refused = user.run(&["inbox", "--public-url", wrong]);
        assert!(refused.status == 2 && refused.err.contains("public address"), "{refused:?}");
        assert!(!refused.err.contains("pw"), "{refused:?}");
    }
}

/// S14: "`[inbox.webhook]` in the form that … reads": the message names no argument and no secret, and leads to the ask.
#[tokio::test]
async fn a_webhook_of_the_configuration_is_told_and_links_to_the_ask() {
    let user = User::new();
    let target = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = target.local_addr().unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let app = axum::Router::new().fallback(async move |uri: axum::http::Uri, body: String| {
        let _ = tell.send((uri.to_string(), body));
    });
    tokio::spawn(async move { axum::serve(target, app).await });
    user.configure(&format!(
        "[inbox]\npublic_url = \"https://inbox.example/\"\n\n[inbox.webhook]\nurl = \"http://{at}/asks-of-ann\"\nform = \"ntfy\"\n"
    ));
    let _served = Served::with(&user, &["--listen", "127.0.0.1:0"]);
    let ask = park(&user, "delete_file");
    let id = ask["id"].as_str().unwrap();
    let (uri, body) = told.recv().await.expect("it is told");
    let message: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((uri.as_str(), message["topic"].as_str()), ("/", Some("asks-of-ann")));
    assert_eq!(message["click"], format!("https://inbox.example/#ask={id}"));
    assert!(message["message"].as_str().unwrap().contains("delete_file"), "{message}");
    assert!(!body.contains("a.log") && !body.contains(&secret(&user)), "{body}");
    for wrong in ["", "url = \"x\"", "url = \"http://a\"\nurl_file = \"b\"", "form = \"fax\""] {
        user.configure(&format!("[inbox.webhook]\n{wrong}\n"));
        let refused = user.run(&["inbox", "--listen", "127.0.0.1:0"]);
        let is_said = refused.err.contains("webhook") || refused.err.contains("`fax`");
        assert!(refused.status != 0 && is_said, "{wrong}: {refused:?}");
    }
}

/// The names by which other machines call this one are not known to it.
#[tokio::test]
async fn an_inbox_for_other_machines_answers_by_any_name() {
    let user = User::new();
    let served = Served::with(&user, &["--listen", "0.0.0.0:0", "--danger-unencrypted"]);
    let port = served.url.trim_end_matches('/').rsplit_once(':').unwrap().1.to_owned();
    let local = format!("http://127.0.0.1:{port}/");
    let secret = secret(&user);
    for host in ["127.0.0.1", "192.168.1.7", "my-laptop.local"] {
        let host = format!("{host}:{port}");
        let client = with(&[("host", &host)]);
        assert_eq!(text(&client, &local).await.0, 200, "{host}");
        let request = client.post(format!("{local}api/session")).json(&json!({"secret": secret}));
        let request = request.header("origin", format!("http://{host}"));
        drop(Session::of(request.send().await.unwrap()).await);
    }
}

// Rule S14: "A terminal is shown it once". A secret that is shown to no one would log everyone out.
#[tokio::test]
async fn a_new_secret_is_made_only_where_the_inbox_can_listen() {
    let user = User::new();
    let before = Served::start(&user);
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    let old = secret(&user);
    let ended = user.run(&["inbox", "--new-secret", "--listen", &address]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert_eq!(secret(&user), old, "the running inbox logs no one out");
    before.end();
}

// Rule S14: "A secret that is empty or short starts no inbox", as a file may be that was cut off on a full disk.
#[tokio::test]
async fn an_inbox_does_not_start_with_a_secret_that_can_be_guessed() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    drop(Served::start(&user));
    let file = user.state("inbox.secret");
    let write = |secret: &str| {
        std::fs::write(&file, secret).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    };
    let full = secret(&user);
    for short in ["", "\n", "   ", "hunter2", &full[..31]] {
        write(short);
        let ended = user.run(&["inbox", "--listen", "127.0.0.1:0"]);
        assert_eq!(ended.status, 2, "{short:?}: {ended:?}");
        let says = format!("has {} characters, and at least 32 random ones", short.trim().len());
        assert!(ended.err.contains("inbox.secret") && ended.err.contains(&says), "{ended:?}");
        assert!(ended.err.contains("countersign inbox --new-secret"), "{ended:?}");
        assert!(short.trim().is_empty() || !ended.err.contains(short), "{ended:?}");
    }
    // One of 32 is enough, and one that becomes short while an inbox runs logs no one in.
    write(&full[..32]);
    let served = Served::start(&user);
    drop(Session::open(&served.url, &full[..32]).await);
    write("");
    assert!(!exchange(&served.url, "").send().await.unwrap().status().is_success());
    drop(served);
    let again = Served::with(&user, &["--new-secret"]);
    drop(Session::open(&again.url, &secret(&user)).await);
}

/// The note of where the inbox is: of two at a time it is the later one, and the earlier one again once that has ended.
#[cfg(unix)]
#[tokio::test]
async fn an_inbox_that_has_ended_leaves_the_address_of_the_one_before() {
    let user = User::new();
    let noted = || std::fs::read_to_string(user.state("inbox.url")).unwrap().trim().to_owned();
    let ends = |inbox: &mut Served, signal: &str| {
        let process = inbox.process.id().to_string();
        let told = std::process::Command::new("kill").args([signal, &process]).status().unwrap();
        assert!(told.success() && inbox.process.wait().unwrap().success(), "{signal}");
    };
    let (one, other) = (Reserved::new(), Reserved::new());
    let first = Served::with(&user, &["--listen", &one.address]);
    assert_eq!(noted(), first.url);
    for signal in ["-INT", "-TERM"] {
        let mut second = Served::with(&user, &["--new-secret"]);
        assert_ne!(second.url, first.url);
        assert_eq!(noted(), second.url);
        ends(&mut second, signal);
        assert_eq!(noted(), first.url, "people are sent to the inbox that still runs");
        drop(Session::open(&noted(), &secret(&user)).await);
    }
    // Where the earlier one has ended, too, the note stays, and the next inbox takes its port.
    let mut second = Served::with(&user, &["--listen", &other.address]);
    let url = second.url.clone();
    first.end();
    ends(&mut second, "-INT");
    assert_eq!(noted(), url);
    assert_eq!(Served::start(&user).url, url);
}

// Rule R9: "A header counts as a name only from a proxy that proves itself."
#[cfg(unix)]
#[tokio::test]
async fn a_name_in_a_header_counts_only_from_the_proxy_that_has_the_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    let secret = "6f0c8e1b2a4d6e7f9012345678abcdef";
    let file = user.home().join("proxy.secret");
    std::fs::write(&file, format!("{secret}\n")).unwrap();
    // Whatever the umask is.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    user.configure(&format!("[inbox]\nproxy_secret_file = {file:?}\n"));
    let refused = user.run(&["inbox"]);
    assert!(refused.status == 2 && refused.err.contains("chmod 600"), "{refused:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();

    let served = Served::start(&user);
    let own = "countersign-proxy-secret";
    let me =
        async |headers: Headers<'_>| text(&with(headers), &format!("{}api/me", served.url)).await;
    for headers in [
        &[][..],
        &[("x-forwarded-user", "ann")],
        &[("x-forwarded-user", "ann"), (own, "another secret of 32 characters.")],
        &[("x-forwarded-user", "ann"), (own, "")],
    ] {
        assert_eq!(me(headers).await.0, 403, "{headers:?}");
    }
    let asks = async |headers: Headers<'_>| {
        text(&with(headers), &format!("{}api/asks", served.url)).await.0
    };
    assert_eq!(asks(&[(own, secret)]).await, 401, "the proxy has named no one");
    assert_eq!(asks(&[(own, secret), ("x-forwarded-user", " ")]).await, 401);
    assert_eq!(asks(&[(own, secret), ("x-forwarded-user", "ann")]).await, 200);
    let (status, page) = me(&[(own, secret), ("x-forwarded-user", "ann@corp.example")]).await;
    assert!(
        status == 200 && page.contains("ann@corp.example") && !page.contains("not checked"),
        "{page}"
    );
    assert!(!user.state("inbox.secret").exists(), "no one logs in with another secret");

    std::fs::write(&file, "7f0c8e1b2a4d6e7f9012345678abcdef").unwrap();
    assert_eq!(
        me(&[(own, secret), ("x-forwarded-user", "ann")]).await.0,
        403,
        "another secret counts at once"
    );
    served.end();
    user.configure("[inbox]\nproxy_user_header = \"x-user\"\n");
    let refused = user.run(&["inbox"]);
    assert!(
        refused.status == 2 && refused.err.contains("needs `proxy_secret_file`"),
        "{refused:?}"
    );
}
