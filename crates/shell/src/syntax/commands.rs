//! The syntax tree of a text: lists of pipelines of simple commands.
//!
//! The tree has what a shell does, and not how a text looks: quotes are gone, operators are enums, and each word says
//! what the shell will make of it. Nothing in it is evaluated. A word with `$HOME` has the text `$HOME` and the kind
//! `Expansion`, and each reader decides what it can say about a value that is known only when the command runs.
//!
//! Spans are byte ranges of the original text, so a surface can mark a command where it stands. A word that the
//! analysis has made (a path in the place of `{}`) has an empty span.

use std::fmt;
use std::ops::Range;

/// The commands of a text, parsed.
///
/// Parsing is strict: we refuse syntax that the lexer does not know, and do not guess. `sh`, `bash` and `zsh`
/// interpret an accepted text in the same way.
///
/// ```
/// use countersign_shell::{Commands, Dialect};
///
/// let commands = Commands::parse("cd src && grep -rn 'fn main' . | head -5 > /dev/null", Dialect::Bash)?;
/// let argv: Vec<_> = commands.simple_commands().map(|command| command.argv().unwrap().join(" ")).collect();
/// assert_eq!(argv, ["cd src", "grep -rn fn main .", "head -5"]);
///
/// let refused = Commands::parse("ls; select x in a; do ls; done", Dialect::Bash).unwrap_err();
/// assert_eq!(refused.to_string(), "line 1, column 5: `select` begins a compound command, which is not analysed");
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commands {
    pub(crate) pipelines: Vec<Pipeline>,
    pub(crate) comments: Vec<Range<usize>>,
}

/// The operator between a pipeline and the one before it.
///
/// ```
/// use countersign_shell::{Commands, Dialect, Join};
///
/// let commands = Commands::parse("a && b || c; d", Dialect::Sh)?;
/// let joins: Vec<_> = commands.pipelines().iter().map(|pipeline| pipeline.join()).collect();
/// assert_eq!(joins, [Join::Then, Join::And, Join::Or, Join::Then]);
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// Nothing (the first pipeline), `;` or a line break: the pipeline always runs.
    Then,
    /// `&&`: the pipeline runs if the one before it succeeded.
    And,
    /// `||`: the pipeline runs if the one before it failed.
    Or,
}

/// Commands joined by `|`, each of which writes to the input of the next.
///
/// ```
/// use countersign_shell::{Commands, Dialect};
///
/// let commands = Commands::parse("! grep -q x a.txt | wc -l", Dialect::Bash)?;
/// let pipeline = &commands.pipelines()[0];
/// assert_eq!((pipeline.is_negated(), pipeline.stages().len()), (true, 2));
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    pub(crate) join: Join,
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Stage>,
}

impl Pipeline {
    /// The operator before this pipeline.
    #[must_use]
    pub fn join(&self) -> Join {
        self.join
    }

    /// Returns `true` if `!` negates the exit status.
    #[must_use]
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// The commands of the pipeline, at least one.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

/// One command of a pipeline.
///
/// ```
/// use countersign_shell::{Commands, Dialect, Stage};
///
/// let commands = Commands::parse("(cd src; ls) > list.txt", Dialect::Sh)?;
/// let Stage::Subshell { commands, redirections } = &commands.pipelines()[0].stages()[0] else { unreachable!() };
/// assert_eq!((commands.pipelines().len(), redirections.len()), (2, 1));
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// A program or builtin with its arguments.
    Simple(SimpleCommand),
    /// A subshell, `( … )`.
    Subshell {
        /// The commands between the parentheses.
        commands: Commands,
        /// The redirections after the closing parenthesis.
        redirections: Vec<Redirection>,
    },
    /// Commands that run depending on others, or for each of several words: `if`, `for`, `while`, `{ … }`.
    Compound(Compound),
    /// A condition, `[[ … ]]`: the words between the brackets.
    Condition {
        /// The words, with `&&`, `||` and the comparisons among them. A pattern in them is not expanded.
        words: Vec<Word>,
        /// The byte range of the condition in the text.
        span: Range<usize>,
    },
}

