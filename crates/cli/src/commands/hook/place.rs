//! The file of a client that the hook is in: that of the user, of a project, of the machine, or another one.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use countersign_cli::hook::{Client, HookFiles, Installation};

use crate::Context;
use crate::output::CommandError;

/// A client, and one of its configurations.
#[derive(Args)]
pub(crate) struct Configuration {
    /// The client
    #[arg(value_parser = clients())]
    pub(super) client: Client,
    #[command(flatten)]
    pub(super) at: HookPlace,
}

/// A file of a client that may have the hook.
#[derive(Args, Clone)]
pub(crate) struct HookPlace {
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

/// Reads the name of a client; help and completions list them.
pub(crate) fn clients() -> impl TypedValueParser<Value = Client> {
    PossibleValuesParser::new(Client::ALL.map(Client::name)).try_map(|name| name.parse())
}

impl Configuration {
    /// The configuration of this user.
    pub(crate) fn of_user(client: Client) -> Self {
        let at = HookPlace { user: true, project: false, file: None, managed: false, below: None };
        Self { client, at }
    }

    pub(super) fn installation(&self, context: &Context) -> Result<Installation, CommandError> {
        if let Some(file) = &self.at.file {
            // It is found again from another directory.
            let file = std::path::absolute(file);
            let file = file.map_err(|error| CommandError::Store(error.to_string()))?;
            return Ok(Installation::at(self.client, file));
        }
        if self.at.managed {
            let root = self.below(Path::new("/"));
            return Installation::of_machine(self.client, &root).ok_or_else(|| {
                let problem =
                    format!("{} has no file for administrators that loads hooks", self.client);
                CommandError::Usage(problem)
            });
        }
        if self.at.project {
            let here = std::env::current_dir();
            let here = here.map_err(|error| CommandError::Store(error.to_string()))?;
            return Ok(Installation::of_project(self.client, &here));
        }
        Ok(Installation::of_environment(self.client, context.directories.home()))
    }

    /// The other files in which this client may have the hook: that of the user, of the project here, and those that were
    /// named when it was installed.
    pub(super) fn others(
        &self,
        installation: &Installation,
        state: &Path,
        context: &Context,
    ) -> Result<Vec<Installation>, CommandError> {
        let here =
            std::env::current_dir().map_err(|error| CommandError::Store(error.to_string()))?;
        let user = Installation::of_environment(self.client, context.directories.home());
        let named = HookFiles::of(self.client, state).read().into_iter();
        let named = named.map(|file| Installation::at(self.client, file));
        let mut others: Vec<_> =
            [user, Installation::of_project(self.client, &here)].into_iter().chain(named).collect();
        others.retain(|it| it.path() != installation.path());
        Ok(others)
    }

    /// A path of the machine, or of the image.
    pub(super) fn below(&self, path: &Path) -> PathBuf {
        match &self.at.below {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }
}
