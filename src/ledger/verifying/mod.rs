//! The store as a whole: opened with its key, verified, noted in checkpoints, and pruned.

pub(super) mod audit;
pub(super) mod checkpoint;
pub(super) mod opening;
pub(super) mod rekey;
pub(super) mod retention;
