//! `countersign inbox`: the page on which the asks of a store are decided, for one user of this machine.
//!
//! Other users of the machine can connect to the loopback interface, too. So the page asks for a secret, which is in a
//! private file. We show the secret once, on a terminal, as the fragment of an address. Browsers send no fragment to a
//! server, so the secret is in no request line, no `Referer` and no log. The page exchanges it for a session.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use clap::Args;
use countersign::ledger::Ledger;
use countersign_inbox::{Approver, Inbox as Page, PublicUrl};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::Context;
use crate::listening::{ListeningArgs, address};
use crate::output::{CommandError, CommandOutput};
use crate::proxy::TrustedProxy;
use crate::serving::serve;
use crate::signals::told;

/// The note behind the name on the page: the secret does not say who has it.
const WORTH: &str = "(not checked: by the secret of this inbox)";

const ADDRESSES: &str = "\
Prints the address of the page. At the first start, and after `--new-secret`, a terminal is also shown the secret that \
logs a browser in, for 30 days; it is kept in `inbox.secret` of the state directory. Anyone who has the secret decides in \
your name. The address of an ask, ADDRESS/#ask=ID, has no secret. Ends with Ctrl-C. Exit statuses: 0 ended; 1 the store or \
the address cannot be used; 2 bad usage.";

/// Serve the page on which people decide, and its API.
#[derive(Args)]
#[command(after_help = ADDRESSES)]
pub(crate) struct InboxArgs {
    /// Where the asks are; by default the store of the configuration
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// A file whose bytes are the key of the log; the same for every command over one store
    #[arg(long, value_name = "PATH")]
    audit_key_file: Option<PathBuf>,
    /// The address to listen on; by default the port of the last time, or else a free one, of the loopback interface
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
    /// The address by which browsers reach the page through a proxy, such as `https://inbox.example/`. The proxy may keep
    /// or replace the host and the path of requests
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Make another secret and show it. Every browser is logged out, also of inboxes that run
    #[arg(long)]
    new_secret: bool,
    /// The name under which you decide; by default that of the configuration, or your account. It is not checked: anyone
    /// who has the secret decides in it
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
        self.listening.check(listen.unwrap_or(LOOPBACK))?;
        let named = self.public_url.as_ref().or(context.config.inbox.public_url.as_ref());
        let named = named.map(|url| url.parse::<PublicUrl>()).transpose();
        let named = named.map_err(|error| CommandError::Usage(error.to_string()))?;
        let url = self.store.as_deref().map(str::parse).transpose()?;
        let config = context.config_with_key(self.audit_key_file.clone());
        let ledger = config.open_store(&context.directories, url.as_ref()).await?;
        // Where the address is in use, the secret stays as it is: another one would log everyone out and be shown to no one.
        let (listener, moved) = bind(listen, context).await?;
        let proxy = TrustedProxy::of(&context.config)?;
        let is_behind_proxy = proxy.is_some();
        let (shown, file) = match is_behind_proxy {
            true => (None, String::new()),
            false => self.secret(context)?,
        };
        let address = listener.local_addr().map_err(|error| unusable(LOOPBACK, &error))?;
        let (stop, stopped) = watch::channel(());
        let ended = |mut stopped: watch::Receiver<()>| async move { drop(stopped.changed().await) };
        let shared = context.config.is_shared(&context.directories, url.as_ref());
        let page = match proxy {
            Some(proxy) => behind(proxy, ledger),
            // On a store of several accounts, anyone who has the secret may be any of its people.
            None if shared => self.with_secret(ledger.with_unchecked_names(), context),
            None => self.with_secret(ledger, context),
        };
        let (page, url) = reached_by(page, address, named)?;
        let webhook = context.config.webhook(&context.directories, &url.to_string())?;
        let page = webhook.into_iter().fold(page, Page::webhook);
        let router = page.shutdown(ended(stopped.clone())).into_router();
        let earlier = context.config.inbox_url(&context.directories);
        context.config.note_inbox_url(&context.directories, &url.to_string())?;
        if let Some(moved) = moved {
            eprintln!("{moved}");
        }
        let file = (!is_behind_proxy).then_some(&*file);
        let told = told();
        say(&url, shown.as_deref(), file, json);
        let served = serve(listener, at(router, url.path()), ended(stopped));
        tokio::select! {
            served = served => served.map_err(|error| CommandError::Store(error.to_string()))?,
            () = told => {
                drop(stop);
                // Requests that have begun are answered before the process ends.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        if let Some(earlier) = earlier.filter(|earlier| is_listening(earlier)) {
            context.config.note_inbox_url(&context.directories, &earlier)?;
        }
        Ok(CommandOutput::of(0, Vec::new()))
    }

    /// The page for the one person who has the secret.
    fn with_secret(self, ledger: Ledger, context: &Context) -> Page {
        let name = self.principal.unwrap_or_else(|| context.config.principal());
        let approver = Approver::new(name).with_note(WORTH).with_audit(true);
        let (config, directories) = (context.config.clone(), context.directories.clone());
        let read = move || config.inbox_secret(&directories).map_err(io::Error::other);
        Page::with_secret(ledger, read, approver)
    }

