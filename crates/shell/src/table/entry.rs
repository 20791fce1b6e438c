//! The entry of a program or sub-command.
//!
//! An entry is what a line of a manual page says, and nothing more: an option that it does not list is unknown,
//! whatever it may do. So an entry that is too short asks too often, and one that is wrong is wrong in a line that its
//! examples test.
//!
//! The digest of an entry is of the lines that describe it, with those of the groups that it takes over. We bind an
//! approval of a command to it. So if an entry is corrected, we ask again about its commands, and about no others.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

use super::ProgramExample;
use crate::syntax::commands::{Word, WordKind};
use countersign::args::hex;

/// The effect of a program that is run with options of its entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Does {
    /// Prints what it reads.
    #[default]
    Reads,
    /// Runs code of the workspace and writes its output there, as compilers and test runners do.
    Builds,
    /// Rewrites files of the workspace.
    Formats,
    /// Queries a service, which is named here, with the user's credentials, and changes nothing there.
    Queries(String),
    /// Something that a person has to approve, in words.
    Asks(String),
}

impl Does {
    /// Returns `true` if code of the workspace runs, or what it configures.
    pub(crate) fn runs_project(&self) -> bool {
        matches!(self, Self::Builds | Self::Formats)
    }
}

/// The kind of an operand, or of the value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text, pattern, number or name that opens nothing.
    Text,
    /// A file or directory whose content is read.
    Read,
    /// A file whose content is read, for a program that takes `host:path` and URLs as well: neither `:` nor `@`.
    Local,
    /// A file whose content is read, for a program that unpacks: it may add an ending to the name, or take one away.
    Packed,
    /// A file or directory whose content is read, and whose name the program puts into a command of a shell.
    Unquoted,
    /// A file or directory of which only the name and metadata are read.
    List,
    /// A file that is written.
    Write,
    /// A file or directory that a build or a formatter may write in the workspace.
    Output,
    /// A file that is read, or `IN:OUT`: one that is read, and one that a build writes.
    FromTo,
    /// The name of a form, or `NAME:FILE`: with the file that a build writes in this form.
    Report,
    /// A directory that is created.
    Make,
    /// A revision of a repository, or a path in it.
    Revision,
    /// The directory that the command works in.
    Directory,
    /// The words of another command.
    Run,
    /// The words of another command, which gets more operands from standard input.
    RunAppended,
    /// The words of another command up to `;` or `+`, in which `{}` stands for a path.
    RunEach,
    /// The word that [`RunAppended`](Self::RunAppended) replaces by what it gets from standard input.
    Replaced,
    /// The text of a shell command, as in `sh -c`.
    Shell,
    /// An assignment `NAME=value` for the command that follows.
    Assignment,
    /// The name of an environment variable whose value is printed.
    Variable,
    /// A script in a language that is checked.
    Script(Script),
    /// A database that is read: the program may write journals beside it.
    Database,
    /// A number that a shell would evaluate if it were a name.
    Number,
    /// One of these words; a `*` at the end stands for any continuation.
    OneOf(Vec<String>),
    /// The host or URL that something is sent to.
    Host,
    /// The name of a repository at the usual host: `owner/name`.
    Slug,
    /// The name of a package in the usual registry: `name`, `@scope/name`, `name@version`.
    Package,
    /// The name of a remote of the repository, from which something is fetched.
    Remote,
    /// A file or directory that is read, and written so that it cannot be a name to look up: `./x`, `/x` or `.`.
    Here,
    /// Code, or the name of code to run.
    Code,
}

impl Kind {
    /// Returns `true` for a text, and for a file of which only the content or the name is read.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Text | Self::Read | Self::Packed | Self::Local | Self::List)
    }
}

/// A language whose scripts are checked by `scripts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Sed,
    Awk,
    Jq,
    Yq,
    Test,
    /// A plain name or number: nothing that a shell or a program evaluates.
    Name,
    /// A format of `curl --write-out`.
    Template,
    /// A format of the description of a container.
    Fields,
    Sql,
    /// A field of a request to the GraphQL of a code host: `query=…` with queries alone, or a variable.
    Graphql,
    /// An argument of a task of the workspace: a plain word that publishes nothing and is no code.
    Argument,
    /// The name of a branch: nothing that renames it, as `x:y` does.
    Branch,
}

