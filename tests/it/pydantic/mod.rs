//! What PydanticAI's conformance table says and no other test here holds. A test is called after its rows;
//! `tests/conformance/rows.tsv` says where each of the 143 is held.

mod events;
mod handlers;
mod hooks;
mod nested;
