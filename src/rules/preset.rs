//! The presets that come with this crate.

use crate::shell::Preset;

/// The root and the home directory that tests in files are run with.
pub(super) const TEST_ROOT: &str = "/users/user/project";
pub(super) const TEST_HOME: &str = "/users/user";

/// The name and the text of a preset.
#[must_use]
pub fn preset_text(preset: Preset) -> (&'static str, &'static str) {
    match preset {
        Preset::Developer => ("preset developer", include_str!("presets/developer.toml")),
        Preset::Reader => ("preset reader", include_str!("presets/reader.toml")),
    }
}