/// How an option takes a value, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OptionForm {
    /// An option without a value.
    Flag,
    /// An option with a value, in the same word or the next.
    Value(Kind, ValuePlace),
    /// An option with an optional value, which is in the same word.
    Optional(Kind),
    /// An option with a value, which may be missing at the end of the command.
    Last(Kind),
    /// An option with two values in words of their own: a name, and this.
    Pair(Kind),
    /// An option without a value that makes the command rewrite files.
    Formats,
    /// An option that is refused although a pattern of the entry matches it.
    Refused,
}

/// Says where the value of an option counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValuePlace {
    Own,
    /// It replaces the first operand, as the pattern does in `grep -e pattern file`.
    FirstOperand,
    /// It is one only behind the first operand. In front of it, the option is none of the program's, and so a flag: in
    /// `npm run -t deploy build` the script is `deploy`.
    BehindOperand,
}

/// How a program reads a word that begins with a dash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OptionParser {
    /// The entry does not say it. It is read as `Gnu`, but a word in which another parser could see one long option is not
    /// matched: `-vcs=x`.
    #[default]
    Unsaid,
    /// After one dash letters, of which the last may have the rest of the word as its value; after two dashes a name.
    Gnu,
    /// A name after one dash or two: `-outFile x` is `--outFile x`.
    OneDash,
    /// Words as they are described: `-name` is one option, and no letters.
    Words,
}

/// A further property of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramMark {
    /// None of the program's options can do harm, so that a file name that looks like an option is harmless too.
    Harmless,
    /// One of the options of a harmless program does harm after all, where a file is called like it: the names are looked at.
    /// Where no files are looked at, they count as ordinary ones.
    ByName,
    /// The output consists of paths below the operands.
    Paths,
    /// The output consists of lines of the input.
    Filter,
    /// All sub-commands are described, so that any other word is an operand.
    Complete,
    /// Prints only numbers about the content of files.
    Counts,
    /// Prints names and states of the files that its operands name, and nothing of their content.
    Names,
    /// Prints the addresses of a repository's remotes, in which a password may stand.
    Addresses,
    /// Runs the program that its operands name, somewhere after its options.
    Wraps,
    /// A builtin of the shell, which has no file.
    Builtin,
    /// Words after the first operand are operands, even if they look like options.
    Posix,
    /// Works in the repository of its directory.
    Repository,
    /// Only prints, compares or searches for its texts, so that a URL in one is not opened.
    Inert,
    /// Reads the paths among its operands, and writes none of them.
    Inputs,
    /// Runs the program of its first word, which it fetches where the workspace has not installed it. If it is
    /// installed, nothing more is needed.
    Installed,
    /// `--help` and `--version` get no special treatment: they are matched like any other argument.
    NoHelp,
    /// Loads the project, or the version of itself that the project names, before it looks at its arguments. So every
    /// form of it runs code of the workspace, also `--version`.
    Launcher,
}

/// An operand in an entry's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperandSlot {
    pub(super) kind: Kind,
    pub(super) repeats: bool,
    /// `true` if it has to be given: without it, the program does what it reads from its input.
    pub(super) required: bool,
}

/// The description of one program or sub-command.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramEntry {
    pub(super) does: Does,
    pub(super) operands: Vec<OperandSlot>,
    /// Operands behind which there is none.
    pub(super) last: Vec<String>,
    pub(super) options: HashMap<String, OptionForm>,
    /// Prefixes of options (`--color*`), longest first.
    pub(super) beginnings: Vec<(String, OptionForm)>,
    pub(super) needs: Vec<Vec<String>>,
    /// The effects, in words, of a command that does not match the entry.
    pub(super) otherwise: Option<String>,
    /// Letters that the first operand may bundle as options, as in `tar tf`.
    pub(super) letters: String,
    pub(super) marks: Vec<ProgramMark>,
    pub(super) parser: OptionParser,
    /// `true` if the operands are those of a group, which describes many programs: what it calls an input may be none of
    /// one of them.
    pub(super) shares_operands: bool,
    /// `true` if it describes several programs, so that an option with a value may be a flag of one of them, and the value an
    /// operand: `sdiff -s a b`, `diff -s`.
    pub(super) shares_options: bool,
    /// Options that make the output paths below the operands.
    pub(super) paths: Vec<String>,
    /// Options with which the output still consists of whole paths, or whole lines of the input.
    pub(super) lines: Vec<String>,
    /// Options that separate the paths by NUL, and expect them so.
    pub(super) nul: Vec<String>,
    pub(super) forms: Forms,
    pub(super) subs: HashMap<String, Arc<ProgramEntry>>,
    pub(super) examples: Vec<(bool, String)>,
    /// `true` if the table describes the entry; `false` if it exists only for its sub-commands.
    pub(super) described: bool,
    /// A digest of all lines of the table that describe the program.
    pub(super) digest: Digest,
    /// The same in hexadecimal, made when it is first needed.
    pub(super) hex: OnceLock<Arc<str>>,
}

