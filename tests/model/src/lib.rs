//! The protocol of the ledger as a model: asks of equal calls, claims, leases, grants and runs, with people, several workers,
//! crashes, messages that are late, and a clock that steps back.
//!
//! Three models are small enough that every state is searched ([`search`]). Of each state we check what must never be, and
//! that from it everything can still come to an end: that no run, and no approved call, is lost.
//!
//! A model proves nothing about the code unless the two agree. So each model says for every step which answer it gives, and
//! [`code`] takes the same steps with a [`Ledger`](countersign::ledger::Ledger): every state up to a depth with every step
//! from it, and long random ways through the states behind. The tables of `src/ledger/asks/transitions.rs` cannot change
//! without failing here.
#![cfg(test)]

mod asks;
mod code;
mod grants;
mod runs;
mod search;
