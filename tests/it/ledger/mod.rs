//! The ledger: decided once, executed once, over every store.

mod contract;
