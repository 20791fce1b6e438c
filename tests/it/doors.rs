//! The integration tests of what stands in front of a call: rules, the judge of commands, hooks, guards, the program, and the
//! places where people decide. The others are in `main.rs`, whose table says where a test for a change goes. They are two
//! binaries, as one would be compiled on one core.

mod support;

mod agents;
mod ai_sdk;
mod hook;
mod mcp;
mod program;
mod pydantic;
mod readers;
mod rules;
mod shell;
mod surfaces;
mod terminal;
