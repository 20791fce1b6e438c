//! What a model is asked, and what is heard of its answer before it is complete.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::ToolDefinition;
use crate::message::Message;

/// What a model is given. Cheap to clone, as retrying layers do; what is heard of another attempt takes the place of
/// what was heard of the one before.
pub struct ModelRequest {
    instructions: Option<Arc<str>>,
    messages: Arc<Vec<Message>>,
    tools: Arc<[ToolDefinition]>,
    deltas: Option<Deltas>,
    /// Which attempt at the request this is.
    attempt: u32,
}

/// What is heard of a response that is being made.
pub(crate) enum Heard<'a> {
    /// More of its text.
    Text(&'a str),
    /// The request was made again: what was heard so far is void.
    Again,
}

/// Whoever hears, and which attempt was heard last.
#[derive(Clone)]
pub(crate) struct Deltas(Arc<Listening>);

struct Listening {
    hear: Box<dyn Fn(Heard<'_>) + Send + Sync>,
    attempts: AtomicU32,
    so_far: Mutex<SoFar>,
}

/// What was heard so far, and not made void by another attempt.
#[derive(Default)]
struct SoFar {
    /// The attempt that was heard last; 0 for none.
    attempt: u32,
    text: String,
    /// The response is there, or will never be.
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

    /// The response is there, with all of its text, of which the rest is told; or it will never be. Whatever comes
    /// now comes too late.
    pub(crate) fn end(&self, text: Option<&str>) {
        let mut so_far = self.so_far();
        so_far.over = true;
        let Some(text) = text else { return };
        let rest = text.strip_prefix(so_far.text.as_str()).unwrap_or_else(|| {
            // Another attempt was heard than the one that gave the response.
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
    /// A request with this conversation, as a test of a model needs one.
    ///
    /// ```
    /// use countersign::{Message, ModelRequest};
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

    /// With what the agent is there for.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// The request with these tools in place of its own.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Arc<[ToolDefinition]>>) -> Self {
        self.tools = tools.into();
        self
    }

    pub(crate) fn with_deltas(mut self, deltas: Deltas) -> Self {
        self.deltas = Some(deltas);
        self
    }

    /// What the agent is there for.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The conversation so far.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The tools as they are now.
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Whether anybody listens while the response is made, so that streaming it is worth while.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.deltas.is_some()
    }

    /// Passes on more of the text of the response, while the response is made. The response itself has all of its
    /// text again; a model that never calls this is heard when it is done.
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
