//! One ask: what it is, which states it may be in, and which steps lead from one to the next.

pub(super) mod ask;
pub(super) mod metrics;
pub(super) mod names;
pub(super) mod record;
pub(super) mod results;
pub(super) mod transitions;
pub(super) mod view;
