//! Who talks.

use std::fmt;
use std::sync::Arc;

/// Who talks: chats and asks belong to a principal, decisions are recorded under it, and tools find it among their
/// dependencies (`cx.deps::<Principal>()`).
///
/// ```
/// use countersign::ai_sdk::Principal;
/// assert_eq!(Principal::new("ann").as_str(), "ann");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal by a name that stands for one person or service, as whoever authorizes requests knows it.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
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
