//! The principal of a request: the person or service that a chat belongs to.

use std::fmt;
use std::sync::Arc;

/// The person or service that sends a request.
///
/// A chat belongs to one principal, and is unknown to all others. Decisions are recorded under the name of the
/// principal, and tools find the principal among their dependencies (`cx.deps::<Principal>()`).
///
/// ```
/// use countersign_ai_sdk::Principal;
/// assert_eq!(Principal::new("ann").as_str(), "ann");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal with this name. The name has to stand for one person or service for as long as the chats are stored.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name of the principal, as given to [`new`](Self::new).
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
