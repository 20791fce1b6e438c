//! Where a command puts the files that it copies or moves into a folder.
//!
//! `cp src/config links` writes `links/config`, which no word names. A link of that name leads elsewhere.

use countersign_shell::Part;

/// Programs that put their operands into the last one, if that is a folder.
const PUTS: &[&str] =
    &["cp", "gcp", "mv", "gmv", "install", "ginstall", "ln", "gln", "rsync", "scp", "ditto"];

/// The paths that a command may write in the folder that its last operand, or an option, names: one for each other operand.
/// Empty where no folder is named.
pub(crate) fn landings(part: &Part) -> Vec<String> {
    if !PUTS.contains(&part.program_name()) {
        return Vec::new();
    }
    let words = part.argv().iter().skip(1).map(String::as_str);
    let mut operands: Vec<&str> = words.filter(|it| !it.starts_with('-') || *it == "-").collect();
    let mut folders = Vec::new();
    let mut before = "";
    for word in part.argv().iter().map(String::as_str) {
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        match word.strip_prefix("--t").and_then(|rest| rest.split_once('=')) {
            Some((_, folder)) => folders.push(folder),
            None => folders.extend(letters.and_then(|it| it.split_once('t')).map(|(_, it)| it)),
        }
        let is_bundle =
            before.starts_with('-') && !before.starts_with("--") && before.ends_with('t');
        if is_bundle || before.starts_with("--t") && !before.contains('=') {
            folders.push(word);
        }
        before = word;
    }
    folders.retain(|folder| !folder.is_empty());
    if folders.is_empty() {
        folders.extend(operands.pop());
    }
    let is_folder = |folder: &str| part.directories().iter().any(|it| it.join(folder).is_dir());
    let name = |operand: &&str| {
        let name = operand.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        (!matches!(name, "" | "." | "..")).then(|| name.to_owned())
    };
    let names: Vec<String> = operands.iter().filter_map(name).collect();
    let folders = folders.into_iter().filter(|folder| is_folder(folder));
    folders.flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}"))).collect()
}
