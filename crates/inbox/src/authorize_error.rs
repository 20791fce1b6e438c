//! The error of your authorization, which refuses a request before the inbox looks at it.

/// A refusal of a request before the inbox looks at it: the answer of the `authorize` hook of
/// [`Inbox::new`](super::Inbox::new).
///
/// ```
/// use countersign_inbox::AuthorizeError;
/// assert_eq!(AuthorizeError::unauthorized("log in first").status(), 401);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizeError {
    status: u16,
    message: String,
}

impl AuthorizeError {
    /// A rejection with a status from 400 to 599; any other one becomes 500.
    ///
    /// ```
    /// use countersign_inbox::AuthorizeError;
    /// assert_eq!(AuthorizeError::new(429, "too many requests").status(), 429);
    /// assert_eq!(AuthorizeError::new(200, "not a rejection").status(), 500);
    /// ```
    #[must_use]
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        let status = if (400..=599).contains(&status) { status } else { 500 };
        Self { status, message: message.into() }
    }

    /// The person is not logged in: `401`. The page shows the way to the login ([`Inbox::login`]).
    ///
    /// [`Inbox::login`]: super::Inbox::login
    #[must_use]
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// The person is known, and may not use the inbox: `403`.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The sentence that the client is sent.
    ///
    /// People see it. So say what to do, and nothing of how the login works.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}
