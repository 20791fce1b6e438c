//! The reasons for which a call is asked about, as one text.

use countersign::decision::Question;

/// The reasons of questions, for a model or a client: all but those of previews, which only a surface can show.
pub(crate) fn reasons(questions: &[Question]) -> String {
    let mut said: Vec<&str> = Vec::new();
    for question in questions.iter().filter(|question| !is_of_previews(question)) {
        // Two rules may ask for one reason.
        if !said.contains(&question.reason()) {
            said.push(question.reason());
        }
    }
    said.join("; ")
}

/// Returns `true` if a question only shows what the call would do.
pub(crate) fn is_of_previews(question: &Question) -> bool {
    question.key() == "preview" && !question.previews().is_empty()
}
