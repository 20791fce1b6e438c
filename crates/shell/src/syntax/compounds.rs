//! The parser's part for compound commands: `if`, `for`, `while`, `until`, `case`, groups, and
//! conditions.
//!
//! The grammar is the part that `sh`, `bash` and `zsh` have in common, with every separator written: after a condition
//! and after each list there is a `;` or a line break. The short forms of `zsh` (`for f (a b) …`, `if … { … }`), `for`
//! without `in`, the other ends of branches (`;&`), and `select` are refused.
//!
//! | text | read as |
//! |---|---|
//! | `if a; then b; elif c; then d; else e; fi` | the lists `a`, `b`, `c`, `d`, `e` |
//! | `for f in a *.rs; do b; done` | the list `b`, and the words |
//! | `case $x in a\|b*) c;; *) d;; esac` | the lists `c`, `d`, the word and the patterns |
//! | `while a; do b; done` | the lists `a`, `b` |
//! | `{ a; b; }` | the list `a; b` |
//! | `[[ -f a && $x == b* ]]` | the words between the brackets; not in `sh` |

use super::commands::{Commands, Compound, CompoundKind, Stage, Word, WordKind};
use super::lexer::Stop;
use super::parser::{ListEnd, Parsed, Parser, is_reserved};

impl Parser<'_> {
    /// Parses a compound command or a condition, if one begins here.
    pub(crate) fn compound(&mut self, depth: usize) -> Parsed<Option<Stage>> {
        let start = self.lexer.at();
        let begins =
            self.lexer.peek().is_some_and(|c| matches!(c, 'i' | 'f' | 'w' | 'u' | 'c' | '{' | '['));
        if !begins {
            return Ok(None);
        }
        let (kind, lists) = if self.lexer.eat_keyword("if") {
            (CompoundKind::If, self.branches(depth)?)
        } else if self.lexer.eat_keyword("while") {
            (CompoundKind::While, self.condition_and_body(depth)?)
        } else if self.lexer.eat_keyword("until") {
            (CompoundKind::Until, self.condition_and_body(depth)?)
        } else if self.lexer.eat_keyword("for") {
            let (variable, words) = self.words_of_for(depth)?;
            (CompoundKind::For { variable, words }, vec![self.body(depth, &["done"])?.0])
        } else if self.lexer.eat_keyword("case") {
            self.case(depth)?
        } else if self.lexer.eat_keyword("{") {
            (CompoundKind::Group, vec![self.body(depth, &["}"])?.0])
        } else if self.lexer.dialect().has_extensions() && self.lexer.eat_keyword("[[") {
            return self.condition(depth, start).map(Some);
        } else {
            return Ok(None);
        };
        let span = start..self.lexer.at();
        let redirections = self.redirections(depth)?;
        Ok(Some(Stage::Compound(Compound { kind, lists, redirections, span })))
    }

    /// Parses a list and the word that ends it, which is returned with the list.
    fn body(
        &mut self,
        depth: usize,
        ends: &'static [&'static str],
    ) -> Parsed<(Commands, &'static str)> {
        self.lexer.no_open_documents()?;
        let list = self.list(depth + 1, ListEnd::Words(ends))?;
        self.lexer.no_open_documents()?;
        if list.pipelines.is_empty() {
            return Err(self.lexer.stop("a compound command without a command in it"));
        }
        let end = ends.iter().find(|end| self.lexer.is_keyword(end)).copied().unwrap_or_default();
        self.lexer.eat(end);
        Ok((list, end))
    }

    fn branches(&mut self, depth: usize) -> Parsed<Vec<Commands>> {
        let mut lists = vec![self.body(depth, &["then"])?.0];
        loop {
            let (list, end) = self.body(depth, &["elif", "else", "fi"])?;
            lists.push(list);
            match end {
                "elif" => lists.push(self.body(depth, &["then"])?.0),
                "else" => {
                    lists.push(self.body(depth, &["fi"])?.0);
                    return Ok(lists);
                }
                _ => return Ok(lists),
            }
        }
    }

    fn condition_and_body(&mut self, depth: usize) -> Parsed<Vec<Commands>> {
        let condition = self.body(depth, &["do"])?.0;
        Ok(vec![condition, self.body(depth, &["done"])?.0])
    }

    /// Parses `name in words; do`.
    fn words_of_for(&mut self, depth: usize) -> Parsed<(String, Vec<Word>)> {
        self.lexer.skip_blanks()?;
        let name = self.lexer.eat_name().map(str::to_owned);
        let Some(name) = name else {
            return Err(self.lexer.stop("a `for` without a plain name is not analysed"));
        };
        self.lexer.skip_blanks()?;
        if !self.lexer.eat_keyword("in") {
            return Err(self.lexer.stop("a `for` without `in` is not analysed"));
        }
        let mut words = Vec::new();
        loop {
            self.lexer.skip_blanks()?;
            if !self.lexer.is_word_start() {
                break;
            }
            let at = self.lexer.at();
            let mut more = Vec::new();
            self.words(depth, &mut more)?;
            if more.iter().any(|word| is_reserved(word) || word.kind == WordKind::Process) {
                return Err(Stop::new(at, "this word after `in` is not analysed"));
            }
            words.extend(more);
        }
        if words.is_empty() || !(self.lexer.eat(";") || self.lexer.peek() == Some('\n')) {
            return Err(self.lexer.stop("a `for` without words and a separator is not analysed"));
        }
        self.lexer.skip_lines()?;
        match self.lexer.eat_keyword("do") {
            true => Ok((name, words)),
            false => Err(self.lexer.stop("a `for` without `do` is not analysed")),
        }
    }

    /// Parses `word in pattern) list;; … esac`.
    fn case(&mut self, depth: usize) -> Parsed<(CompoundKind, Vec<Commands>)> {
        self.lexer.skip_blanks()?;
        if !self.lexer.is_word_start() {
            return Err(self.lexer.stop("a `case` without a word is not analysed"));
        }
        let word = Box::new(self.word(depth)?);
        self.lexer.skip_blanks()?;
        if !self.lexer.eat_keyword("in") {
            return Err(self.lexer.stop("a `case` without `in` is not analysed"));
        }
        let (mut patterns, mut lists) = (Vec::new(), Vec::new());
        loop {
            self.lexer.skip_lines()?;
            if self.lexer.is_keyword("esac") {
                self.lexer.eat("esac");
                return Ok((CompoundKind::Case { word, patterns }, lists));
            }
            self.patterns(depth, &mut patterns)?;
            self.lexer.no_open_documents()?;
            let list = self.list(depth + 1, ListEnd::Branch)?;
            self.lexer.no_open_documents()?;
            if !list.pipelines.is_empty() {
                lists.push(list);
            }
            if self.lexer.eat(";;") && matches!(self.lexer.peek(), Some('&' | '|' | ';')) {
                return Err(self.lexer.stop("only `;;` ends a branch here"));
            }
        }
    }

    /// Parses `pattern|pattern)`. What a shell replaces in a pattern is not analysed.
    fn patterns(&mut self, depth: usize, patterns: &mut Vec<Word>) -> Parsed<()> {
        loop {
            self.lexer.skip_blanks()?;
            let at = self.lexer.at();
            if !self.lexer.is_word_start() {
                return Err(self.lexer.stop("this pattern is not analysed"));
            }
            let word = self.word(depth)?;
            let is_plain = matches!(word.kind, WordKind::Literal | WordKind::Glob)
                && word.parameters.is_empty()
                && word.substitutions.is_empty();
            if !is_plain || is_reserved(&word) {
                return Err(Stop::new(at, "this pattern is not analysed"));
            }
            patterns.push(word);
            self.lexer.skip_blanks()?;
            if self.lexer.eat(")") {
                return Ok(());
            }
            if !self.lexer.eat("|") {
                return Err(self.lexer.stop("this pattern is not analysed"));
            }
        }
    }

    /// Parses the words of a condition up to its `]]`, all on one line.
    fn condition(&mut self, depth: usize, start: usize) -> Parsed<Stage> {
        let mut words = Vec::new();
        loop {
            self.lexer.skip_blanks()?;
            let at = self.lexer.at();
            if self.lexer.is_keyword("]]") {
                self.lexer.eat("]]");
                break;
            }
            let operators = ["&&", "||", "=="];
            let operator = operators.into_iter().find(|text| self.lexer.eat_keyword(text));
            let word = match operator {
                Some(operator) => {
                    let mut word = Word::synthetic(operator);
                    word.span = at..self.lexer.at();
                    word
                }
                None if self.lexer.is_word_start() => self.word(depth)?,
                None => return Err(self.lexer.stop("this condition is not analysed")),
            };
            words.push(word);
        }
        self.lexer.no_open_documents()?;
        Ok(Stage::Condition { words, span: start..self.lexer.at() })
    }
}
