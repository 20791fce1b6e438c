//! The one reader for each kind of text that names a place: paths, URLs, hosts, patches.
//!
//! A program that acts on a text reads it in its own way. If the code that decides reads it in another way, the call that
//! was judged is not the call that runs. For example, `FILE:///etc/secret` is a file for a browser's URL, and
//! `"x\n/../.git/config"` is one for Node's `path.resolve`. So each kind of text has one reader, here: rules, their floor
//! and hooks call this module, and the guard asks its rules. The crate `shell` cuts the words of commands, and has the
//! list of protected names.
//!
//! A reader returns *all* readings that a consumer may make. The consumer decides which ones there are:
//!
//! | consumer | its readings | read by |
//! |---|---|---|
//! | the kernel: words and targets of commands | as they are, `~`, globs, behind `=` or an option | `word` |
//! | a tool: strings of its arguments | also trimmed, `file:`, percent-decoded, with `\` as `/`, composed, as JSON | [`argument`] |
//! | a patch | the names of files in its headers | [`patch`] |
//! | a client that connects | the host, as browsers read it, and doubts where other clients differ | `host` |
//!
//! A rule that allows speaks only if all readings match. A rule that denies does so for a reading that is certain, and
//! asks for one that is possible. If a text cannot be read, a rule that allows is silent, and one that denies asks
//! (rule X2).

pub mod argument;
pub(crate) mod host;
pub mod patch;
pub mod prose;
pub(crate) mod scheme;
pub mod shells;
pub mod tools;
pub(crate) mod word;
