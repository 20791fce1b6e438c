//! The guard over HTTP: the address, the secret of its clients, and serving.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use countersign_mcp::Server;

use super::ending::EndSignal;
use super::http_clients;
use crate::Context;
use crate::listening::{ListeningArgs, address};
use crate::output::CommandError;
use crate::paths::absolute;
use crate::serving::serve;

/// The time from when the guard is told to end until it does. In this time it closes connections, and records the calls
/// in flight whose clients have gone.
const CLOSING: Duration = Duration::from_secs(2);

/// The options about HTTP.
#[derive(Args)]
pub(super) struct HttpArgs {
    /// Serve streamable HTTP at this address, in place of stdio, for clients that have the secret
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// The file of the secret of clients; by default `guard.token` in the state directory
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(super) token_file: Option<PathBuf>,
    #[command(flatten)]
    listening: ListeningArgs,
}

/// An address, and the secret that each request has to carry.
pub(super) struct WebDoor {
    address: SocketAddr,
    secret: String,
    file: String,
}

impl HttpArgs {
    /// Returns `true` if clients come over HTTP, and not on stdio.
    pub(super) fn listens(&self) -> bool {
        self.listen.is_some()
    }

    /// The door for clients over HTTP; `None` on stdio.
    pub(super) fn door(&self, context: &Context) -> Result<Option<WebDoor>, CommandError> {
        let Some(address) = self.listen else { return Ok(None) };
        self.listening.check(address)?;
        let (config, directories) = (&context.config, &context.directories);
        let secret = config.guard_token(directories, self.token_file.as_deref())?;
        let file = config.guard_token_file(directories, self.token_file.as_deref());
        Ok(Some(WebDoor { address, secret, file: absolute(&file)? }))
    }
}

impl WebDoor {
    /// Serves until the program is told to end.
    pub(super) async fn listen(
        self,
        server: Server,
        name: &str,
        principal: &str,
        told: EndSignal,
    ) -> Result<(), CommandError> {
        let Self { address, secret, file } = self;
        let server = server.bearer(&secret, principal);
        let mut server =
            server.map_err(|error| CommandError::Usage(format!("`{file}`: {error}")))?;
        // Clients on other machines use other names for this one.
        server = match address.ip() {
            ip if ip.is_unspecified() => server.hosts([] as [String; 0]),
            ip if !ip.is_loopback() => server.hosts([ip.to_string()]),
            _ => server,
        };
        let router = server.router()?;
        let problem = |error: std::io::Error| CommandError::Store(format!("{address}: {error}"));
        let listener = tokio::net::TcpListener::bind(address).await.map_err(problem)?;
        let url = format!("http://{}/mcp", listener.local_addr().map_err(problem)?);
        let mut line = format!("countersign guard listens on {url}\n");
        line += &format!("each request needs `Authorization: Bearer` with the secret in {file}\n");
        if std::io::stderr().is_terminal() {
            line += &http_clients::lines(name, &url, &file);
        }
        // A closed stderr is no error.
        let _ = std::io::stderr().write_all(line.as_bytes());
        let served = serve(listener, router, told.clone());
        let failed = async {
            served.await?;
            std::future::pending::<std::io::Result<()>>().await
        };
        tokio::select! {
            failed = failed => failed.map_err(problem),
            () = async { told.await; tokio::time::sleep(CLOSING).await } => Ok(()),
        }
    }
}
