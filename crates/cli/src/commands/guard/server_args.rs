//! The options that say which server a guard is in front of.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use countersign_mcp::Launch;

use crate::Context;
use crate::account_settings::AccountSettings;
use crate::output::CommandError;
use crate::seconds::limit;

/// The time that a server may take to start where nothing is said, as `--start-timeout` has it.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args)]
#[command(group = ArgGroup::new("server").required(true).args(["command", "upstream"]))]
pub(super) struct ServerArgs {
    /// The name of the server, as people are shown it; by default that of the program or the host
    #[arg(long)]
    pub(super) name: Option<String>,
    #[command(flatten)]
    pub(super) settings: AccountSettings,
    /// The URL of the server (streamable HTTP)
    #[arg(long, value_name = "URL")]
    pub(super) upstream: Option<String>,
    /// A private file with headers for the server, one in each line: `Authorization: Bearer …`
    #[arg(long, value_name = "FILE", requires = "upstream", conflicts_with = "command")]
    pub(super) upstream_header_file: Option<PathBuf>,
    /// How many seconds the server may take to start, and to list its tools
    #[arg(long, value_name = "SECONDS", value_parser = limit, default_value = "30")]
    pub(super) start_timeout: Duration,
    /// The command of the server (stdio), after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

impl ServerArgs {
    pub(super) fn launch(&self, context: &Context) -> Result<Launch, CommandError> {
        let launch = match (&self.upstream, self.command.split_first()) {
            (Some(url), None) => {
                let file = self.upstream_header_file.as_deref();
                let headers = file.map(|file| context.config.headers(file)).transpose()?;
                let headers = headers.into_iter().flatten();
                headers.fold(Launch::url(url), |launch, (name, value)| launch.header(name, value))
            }
            (None, Some((program, args))) => Launch::command(program).args(args),
            _ => {
                let problem = "give either a command after `--`, or `--upstream URL`";
                return Err(CommandError::Usage(problem.to_owned()));
            }
        };
        Ok(launch.start_timeout(self.start_timeout))
    }

    pub(super) fn named(&self) -> String {
        let program = || {
            let path = self.command.first().map(PathBuf::from)?;
            path.file_stem().map(|name| name.to_string_lossy().into_owned())
        };
        let host =
            || self.upstream.as_ref().and_then(|url| url.split('/').nth(2)).map(str::to_owned);
        self.name.clone().or_else(program).or_else(host).unwrap_or_else(|| "server".to_owned())
    }
}
