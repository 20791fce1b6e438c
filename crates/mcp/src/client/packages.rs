//! The packages that the command of a server fetches and runs, and whether it names their versions (rule M4).

use countersign_shell::program_files::program_name;

/// The state of a package whose version the command names.
const NAMED: &str = "its version is named";
/// The state of a package whose version the command does not name.
const UNNAMED: &str = "no version is named: what runs can change without a question";

/// The state of a folder that a container is given.
const MOUNTED: &str = "what is in this folder is not looked at, and can change without a question";

/// Returns `true` if the state is one of a package whose version is not named.
pub(crate) fn is_unnamed(state: &str) -> bool {
    state == UNNAMED
}

/// The form in which the version of a package is named.
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
    further: &'static [&'static str],
    /// Options whose value is the next word; for images, options that have none.
    options: &'static [&'static str],
}

const NODE: Runner = Runner {
    program: "npx",
    command: &[],
    naming: VersionNaming::Node,
    instead: &["-p", "--package"],
    further: &[],
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
    further: &["--with", "-w", "--preinstall"],
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
    further: &[],
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
pub(super) fn packages(argv: &[String]) -> Option<Vec<(String, String)>> {
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
    let mut named: Vec<_> = packages.into_iter().map(of).collect();
    if matches!(runner.naming, VersionNaming::Image) {
        named.extend(
            mounted(words).map(|folder| (format!("{name} -v {folder}"), MOUNTED.to_owned())),
        );
    }
    Some(named)
}

/// The folders that a container is given.
fn mounted(words: &[String]) -> impl Iterator<Item = &str> {
    let pairs = words.windows(2).filter_map(|pair| match pair {
        [option, value] if matches!(option.as_str(), "-v" | "--volume" | "--mount") => Some(value),
        _ => None,
    });
    let joined = words.iter().filter_map(|word| {
        ["--volume=", "--mount=", "-v="].iter().find_map(|front| word.strip_prefix(front))
    });
    pairs.map(String::as_str).chain(joined)
}

/// The packages that an interpreter is given in place of a file: `deno run npm:@x/server@1.2.3`.
pub(super) fn modules(argv: &[String]) -> Vec<(String, String)> {
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
        let (mut instead, mut further) = (Vec::new(), Vec::new());
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
            } else if self.further.contains(&option) {
                further.extend(value.or_else(|| words.next()));
            } else if self.has_value(word) {
                words.next();
            }
        }
        instead.extend(further);
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
                &["docker host:5000/x/server:1.2", "docker -v /a:/b"],
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
