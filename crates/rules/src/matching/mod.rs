//! Conditions of rules, and the fields and places of one call that they look at.

pub(super) mod condition;
pub(super) mod examined_call;
pub(super) mod host;
pub(super) mod origins;
