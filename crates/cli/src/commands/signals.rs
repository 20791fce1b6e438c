//! The signals by which a program that serves is told to end.

/// Completes at Ctrl-C, or at the signal of a service manager. From the call on, also before the future is polled, such a
/// signal does not end the process: call it before you tell anyone that you serve.
#[cfg(unix)]
pub(crate) fn told() -> impl Future<Output = ()> + Send + use<> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    async {
        let [Ok(mut terminate), Ok(mut interrupt)] = signals else {
            let _ = tokio::signal::ctrl_c().await;
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

/// Completes at Ctrl-C.
#[cfg(not(unix))]
pub(crate) async fn told() {
    let _ = tokio::signal::ctrl_c().await;
}
