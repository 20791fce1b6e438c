//! Deferred calls: how tools and layers defer them, how they are approved, and the JSON of requests and answers.

mod answers;
mod approving;
mod deferring;
