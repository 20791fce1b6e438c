//! A pending call: what is asked about it, and what an answer to it is bound to.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fingerprint::{CallAddress, fingerprint};
use crate::args::Args;
use crate::call::{DeniedBefore, ToolCall};
use crate::decision::Question;
use crate::outcome::{Deferral, DeferralKind};

/// A deferred call, without the call itself. It is stored in this form, so that each field is part of the stored state of
/// a turn (`tests/corpus`); `flatten` would lose the digits of large numbers.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingCall {
    pub(crate) kind: DeferralKind,
    pub(crate) questions: Vec<Question>,
    pub(crate) metadata: Map<String, Value>,
    /// Why it is asked about again after it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<String>,
    /// The arguments that are shown, and that an approval is for.
    pub(crate) shown: Args,
    /// Where the pass began that led to them, and where the approved one begins.
    pub(crate) origin: Args,
    /// The tool's identity at its gate.
    pub(crate) tool: String,
    /// How often the call was deferred, with this time.
    pub(crate) deferrals: u32,
    pub(crate) fingerprint: String,
    /// A person has denied the same call before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) denied_before: Option<DeniedBefore>,
}

impl PendingCall {
    /// A call that is deferred, bound to what is asked: shown with these arguments, by a pass that began with others.
    pub(crate) fn new(
        address: &CallAddress<'_>,
        tool: String,
        deferral: Deferral,
        (origin, shown): (Args, Args),
        deferrals: u32,
    ) -> Self {
        let fingerprint = fingerprint(address, &tool, &shown, &deferral.questions);
        let Deferral { kind, questions, metadata, changed } = deferral;
        let denied_before = None;
        Self {
            kind,
            questions,
            metadata,
            changed,
            shown,
            origin,
            tool,
            deferrals,
            fingerprint,
            denied_before,
        }
    }

    /// Whether its fingerprint is the one of what it asks about this call.
    pub(crate) fn is_bound_to(&self, address: &CallAddress<'_>) -> bool {
        self.fingerprint == fingerprint(address, &self.tool, &self.shown, &self.questions)
    }

    /// The outcome of the pass that deferred it.
    pub(crate) fn deferral(&self) -> Deferral {
        Deferral {
            kind: self.kind,
            questions: self.questions.clone(),
            metadata: self.metadata.clone(),
            changed: self.changed.clone(),
        }
    }
}

/// A pending call in a batch.
pub(crate) struct BatchEntry {
    /// With the arguments that are shown. A sub-agent's call has its id behind the ids of the calls it works on.
    pub(crate) call: ToolCall,
    /// The sub-agent that makes the call: `root/cleaner`.
    pub(crate) agent: Option<String>,
    pub(crate) pending: PendingCall,
}

#[cfg(test)]
impl BatchEntry {
    /// A call that is deferred for the first time.
    pub(crate) fn example(call: ToolCall, deferral: Deferral) -> Self {
        let address = CallAddress::new("run", 0, &[], call.id());
        let (args, tool) = (call.args().clone(), call.name().to_owned());
        let pending = PendingCall::new(&address, tool, deferral, (args.clone(), args), 1);
        Self { call, agent: None, pending }
    }
}
