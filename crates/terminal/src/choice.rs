//! The parsing of a typed line into a choice.
//!
//! The parser is strict about a yes and generous about a no, as the one mistake costs more than the other:
//!
//! | typed | means | why |
//! |---|---|---|
//! | nothing | no | Enter pressed from habit must not run anything |
//! | `a`, `y`, `yes` | yes | |
//! | `A` | yes to all, once their number was confirmed | a capital is no slip of the hand |
//! | `yes, but not in main` | nothing; asked again | the text may take the yes back |
//! | `no, use a branch` | no, with the text for the model | the text can only say more |
//! | `ye`, `ok`, `j` | nothing; asked again | a guess would decide for the person |
//!
//! Case matters only for `a` and `d`, whose capitals are about all calls. Spaces around the line do not
//! matter.

/// A choice at the question about a call: a decision, or another action such as showing the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Approve(Scope),
    /// Deny, with the message for the model, which may be empty.
    Deny(Scope, String),
    /// Deny, with a message that is asked for next.
    Message,
    Edit,
    View,
    Help,
    /// Approve, and grant such calls, once the person has seen what is granted.
    Grant,
    /// Leave it for later, in a review.
    Skip,
}

/// The help of a review, after the one of every dialogue.
pub(super) const REVIEWING: &str = "This is a review of asks that wait, one after the other.
  l      leave this one for later: it stays open
  Ctrl-C ends the review. The ask on the screen stays open.";

/// The effect of Esc in the dialogue, and what ends it.
pub(super) fn esc(reviewing: bool) -> &'static str {
    match reviewing {
        true => "Esc decides nothing: d denies, l leaves it for later, Ctrl-C ends the review.",
        false => "Esc decides nothing: d denies, Ctrl-C stops the run.",
    }
}

/// The help about grants, where they are offered.
pub(super) const GRANTING: &str = "  g      always: approve this call, and such calls from now on; what is granted is shown first";

/// The calls that a choice is about, of those without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    This,
    All,
}

pub(super) const HELP: &str = "Nothing runs before the last answer.
  a      approve this call; y is the same
  d      deny it, and type what the model is told; `d TEXT` does both at once
  n      deny it without a word, as Enter alone does
  A, D   approve, deny all that are left; shows their number and asks
  e      change the arguments, then approve
  v      show everything; again: with the masked values
  ?      this help
  Ctrl-C stops the run: nothing is decided, and none of these calls runs.
  A call of which something was left out can be approved once v has shown it.
  `D TEXT` works as `d TEXT` does.";

impl Choice {
    /// Parses a line. An empty line denies, only an exact yes approves, and `None` for any other text decides nothing.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let (word, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let text = text.trim();
        let choice = match word {
            "D" => return Some(Self::Deny(Scope::All, text.to_owned())),
            "A" => Self::Approve(Scope::All),
            word => Self::of_this(&word.to_ascii_lowercase(), text)?,
        };
        // Text after a yes may limit it, as in `yes, but …`. So such a line is no yes.
        (text.is_empty() || matches!(choice, Self::Deny(..))).then_some(choice)
    }

    /// The choice of a word about this call.
    fn of_this(word: &str, text: &str) -> Option<Self> {
        Some(match word {
            "d" if text.is_empty() => Self::Message,
            "" | "d" | "n" | "no" => Self::Deny(Scope::This, text.to_owned()),
            "g" => Self::Grant,
            "a" | "y" | "yes" => Self::Approve(Scope::This),
            "e" => Self::Edit,
            "v" => Self::View,
            "l" if text.is_empty() => Self::Skip,
            "?" | "h" | "help" => Self::Help,
            _ => return None,
        })
    }
}

/// Returns `true` if a line confirms what was just said, such as the number of calls. A letter that approves or denies
/// a call confirms nothing.
pub(super) fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unknown choice decides nothing, and is asked again.
    #[test]
    fn only_an_exact_yes_approves() {
        use Scope::{All, This};
        let deny = |scope, text: &str| Some(Choice::Deny(scope, text.into()));
        for (line, choice) in [
            ("", deny(This, "")),
            ("   ", deny(This, "")),
            ("n", deny(This, "")),
            ("No", deny(This, "")),
            ("n  not today ", deny(This, "not today")),
            ("d", Some(Choice::Message)),
            ("m", None),
            ("d enough", deny(This, "enough")),
            ("D", deny(All, "")),
            ("D enough", deny(All, "enough")),
            ("x", None),
            ("t", None),
            ("y", Some(Choice::Approve(This))),
            (" YES ", Some(Choice::Approve(This))),
            ("a", Some(Choice::Approve(This))),
            ("A", Some(Choice::Approve(All))),
            ("A but not the last", None),
            ("g", Some(Choice::Grant)),
            ("g 2h", None),
            ("s", None),
            ("e", Some(Choice::Edit)),
            ("?", Some(Choice::Help)),
            ("yes, but only once", None),
            ("y but", None),
            ("yy", None),
            ("ok", None),
            ("true", None),
            ("1", None),
            ("\u{443}", None),
            ("a b", None),
            ("noy", None),
        ] {
            assert_eq!(Choice::parse(line), choice, "{line}");
        }
    }
}
