//! Why a command does not match the description of its program.

/// Why arguments do not match an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unmatched {
    Option(String),
    SubCommand(String),
    Operand(String),
    ValueMissing(String),
    Needs(String),
    MayBeOption(String),
}
