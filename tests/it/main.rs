//! The integration tests: one binary, through the public API. `tests/house.rs` fails when a file is missing here.

mod support;

mod approving;
mod basics;
mod cancelling;
mod deciding;
mod properties;
mod turn;
