//! The handshake that a server is offered: the newest revision first, and an earlier one where the server refuses that
//! (rule M5).
//!
//! | the server | then |
//! |---|---|
//! | refuses a revision by an error | the newest that both may know is tried |
//! | ends, or closes the stream, in place of its answer to the newest handshake | the earlier handshake is tried alone |
//! | ends in place of its answer to the earlier handshake | the next earlier revision is tried |
//!
//! If a server ends, we start it again at most [`MAX_ENDED`] times: a broken one ends each time.

use rmcp::model::{ClientCapabilities, ClientConfig, ErrorCode, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode};

use crate::error::supported;

/// The number of times we start a server again that has ended in place of an answer.
const MAX_ENDED: u8 = 2;

/// A handshake that is offered to a server.
#[derive(Clone, Default)]
pub(super) struct Hello {
    /// The revision of the earlier form of the handshake; by default the newest one that has it.
    legacy_version: Option<ProtocolVersion>,
    /// The number of times the server has ended in place of an answer. After the first time it is asked for the earlier
    /// form alone.
    ended: u8,
}

impl Hello {
    /// The handshake that is tried next, after this one has failed; `None` where the failure is about something else.
    pub(super) fn after(&self, error: &ClientInitializeError) -> Option<Self> {
        if let Some(refused) = refusal(error) {
            let legacy_version = Some(earlier(refused, self.revision())?);
            return Some(Self { legacy_version, ..self.clone() });
        }
        let in_earlier_form = has_ended(error)?;
        if self.ended >= MAX_ENDED {
            return None;
        }
        let legacy_version = match in_earlier_form {
            true => Some(before(self.revision()).next()?.clone()),
            false => self.legacy_version.clone(),
        };
        Some(Self { legacy_version, ended: self.ended + 1 })
    }

    /// The revision of the earlier form of the handshake.
    pub(super) fn revision(&self) -> &ProtocolVersion {
        self.legacy_version.as_ref().unwrap_or(&ProtocolVersion::V_2025_11_25)
    }

    /// The form of the handshake.
    pub(super) fn mode(&self) -> ClientLifecycleMode {
        match self.ended {
            0 => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: self.legacy_version.clone(),
            },
            _ => ClientLifecycleMode::Initialize,
        }
    }

    /// The description of this client in the handshake.
    pub(super) fn config(&self, can: ClientCapabilities, me: Implementation) -> ClientConfig {
        let mut config = ClientConfig::new(can, me);
        if self.ended > 0 {
            config.protocol_version = self.revision().clone();
        }
        config
    }
}

/// The error by which a server has refused a handshake.
fn refusal(error: &ClientInitializeError) -> Option<&rmcp::ErrorData> {
    match error {
        ClientInitializeError::JsonRpcError(refused) => Some(refused),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => refusal(fallback),
        _ => None,
    }
}

/// Returns whether the earlier form of the handshake was asked for, of a server that has ended in place of an answer.
fn has_ended(error: &ClientInitializeError) -> Option<bool> {
    match error {
        ClientInitializeError::ConnectionClosed(context) => Some(context.starts_with("initialize")),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => has_ended(fallback),
        _ => None,
    }
}

/// The newest revision that both ends may know, for a server that has refused the one that it was asked for. Without a list
/// of those that it knows, the next earlier one is tried. `None` where the refusal is about something else.
fn earlier(refused: &rmcp::ErrorData, tried: &ProtocolVersion) -> Option<ProtocolVersion> {
    let known = supported(refused);
    let message = refused.message.to_lowercase();
    let is_of_revision = !known.is_empty()
        || [ErrorCode::INVALID_PARAMS, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION]
            .contains(&refused.code)
        || message.contains("version")
        || message.contains("protocol");
    let may_be = |it: &&ProtocolVersion| known.is_empty() || known.iter().any(|k| k == it.as_str());
    before(tried).filter(|_| is_of_revision).find(may_be).cloned()
}

/// The revisions before this one, the newest first.
fn before(tried: &ProtocolVersion) -> impl Iterator<Item = &'static ProtocolVersion> {
    let all = ProtocolVersion::KNOWN_VERSIONS.iter().rev();
    all.filter(move |it| it.as_str() < tried.as_str())
}
