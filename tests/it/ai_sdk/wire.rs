//! The wire: every chunk and part as the AI SDK writes it; unknown ones are kept.

use countersign::turn::RunEvent;
use countersign_ai_sdk::{
    Chunk, ChunkWriter, ClientVersion, DONE, FinishReason, HEADERS, KEEP_ALIVE, Role, UiMessage,
    UiPart, encode,
};
use serde_json::{Value, json};

/// Every chunk with all of its fields.
fn full() -> Vec<Value> {
    let meta = json!({"openai": {"itemId": "i1"}});
    let call = |kind: &str, more: Value| {
        let mut chunk = json!({"type": kind, "toolCallId": "c1", "toolName": "delete", "input": {"path": "a"},
            "dynamic": true, "providerExecuted": false, "title": "Delete", "providerMetadata": meta, "toolMetadata": meta});
        chunk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        chunk
    };
    let mut start = call("tool-input-start", json!({"inputEncoding": "json"}));
    start.as_object_mut().unwrap().remove("input");
    let output = |kind: &str, key: &str| {
        json!({"type": kind, "toolCallId": "c1", key: "x", "dynamic": true, "providerExecuted": true,
            "providerMetadata": meta, "toolMetadata": meta})
    };
    let mut available = output("tool-output-available", "output");
    available["preliminary"] = true.into();
    let text = |kind: &str| json!({"type": kind, "id": "t1", "providerMetadata": meta});
    let delta =
        |kind: &str| json!({"type": kind, "id": "t1", "delta": "Hi", "providerMetadata": meta});
    vec![
        json!({"type": "start", "messageId": "m1", "messageMetadata": {"a": 1}}),
        json!({"type": "start-step"}),
        json!({"type": "finish-step"}),
        json!({"type": "reset-step"}),
        text("text-start"),
        delta("text-delta"),
        json!({"type": "text-end", "id": "t1", "providerMetadata": meta, "citations": []}),
        text("reasoning-start"),
        delta("reasoning-delta"),
        text("reasoning-end"),
        start,
        json!({"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": "{\"pa"}),
        call("tool-input-available", json!({})),
        call("tool-input-error", json!({"errorText": "no"})),
        json!({"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1", "signature": "s",
            "approvalDescriptor": {"d": 1}, "inputSchemaInput": {}, "reason": "why", "isAutomatic": false}),
        json!({"type": "tool-approval-response", "approvalId": "a1", "approved": false, "reason": "no",
            "providerExecuted": true, "providerMetadata": meta}),
        available,
        output("tool-output-error", "errorText"),
        json!({"type": "tool-output-denied", "toolCallId": "c1"}),
        json!({"type": "source-url", "sourceId": "s1", "url": "https://x", "title": "X", "providerMetadata": meta}),
        json!({"type": "source-document", "sourceId": "s1", "mediaType": "a/b", "title": "X", "filename": "f",
            "providerMetadata": meta}),
        json!({"type": "file", "url": "data:,", "mediaType": "a/b", "providerMetadata": meta}),
        json!({"type": "reasoning-file", "url": "data:,", "mediaType": "a/b", "providerMetadata": meta}),
        json!({"type": "custom", "kind": "openai.thing", "providerMetadata": meta}),
        json!({"type": "data-weather", "id": "d1", "data": null, "transient": true}),
        json!({"type": "steering-message", "id": "x", "parts": [{"type": "text", "text": "Hi"}]}),
        json!({"type": "message-metadata", "messageMetadata": {"a": 1}}),
        json!({"type": "error", "errorText": "oh"}),
        json!({"type": "abort", "reason": "enough"}),
        json!({"type": "finish", "finishReason": "content-filter", "messageMetadata": 1}),
    ]
}

/// Fields that a chunk may go without.
const OPTIONAL: [&str; 19] = [
    "messageId",
    "messageMetadata",
    "providerMetadata",
    "citations",
    "dynamic",
    "providerExecuted",
    "title",
    "toolMetadata",
    "inputEncoding",
    "signature",
    "approvalDescriptor",
    "inputSchemaInput",
    "reason",
    "isAutomatic",
    "preliminary",
    "filename",
    "transient",
    "finishReason",
    "id",
];

#[test]
fn every_chunk_is_written_as_the_ai_sdk_writes_it() {
    for mut value in full() {
        let chunk: Chunk = serde_json::from_value(value.clone()).unwrap();
        assert!(!matches!(chunk, Chunk::Other(_)), "it is known: {value}");
        assert_eq!(json!(chunk), value);
        let kind = value["type"].as_str().unwrap().to_owned();
        let needs = |key: &str| match (kind.as_str(), key) {
            ("message-metadata", "messageMetadata") | ("source-document", "title") => true,
            (kind, "id") => !kind.starts_with("data-"),
            _ => !OPTIONAL.contains(&key),
        };
        value.as_object_mut().unwrap().retain(|key, _| key == "type" || needs(key));
        let least: Chunk = serde_json::from_value(value.clone()).unwrap();
        assert!(!matches!(least, Chunk::Other(_)), "it has all it needs: {value}");
        assert_eq!(json!(least), value, "no field is `null`");
        let mut event = Vec::new();
        encode(&least, &mut event);
        let event = String::from_utf8(event).unwrap();
        let json = event.strip_prefix("data: ").and_then(|it| it.strip_suffix("\n\n")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), value);
        assert!(!json.contains('\n'), "one line");
    }
}

