//! The presets that come with this crate.
//!
//! A preset is a text in the format of files, with tests, and is read by the same reader. So what it allows can be
//! looked at (`preset_text`), copied and edited, and there is no rule that only this crate could write.

use crate::shell::Preset;

/// The root and the home directory that tests in files are run with.
pub(super) const TEST_ROOT: &str = "/users/user/project";
pub(super) const TEST_HOME: &str = "/users/user";

/// The name and the text of a preset.
///
/// ```
/// use countersign::rules::{Rules, preset_text};
/// use countersign::shell::Preset;
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
