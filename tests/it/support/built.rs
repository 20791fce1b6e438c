//! The examples as executables, for tests that run them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The features that the examples are built with, which are those of this test binary.
const FEATURES: &[(&str, bool)] = &[
    ("ai-sdk", cfg!(feature = "ai-sdk")),
    ("genai", cfg!(feature = "genai")),
    ("postgres", cfg!(feature = "postgres")),
    ("sqlite", cfg!(feature = "sqlite")),
];

/// The path of an example's executable. `cargo test` builds the examples beside this binary; `cargo test --test it`
/// does not, so they are built here, once.
pub(crate) fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let profile = here.parent().and_then(Path::parent).unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let binary = profile.join("examples").join(file);
    if !binary.exists() {
        static BUILT: OnceLock<()> = OnceLock::new();
        BUILT.get_or_init(|| build(profile));
    }
    assert!(binary.exists(), "there is no example `{name}` with the features of this test");
    binary
}

/// Builds all examples into the directory of a profile (`target/debug`).
fn build(folder: &Path) {
    let features: Vec<_> = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    run_cargo(folder, &["--examples", "--features", &features.join(",")]);
}

/// Builds into the directory of a profile.
pub(crate) fn run_cargo(folder: &Path, what: &[&str]) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--profile", profile])
        .args(what)
        .arg("--target-dir")
        .arg(folder.parent().unwrap())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{what:?} could not be built");
}
