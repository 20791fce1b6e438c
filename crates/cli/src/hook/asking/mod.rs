//! A call that needs a person: how it is asked about, how its approval is spent, and what the client reports when it has
//! ended.

pub(super) mod allowed;
pub(super) mod asked;
mod edited;
pub(super) mod ending;
mod in_client;
pub(super) mod kept_shell;
pub(super) mod key;
mod reasons;
pub(super) mod unapproved;
mod written;
