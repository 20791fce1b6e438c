//! The digest by which the hook names calls, sessions and variables.

use countersign::args::Args;
use countersign::ledger::Ask;
use serde_json::Value;

/// The SHA-256 of the canonical form of these values. Each value stays a JSON value of its own, so that two lists of
/// texts never have one digest.
///
/// We take the canonical form from the fingerprint of an ask (rule L0), with a text that tells this use from all
/// others.
pub(crate) fn digest(values: Value) -> String {
    Ask::new("countersign hook 1", "", "").with_args(Args::new().with("of", values)).fingerprint()
}
