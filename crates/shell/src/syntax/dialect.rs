//! The shells that a command may be written for.
//!
//! The dialect says which shell will run the text, and restricts the syntax to what all shells of that name read alike.
//! For example, a `sh` may be `dash`, BusyBox or Bash, so we refuse `<<<` for it. The three POSIX dialects differ here
//! in very little, on purpose: a tool seldom knows which shell its operating system starts.

/// The shell that a text is written for.
///
/// For the three POSIX shells, we accept only syntax that they interpret in the same way. We refuse text for any other
/// shell, and a person is asked.
///
/// Give the dialect of the shell that *runs* the text. With another one, we could read a quote where that shell reads
/// none.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// POSIX `sh`, as `dash` and BusyBox implement it.
    Sh,
    /// GNU Bash, of any version.
    Bash,
    /// Z shell, with its default options.
    Zsh,
    /// PowerShell and Windows PowerShell. Always refused.
    PowerShell,
    /// `cmd.exe`, whose commands are always refused.
    Cmd,
}

impl Dialect {
    /// The dialect of a shell program, by its file name or path, such as `bash` or `/bin/sh`.
    ///
    /// ```
    /// use countersign_shell::Dialect;
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

    /// Returns `true` if the shell has process substitution, `<<<` and `&>`.
    pub(super) fn has_extensions(self) -> bool {
        matches!(self, Self::Bash | Self::Zsh)
    }
}
