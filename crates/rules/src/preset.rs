//! The presets that come with this crate.
//!
//! A preset is a text in the format of files, with tests, and the same reader reads it. So you can look at what it
//! allows (`preset_text`), copy it and edit it, and there is no rule that only this crate could write.

use countersign_shell::Preset;

/// The root and the home directory that tests in files are run with.
pub(super) const TEST_ROOT: &str = "/users/user/project";
pub(super) const TEST_HOME: &str = "/users/user";

/// The presets, by the names that files and options call them.
pub(super) const NAMED: [(&str, Preset); 2] =
    [("developer", Preset::Developer), ("reader", Preset::Reader)];

/// The preset of this name.
pub(super) fn named(name: &str) -> Option<Preset> {
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, preset)| *preset)
}

/// The name of a preset in files.
pub(super) fn name_of(preset: Preset) -> &'static str {
    NAMED.iter().find(|(_, known)| *known == preset).map_or("", |(name, _)| name)
}

/// The name and the text of a preset.
///
/// ```
/// use countersign_rules::{Rules, preset_text};
/// use countersign_shell::Preset;
///
/// let (name, text) = preset_text(Preset::Reader);
/// assert!(Rules::builder().lexical().text(name, text).load().is_ok());
/// ```
#[must_use]
pub fn preset_text(preset: Preset) -> (&'static str, &'static str) {
    match preset {
        Preset::Developer => ("preset developer", include_str!("presets/developer.toml")),
        Preset::Reader => ("preset reader", include_str!("presets/reader.toml")),
    }
}

/// The name and the text of the rules by which edits in the workspace run unasked, where a person has chosen that: in a
/// file (`edits = "workspace"`), or with [`RulesBuilder::edits_in_workspace`](crate::RulesBuilder::edits_in_workspace).
///
/// ```
/// use countersign_rules::{Rules, edits_text};
///
/// let (name, text) = edits_text();
/// assert!(Rules::builder().lexical().text(name, text).load().is_ok());
/// ```
#[must_use]
pub fn edits_text() -> (&'static str, &'static str) {
    ("edits in the workspace", include_str!("presets/edits.toml"))
}

#[cfg(test)]
mod tests {
    use super::{NAMED, edits_text, preset_text};
    use crate::Rules;

    /// Who loads a preset does not run its tests again, as the text is the same in each process.
    #[test]
    fn each_text_of_this_crate_passes_the_tests_that_stand_in_it() {
        for (name, text) in
            NAMED.iter().map(|(_, preset)| preset_text(*preset)).chain([edits_text()])
        {
            let loaded = Rules::builder().lexical().text(name, text).load();
            assert!(loaded.is_ok(), "{name}: {loaded:?}");
            assert!(text.contains("[test]"), "{name} has tests");
        }
    }
}
