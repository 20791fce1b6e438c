//! The integration tests, through the public API. The modules about what stands in front of a call are in `doors.rs`, the
//! others here. `tests/house.rs` fails when a file is in neither.
//!
//! Where a test for a change goes:
//!
//! | change | tests |
//! |---|---|
//! | a module of `src` | the module of the same name here |
//! | a rule that says "never" | [`properties`], over random stacks, answers and clients |
//! | the inbox, the chat page, several servers | `tests/browser`, in a real browser |
//! | the shell's tables and rule files | `shell`, `rules`, and the commands in `tests/shell` |
//! | how texts, paths and hosts are read, at any door | `readers`, over hostile calls and daily work |
//! | what every place where people decide has to do | `surfaces`, which is played at each of them |
//! | a store | [`ledger`], which runs over every store; [`postgres`] for what only a server can do |
//! | a stored form | [`corpus`], and the files in `tests/corpus` |
//! | the program `countersign` | `program`; the hooks of coding agents also in `hook` |
//! | what two modules have to agree on: logs, examples, sentences of the first proposals | [`secrecy`], [`examples`], [`assistant`], [`proposals`] |
//! | a behaviour that PydanticAI has too | [`conformance`] with a scenario, or `pydantic`; `tests/conformance/rows.tsv` names the test |
//! | the JSON of requests, answers and histories | `pydantic::other_end`, with PydanticAI at the other end |
//! | an example with servers of its own | its package: `examples/servers/*/tests` |
//! | what must not compile | `tests/ui` |
//! | names, floors, lengths, documents | `tests/house.rs` |
//!
//! Helpers that several modules use are in [`support`].

mod support;

mod agent;
mod args;
mod assistant;
mod call;
mod conformance;
mod corpus;
mod decision;
mod deferred;
mod examples;
mod genai;
mod inbox;
mod layer;
mod ledger;
mod middleware;
mod model;
mod origin;
mod outcome;
mod postgres;
mod properties;
mod proposals;
mod seal;
mod secrecy;
mod show;
mod testing;
mod tools;
mod toolset;
mod turn;
