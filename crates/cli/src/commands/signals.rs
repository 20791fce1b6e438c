//! The signals by which a program that serves is told to end.

/// Completes at Ctrl-C, or at the signal of a service manager. Once you have called this function, such a signal does not
/// end the process, even before you poll the future. So call it before you tell anyone that you serve.
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
