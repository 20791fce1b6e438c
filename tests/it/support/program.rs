//! The programs of this workspace as executables, for tests that run them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The path of an example, or of the program `countersign`.
///
/// # Panics
/// If the program was not built since its sources changed. No test builds one: cargo would compile, with the settings of
/// the test's process, while other tests wait for a limit to pass.
pub(crate) fn program(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(Path::parent).unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let places = [profile.join(&file), profile.join("examples").join(&file)];
    let found = places.into_iter().find(|path| path.exists());
    let found = found.unwrap_or_else(|| panic!("there is no program `{name}`: {BUILD}"));
    if let Some(source) = newer_source(&found) {
        panic!("the program `{name}` is older than {}: {BUILD}", source.display());
    }
    found
}

const BUILD: &str = "run `cargo build --workspace --all-features --bins --examples` first";

/// A source that has changed since the program was built, by the list that cargo writes beside it.
fn newer_source(program: &Path) -> Option<PathBuf> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    let built: SystemTime = changed(program)?;
    let list = std::fs::read_to_string(program.with_extension("d")).ok()?;
    // `program: source source`, with `\ ` for a blank.
    let (_, sources) = list.split_once(": ")?;
    let sources = sources.trim().replace("\\ ", "\0");
    let paths = sources.split(' ').map(|it| PathBuf::from(it.replace('\0', " ")));
    paths
        .filter(|it| it.extension().is_some_and(|it| it == "rs"))
        .find(|it| changed(it) > Some(built))
}
