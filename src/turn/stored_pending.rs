//! A pending call, as it is stored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::slot::Waiting;
use crate::args::Args;
use crate::call::DeniedBefore;
use crate::decision::Question;
use crate::outcome::{Deferral, DeferralKind};

/// The pending call, with what an answer to it is bound to.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredWaiting {
    pub(super) kind: DeferralKind,
    pub(super) questions: Vec<Question>,
    pub(super) metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changed: Option<String>,
    pub(super) shown: Args,
    pub(super) origin: Args,
    pub(super) tool: String,
    pub(super) deferrals: u32,
    pub(super) fingerprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) denied_before: Option<DeniedBefore>,
}

impl From<&Waiting> for StoredWaiting {
    fn from(it: &Waiting) -> Self {
        Self {
            kind: it.deferral.kind,
            questions: it.deferral.questions.clone(),
            metadata: it.deferral.metadata.clone(),
            changed: it.deferral.changed.clone(),
            shown: it.shown.clone(),
            origin: it.origin.clone(),
            tool: it.tool.clone(),
            deferrals: it.deferrals,
            fingerprint: it.fingerprint.clone(),
            denied_before: it.denied_before.clone(),
        }
    }
}

impl From<&StoredWaiting> for Waiting {
    fn from(it: &StoredWaiting) -> Self {
        let deferral = Deferral {
            kind: it.kind,
            questions: it.questions.clone(),
            metadata: it.metadata.clone(),
            changed: it.changed.clone(),
        };
        Self {
            deferral,
            shown: it.shown.clone(),
            origin: it.origin.clone(),
            tool: it.tool.clone(),
            deferrals: it.deferrals,
            fingerprint: it.fingerprint.clone(),
            denied_before: it.denied_before.clone(),
        }
    }
}
