//! Environment variables that may be set for a command, printed by one, or be there when it runs. All lists are in
//! `variables.txt`.
//!
//! A variable may name code that a program loads, a pager that it runs, or a server that it asks. There are too many to
//! list the dangerous ones, so the harmless ones are listed: names that change how a program prints (`LANG`, `TZ`,
//! `NO_COLOR`), with plain values of at most 200 bytes that are no paths.
//!
//! A variable that is there already cannot be judged so, as an environment has hundreds of names that no program knows.
//! There the variables are listed that are known to change what a program runs, loads or asks, with the programs.
//!
//! The reverse holds for printing: a variable's value is a secret until its name is in the list of public ones (`PATH`,
//! `HOME`).

use std::path::Path;

use super::daily::{self, DailyValue, is_named};
use super::judgement::{Effect, Judgement, Part};
use crate::names::lists::{lists, names};

/// Returns `true` if a command may run with this variable: only names that change no more than how a program prints.
pub(super) fn may_be_set(name: &str, value: &str) -> bool {
    // A path is refused for every variable, as it could name code to load.
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | ',' | '=' | ':' | '*' | '+' | '@' | ' ' | '/')
    };
    let path = value.starts_with(['/', '~', '.']) || value.contains("../") || value.contains("/.");
    let zone = name == "TZ" && value.starts_with(':');
    let is_known = settable(name).is_some_and(|values| {
        values.is_none_or(|values| values.split('|').any(|known| known == value))
    });
    is_known && value.len() <= 200 && value.chars().all(plain) && !path && !zone
}

/// Returns `true` if a command may run with a variable of this name, or export it, with a plain value.
pub(super) fn is_settable(name: &str) -> bool {
    settable(name).is_some()
}

/// The values that a command may give to a variable, with `|` between them, or `None` for any plain one. `None` for a variable
/// that it may not set.
fn settable(name: &str) -> Option<Option<&'static str>> {
    names("settable variables").iter().find_map(|entry| match entry.split_once('=') {
        Some((known, values)) => (known == name).then_some(Some(values)),
        None => (*entry == name).then_some(None),
    })
}

/// Returns `true` if a variable names places of the workspace in which a build finds code: `PYTHONPATH=src`. A build
/// runs the code of the workspace anyway, and no other program may be given such a variable.
pub(super) fn names_workspace_code(name: &str, value: &str) -> bool {
    let inside = |path: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        !path.is_empty()
            && !path.starts_with(['/', '~', '-'])
            && path.chars().all(plain)
            && path.split('/').all(|part| part != "..")
    };
    names("variables of code").contains(&name) && value.len() <= 200 && value.split(':').all(inside)
}

/// Returns `true` if a variable has options for a compiler that only change its warnings and its optimisation, or for Node about
/// its limits and warnings.
pub(super) fn has_harmless_flags(name: &str, value: &str) -> bool {
    if name == "NODE_OPTIONS" {
        return daily::loaded_by_node(value).is_some_and(|files| files.is_empty());
    }
    let known = |flag: &str| names("compiler flags").contains(&flag);
    let lint =
        |flag: &str| flag.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-' | ':'));
    let mut flags = value.split_whitespace();
    while let Some(flag) = flags.next() {
        let harmless = match flag {
            "-D" | "-A" | "-W" => flags.next().is_some_and(lint),
            "-C" => flags.next().is_some_and(known),
            flag => known(flag) || flag.strip_prefix("-W").is_some_and(lint),
        };
        if !harmless {
            return false;
        }
    }
    names("variables of compilers").contains(&name)
}

/// Returns `true` if a variable has filters for Python's warnings that import nothing: `ignore::DeprecationWarning`.
/// A category with a dot is a class of a module, which Python imports as it starts. A message between slashes may
/// have colons of its own.
fn has_harmless_filters(name: &str, value: &str) -> bool {
    let is_builtin = |filter: &str| {
        let category = filter.split(':').nth(2).unwrap_or_default();
        !filter.contains('/') && category.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.eq_ignore_ascii_case("PYTHONWARNINGS") && value.split(',').all(is_builtin)
}

/// Returns `true` if a variable's value is public, so that a command may print it.
pub(super) fn is_public(name: &str) -> bool {
    names("public variables").contains(&name)
}

/// A variable of the environment that changes what programs run, load or ask.
///
/// ```
/// use countersign_shell::{ActingVariable, Classifier, Dialect, Preset, SearchPath, Workspace};
///
/// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer).with_search_path(SearchPath::unchecked());
/// let judged = |text: &str| classifier.judge(text, Dialect::Bash);
/// let diff = ActingVariable::find("GIT_EXTERNAL_DIFF", "./x").unwrap();
/// assert!(diff.concerns(&judged("git diff")) && !diff.concerns(&judged("ls src")));
/// // A build may run git.
/// assert!(diff.concerns(&judged("make")));
/// assert!(ActingVariable::find("LANG", "C").is_none() && ActingVariable::find("GIT_PAGER", "cat").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActingVariable {
    programs: Vec<&'static str>,
    daily: Option<DailyValue>,
}