/// Commands that run depending on others, or for each of several words.
///
/// ```
/// use countersign_shell::{Commands, CompoundKind, Dialect, Stage};
///
/// let text = "for f in a.rs src/*.rs; do if grep -q x \"$f\"; then wc -l \"$f\"; fi; done | sort";
/// let commands = Commands::parse(text, Dialect::Bash)?;
/// let Stage::Compound(each) = &commands.pipelines()[0].stages()[0] else { unreachable!() };
/// let CompoundKind::For { variable, words } = each.kind() else { unreachable!() };
/// assert_eq!((variable.as_str(), words.len()), ("f", 2));
/// let Stage::Compound(inner) = &each.lists()[0].pipelines()[0].stages()[0] else { unreachable!() };
/// assert_eq!((inner.kind(), inner.lists().len()), (&CompoundKind::If, 2));
/// assert!(text[each.span()].ends_with("done"));
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    pub(crate) kind: CompoundKind,
    pub(crate) lists: Vec<Commands>,
    pub(crate) redirections: Vec<Redirection>,
    pub(crate) span: Range<usize>,
}

/// The kind of a [`Compound`], which says when its lists run.
///
/// ```
/// use countersign_shell::{Commands, CompoundKind, Dialect, Stage};
///
/// let commands = Commands::parse("until test -e ready; do sleep 1; done", Dialect::Sh)?;
/// let Stage::Compound(waits) = &commands.pipelines()[0].stages()[0] else { unreachable!() };
/// assert_eq!(waits.kind(), &CompoundKind::Until);
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompoundKind {
    /// `{ …; }`: one list, which runs in this shell.
    Group,
    /// `if`: the conditions and what they lead to, alternately, and at last what runs after `else`, if there is any.
    If,
    /// `while`: the condition, and the list that runs as long as it succeeds.
    While,
    /// `until`: the condition, and the list that runs as long as it fails.
    Until,
    /// `for`: one list, which runs once for each word.
    For {
        /// The variable that has the word as its value.
        variable: String,
        /// The words after `in`, which the shell expands first.
        words: Vec<Word>,
    },
    /// `case`: the lists of its branches that are not empty, of which at most one runs.
    Case {
        /// The word that is compared with the patterns.
        word: Box<Word>,
        /// The patterns of all branches: literal texts and globs.
        patterns: Vec<Word>,
    },
}

impl Compound {
    /// The kind of the compound command.
    #[must_use]
    pub fn kind(&self) -> &CompoundKind {
        &self.kind
    }

    /// Its lists of commands, in the order of the text.
    #[must_use]
    pub fn lists(&self) -> &[Commands] {
        &self.lists
    }

    /// The redirections after its end, which all of its commands inherit.
    #[must_use]
    pub fn redirections(&self) -> &[Redirection] {
        &self.redirections
    }

    /// The byte range in the text, without the redirections.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// A program or builtin with its arguments, assignments and redirections.
///
/// ```
/// use countersign_shell::{Commands, Dialect};
///
/// let text = "RUST_LOG=debug cargo test -q 2> err.txt";
/// let commands = Commands::parse(text, Dialect::Bash)?;
/// let command = commands.simple_commands().next().unwrap();
/// assert_eq!(command.argv().unwrap(), ["cargo", "test", "-q"]);
/// assert_eq!(command.assignments()[0].name(), "RUST_LOG");
/// assert_eq!(command.redirections()[0].fd(), Some(2));
/// assert_eq!(&text[command.span()], text);
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
///
/// ```
/// use countersign_shell::{Commands, Dialect, RedirectionTarget};
///
/// let text = "LANG=C sort -r names.txt 2> /dev/null";
/// let commands = Commands::parse(text, Dialect::Bash)?;
/// let command = commands.simple_commands().next().unwrap();
/// assert_eq!(command.argv(), Some(vec!["sort", "-r", "names.txt"]));
/// assert_eq!((command.assignments()[0].name(), command.assignments()[0].value().text()), ("LANG", "C"));
/// let redirection = &command.redirections()[0];
/// assert_eq!(redirection.fd(), Some(2));
/// assert!(matches!(redirection.target(), RedirectionTarget::Write(word) if word.text() == "/dev/null"));
/// assert_eq!(text.get(command.span()), Some(text));
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
    pub(crate) span: Range<usize>,
}

