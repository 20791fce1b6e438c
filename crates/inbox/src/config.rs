//! The configuration of an inbox, and its router.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::request::Parts;
use futures::future::BoxFuture;

use super::api;
use super::app::{App, InboxSettings};
use super::authorize_error::AuthorizeError;
use super::past::Past;
use super::public_url::PublicUrl;
use super::session::{SHORTEST, SecretLogin};
use super::watch::{Hub, Shutdown};
use super::webhook::Webhook;
use countersign::call::ToolCall;
use countersign::ledger::{Approver, AskRecord, Ledger, Surface};

/// An inbox over a ledger: configured, and then mounted as a router of axum. The [module](super) has the routes and an
/// example.
///
/// You can have any number of inboxes over one store, in any number of processes. Of their decisions about one ask the
/// first counts (rule L1), and each inbox shows the decisions of the others within a second.
///
/// A whole round, without a server: a call is parked, the page's API lists it, and a decision is bound to the
/// fingerprint that was listed.
///
/// ```
/// use axum::body::{Body, to_bytes};
/// use axum::http::Request;
/// use countersign_inbox::{Approver, AuthorizeError, Inbox};
/// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = Ledger::new(MemoryStore::new());
/// let parked = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
/// let id = parked.ask.id();
/// let app = Inbox::new(ledger.clone(), async |_| Ok::<_, AuthorizeError>(Approver::new("ann"))).into_router();
///
/// let listed = app.clone().oneshot(Request::get("/api/asks").body(Body::empty())?).await?;
/// let text = String::from_utf8(to_bytes(listed.into_body(), 1 << 20).await?.to_vec())?;
/// assert!(text.contains("delete_file") && text.contains(&parked.fingerprint));
///
/// let decision = format!(r#"{{"verdict": "deny", "fingerprint": "{}", "message": "keep it"}}"#, parked.fingerprint);
/// let decide = Request::post(format!("/api/asks/{id}/decision")).header("content-type", "application/json");
/// let decided = app.oneshot(decide.body(Body::from(decision))?).await?;
/// assert_eq!(decided.status(), 200);
/// assert_eq!(ledger.get(id).await?.map(|record| record.state), Some(AskState::Decided));
/// # Ok(()) }
/// ```
#[must_use = "an inbox does nothing until its router is served"]
pub struct Inbox {
    ledger: Ledger,
    surface: Surface,
    webhooks: Vec<Webhook>,
    stop: Option<BoxFuture<'static, ()>>,
    settings: InboxSettings,
}

