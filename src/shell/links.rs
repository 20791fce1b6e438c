//! Looks for links that lead out of the workspace.
//!
//! A folder of the workspace may hold a link to a file elsewhere. `cat LINK` is judged by where the link leads, and
//! `grep -R`, `rg -L` and `find … -exec cat {} +` find it by themselves. So where a program follows the links that it
//! finds, or hands their paths on to one that reads them, the folders are looked through first. Beyond 10 000 files, a
//! person is asked.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::paths::{PathClass, Workspace, place};
use super::simple::{Judging, Simple};
use super::table::{Kind, Matched};

/// How many files are looked at for one command.
const MAX_LOOKED_AT: usize = 10_000;

impl Simple<'_> {
    /// Asks about a program that follows links, if one of them leads out of the workspace.
    pub(super) fn followed(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
    ) {
        if self.has_links_out(judging, matched) {
            self.ask(format!("`{name}` follows links, which may lead out of the workspace"));
        }
    }

    /// Whether the paths that a program prints may be those of links that lead out of the workspace.
    pub(super) fn prints_links(&self, judging: &Judging<'_>, matched: &Matched<'_, '_>) -> bool {
        !matched.files && self.has_links_out(judging, matched)
    }

    /// Whether a link below the operands of a command, or below its directory if it has none, leads out.
    fn has_links_out(&self, judging: &Judging<'_>, matched: &Matched<'_, '_>) -> bool {
        let workspace = &judging.settings.workspace;
        if !workspace.looks() {
            return false;
        }
        let named = matched.operands.iter().filter(|one| {
            matches!(one.kind, Kind::Read | Kind::List | Kind::Revision) && !one.late
        });
        let mut bases: Vec<PathBuf> = Vec::new();
        for here in self.here.iter() {
            let texts = named.clone().filter_map(|one| one.word.literal());
            let places = texts.filter_map(|text| workspace.places(text, here));
            bases.extend(places.map(|[_, resolved]| resolved).filter(|place| place.is_dir()));
        }
        if bases.is_empty() {
            bases.extend_from_slice(&self.here);
        }
        workspace.has_links_out(bases)
    }
}

impl Workspace {
    /// Whether a link below these folders leads out of the workspace, or to a secret. Also if there are too many files
    /// to tell.
    fn has_links_out(&self, mut open: Vec<PathBuf>) -> bool {
        let mut left = MAX_LOOKED_AT;
        let mut linked = HashSet::new();
        while let Some(folder) = open.pop() {
            // A file has no entries, and what this process cannot read its programs cannot read either.
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                match left.checked_sub(1) {
                    Some(rest) => left = rest,
                    None => return true,
                }
                let Ok(kind) = entry.file_type() else { return true };
                if kind.is_dir() {
                    open.push(entry.path());
                } else if kind.is_symlink() {
                    // A link that leads nowhere has no content.
                    let Ok(found) = fs::canonicalize(entry.path()) else { continue };
                    if matches!(place(&found, self.root()), PathClass::Outside | PathClass::Secret)
                    {
                        return true;
                    }
                    if found.starts_with(self.root())
                        && found.is_dir()
                        && linked.insert(found.clone())
                    {
                        open.push(found);
                    }
                }
            }
        }
        false
    }
}