/// The effects of a program in the forms that name nothing: alone, with input, with `--help` or `--version`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forms {
    /// The effects without an operand and a sub-command.
    pub(super) bare: Option<Does>,
    /// `true` if it takes its input for text, and never for code, options or names of files.
    pub(super) stdin: bool,
    /// The effects of `--help` and `--version`, where they are known.
    pub(super) help: Vec<(String, Does)>,
    /// Sub-commands that only print their help for `--help` or `-h` behind them. One that ends in `/` has sub-commands of its own.
    pub(super) helps: Vec<String>,
    /// A service that it also talks to, whatever else it does.
    pub(super) talks: Option<String>,
    /// Files of the workspace in which a host may stand that it talks to.
    pub(super) registry: Vec<String>,
    /// Options with which a program that rewrites files only says what it would change, and what it does then.
    pub(super) checks: Option<(Does, Vec<String>)>,
    /// For an interpreter, the options that may stand in front of a script of the workspace. `None` for any other program.
    pub(super) scripts: Option<Vec<String>>,
    /// Options with which it follows links that it finds below its operands, and `*` for a program that always does.
    pub(super) follows: Vec<String>,
    /// Options with values by which it prints the paths of plain files only (`-type=f`), options that take this back
    /// (`!-o`), and `*` for a program that never prints the path of a link.
    pub(super) files: Vec<String>,
}

/// The effects of a program in each of its forms, as its entry and those of its sub-commands say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Always<'t> {
    /// `true` if it runs code of the workspace before it looks at its arguments.
    pub(crate) launches: bool,
    /// `true` if it takes its input for text.
    pub(crate) reads_text: bool,
    /// A service that it talks to.
    pub(crate) talks: Option<&'t str>,
    /// Files of the workspace in which a host may stand that it talks to.
    pub(crate) registry: &'t [String],
}

impl<'t> Always<'t> {
    pub(super) fn add(&mut self, entry: &'t ProgramEntry) {
        self.launches |= entry.is(ProgramMark::Launcher);
        self.reads_text |= entry.forms.stdin;
        self.talks = entry.forms.talks.as_deref().or(self.talks);
        if !entry.forms.registry.is_empty() {
            self.registry = &entry.forms.registry;
        }
    }
}

/// A SHA-256 digest of lines of the table.
pub(crate) type Digest = [u8; 32];

impl ProgramEntry {
    /// The digest of what describes the program, in hexadecimal.
    pub(crate) fn digest(&self) -> &Arc<str> {
        self.hex.get_or_init(|| hex(&self.digest).into())
    }

    /// Counts more lines as a part of the description.
    pub(super) fn extend_digest(&mut self, more: &Digest) {
        self.digest = Sha256::new().chain_update(self.digest).chain_update(more).finalize().into();
        self.hex = OnceLock::new();
    }

    pub(crate) fn does(&self) -> &Does {
        &self.does
    }

    /// The effects, in words, of a command that does not match the entry; `None` where the table does not say them.
    pub(crate) fn otherwise(&self) -> Option<&str> {
        self.otherwise.as_deref()
    }

    pub(crate) fn is(&self, mark: ProgramMark) -> bool {
        self.marks.contains(&mark)
    }

    /// Returns `true` if the entry itself says what the operands of the program are, and no group of programs that build.
    pub(crate) fn has_own_operands(&self) -> bool {
        !self.shares_operands || self.does == Does::Reads
    }

