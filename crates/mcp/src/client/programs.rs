//! The files and packages that the command of a server names, which are pinned with its tools (rule M4).
//!
//! | command | pinned |
//! |---|---|
//! | `mcp-server-git`, `./server` | the file of the program, by its content |
//! | `node server.js`, `uv --directory /x run server.py` | the files of the program and of the script, by their content |
//! | `env X=1 node server.js`, `sh -c 'cd x && node server.js'` | the same, and the files of `env` and `sh` |
//! | `npx @x/server@1.2.3`, `uvx server==1.2.3`, `docker run x/server:1.2` | the package, with the version that is named |
//! | `npx @x/server` | the package; the log and `pins show` say that no version is named |
//!
//! The command is read as a shell's is (`shell`), and the scripts are those that questions of rules are bound to. Nothing
//! that a script loads is looked at: modules, packages, the files of an image, a server that is reached by its URL.
//!
//! Digests are made when the server is started. A file that changes while the server runs counts from its next start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::launch::{Launch, Transport};
use countersign_shell::program_files::{NamedFiles, digest_of, is_executable, program_name};
use countersign_shell::{Classifier, Dialect, Part, Preset, SearchPath, Workspace};

/// The largest file that is pinned by its content, in bytes; interpreters have up to 200 MB.
const MAX_SIZE: u64 = 1 << 30;

/// The state of a package whose version the command names.
const NAMED: &str = "its version is named";
/// The state of a package whose version the command does not name.
const UNNAMED: &str = "no version is named: what runs can change without a question";

/// The files and packages that a command names, each with its state: the digest of a file, and if a package's version is
/// named.
pub(crate) type ServerPrograms = BTreeMap<String, String>;

/// Returns `true` if the state is one of a package whose version is not named.
pub(crate) fn is_unnamed(state: &str) -> bool {
    state == UNNAMED
}

/// Of a command that cannot be read.
pub(crate) fn unreadable() -> ServerPrograms {
    ServerPrograms::from([("the command".to_owned(), "cannot be read".to_owned())])
}

/// The files and packages that the command of a server names now. Reads the files.
pub(crate) fn of_launch(launch: &Launch) -> ServerPrograms {
    let Transport::Command { program, args, env, directory } = &launch.way else {
        return ServerPrograms::new();
    };
    let here = directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let here = std::path::absolute(&here).unwrap_or(here);
    let home = std::env::home_dir();
    let words = [program].into_iter().chain(args);
    let words: Vec<_> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    let mut workspace = Workspace::lexical(&here);
    if let Some(home) = &home {
        workspace = workspace.with_home(home);
    }
    let classifier =
        Classifier::new(workspace, Preset::Reader).with_search_path(SearchPath::unchecked());
    let path = env.get(std::ffi::OsStr::new("PATH")).cloned().or_else(|| std::env::var_os("PATH"));
    let path: Vec<PathBuf> =
        path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let mut found = ServerPrograms::new();
    for part in classifier.judge(&words.join(" "), Dialect::Sh).parts() {
        match packages(part.argv()) {
            Some(packages) => found.extend(packages),
            None => {
                let files = files(part, home.as_deref(), &path);
                found.extend(
                    files.into_iter().map(|file| (file.display().to_string(), content(&file))),
                );
                found.extend(modules(part.argv()));
            }
        }
    }
    found
}

/// A word that a shell reads as exactly this text.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn content(file: &Path) -> String {
    match digest_of(file, MAX_SIZE) {
        Ok(Some(digest)) => format!("sha256 {digest}"),
        Ok(None) => "is not there".to_owned(),
        Err(error) => format!("cannot be read: {error}"),
    }
}

