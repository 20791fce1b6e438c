//! Files with settings that a client, or a terminal around it, takes from a project: where they have variables, and which
//! settings switch hooks off.

/// The path of a file below a directory, and its form. A `*` stands for any part of a name.
pub(crate) type SettingsFile = (&'static str, SettingsForm);

/// How a file is written, and what is looked for.
#[derive(Clone, Copy)]
pub(crate) enum SettingsForm {
    /// Assignments of variables.
    Lines,
    /// Assignments, and commands that may set any variable.
    Script,
    Json(&'static FileSettings),
    Toml(&'static FileSettings),
}

/// Where a file has variables, and which settings of it switch hooks off.
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
}
