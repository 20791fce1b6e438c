//! Plugins and extensions that the files of a client name: each may bring hooks.
//!
//! We leave out one whose folder is known and has no hooks.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files::settings_text;
use super::front_matter;

/// A file that names a plugin or an extension, and which one it is.
pub(super) type NamedPlugin = (PathBuf, String);

/// The files of settings in these folders.
pub(super) fn settings(folders: &[PathBuf]) -> Vec<PathBuf> {
    let names = ["settings.json", "settings.local.json"];
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect()
}

/// A JSON file; null where it cannot be read.
pub(super) fn json(file: &Path) -> Value {
    let text = settings_text(file).ok().flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// A TOML file; null where it cannot be read.
pub(super) fn toml(file: &Path) -> Value {
    let text = settings_text(file).ok().flatten();
    let table = text.and_then(|text| text.parse::<toml::Table>().ok());
    table.and_then(|table| serde_json::to_value(table).ok()).unwrap_or_default()
}

/// The plugins that a file switches on, but for those that are known to have no hooks.
pub(super) fn enabled(
    file: &Path,
    key: &str,
    settings: &Value,
    installed: &Value,
    found: &mut Vec<NamedPlugin>,
) {
    let named = settings.get(key).and_then(Value::as_object).into_iter().flatten();
    for (name, value) in named {
        let is_off = |value: Option<&Value>| value == Some(&Value::Bool(false));
        let places = installed.get("plugins").and_then(|it| it.get(name));
        let has_none = places
            .is_some_and(|it| folders(it).is_some_and(|it| !it.iter().any(|it| has_hooks(it))));
        if !is_off(Some(value)) && !is_off(value.get("enabled")) && !has_none {
            found.push((file.to_owned(), format!("the plugin {name}")));
        }
    }
}

/// The folders in which a plugin is installed; `None` unless all are known and there.
fn folders(places: &Value) -> Option<Vec<PathBuf>> {
    let alone = std::slice::from_ref(places);
    let places = places.as_array().map_or(alone, Vec::as_slice);
    let folders = places.iter().map(|it| it.get("installPath")?.as_str().map(PathBuf::from));
    let folders: Option<Vec<_>> = folders.collect();
    folders.filter(|all| !all.is_empty() && all.iter().all(|it| it.is_dir()))
}

fn has_hooks(plugin: &Path) -> bool {
    let manifest = settings_text(&plugin.join(".claude-plugin/plugin.json")).ok().flatten();
    let brings = ["skills", "agents", "commands"].map(|name| plugin.join(name));
    plugin.join("hooks").exists()
        || manifest.is_some_and(|text| text.contains("hooks") || text.contains("\\u"))
        || !front_matter::with_hooks(brings).is_empty()
}

/// The extensions of Gemini CLI that have hooks.
pub(super) fn extensions(folder: &Path) -> Vec<NamedPlugin> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|it| it.path().join("hooks/hooks.json")).filter(|it| it.exists());
    let mut found: Vec<_> =
        files.map(|file| (file, "the hooks of an extension".to_owned())).collect();
    found.sort();
    found
}
