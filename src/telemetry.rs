//! Spans and metrics by OpenTelemetry's conventions for generative AI.
//!
//! Spans and events go through `tracing` and need no feature. The feature `opentelemetry` adds what `tracing` cannot
//! say: links between the traces of two processes, and metrics.
//!
//! Names of spans and attributes are those of the conventions; what they contain is never an argument or a result (rule
//! S2). A call that waits for a person is in two traces, often of two processes and days apart. One span over that time
//! would never be exported, so the second trace has a link to the first, whose `traceparent` is stored with the pending
//! call.

use std::time::Duration;

use tracing::Span;

/// `true` if metrics are exported at all, so that nothing is read for them in other builds.
pub(crate) const EXPORTS: bool = cfg!(feature = "opentelemetry");

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

/// The name of a type in logs and errors, without its path and without parameters.
pub(crate) fn last_name(full: &'static str) -> &'static str {
    full.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(full)
}

/// Counts a decision of a layer. `key` is the key of the question of an ASK, or of a DENY: for rules, the id of the rule.
pub(crate) fn count_decision(layer: impl FnOnce() -> String, decision: &'static str, key: &str) {
    #[cfg(feature = "opentelemetry")]
    exported::count_decision(layer(), decision, key);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = (layer, decision, key);
}

/// The end of an ask: its answer, or that there is none any more.
pub(crate) struct AskEnd<'a> {
    pub(crate) tool: &'a str,
    /// The answer, or `expired`, `cancelled`, `closed` or `ran_unapproved`.
    pub(crate) answer: &'static str,
    /// The kind of answerer that gave the answer: `person`, `policy` or `grant`; `None` without an answer. Names of
    /// people are in the log and in the events, and no attributes of metrics.
    pub(crate) by: Option<&'static str>,
    /// The time since the call was asked about, where this process knows it.
    pub(crate) waited: Option<Duration>,
}

/// Counts the end of an ask for each of its questions, which are layer and key, and measures how long it was pending.
pub(crate) fn measure_ask<'q>(
    end: &AskEnd<'_>,
    questions: impl Iterator<Item = (&'q str, &'q str)>,
) {
    #[cfg(feature = "opentelemetry")]
    exported::measure_ask(end, questions);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = (end.tool, end.answer, end.by, end.waited, questions);
}

/// Reports how many asks of a store are pending now.
pub(crate) fn observe_pending(count: u64) {
    #[cfg(feature = "opentelemetry")]
    exported::observe_pending(count);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = count;
}

/// The time of a pass, or of a question to a handler. Without the feature it reads no clock.
pub(crate) struct Stopwatch(#[cfg(feature = "opentelemetry")] std::time::Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(
            #[cfg(feature = "opentelemetry")]
            std::time::Instant::now(),
        )
    }

    /// The time since the start; `None` without the feature.
    #[cfg_attr(
        not(feature = "opentelemetry"),
        expect(clippy::unused_self, reason = "the other build has a time to tell")
    )]
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        #[cfg(feature = "opentelemetry")]
        return Some(self.0.elapsed());
        #[cfg(not(feature = "opentelemetry"))]
        None
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

    use opentelemetry::metrics::{Counter, Gauge, Histogram};
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    };
    use opentelemetry::{KeyValue, global};
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    use super::AskEnd;

    /// The instruments, from the meter provider that the application has set before the first call.
    struct Instruments {
        decisions: Counter<u64>,
        calls: Histogram<f64>,
        answers: Counter<u64>,
        asks: Histogram<f64>,
        pending: Gauge<u64>,
    }

    /// The buckets of the time to a decision: from a policy's milliseconds to a person who comes back after the weekend.
    /// The default ones of OpenTelemetry end at 10 seconds.
    const HOW_LONG: [f64; 14] = [
        0.1, 1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0,
        259_200.0, 604_800.0,
    ];

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
                answers: meter
                    .u64_counter("countersign.answers")
                    .with_description("Ends of asks, by layer and key of the question, answer and kind of answerer")
                    .build(),
                asks: meter
                    .f64_histogram("countersign.ask.duration")
                    .with_unit("s")
                    .with_description("Time from an ask to its end, by tool, answer and kind of answerer")
                    .with_boundaries(HOW_LONG.to_vec())
                    .build(),
                pending: meter
                    .u64_gauge("countersign.asks.pending")
                    .with_description("Asks of the ledger's store that are pending, as of the last `Ledger::expire`")
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
        let layer = KeyValue::new("countersign.layer", layer);
        let decision = KeyValue::new("countersign.decision", decision);
        let attributes: Vec<_> = [layer, decision].into_iter().chain(key_of(key)).collect();
        instruments().decisions.add(1, &attributes);
    }

    pub(super) fn measure_ask<'q>(
        end: &AskEnd<'_>,
        questions: impl Iterator<Item = (&'q str, &'q str)>,
    ) {
        let answer = KeyValue::new("countersign.answer", end.answer);
        let by = end.by.map(|by| KeyValue::new("countersign.answered_by", by));
        let ended = || std::iter::once(answer.clone()).chain(by.clone());
        for (layer, key) in questions {
            let layer = KeyValue::new("countersign.layer", layer.to_owned());
            let attributes: Vec<_> = ended().chain([layer]).chain(key_of(key)).collect();
            instruments().answers.add(1, &attributes);
        }
        if let Some(waited) = end.waited {
            let tool = KeyValue::new("gen_ai.tool.name", end.tool.to_owned());
            let attributes: Vec<_> = ended().chain([tool]).collect();
            instruments().asks.record(waited.as_secs_f64(), &attributes);
        }
    }

    pub(super) fn observe_pending(count: u64) {
        instruments().pending.record(count, &[]);
    }

    /// The attribute of a key; none where the layer has not set one.
    fn key_of(key: &str) -> Option<KeyValue> {
        (!key.is_empty()).then(|| KeyValue::new("countersign.question.key", key.to_owned()))
    }

    pub(super) fn measure_call(tool: &str, outcome: &'static str, duration: Duration) {
        let attributes = [
            KeyValue::new("gen_ai.tool.name", tool.to_owned()),
            KeyValue::new("countersign.outcome", outcome),
        ];
        instruments().calls.record(duration.as_secs_f64(), &attributes);
    }
}
