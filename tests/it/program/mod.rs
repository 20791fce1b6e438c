//! The program `countersign`, as a process: its configuration, its files, and what it refuses.

mod configuring;
mod doctor;
mod earlier;
mod hooks;
mod inbox;
mod initializing;
pub(crate) mod installing;
mod reference;
#[cfg(unix)]
mod rekeying;
#[cfg(unix)]
mod reviewing;
mod rules;
mod sessions;
mod texts;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::clients::clients;
use crate::support::program;

/// Rules that allow commands, ask about a `*.asked` file among their words, and deny about a `*.denied` one.
pub(crate) const RULES: &str = r#"
version = 1

[[rule]]
id = "open"
allow = "shell"

[[rule]]
id = "asked"
ask = "shell"
where.any_path = ["**/*.asked"]
reason = "asks first"

[[rule]]
id = "denied"
deny = "*"
where.any_path = ["**/*.denied"]
reason = "not in this project"
"#;

/// Gives a process nothing of the environment of the tests but the search path, and what measures coverage.
pub(crate) fn in_environment_of(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home);
    for name in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE", "SYSTEMROOT"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// A user with a home directory of their own.
pub(crate) struct User {
    home: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { home: TempDir::new().unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A file in the state directory.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.home().join(".local/state/countersign").join(name)
    }

    /// Writes the configuration file.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let folder = self.home().join(".config/countersign");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
        folder.join("config.toml")
    }

    /// Writes the user's rules.
    pub(crate) fn own_rules(&self, text: &str) {
        let folder = self.home().join(".config/countersign");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("rules.toml"), text).unwrap();
    }

    /// The program, run by this user, in an environment that has nothing but where programs are.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program("countersign"));
        // A hook and a guard take the home of the account, whatever `HOME` is.
        let is_hook = args.first() == Some(&"hook") && clients().any(|it| args.get(1) == Some(&it));
        let is_guard = args.first() == Some(&"guard") && args.get(1) != Some(&"init");
        let front = match args.get(1) {
            Some(&"doctor") => 2,
            _ => usize::from(is_guard),
        };
        command.args(&args[..front]);
        if is_guard && !args.contains(&"--home") {
            command.arg("--home").arg(self.home());
        }
        command.args(&args[front..]).current_dir(self.home());
        in_environment_of(&mut command, self.home());
        if is_hook {
            command.arg("--home").arg(self.home());
        }
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        ended(&self.command(args).output().unwrap())
    }
}

/// The end of a process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The lines of its output, as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn ended(output: &Output) -> Ended {
    Ended {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout.clone()).unwrap(),
        err: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}
