//! Shell text as a tree: the lexer, the parser, and the dialects whose readers agree about it.

pub(super) mod arithmetic;
pub(super) mod characters;
pub(super) mod commands;
pub(super) mod compounds;
pub(super) mod dialect;
pub(super) mod lexer;
pub(super) mod parser;
pub(super) mod redirections;
pub(super) mod scanners;
pub(super) mod words;
