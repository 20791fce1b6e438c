//! A question that has to be answered before a call may run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{GrantPattern, Preview};

/// One question about a call: which layer asks, why, and under which key.
///
/// Two questions with the same layer, key and pins are the same question. The reason is for people, and may change
/// between passes (rule A1).
///
/// ```
/// use countersign::decision::Preview;
/// use countersign::Decision;
///
/// let ask = Decision::ask("writes a file").with_key("write").with_preview(Preview::text("a.txt", "new text"));
/// let question = &ask.questions()[0];
/// assert_eq!((question.key(), question.reason()), ("write", "writes a file"));
/// assert_eq!(question.previews().len(), 1);
/// let (layer, key, pins) = question.id();
/// assert_eq!((layer, key), ("", "write"), "the layer is filled in by the service that runs the middleware");
/// assert!(pins.contains_key("preview of a.txt"));
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Question(Arc<QuestionContent>);

/// The content of a question. A turn has the question of a call in its record, its state, its batch and its report, all
/// of which share it.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    rename = "Question",
    description = "One question about a call: which layer asks, why, and under which key."
)]
pub(crate) struct QuestionContent {
    pub(crate) layer: Cow<'static, str>,
    pub(crate) key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) pins: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) previews: Vec<Preview>,
}

/// The identity of a question: layer, key and pins.
pub type QuestionId<'a> = (&'a str, &'a str, &'a BTreeMap<String, String>);

impl Question {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let content = QuestionContent {
            layer: Cow::Borrowed(""),
            key: reason.clone(),
            reason,
            pins: BTreeMap::new(),
            metadata: Map::new(),
            previews: Vec::new(),
        };
        Self(Arc::new(content))
    }

    /// The content of this question, to be changed; no clone of the question is.
    pub(crate) fn content_mut(&mut self) -> &mut QuestionContent {
        Arc::make_mut(&mut self.0)
    }

    pub(crate) fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.content_mut().reason = reason.into();
        self
    }

    pub(crate) fn with_pin(mut self, what: impl Into<String>, digest: impl Into<String>) -> Self {
        self.content_mut().pins.insert(what.into(), digest.into());
        self
    }

    pub(crate) fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.content_mut().metadata = metadata;
        self
    }

    /// The classes of calls for which the layer agrees to wider answers in advance, from the narrowest to the widest;
    /// empty where it proposes none, or its metadata cannot be read as such
    /// ([`Decision::with_grant_patterns`](crate::Decision::with_grant_patterns)).
    #[must_use]
    pub fn grant_patterns(&self) -> Vec<GrantPattern> {
        let patterns = self.0.metadata.get(GrantPattern::KEY);
        patterns.and_then(|patterns| Vec::deserialize(patterns).ok()).unwrap_or_default()
    }

    /// A question without a reason that the library asks itself, for example about a tool that declares an approval.
    pub(crate) fn of(layer: impl Into<Cow<'static, str>>, key: impl Into<String>) -> Self {
        let mut question = Self::new("");
        let content = question.content_mut();
        (content.layer, content.key) = (layer.into(), key.into());
        question
    }

    /// The name of the layer that asks.
    #[must_use]
    pub fn layer(&self) -> &str {
        &self.0.layer
    }

    /// The stable key of the question; by default the reason.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The key, if the layer has set one; empty where the reason is the key. A reason may quote arguments, and is
    /// different for each call, so that it is no attribute of a metric.
    pub(crate) fn own_key(&self) -> &str {
        if self.0.key == self.0.reason { "" } else { &self.0.key }
    }

    /// The reason why the layer asks, for the approver; may be empty.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The digests of the content that the question is about, by the name of each pin.
    #[must_use]
    pub fn pins(&self) -> &BTreeMap<String, String> {
        &self.0.pins
    }

    /// The values that the asking layer adds to the request's metadata.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.0.metadata
    }

    /// The change that the call would make, or its subject, as the asker shows it (rule S7).
    #[must_use]
    pub fn previews(&self) -> &[Preview] {
        &self.0.previews
    }

    /// Adds a preview, and its digest as a pin. Where the name of the pin is taken, it gets a number.
    ///
    /// For example, two previews with one title have two pins (`preview of a.txt`, `preview of a.txt (2)`). If the
    /// second replaced the first, we would not notice a change of the first file.
    pub(crate) fn attach(&mut self, preview: Preview) {
        let content = self.content_mut();
        if let Some(digest) = preview.digest() {
            let title = format!("preview of {}", preview.title());
            let mut name = title.clone();
            let mut number = 1;
            while content.pins.contains_key(&name) {
                number += 1;
                name = format!("{title} ({number})");
            }
            content.pins.insert(name, digest.to_owned());
        }
        content.previews.push(preview);
        self.sign();
    }

    /// Makes the asker the author of the previews that have none.
    pub(crate) fn sign(&mut self) {
        let QuestionContent { layer, previews, .. } = self.content_mut();
        for preview in previews.iter_mut().filter(|preview| preview.author.is_empty()) {
            layer.as_ref().clone_into(&mut preview.author);
        }
    }

    /// The question of a tool that shows what a call of it would do. Its layer is not that of the tool's own questions,
    /// so that no approval of a preview answers one of those.
    pub(crate) fn of_previews(tool: &str, previews: Vec<Preview>) -> Self {
        let question = Self::of(format!("{tool}, preview"), "preview");
        let mut question = question.with_reason("what the call would do");
        for mut preview in previews {
            tool.clone_into(&mut preview.author);
            question.attach(preview);
        }
        question
    }

    /// Returns `true` if this is the question of a tool's previews.
    pub(crate) fn is_of_previews(&self) -> bool {
        let author = self.0.layer.strip_suffix(", preview");
        self.0.key == "preview"
            && !self.0.previews.is_empty()
            && self.0.previews.iter().all(|preview| Some(preview.author()) == author)
    }

    /// Returns `true` if a change of its previews is too long to be seen whole.
    pub(crate) fn is_cut(&self) -> bool {
        self.previews().iter().any(|preview| preview.lines_cut() > 0)
    }

    /// The identity of the question, which says whether an approval covers it (rule A1).
    #[must_use]
    pub fn id(&self) -> QuestionId<'_> {
        (&self.0.layer, &self.0.key, &self.0.pins)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("layer", &self.0.layer)
            .field("key", &self.0.key)
            .field("reason", &self.0.reason)
            .field("pins", &self.0.pins.keys())
            .field("metadata", &self.0.metadata.keys())
            .field("previews", &self.0.previews)
            .finish()
    }
}