    /// Returns `true` if each operand, and as many as one likes, is a path that is read, or a text.
    pub(crate) fn takes_only_paths(&self) -> bool {
        let harmless = |kind: &Kind| kind.is_plain() || *kind == Kind::Revision;
        self.subs.is_empty()
            && self.operands.iter().all(|slot| harmless(&slot.kind))
            && self.operands.last().is_some_and(|slot| slot.repeats)
    }

    /// Returns `true` if the program takes its input for text, or the sub-command that its first words name does.
    pub(crate) fn takes_text(&self, words: &[String]) -> bool {
        let sub = || self.subs.get(words.first()?);
        self.forms.stdin
            || sub().is_some_and(|sub| sub.takes_text(words.get(1..).unwrap_or_default()))
    }

    /// Returns `true` if a word as a whole is an option without a value, of the program or of the sub-command that its first
    /// words name.
    pub(crate) fn is_flag(&self, words: &[String], word: &str) -> bool {
        let sub = || self.subs.get(words.first()?);
        matches!(self.options.get(word), Some(OptionForm::Flag))
            || sub().is_some_and(|sub| sub.is_flag(words.get(1..).unwrap_or_default(), word))
    }

    /// Returns `true` if an option that has a value here may be a flag of another program of the entry. A build runs the code of the
    /// workspace, however it reads its words.
    pub(super) fn may_have_flag(&self) -> bool {
        self.shares_options && self.does != Does::Builds
    }

