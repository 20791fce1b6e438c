//! Serves HTTP to clients, some of which never say what they want.

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// How long a client may take to send the head of a request. A connection that waits for one is a file of this process.
const HEAD: Duration = Duration::from_secs(20);

/// How long to wait where no connection can be accepted, as the process has no file left.
const NO_FILES: Duration = Duration::from_millis(100);

/// Serves until it is told to end; requests that have begun are answered then.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    told: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(HEAD, listener, router, told).await
}

async fn serve_within(
    head: Duration,
    listener: TcpListener,
    router: Router,
    told: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head);
    let (connections, mut told) = (GracefulShutdown::new(), pin!(told));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut told => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(NO_FILES).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = server.serve_connection(TokioIo::new(stream), service);
        // A client that goes away, or sends no HTTP, is no problem of this process.
        tokio::spawn(connections.watch(connection));
    }
    connections.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn a_client_that_never_ends_its_head_is_left_and_others_are_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "here" }));
        let (stop, told) = tokio::sync::oneshot::channel::<()>();
        let told = async { _ = told.await };
        let served = tokio::spawn(serve_within(Duration::from_millis(100), listener, router, told));
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").await.unwrap();
        let mut other = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        other.write_all(request).await.unwrap();
        let mut text = String::new();
        other.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("here"), "{text}");
        // It ends without an answer of the router.
        let mut rest = String::new();
        _ = slow.read_to_string(&mut rest).await;
        assert!(!rest.contains("here"), "{rest}");
        stop.send(()).unwrap();
        served.await.unwrap().unwrap();
    }
}
