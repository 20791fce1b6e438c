//! The assistant of the first example, in a chat: a React page with an unmodified `useChat`, and buttons for pending
//! calls.
//!
//! ```text
//! (cd examples/chat/web && npm ci && npm run build)          once: builds the page
//! cargo run -p chat                                          then open the address that it prints
//! ```
//!
//! | file | is |
//! |---|---|
//! | `main.rs` | the server: who may talk to it, the page, the chats |
//! | `demo.rs` | the assistant: its tools and its permission stack are those of `examples/assistant` |
//! | `payments.rs` | a tool that shows a table before it is approved |
//! | `spoken.rs` | the part of the conversation that the scripted model reads |
//! | `places.rs` | a folder to tidy up for each chat |
//! | `web/` | the page |
//!
//! Chats, pending calls and decisions are stored in a file: the server can be stopped and started again at any time,
//! also while a call is pending. It listens on this machine only, and answers only pages of its own.

#[path = "../../assistant/src/model/mod.rs"]
#[expect(dead_code, reason = "the first example uses more of it")]
mod assistant;
mod demo;
mod payments;
mod places;
#[path = "../../assistant/src/sandbox.rs"]
mod sandbox;
#[path = "../../approvals/src/server.rs"]
mod server;
mod spoken;
#[path = "../../assistant/src/stack.rs"]
mod stack;
#[path = "../../assistant/src/tools.rs"]
mod tools;
#[path = "../../assistant/src/workspace.rs"]
#[expect(dead_code, reason = "the first example makes a temporary copy")]
mod workspace;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::Parser;
use countersign::ledger::Ledger;
use countersign_ai_sdk::{Chats, ClientVersion, Principal, router};
use countersign_sqlite::SqliteStore;
use tokio::net::TcpListener;
use tower_http::services::ServeDir;

use places::Places;

/// The page may load from here, and from nowhere else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Parser)]
#[command(about = "The assistant in a chat, with an unmodified AI SDK page.")]
struct Options {
    /// The port to listen at, on this machine only; 0 takes a free one.
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Where chats and folders are kept.
    #[arg(long, default_value_os_t = std::env::temp_dir().join("countersign-chat"))]
    data: PathBuf,
    #[command(flatten)]
    clients: server::Clients,
    /// A real model, by its name at its provider; needs the feature `genai` and the provider's key.
    #[arg(long)]
    model: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), Box<dyn Error>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/dist");
    if !page.join("index.html").is_file() {
        return Err(
            "the page is not built: (cd examples/chat/web && npm ci && npm run build)".into()
        );
    }
    let model = match &options.model {
        Some(name) => Some(assistant::real::named(name).await?),
        None => None,
    };
    let places = Places::open(&options.data)?;
    let ledger = Ledger::new(SqliteStore::open(options.data.join("chats.db")).await?)
        .worker(format!("chat-{}", std::process::id()))
        .lease(demo::LEASE);
    let agent = demo::agent(model).ledger(ledger);
    let chats = Chats::new(agent)
        // The version of `ai` in the page's package.json.
        .client(ClientVersion::new(7, 0, 173))
        .each_run(move |run, principal, chat| {
            // Without a folder and its rules, each call is denied.
            let place = || -> Result<_, Box<dyn Error>> {
                let sandbox = places.of(principal.as_str(), chat)?;
                let rules = stack::rules(sandbox.dir(), None)?;
                Ok((sandbox, rules))
            };
            match place() {
                Ok((sandbox, rules)) => run.deps(sandbox).deps(rules),
                Err(error) => {
                    eprintln!("error: no folder for chat {}: {error}", chat.escape_debug());
                    run
                }
            }
        });
    let listener = TcpListener::bind(("127.0.0.1", options.port)).await?;
    let address = listener.local_addr()?;
    let own = Own { hosts: [format!("{address}"), format!("localhost:{}", address.port())] };
    // The demo has one principal, the user of this machine. A real server authenticates its users.
    let chats = router(chats, async |_| Ok(Principal::new("you")));
    let app = Router::new()
        .nest("/api/chat", chats)
        // The page polls this route to notice that the server is lost.
        .route("/api/alive", get(async || StatusCode::NO_CONTENT))
        .fallback_service(ServeDir::new(page))
        .layer(from_fn_with_state(own, for_own_pages));
    println!("Open http://{address}");
    println!("Chats and folders are kept in {}.", options.data.display());
    server::serve(listener, app, options.clients, std::future::pending()).await;
    Ok(())
}

/// The names of this server.
#[derive(Clone)]
struct Own {
    hosts: [String; 2],
}

impl Own {
    /// Returns `true` if a request comes from a page of this server. Another host name means DNS rebinding, and
    /// another origin a forged request from another site.
    fn is_asked(&self, headers: &HeaderMap) -> bool {
        let header =
            |name| headers.get(name).map(|it: &HeaderValue| it.to_str().unwrap_or_default());
        let is_own = |host: &str| self.hosts.iter().any(|own| own == host);
        let origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_own);
        header(HOST).is_some_and(is_own) && header(ORIGIN).is_none_or(origin)
    }
}

/// Answers only pages of this server, which load nothing from elsewhere.
async fn for_own_pages(State(own): State<Own>, request: Request, next: Next) -> Response {
    if !own.is_asked(request.headers()) {
        let text = "this server answers its own page only: open the address that it printed\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
