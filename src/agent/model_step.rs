//! The step that sends a request to the model, and the interpretation of its response.

use std::sync::Arc;

use tracing::Instrument as _;

use super::result::{RunError, RunOutput, RunResult};
use super::run_loop::{Called, Next, RunLoop};
use crate::call::{ToolCall, ToolDefinition};
use crate::error::{Error, UserError};
use crate::message::{Message, ResponsePart};
use crate::model::{Deltas, Heard, ModelRequest, ModelResponse};
use crate::outcome::Outcome;
use crate::turn::{RunEvent, admit, unique_ids};

impl RunLoop<'_> {
    pub(super) async fn ask_model(
        &mut self,
    ) -> Result<(ModelResponse, Vec<ToolDefinition>), Error> {
        let mut tools = self.turn().definitions().await?;
        if let Some(structured) = &self.output.structured {
            if tools.iter().any(|tool| tool.name() == structured.name()) {
                let (first, second) = ("the agent's tools".into(), "its output".into());
                let name = structured.name().to_owned();
                return Err(UserError::ToolConflict { name, first, second }.into());
            }
            tools.push(structured.definition());
        }
        self.reads.request(&self.state.history, &self.turn, &tools);
        let exceeded = |exceeded| Error::UsageLimit { exceeded, ids: Vec::new() };
        self.meter.take_request().map_err(exceeded)?;
        let mut request =
            ModelRequest::new(Arc::clone(&self.state.history)).with_tools(tools.clone());
        if let Some(instructions) = &self.agent.instructions {
            request = request.with_instructions(Arc::clone(instructions));
        }
        let deltas = self.watchers.are_there().then(|| self.deltas());
        if let Some(deltas) = &deltas {
            request = request.with_deltas(deltas.clone());
        }
        let span = tracing::info_span!(
            "chat",
            gen_ai.operation.name = "chat",
            gen_ai.response.model = tracing::field::Empty,
            gen_ai.usage.input_tokens = tracing::field::Empty,
            gen_ai.usage.output_tokens = tracing::field::Empty,
            error.type = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        let response = self.agent.model.respond(request).instrument(span.clone()).await;
        match &response {
            Ok(response) => self.record_tokens(&span, response),
            Err(_) => {
                span.record("error.type", "model_error");
                span.record("otel.status_code", "ERROR");
            }
        }
        if let Some(deltas) = deltas {
            deltas.end(response.as_ref().ok().map(|response| said(&response.parts)).as_deref());
        }
        Ok((response.map_err(Error::Model)?, tools))
    }

    /// Records the tokens of a response in the span of its request, and the sum in the span of the run.
    fn record_tokens(&mut self, span: &tracing::Span, response: &ModelResponse) {
        if let Some(model) = &response.model {
            span.record("gen_ai.response.model", model.as_str());
        }
        let Some(tokens) = response.tokens else { return };
        self.tokens.input = self.tokens.input.saturating_add(tokens.input);
        self.tokens.output = self.tokens.output.saturating_add(tokens.output);
        // OpenTelemetry's integers are signed; an unsigned one would be exported as text.
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        for (span, tokens) in [(span, tokens), (&self.span, self.tokens)] {
            span.record("gen_ai.usage.input_tokens", signed(tokens.input));
            span.record("gen_ai.usage.output_tokens", signed(tokens.output));
        }
    }

    fn deltas(&self) -> Deltas {
        let watchers = self.watchers.clone();
        Deltas::new(move |heard| {
            watchers.tell(|| match heard {
                Heard::Text(text) => RunEvent::TextDelta { text: text.to_owned() },
                Heard::Again => RunEvent::ResponseRestarted,
            });
        })
    }

    /// Adds a response to the history, and determines the next step from it.
    pub(super) fn enter(
        &mut self,
        response: ModelResponse,
        shown: Vec<ToolDefinition>,
    ) -> Result<Option<RunResult>, RunError> {
        let text = said(&response.parts);
        let parts = self.admitted(response.parts);
        let calls: Vec<_> = parts.iter().filter_map(call).cloned().collect();
        self.watchers.tell(|| RunEvent::Response { parts: parts.clone() });
        if !parts.is_empty() {
            // Calls with one id could not be told apart, neither here nor in stored state.
            if let Err(kind) = unique_ids(&calls) {
                return Err(self.stop(kind));
            }
            Arc::make_mut(&mut self.state.history).push(Message::Response { parts });
        }
        if calls.is_empty() {
            self.state.responses += 1;
            if self.output.text {
                return Ok(Some(self.end(RunOutput::Text(text))));
            }
            return self.ask_for_answer();
        }
        let streamed = self.ends_with_text && self.output.text && !text.is_empty();
        let mut answer = streamed.then_some(RunOutput::Text(text));
        let mut calls: Vec<_> = calls.into_iter().map(|call| (call, None)).collect();
        self.decide_outputs(&mut calls, &mut answer);
        let shown = shown.into_iter().filter(|tool| !self.is_output(tool.name())).collect();
        self.next = Next::Call(Called { calls, shown, answer });
        Ok(None)
    }

    /// The parts of a response, with call ids that are unique in the history, and without empty texts, which providers
    /// refuse.
    fn admitted(&self, parts: Vec<ResponsePart>) -> Vec<ResponsePart> {
        let used: Vec<&str> =
            self.state.history.iter().flat_map(Message::tool_calls).map(ToolCall::id).collect();
        let calls = parts.iter().filter_map(call).cloned().collect();
        let mut calls = admit(calls, &used).into_iter();
        let filled =
            |part: &ResponsePart| !matches!(part, ResponsePart::Text(text) if text.is_empty());
        let renamed = |part| match part {
            ResponsePart::ToolCall(call) => ResponsePart::ToolCall(calls.next().unwrap_or(call)),
            part => part,
        };
        parts.into_iter().filter(filled).map(renamed).collect()
    }

    pub(super) fn is_output(&self, tool: &str) -> bool {
        self.output.structured.as_ref().is_some_and(|structured| structured.name() == tool)
    }

    /// Sets the outcomes of the calls of the output tool. The first call that fits becomes the answer.
    pub(super) fn decide_outputs(
        &self,
        calls: &mut [(ToolCall, Option<Outcome>)],
        answer: &mut Option<RunOutput>,
    ) {
        for (call, outcome) in calls.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            *outcome = self.output_call(call, answer);
        }
        if answer.is_none() {
            return;
        }
        // A call that fits is the answer, so that no other call of the output tool has to be retried.
        let retried = |outcome: &Outcome| matches!(outcome, Outcome::Retry(_));
        for (call, outcome) in calls {
            if self.is_output(call.name()) && outcome.as_ref().is_some_and(retried) {
                *outcome = Some(Outcome::failed("Not used: another final answer was given."));
            }
        }
    }

    /// The outcome of a call of the output tool; `None` for a call of any other tool.
    fn output_call(&self, call: &ToolCall, answer: &mut Option<RunOutput>) -> Option<Outcome> {
        let structured = self.output.structured.as_ref().filter(|it| it.name() == call.name())?;
        if answer.is_some() {
            return Some(Outcome::failed("Not used: a final answer was already given."));
        }
        let read = match call.unreadable() {
            Some(error) => Err(error.to_string()),
            None => structured.read(call.args()),
        };
        Some(match read {
            Ok(value) => {
                *answer = Some(RunOutput::Structured(value));
                Outcome::returned("The final answer was taken.")
            }
            Err(problem) => Outcome::retry(format!("The final answer does not fit: {problem}.")),
        })
    }

    /// If the response is text, but the output needs a structured answer, asks the model for it, at the cost of one
    /// retry.
    fn ask_for_answer(&mut self) -> Result<Option<RunResult>, RunError> {
        let structured = self.output.structured.as_ref();
        let name = structured.map_or("", |structured| structured.name()).to_owned();
        self.say(format!("Give the final answer by calling `{name}`."));
        if let Err(kind) = self.retries.spend_on(&name) {
            return Err(self.stop(kind));
        }
        self.next = Next::Ask;
        Ok(None)
    }
}

fn call(part: &ResponsePart) -> Option<&ToolCall> {
    match part {
        ResponsePart::ToolCall(call) => Some(call),
        ResponsePart::Text(_) | ResponsePart::Thinking { .. } => None,
    }
}

/// The text parts of a response, joined.
fn said(parts: &[ResponsePart]) -> String {
    let text = parts.iter().filter_map(|part| match part {
        ResponsePart::Text(text) => Some(text.as_str()),
        ResponsePart::ToolCall(_) | ResponsePart::Thinking { .. } => None,
    });
    text.collect()
}
