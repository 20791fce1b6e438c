//! The files of a folder that decide what a program does there: the definitions of builds, and those of the program itself.
//!
//! | command | files |
//! |---|---|
//! | `make x`, `npm run x` | each that is on the list of build definitions |
//! | `docker compose up`, `terraform apply` | those that the list of the program has: `compose*.yml`, `*.tf` |
//! | `serverless deploy`, `npx wrangler deploy`, `fastlane x` | those that are called like the program, or lie in a folder that is: `serverless.yml`, `.wranglerrc`, `fastlane/Fastfile` |

use std::fs;
use std::path::{Path, PathBuf};

use super::paths::is_build_definition;
use super::script_files::{program_name, without_version};
use crate::names::globs::fits;
use crate::names::lists::{is_named, lists};

/// How many entries of a folder are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Programs that run the one of their first word: `npx -y serverless deploy`.
const LAUNCHERS: &[&str] = &[
    "asdf", "bun", "bundle", "bunx", "conda", "doppler", "dotenv", "hatch", "mise", "npm", "npx",
    "pdm", "pipenv", "pipx", "pnpm", "pnpx", "poetry", "pyenv", "python", "rbenv", "rye", "uv",
    "uvx", "yarn",
];

/// The definitions of builds in a folder.
pub(crate) fn build_definitions(folder: &Path) -> Vec<PathBuf> {
    files(folder, |path, name| is_build_definition(path) || is_named("build definitions", name))
}

/// The files in a folder that decide what the program of a command does.
pub(crate) fn definitions_of(
    argv: &[String],
    wrapper: Option<&str>,
    folder: &Path,
) -> Vec<PathBuf> {
    let programs: Vec<_> = programs(argv).chain(wrapper.map(str::to_owned)).collect();
    let is_listed = |heading: &str| {
        let of = heading.strip_prefix("definitions of ").unwrap_or_default();
        of.split(' ').any(|known| programs.iter().any(|it| it == known))
    };
    let patterns = lists().iter().filter(|(heading, _)| is_listed(heading));
    let patterns: Vec<_> =
        patterns.flat_map(|(_, names)| names).map(|it| it.to_lowercase()).collect();
    let mut found = files(folder, |_, name| {
        patterns.iter().any(|pattern| fits(pattern, name))
            || programs.iter().any(|program| is_called_like(name, program))
    });
    // `.github/workflows/*.yml` is looked up in that folder.
    for (below, pattern) in patterns.iter().filter_map(|pattern| pattern.rsplit_once('/')) {
        found.extend(files(&folder.join(below), |_, name| fits(pattern, name)));
    }
    let own = programs.iter().take(1).filter(|program| is_settings_of(program));
    let own = own.flat_map(|program| [program.clone(), format!(".{program}")]);
    found.extend(own.flat_map(|name| files(&folder.join(name), |_, _| true)));
    found
}

/// The names of the program of a command, and of the one that it runs.
fn programs(argv: &[String]) -> impl Iterator<Item = String> {
    let mut words = argv.iter().filter(|word| !word.starts_with('-'));
    let first = words.next().map(|first| program_name(first).to_lowercase());
    let launches = first.as_deref().is_some_and(|it| LAUNCHERS.contains(&without_version(it)));
    // `run`, `exec` and `x` stand between.
    let is_name = |word: &&String| !word.contains(['.', '/']) && !VERBS.contains(&word.as_str());
    // One of the words may be the value of an option: `conda run -n env invoke`.
    let others = words.filter(is_name).take(if launches { 2 } else { 0 });
    first.into_iter().chain(others.map(|word| word.to_lowercase()))
}

/// Words between a launcher and the program that it runs.
const VERBS: &[&str] = &["dlx", "exec", "run", "tool", "x"];

/// Returns `true` for `serverless.yml` and `.serverlessrc`, if the program is `serverless`.
fn is_called_like(name: &str, program: &str) -> bool {
    let name = name.trim_start_matches('.');
    let rest = name.strip_prefix(program).filter(|_| is_settings_of(program));
    rest.is_some_and(|rest| {
        !rest.starts_with(char::is_alphanumeric)
            || ["file", "rc", "config"].iter().any(|it| rest.starts_with(it))
    })
}

/// Returns `true` if files that are called like a program may be its settings. Those of git decide nothing that is not on a list
/// of its own.
fn is_settings_of(program: &str) -> bool {
    program.len() > 1 && program != "git"
}

/// The files of a folder of which a test is true, with their names in lower case.
fn files(folder: &Path, is_one: impl Fn(&Path, &str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let paths = entries.map(|entry| folder.join(entry.file_name()));
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        is_one(path, &name) && path.is_file()
    };
    let mut found: Vec<PathBuf> = paths.filter(is_one).collect();
    found.sort_unstable();
    found
}