/// The file of the program of a command, and the scripts that it names, also below the folders that it names.
fn files(part: &Part, home: Option<&Path>, path: &[PathBuf]) -> Vec<PathBuf> {
    let here = part.directories();
    let named = NamedFiles { directories: here, home };
    let operands = part.argv().iter().skip(1);
    let folders = operands.flat_map(|word| named.places(word)).filter(|it| it.is_dir());
    let directories: Vec<PathBuf> = here.iter().cloned().chain(folders).collect();
    let mut files: Vec<_> =
        NamedFiles { directories: &directories, home }.scripts(part).into_iter().collect();
    let program = part.written_program();
    if !program.contains('/') {
        let mut places = path.iter().flat_map(|folder| here.iter().map(move |it| it.join(folder)));
        files.extend(places.find_map(|folder| {
            let file = folder.join(program);
            is_executable(&file).then_some(file)
        }));
    } else if let Some(file) = named.places(program).find(|file| file.is_file()) {
        files.push(file);
    }
    files
}

/// How the version of a package is named.
#[derive(Clone, Copy)]
enum VersionNaming {
    /// `name@1.2.3`, where `name@1.2`, `name@^1` and `name@latest` name no version.
    Node,
    /// `name==1.2.3`, `name@1.2.3`.
    Python,
    /// `name:1.2`, `name@sha256:…`, where `name:latest` names no version.
    Image,
}

/// A program that fetches a package, if it is not there yet, and runs it.
struct Runner {
    program: &'static str,
    /// The command of the program that does it.
    command: &'static [&'static str],
    naming: VersionNaming,
    /// Options that name a package in place of the operand.
    instead: &'static [&'static str],
    /// Options that name a further package.
    beside: &'static [&'static str],
    /// Options whose value is the next word; for images, options that have none.
    options: &'static [&'static str],
}

const NODE: Runner = Runner {
    program: "npx",
    command: &[],
    naming: VersionNaming::Node,
    instead: &["-p", "--package"],
    beside: &[],
    options: &[
        "-c",
        "--call",
        "--shell",
        "-n",
        "--node-arg",
        "--node-options",
        "--prefix",
        "--cache",
        "--registry",
        "--userconfig",
        "--globalconfig",
        "--loglevel",
        "-w",
        "--workspace",
        "-C",
        "--dir",
        "--cwd",
    ],
};

const PYTHON: Runner = Runner {
    program: "uvx",
    command: &[],
    naming: VersionNaming::Python,
    instead: &["--from", "--spec"],
    beside: &["--with", "-w", "--preinstall"],
    options: &[
        "--python",
        "-p",
        "--index",
        "--index-url",
        "-i",
        "--default-index",
        "--extra-index-url",
        "--find-links",
        "-f",
        "--with-editable",
        "--with-requirements",
        "--cache-dir",
        "--config-file",
        "--env-file",
        "--directory",
        "--project",
        "--constraints",
        "-c",
        "--build-constraints",
        "-b",
        "--overrides",
        "--link-mode",
        "--resolution",
        "--prerelease",
        "--exclude-newer",
        "--refresh-package",
        "--upgrade-package",
        "-P",
        "--reinstall-package",
        "--no-build-package",
        "--no-binary-package",
        "--index-strategy",
        "--keyring-provider",
        "--color",
        "--python-platform",
        "--torch-backend",
        "--allow-insecure-host",
        "--pip-args",
        "--suffix",
    ],
};

const IMAGE: Runner = Runner {
    program: "docker",
    command: &["run"],
    naming: VersionNaming::Image,
    instead: &[],
    beside: &[],
    options: &[
        "--detach",
        "--init",
        "--interactive",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--privileged",
        "--publish-all",
        "--quiet",
        "--read-only",
        "--rm",
        "--sig-proxy",
        "--tty",
        "--replace",
        "--help",
        "--use-api-socket",
    ],
};

/// The letters of options of containers that have no value.
const IMAGE_LETTERS: &str = "ditPq";

const RUNNERS: &[Runner] = &[
    NODE,
    Runner { program: "bunx", ..NODE },
    Runner { program: "pnpx", ..NODE },
    Runner { program: "pnpm", command: &["dlx"], ..NODE },
    Runner { program: "yarn", command: &["dlx"], ..NODE },
    Runner { program: "npm", command: &["exec"], ..NODE },
    Runner { program: "npm", command: &["x"], ..NODE },
    Runner { program: "bun", command: &["x"], ..NODE },
    PYTHON,
    Runner { program: "uv", command: &["tool", "run"], ..PYTHON },
    Runner { program: "pipx", command: &["run"], ..PYTHON },
    IMAGE,
    Runner { command: &["container", "run"], ..IMAGE },
    Runner { program: "podman", ..IMAGE },
    Runner { program: "podman", command: &["container", "run"], ..IMAGE },
    Runner { program: "nerdctl", ..IMAGE },
];

