//! Rows and their log together: the stored form, transactions, counters and lists.

pub(super) mod change;
pub(super) mod codec;
pub(super) mod counter;
pub(super) mod key;
pub(super) mod listing;
pub(super) mod predecessor;
pub(super) mod run_record;
