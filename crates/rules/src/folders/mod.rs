//! Calls that read all that is below a folder: how far they reach, and what they find there.

pub(super) mod command_words;
pub(super) mod find_words;
pub(super) mod ignored;
pub(super) mod reaches;
pub(super) mod sweeps;
pub(super) mod swept;
