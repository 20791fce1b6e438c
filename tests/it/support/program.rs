//! The program `countersign` as an executable, for tests that run it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::built::run_cargo;

/// The path of the program `countersign`. `cargo test --all-features` builds it; without the feature `cli` it is built
/// here, once.
pub(crate) fn program() -> PathBuf {
    if let Some(path) = option_env!("CARGO_BIN_EXE_countersign").map(PathBuf::from)
        && path.exists()
    {
        return path;
    }
    let here = std::env::current_exe().unwrap();
    let profile = here.parent().and_then(Path::parent).unwrap();
    let binary = profile.join(format!("countersign{}", std::env::consts::EXE_SUFFIX));
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| run_cargo(profile, &["--bin", "countersign", "--features", "cli"]));
    binary
}
