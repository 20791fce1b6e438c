//! Stores: rows and logs, and the store in memory.

pub(super) mod ends;
pub(super) mod entry;
pub(super) mod linker;
pub(super) mod memory;
pub(super) mod store;
