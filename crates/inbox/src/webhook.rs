//! An outgoing webhook: notifies a chat or a service about asks, and never decides one (rule S10).
//!
//! Three properties are from experience with targets that fail:
//!
//! - **A queue that does not grow.** It holds counts, and at most twenty names of each kind. For example, a target
//!   that is away for a day gets one message with "and 480 more", not five hundred messages.
//! - **The latest event about an ask counts.** An ask that was announced as new and decided before the message is sent
//!   appears as decided only.
//! - **The signature covers the time.** After five minutes, no one can send a recorded message again. When we send a
//!   message again, it has a new time and the old id of the delivery, by which the target recognizes it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::json::set;
use super::webhook_form::{MessageParts, WebhookForm};
use countersign::args::hex;
use countersign::error::BoxError;
use countersign::ledger::{AskRecord, Lease, Millis};

/// The header that carries the signature.
const SIGNATURE: &str = "countersign-signature";
/// The header that carries the id of a message, the same for each attempt to deliver it.
const DELIVERY: &str = "countersign-delivery";
/// The time for which events are collected before a message is sent.
///
/// A batch of calls is one message and not twenty.
const COLLECT: Duration = Duration::from_secs(2);
/// The time that a target may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// The number of times a message is sent before it is given up.
const ATTEMPTS: u32 = 10;
/// The number of asks of each kind that a message names; the others are counted.
const NAMED: usize = 20;
/// The time before its deadline at which an ask is announced as expiring, by default.
const LEAD: Duration = Duration::from_secs(600);
/// The fewest bytes of a secret.
const SECRET: usize = 16;
/// The longest name in a message, in characters.
const LONGEST_NAME: usize = 120;

/// A target that is told of new, expiring and settled asks, in JSON that Slack accepts, or another service
/// ([`WebhookForm`]).
///
/// A message is the body `{"text", "blocks", "metadata"}`: `text` and `blocks` are for people, `metadata` has the same as
/// data. It names tools, agents, requesters and deciders. It never has an argument, as arguments may hold secrets, and no
/// link in it decides anything. All asks of two seconds are one message.
///
/// The header `countersign-signature` is `t=SECONDS,v1=HEX`: HMAC-SHA256 under the secret, over the decimal `SECONDS`, a
/// dot and the body. [`verify`](Self::verify) checks it. If the target does not accept a message with a status from 200
/// to 299 within ten seconds, we send it again with the same `countersign-delivery`: ten times in all, after pauses from
/// one second to five minutes. We follow no redirects. A target that hangs or fails delays only its own messages.
///
/// Any number of inboxes over one store may have the same webhook (its address and secret), in any number of processes:
/// one of them sends. If its process dies, another one continues after 15 seconds, or at once if
/// [`Inbox::shutdown`](super::Inbox::shutdown) was told. The store has what was told, so a restart tells only what is new.
/// If the process dies after it has sent a message and before it has recorded that, the message is sent again, as another
/// delivery: its asks have the same ids.
///
/// ```
/// use countersign_inbox::Webhook;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let webhook = Webhook::new("https://hooks.slack.example/services/T0/B0/x", b"a secret of 16 bytes")?
///     .link("https://inbox.example/");
/// assert!(!format!("{webhook:?}").contains("services"), "the address of a webhook is a secret, too");
/// # Ok::<(), countersign_inbox::WebhookError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Webhook {
    url: Url,
    mac: Hmac<Sha256>,
    link: Option<String>,
    form: WebhookForm,
    lead: Duration,
    client: Client,
    queue: Arc<EventQueue>,
}

/// The error of a webhook that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The address cannot be read, or is not of `http` or `https`.
    #[error("the address of the webhook is not an `http` or `https` URL")]
    Url,
    /// The secret is shorter than 16 bytes.
    #[error("the secret of the webhook has fewer than 16 bytes: generate one of 32 random bytes")]
    Secret,
    /// The HTTP client could not be made, for example because there are no root certificates.
    #[error("no HTTP client for the webhook")]
    Client(#[source] BoxError),
}

