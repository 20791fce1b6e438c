//! The modes of the full screen: a mode says what a key means, and what is drawn.

use super::dialogue::MANY_APPROVED;
use super::form::ArgsForm;
use super::line::Line;
use countersign::args::Args;

/// The mode of the list, by which keys are interpreted.
pub(super) enum Mode {
    List,
    Help,
    /// A line is typed.
    Typing(Purpose, Line),
    /// The arguments of the selected call are edited.
    Form(ArgsForm),
    /// The selected call with edited arguments.
    Edited(Args),
    /// The grant that would be made with the approval of the selected call.
    Grant,
}

impl Mode {
    /// The number of the mode, whatever it holds.
    pub(super) fn number(&self) -> u8 {
        match self {
            Self::List => 0,
            Self::Help => 1,
            Self::Typing(..) => 2,
            Self::Form(_) => 3,
            Self::Edited(_) => 4,
            Self::Grant => 5,
        }
    }
}

/// The purpose of the line that a person types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A message for the model, with the denial.
    Message,
    Search,
    /// The question for how long a grant is valid.
    Until,
    /// The confirmation to approve so many calls: their number.
    ApproveMany(usize),
    /// The confirmation to deny so many calls.
    DenyMany(usize),
}

/// The next step of the caller after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterKey {
    Stay,
    /// The editor has to be started with the draft of the selected call.
    Edit,
    /// Every call has an answer.
    Done,
}

/// The text that a person types to approve so many calls at once: the number, where there are many.
pub(super) fn approval_word(calls: usize) -> String {
    if calls > MANY_APPROVED { format!("all {calls}") } else { "yes".to_owned() }
}
