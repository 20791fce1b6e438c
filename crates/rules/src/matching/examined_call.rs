//! The rules' view of one call: fields, places and commands, each computed at most once.
//!
//! Many rules look at a call, and looking is the expensive part: we resolve links and parse commands. We compute
//! everything here when the first rule asks for it, and keep it for the others, for this one call only. The next
//! call sees the files as they are then.
//!
//! A call may start in one directory, and name another one in an argument (`cwd`), which the tool may ignore. So paths
//! are relative to *each* of them, and a rule that allows has to hold for both.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use crate::calls::call::RuleCall;
use crate::calls::command::CommandView;
use crate::calls::engine::Engine;
use crate::calls::paths::Places;
use crate::folders::sweeps;
use crate::folders::sweeps::Sweep;
use crate::folders::swept;
use crate::folders::swept::SweptFiles;
use crate::readings::argument;
use crate::readings::argument::{Likelihood, TextReading};
use crate::readings::prose;
use crate::readings::prose::TextRole;
use crate::readings::shells::DIRECTORIES;
use crate::readings::word;
use countersign_shell::program_files::NamedFiles;
use countersign_shell::{
    Part, inside, lexically_normal, may_be_in_own_worktree, worktree_of, worktrees,
};

/// The places that a text of the arguments stands for, which several rules look at.
type KnownPlaces = Result<Rc<[PathBuf]>, &'static str>;

/// The places of one reading of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextPlaces {
    pub(crate) places: KnownPlaces,
    pub(crate) likelihood: Likelihood,
    /// `true` if a program may expand the text as a pattern.
    pub(crate) is_pattern: bool,
    /// The rules that look at it.
    pub(super) sight: Sight,
}

/// The rules that look at a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    All,
    /// An address, or another text that is certainly no path: a rule that allows paths is silent about it.
    Allowing,
    /// The name of an argument, or content: a rule that allows paths is not about it.
    Strict,
}

/// Of how many texts the places are kept. Looking for a text among those of a long list would take too long.
const MAX_KNOWN: usize = 16;

/// A view of a text that has one, by its field.
type Views = Vec<(Vec<String>, Option<Rc<CommandView>>)>;

/// One call while it is decided about.
pub(crate) struct ExaminedCall<'a> {
    pub(crate) call: RuleCall<'a>,
    pub(crate) engine: &'a Engine,
    /// The field with a shell text, if the tool is a shell.
    pub(crate) shell_field: Option<&'a str>,
    directories: OnceCell<Vec<PathBuf>>,
    places: RefCell<Vec<(String, KnownPlaces)>>,
    any_paths: OnceCell<Vec<TextPlaces>>,
    views: RefCell<Views>,
    sweeps: OnceCell<Vec<Sweep>>,
    worktrees: OnceCell<Vec<PathBuf>>,
    swept: OnceCell<SweptFiles>,
}

impl<'a> ExaminedCall<'a> {
    pub(crate) fn new(engine: &'a Engine, call: RuleCall<'a>) -> Self {
        Self {
            shell_field: engine.shell_field(&call),
            call,
            engine,
            directories: OnceCell::new(),
            places: RefCell::new(Vec::new()),
            any_paths: OnceCell::new(),
            views: RefCell::new(Vec::new()),
            sweeps: OnceCell::new(),
            worktrees: OnceCell::new(),
            swept: OnceCell::new(),
        }
    }

    /// Where the words of a command name files: in each directory that it may start in.
    pub(crate) fn files_named_by<'p>(&'p self, part: &'p Part) -> NamedFiles<'p> {
        NamedFiles { directories: part.directories(), home: self.places().home() }
    }

    pub(crate) fn places(&self) -> &Places {
        &self.engine.places
    }

    /// The working trees of the project's repository beside the first one.
    fn worktrees(&self) -> &[PathBuf] {
        self.worktrees.get_or_init(|| match self.places().looks() {
            true => worktrees(self.places().root(), self.places().home()),
            false => Vec::new(),
        })
    }

    /// The working tree of the project that a place is in, if it is beside the first one.
    pub(crate) fn worktree_of(&self, place: &Path) -> Option<&Path> {
        worktree_of(place, self.worktrees())
    }

