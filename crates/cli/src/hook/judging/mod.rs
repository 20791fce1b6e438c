//! Reads a call, and decides whether it may run: its tool and arguments in one vocabulary for all clients, the hook's own doubts
//! about it, and the layers that decide.

mod applying;
mod change;
pub(super) mod edits;
pub(super) mod environment;
mod file_text;
pub(super) mod kept_shell;
mod other_ways;
mod patterns;
mod prompts;
mod shells;
pub(super) mod stack;
pub(super) mod vocabulary;