    /// The secret, if it is new and so has to be shown, and its file.
    fn secret(&self, context: &Context) -> Result<(Option<String>, String), CommandError> {
        let (config, directories) = (&context.config, &context.directories);
        let file = config.inbox_secret_file(directories);
        let is_first = !file.exists();
        let secret = match self.new_secret {
            true => config.new_inbox_secret(directories)?,
            false => config.inbox_secret(directories)?,
        };
        let shown = (is_first || self.new_secret).then_some(secret);
        Ok((shown, Path::display(&file).to_string()))
    }
}

/// The page for the people whom a proxy has logged in.
fn behind(proxy: TrustedProxy, ledger: Ledger) -> Page {
    let proxy = Arc::new(proxy);
    Page::new(ledger, move |parts| {
        let proxy = Arc::clone(&proxy);
        async move { proxy.authorize(&parts) }
    })
}

/// A free port of the loopback interface.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Listens at this address. Without one it takes the port of the last time, as browsers are logged in to a host with a
/// port. If that port is in use, it takes another one, and returns a line that says so.
async fn bind(
    listen: Option<SocketAddr>,
    context: &Context,
) -> Result<(TcpListener, Option<String>), CommandError> {
    let bound = |at: SocketAddr| async move {
        TcpListener::bind(at).await.map_err(|error| unusable(at, &error))
    };
    if let Some(at) = listen {
        return Ok((bound(at).await?, None));
    }
    let last = context.config.inbox_url(&context.directories);
    let last =
        last.and_then(|url| url.parse::<PublicUrl>().ok()?.host().parse::<SocketAddr>().ok());
    let Some(last) = last.filter(|at| at.ip().is_loopback()) else {
        return Ok((bound(LOOPBACK).await?, None));
    };
    match TcpListener::bind(last).await {
        Ok(listener) => Ok((listener, None)),
        Err(_) => {
            let moved = format!(
                "The port of the last time ({last}) is in use, so the address is another one, and browsers are not \
                 logged in there. Enter the secret only if the other program is an inbox of yours."
            );
            Ok((bound(LOOPBACK).await?, Some(moved)))
        }
    }
}

/// True if another inbox of this machine is at this address, to which people are sent again once this one has ended.
fn is_listening(url: &str) -> bool {
    let at = url.parse::<PublicUrl>().ok().and_then(|url| url.host().parse::<SocketAddr>().ok());
    let at = at.filter(|at| at.ip().is_loopback());
    at.is_some_and(|at| TcpStream::connect_timeout(&at, Duration::from_millis(200)).is_ok())
}

/// The page with the names by which browsers reach it, and its address.
fn reached_by(
    page: Page,
    address: SocketAddr,
    named: Option<PublicUrl>,
) -> Result<(Page, PublicUrl), CommandError> {
    let own = format!("http://{address}/").parse::<PublicUrl>();
    let own = own.map_err(|error| CommandError::Store(error.to_string()))?;
    let local = [address.to_string(), format!("localhost:{}", address.port())];
    Ok(match named {
        Some(url) => (page.hosts(local).public_url(&url), url),
        // Other machines have names for this one that it does not know.
        None if address.ip().is_unspecified() => (page, own),
        None => (page.hosts(local).public_url(&own), own),
    })
}

fn unusable(address: SocketAddr, error: &io::Error) -> CommandError {
    CommandError::Store(format!(
        "{address} cannot be listened on: {error}. An inbox may run there already, or `--listen ADDRESS` names another one"
    ))
}

/// The page at its path, and without it, as a proxy may remove the path.
fn at(page: Router, path: &str) -> Router {
    match path.trim_end_matches('/') {
        "" => page,
        path => Router::new().nest_service(path, page.clone()).fallback_service(page),
    }
}

/// Prints the address at once, as the command keeps running. We show the secret on a terminal only: other output is
/// kept, for example in the log of a service.
fn say(url: &PublicUrl, secret: Option<&str>, file: Option<&str>, json: bool) {
    let is_for_people = !json && io::stdout().is_terminal();
    let text = match (json, is_for_people, secret) {
        (true, ..) => json!({"url": url.to_string(), "secret_file": file}).to_string(),
        (false, false, _) => url.to_string(),
        (false, true, _) if file.is_none() => {
            format!(
                "Open {url}\nPeople are those whom the proxy has logged in. Ctrl-C ends the inbox."
            )
        }
        (false, true, Some(secret)) => {
            let file = file.unwrap_or_default();
            let login = url.login(secret);
            let code = qr_code(&login).map(|code| format!("\n{code}\n")).unwrap_or_default();
            format!(
                "Open {login}\n{code}This is the only time that the secret is shown. It logs a browser in for 30 days, and \
                 anyone who has it decides in your name. It is kept in {file}; `countersign inbox --new-secret` makes \
                 another one, and logs every browser out. Ctrl-C ends the inbox."
            )
        }
        (false, true, None) => format!(
            "Open {url}\nA browser that is not logged in asks for the secret. It is in {}; `countersign inbox \
             --new-secret` makes and shows another one. Ctrl-C ends the inbox.",
            file.unwrap_or_default()
        ),
    };
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// The address for the camera of a phone; `None` where a phone cannot reach it.
fn qr_code(login: &str) -> Option<String> {
    let is_local =
        ["http://127.", "http://localhost", "http://[::1]", "http://0.0.0.0", "http://[::]"];
    if is_local.iter().any(|local| login.starts_with(local)) {
        return None;
    }
    let code = QrCode::new(login).ok()?;
    Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}
