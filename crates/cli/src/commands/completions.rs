//! `countersign completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::CommandOutput;

/// For bash: `countersign completions bash > ~/.local/share/bash-completion/completions/countersign`.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell that completes
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut program: Command) -> CommandOutput {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut program, "countersign", &mut text);
        CommandOutput::text(0, String::from_utf8_lossy(&text).trim_end())
    }
}