impl SimpleCommand {
    /// The assignments before the program, such as `RUST_LOG=debug`.
    #[must_use]
    pub fn assignments(&self) -> &[Assignment] {
        &self.assignments
    }

    /// The program and its arguments; empty if the command has only assignments or redirections.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// The redirections, in the order of the text.
    #[must_use]
    pub fn redirections(&self) -> &[Redirection] {
        &self.redirections
    }

    /// The program and its arguments as text, if all of them are literals.
    #[must_use]
    pub fn argv(&self) -> Option<Vec<&str>> {
        self.words.iter().map(Word::literal).collect()
    }

    /// Returns `true` if the command may change the directory of the shell that runs it, now or later: a `cd`, a builtin that runs
    /// a text, or a program whose name the shell expands.
    ///
    /// ```
    /// use countersign_shell::{Commands, Dialect};
    ///
    /// let first = |text: &str| Commands::parse(text, Dialect::Bash).unwrap().simple_commands().next().cloned().unwrap();
    /// assert!(["cd docs", "time -p cd docs", "eval ls", "$c docs"].iter().all(|text| first(text).may_change_directory()));
    /// assert!(["ls docs", "time ls docs"].iter().all(|text| !first(text).may_change_directory()));
    /// ```
    #[must_use]
    pub fn may_change_directory(&self) -> bool {
        may_change_directory(&self.words)
    }

    /// The byte range of the command in the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// Returns `true` if a command with these words may change the directory of its shell. To Bash and zsh `time` is no program, so
/// that `time cd docs` does.
pub(crate) fn may_change_directory(words: &[Word]) -> bool {
    let mut rest = words.iter().map(Word::literal).peekable();
    if rest.next_if_eq(&Some("time")).is_some() {
        while rest.next_if(|it| it.is_some_and(|word| word.starts_with('-'))).is_some() {}
    }
    rest.next().is_some_and(|program| program.is_none_or(|name| MOVERS.contains(&name)))
}

/// The builtins and words of a shell by which a text may change the directory of the shell that runs it, or of later texts
/// (`alias`, `trap`). `-`, `nocorrect`, `noglob` and `repeat` are words of zsh.
const MOVERS: &[&str] = &[
    "!",
    "-",
    ".",
    "alias",
    "builtin",
    "cd",
    "chdir",
    "command",
    "eval",
    "nocorrect",
    "noglob",
    "popd",
    "pushd",
    "repeat",
    "source",
    "trap",
];

/// An assignment before a command, `NAME=value`.
///
/// An assignment in front of a program changes what the program does (`LD_PRELOAD`, `GIT_SSH_COMMAND`). So only names
/// that change how a program prints are harmless. An assignment without a program sets a variable of this shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Word,
}

impl Assignment {
    /// The name of the variable.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The assigned value; empty for `NAME=`.
    #[must_use]
    pub fn value(&self) -> &Word {
        &self.value
    }
}

/// A redirection of one file descriptor of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub(crate) fd: Option<u8>,
    pub(crate) target: RedirectionTarget,
}

impl Redirection {
    /// The file descriptor, if one is written; otherwise the operator's default.
    #[must_use]
    pub fn fd(&self) -> Option<u8> {
        self.fd
    }

    /// The target of the redirection.
    #[must_use]
    pub fn target(&self) -> &RedirectionTarget {
        &self.target
    }
}

