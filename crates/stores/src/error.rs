//! The error of a URL that opens no store.

use countersign::ledger::StoreError;

/// The error of a URL that opens no store. Its text says what to do, and has no password.
///
/// ```
/// use countersign_stores::{StoreUrl, StoreUrlError};
///
/// let refused = "mysql://ann:secret@db/asks".parse::<StoreUrl>();
/// let Err(error @ StoreUrlError::NoUrl(_)) = refused else { panic!() };
/// assert!(error.to_string().contains("mysql://db/asks") && !error.to_string().contains("secret"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// The text is the URL of no store.
    #[error("{0}")]
    NoUrl(String),
    /// This program was built without the stores of this kind.
    #[error(
        "`{store}` cannot be opened, as this program was built without it: build it with the feature `{feature}` of `countersign-stores`"
    )]
    NotBuilt {
        /// The store, without a password.
        store: String,
        /// The feature that has stores of this kind.
        feature: &'static str,
    },
    /// There is no store, and none was to be created.
    #[error("there is no store at `{store}`: name the right one, or create it")]
    NoStore {
        /// The store, without a password.
        store: String,
    },
    /// The store cannot be opened, as its error says.
    #[error(transparent)]
    Store(#[from] StoreError),
}
