//! Serves a router to clients that may be slow, broken or hostile: a connection that does not send a request in time is
//! closed, and connections are limited, so that idle ones neither use up the process's files nor keep others out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use clap::Args;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_http::timeout::RequestBodyTimeoutLayer;

/// The messages that a server takes from its clients.
#[derive(Args, Clone, Copy)]
pub(crate) struct Clients {
    /// How many connections are open at once; more wait until one is closed. Keep it below the limit of open files.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    max_connections: usize,
    /// How long a connection may take to send the head of a request, from its beginning or from the last response; also how
    /// long the body of a request may pause.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    header_timeout_s: u64,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a server without connections answers nothing".to_owned()),
        Ok(n) => Ok(n),
        Err(_) => Err("it is not a number of connections".to_owned()),
    }
}

/// Serves until `stop` completes, and then until the requests that have begun are answered.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    clients: Clients,
    stop: impl Future<Output = ()>,
) {
    let pause = Duration::from_secs(clients.header_timeout_s);
    let service = TowerToHyperService::new(router.layer(RequestBodyTimeoutLayer::new(pause)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(pause);
    let places = Arc::new(Semaphore::new(clients.max_connections));
    let open = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stop => break,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // No file is left for another connection: an open one has to close first.
                eprintln!("error: a connection was not accepted: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service.clone()));
        tokio::spawn(async move {
            // A client that breaks off is no error of this server.
            let _ = connection.await;
            drop(place);
        });
    }
    open.shutdown().await;
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}