/// The target of a redirection.
///
/// ```
/// use countersign_shell::{Commands, Dialect, RedirectionTarget};
///
/// let commands = Commands::parse("sort < in.txt >> out.txt 2>&1 <<'END'\nb\na\nEND\n", Dialect::Bash)?;
/// let targets: Vec<_> = commands.simple_commands().next().unwrap().redirections().iter().map(|it| it.target()).collect();
/// assert!(matches!(targets[0], RedirectionTarget::Read(word) if word.text() == "in.txt"));
/// assert!(matches!(targets[1], RedirectionTarget::Append(_)));
/// assert!(matches!(targets[2], RedirectionTarget::Duplicate(1)));
/// assert!(matches!(targets[3], RedirectionTarget::HereDocument(body) if body == "b\na\n"));
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
///
/// Exhaustive on purpose: code that judges a command has to look at every kind of target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectionTarget {
    /// Reads a file: `< file`.
    Read(Word),
    /// Truncates and writes a file: `> file`.
    Write(Word),
    /// Appends to a file: `>> file`.
    Append(Word),
    /// Truncates a file, and writes standard output and standard error to it: `&> file`.
    WriteAll(Word),
    /// Duplicates another descriptor, by its number: `2>&1`.
    Duplicate(u8),
    /// A here-document (`<<`), with its literal text.
    HereDocument(String),
    /// A here-string, the word followed by a line break: `<<< word`.
    HereString(Word),
}

/// Why a text is refused. A person has to read it.
///
/// ```
/// use countersign_shell::{Commands, Dialect};
///
/// let refused = Commands::parse("ls\necho `id`", Dialect::Bash).unwrap_err();
/// assert_eq!((refused.line(), refused.column(), refused.at()), (2, 6, 8));
/// assert_eq!(refused.why(), "a backtick is not analysed: write `$(…)`");
/// assert_eq!(refused.read().simple_commands().count(), 1, "`ls` was read before");
/// ```
///
/// ```
/// use countersign_shell::{Commands, Dialect};
///
/// let refused = Commands::parse("ls -l\nselect x in a; do ls; done", Dialect::Sh).unwrap_err();
/// assert_eq!((refused.line(), refused.column()), (2, 1));
/// // What was read before the place that is refused, for a surface that shows it.
/// assert_eq!(refused.read().simple_commands().count(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub(crate) at: usize,
    pub(crate) line: usize,
    pub(super) column: usize,
    pub(crate) why: String,
    pub(crate) read: Commands,
}

impl Refused {
    /// The byte offset at which parsing stopped.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The line of that place, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column of that place in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The syntax that is refused, as text for a person.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The commands before that place. They can still be checked against rules that deny.
    #[must_use]
    pub fn read(&self) -> &Commands {
        &self.read
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.why)
    }
}

impl std::error::Error for Refused {}

impl Commands {
    /// The pipelines, in the order of the text.
    #[must_use]
    pub fn pipelines(&self) -> &[Pipeline] {
        &self.pipelines
    }

    /// The byte ranges of the comments. They have no effect, but a person should see them.
    #[must_use]
    pub fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    /// All simple commands, including those in subshells and substitutions.
    pub fn simple_commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.into_iter()
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a SimpleCommand>) {
        for stage in self.pipelines.iter().flat_map(Pipeline::stages) {
            let redirections = match stage {
                Stage::Simple(command) => {
                    let values = command.assignments.iter().map(Assignment::value);
                    for word in values.chain(&command.words) {
                        word.substitutions.iter().for_each(|inner| inner.collect(found));
                    }
                    found.push(command);
                    &command.redirections
                }
                Stage::Subshell { commands, redirections } => {
                    commands.collect(found);
                    redirections
                }
                Stage::Compound(compound) => {
                    match &compound.kind {
                        CompoundKind::For { words, .. } => substituted(words, found),
                        CompoundKind::Case { word, .. } => {
                            substituted(std::slice::from_ref(word), found);
                        }
                        _ => {}
                    }
                    compound.lists.iter().for_each(|list| list.collect(found));
                    &compound.redirections
                }
                Stage::Condition { words, .. } => {
                    substituted(words, found);
                    continue;
                }
            };
            for word in redirections.iter().filter_map(|redirection| redirection.target.word()) {
                word.substitutions.iter().for_each(|inner| inner.collect(found));
            }
        }
    }
}

