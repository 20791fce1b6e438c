//! The variables that a text sets itself: by `for`, by `while read`, and by an assignment.
//!
//! A variable of the environment may be a secret, and its value is never known here. A variable that the text sets is
//! another matter: in `for f in a.rs b.rs; do wc -l "$f"; done` it is one word after the other, and the commands are
//! judged with each. Where the value is not known, it is at least no secret of the environment, so that it may be
//! printed; it is no path and no option that could be judged, and is asked about there.
//!
//! | set by | value | `cat "$f"` |
//! |---|---|---|
//! | `for f in a.rs` | `a.rs` | judged as `cat a.rs` |
//! | `for f in *.rs` | the pattern, which stands for each of its files | judged as `cat *.rs` |
//! | `for f in $(find src)`, `find src \| while read -r f` | a path in the workspace, where no name there has a blank | judged as `find src \| xargs cat` |
//! | the same where a name may have one | a part of a path in the workspace | asked; allowed for `wc`, which shows no content |
//! | `f=$(git rev-parse HEAD)`, `for f in $(git rev-list main)` | a commit | asked; `git show $f` is judged with one |
//! | `for f in $(cmd)`, `read f` | text | asked |
//!
//! # What is not followed
//!
//! A name is bound once at a time, and the binding ends with the loop or the list: setting it again inside is asked about,
//! since whether that happens is known only when it runs. Names that programs or shells give a meaning to (`PATH`,
//! `HOME`, `path`, `http_proxy`) are asked about, too: the environment may have them, and then programs see the value.
//!
//! Other names in capitals are free where the environment of this process does not have them, as then the shell does not
//! export them: `SP=src; cat $SP/a.rs`. Where no file of this machine is looked at, its environment says nothing.

use super::daily::is_named;
use super::environment::{self, ActingVariable};
use crate::names::lists::names;
use crate::places::paths::Workspace;
use crate::syntax::commands::Word;

/// The value of a variable.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// One word of the text. Unless it is `plain`, a shell may make other words from it where it is not quoted.
    Word { word: Word, plain: bool },
    /// A path in the workspace, or a part of one.
    Line {
        /// `true` if no program takes the whole of it for anything but a path.
        is_plain: bool,
        /// `true` if it is the whole path, no shell makes other words of it, and it is none of a link that leads out.
        is_whole: bool,
    },
    /// A commit, as git prints it.
    Commit {
        /// `true` if it may be empty, as nothing was printed.
        may_be_empty: bool,
    },
    /// Anything but a secret of the environment.
    Text,
}

/// A variable with its value.
#[derive(Debug)]
pub(super) struct Binding {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// `true` if a word with the variable was judged.
    pub(crate) used: bool,
}

/// Returns `true` if no program and no shell gives a meaning to a variable of this name, or if none but the shell sees it.
pub(super) fn is_free_name(name: &str, workspace: &Workspace) -> bool {
    is_meaningless(name)
        || workspace.looks() && is_unknown(name) && std::env::var_os(name).is_none()
}

/// Returns `true` if no program and no shell is known to give a meaning to a name in capitals, and no command of a text may
/// export it.
fn is_unknown(name: &str) -> bool {
    let of_shells = names("variables of shells in capitals");
    is_in_capitals(name)
        && !of_shells.iter().any(|pattern| is_named(pattern, name))
        && !environment::is_settable(name)
        && ActingVariable::find(name, "./x").is_none()
}

/// Returns `true` for a name such as `HOME` or `MY_DIR2`.
pub(super) fn is_in_capitals(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(plain)
}

/// Returns `true` if programs and shells give no meaning to variables of such names.
fn is_meaningless(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = [
        "npm_", "yarn_", "pnpm_", "bun_", "uv_", "ac_", "am_", "lt_", "zsh_", "dis_", "zcurses_",
        "_",
    ];
    let lower = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(plain)
        && !begins.iter().any(|beginning| name.starts_with(beginning))
        && !name.ends_with("_proxy")
        && !names("variables of shells").contains(&name);
    let letter = name.len() == 1 && name.starts_with(|c: char| c.is_ascii_uppercase());
    lower || letter || names("free variables").contains(&name)
}
