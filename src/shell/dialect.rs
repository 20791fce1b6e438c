//! Which shell a command is written for.

/// The shell that a text is written for.
///
/// The three POSIX shells are read with the grammar that they agree on. Text for any other shell is refused, so that a
/// person is asked.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// POSIX `sh`, as `dash` and BusyBox implement it.
    Sh,
    /// GNU Bash, of any version.
    Bash,
    /// Z shell, with its default options.
    Zsh,
    /// PowerShell, Windows PowerShell. Always refused.
    PowerShell,
    /// `cmd.exe`, whose commands are always refused.
    Cmd,
}

impl Dialect {
    /// The dialect of a program by its file name, as in `bash` or `/bin/sh`.
    ///
    /// ```
    /// use countersign::shell::Dialect;
    ///
    /// assert_eq!(Dialect::of_program("/bin/bash"), Some(Dialect::Bash));
    /// assert_eq!(Dialect::of_program("fish"), None);
    /// ```
    #[must_use]
    pub fn of_program(program: &str) -> Option<Self> {
        match program.rsplit('/').next().unwrap_or(program) {
            "sh" | "dash" | "ash" => Some(Self::Sh),
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "pwsh" | "powershell" | "powershell.exe" | "pwsh.exe" => Some(Self::PowerShell),
            "cmd" | "cmd.exe" => Some(Self::Cmd),
            _ => None,
        }
    }

    pub(super) fn is_posix(self) -> bool {
        matches!(self, Self::Sh | Self::Bash | Self::Zsh)
    }

    /// Process substitution, `<<<` and `&>` exist only there.
    pub(super) fn has_extensions(self) -> bool {
        matches!(self, Self::Bash | Self::Zsh)
    }
}