#[test]
fn chunks_of_later_versions_are_kept_unchanged() {
    for value in [
        json!({"type": "telepathy", "thought": null, "id": 7}),
        json!({"type": "telepathy", "data": 1, "more": [2]}),
        json!({"type": "text-delta", "words": "other fields"}),
    ] {
        let chunk: Chunk = serde_json::from_value(value.clone()).unwrap();
        assert!(matches!(chunk, Chunk::Other(_)), "{chunk:?}");
        assert_eq!(json!(chunk), value);
        let mut message = UiMessage::new("m1", Role::Assistant);
        message.apply(&chunk);
        assert!(message.parts.is_empty(), "and clients make nothing of it");
    }
}

#[test]
fn parts_of_later_versions_are_kept_unchanged() {
    let message = json!({"id": "m1", "role": "assistant", "metadata": {"a": 1}, "parts": [
        {"type": "step-start"},
        {"type": "text", "text": "Hi", "state": "done"},
        {"type": "telepathy", "thought": null},
        {"type": "data-x", "id": "d", "data": {"deep": [1, {"n": null}]}},
        {"type": "file", "mediaType": "a/b", "url": "data:,", "filename": "f"},
        {"type": "tool-delete", "toolCallId": "c1", "state": "approval-responded", "input": {"path": "a"},
            "title": "Delete", "later": [1],
            "approval": {"id": "a1", "approved": true, "reason": "ok", "signature": "s", "descriptor": {"x": 1}}},
        {"type": "dynamic-tool", "toolName": "any", "toolCallId": "c2", "state": "output-available",
            "input": null, "output": null, "preliminary": true},
    ]});
    let read: UiMessage = serde_json::from_value(message.clone()).unwrap();
    assert_eq!(json!(read), message);
    assert_eq!(read.tools().count(), 2);
    assert!(matches!(read.parts[2], UiPart::Other(_)));
}

#[test]
fn the_reducer_makes_the_message_that_clients_make() {
    let mut message = UiMessage::new("", Role::Assistant);
    for chunk in [
        json!({"type": "start", "messageId": "m1", "messageMetadata": {"a": 1, "b": 1}}),
        json!({"type": "start-step"}),
        json!({"type": "text-start", "id": "t1"}),
        json!({"type": "text-delta", "id": "t1", "delta": "void"}),
        json!({"type": "text-end", "id": "t1"}),
        json!({"type": "reset-step"}),
        json!({"type": "tool-input-error", "toolCallId": "c1", "toolName": "x", "input": "{", "errorText": "bad"}),
        json!({"type": "data-x", "id": "d", "data": 1}),
        json!({"type": "data-x", "data": 2, "transient": true}),
        json!({"type": "data-x", "id": "d", "data": 3}),
        json!({"type": "finish", "messageMetadata": {"b": 2}}),
    ] {
        message.apply(&serde_json::from_value(chunk).unwrap());
    }
    let expected = json!({"id": "m1", "role": "assistant", "metadata": {"a": 1, "b": 2}, "parts": [
        {"type": "step-start"},
        {"type": "tool-x", "toolCallId": "c1", "state": "output-error", "input": "{", "errorText": "bad"},
        {"type": "data-x", "id": "d", "data": 3},
    ]});
    assert_eq!(json!(message), expected);
}

#[test]
fn a_restarted_response_replaces_the_earlier_text() {
    let told = |version: ClientVersion| {
        let mut writer = ChunkWriter::new(version);
        let mut chunks = Vec::new();
        writer.start("m1", &mut chunks);
        let events = [
            RunEvent::TextDelta { text: "Hel".into() },
            RunEvent::ResponseRestarted,
            RunEvent::TextDelta { text: "Hello".into() },
        ];
        events.iter().for_each(|event| writer.event(event, &mut chunks));
        writer.finish(FinishReason::Stop, &mut chunks);
        let values: Vec<Value> = chunks.iter().map(|chunk| json!(chunk)).collect();
        if version < ClientVersion::new(7, 0, 70) {
            super::order::check(&values, None);
        }
        let mut message = UiMessage::new("", Role::Assistant);
        chunks.iter().for_each(|chunk| message.apply(chunk));
        assert_eq!(writer.message(), &message, "the writer knows what the client has");
        message.text()
    };
    assert_eq!(told(ClientVersion::V6), "Hel\nHello", "older clients keep what they have");
    assert_eq!(told(ClientVersion::new(7, 0, 70)), "Hello");
}

#[test]
fn the_stream_has_the_headers_and_events_that_clients_and_proxies_expect() {
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-vercel-ai-ui-message-stream", "v1"),
        ("x-accel-buffering", "no"),
    ];
    assert_eq!(HEADERS, headers);
    assert_eq!(DONE, "data: [DONE]\n\n");
    assert!(KEEP_ALIVE.starts_with(": ") && KEEP_ALIVE.ends_with("\n\n"), "a comment");
}
