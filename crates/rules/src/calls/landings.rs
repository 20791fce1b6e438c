//! The files that a command writes when it copies or moves others into a folder.
//!
//! `cp src/config links` writes `links/config`, which no word of the command names. If `links/config` is a link, the
//! command writes the file that it leads to.

use countersign_shell::Part;

/// Programs that put their operands into the last one, if that is a folder.
const PUTS: &[&str] =
    &["cp", "gcp", "mv", "gmv", "install", "ginstall", "ln", "gln", "rsync", "scp", "ditto"];

/// The paths that a command may write in the folder that its last operand names, and in one that an option names: one for
/// each operand. Empty where neither is a folder.
///
/// To `cp`, `-t` names a folder, and to `rsync` it does not: the last operand counts beside it.
pub(crate) fn landings(part: &Part) -> Vec<String> {
    if !PUTS.contains(&part.program_name()) {
        return Vec::new();
    }
    let words: Vec<&str> = part.argv().iter().skip(1).map(String::as_str).collect();
    let operands: Vec<&str> = words.iter().copied().filter(|it| !it.starts_with('-')).collect();
    let folders = words.iter().enumerate().filter_map(|(at, word)| {
        let (name, value) = match word.strip_prefix("--") {
            Some(long) => long.split_once('=').unwrap_or((long, "")),
            None => word.strip_prefix('-')?.split_once('t').map(|(_, value)| ("t", value))?,
        };
        let next = words.get(at + 1).copied();
        name.starts_with('t').then(|| Some(value).filter(|it| !it.is_empty()).or(next)).flatten()
    });
    let folders = folders.chain(operands.last().copied());
    let is_folder = |folder: &&str| part.directories().iter().any(|it| it.join(folder).is_dir());
    let name = |operand: &&str| {
        let name = operand.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        (!matches!(name, "" | "." | "..")).then(|| name.to_owned())
    };
    let names: Vec<String> = operands.iter().filter_map(name).collect();
    let folders = folders.filter(is_folder);
    folders.flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}"))).collect()
}
