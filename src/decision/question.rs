//! A question that somebody has to answer before a call may run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One question about a call: which layer asks, why, and under which key.
///
/// Two questions with the same layer, key and pins are the same question; the reason is what people read and may
/// change between passes (rule A1).
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "One question about a call: which layer asks, why, and under which key.")]
pub struct Question {
    pub(crate) layer: String,
    pub(crate) key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) pins: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
}

/// What makes a question this question: layer, key and pins.
pub type QuestionId<'a> = (&'a str, &'a str, &'a BTreeMap<String, String>);

impl Question {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            layer: String::new(),
            key: reason.clone(),
            reason,
            pins: BTreeMap::new(),
            metadata: Map::new(),
        }
    }

    /// A question of the library's own, about a tool rather than by a middleware.
    pub(crate) fn of(layer: impl Into<String>, key: impl Into<String>) -> Self {
        Self { layer: layer.into(), key: key.into(), ..Self::new("") }
    }

    /// The layer that asks.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// The stable name of the question; the reason, unless the layer gave one.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Why the layer asks; may be empty.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The digests of what the question is about.
    #[must_use]
    pub fn pins(&self) -> &BTreeMap<String, String> {
        &self.pins
    }

    /// What this asker adds to the request's metadata.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// What makes this question this question.
    #[must_use]
    pub fn id(&self) -> QuestionId<'_> {
        (&self.layer, &self.key, &self.pins)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("layer", &self.layer)
            .field("key", &self.key)
            .field("reason", &self.reason)
            .field("pins", &self.pins.keys())
            .field("metadata", &self.metadata.keys())
            .finish()
    }
}