/// Adds the commands in the substitutions of these words.
fn substituted<'a>(words: &'a [Word], found: &mut Vec<&'a SimpleCommand>) {
    for inner in words.iter().flat_map(|word| &word.substitutions) {
        inner.collect(found);
    }
}

impl RedirectionTarget {
    /// The word of the target; `None` for a descriptor and a here-document.
    #[must_use]
    pub fn word(&self) -> Option<&Word> {
        match self {
            Self::Read(word)
            | Self::Write(word)
            | Self::Append(word)
            | Self::WriteAll(word)
            | Self::HereString(word) => Some(word),
            Self::Duplicate(_) | Self::HereDocument(_) => None,
        }
    }

    /// Returns `true` if the command gets its input from here. `/dev/null` is empty.
    pub(crate) fn feeds(&self) -> bool {
        match self {
            Self::Read(word) => word.literal() != Some("/dev/null"),
            Self::HereString(_) | Self::HereDocument(_) => true,
            _ => false,
        }
    }
}

/// The kind of a word, which says what the shell will do with it.
///
/// ```
/// use countersign_shell::{Commands, Dialect, WordKind};
///
/// let kinds = |text: &str| -> Vec<WordKind> {
///     let commands = Commands::parse(text, Dialect::Bash).unwrap();
///     let command = commands.simple_commands().last().unwrap();
///     command.words().iter().skip(1).map(|word| word.kind()).collect()
/// };
/// assert_eq!(kinds("ls ~/x '*.rs' *.rs"), [WordKind::Tilde, WordKind::Literal, WordKind::Glob]);
/// assert_eq!(kinds("cat \"$HOME/x\" <(ls)"), [WordKind::Expansion, WordKind::Process]);
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WordKind {
    /// A literal: the program receives exactly this text.
    Literal,
    /// A path in the user's home directory: the word begins with an unquoted `~`.
    Tilde,
    /// A pattern with an unquoted `*`, `?` or `[`. It becomes any number of file names, including names that look like
    /// options.
    Glob,
    /// A word with a parameter (`$HOME`) or a command substitution. It becomes any text, and any number of words unless
    /// it is quoted.
    Expansion,
    /// A process substitution, `<(command)`: the path of a pipe with the command's output.
    Process,
}

/// One word: an argument, an assigned value, or the target of a redirection.
///
/// ```
/// use countersign_shell::{Commands, Dialect};
///
/// let commands = Commands::parse("echo \"$HOME\" $HOME $(date) plain", Dialect::Bash)?;
/// let words = commands.simple_commands().last().unwrap().words();
/// assert!(!words[1].may_split() && words[2].may_split(), "quoted, it stays one word");
/// assert_eq!(words[2].parameters(), ["HOME"]);
/// assert_eq!((words[3].text(), words[3].substitutions().len()), ("$(…)", 1));
/// assert_eq!(words[4].literal(), Some("plain"));
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
///
/// ```
/// use countersign_shell::{Commands, Dialect, WordKind};
///
/// let commands = Commands::parse("cp 'a b' *.rs $HOME", Dialect::Bash)?;
/// let words = commands.simple_commands().next().unwrap().words();
/// let kinds: Vec<_> = words.iter().map(|word| word.kind()).collect();
/// assert_eq!(kinds, [WordKind::Literal, WordKind::Literal, WordKind::Glob, WordKind::Expansion]);
/// assert_eq!((words[1].literal(), words[1].is_quoted()), (Some("a b"), true));
/// // What the value of `$HOME` is, only the shell knows; unquoted, it may become several words.
/// assert_eq!((words[3].literal(), words[3].may_split()), (None, true));
/// assert_eq!(words[3].parameters(), ["HOME"]);
/// # Ok::<(), countersign_shell::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub(crate) text: String,
    pub(crate) kind: WordKind,
    pub(crate) quoted: bool,
    pub(crate) split: bool,
    pub(crate) parameters: Vec<String>,
    pub(crate) substitutions: Vec<Commands>,
    /// `true` if it is a path in the workspace that was read from a line, so that it may be a part of such a path.
    pub(crate) line: bool,
    /// `true` if it is the whole of that path, and no link that leads out of the workspace.
    pub(crate) whole_line: bool,
    /// `true` if it stands for a path that another program puts here.
    pub(crate) found: bool,
    /// `true` if no program takes it for an option: a line that begins with the name of a folder, or a pattern that matches no
    /// such name now.
    pub(crate) no_option: bool,
    /// `true` if it has a `^` or `#` without quotes, which are characters of patterns to zsh, if it is set up so.
    pub(crate) may_match: bool,
    pub(crate) span: Range<usize>,
}

