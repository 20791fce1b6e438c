//! The terminal handler in a real pseudo-terminal.

pub(crate) mod lines;
mod list;
mod teardown;
