//! Spans and metrics by OpenTelemetry's conventions for generative AI.
//!
//! Spans and events go through `tracing` and need no feature. The feature `opentelemetry` adds what `tracing` cannot
//! say: links between the traces of two processes, and metrics.
//!
//! Names of spans and attributes are those of the conventions; what they contain is never an argument or a result (rule
//! S2). A call that waits for a person is in two traces, often of two processes and days apart. One span over that time
//! would never be exported, so the second trace has a link to the first, whose `traceparent` is stored with the pending
//! call.

use tracing::Span;

/// The W3C `traceparent` of a span, to be stored with a pending call; `None` if the span is not exported.
pub(crate) fn trace_parent(span: &Span) -> Option<String> {
    #[cfg(feature = "opentelemetry")]
    return exported::trace_parent(span);
    #[cfg(not(feature = "opentelemetry"))]
    {
        let _ = span;
        None
    }
}

/// Links a span to the one in which its call was asked about, possibly by another process.
pub(crate) fn link(span: &Span, asked_in: Option<&str>) {
    #[cfg(feature = "opentelemetry")]
    exported::link(span, asked_in);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = (span, asked_in);
}

/// Counts a decision of a layer. `key` is the key of the question of an ASK: for rules, the id of the rule.
pub(crate) fn count_decision(layer: impl FnOnce() -> String, decision: &'static str, key: &str) {
    #[cfg(feature = "opentelemetry")]
    exported::count_decision(layer(), decision, key);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = (layer, decision, key);
}

/// The time of a pass. Without the feature it reads no clock.
pub(crate) struct Stopwatch(#[cfg(feature = "opentelemetry")] std::time::Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(
            #[cfg(feature = "opentelemetry")]
            std::time::Instant::now(),
        )
    }

    /// Measures a pass that ended with this outcome.
    pub(crate) fn measure_call(self, tool: &str, outcome: &'static str) {
        #[cfg(feature = "opentelemetry")]
        exported::measure_call(tool, outcome, self.0.elapsed());
        #[cfg(not(feature = "opentelemetry"))]
        let _ = (self, tool, outcome);
    }
}

#[cfg(feature = "opentelemetry")]
mod exported {
    use std::sync::OnceLock;
    use std::time::Duration;

    use opentelemetry::metrics::{Counter, Histogram};
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    };
    use opentelemetry::{KeyValue, global};
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    /// The instruments, from the meter provider that the application has set before the first call.
    struct Instruments {
        decisions: Counter<u64>,
        calls: Histogram<f64>,
    }

    fn instruments() -> &'static Instruments {
        static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();
        INSTRUMENTS.get_or_init(|| {
            let meter = global::meter("countersign");
            Instruments {
                decisions: meter
                    .u64_counter("countersign.decisions")
                    .with_description("Decisions of layers about calls, by layer, decision and key of the question")
                    .build(),
                calls: meter
                    .f64_histogram("gen_ai.execute_tool.duration")
                    .with_unit("s")
                    .with_description("Time of a pass of a call through its layers and tool, by outcome")
                    .build(),
            }
        })
    }

    pub(super) fn trace_parent(span: &Span) -> Option<String> {
        let context = span.context();
        let context = context.span().span_context().clone();
        context.is_valid().then(|| {
            let flags = context.trace_flags().to_u8();
            format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id())
        })
    }

    pub(super) fn link(span: &Span, asked_in: Option<&str>) {
        if let Some(context) = asked_in.and_then(span_context) {
            span.add_link(context);
        }
    }

    /// The context that a `traceparent` names; `None` if it is not well-formed.
    fn span_context(text: &str) -> Option<SpanContext> {
        let mut parts = text.split('-');
        let (_version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
        let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
        let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
        context.is_valid().then_some(context)
    }

    pub(super) fn count_decision(layer: String, decision: &'static str, key: &str) {
        let mut attributes = vec![
            KeyValue::new("countersign.layer", layer),
            KeyValue::new("countersign.decision", decision),
        ];
        if !key.is_empty() {
            attributes.push(KeyValue::new("countersign.question.key", key.to_owned()));
        }
        instruments().decisions.add(1, &attributes);
    }

    pub(super) fn measure_call(tool: &str, outcome: &'static str, duration: Duration) {
        let attributes = [
            KeyValue::new("gen_ai.tool.name", tool.to_owned()),
            KeyValue::new("countersign.outcome", outcome),
        ];
        instruments().calls.record(duration.as_secs_f64(), &attributes);
    }
}