impl ActingVariable {
    /// The known effect of a variable with this value; `None` if it has none.
    #[must_use]
    pub fn find(name: &str, value: &str) -> Option<Self> {
        if is_inert(name, value) {
            return None;
        }
        let (mut by_name, mut by_pattern) = (Vec::new(), Vec::new());
        for (heading, entries) in lists() {
            let Some(programs) = heading.strip_prefix("changes ") else { continue };
            for entry in entries {
                let (pattern, values) = entry.split_once('=').unwrap_or((entry, "="));
                if !is_named(pattern, name) {
                    continue;
                }
                if values != "=" && values.split('|').any(|it| is_value(it, value)) {
                    return None;
                }
                let found = if pattern.ends_with('*') { &mut by_pattern } else { &mut by_name };
                found.extend(programs.split(' '));
            }
        }
        let programs = if by_name.is_empty() { by_pattern } else { by_name };
        (!programs.is_empty()).then(|| Self { programs, daily: daily::find(name, value) })
    }

    /// Returns `true` if a variable with this value is known to change nothing but texts and numbers, so that also a file
    /// of a project may set it. A name that is not known is not.
    ///
    /// ```
    /// use countersign_shell::ActingVariable;
    /// assert!(ActingVariable::is_harmless("NODE_ENV", "test") && ActingVariable::is_harmless("GIT_PAGER", "cat"));
    /// assert!(!ActingVariable::is_harmless("GIT_PAGER", "./x") && !ActingVariable::is_harmless("SHELL_PREFIX", "./x"));
    /// ```
    #[must_use]
    pub fn is_harmless(name: &str, value: &str) -> bool {
        let is_listed = |list: &str| names(list).iter().any(|pattern| is_named(pattern, name));
        let is_text = !value.contains(['/', '\\', '`', '$', ';', '&', '|', '<', '>', '\n']);
        is_inert(name, value)
            || is_listed("harmless settings") && is_text
            || Self::find(name, value).is_none() && has_values(name)
    }

    /// Returns `true` if the variable is one that version managers, package managers and editors set anew in each
    /// terminal, with a value of theirs that names nothing in this directory. It is no reason to ask, unless a file of a
    /// project sets it.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_shell::ActingVariable;
    /// let project = Path::new("/usr/share");
    /// let is_daily = |name, value| ActingVariable::find(name, value).unwrap().is_daily(project);
    /// assert!(is_daily("PYENV_VERSION", "3.12.1") && !is_daily("PYENV_VERSION", "../../evil"));
    /// assert!(is_daily("https_proxy", "http://proxy.corp:3128") && !is_daily("NODE_OPTIONS", "--require ./x.js"));
    /// assert!(is_daily("FNM_MULTISHELL_PATH", "/usr/lib/1_2") && !is_daily("FNM_MULTISHELL_PATH", "/usr/share/x"));
    /// ```
    #[must_use]
    pub fn is_daily(&self, directory: &Path) -> bool {
        self.daily.as_ref().is_some_and(|value| value.is_outside_of(directory))
    }

    /// Returns `true` if it changes what a program of this name does.
    #[must_use]
    pub fn acts_on(&self, program: &str) -> bool {
        self.programs.contains(&"*") || self.programs.contains(&program)
    }

    /// Returns `true` if it changes what these commands do: of a program that it concerns, of one that is not known,
    /// or of one that does more than reading and writing files, and so may run others.
    #[must_use]
    pub fn concerns(&self, commands: &Judgement) -> bool {
        self.acts_on("sh")
            || commands.refused().is_some()
            || commands.parts().iter().any(|part| self.concerns_part(part))
    }

    fn concerns_part(&self, part: &Part) -> bool {
        let plain = |effect: &Effect| {
            matches!(
                effect,
                Effect::Reads(_)
                    | Effect::Lists(_)
                    | Effect::Writes(_)
                    | Effect::Wraps(_)
                    | Effect::ChangesDirectory(_)
            )
        };
        match part.program() {
            Some(program) if self.acts_on(program) => true,
            Some(_) if part.effects().is_empty() => !part.reasons().is_empty(),
            Some(_) => !part.effects().iter().all(plain),
            // Assignments alone run nothing.
            None => !part.argv().is_empty(),
        }
    }
}

/// Returns `true` if a variable with this value changes nothing but texts, names and numbers.
fn is_inert(name: &str, value: &str) -> bool {
    names("inert variables").iter().any(|pattern| is_named(pattern, name))
        || may_be_set(name, value)
        || has_harmless_flags(name, value)
        || has_harmless_filters(name, value)
}

/// Returns `true` if the table lists values of a variable that change nothing.
fn has_values(name: &str) -> bool {
    let changing = lists().iter().filter(|(heading, _)| heading.starts_with("changes "));
    changing
        .flat_map(|(_, entries)| entries)
        .any(|entry| entry.split_once('=').is_some_and(|(pattern, _)| is_named(pattern, name)))
}

/// Returns `true` if a value is one that changes nothing: this one, or this pager with options for its display.
fn is_value(harmless: &str, value: &str) -> bool {
    let display = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| "FRXSiMe".contains(c))
    };
    let mut words = value.split(' ');
    words.next() == Some(harmless) && words.all(|word| harmless == "less" && display(word))
}
