//! Which file of a client the hook is in: that of the user, of a project, of the machine, or another one.

use std::path::{Path, PathBuf};

use clap::Args;
use countersign::hook::{Client, Installation};

use crate::Context;
use crate::output::CommandError;

/// Which configuration of which client.
#[derive(Args)]
pub(crate) struct Configuration {
    /// The client: claude, codex, gemini, copilot or opencode
    pub(super) client: Client,
    /// For all sessions of this user (the default)
    #[arg(long, conflicts_with = "project")]
    pub(super) user: bool,
    /// For the sessions in the current directory
    #[arg(long)]
    pub(super) project: bool,
    /// In this file, for clients that are told to look elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "project"])]
    pub(super) file: Option<PathBuf>,
    /// For all users of this machine, in the client's file for administrators, with the rules in
    /// /etc/countersign/rules.toml. No project can switch it off
    #[arg(long, conflicts_with_all = ["user", "project", "file"])]
    pub(super) managed: bool,
    /// The directory in place of `/` for `--managed`, such as that of an image
    #[arg(long, value_name = "DIRECTORY", requires = "managed")]
    pub(super) below: Option<PathBuf>,
}

impl Configuration {
    pub(super) fn installation(&self, context: &Context) -> Result<Installation, CommandError> {
        if let Some(file) = &self.file {
            return Ok(Installation::at(self.client, file));
        }
        if self.managed {
            let root = self.below(Path::new("/"));
            return Installation::of_machine(self.client, &root).ok_or_else(|| {
                let problem =
                    format!("{} has no file for administrators that loads hooks", self.client);
                CommandError::Usage(problem)
            });
        }
        if self.project {
            let here = std::env::current_dir();
            let here = here.map_err(|error| CommandError::Store(error.to_string()))?;
            return Ok(Installation::of_project(self.client, &here));
        }
        Ok(Installation::of_environment(self.client, context.directories.home()))
    }

    /// A path of the machine, or of the image.
    pub(super) fn below(&self, path: &Path) -> PathBuf {
        match &self.below {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }
}
