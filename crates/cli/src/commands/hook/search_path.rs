//! The folders in which programs are looked up, as the hook will find them.

use countersign::show::escape;
use countersign_shell::{SearchPath, Workspace};

use crate::findings::Finding;

/// Finds folders of `PATH` in which tools may put programs, because of which every command is asked about.
pub(super) fn search_path() -> Finding {
    match open_folders() {
        Some(found) => Finding("search path", Some(false), found),
        None => {
            let found = "tools cannot put a program in front of those that are found by `PATH`";
            Finding("search path", Some(true), found.to_owned())
        }
    }
}

/// The folders of `PATH` in which tools may put programs, and what to do about them, as a text for people.
pub(crate) fn open_folders() -> Option<String> {
    let workspace = Workspace::new(std::env::current_dir().ok()?);
    let found = SearchPath::from_env().open_folders(&workspace);
    let (_, why) = found.first()?;
    let names: Vec<_> = found
        .iter()
        .map(|(folder, _)| format!("`{}`", escape(&folder.display().to_string())))
        .collect();
    Some(format!(
        "`PATH` names {}, and {why}: every command whose program is found behind that is asked about, also `ls`, as a tool could \
         put another program of that name there. Start the client with a `PATH` that has such folders last, or not at all (for \
         example without an activated environment), and let it call their programs by path, as `.venv/bin/pytest`",
        names.join(", ")
    ))
}
