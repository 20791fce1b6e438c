//! Requests to a model, and the deltas of a streamed response.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::ToolDefinition;
use crate::message::Message;

/// A request to a model. Cheap to clone, because retry layers clone it for each attempt. The streamed text of a later
/// attempt replaces that of an earlier one.
///
/// A clone of a streamed request counts as another attempt: when a layer retries, the text of the first attempt
/// is withdrawn from the listeners ([`RunEvent::ResponseRestarted`](crate::turn::RunEvent::ResponseRestarted)).
pub struct ModelRequest {
    instructions: Option<Arc<str>>,
    messages: Arc<Vec<Message>>,
    tools: Arc<[ToolDefinition]>,
    deltas: Option<Deltas>,
    /// The number of this attempt, from 1: in a streamed request each clone gets the next one.
    attempt: u32,
}

/// An event of a response that is being streamed.
pub(crate) enum Heard<'a> {
    /// The next piece of the response's text.
    Text(&'a str),
    /// The text so far is void, because another attempt takes its place.
    Again,
}

/// The receiver of a streamed response, shared by all attempts at the request.
#[derive(Clone)]
pub(crate) struct Deltas(Arc<Listening>);

struct Listening {
    hear: Box<dyn Fn(Heard<'_>) + Send + Sync>,
    attempts: AtomicU32,
    so_far: Mutex<SoFar>,
}

/// The text so far, without that of attempts that were replaced.
#[derive(Default)]
struct SoFar {
    /// The attempt that streamed last; 0 for none.
    attempt: u32,
    text: String,
    /// The response is complete, or has failed: what a late attempt streams is ignored.
    over: bool,
}

impl Deltas {
    pub(crate) fn new(hear: impl Fn(Heard<'_>) + Send + Sync + 'static) -> Self {
        let (attempts, so_far) = (AtomicU32::new(1), Mutex::default());
        Self(Arc::new(Listening { hear: Box::new(hear), attempts, so_far }))
    }

    fn text(&self, attempt: u32, text: &str) {
        let mut so_far = self.so_far();
        if so_far.over {
            return;
        }
        if so_far.attempt != attempt {
            if so_far.attempt != 0 {
                (self.0.hear)(Heard::Again);
            }
            (so_far.attempt, so_far.text) = (attempt, String::new());
        }
        so_far.text.push_str(text);
        (self.0.hear)(Heard::Text(text));
    }

    /// Ends the stream. `text` is the whole text of the response, of which the rest is sent now, or `None` if the
    /// request failed. What a late attempt streams after this is ignored.
    pub(crate) fn end(&self, text: Option<&str>) {
        let mut so_far = self.so_far();
        so_far.over = true;
        let Some(text) = text else { return };
        let rest = text.strip_prefix(so_far.text.as_str()).unwrap_or_else(|| {
            // The attempt that streamed is not the one that gave the response: send the whole text.
            (self.0.hear)(Heard::Again);
            text
        });
        if !rest.is_empty() {
            (self.0.hear)(Heard::Text(rest));
        }
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.0.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelRequest {
    /// Creates a request with this conversation. An agent creates its requests itself; this constructor is for tests of
    /// a model.
    ///
    /// ```
    /// use countersign::model::ModelRequest;
    /// use countersign::Message;
    ///
    /// let request = ModelRequest::new(vec![Message::user("Hello")]).with_instructions("Be brief.");
    /// assert_eq!(request.messages().len(), 1);
    /// ```
    #[must_use]
    pub fn new(messages: impl Into<Arc<Vec<Message>>>) -> Self {
        Self {
            instructions: None,
            messages: messages.into(),
            tools: Arc::default(),
            deltas: None,
            attempt: 1,
        }
    }

    /// Sets the instructions of the agent.
    ///
    /// ```
    /// use countersign::message::Message;
    /// use countersign::model::ModelRequest;
    ///
    /// let request = ModelRequest::new(Vec::<Message>::new()).with_instructions("Be brief.");
    /// assert_eq!(request.instructions(), Some("Be brief."));
    /// assert!(request.messages().is_empty() && request.tools().is_empty() && !request.is_streamed());
    /// request.text_delta("no one listens, and nothing happens");
    /// ```
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the definitions of the tools that the model may call.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Arc<[ToolDefinition]>>) -> Self {
        self.tools = tools.into();
        self
    }

    pub(crate) fn with_deltas(mut self, deltas: Deltas) -> Self {
        self.deltas = Some(deltas);
        self
    }

    /// The instructions of the agent, if it has any.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The conversation so far.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The definitions of the tools that the model may call, as listed for this request.
    ///
    /// They have the changes that layers make when tools are listed: a hidden tool, for example, is
    /// not among them.
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Returns `true` if the text of the response has a receiver while the response is made; if not, streaming has no
    /// use.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.deltas.is_some()
    }

    /// Passes on the next piece of the response's text while the response is made. The response itself repeats the
    /// whole text. When a model never calls this, the whole text is passed on with the complete response.
    pub fn text_delta(&self, text: &str) {
        if let Some(deltas) = self.deltas.as_ref().filter(|_| !text.is_empty()) {
            deltas.text(self.attempt, text);
        }
    }
}

impl Clone for ModelRequest {
    fn clone(&self) -> Self {
        let next = |deltas: &Deltas| deltas.0.attempts.fetch_add(1, Ordering::AcqRel) + 1;
        Self {
            instructions: self.instructions.clone(),
            messages: Arc::clone(&self.messages),
            tools: Arc::clone(&self.tools),
            deltas: self.deltas.clone(),
            attempt: self.deltas.as_ref().map_or(1, next),
        }
    }
}

impl fmt::Debug for ModelRequest {
    /// Kinds and lengths, not contents (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.iter().map(ToolDefinition::name);
        f.debug_struct("ModelRequest")
            .field("messages", &self.messages)
            .field("tools", &tools.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
