//! The pages as people use them, and other requests to the same servers: tests with a real Chromium, against the
//! servers of the examples and of the program. The scenarios are played by node (`lib`, and a folder for each page); the states of the
//! asks are then read from the ledger itself.

mod chat;
mod clients;
mod http;
mod inbox;
mod player;
#[path = "../it/support/postgres.rs"]
#[allow(
    dead_code,
    reason = "the same server as in `tests/it`, of which not everything is needed here"
)]
mod postgres;
#[path = "../it/support/program.rs"]
mod program;
mod secret;
mod service;
mod workers;
