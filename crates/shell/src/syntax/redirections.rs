//! The lexer's part for redirections and here-documents.
//!
//! We match operators from the longest to the shortest, and refuse everything that begins like a known one and is not
//! known: `>|` overwrites in spite of `noclobber`, `<>` opens for reading and writing, `>&-` closes a descriptor, and
//! `2>&x` is a file in some shells and an error in others. Only the descriptors 0, 1 and 2 exist here.
//!
//! An unquoted here-document is expanded like text in double quotes; one with `$`, a backtick or a backslash in it is
//! refused with the advice to quote its end, which makes it literal in every shell.

use super::lexer::{Lexer, Stop};

impl Lexer<'_> {
    /// Reads the file descriptor and the operator of a redirection; `None` if none begins here.
    pub(super) fn eat_redirection(&mut self) -> Result<Option<(Option<u8>, &'static str)>, Stop> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let operator = rest.get(digits..).unwrap_or_default();
        if self.dialect.has_extensions() && digits == 0 && operator.starts_with("&>") {
            let after = operator.get(2..).unwrap_or_default();
            if after.starts_with(['<', '>', '&', '|', '!', '(']) {
                return Err(self.stop("this redirection is not analysed"));
            }
            // To zsh the digit is a descriptor, and to Bash a word.
            if self.before().is_some_and(|c| c.is_ascii_digit()) {
                return Err(self.stop("`&>` behind a digit is not analysed"));
            }
            self.at += 2;
            return Ok(Some((None, "&>")));
        }
        if !operator.starts_with(['<', '>']) || (digits == 0 && self.is_word_start()) {
            return Ok(None);
        }
        let fd = match rest.get(..digits).unwrap_or_default() {
            "" => None,
            "0" => Some(0),
            "1" => Some(1),
            "2" => Some(2),
            _ => return Err(self.stop("only the file descriptors 0, 1 and 2 are analysed")),
        };
        for refused in ["<>", ">|", "<&", "<<-", ">&-", ">>|", ">(", ">>&", "<("] {
            if operator.starts_with(refused) {
                return Err(self.stop(format!("`{refused}` is not analysed")));
            }
        }
        let known: &[&'static str] = &["<<<", "<<", "<", ">>", ">&", ">"];
        let found =
            known.iter().find(|known| operator.starts_with(**known)).copied().unwrap_or("<");
        if found == "<<<" && !self.dialect.has_extensions() {
            return Err(self.stop("`<<<` is not in every `sh`"));
        }
        let after = operator.get(found.len()..).unwrap_or_default();
        if after.starts_with(['<', '>', '&', '|', '!'])
            || (found == "<" && after.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        {
            return Err(self.stop("this redirection is not analysed"));
        }
        self.at += digits + found.len();
        Ok(Some((fd, found)))
    }

    /// Reads the descriptor after `>&`.
    pub(super) fn eat_descriptor(&mut self) -> Result<u8, Stop> {
        let fd = match self.peek() {
            Some('1') => 1,
            Some('2') => 2,
            _ => return Err(self.stop("`>&` to anything but 1 or 2 is not analysed")),
        };
        self.at += 1;
        if self.is_word_start() || matches!(self.peek(), Some('<' | '>')) || self.starts_with("&>")
        {
            return Err(self.stop("`>&` to anything but 1 or 2 is not analysed"));
        }
        Ok(fd)
    }

    /// Reads the delimiter and, ahead of the rest of the line, the body of a here-document whose `<<` was just read.
    pub(super) fn here_document(&mut self) -> Result<String, Stop> {
        self.skip_blanks()?;
        let start = self.at;
        if self.resume.is_some() {
            return Err(self.stop("two here-documents on one line are not analysed"));
        }
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"'));
        self.at += usize::from(quote.is_some());
        let rest = self.rest();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let delimiter = rest.get(..end).unwrap_or_default();
        self.at += end;
        if delimiter.is_empty() || (quote.is_some() && self.bump() != quote) || self.is_word_start()
        {
            return Err(Stop::new(start, "only a plain or quoted name can end a here-document"));
        }
        let body_start = match self.rest().find('\n') {
            Some(line) => self.at + line + 1,
            None => return Err(Stop::new(start, "a here-document without its end")),
        };
        let mut at = body_start;
        for line in self.text.get(body_start..).unwrap_or_default().split_inclusive('\n') {
            if line.trim_end_matches('\n') == delimiter {
                let body = self.text.get(body_start..at).unwrap_or_default();
                if quote.is_none() && body.contains(['$', '`', '\\']) {
                    return Err(Stop::new(
                        body_start,
                        "an expansion in a here-document: quote its end",
                    ));
                }
                self.resume = Some(at + line.len());
                return Ok(body.to_owned());
            }
            at += line.len();
        }
        Err(Stop::new(start, "a here-document without its end"))
    }

    /// Refuses parentheses, or the end of the text, on a line that opened a here-document.
    pub(super) fn no_open_documents(&self) -> Result<(), Stop> {
        match self.resume {
            None => Ok(()),
            Some(_) => Err(self.stop("a here-document within parentheses is not analysed")),
        }
    }
}
