//! The rules' view of one call: fields, places and commands, each computed at most once.
//!
//! A call is looked at by many rules, and looking is the expensive part: links are resolved, commands parsed.
//! Everything here is computed when the first rule asks for it and kept for the others, for this one call only. The
//! next call sees the files as they are then.
//!
//! The directory of a call is both the one that it starts in and the one that an argument names (`cwd`), as a tool may
//! ignore the argument: paths are relative to *each* of them, and a rule that allows has to hold for both.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use super::call::RuleCall;
use super::command::CommandView;
use super::engine::Engine;
use super::paths::{Places, forms};
use super::shells::DIRECTORIES;
use crate::shell::lexically_normal;

/// The places that one text stands for, and whether the text is a pattern that a shell expands.
pub(super) type TextPlaces = (Result<Vec<PathBuf>, &'static str>, bool);

/// The places that a text of the arguments stands for, which several rules look at.
type KnownPlaces = Result<Rc<[PathBuf]>, &'static str>;

/// Of how many texts the places are kept. Looking for a text among those of a long list would take too long.
const MAX_KNOWN: usize = 16;

/// A view of a text that has one, by its field.
type Views = Vec<(Vec<String>, Option<Rc<CommandView>>)>;

/// One call while it is decided about.
pub(super) struct Seen<'a> {
    pub(super) call: RuleCall<'a>,
    pub(super) engine: &'a Engine,
    directories: OnceCell<Vec<PathBuf>>,
    places: RefCell<Vec<(String, KnownPlaces)>>,
    any_paths: OnceCell<Vec<TextPlaces>>,
    views: RefCell<Views>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(engine: &'a Engine, call: RuleCall<'a>) -> Self {
        Self {
            call,
            engine,
            directories: OnceCell::new(),
            places: RefCell::new(Vec::new()),
            any_paths: OnceCell::new(),
            views: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn places(&self) -> &Places {
        &self.engine.places
    }

    pub(super) fn field(&self, path: &[String]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.call.args.get(first)?, |value, name| value.get(name))
    }

    /// The directory that the call starts in, if no argument names another one.
    pub(super) fn base(&self) -> PathBuf {
        let root = self.places().root();
        let given = self.call.directory;
        given.map_or_else(|| root.to_owned(), |it| lexically_normal(&root.join(it)))
    }

    /// The directories that arguments name, and the one that the call starts in.
    pub(super) fn directories(&self) -> &[PathBuf] {
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
    pub(super) fn places_of(&self, text: &str) -> KnownPlaces {
        let places = self.places.borrow();
        if let Some((_, known)) = places.iter().find(|(known, _)| known == text) {
            return known.clone();
        }
        drop(places);
        let found = self.directories().iter().map(|it| self.places().of(text, it));
        let found: KnownPlaces =
            found.collect::<Result<Vec<_>, _>>().map(|all| all.concat().into());
        let mut places = self.places.borrow_mut();
        if places.len() < MAX_KNOWN {
            places.push((text.to_owned(), found.clone()));
        }
        found
    }

    /// The folder that a condition names, as it is written and as it is resolved.
    pub(super) fn target(&self, text: &str) -> Option<Vec<PathBuf>> {
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
    pub(super) fn view(&self, field: &[String]) -> Option<Rc<CommandView>> {
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
    pub(super) fn shell(&self) -> Option<Rc<CommandView>> {
        let field = self.engine.shell_field(&self.call)?;
        self.view(&[field.to_owned()])
    }

    /// The places that any string of the arguments stands for, at any depth, and any operand of a command.
    pub(super) fn any_paths(&self) -> &[TextPlaces] {
        self.any_paths.get_or_init(|| {
            let mut found = Vec::new();
            for value in self.call.args.values() {
                self.strings(value, &mut found);
            }
            if let Some(view) = self.shell() {
                for (text, directory) in view.operands() {
                    let is_glob = text.contains(['*', '?', '[']);
                    for form in forms(&text) {
                        self.add(&form, &directory, is_glob, &mut found);
                    }
                }
                for word in view.raw_words() {
                    for form in forms(&word) {
                        for directory in self.directories() {
                            self.add(&form, directory, form.contains(['*', '?', '[']), &mut found);
                        }
                    }
                }
            }
            found
        })
    }

    fn strings(&self, value: &Value, found: &mut Vec<TextPlaces>) {
        match value {
            Value::String(text) => {
                for form in forms(text) {
                    for directory in self.directories() {
                        self.add(&form, directory, false, found);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.strings(item, found)),
            Value::Object(map) => {
                for (name, value) in map {
                    self.add(name, self.places().root(), false, found);
                    self.strings(value, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add(&self, text: &str, directory: &Path, is_glob: bool, found: &mut Vec<TextPlaces>) {
        // A text that cannot be the path of a file is skipped.
        if text.is_empty() || text.len() > 4096 || text.contains('\0') {
            return;
        }
        let place = (self.places().of(text, directory), is_glob);
        // Comparing with all of very many would take too long.
        if found.len() > 256 || !found.contains(&place) {
            found.push(place);
        }
    }
}
