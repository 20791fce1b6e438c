//! The files that git ignores, as far as the lines of `.gitignore` files make that certain.
//!
//! If a search leaves ignored files out, it does not read them, and we do not ask about it because of them. We cannot read
//! every line: a line with `[…]` or a backslash ignores nothing for us, and may take back any file.
//!
//! Searches also have files of their own (`.ignore`, `.rgignore`). A line of theirs may take back a file that git ignores,
//! so we read these lines; the files that they ignore count as read.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::calls::glob::PathGlob;
use crate::calls::paths::Places;
use countersign_shell::bounded_text;

/// The longest `.gitignore` that is read.
const MAX_SIZE: u64 = 64 << 10;

/// Files of searches that come before those of git.
const OF_SEARCHES: &[&str] = &[".ignore", ".rgignore", ".fdignore", ".agignore"];

/// The lines of one file, for what is below its folder.
#[derive(Debug)]
struct IgnoreFile {
    folder: PathBuf,
    lines: Vec<IgnoreLine>,
    /// `true` if it is one of a search, which only takes back here.
    is_of_search: bool,
}

#[derive(Debug)]
struct IgnoreLine {
    takes_back: bool,
    folders_only: bool,
    /// `None` for a line that is not read, and may be about anything.
    glob: Option<PathGlob>,
}

/// The files that say what is ignored in a folder: those of its repository, from the root of that on.
#[derive(Debug, Clone, Default)]
pub(super) struct Ignored(Vec<Rc<IgnoreFile>>);

impl Ignored {
    /// The entries that are ignored in a folder, by the files of the repository above it.
    pub(crate) fn above(folder: &Path) -> Self {
        let Some(root) = folder.ancestors().find(|it| it.join(".git").exists()) else {
            return Self::default();
        };
        let mut found = Self::default();
        // A search looks into every folder above, also above the repository.
        for folder in root.ancestors().skip(1) {
            found.add_of_searches(folder);
        }
        let above: Vec<&Path> =
            folder.ancestors().skip(1).take_while(|it| it.starts_with(root)).collect();
        for folder in above.into_iter().rev() {
            found = found.within(folder);
        }
        found
    }

    /// The entries that are ignored below a folder of the repository, or in one that begins here.
    pub(crate) fn within(&self, folder: &Path) -> Self {
        let is_repository = self.0.iter().any(|it| !it.is_of_search)
            || folder.ancestors().any(|it| it.join(".git").exists());
        let text = match is_repository {
            true => bounded_text(&folder.join(".gitignore"), MAX_SIZE).ok().flatten(),
            false => None,
        };
        let mut found = self.clone();
        if let Some(text) = text {
            found.add(folder, &text, false);
        }
        found.add_of_searches(folder);
        found
    }

    fn add(&mut self, folder: &Path, text: &str, is_of_search: bool) {
        let lines = text.lines().filter_map(IgnoreLine::read).collect();
        self.0.push(Rc::new(IgnoreFile { folder: folder.to_owned(), lines, is_of_search }));
    }

    fn add_of_searches(&mut self, folder: &Path) {
        for name in OF_SEARCHES {
            if let Ok(Some(text)) = bounded_text(&folder.join(name), MAX_SIZE) {
                self.add(folder, &text, true);
            }
        }
    }

    /// Returns `true` if git ignores an entry of a folder that it does not ignore: the last line that is about it
    /// decides.
    pub(crate) fn covers(&self, path: &Path, is_folder: bool, places: &Places) -> bool {
        let mut verdict = false;
        for file in &self.0 {
            let Ok(inner) = path.strip_prefix(&file.folder) else { continue };
            let inner = Path::new("/").join(inner);
            for line in &file.lines {
                let holds = match &line.glob {
                    Some(glob) => glob.matches(&inner, places, false, false) == Some(true),
                    None => line.takes_back,
                };
                if holds && file.is_of_search && line.takes_back {
                    return false;
                }
                if holds
                    && !file.is_of_search
                    && (is_folder || !line.folders_only || line.takes_back)
                {
                    verdict = !line.takes_back;
                }
            }
        }
        verdict
    }
}

impl IgnoreLine {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim_end();
        let (takes_back, pattern) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if pattern.is_empty() || pattern.starts_with('#') {
            return None;
        }
        let bare = pattern.trim_end_matches('/');
        // A pattern with a slash in it begins in the folder of the file, and any other one anywhere below.
        let glob = match bare.strip_prefix('/') {
            Some(_) => bare.to_owned(),
            None if bare.contains('/') => format!("/{bare}"),
            None => format!("/**/{bare}"),
        };
        let is_read = !pattern.contains(['[', ']', '\\']);
        let glob = is_read.then(|| PathGlob::new(&glob));
        Some(Self { takes_back, folders_only: pattern.ends_with('/'), glob })
    }
}