impl Webhook {
    /// A webhook that posts to this address, and signs with this secret.
    ///
    /// # Errors
    /// [`WebhookError`]; it never contains the address.
    ///
    /// ```
    /// use countersign_inbox::{Webhook, WebhookError};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// assert!(matches!(Webhook::new("ftp://hooks.example", &[7; 32]), Err(WebhookError::Url)));
    /// assert!(matches!(Webhook::new("https://hooks.example", b"short"), Err(WebhookError::Secret)));
    /// # });
    /// ```
    pub fn new(url: &str, secret: &[u8]) -> Result<Self, WebhookError> {
        let url = Url::parse(url).map_err(|_| WebhookError::Url)?;
        if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
            return Err(WebhookError::Url);
        }
        if secret.len() < SECRET {
            return Err(WebhookError::Secret);
        }
        let mac = Hmac::new_from_slice(secret).map_err(|_| WebhookError::Secret)?;
        // An error says that the process has chosen its cryptography already, which is used then.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(Policy::none()).timeout(PATIENCE).build();
        let client = client.map_err(|error| WebhookError::Client(error.without_url().into()))?;
        Ok(Self {
            url,
            mac,
            link: None,
            form: WebhookForm::default(),
            lead: LEAD,
            client,
            queue: Arc::default(),
        })
    }

    /// Sets the address of the inbox, which each message links to; a message about one ask links to that ask
    /// (`ADDRESS#ask=ID`), and the data of each ask has its `url`.
    ///
    /// The link has no token: who opens it logs in, and then decides. We leave a fragment out, as an inbox shows its
    /// secret in one.
    #[must_use]
    pub fn link(mut self, url: impl Into<String>) -> Self {
        let mut url = url.into();
        url.truncate(url.find('#').unwrap_or(url.len()));
        self.link = Some(url);
        self
    }

    /// Sets the service that is told; Slack by default.
    #[must_use]
    pub fn form(mut self, form: WebhookForm) -> Self {
        self.form = form;
        self
    }

    /// Sets how long before its deadline an ask is announced as expiring; ten minutes by default.
    ///
    /// Each ask is announced so once. An ask that is valid for a shorter time than this is announced as new and as
    /// expiring in one message.
    #[must_use]
    pub fn expiring_before(mut self, lead: Duration) -> Self {
        self.lead = lead;
        self
    }

    /// Returns `true` if a message comes from the holder of the secret: `signature` is its header
    /// `countersign-signature`, `body` its body as it was received, and `now` the time in seconds since 1970. It is
    /// `false` for a message that is more than five minutes off, so no one can send an old one again.
    ///
    /// ```
    /// use countersign_inbox::Webhook;
    /// assert!(!Webhook::verify(b"a secret of 16 bytes", "t=1700000000,v1=00", b"{}", 1_700_000_000));
    /// ```
    ///
    /// A whole check, as a target does it. The hexadecimal part is HMAC-SHA256 over `1700000000.{}`, and is compared in
    /// constant time:
    ///
    /// ```
    /// use countersign_inbox::Webhook;
    /// use hmac::{Hmac, KeyInit, Mac};
    ///
    /// let (secret, body) = (b"a secret of 16 bytes", b"{}");
    /// let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret)?;
    /// mac.update(b"1700000000.{}");
    /// let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    /// let signature = format!("t=1700000000,v1={hex}");
    /// assert!(Webhook::verify(secret, &signature, body, 1_700_000_100));
    /// assert!(!Webhook::verify(secret, &signature, body, 1_700_000_400), "too old");
    /// assert!(!Webhook::verify(secret, &signature, b"{ }", 1_700_000_100), "another body");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn verify(secret: &[u8], signature: &str, body: &[u8], now: u64) -> bool {
        let parts = signature.split_once(',');
        let parts =
            parts.and_then(|(t, v1)| Some((t.strip_prefix("t=")?, v1.strip_prefix("v1=")?)));
        let Some((at, hex)) = parts else { return false };
        let fresh = at.parse().is_ok_and(|at: u64| now.abs_diff(at) <= 300);
        let (Some(sent), Ok(mac)) = (bytes(hex), Hmac::<Sha256>::new_from_slice(secret)) else {
            return false;
        };
        fresh && over(mac, at, body).verify_slice(&sent).is_ok()
    }

    pub(super) fn lead(&self) -> Millis {
        Millis::try_from(self.lead.as_millis()).unwrap_or(Millis::MAX)
    }

    /// Adds an event to the next message. It takes the place of an earlier one about the same ask.
    pub(super) fn tell(&self, id: &str, told: &Told) {
        self.queue.add(id, told);
    }

    /// Sets what will have been told once all events so far are sent.
    pub(super) fn mark(&self, mark: Value) {
        *self.queue.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Drops the events that were not sent.
    pub(super) fn forget(&self) {
        self.mark(Value::Null);
        self.queue.take();
    }

    /// The name under which the processes over a store agree which of them sends.
    pub(super) fn key(&self) -> String {
        let mut mac = self.mac.clone();
        mac.update(self.url.as_str().as_bytes());
        let digest = mac.finalize().into_bytes();
        format!("webhook {:.32}", hex(&digest))
    }

    /// Sends messages until the lease is lost, and stores what was told.
    pub(super) async fn send(self, lease: &Lease<()>) {
        while !lease.keeper().is_lost() {
            self.queue.filled.notified().await;
            sleep(COLLECT).await;
            // Before the events, which may be more than what is marked.
            let mark = self.queue.mark.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(events) = self.queue.take() else { continue };
            self.deliver(&events).await;
            if mark.is_null() {
                continue;
            }
            if let Err(error) = lease.save(mark).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "what a webhook was told is not stored: it may be told again"
                );
            }
        }
    }

    async fn deliver(&self, events: &EventBatch) {
        let id = uuid::Uuid::now_v7().to_string();
        let parts = events.message(&id, self.link.as_deref());
        let (url, body) = self.form.message(&self.url, &parts);
        let body = body.to_string();
        let mut pause = Duration::from_secs(1);
        for attempt in 1..=ATTEMPTS {
            let problem = match self.post(&url, &id, &body).await {
                Ok(status) if status.is_success() => return,
                Ok(status) => status.to_string(),
                Err(error) => error.without_url().to_string(),
            };
            let host = self.url.host_str().unwrap_or_default();
            if attempt == ATTEMPTS {
                tracing::error!(
                    host,
                    problem,
                    asks = events.len(),
                    "a webhook message is given up"
                );
                return;
            }
            tracing::warn!(host, problem, attempt, ?pause, "a webhook message is sent again");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn post(
        &self,
        url: &Url,
        id: &str,
        body: &str,
    ) -> Result<reqwest::StatusCode, reqwest::Error> {
        let at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
        let mac = over(self.mac.clone(), &at, body.as_bytes()).finalize().into_bytes();
        let signature = format!("t={at},v1={}", hex(&mac));
        let request = self.client.post(url.clone()).body(body.to_owned());
        let request = request.header(CONTENT_TYPE, "application/json").header(DELIVERY, id);
        let reply = request.header(SIGNATURE, signature).send().await?;
        Ok(reply.status())
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

fn over(mut mac: Hmac<Sha256>, at: &str, body: &[u8]) -> Hmac<Sha256> {
    mac.update(at.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    let at = |n| hex.get(n..n + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    (0..hex.len()).step_by(2).map(at).collect()
}

/// The message about one ask: names, no values.
#[derive(Debug, Clone)]
pub(super) struct Told {
    what: &'static str,
    line: String,
    data: Value,
}

impl Told {
    /// The data about an ask, made of its view without its call, so that no argument can be in it.
    pub(super) fn of(record: &AskRecord, what: &'static str) -> Self {
        let view = record.view_without_call();
        let [tool, agent, run] = [&view.tool, &view.agent, &view.run].map(|name| short(name));
        let requester = view.requester.as_deref().map(short);
        let by = view.decision.as_ref().map(|it| it.by.iter().map(|by| short(by)));
        let by = by.map(Iterator::collect::<Vec<_>>);
        let came = view.ended();
        let mut line = format!("{tool} (agent {agent}");
        if let Some(requester) = &requester {
            line += &format!(", wanted by {requester}");
        }
        line.push(')');
        if let Some(came) = came {
            line += &format!(": {came}");
        }
        if let Some(by) = &by {
            line += &format!(" by {}", by.join(" and "));
        }
        let data = json!({
            "id": view.id, "run": run, "tool": tool, "agent": agent, "requester": requester,
            "parked_at": view.parked_at, "expires_at": view.expires_at, "answer": came, "by": by,
        });
        Self { what, line, data }
    }

    /// The data, with the address of the ask.
    fn data_at(&self, id: &str, link: Option<&str>) -> Value {
        let mut data = self.data.clone();
        if let Some(link) = link {
            set(&mut data, "url", ask_at(link, id).into());
        }
        data
    }
}

/// The address of an ask on the page.
fn ask_at(link: &str, id: &str) -> String {
    format!("{link}#ask={id}")
}

/// A name that is safe to show, up to a maximum length.
fn short(name: &str) -> String {
    let mut short: String = name.chars().take(LONGEST_NAME).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}

/// The events that were not sent yet. Its size is limited: it does not grow while a target cannot be reached.
#[derive(Default)]
struct EventQueue {
    events: Mutex<EventBatch>,
    mark: Mutex<Value>,
    filled: Notify,
}

impl EventQueue {
    fn add(&self, id: &str, told: &Told) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.add(id, told);
        drop(events);
        self.filled.notify_one();
    }

    fn take(&self) -> Option<EventBatch> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        (events.len() > 0).then(|| std::mem::take(&mut *events))
    }
}

/// The kinds of events, in the order in which a message has them.
const KINDS: [&str; 3] = ["expiring", "new", "decided"];

#[derive(Default)]
struct EventBatch([EventsOfKind; KINDS.len()]);

/// The events of one kind: the latest by name, and how many there are.
#[derive(Default)]
struct EventsOfKind {
    count: usize,
    named: VecDeque<(String, Told)>,
}

impl EventBatch {
    fn add(&mut self, id: &str, told: &Told) {
        for kind in &mut self.0 {
            let before = kind.named.len();
            kind.named.retain(|(known, _)| known != id);
            kind.count -= before - kind.named.len();
        }
        let kinds = KINDS.iter().zip(&mut self.0);
        for (_, kind) in kinds.filter(|(what, _)| **what == told.what) {
            kind.count += 1;
            kind.named.push_back((id.to_owned(), told.clone()));
            if kind.named.len() > NAMED {
                kind.named.pop_front();
            }
        }
    }

    fn len(&self) -> usize {
        self.0.iter().map(|kind| kind.count).sum()
    }

    fn message(&self, id: &str, link: Option<&str>) -> MessageParts {
        let kinds = || KINDS.iter().zip(&self.0).filter(|(_, kind)| kind.count > 0);
        let counts: Vec<_> = kinds().map(|(what, kind)| format!("{} {what}", kind.count)).collect();
        let mut data = json!({"delivery": id});
        let mut lines_of = Vec::new();
        for (what, kind) in kinds() {
            let mut lines: Vec<_> =
                kind.named.iter().map(|(_, told)| format!("• {}", told.line)).collect();
            if kind.count > kind.named.len() {
                lines.push(format!("and {} more", kind.count - kind.named.len()));
            }
            lines_of.push((*what, lines));
            let asks: Vec<_> = kind.named.iter().map(|(id, told)| told.data_at(id, link)).collect();
            set(&mut data, what, json!({"count": kind.count, "asks": asks}));
        }
        let ids: Vec<_> = kinds().flat_map(|(_, kind)| &kind.named).collect();
        let link = link.map(|link| match &ids[..] {
            [(id, _)] => ask_at(link, id),
            _ => link.to_owned(),
        });
        MessageParts {
            title: format!("Approvals: {}", counts.join(", ")),
            kinds: lines_of,
            link,
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;
    use countersign::ledger::{Acquired, Ask, Ledger, MemoryStore};

    const KEY: &[u8] = b"a secret of 16 bytes";

    async fn told(tool: &str, who: &str, what: &'static str) -> (String, Told) {
        let ledger = Ledger::new(MemoryStore::new());
        let args = countersign::args::Args::new().with("password", "hunter2-very-secret");
        let ask =
            Ask::new("run-1", format!("root/{tool}"), tool).with_args(args).with_principal(who);
        let record = ledger.park(ask).await.unwrap();
        (record.ask.id().to_owned(), Told::of(&record, what))
    }

    /// A server that gives these answers, one for each request, and passes on what it was sent.
    fn target(answers: &'static [&'static str]) -> (String, mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (tell, heard) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let (mut text, mut part) = (String::new(), [0; 65536]);
                loop {
                    let read = stream.read(&mut part).unwrap();
                    text += std::str::from_utf8(&part[..read]).unwrap();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
                    if body.len() >= length.unwrap().parse().unwrap() {
                        break;
                    }
                }
                let reply =
                    format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(reply.as_bytes()).unwrap();
                tell.send(text).unwrap();
            }
        });
        (url, heard)
    }

    #[tokio::test]
    async fn a_message_is_signed_sent_again_and_follows_no_redirect() {
        // S10: "a webhook … signed, without arguments and without a link that decides".
        let (url, heard) =
            target(&["302 Found\r\nlocation: http://127.0.0.1:1/", "500 No", "200 OK"]);
        let webhook = Webhook::new(&url, KEY).unwrap().link("https://inbox.example/?a=1&b=2");
        for n in 0..3 {
            let (id, told) = told("delete_file", &format!("<!channel> {n}"), "new").await;
            webhook.tell(&format!("{id}{n}"), &told);
        }
        let ledger = Ledger::new(MemoryStore::new());
        let Acquired::Lease(lease) = ledger.acquire_chat("x").await.unwrap() else { panic!() };
        let lease = lease.take_state().1;
        let sending = tokio::spawn(async move { webhook.send(&lease).await });
        let sent = tokio::task::spawn_blocking(move || heard.iter().take(3).collect::<Vec<_>>());
        let sent = sent.await.unwrap();
        sending.abort();
        let mut bodies = Vec::new();
        for text in &sent {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let header =
                |name: &str| head.lines().find_map(|it| it.strip_prefix(name)).unwrap().to_owned();
            let signature = header("countersign-signature: ");
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            assert!(Webhook::verify(KEY, &signature, body.as_bytes(), now));
            assert!(!Webhook::verify(b"another secret, as long", &signature, body.as_bytes(), now));
            assert!(!Webhook::verify(KEY, &signature, b"{}", now));
            assert!(!Webhook::verify(KEY, &signature, body.as_bytes(), now + 301), "too old");
            bodies.push((header("countersign-delivery: "), body.to_owned()));
        }
        assert!(bodies.windows(2).all(|two| two[0] == two[1]), "the same message each time");
        let message: Value = serde_json::from_str(&bodies[0].1).unwrap();
        assert_eq!(message["metadata"]["event_payload"]["new"]["count"], 3, "one message for all");
        let text = message.to_string();
        assert!(!text.contains("hunter2"), "no arguments");
        assert!(!message["text"].as_str().unwrap().contains("<!"), "no markup");
        for block in message["blocks"].as_array().unwrap() {
            let is_link =
                block["text"]["text"] == "<https://inbox.example/?a=1&amp;b=2|Open the inbox>";
            assert!(is_link || block["text"]["type"] == "plain_text", "{block}");
        }
    }

    /// S14: "An ask has an address without a secret."
    #[tokio::test]
    async fn a_message_leads_to_its_ask_and_never_has_the_secret() {
        let webhook = Webhook::new("https://hooks.example/", KEY).unwrap();
        let webhook = webhook.link("https://inbox.example/#secret=5ec2e7");
        let mut events = EventBatch::default();
        let message = |events: &EventBatch| {
            let parts = events.message("d", webhook.link.as_deref());
            WebhookForm::Slack.message(&webhook.url, &parts).1
        };
        let (one, told_one) = told("deploy", "ann", "new").await;
        events.add(&one, &told_one);
        let sent = message(&events);
        let address = format!("https://inbox.example/#ask={one}");
        assert!(sent["text"].as_str().unwrap().ends_with(&address), "{sent}");
        assert_eq!(sent["metadata"]["event_payload"]["new"]["asks"][0]["url"], address);
        let (two, told_two) = told("restart", "ann", "new").await;
        events.add(&two, &told_two);
        let sent = message(&events);
        assert!(sent["text"].as_str().unwrap().ends_with(" https://inbox.example/"), "{sent}");
        assert!(!sent.to_string().contains("5ec2e7"), "{sent}");
        assert!(events.message("d", None).data["new"]["asks"][0]["url"].is_null());
    }

    #[tokio::test]
    async fn the_queue_of_events_is_bounded_and_the_latest_event_counts() {
        let (_, new) = told("delete_file", "ann", "new").await;
        let (_, decided) = told("delete_file", "ann", "decided").await;
        let mut events = EventBatch::default();
        for n in 0..10_000 {
            events.add(&n.to_string(), &new);
        }
        events.add("9999", &decided);
        let message = events.message("1", None);
        let of = |kind: &str| message.data[kind].clone();
        assert_eq!((&of("new")["count"], &of("decided")["count"]), (&json!(9_999), &json!(1)));
        assert!(of("new")["asks"].as_array().unwrap().len() <= NAMED);
    }

    #[test]
    fn an_invalid_webhook_is_refused_without_quoting_its_address() {
        for url in ["", "ftp://secret.example/x", "file:///secret", "secret"] {
            let error = Webhook::new(url, KEY).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        }
        assert!(matches!(Webhook::new("https://a.example/", b"short"), Err(WebhookError::Secret)));
    }
}
