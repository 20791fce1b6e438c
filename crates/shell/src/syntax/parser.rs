//! The parser: lists, pipelines, subshells, simple commands and redirections.
//!
//! The parser is recursive over lists only, with at most four levels, 256 commands and 64 KiB, so no text makes it slow
//! or deep. There is no error recovery: the first unknown thing ends the parsing, with what was read before it.
//!
//! We keep the part that was read, because a denial must not be avoidable by adding something strange: `rm -rf / ; for
//! …` is refused, and `rm -rf /` is judged all the same.
//!
//! Compound commands (`if`, `for`, `while`, `case`, groups) and conditions are in `compounds.rs`. In the place of a
//! program's name we refuse words that begin any other compound command in *any* of the shells, and also `{}` and `-`: a
//! shell that knows them would read everything after them in another way.

use super::commands::{
    Assignment, Commands, Join, Pipeline, Redirection, RedirectionTarget, Refused, SimpleCommand,
    Stage, Word, WordKind,
};
use super::dialect::Dialect;
use super::lexer::{Lexer, Stop};
use super::scanners;

const MAX_TEXT: usize = 64 * 1024;
const MAX_COMMANDS: usize = 256;

/// Words that are part of the grammar of at least one of the shells when they stand in the place of a command's name.
const RESERVED: &[&str] = &[
    "!",
    "[[",
    "]]",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "until",
    "while",
    "{",
    "{}",
    "}",
    "-",
];

/// The parser of one text.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    /// The pipelines that were parsed completely, for [`Refused::read`].
    read: Commands,
    commands: usize,
    /// How many substitutions the position is in.
    substitutions: usize,
    /// How many here-documents the innermost substitution has so far.
    documents: usize,
    /// Where the last word ended.
    word_end: usize,
}

pub(super) type Parsed<T> = Result<T, Stop>;

/// The end of a list of commands, which is not consumed with it.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListEnd {
    Text,
    Parenthesis,
    /// `;;` or `esac`.
    Branch,
    /// One of these words, in the place of a command.
    Words(&'static [&'static str]),
}

/// Returns `true` if a word is part of the grammar where a command begins.
pub(super) fn is_reserved(word: &Word) -> bool {
    !word.quoted && RESERVED.contains(&word.text.as_str())
}

/// Returns `true` if these commands are one pipeline of simple commands.
fn is_one_pipeline(commands: &Commands) -> bool {
    let simple =
        |pipeline: &Pipeline| pipeline.stages.iter().all(|stage| matches!(stage, Stage::Simple(_)));
    matches!(commands.pipelines.as_slice(), [only] if simple(only))
}

