//! The origins of the values of a call: what the run has read, and who named a target (rules O1 to O5).
//!
//! Two questions decide whether a call is safe: *has this run read text that a stranger wrote?* and *who named the target
//! of this call?* We answer both by comparing texts, without a model.
//!
//! ```text
//!  what the user says ─┐
//!  results of tools ───┼─► ReadRecord: an index of whole values, by source
//!  other texts ────────┘        │
//!  a response is requested ─────┤ its position is kept with the response
//!                               ▼
//!  a layer, a rule, a surface ─► Origin: named_by, has_read, of
//! ```
//!
//! Nothing is recorded by default. You switch it on with [`Agent::record_origins`](crate::Agent::record_origins), with a
//! [`ReadRecord`] for a [`Turn`](crate::Turn), or, in a hook or a guard, with rules that have conditions on origins.
//!
//! | a value | occurs in a text if it stands there |
//! |---|---|
//! | address, URL, account, number, day | in any spelling that programs take for the same thing |
//! | path | as it is, or relative to the folder of the run or the home |
//! | name | as whole words, without regard to case |
//! | anything else | as it is, between spaces or as a whole field |
//!
//! `docs/origin.md` has what this finds, and what it cannot.

mod answers;
mod decoding;
mod keyed_hash;
mod record;
mod scanning;
mod spelling;
mod stored;
mod text_source;
mod value_form;
mod value_index;
mod value_origin;

pub use answers::Origin;
pub use record::{ReadCall, ReadRecord};
pub use text_source::{ReadLabel, TextSource};
pub use value_origin::{ReadPlace, Standpoint, ValueOrigin};
