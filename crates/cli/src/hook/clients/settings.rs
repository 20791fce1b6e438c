//! Files with settings that a client, or a terminal around it, takes from a project: where they have variables, and which
//! settings switch hooks off.

/// The path of a file below a directory, and its form. A `*` stands for any part of a name.
pub(crate) type SettingsFile = (&'static str, SettingsForm);

/// The form of a file, and what we look for in it.
#[derive(Clone, Copy)]
pub(crate) enum SettingsForm {
    /// Assignments of variables.
    Lines,
    /// Assignments, and commands that may set any variable.
    Script,
    /// Settings of a client, whose variables are for the client.
    Json(&'static FileSettings),
    /// The same, in TOML.
    Toml(&'static FileSettings),
    /// Settings of the editor or the container around a client, in JSON: variables for every program in its terminals.
    Editor(&'static FileSettings),
    /// Variables of applications, in TOML: names that no program and no client knows change nothing.
    Applications(&'static FileSettings),
}

impl SettingsForm {
    /// The places of variables and switches in the file; `None` for files of lines.
    pub(crate) fn settings(self) -> Option<&'static FileSettings> {
        match self {
            Self::Json(wanted)
            | Self::Toml(wanted)
            | Self::Editor(wanted)
            | Self::Applications(wanted) => Some(wanted),
            Self::Lines | Self::Script => None,
        }
    }

    /// Returns `true` if the variables are for a client, so that each which is not known may change how it runs commands.
    pub(crate) fn is_of_client(self) -> bool {
        matches!(self, Self::Json(_) | Self::Toml(_))
    }

    /// Returns `true` if the variables are for the terminals of an editor or of a container.
    pub(crate) fn is_of_editor(self) -> bool {
        matches!(self, Self::Editor(_))
    }
}

/// The place of variables in a file, and the settings that switch hooks off.
pub(crate) struct FileSettings {
    /// Keys, from the outside to the inside, of tables of variables.
    pub(crate) variables: &'static [&'static [&'static str]],
    /// Keys of a setting, and its value.
    pub(crate) switches: &'static [(&'static [&'static str], SettingSwitch)],
}

/// The value of a setting that is a problem.
#[derive(Clone, Copy)]
pub(crate) enum SettingSwitch {
    Is(bool),
    /// The list names this hook.
    Has(&'static str),
    /// Any value but none and `false`: it chooses a shell.
    Any,
    /// The same: it runs or names files of the project in the shell around the client.
    Loads,
    /// Any value but none, `false` and what is empty: the client runs it by itself, without a call.
    Runs,
}
