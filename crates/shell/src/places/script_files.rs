//! Which files a program runs, and how programs are called.

use std::io::Read as _;
use std::path::Path;

/// Endings of files that a program runs, and that do not begin with `#!`.
const SCRIPTS: &[&str] = &[
    "awk", "bash", "bat", "cjs", "clj", "cmd", "cts", "el", "exs", "fish", "go", "gradle",
    "groovy", "hs", "java", "jl", "jq", "js", "jsx", "ksh", "kts", "lua", "mjs", "mk", "mts",
    "nix", "php", "pl", "pm", "ps1", "py", "pyw", "r", "rb", "rs", "scm", "sed", "sh", "sql",
    "swift", "tcl", "ts", "tsx", "vim", "zsh",
];

/// The name of a program, without its folder: `git` for `/usr/bin/git`.
#[must_use]
pub fn program_name(program: &str) -> &str {
    // Names are short, and this is asked about every command many times.
    let folder = program.bytes().rposition(|byte| byte == b'/');
    folder.and_then(|at| program.get(at + 1..)).unwrap_or(program)
}

/// The name of a program without the version behind it: `python` for `python3.12`.
#[must_use]
pub fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Whether a file is one that a program runs, by its ending, by its mode, or by the way in which it begins.
#[must_use]
pub fn is_script(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    SCRIPTS.iter().any(|known| known.eq_ignore_ascii_case(ending))
        || is_executable(file)
        || begins_as_script(file).unwrap_or_default()
}

/// Whether a file may be run as a program. Never where the system has no such mode.
#[cfg(unix)]
#[must_use]
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Whether a file may be run as a program. Never where the system has no such mode.
#[cfg(not(unix))]
#[must_use]
pub fn is_executable(_: &Path) -> bool {
    false
}

fn begins_as_script(file: &Path) -> Option<bool> {
    let mut first = [0; 2];
    std::fs::File::open(file).ok()?.read_exact(&mut first).ok()?;
    Some(first == *b"#!")
}
