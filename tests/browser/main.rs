//! What people do in a browser, and what others send to the same servers: tests with a real Chromium, against the
//! servers of the examples. The scenarios are played by node (`lib`, and a folder for each page); what became of the
//! asks is then read from the ledger itself.

#[path = "../it/support/built.rs"]
mod built;
#[cfg(feature = "ai-sdk")]
mod chat;
#[cfg(feature = "ai-sdk")]
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
mod service;
#[cfg(feature = "ai-sdk")]
#[path = "../it/support/surface_contract.rs"]
mod surface_contract;
mod workers;
