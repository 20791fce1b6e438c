//! The text of an error with its causes.

/// An error and its sources on one line, separated by colons, for a log or a message to people. The texts are as the
/// errors give them: they may quote what an application must not log.
///
/// ```
/// use countersign::error::with_causes;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("the rules cannot be read")]
/// struct Unreadable(#[source] std::io::Error);
///
/// let error = Unreadable(std::io::Error::other("the disk is full"));
/// assert_eq!(with_causes(&error), "the rules cannot be read: the disk is full");
/// ```
#[must_use]
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