/// Returns `true` if Bash takes the word at this place for the name of a job, since it is the first one that is left.
/// Quotes do not help.
fn is_job(words: &[Word], at: usize) -> bool {
    let (Some(before), Some(word)) = (words.get(..at), words.get(at)) else { return false };
    let may_vanish = |word: &Word| word.kind == WordKind::Expansion && !word.quoted;
    let begins =
        word.text.starts_with('%') || word.kind == WordKind::Expansion && word.text.contains('%');
    begins && before.iter().all(may_vanish)
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, dialect: Dialect) -> Self {
        Self {
            lexer: Lexer::new(text, dialect),
            read: Commands::default(),
            commands: 0,
            substitutions: 0,
            documents: 0,
            word_end: usize::MAX,
        }
    }

    pub(crate) fn parse(mut self) -> Result<Commands, Refused> {
        match self.text() {
            Ok(commands) => Ok(commands),
            Err(stop) => {
                let before = self.lexer.text().get(..stop.at).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                Err(Refused { at: stop.at, line, column, why: stop.why, read: self.read })
            }
        }
    }

    fn text(&mut self) -> Parsed<Commands> {
        if !self.lexer.dialect().is_posix() {
            return Err(Stop::new(0, "commands of a Windows shell are not analysed"));
        }
        if self.lexer.text().len() > MAX_TEXT {
            return Err(Stop::new(MAX_TEXT, "the text is longer than 64 KiB"));
        }
        self.lexer.check_characters()?;
        let mut commands = self.list(0, ListEnd::Text)?;
        self.lexer.no_open_documents()?;
        commands.comments = self.lexer.take_comments();
        Ok(commands)
    }

    /// Parses pipelines up to the end of the list, which is not consumed.
    pub(crate) fn list(&mut self, depth: usize, end: ListEnd) -> Parsed<Commands> {
        if depth > 4 {
            return Err(self.lexer.stop("more than 4 levels of nesting"));
        }
        let mut list = Commands::default();
        let mut join = Join::Then;
        let mut separated = true;
        loop {
            if join == Join::Then {
                separated |= self.lexer.skip_lines()?;
            } else {
                self.lexer.skip_lines()?;
            }
            match (self.lexer.peek(), end) {
                (None, ListEnd::Text) if join == Join::Then => {
                    return Ok(std::mem::take(&mut self.read));
                }
                (Some(')'), ListEnd::Parenthesis) if join == Join::Then => return Ok(list),
                (None, _) => {
                    return Err(self.lexer.stop("the text ends in the middle of a command"));
                }
                (_, ListEnd::Branch)
                    if join == Join::Then
                        && (self.lexer.starts_with(";;")
                            || separated && self.lexer.is_keyword("esac")) =>
                {
                    return Ok(list);
                }
                _ if !separated => return Err(self.lexer.stop("two commands without a separator")),
                (_, ListEnd::Words(words))
                    if join == Join::Then
                        && words.iter().any(|word| self.lexer.is_keyword(word)) =>
                {
                    return Ok(list);
                }
                _ => {}
            }
            let pipeline = self.pipeline(join, depth)?;
            // The part that was read stays in the parser, for the case that the rest is refused.
            let pipelines = if depth == 0 { &mut self.read.pipelines } else { &mut list.pipelines };
            pipelines.push(pipeline);
            (join, separated) = self.separator(end)?;
        }
    }

    /// Parses the operator before the next pipeline. Returns also whether there was a separator.
    fn separator(&mut self, end: ListEnd) -> Parsed<(Join, bool)> {
        self.lexer.skip_blanks()?;
        if self.lexer.eat("&&") {
            return Ok((Join::And, true));
        }
        if self.lexer.eat("||") {
            return Ok((Join::Or, true));
        }
        match self.lexer.peek() {
            Some(';') if matches!(end, ListEnd::Branch) && self.lexer.starts_with(";;") => {
                Ok((Join::Then, false))
            }
            Some(';') => {
                self.lexer.eat(";");
                self.lexer.skip_blanks()?;
                match self.lexer.peek() {
                    Some(';' | '&' | '|') => {
                        Err(self.lexer.stop("an operator without a command in front"))
                    }
                    _ => Ok((Join::Then, true)),
                }
            }
            Some('&') => Err(self.lexer.stop("a command in the background is not analysed")),
            _ => Ok((Join::Then, false)),
        }
    }

    fn pipeline(&mut self, join: Join, depth: usize) -> Parsed<Pipeline> {
        let negated = self.lexer.eat_bang();
        if negated {
            self.lexer.skip_blanks()?;
        }
        let mut stages = vec![self.stage(depth)?];
        loop {
            self.lexer.skip_blanks()?;
            if self.lexer.starts_with("||") || self.lexer.peek() != Some('|') {
                return Ok(Pipeline { join, negated, stages });
            }
            if self.lexer.starts_with("|&") {
                self.errors_too(&mut stages)?;
            }
            self.lexer.eat("|");
            self.lexer.eat("&");
            self.lexer.skip_lines()?;
            stages.push(self.stage(depth)?);
        }
    }

    /// Reads `|&` as what it stands for: `2>&1 |`, where the redirection comes after all others.
    fn errors_too(&self, stages: &mut [Stage]) -> Parsed<()> {
        let redirections = match stages.last_mut() {
            Some(Stage::Simple(command)) => &mut command.redirections,
            Some(Stage::Subshell { redirections, .. }) => redirections,
            Some(Stage::Compound(compound)) => &mut compound.redirections,
            Some(Stage::Condition { .. }) | None => {
                return Err(self.lexer.stop("`|&` is not analysed here"));
            }
        };
        if !self.lexer.dialect().has_extensions() {
            return Err(self.lexer.stop("`|&` is not in every `sh`: write `2>&1 |`"));
        }
        redirections.push(Redirection { fd: Some(2), target: RedirectionTarget::Duplicate(1) });
        Ok(())
    }

    fn stage(&mut self, depth: usize) -> Parsed<Stage> {
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Err(self.lexer.stop("more than 256 commands"));
        }
        if self.lexer.peek() != Some('(') {
            return match self.compound(depth)? {
                Some(stage) => Ok(stage),
                None => self.simple(depth).map(Stage::Simple),
            };
        }
        let commands = self.parenthesised(depth, "(")?;
        Ok(Stage::Subshell { commands, redirections: self.redirections(depth)? })
    }

    /// Parses the redirections after a compound command.
    pub(crate) fn redirections(&mut self, depth: usize) -> Parsed<Vec<Redirection>> {
        let mut redirections = Vec::new();
        loop {
            self.lexer.skip_blanks()?;
            match self.redirection(depth)? {
                Some(redirection) => redirections.push(redirection),
                None => return Ok(redirections),
            }
        }
    }

    /// Parses a substitution from its `$(` or `<(` to its end, which has to be where every shell finds it.
    fn substitution(&mut self, depth: usize, opening: &str) -> Parsed<Commands> {
        let start = self.lexer.at();
        self.substitutions += 1;
        let outside = std::mem::take(&mut self.documents);
        let commands = self.parenthesised(depth, opening)?;
        let documents = std::mem::replace(&mut self.documents, outside);
        self.substitutions -= 1;
        // Bash 5.2 writes the commands down anew, and loses a separator behind a document, or a whole line.
        if documents > 0 && !is_one_pipeline(&commands) {
            return Err(Stop::new(start, "a here-document in a substitution with other commands"));
        }
        let inside = start + opening.len()..self.lexer.at().saturating_sub(1);
        match scanners::ends_alike(self.lexer.text(), &inside, self.lexer.comments()) {
            true => Ok(commands),
            false => Err(Stop::new(start, "older shells may end this substitution elsewhere")),
        }
    }

    /// Parses a list between parentheses.
    ///
    /// A second parenthesis right behind the first makes it arithmetic for some shells, also in a process substitution:
    /// they look for its end with another scanner, which knows no comments and no here-documents.
    fn parenthesised(&mut self, depth: usize, opening: &str) -> Parsed<Commands> {
        self.lexer.no_open_documents()?;
        self.lexer.eat(opening);
        if self.lexer.peek() == Some('(') {
            return Err(self.lexer.stop(format!("`{opening}(` is not analysed")));
        }
        let commands = self.list(depth + 1, ListEnd::Parenthesis)?;
        if commands.pipelines.is_empty() {
            return Err(self.lexer.stop("parentheses without a command"));
        }
        self.lexer.no_open_documents()?;
        self.lexer.eat(")");
        Ok(commands)
    }

    fn simple(&mut self, depth: usize) -> Parsed<SimpleCommand> {
        let start = self.lexer.at();
        let mut command = SimpleCommand::default();
        let mut end = start;
        loop {
            self.lexer.skip_blanks()?;
            if let Some(redirection) = self.redirection(depth)? {
                command.redirections.push(redirection);
            } else if self.lexer.is_word_start() {
                self.word_of(&mut command, depth)?;
            } else {
                break;
            }
            end = self.lexer.at();
        }
        command.span = start..end;
        if end == start {
            return Err(self.lexer.unexpected());
        }
        Ok(command)
    }

    fn word_of(&mut self, command: &mut SimpleCommand, depth: usize) -> Parsed<()> {
        let first = command.words.is_empty();
        if first && let Some(name) = self.lexer.eat_assignment()? {
            let start = self.lexer.at();
            let value = if self.lexer.is_word_start() {
                self.word(depth)?
            } else {
                let mut empty = Word::synthetic("");
                empty.span = start..start;
                empty
            };
            if value.text.contains(":~") {
                return Err(self.lexer.stop("`~` in an assignment is not analysed"));
            }
            command.assignments.push(Assignment { name, value });
            return Ok(());
        }
        let at = self.lexer.at();
        let before = command.words.len();
        self.words(depth, &mut command.words)?;
        if is_job(&command.words, before) {
            return Err(Stop::new(at, "`%` begins the name of a job"));
        }
        let [word] = command.words.get(before..).unwrap_or_default() else {
            if first {
                return Err(Stop::new(at, "a brace in the place of a program is not analysed"));
            }
            return Ok(());
        };
        if first && is_reserved(word) {
            let why = format!("`{}` begins a compound command, which is not analysed", word.text);
            return Err(Stop { at, why });
        }
        if self.lexer.peek() == Some('(') {
            return Err(self.lexer.stop("`(` after a word is not analysed"));
        }
        Ok(())
    }

    /// Parses a word that the shell makes no other words from.
    pub(crate) fn word(&mut self, depth: usize) -> Parsed<Word> {
        let at = self.lexer.at();
        let mut words = Vec::new();
        self.words(depth, &mut words)?;
        match (words.pop(), words.is_empty()) {
            (Some(word), true) => Ok(word),
            _ => Err(Stop::new(at, "a brace is not analysed here: quote it")),
        }
    }

    /// Parses a word, which braces turn into several, and adds it.
    pub(crate) fn words(&mut self, depth: usize, words: &mut Vec<Word>) -> Parsed<()> {
        let start = self.lexer.at();
        if self.lexer.starts_with("<(") {
            // The blank before it may be an escaped one.
            if !self.lexer.after_separator() || self.word_end == start {
                return Err(self.lexer.stop("a process substitution within a word"));
            }
            let inner = self.substitution(depth, "<(")?;
            let mut word = Word::synthetic(self.lexer.slice(start));
            word.kind = WordKind::Process;
            word.substitutions.push(inner);
            word.span = start..self.lexer.at();
            self.word_end = self.lexer.at();
            if self.lexer.is_word_start() {
                return Err(self.lexer.stop("a process substitution within a word"));
            }
            words.push(word);
            return Ok(());
        }
        let mut word = self.lexer.begin_word()?;
        // The lexer stops at each `$(`, since the text inside is a list of commands again.
        while self.lexer.continue_word(&mut word)? {
            let inner = self.substitution(depth, "$(")?;
            word.substitution(inner);
        }
        let before = words.len();
        self.lexer.end_word(word, words)?;
        self.word_end = self.lexer.at();
        match words.get(before) {
            // For the scanner of Bash 4, its branches begin wherever the word stands.
            Some(word) if self.substitutions > 0 && !word.quoted && word.text == "case" => {
                Err(Stop::new(start, "the word `case` in a substitution: quote it"))
            }
            _ => Ok(()),
        }
    }

    fn redirection(&mut self, depth: usize) -> Parsed<Option<Redirection>> {
        let at = self.lexer.at();
        let Some((fd, operator)) = self.lexer.eat_redirection()? else { return Ok(None) };
        let target = match operator {
            ">&" => RedirectionTarget::Duplicate(self.lexer.eat_descriptor()?),
            "<<" => {
                // The lexer reads the body ahead, and skips it at the next line break.
                let body = self.lexer.here_document()?;
                self.documents += 1;
                return Ok(Some(Redirection { fd, target: RedirectionTarget::HereDocument(body) }));
            }
            _ => {
                self.lexer.skip_blanks()?;
                if !self.lexer.is_word_start() || self.lexer.peek() == Some('#') {
                    return Err(self.lexer.stop("a redirection without a target"));
                }
                let word = self.word(depth)?;
                if matches!(self.lexer.peek(), Some('<' | '>')) {
                    return Err(self.lexer.stop("two redirections without a space between them"));
                }
                match operator {
                    "<" => RedirectionTarget::Read(word),
                    ">" => RedirectionTarget::Write(word),
                    ">>" => RedirectionTarget::Append(word),
                    "&>" => RedirectionTarget::WriteAll(word),
                    "<<<" => RedirectionTarget::HereString(word),
                    _ => return Err(Stop::new(at, "a redirection that is not analysed")),
                }
            }
        };
        Ok(Some(Redirection { fd, target }))
    }
}

impl Commands {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// [`Refused`] for syntax that the lexer does not know or that the POSIX shells interpret differently, and for a
    /// text beyond a limit (64 KiB of text, 256 commands, 4 096 words, 4 levels of nesting).
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, Refused> {
        Parser::new(text, dialect).parse()
    }
}
