//! A patch of a coding agent, applied to the texts of its files.
//!
//! The reader is strict, as people see its result as the difference. The old lines of each part have to stand in the file
//! exactly once after the part before. Programs that apply patches are less strict: they try other white space, or take
//! the first of several places. We do not guess what they would do.

use std::path::Path;

use countersign::decision::Preview;

use super::file_text::{FileText, read};

/// The most files of one patch that are shown as differences.
const FILES: usize = 50;

/// One file of a patch.
enum FilePatch<'a> {
    Add { path: &'a str, lines: Vec<&'a str> },
    Delete { path: &'a str },
    Update { path: &'a str, to: Option<&'a str>, parts: Vec<PatchPart<'a>> },
}

/// A part of an update: old lines that become new ones, behind a line that names its place if there is one.
#[derive(Default)]
struct PatchPart<'a> {
    place: Option<&'a str>,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
}

/// The difference that a patch makes to each of its files, or why that is not certain.
pub(super) fn differences(text: &str, directory: &Path) -> Result<Vec<Preview>, String> {
    let files = files(text)?;
    if files.len() > FILES {
        return Err(format!("it is of more than {FILES} files"));
    }
    files.iter().map(|file| difference(file, directory)).collect()
}

fn files(text: &str) -> Result<Vec<FilePatch<'_>>, String> {
    let mut lines = text.trim_end().lines();
    if lines.next().map(str::trim) != Some("*** Begin Patch") {
        return Err("it is of another form".to_owned());
    }
    let mut found: Vec<FilePatch<'_>> = Vec::new();
    let mut is_over = false;
    for line in lines {
        if is_over {
            return Err("it does not end at its end".to_owned());
        }
        if line.trim() == "*** End Patch" {
            is_over = true;
        } else if let Some(path) = line.strip_prefix("*** Add File: ") {
            found.push(FilePatch::Add { path: path.trim(), lines: Vec::new() });
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            found.push(FilePatch::Delete { path: path.trim() });
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            found.push(FilePatch::Update { path: path.trim(), to: None, parts: Vec::new() });
        } else {
            found.last_mut().ok_or("it begins with no file")?.line(line)?;
        }
    }
    match is_over && !found.is_empty() {
        true => Ok(found),
        false => Err("it has no end".to_owned()),
    }
}

impl<'a> FilePatch<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), String> {
        let unclear = || format!("a line of it is not clear: {}", line.escape_debug());
        match self {
            Self::Add { lines, .. } => lines.push(line.strip_prefix('+').ok_or_else(unclear)?),
            Self::Delete { .. } => return Err(unclear()),
            Self::Update { to, parts, .. } => {
                if let Some(path) = line.strip_prefix("*** Move to: ") {
                    *to = Some(path.trim());
                } else if let Some(place) = line.strip_prefix("@@") {
                    let place = Some(place.trim()).filter(|place| !place.is_empty());
                    parts.push(PatchPart { place, ..PatchPart::default() });
                } else if line != "*** End of File" {
                    if parts.is_empty() {
                        parts.push(PatchPart::default());
                    }
                    let part = parts.last_mut().ok_or_else(unclear)?;
                    match line.split_at_checked(1) {
                        Some((" ", rest)) => {
                            part.old.push(rest);
                            part.new.push(rest);
                        }
                        Some(("-", rest)) => part.old.push(rest),
                        Some(("+", rest)) => part.new.push(rest),
                        None => {
                            part.old.push("");
                            part.new.push("");
                        }
                        _ => return Err(unclear()),
                    }
                }
            }
        }
        Ok(())
    }
}

fn difference(file: &FilePatch<'_>, directory: &Path) -> Result<Preview, String> {
    let at = |path: &str| directory.join(path);
    let shown = |path: &str| at(path).to_string_lossy().into_owned();
    let text = |path: &str| match read(&at(path)) {
        FileText::Text(text) => Ok(text),
        FileText::Missing => Err(format!("there is no file {}", path.escape_debug())),
        FileText::Other(why, _) => Err(format!("of {}: {why}", path.escape_debug())),
    };
    match file {
        FilePatch::Add { path, lines } => {
            let new: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
            match read(&at(path)) {
                FileText::Missing => Ok(Preview::diff(shown(path), None, new.as_str())),
                FileText::Text(old) => Ok(Preview::diff(shown(path), old.as_str(), new.as_str())),
                FileText::Other(why, _) => Err(format!("of {}: {why}", path.escape_debug())),
            }
        }
        FilePatch::Delete { path } => {
            let old = text(path)?;
            Ok(Preview::diff(shown(path), old.as_str(), None))
        }
        FilePatch::Update { path, to, parts } => {
            let old = text(path)?;
            let new = updated(&old, parts)?;
            let title = match to {
                Some(to) => format!("{} → {}", shown(path), shown(to)),
                None => shown(path),
            };
            Ok(Preview::diff(title, old.as_str(), new.as_str()))
        }
    }
}

/// The text with the parts applied, each behind the one before.
fn updated(text: &str, parts: &[PatchPart<'_>]) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut new: Vec<&str> = Vec::new();
    let mut done = 0;
    for part in parts {
        let mut from = done;
        if let Some(place) = part.place {
            let rest = lines.iter().skip(done);
            let found = rest.clone().position(|line| line.trim() == place);
            from += found.ok_or_else(|| "a place in it is not found".to_owned())?;
        }
        if part.old.is_empty() {
            return Err("it adds lines without a place".to_owned());
        }
        let windows = lines.get(from..).unwrap_or_default().windows(part.old.len());
        let mut found = windows.enumerate().filter(|(_, there)| *there == part.old.as_slice());
        let (at, _) = found.next().ok_or_else(|| "its old lines do not stand there".to_owned())?;
        if found.next().is_some() {
            return Err("its old lines stand there more than once".to_owned());
        }
        new.extend(lines.get(done..from + at).unwrap_or_default());
        new.extend(&part.new);
        done = from + at + part.old.len();
    }
    new.extend(lines.get(done..).unwrap_or_default());
    let mut out = new.join("\n");
    if text.ends_with('\n') || text.is_empty() {
        out.push('\n');
    }
    Ok(out)
}
