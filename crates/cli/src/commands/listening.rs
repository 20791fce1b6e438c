//! The check of addresses that this program listens on.

use std::net::SocketAddr;

use clap::Args;

use crate::output::CommandError;

/// The option by which a command may listen where other machines reach it.
#[derive(Args)]
pub(crate) struct ListeningArgs {
    /// Listen on an address that other machines reach, without encryption: they can read the secret
    #[arg(long)]
    danger_unencrypted: bool,
}

impl ListeningArgs {
    /// Refuses an address that other machines reach, unless it was asked for.
    pub(crate) fn check(&self, address: SocketAddr) -> Result<(), CommandError> {
        if address.ip().is_loopback() || self.danger_unencrypted {
            return Ok(());
        }
        Err(CommandError::Usage(format!(
            "other machines can reach {address}, and nothing that is sent there is encrypted: listen on 127.0.0.1 \
             behind a proxy with TLS, or pass `--danger-unencrypted`"
        )))
    }
}

/// Reads an address with a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.rsplit(':').next().filter(|port| port.parse::<u16>().is_ok());
    text.parse().map_err(|_| {
        format!("an address is a number and a port, such as `127.0.0.1:{}`", port.unwrap_or("8788"))
    })
}