impl Inbox {
    /// An inbox over this ledger. `authorize` gets the head of each request, and returns who sent it. The inbox
    /// answers no request without it, apart from the files of the page.
    ///
    /// ```
    /// use countersign_inbox::{Approver, AuthorizeError, Inbox};
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let router = Inbox::new(ledger, async |_| Ok::<_, AuthorizeError>(Approver::new("ann"))).into_router();
    /// # let _: axum::Router = router;
    /// ```
    pub fn new<F, Fut>(ledger: Ledger, authorize: F) -> Self
    where
        F: Fn(Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Approver, AuthorizeError>> + Send + 'static,
    {
        let settings = InboxSettings {
            authorize: Arc::new(move |parts| Box::pin(authorize(parts))),
            hosts: Vec::new(),
            title: "Approvals".to_owned(),
            path: None,
            login: None,
            logout: None,
            links: Vec::new(),
            told: Arc::new(|_| {}),
            secret: None,
            public_url: None,
        };
        let surface = Surface::new(ledger.clone());
        Self { ledger, surface, webhooks: Vec::new(), stop: None, settings }
    }

    /// The fewest bytes of the secret of [`with_secret`](Self::with_secret): 128 random bits in hexadecimal.
    ///
    /// ```
    /// assert!(countersign_inbox::Inbox::SHORTEST_SECRET <= "5f0c8e1b2a4d6e7f9012345678abcdef".len());
    /// ```
    pub const SHORTEST_SECRET: usize = SHORTEST;

    /// An inbox for one person without an account: `read` returns the secret that the person has, such as the content of a
    /// private file, and a browser exchanges it for a session of 30 days. Show the person [`PublicUrl::login`], once.
    ///
    /// The inbox calls `read` for each request, so a new secret voids all sessions at once. Make the secret of at least
    /// 16 random bytes in hexadecimal: no one can log in with a secret of fewer than 32 characters. Anyone who has the
    /// secret decides in the name of `approver`.
    ///
    /// ```
    /// use axum::body::Body;
    /// use axum::http::Request;
    /// use countersign_inbox::{Approver, Inbox};
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use tower::ServiceExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let secret = "5f0c8e1b2a4d6e7f9012345678abcdef";
    /// let read = move || Ok(secret.to_owned());
    /// let inbox = Inbox::with_secret(Ledger::new(MemoryStore::new()), read, Approver::new("ann"));
    /// let app = inbox.public_url(&"https://inbox.example/".parse()?).into_router();
    ///
    /// let exchange = Request::post("/api/session").header("host", "inbox.example").header("content-type", "application/json");
    /// let session = app.oneshot(exchange.body(Body::from(format!(r#"{{"secret": "{secret}"}}"#)))?).await?;
    /// let cookie = session.headers()["set-cookie"].to_str()?;
    /// assert!(cookie.contains("HttpOnly; SameSite=Strict; Secure") && !cookie.contains(secret));
    /// # Ok(()) }
    /// ```
    pub fn with_secret(
        ledger: Ledger,
        read: impl Fn() -> io::Result<String> + Send + Sync + 'static,
        approver: Approver,
    ) -> Self {
        let login = Arc::new(SecretLogin::new(read, approver));
        let asked = Arc::clone(&login);
        let mut inbox = Self::new(ledger, move |parts| {
            let who = asked.authorize(&parts);
            async move { who }
        });
        inbox.settings.secret = Some(login);
        inbox
    }

    /// Sets the address by which browsers reach the page. Its host becomes one of the [`hosts`](Self::hosts), its path
    /// the [`path`](Self::path), and cookies are `Secure` if it is `https`. With it the page works behind a proxy,
    /// whether the proxy keeps the host and path of requests or replaces them.
    pub fn public_url(mut self, url: &PublicUrl) -> Self {
        self.settings.public_url = Some(url.clone());
        self.path(url.path()).hosts([url.host()])
    }

    /// Sets the names that the page is reached by, as browsers send them in `Host`: `inbox.example`, or
    /// `127.0.0.1:8080` with a port that is not the default one. The inbox refuses requests to other names. So a
    /// foreign page whose name is made to point to this server (DNS rebinding) reads and decides nothing. You need this
    /// wherever the network is the only protection, as on `localhost`. Without names the inbox answers every `Host`.
    ///
    /// ```
    /// use axum::body::Body;
    /// use axum::http::Request;
    /// use countersign_inbox::{Approver, AuthorizeError, Inbox};
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use tower::ServiceExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let app = Inbox::new(ledger, async |_| Ok::<_, AuthorizeError>(Approver::new("ann")))
    ///     .hosts(["inbox.example"])
    ///     .into_router();
    /// let ask = |host: &str| Request::get("/api/me").header("host", host).body(Body::empty());
    /// assert_eq!(app.clone().oneshot(ask("inbox.example")?).await?.status(), 200);
    /// assert_eq!(app.oneshot(ask("evil.example")?).await?.status(), 403);
    /// # Ok(()) }
    /// ```
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.hosts.extend(hosts.into_iter().map(|it| it.into().to_ascii_lowercase()));
        self
    }

