//! Questions of a command to the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::output::CommandError;

/// Returns `true` if a person can be asked here.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks a question, and gives the line that was typed. A closed terminal is an error.
pub(crate) fn asked(question: &str) -> Result<String, CommandError> {
    let failed = |error: io::Error| CommandError::Store(error.to_string());
    let mut out = io::stdout().lock();
    write!(out, "{question} ").and_then(|()| out.flush()).map_err(failed)?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).map_err(failed)?;
    match read {
        0 => Err(CommandError::Usage("no one answers: nothing was changed".to_owned())),
        _ => Ok(line.trim().to_owned()),
    }
}

/// Asks until the answer is yes or no; `None` where no person can be asked.
pub(crate) fn yes_or_no(question: &str) -> Result<Option<bool>, CommandError> {
    let mut question = format!("{question} (y/n):");
    while is_there() {
        match asked(&question)?.to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(true)),
            "n" | "no" => return Ok(Some(false)),
            _ => "Type y for yes, or n for no:".clone_into(&mut question),
        }
    }
    Ok(None)
}

/// Asks until the answer is one of these words, or the beginning of one. An empty line is the first.
pub(crate) fn choice(question: &str, words: &[&'static str]) -> Result<&'static str, CommandError> {
    let all = words.join(", ");
    let first = words.first().copied().unwrap_or_default();
    loop {
        let line = asked(&format!("{question} ({all}) [{first}]:"))?.to_lowercase();
        if let Some(word) = words.iter().find(|word| word.starts_with(&line)) {
            return Ok(word);
        }
    }
}
