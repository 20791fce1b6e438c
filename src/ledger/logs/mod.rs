//! The entries of logs: how they are linked, and how they show what was changed (rule L8).

pub(super) mod anchor;
pub(super) mod events;
pub(super) mod replay;
pub(super) mod vouching;
