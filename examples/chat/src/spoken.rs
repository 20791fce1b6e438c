//! The part of a conversation that scripted models read.

use countersign::Message;
use countersign::message::RequestPart;

/// The user's last message, and everything behind it.
pub(crate) fn since_the_user_spoke(history: &[Message]) -> (String, &[Message]) {
    let has_results =
        |parts: &[RequestPart]| parts.iter().any(|it| matches!(it, RequestPart::ToolReturn { .. }));
    let prompt = |message: &Message| match message {
        // A text beside the results of calls is about them, and not from the user.
        Message::Request { parts } if has_results(parts) => None,
        Message::Request { parts } => parts.iter().find_map(|part| match part {
            RequestPart::UserPrompt { content } => content.as_str().map(str::to_owned),
            _ => None,
        }),
        Message::Response { .. } => None,
    };
    let last = history.iter().rposition(|message| prompt(message).is_some());
    let Some((said, since)) = last.and_then(|at| history.get(at..)?.split_first()) else {
        return (String::new(), &[]);
    };
    (prompt(said).unwrap_or_default(), since)
}