    /// The rest of a place in a working tree that Claude Code has made below the root.
    pub(crate) fn own_worktree<'p>(&self, place: &'p Path) -> Option<&'p Path> {
        let root = self.places().root();
        if !may_be_in_own_worktree(place, root) {
            return None;
        }
        let tree = self.worktree_of(place).filter(|tree| may_be_in_own_worktree(tree, root))?;
        inside(place, tree)
    }

    /// The place in the root that a place in a working tree of the project stands for. A rule that allows takes one
    /// outside of the root as such only for a tool that is known to read.
    pub(crate) fn in_root(&self, place: &Path, allows: bool) -> Option<PathBuf> {
        let root = self.places().root();
        let is_below = inside(place, root).is_some();
        if is_below && !may_be_in_own_worktree(place, root)
            || !is_below && allows && !self.call.is_known_to_read()
        {
            return None;
        }
        let inner = inside(place, self.worktree_of(place)?)?;
        Some(root.join(inner))
    }

    pub(crate) fn field(&self, path: &[String]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.call.args.get(first)?, |value, name| value.get(name))
    }

    /// The directory that the call starts in, if no argument names another one.
    pub(crate) fn base(&self) -> PathBuf {
        let root = self.places().root();
        let given = self.call.directory;
        given.map_or_else(|| root.to_owned(), |it| lexically_normal(&root.join(it)))
    }

    /// The directories that arguments name, and the one that the call starts in.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        self.directories.get_or_init(|| {
            let base = self.base();
            let named = self.directory_arguments().map(|it| lexically_normal(&base.join(it)));
            let mut all: Vec<_> = named.collect();
            all.push(base);
            all
        })
    }

    fn directory_arguments(&self) -> impl Iterator<Item = &'a str> {
        let args = self.call.args;
        let given = DIRECTORIES.iter().filter_map(|name| args.get(*name)?.as_str());
        given.filter(|text| !text.is_empty())
    }

    /// The places that a text stands for, relative to each directory of the call.
    pub(crate) fn places_of(&self, text: &str) -> KnownPlaces {
        let places = self.places.borrow();
        if let Some((_, known)) = places.iter().find(|(known, _)| known == text) {
            return known.clone();
        }
        drop(places);
        let mut all = Vec::new();
        let mut found = self.directories().iter().map(|it| self.places().of(text, it));
        let found = found.try_for_each(|places| places.map(|places| all.extend(places)));
        let found: KnownPlaces = found.map(|()| all.into());
        let mut places = self.places.borrow_mut();
        if places.len() < MAX_KNOWN {
            places.push((text.to_owned(), found.clone()));
        }
        found
    }

    /// The folder that a condition names, as it is written and as it is resolved.
    pub(crate) fn target(&self, text: &str) -> Option<Vec<PathBuf>> {
        let places = self.places();
        let written = match text {
            "." | "./" => return Some(vec![places.root().to_owned()]),
            "~" => places.home()?.to_owned(),
            _ => match text.strip_prefix("~/") {
                Some(rest) => places.home()?.join(rest),
                None => places.root().join(text),
            },
        };
        let written = lexically_normal(&written);
        let mut found = vec![written.clone()];
        if places.looks()
            && let Ok(resolved) = std::fs::canonicalize(&written)
            && resolved != written
        {
            found.push(resolved);
        }
        Some(found)
    }

    /// The judgement of the commands in a field. `None` if the field holds no text.
    pub(crate) fn view(&self, field: &[String]) -> Option<Rc<CommandView>> {
        let known = self
            .views
            .borrow()
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, view)| view.clone());
        if let Some(known) = known {
            return known;
        }
        let view = self.field(field).and_then(Value::as_str).map(|text| {
            let given = self.directory_arguments().next().map(Cow::Borrowed);
            let start = self.call.directory.map(|directory| directory.to_string_lossy());
            let directory = match (start, given) {
                (Some(start), Some(given)) => Some(Cow::Owned(
                    Path::new(&*start).join(&*given).to_string_lossy().into_owned(),
                )),
                (start, given) => given.or(start),
            };
            let is_root =
                |it: &Cow<'_, str>| self.places().root().join(&**it) == self.places().root();
            let directory = directory.filter(|it| !is_root(it));
            Rc::new(CommandView::new(self.engine, text, directory.as_deref()))
        });
        self.views.borrow_mut().push((field.to_vec(), view.clone()));
        view
    }

    /// The view of the shell text, if the tool is a shell.
    pub(crate) fn shell(&self) -> Option<Rc<CommandView>> {
        self.view(&[self.shell_field?.to_owned()])
    }

    /// The folders of which the call reads all that is below.
    pub(crate) fn sweeps(&self) -> &[Sweep] {
        self.sweeps.get_or_init(|| {
            let (tool, args) = (self.call.tool, self.call.args);
            let mut found = sweeps::of_search_tool(tool, args, self.directories());
            found.extend(
                self.shell()
                    .iter()
                    .flat_map(|view| sweeps::of_commands(view.parts(), view.commands())),
            );
            found
        })
    }

    /// The files below these folders, looked up once.
    pub(crate) fn swept(&self) -> &SweptFiles {
        self.swept.get_or_init(|| swept::files(self.sweeps(), self.places()))
    }

    /// Looks at the readings of a text that names a path, each with its places. Most texts have one.
    pub(super) fn with_readings<T>(&self, text: &str, look: impl FnOnce(&[TextPlaces]) -> T) -> T {
        if !text.is_empty() && argument::is_name(text) {
            let (places, likelihood) = (self.places_of(text), Likelihood::Certain);
            return look(&[TextPlaces {
                places,
                likelihood,
                is_pattern: false,
                sight: Sight::All,
            }]);
        }
        let mut found = Vec::new();
        self.read(text, TextRole::Named, &mut found);
        look(&found)
    }

    /// The places that a text of one line leads to, if its links lead elsewhere than its text: as a `file:` URL, too.
    /// Several places, from each directory of the call, stand in one text.
    pub(crate) fn resolved_place(&self, text: &str) -> Option<String> {
        if text.len() > argument::MAX_PATH || text.contains(['\n', '\0']) {
            return None;
        }
        let resolved = |text: &str| {
            let mut found = Vec::new();
            for directory in self.directories() {
                found.extend(self.places().of(text, directory).ok()?.into_iter().skip(1));
            }
            found.dedup();
            let found: Vec<_> = found.iter().map(|place| place.display().to_string()).collect();
            (!found.is_empty()).then(|| found.join("\n"))
        };
        if !text.contains(':') {
            return resolved(text);
        }
        let readings = argument::readings(text, TextRole::Named).all;
        readings
            .iter()
            .filter(|it| it.likelihood == Likelihood::Certain)
            .find_map(|it| resolved(&it.text))
    }

    fn read(&self, text: &str, role: TextRole, found: &mut Vec<TextPlaces>) {
        // A text for people that has words is no path for a rule that allows: `/api: fix`.
        let is_text = role == TextRole::Prose && text.trim().contains(char::is_whitespace);
        let strict = role == TextRole::Content || is_text;
        self.read_at(text, role, if strict { Sight::Strict } else { Sight::All }, found);
    }

    fn read_at(&self, text: &str, role: TextRole, sight: Sight, found: &mut Vec<TextPlaces>) {
        let readings = argument::readings(text, role);
        for reading in &readings.all {
            let TextReading { text, likelihood, is_pattern } = reading;
            let places = self.places_of(text);
            // Content that is no path to any file system is not about one.
            if role == TextRole::Content && places.is_err() {
                continue;
            }
            // A text for people may be a path, and mostly is none.
            let likelihood = match role {
                TextRole::Prose => Likelihood::Possible.max(*likelihood),
                _ => *likelihood,
            };
            add(TextPlaces { places, likelihood, is_pattern: *is_pattern, sight }, found);
        }
        let unread = |why, sight| TextPlaces {
            places: Err(why),
            likelihood: Likelihood::Possible,
            is_pattern: false,
            sight,
        };
        if let Some(why) = readings.unreadable.filter(|_| role != TextRole::Content) {
            add(unread(why, sight), found);
        }
        if readings.is_address && sight == Sight::All {
            add(unread("is an address, and no path", Sight::Allowing), found);
        }
    }

    /// The places that any string of the arguments stands for, at any depth, and any operand of a command.
    pub(super) fn any_paths(&self) -> &[TextPlaces] {
        self.any_paths.get_or_init(|| {
            let mut found = Vec::new();
            let command = self.shell_field;
            for (name, value) in self.call.args {
                // The name of an argument may be one of a file. Plain words are the names of arguments.
                if argument::is_path_like(name) {
                    self.name(name, &mut found);
                }
                // A shell reads the text of a command, below. As one path it is only looked at by rules that deny, from
                // each directory of the call.
                match (command == Some(name), value) {
                    (true, Value::String(text)) if !text.is_empty() => {
                        self.read(text, TextRole::Content, &mut found);
                    }
                    _ => self.strings(value, prose::role(self.call.tool, name), &mut found),
                }
            }
            if let Some(view) = self.shell() {
                for (text, directory) in view.operands() {
                    let is_glob = text.contains(['*', '?', '[']);
                    self.word(&text, &directory, is_glob, &mut found);
                }
                for word in view.raw_words() {
                    for form in word::readings(&word) {
                        for directory in self.directories() {
                            self.word(&form, directory, form.contains(['*', '?', '[']), &mut found);
                        }
                    }
                }
            }
            found
        })
    }

    fn strings(&self, value: &Value, role: TextRole, found: &mut Vec<TextPlaces>) {
        match value {
            _ if role == TextRole::Content => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => self.read(text, role, found),
            Value::Array(items) => items.iter().for_each(|item| self.strings(item, role, found)),
            Value::Object(map) => {
                for (name, value) in map {
                    self.name(name, found);
                    self.strings(value, prose::role(self.call.tool, name), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The name of an argument: some tools take a map from files to content. One that is like a path counts for rules
    /// that allow, too.
    fn name(&self, name: &str, found: &mut Vec<TextPlaces>) {
        if !name.is_empty() {
            let leads = name.contains(['/', '\\', '%', '~']) || name.starts_with("..");
            let sight = if leads { Sight::All } else { Sight::Strict };
            self.read_at(name, TextRole::Named, sight, found);
        }
    }

    /// A word of a command, which is relative to the directory that the command runs in.
    fn word(&self, text: &str, directory: &Path, is_pattern: bool, found: &mut Vec<TextPlaces>) {
        if !text.is_empty() {
            let places = self.places().of(text, directory).map(Rc::from);
            let likelihood = Likelihood::Certain;
            add(TextPlaces { places, likelihood, is_pattern, sight: Sight::All }, found);
        }
    }
}

fn add(place: TextPlaces, found: &mut Vec<TextPlaces>) {
    // Comparing with all of very many would take too long.
    if found.len() > 256 || !found.contains(&place) {
        found.push(place);
    }
}
