//! The integration tests: one binary, through the public API. `tests/house.rs` fails when a file is missing here.

mod support;

mod assistant;
mod basics;
mod terminal;
