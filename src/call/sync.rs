//! The synchronisation types of the execution cell. `tests/loom` compiles the cell with those of `loom` in their place,
//! which run every interleaving of its threads.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::sync::{Arc, Mutex, MutexGuard};