    /// Returns `true` if an option makes the program print the names of files.
    pub(crate) fn names_files(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Returns `true` if the program only prints, compares or searches for its operands, which are texts.
    pub(crate) fn only_prints(&self) -> bool {
        self.is(ProgramMark::Inert) && self.operands.iter().all(|slot| slot.kind == Kind::Text)
    }

    /// Takes the texts of options that are named as outputs (`--out-dir`, `--dest`) for outputs, if the program builds.
    pub(super) fn name_outputs(&mut self) {
        if self.does != Does::Builds {
            return;
        }
        let beginnings = self.beginnings.iter_mut().map(|(name, choice)| (&*name, choice));
        for (name, choice) in self.options.iter_mut().chain(beginnings) {
            if let OptionForm::Value(kind, _) | OptionForm::Optional(kind) | OptionForm::Last(kind) =
                choice
                && *kind == Kind::Text
                && is_output(name)
            {
                *kind = Kind::Output;
            }
        }
    }

    /// The effects of the program without an operand and a sub-command; `None` if the entry does not say them. `inner`
    /// is for the entry of a sub-command, whose name says what happens.
    ///
    /// A program with sub-commands may do anything without one (`yarn` alone installs), and one that builds may build,
    /// install or wait for code. One that only reads its operands has nothing to read.
    pub(super) fn bare(&self, inner: bool) -> Option<&Does> {
        let has_commands = || self.subs.keys().any(|name| !name.starts_with('-'));
        match (&self.forms.bare, &self.does) {
            (Some(bare), _) => Some(bare),
            (None, Does::Asks(_)) => Some(&self.does),
            _ if has_commands() => None,
            _ if inner => Some(&self.does),
            (None, Does::Reads) if !self.says_nothing() => Some(&self.does),
            _ => None,
        }
    }

    /// Returns `true` if the entry has a name and nothing else.
    pub(super) fn says_nothing(&self) -> bool {
        self.operands.is_empty()
            && self.options.is_empty()
            && self.beginnings.is_empty()
            && self.marks.is_empty()
    }

    /// The effects of `--help` or `--version` as the only argument. `None` if the entry refuses it.
    ///
    /// Where the entry does not say it, a program that does more than read may run code of the workspace: many load the
    /// project, or plugins that it names, before they read their arguments.
    pub(super) fn helps(&self, option: &str) -> Option<&Does> {
        let described = match self.forms.help.iter().find(|(known, _)| known == option) {
            Some((_, does)) => return Some(does),
            None => self.options.get(option),
        };
        let builds = match described {
            None => self.builds() || !matches!(self.does, Does::Reads) || self.says_nothing(),
            Some(OptionForm::Flag) => self.does.runs_project(),
            Some(_) => return None,
        };
        Some(if builds { &Does::Builds } else { &Does::Reads })
    }

    /// Returns `true` if the program, or one of its sub-commands, runs code of the workspace.
    pub(crate) fn builds(&self) -> bool {
        self.does.runs_project() || self.subs.values().any(|sub| sub.builds())
    }

    /// Returns `true` if words after `--` may be options of the program that this one runs.
    pub(super) fn passes_options_on(&self) -> bool {
        self.does.runs_project()
    }

    /// Returns `true` if it fetches from a remote of the repository, which its first operand names.
    pub(crate) fn fetches(&self) -> bool {
        self.operands.iter().any(|slot| slot.kind == Kind::Remote)
    }

    /// The options that may stand in front of a script of the workspace, for an interpreter.
    pub(crate) fn options_of_scripts(&self) -> Option<&[String]> {
        self.forms.scripts.as_deref()
    }

    /// The words that the first operand may be; none where it may be more.
    pub(crate) fn tasks(&self) -> &[String] {
        match self.operands.first().map(|slot| &slot.kind) {
            Some(Kind::OneOf(words)) => words,
            _ => &[],
        }
    }

    /// Returns `true` if the content of the operands stays unseen: a wrong operand shows no more than numbers and
    /// metadata.
    pub(crate) fn hides_content(&self) -> bool {
        self.is(ProgramMark::Counts)
            || self.is(ProgramMark::Names)
            || self.operands.iter().all(|slot| slot.kind == Kind::List)
    }

    /// Returns `true` for a program that looks for a text in files, and shows the lines that have it.
    pub(crate) fn searches(&self) -> bool {
        let mut kinds = self.operands.iter().map(|slot| &slot.kind);
        self.is(ProgramMark::Inert)
            && kinds.next() == Some(&Kind::Text)
            && kinds.any(|kind| *kind == Kind::Read)
    }

    /// Returns `true` if a word that names no sub-command may be the first operand. A sub-command that is not
    /// described may not pass for a text or for the name of a file.
    ///
    /// `git x`, with `x` not described, must not be read as `git` with a file `x`: the sub-command may do anything. A
    /// word with a slash or a point is taken for a path, as no sub-command is called so.
    pub(super) fn opens_with(&self, word: &Word) -> bool {
        if self.is(ProgramMark::Complete) || self.subs.keys().all(|name| name.starts_with('-')) {
            return true;
        }
        match self.operands.first().map(|slot| &slot.kind) {
            None | Some(Kind::Text | Kind::Revision) => false,
            Some(Kind::Read | Kind::Packed | Kind::Local | Kind::List) => {
                word.kind != WordKind::Literal || word.text.contains(['/', '.'])
            }
            Some(_) => true,
        }
    }

    /// Returns `true` if two entries say the same, with the same digests.
    #[cfg(test)]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let text = |entry: &Self| {
            let mut entry = Self { hex: OnceLock::new(), ..entry.clone() };
            let mut options: Vec<_> = entry.options.drain().map(|it| format!("{it:?}")).collect();
            options.sort();
            entry.subs.clear();
            format!("{entry:?} {options:?}")
        };
        let subs = |name: &String| Some(self.subs.get(name)?.is_same(other.subs.get(name)?));
        text(self) == text(other)
            && self.subs.len() == other.subs.len()
            && self.subs.keys().all(|name| subs(name) == Some(true))
    }

    pub(super) fn collect_examples(&self, name: &str, found: &mut Vec<ProgramExample>) {
        for (safe, command) in &self.examples {
            found.push(ProgramExample {
                program: name.to_owned(),
                command: command.clone(),
                safe: *safe,
            });
        }
        for (sub, entry) in &self.subs {
            entry.collect_examples(&format!("{name} {sub}"), found);
        }
    }
}

/// Returns `true` if the name of an option says that its value is an output: `--out`, `-outputdir`, `--output-path`,
/// `--destDir`.
fn is_output(option: &str) -> bool {
    let mut words = vec![String::new()];
    for c in option.trim_start_matches('-').chars() {
        if matches!(c, '-' | '_' | '.') || c.is_ascii_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && !matches!(c, '-' | '_' | '.')
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    let writes = |word: &String| {
        word.starts_with("out")
            || word.starts_with("dest")
            || matches!(&**word, "dist" | "report" | "reports")
    };
    let ends = ["dir", "directory", "path", "file", "folder", "root"];
    match words.as_slice() {
        [only] => writes(only),
        [.., last] => ends.contains(&last.as_str()) && words.iter().any(writes) || last == "out",
        [] => false,
    }
}
