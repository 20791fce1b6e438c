//! The program `countersign`: hooks for coding agents, a guard for MCP servers, and the inbox of what both ask.
//!
//! `cargo install --path crates/cli` installs the program. As a library, this crate has the two parts that other programs
//! use as well: [`hook`] answers the hooks of coding agents with a policy of your own, and [`config`] finds the store, the
//! key and the settings that the program uses on this machine.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod config;
pub mod hook;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
