//! What is built beside the tests.

use std::path::{Path, PathBuf};

/// An example, which `cargo test` builds beside this binary.
pub(crate) fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let binary = here.parent().and_then(Path::parent).unwrap().join("examples").join(file);
    assert!(binary.exists(), "build it first: cargo build --example {name} --all-features");
    binary
}
