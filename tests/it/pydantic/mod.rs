//! The rows of PydanticAI's conformance table that no other test here checks. A test is called after its rows;
//! `tests/conformance/rows.tsv` says where each of the 143 is held.

mod events;
mod handlers;
mod hooks;
mod nested;
mod other_end;

pub(crate) use other_end::python;
