//! Classes of commands, by their effects.
//!
//! A file says `where.command.is = "read-only"`, and means the effects of each simple command, as the table of programs
//! knows them:
//!
//! | class | effects |
//! |---|---|
//! | `read-only` | reads or lists files, changes the directory, only runs another command |
//! | `project-build` | runs code of the workspace: a build, its tests |
//! | `writes` | writes files |
//! | `network` | sends something |
//! | `runs-code` | runs a program or a script that it names |
//! | `environment` | shows the environment |
//! | `destructive` | is denied by the table itself; unknown for a command that is not known |
//! | `denied` | is denied by the table itself; certain for each command that was read |
//! | `queries` | asks a service with the user's credentials, and changes nothing there |
//! | `unknown` | is not in the table, or has an option that is not |
//!
//! A command may be in several classes. A rule that allows has to name *all* of them, a strict rule one of them.

use countersign_shell::Effect;

/// A set of classes of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Classes(u16);

/// The classes by the names that files of rules use.
pub(crate) const CLASSES: &[(&str, Classes)] = &[
    ("read-only", Classes(1)),
    ("project-build", Classes(2)),
    ("writes", Classes(4)),
    ("network", Classes(8)),
    ("runs-code", Classes(16)),
    ("environment", Classes(32)),
    ("unknown", Classes(64)),
    ("destructive", Classes(128)),
    ("denied", Classes(256)),
    ("queries", Classes(512)),
];

impl Classes {
    pub(crate) fn named(name: &str) -> Option<Self> {
        CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class)
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_part_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

pub(super) const DESTRUCTIVE: Classes = Classes(128);
pub(super) const DENIED: Classes = Classes(256);
pub(super) const READ_ONLY: Classes = Classes(1);
pub(crate) const UNKNOWN: Classes = Classes(64);

/// The class of one effect.
pub(crate) fn class(effect: &Effect) -> Classes {
    Classes(match effect {
        Effect::Reads(_) | Effect::Lists(_) | Effect::Wraps(_) | Effect::ChangesDirectory(_) => 1,
        Effect::RunsWorkspace => 2,
        Effect::Writes(_) => 4,
        Effect::Sends(_) => 8,
        Effect::Runs(_) => 16,
        Effect::RevealsEnvironment => 32,
        Effect::Queries(_) => 512,
        _ => 64,
    })
}
