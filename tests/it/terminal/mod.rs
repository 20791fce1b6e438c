//! The terminal handler in a real pseudo-terminal.

mod lines;
mod list;
mod teardown;
