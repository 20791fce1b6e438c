//! The results that a turn adds to the record of its run's reads (rule O2).

use std::sync::Arc;

use serde_json::Value;

use super::call_state::{CallState, State};
use crate::call::ToolDefinition;
use crate::origin::{ReadCall, ReadLabel, ReadRecord};
use crate::outcome::Outcome;

/// Says how the results of a tool are labelled.
pub(super) type LabelOf = Arc<dyn Fn(&ToolDefinition) -> Option<ReadLabel> + Send + Sync>;

/// The functions that say how results are labelled.
#[derive(Clone, Default)]
pub(crate) struct Labels(Vec<LabelOf>);

impl Labels {
    pub(super) fn add(&mut self, label: LabelOf) {
        self.0.push(label);
    }

    /// Adds those of a parent.
    pub(super) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// The label of a tool: all that its definition and the functions say, together.
    pub(super) fn label_of(&self, definition: &ToolDefinition) -> ReadLabel {
        let said = self.0.iter().filter_map(|label| label(definition));
        let all = definition.reads().cloned().into_iter().chain(said);
        all.reduce(ReadLabel::and).unwrap_or_else(ReadLabel::unlabelled)
    }
}

/// Adds what the model wrote in the calls of a response.
pub(super) fn wrote(record: Option<&ReadRecord>, calls: &[CallState]) {
    let Some(record) = record else { return };
    calls.iter().for_each(|call| record.model_wrote(&call.call.args().to_value()));
}

/// Adds the results that the model will be told: those of calls that have run, or were answered in their place.
pub(super) fn results(
    record: Option<&ReadRecord>,
    calls: &[CallState],
    label_of: impl Fn(&CallState) -> Option<ReadLabel>,
) {
    let Some(record) = record else { return };
    for call in calls.iter().filter(|call| !call.settled_before) {
        let State::Settled(outcome) = &call.state else { continue };
        let is_result = matches!(outcome, Outcome::Returned(_)) || call.execution.started();
        // A call without a tool is one of a final answer, whose result is ours.
        let Some(label) = label_of(call).filter(|_| is_result) else { continue };
        let read = ReadCall::new(call.call.id(), call.call.name(), call.args.to_value());
        match (outcome, outcome.content()) {
            (Outcome::Unknown(_), _) | (_, None) => record.let_through(&label, &read),
            (Outcome::Returned(returned), Some(content)) => {
                record.read(&label, &read, &content);
                if let Some(added) = &returned.content {
                    record.read(&ReadLabel::unlabelled().and(label), &read, added);
                }
            }
            // The text of an error has no fields.
            (_, Some(content)) => record.read(&label, &read, &Value::String(told(&content))),
        }
    }
}

fn told(content: &Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}
