//! A question that has to be answered before a call may run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One question about a call: which layer asks, why, and under which key.
///
/// Two questions with the same layer, key and pins are the same question. The reason is for people, and may change
/// between passes (rule A1).
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

/// The identity of a question: layer, key and pins.
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

    /// A question without a reason that the library asks itself, for example about a tool that declares an approval.
    pub(crate) fn of(layer: impl Into<String>, key: impl Into<String>) -> Self {
        Self { layer: layer.into(), key: key.into(), ..Self::new("") }
    }

    /// The name of the layer that asks.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// The stable key of the question; by default the reason.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Why the layer asks, for the approver; may be empty.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The digests of the content that the question is about, by the name of each pin.
    #[must_use]
    pub fn pins(&self) -> &BTreeMap<String, String> {
        &self.pins
    }

    /// The values that the asking layer adds to the request's metadata.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The identity of the question, which says whether an approval covers it (rule A1).
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