/// The packages that a command fetches and runs, with their states; `None` for a command that does not.
fn packages(argv: &[String]) -> Option<Vec<(String, String)>> {
    let (program, words) = argv.split_first()?;
    let name = program_name(program);
    let of_name = RUNNERS.iter().filter(|runner| runner.program == name);
    let (runner, words) = of_name.filter_map(|it| Some((it, it.words_of(words)?))).next()?;
    let mut packages: Vec<_> = runner.packages(words);
    if packages.is_empty() {
        packages.push("");
    }
    let state = |package: &str| if runner.naming.is_named(package) { NAMED } else { UNNAMED };
    let of =
        |package: &str| (format!("{name} {package}").trim().to_owned(), state(package).to_owned());
    Some(packages.into_iter().map(of).collect())
}

/// The packages that an interpreter is given in place of a file: `deno run npm:@x/server@1.2.3`.
fn modules(argv: &[String]) -> Vec<(String, String)> {
    let is_module = |word: &&String| word.starts_with("npm:") || word.starts_with("jsr:");
    let named = |word: &String| VersionNaming::Node.is_named(word.get(4..).unwrap_or_default());
    let state = |word: &String| if named(word) { NAMED } else { UNNAMED };
    argv.iter().skip(1).filter(is_module).map(|it| (it.clone(), state(it).to_owned())).collect()
}

impl Runner {
    /// The words behind the command that runs a package; `None` for another command of the program.
    fn words_of<'w>(&self, mut words: &'w [String]) -> Option<&'w [String]> {
        for wanted in self.command {
            loop {
                let (word, rest) = words.split_first()?;
                words = rest;
                match word.starts_with('-') {
                    true if self.has_value(word) => words = words.get(1..)?,
                    true => {}
                    false if word == wanted => break,
                    false => return None,
                }
            }
        }
        Some(words)
    }

    /// Returns `true` if the next word is the value of an option.
    fn has_value(&self, option: &str) -> bool {
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        match (self.naming, letters) {
            _ if option.contains('=') => false,
            (VersionNaming::Image, Some(letters)) => {
                !letters.chars().all(|it| IMAGE_LETTERS.contains(it))
            }
            (VersionNaming::Image, None) => !self.options.contains(&option),
            _ => self.options.contains(&option),
        }
    }

    fn packages<'w>(&self, words: &'w [String]) -> Vec<&'w str> {
        let (mut instead, mut beside) = (Vec::new(), Vec::new());
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                instead.extend(words.next().filter(|_| instead.is_empty()));
                break;
            }
            if !word.starts_with('-') {
                if instead.is_empty() {
                    instead.push(word);
                }
                break;
            }
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word, None),
            };
            if self.instead.contains(&option) {
                instead.extend(value.or_else(|| words.next()));
            } else if self.beside.contains(&option) {
                beside.extend(value.or_else(|| words.next()));
            } else if self.has_value(word) {
                words.next();
            }
        }
        instead.extend(beside);
        instead
    }
}

impl VersionNaming {
    /// Returns `true` if the version of a package is named, so that the same name means the same package later.
    fn is_named(self, package: &str) -> bool {
        if let Some((_, commit)) = package.rsplit_once(['#', '@'])
            && package.contains("git")
            && commit.len() == 40
            && commit.chars().all(|c| c.is_ascii_hexdigit())
        {
            return true;
        }
        if package.contains("://") {
            return false;
        }
        match self {
            Self::Node => package
                .rsplit_once('@')
                .is_some_and(|(name, version)| !name.is_empty() && is_whole_version(version)),
            Self::Python => {
                let version = package.split_once("==").or_else(|| package.split_once('@'));
                let plain = |c: char| c.is_ascii_alphanumeric() || "._+!-".contains(c);
                version.is_some_and(|(name, version)| {
                    let version = version.trim();
                    !name.is_empty()
                        && version.starts_with(|c: char| c.is_ascii_digit())
                        && version.chars().all(plain)
                })
            }
            Self::Image => {
                let name = package.rsplit('/').next().unwrap_or_default();
                let tag = name.split_once(':').map(|(_, tag)| tag);
                package.contains("@sha256:")
                    || tag.is_some_and(|tag| !tag.is_empty() && tag != "latest")
            }
        }
    }
}

