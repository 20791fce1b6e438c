//! A pending call: the questions about it, and the fingerprint that binds an answer to them.
//!
//! This is the one type of a pending call, from the gate to the screen: the turn keeps it in its state, a suspended
//! turn stores it, the ledger makes an ask of it, and a batch is a list of them.
//!
//! A pending call has two sets of arguments. A layer may change the arguments on the way in. The approver is shown the
//! final ones, and the approval covers those. The approved pass begins with the first ones again, and each layer does
//! to them what it did before: `origin` → the stack → `shown`. If we began with `shown`, each change would apply
//! twice.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fingerprint::{CallAddress, fingerprint};
use crate::args::Args;
use crate::call::{DeniedBefore, ToolCall};
use crate::decision::Question;
use crate::origin::ValueOrigin;
use crate::outcome::{Deferral, DeferralKind};

/// The state of a deferred call, without the call itself. It is stored in this form, so that each field is part of
/// the stored state of a turn (`tests/corpus`). The fields are not grouped, as `flatten` would lose digits of large
/// numbers.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingCall {
    pub(crate) kind: DeferralKind,
    pub(crate) questions: Arc<[Question]>,
    pub(crate) metadata: Map<String, Value>,
    /// The reason why the call is asked about again after an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<String>,
    /// The arguments that are shown, and that an approval covers.
    pub(crate) shown: Args,
    /// The arguments with which the pass began that deferred the call, and with which the approved pass begins.
    pub(crate) origin: Args,
    /// The tool's identity at its gate.
    pub(crate) tool: String,
    /// The number of times the call was deferred, including this time: 1 for the first.
    pub(crate) deferrals: u32,
    pub(crate) fingerprint: String,
    /// The earlier denials of the same call by a person, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) denied_before: Option<DeniedBefore>,
    /// The trace context (`traceparent`) of the pass that asked, to which the approved pass is linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_in: Option<String>,
    /// The origins of the values that are shown; empty if they are not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) origins: Vec<ValueOrigin>,
}

impl PendingCall {
    /// A deferred call with its fingerprint. `origin` are the arguments with which its pass began, `shown` those with
    /// which it was deferred; layers may have changed them in between.
    pub(crate) fn new(
        address: &CallAddress<'_>,
        tool: String,
        deferral: Deferral,
        (origin, shown): (Args, Args),
        deferrals: u32,
    ) -> Self {
        let fingerprint = fingerprint(address, &tool, &shown, &deferral.questions);
        let Deferral { kind, questions, metadata, changed } = deferral;
        let (denied_before, asked_in) = (None, None);
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
            asked_in,
            origins: Vec::new(),
        }
    }

    /// Returns `true` if the fingerprint is that of this address with the tool, arguments and questions of the pending
    /// call.
    pub(crate) fn is_bound_to(&self, address: &CallAddress<'_>) -> bool {
        self.fingerprint == fingerprint(address, &self.tool, &self.shown, &self.questions)
    }

    /// The deferral with which the pass has ended.
    pub(crate) fn deferral(&self) -> Deferral {
        Deferral {
            kind: self.kind,
            questions: Arc::clone(&self.questions),
            metadata: self.metadata.clone(),
            changed: self.changed.clone(),
        }
    }
}

/// A pending call in a batch.
pub(crate) struct BatchEntry<'a> {
    /// The call with the arguments that are shown. The id of a sub-agent's call is prefixed with the ids of the calls
    /// that the agents work on.
    pub(crate) call: ToolCall,
    /// The sub-agent that makes the call: `root/cleaner`.
    pub(crate) agent: Option<String>,
    pub(crate) pending: Cow<'a, PendingCall>,
}

#[cfg(test)]
impl BatchEntry<'_> {
    /// A call that is deferred for the first time.
    pub(crate) fn example(call: ToolCall, deferral: Deferral) -> Self {
        let address = CallAddress::new("run", 0, &[], call.id());
        let (args, tool) = (call.args().clone(), call.name().to_owned());
        let pending = PendingCall::new(&address, tool, deferral, (args.clone(), args), 1);
        Self { call, agent: None, pending: Cow::Owned(pending) }
    }
}
