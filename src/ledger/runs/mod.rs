//! Runs and chats: saved, leased, and resumed with the decisions about their calls.

pub(super) mod acquisition;
pub(super) mod decisions;
pub(super) mod durability;
pub(super) mod lease;
pub(super) mod saving;
