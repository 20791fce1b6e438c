//! Helpers for testing your own layers, middleware and ledger stores.
//!
//! | helper | finds |
//! |---|---|
//! | [`ReadyProbe`] | a layer that calls the service inside it without having polled its readiness |
//! | [`rewrites_once`] | a middleware that changes arguments it has already changed, or changes them otherwise each time |
//! | `ledger_contract` (feature `ledger`) | a store of a ledger that decides or executes something twice, or forgets something |

#[cfg(feature = "ledger")]
pub mod ledger_contract;
mod ready_probe;
mod rewrites_once;

pub use ready_probe::{ReadyProbe, ReadyProbeService};
pub use rewrites_once::rewrites_once;
