//! Why a command does not match the description of its program.

use crate::syntax::commands::Word;

/// Why arguments do not match an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unmatched {
    Option(String),
    SubCommand(String),
    Operand(String),
    ValueMissing(String),
    Needs(String),
    MayBeOption(String),
    MayBeSubCommand(String),
    MayBeOperand(String),
}

impl Unmatched {
    /// The reason to ask about a command of this program, for people.
    pub(crate) fn reason(&self, name: &str, args: &[Word]) -> String {
        match self {
            Self::Option(option) => {
                format!("`{name}` with the option `{option}` is not known to be harmless")
            }
            Self::SubCommand(sub) if sub.is_empty() => {
                format!("`{name}` alone is not known to be harmless")
            }
            Self::SubCommand(sub) => {
                // `docker compose up`, and not `docker up`.
                let before = args.iter().take_while(|word| word.text != *sub);
                let before = before.filter(|word| !word.text.starts_with('-'));
                let words: Vec<&str> = before.map(|word| word.text.as_str()).collect();
                let path = [&[name][..], &words, &[sub.as_str()]].concat().join(" ");
                format!("`{path}` is not known to be harmless")
            }
            Self::Operand(operand) => {
                format!("`{name}` with the operand `{operand}` is not known to be harmless")
            }
            Self::ValueMissing(option) => format!("the option `{option}` of `{name}` has no value"),
            Self::Needs(needed) => format!("`{name}` without {needed} is not known to be harmless"),
            Self::MayBeOption(word) => format!("`{word}` may become an option of `{name}`"),
            Self::MayBeSubCommand(word) => format!("`{word}` may be the sub-command of `{name}`"),
            Self::MayBeOperand(word) => format!("`{word}` may be what `{name}` runs"),
        }
    }
}