/// Returns `true` if a version of Node's packages is one, and no range: it has three numbers.
fn is_whole_version(version: &str) -> bool {
    let version = version.trim_start_matches(['v', '=']);
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    core.split('.').count() == 3 && core.split('.').all(is_number) && !version.contains([' ', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &str) -> Vec<String> {
        let argv: Vec<_> = command.split(' ').map(str::to_owned).collect();
        let packages = packages(&argv).unwrap_or_default();
        let of = |(name, state): (String, String)| {
            format!("{name}{}", if is_unnamed(&state) { " ?" } else { "" })
        };
        packages.into_iter().map(of).collect()
    }

    #[test]
    fn the_packages_of_a_command_are_found_with_their_versions() {
        for (command, packages) in [
            ("npx -y @x/server@1.2.3 --root /x", &["npx @x/server@1.2.3"][..]),
            ("npx -y @x/server", &["npx @x/server ?"]),
            ("npx @x/server@latest", &["npx @x/server@latest ?"]),
            ("npx @x/server@^1.2.3", &["npx @x/server@^1.2.3 ?"]),
            ("npx @x/server@1.2", &["npx @x/server@1.2 ?"]),
            ("npx @x/server@1.2.3-beta.1", &["npx @x/server@1.2.3-beta.1"]),
            ("/usr/bin/npx --registry http://r server", &["npx server ?"]),
            ("npx --package=a@1.0.0 -p b run-a", &["npx a@1.0.0", "npx b ?"]),
            ("npm exec -- server@1.0.0", &["npm server@1.0.0"]),
            ("pnpm --dir /x dlx server@1.0.0", &["pnpm server@1.0.0"]),
            ("bunx server", &["bunx server ?"]),
            ("bun x server@1.0.0", &["bun server@1.0.0"]),
            ("npx", &["npx ?"]),
            ("uvx mcp-server-git", &["uvx mcp-server-git ?"]),
            ("uvx mcp-server-git==1.2.3", &["uvx mcp-server-git==1.2.3"]),
            ("uvx mcp-server-git@1.2", &["uvx mcp-server-git@1.2"]),
            ("uvx mcp-server-git@latest", &["uvx mcp-server-git@latest ?"]),
            ("uvx mcp-server-git==1.*", &["uvx mcp-server-git==1.* ?"]),
            ("uvx --python 3.12 --from x==1.0 --with y serve", &["uvx x==1.0", "uvx y ?"]),
            (
                "uvx --from git+https://host/x@0123456789abcdef0123456789abcdef01234567 serve",
                &["uvx git+https://host/x@0123456789abcdef0123456789abcdef01234567"],
            ),
            ("uvx --from git+https://host/x@main serve", &["uvx git+https://host/x@main ?"]),
            ("uv tool run x==1.0", &["uv x==1.0"]),
            ("pipx run --spec x==1.0 serve", &["pipx x==1.0"]),
            ("docker run -i --rm -e KEY x/server", &["docker x/server ?"]),
            (
                "docker run -it --name=y -v /a:/b host:5000/x/server:1.2",
                &["docker host:5000/x/server:1.2"],
            ),
            ("docker run --rm x/server:latest", &["docker x/server:latest ?"]),
            ("docker run --rm x/server@sha256:00 serve", &["docker x/server@sha256:00"]),
            ("podman --log-level debug run host:5000/x", &["podman host:5000/x ?"]),
        ] {
            assert_eq!(told(command), packages, "{command}");
        }
        for command in ["uv run server.py", "npm start", "docker ps", "node server.js", ""] {
            let argv: Vec<_> = command.split(' ').map(str::to_owned).collect();
            assert!(packages(&argv).is_none(), "{command}");
        }
    }
}