impl Word {
    /// The text without its quotes. Parameters are kept as written, and a command substitution appears as `$(…)`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The kind of the word.
    #[must_use]
    pub fn kind(&self) -> WordKind {
        self.kind
    }

    /// The text, if the program receives exactly this text.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(self.text.as_str())
    }

    /// Returns `true` if any part of the word was quoted or escaped.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// Tells whether the word is a number whatever the shell does: digits, the status, the count of arguments, or what `wc` counts in
    /// its input.
    ///
    /// A shell may evaluate any other word as an expression with the names of variables, and these may hold code.
    pub(crate) fn is_number(&self) -> bool {
        let digits = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => {
                text.starts_with(|c: char| c.is_ascii_digit())
                    && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            }
        };
        match self.kind {
            WordKind::Literal => digits(self.text.strip_prefix(['-', '+']).unwrap_or(&self.text)),
            WordKind::Expansion => {
                matches!(self.text.as_str(), "$?" | "$#" | "${?}" | "${#}") || counts_input(self)
            }
            _ => false,
        }
    }

    /// Returns `true` if the shell may turn the word into several words, or none: an unquoted expansion or a glob.
    #[must_use]
    pub fn may_split(&self) -> bool {
        self.split
    }

    /// The names of the parameters in the word, such as `HOME` for `"$HOME/bin"`.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// The commands in the word's substitutions, which run before the command itself.
    #[must_use]
    pub fn substitutions(&self) -> &[Commands] {
        &self.substitutions
    }

    /// The byte range of the word in the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// A literal word that does not come from a text; its span is empty.
    pub(crate) fn synthetic(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: WordKind::Literal,
            quoted: false,
            split: false,
            parameters: Vec::new(),
            substitutions: Vec::new(),
            line: false,
            found: false,
            no_option: false,
            may_match: false,
            whole_line: false,
            span: 0..0,
        }
    }

    /// The word without the bytes of its text before `from`.
    pub(crate) fn tail(&self, from: usize) -> Self {
        let mut tail = self.clone();
        tail.text = self.text.get(from..).unwrap_or_default().to_owned();
        tail
    }
}

/// Returns `true` if a word is nothing but a substitution that ends in a `wc` without operands, as in `$(ls | wc -l)`.
fn counts_input(word: &Word) -> bool {
    let [commands] = word.substitutions.as_slice() else { return false };
    let [pipeline] = commands.pipelines.as_slice() else { return false };
    let Some(Stage::Simple(command)) = pipeline.stages.last() else { return false };
    let read = |one: &Redirection| matches!(one.target, RedirectionTarget::Read(_));
    word.text == "$(…)"
        && command.assignments.is_empty()
        && command.redirections.iter().all(read)
        && command
            .argv()
            .is_some_and(|argv| matches!(argv.as_slice(), ["wc", "-l" | "-w" | "-c" | "-m"]))
}
