//! `countersign inbox`: the page on which the asks of a store are decided, for one user of this machine.
//!
//! Other users of the machine can connect to the loopback interface, too, and cookies do not know ports. So the page is
//! below a path that only its user knows, and nothing else is served.
//!
//! The secret is in the path and not in a cookie or a query: pages at other ports of the same host share cookies, and a
//! query is kept in logs and histories more often. `Referrer-Policy` keeps it from links that lead out of the page.

use std::io::IsTerminal as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{Request, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use clap::Args;
use countersign::inbox::{Approver, Inbox as Page};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::Context;
use crate::listening::ListeningArgs;
use crate::output::{CommandError, CommandOutput};
use crate::signals::told;

/// What the name of the page is worth.
const WORTH: &str = "(not checked: by the address of this page)";

const ADDRESSES: &str = "\
Prints the address of the page, which contains a secret: anyone who has it decides in your name. It changes with each start. \
Ends with Ctrl-C. Exit statuses: 0 ended; 1 the store or the address cannot be used; 2 bad usage.";

/// Serve the page on which people decide, and its API.
#[derive(Args)]
#[command(after_help = ADDRESSES)]
pub(crate) struct InboxArgs {
    /// Where the asks are; by default the store of the configuration
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The address to listen on; by default a free port of the loopback interface
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// The name under which you decide; by default that of the configuration, or your account. It is not checked: anyone
    /// who has the address of the page decides in it
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    #[command(flatten)]
    listening: ListeningArgs,
}

impl InboxArgs {
    pub(crate) async fn run(
        self,
        context: &Context,
        json: bool,
    ) -> Result<CommandOutput, CommandError> {
        let listen = self.listen.or(context.config.inbox.listen);
        let listen = listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        self.listening.check(listen)?;
        let url = self.store.as_deref().map(str::parse).transpose()?;
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let listener = TcpListener::bind(listen).await.map_err(|error| unusable(listen, &error))?;
        let address = listener.local_addr().map_err(|error| unusable(listen, &error))?;
        let name = self.principal.unwrap_or_else(|| context.config.principal());
        let secret = secret()?;
        let (stop, stopped) = watch::channel(());
        let ended = |mut stopped: watch::Receiver<()>| async move { drop(stopped.changed().await) };
        let page = Page::new(ledger, move |_| {
            let principal = Approver::new(name.clone()).with_note(WORTH).with_audit(true);
            async move { Ok(principal) }
        });
        let page = page.hosts([address.to_string(), format!("localhost:{}", address.port())]);
        let page = match listen.ip().is_unspecified() {
            // Its clients use other names for this machine.
            true => page.hosts([] as [String; 0]),
            false => page,
        };
        let page = page.shutdown(ended(stopped.clone())).into_router();
        say(&format!("http://{address}/{secret}/"), json);
        let served =
            axum::serve(listener, behind(page, &secret)).with_graceful_shutdown(ended(stopped));
        tokio::select! {
            served = served.into_future() => served.map_err(|error| CommandError::Store(error.to_string()))?,
            () = told() => {
                drop(stop);
                // Requests that have begun are answered before the process ends.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        Ok(CommandOutput::of(0, Vec::new()))
    }
}

fn unusable(address: SocketAddr, error: &std::io::Error) -> CommandError {
    CommandError::Store(format!("{address} cannot be listened on: {error}"))
}

/// The page, below a path that only its user knows.
fn behind(page: Router, secret: &str) -> Router {
    Router::new()
        // Unlike `nest`, with and without a slash at the end of the address.
        .nest_service(&format!("/{secret}"), page)
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "The address of this page is the one that `countersign inbox` has printed.\n",
            )
        })
        .layer(from_fn(|request: Request<axum::body::Body>, next: Next| async move {
            let mut response = next.run(request).await.into_response();
            let headers = response.headers_mut();
            headers.insert(
                HeaderName::from_static("referrer-policy"),
                HeaderValue::from_static("no-referrer"),
            );
            response
        }))
}

/// 256 random bits, in hexadecimal.
fn secret() -> Result<String, CommandError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| CommandError::Store(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Prints the address at once, as the command keeps running.
fn say(address: &str, json: bool) {
    let is_for_people = !json && std::io::stdout().is_terminal();
    let line = match (json, is_for_people) {
        (true, _) => json!({"url": address}).to_string(),
        (false, true) => format!(
            "Open {address}\nAnyone who has this address decides in your name. Ctrl-C ends the inbox."
        ),
        (false, false) => address.to_owned(),
    };
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