    /// Sets the title of the page; `Approvals` by default.
    ///
    /// ```
    /// use countersign_inbox::{Approver, AuthorizeError, Inbox};
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let inbox = Inbox::new(Ledger::new(MemoryStore::new()), async |_| Ok::<_, AuthorizeError>(Approver::new("ann")))
    ///     .title("Approvals of staging")
    ///     .link("Runbook", "https://wiki.example/approvals")
    ///     .login("/login")
    ///     .logout("/logout");
    /// assert!(format!("{inbox:?}").contains("staging"));
    /// ```
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.title = title.into();
        self
    }

    /// Sets the path at which browsers find the inbox. You need it only behind a proxy that removes a part of the
    /// path: otherwise the inbox knows the path from the request, even if its router is nested.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.settings.path = Some(path.into());
        self
    }

    /// Sets the address to which the page sends a person who is not logged in.
    pub fn login(mut self, url: impl Into<String>) -> Self {
        self.settings.login = Some(url.into());
        self
    }

    /// Sets the address of the link "Log out" of the page; without one, there is no such link.
    pub fn logout(mut self, url: impl Into<String>) -> Self {
        self.settings.logout = Some(url.into());
        self
    }

    /// Adds a link to the head of the page, to another page of your application.
    pub fn link(mut self, label: impl Into<String>, url: impl Into<String>) -> Self {
        self.settings.links.push((label.into(), url.into()));
        self
    }

    /// Sets a function that checks a call with edited arguments, before the inbox records an approval of them. If it
    /// returns an error, the page shows that beside the edit, and nothing is decided. A decision is final: if the tool
    /// does not take the arguments, the call fails when the run resumes. So check them here, for example with
    /// [`Toolset::validate`](countersign::Toolset::validate). The function gets no context, as the run is stored, or in
    /// another process.
    ///
    /// ```
    /// use countersign_inbox::{Approver, AuthorizeError, Inbox};
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let inbox = Inbox::new(Ledger::new(MemoryStore::new()), async |_| Ok::<_, AuthorizeError>(Approver::new("ann")))
    ///     .check(|call| match (call.name(), call.args().str("path")) {
    ///         ("delete_file", None) => Err("it needs a `path`".to_owned()),
    ///         _ => Ok(()),
    ///     });
    /// # let _ = inbox;
    /// ```
    pub fn check(
        mut self,
        check: impl Fn(&ToolCall) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.surface = self.surface.check(check);
        self
    }

    /// Sets a function that the inbox calls after each decision that was made through it, with the ask as it is then.
    /// Use it to wake the workers of this process. Those of other processes look at the store.
    ///
    /// The inbox calls it in the request, after the ledger has the decision, and a person waits for it. So send a
    /// message over a channel, and do no work here. A vote does not call it while others still have to vote.
    pub fn on_decision(mut self, told: impl Fn(&AskRecord) + Send + Sync + 'static) -> Self {
        self.settings.told = Arc::new(told);
        self
    }

    /// Adds a target that the inbox tells of new, expiring and decided asks. If several processes serve an inbox
    /// over one store, add it in each of them: one of them sends.
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhooks.push(webhook);
        self
    }

    /// Sets a future that completes when the server stops. Then the event streams of open pages end. Without it they
    /// keep a graceful shutdown from ending.
    pub fn shutdown(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop = Some(Box::pin(stop));
        self
    }

    /// The router, to be served or nested at any path. It watches the store for pages and webhooks: from now on if this
    /// is called inside of a Tokio runtime, otherwise from the first request on. Watching ends when the router is
    /// dropped.
    ///
    /// The watching expires asks whose deadline is over, once a second (rule L4), so a process that serves an inbox
    /// needs no other task for that.
    pub fn into_router(self) -> Router {
        let Self { ledger, surface, webhooks, stop, settings } = self;
        let hub = Hub::new(ledger.clone(), webhooks, Shutdown::new(stop));
        hub.begin();
        api::router(Arc::new(App { ledger, surface, hub, past: Past::default(), settings }))
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("title", &self.settings.title)
            .field("hosts", &self.settings.hosts)
            .field("webhooks", &self.webhooks)
            .finish_non_exhaustive()
    }
}
