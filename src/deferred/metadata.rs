//! The metadata keys that ready-made handlers and pages understand.
//!
//! Metadata of a request does not reach the tool (rule A5), unless the handler copies it:
//! [`copy_metadata`](crate::DeferredToolResults::copy_metadata).
//!
//! ```
//! use countersign::deferred::metadata;
//! use countersign::Decision;
//! let never = Decision::ask("production is frozen").with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED);
//! # let _ = never;
//! ```
//!
//! | key | value | read by |
//! |---|---|---|
//! | [`APPROVAL_DESCRIPTION`], [`APPROVAL_REASON`] | a text | surfaces |
//! | [`APPROVAL_POLICY`] | [`BLOCKED`] or [`NEEDS_APPROVAL`] | handlers: a blocked call is denied without asking (rule A5) |
//! | [`TOOLSET_ID`], [`WORKER`] | a name | surfaces |
//! | [`EVERY_TIME`] | `true` | grants: never answered in advance (rule G2) |
//! | [`GRANTABLE`] | `true` | grants: may be answered in advance |
//! | [`GRANT_PATTERNS`] | a list | grants: classes of calls that may be answered in advance ([`GrantPattern`](crate::decision::GrantPattern)) |
//! | [`FOR_PEOPLE`] | a list of names | grants: texts that are not compared |
//! | [`ON_RECORD`] | a list of names | surfaces: notes that are kept, and say nothing that is not shown |
//! | [`PEOPLE`] | an object | the ledger: who has to approve ([`People`](crate::decision::People)) |
//! | [`RULE`] | an object | surfaces and logs |
//! | [`TITLE`] | a template | surfaces: the first line of the call |
//! | [`CALLER`] | an object | surfaces: the first line of the call |

/// A description of the action for people.
pub const APPROVAL_DESCRIPTION: &str = "approval_description";
/// The reason why an approval is needed.
pub const APPROVAL_REASON: &str = "approval_reason";
/// The treatment of the request: [`BLOCKED`] or [`NEEDS_APPROVAL`].
pub const APPROVAL_POLICY: &str = "approval_policy";
/// The id of the toolset that has the tool.
pub const TOOLSET_ID: &str = "toolset_id";
/// The name of the agent that makes the call, where several work together.
pub const WORKER: &str = "worker";

/// Asks a person every time: `true` keeps any answer in advance from answering the question.
pub const EVERY_TIME: &str = crate::decision::EVERY_TIME;
/// Lets an answer in advance answer the question: `true` if the asking layer agrees to it.
pub const GRANTABLE: &str = "grantable";
/// The classes of calls that a person may grant beside exactly this one, which
/// [`Decision::with_grant_patterns`](crate::Decision::with_grant_patterns) sets.
pub const GRANT_PATTERNS: &str = crate::decision::GrantPattern::KEY;
/// The names of the arguments whose texts are for people only: the layer vouches that the tool does nothing with them but
/// show them. A grant answers a call that differs in nothing else. Where the value is no text, it is compared.
pub const FOR_PEOPLE: &str = "for_people";
/// The names of notes (`hook.payload`) that are stored for the record: the layer vouches that the view of the call shows
/// what they say. A surface shows such a note on demand, and one that is shortened does not count as left out (rule S4).
pub const ON_RECORD: &str = "on_record";
/// The people who have to approve, which [`Decision::with_people`](crate::Decision::with_people) sets.
pub const PEOPLE: &str = crate::decision::People::KEY;
/// The template of the title of the call, which [`Decision::with_title`](crate::Decision::with_title) sets.
pub const TITLE: &str = crate::decision::TITLE;
/// The program that makes the call, as the door knows it that asks: an object with its `name` for people, the `kind` of
/// the tool where it is the program's own (`shell`, `edit_file`, …), the `directory` in which it works, the folder `home`
/// that is written `~`, and the `agent` within it. A question with it says nothing more than the title of the call.
pub const CALLER: &str = "caller";
/// The rule that asks: an object with its `id`, `file` and `line`.
pub const RULE: &str = "rule";

/// A value of [`APPROVAL_POLICY`]: every ready-made handler denies without asking, the approve-all one too (rule A5).
pub const BLOCKED: &str = "blocked";
/// A value of [`APPROVAL_POLICY`]: ask as usual.
pub const NEEDS_APPROVAL: &str = "needs_approval";
