//! Names that a table or a list decides about, and patterns over names.

pub(super) mod globs;
pub(super) mod lists;
pub mod protected;
pub(super) mod sieve;
