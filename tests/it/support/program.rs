//! The programs of this workspace as executables, for tests that run them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of an example, or of the program `countersign`, as the present sources build it.
pub(crate) fn program(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(Path::parent).unwrap();
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(profile));
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let places = [profile.join(&file), profile.join("examples").join(&file)];
    let found = places.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("the workspace has no program `{name}`"))
}

/// Builds all programs into the directory of a profile (`target/debug`). After a build of the whole workspace with all
/// features, cargo finds nothing to do.
fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
        .args(["build", "--workspace", "--all-features", "--bins", "--examples", "--quiet"])
        .args(["--profile", profile, "--target-dir"])
        .arg(folder.parent().unwrap())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the programs could not be built");
}
