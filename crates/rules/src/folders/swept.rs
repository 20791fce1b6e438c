//! Looks up the files below the folders that a call reads, once for each call and within bounds.
//!
//! The files that are found can change before the command runs, like everything that is looked up.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::ignored::Ignored;
use super::reaches::{ExcludedNames, Reach};
use super::sweeps::Sweep;
use crate::calls::glob::Glob;
use crate::calls::paths::Places;
use crate::readings::word;

/// The number of entries of folders that are looked at for one call.
const MAX_ENTRIES: usize = 20_000;

/// The levels below a folder that are searched.
const MAX_DEPTH: usize = 64;

/// The files and folders below the folders of a call.
#[derive(Debug, Default)]
pub(crate) struct SweptFiles {
    pub(crate) found: Vec<PathBuf>,
    /// The reason why more may be read than was found.
    pub(crate) incomplete: Option<&'static str>,
}

/// Looks up what is below the folders that a call reads.
pub(crate) fn files(sweeps: &[Sweep], places: &Places) -> SweptFiles {
    let mut walk = Walk { places, left: MAX_ENTRIES, files: SweptFiles::default() };
    let mut done = HashSet::new();
    for sweep in sweeps {
        if !sweep.is_known {
            walk.files.incomplete = Some("reads a folder that is known only when it runs");
        }
        for folder in walk.folders(sweep) {
            if done.insert((folder.clone(), sweep.reach.clone())) {
                let is_here = matches!(sweep.folder.as_str(), "." | "./");
                walk.below(folder, &sweep.reach, is_here);
            }
        }
    }
    walk.files
}

/// Looks up what is below some folders, by their names in these directories.
pub(crate) fn below(
    folders: impl IntoIterator<Item = String>,
    directories: &[PathBuf],
    reach: &Reach,
    places: &Places,
) -> SweptFiles {
    let sweeps = folders.into_iter().map(|folder| Sweep::new(folder, directories, reach));
    files(&sweeps.collect::<Vec<_>>(), places)
}

struct Walk<'a> {
    places: &'a Places,
    left: usize,
    files: SweptFiles,
}

impl Walk<'_> {
    /// The folders that a word stands for, as written and as resolved.
    fn folders(&mut self, sweep: &Sweep) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let workspace = self.places.workspace();
        for form in word::readings(&sweep.folder) {
            for directory in &sweep.directories {
                if form.contains(['*', '?', '[']) {
                    match workspace.matches(&form, directory) {
                        Some(matched) => found.extend(matched),
                        None => self.files.incomplete = Some(TOO_MANY),
                    }
                }
                found.extend(self.places.of(&form, directory).unwrap_or_default());
            }
        }
        found.retain(|place| place.is_dir());
        found
    }

    /// Adds what is below a folder, and is read.
    fn below(&mut self, folder: PathBuf, reach: &Reach, is_here: bool) {
        let ignored = if reach.ignored { Ignored::default() } else { Ignored::above(&folder) };
        let without = ExcludedGlobs::new(&reach.without);
        let most = reach.depth.unwrap_or(usize::MAX);
        let only: Vec<Glob> = reach.only.iter().map(|it| Glob::new(it)).collect();
        let mut linked = HashSet::new();
        let mut open = vec![(folder, 0, ignored)];
        while let Some((folder, depth, ignored)) = open.pop() {
            // A file that this process cannot read, its programs cannot read either.
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let ignored = if reach.ignored { ignored } else { ignored.within(&folder) };
            for entry in entries.flatten() {
                let Some(left) = self.left.checked_sub(1) else {
                    self.files.incomplete = Some(TOO_MANY);
                    return;
                };
                self.left = left;
                let (path, name) = (entry.path(), entry.file_name());
                let name = name.to_string_lossy();
                let kind = entry.file_type().ok();
                let is_folder = kind.is_some_and(|kind| kind.is_dir());
                let is_left_out = !reach.hidden && name.starts_with('.')
                    || without.have(&name, is_folder, is_here && depth == 0)
                    || !reach.ignored
                        && (is_folder && name == ".git"
                            || ignored.covers(&path, is_folder, self.places));
                if is_left_out {
                    continue;
                }
                let is_read =
                    is_folder || only.is_empty() || only.iter().any(|it| it.matches_folded(&name));
                if kind.is_some_and(|kind| kind.is_symlink()) && reach.links {
                    // A link that leads nowhere has no content.
                    let Ok(target) = fs::canonicalize(&path) else { continue };
                    if target.is_dir()
                        && reach.follows
                        && depth + 1 < most
                        && linked.insert(target.clone())
                    {
                        open.push((target.clone(), depth + 1, ignored.clone()));
                    }
                    if is_read {
                        self.files.found.push(target);
                    }
                }
                if is_folder && depth + 1 >= most {
                    // No deeper.
                } else if is_folder && depth < MAX_DEPTH {
                    open.push((path.clone(), depth + 1, ignored.clone()));
                } else if is_folder {
                    self.files.incomplete = Some(TOO_MANY);
                }
                if is_read {
                    self.files.found.push(path);
                }
            }
        }
    }
}

const TOO_MANY: &str = "reads a folder with too many files to look through";

/// The files that are left out, as patterns.
struct ExcludedGlobs {
    files: Vec<Glob>,
    folders: Vec<Glob>,
    first: Vec<Glob>,
}

impl ExcludedGlobs {
    fn new(without: &ExcludedNames) -> Self {
        let globs = |names: &[String]| names.iter().map(|it| Glob::new(it)).collect();
        Self {
            files: globs(&without.files),
            folders: globs(&without.folders),
            first: globs(&without.first),
        }
    }

    fn have(&self, name: &str, is_folder: bool, is_first: bool) -> bool {
        let globs = if is_folder { &self.folders } else { &self.files };
        globs.iter().chain(self.first.iter().filter(|_| is_first)).any(|glob| glob.matches(name))
    }
}
