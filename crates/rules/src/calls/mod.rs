//! A call as rules see it: its tool, its commands, the classes of these, and patterns over names and paths.

pub(super) mod call;
pub(super) mod classes;
pub(super) mod command;
pub(super) mod engine;
pub(super) mod git_words;
pub(super) mod glob;
pub(super) mod landings;
pub(super) mod left_out;
pub(super) mod paths;
pub(super) mod texts;
pub(super) mod tool_pattern;
pub(super) mod truth;
