//! The classes of tools that change one file, or several files of one folder: the file, and its folder without those below.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::matching::examined_call::ExaminedCall;
use countersign::decision::GrantPattern;

/// The parts of the names of tools that change one file.
const CHANGES: &[&str] =
    &["write", "edit", "create", "append", "replace", "insert", "patch", "update"];

/// Those of tools that do more, or something else.
const OTHERS: &[&str] = &[
    "delete", "remove", "move", "rename", "copy", "run", "exec", "send", "publish", "deploy",
    "fetch", "download", "upload", "push", "install", "merge", "user", "issue", "branch", "repo",
    "request",
];

/// The fields that name the file, and those with its content.
const FILE: &[&str] = &[
    "path",
    "file_path",
    "filepath",
    "filePath",
    "file",
    "filename",
    "notebook_path",
    "target_file",
];
pub(crate) const CONTENT: &[&str] = &[
    "content",
    "contents",
    "text",
    "file_text",
    "new_string",
    "old_string",
    "newString",
    "oldString",
    "new_str",
    "old_str",
    "new_text",
    "old_text",
    "insert_text",
    "insert_line",
    "line",
    "start_line",
    "end_line",
    "edits",
    "diff",
    "replace_all",
    "replaceAll",
    "expected_replacements",
    "new_source",
];

/// Whether a name contains a part, in any case.
fn contains(name: &str, part: &str) -> bool {
    let mut windows = name.as_bytes().windows(part.len());
    windows.any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// What marks in a patch that a file is deleted, or moved elsewhere: more than a change of its content.
const MOVES: &[&str] = &[
    "*** Delete File:",
    "*** Move to:",
    "deleted file mode",
    "rename to",
    "copy to",
    "+++ /dev/null",
    "new file mode 120000",
];

/// The files that a call changes, with the field that names them and the fields with their content.
struct ChangedFiles<'a> {
    field: &'static str,
    paths: Vec<&'a str>,
    contents: Vec<&'static str>,
}

impl<'a> ChangedFiles<'a> {
    fn of(args: &'a Map<String, Value>) -> Option<Self> {
        let has = |field: &&str| args.get(*field).is_some_and(|it| *it != Value::Null);
        let contents: Vec<_> = CONTENT.iter().copied().filter(has).collect();
        let mut named = FILE.iter().filter_map(|field| Some((*field, args.get(*field)?)));
        match (named.next(), named.next(), args.get("paths"), args.get("patch")) {
            (Some((field, path)), None, None, None) => {
                Some(Self { field, paths: vec![path.as_str()?], contents })
            }
            (None, None, Some(Value::Array(paths)), Some(Value::String(patch))) => {
                let paths: Vec<_> = paths.iter().map(Value::as_str).collect::<Option<_>>()?;
                let moves = MOVES.iter().any(|mark| patch.contains(mark));
                let is_known = contents.is_empty() && !paths.is_empty() && !moves;
                is_known.then(|| Self { field: "paths", paths, contents: vec!["patch"] })
            }
            _ => None,
        }
    }
}

/// The place of a plain file, below the root.
fn inner_place(examined: &ExaminedCall<'_>, path: &str) -> Option<PathBuf> {
    let [directory] = examined.directories() else { return None };
    if !examined.engine.classifier.is_plain_file(path, directory) {
        return None;
    }
    // The first place is the written one. Where links and `..` lead to two others, no class is offered.
    let places = examined.places_of(path).ok()?;
    let place = places.last().filter(|_| places.len() <= 2)?;
    place.strip_prefix(examined.places().root()).ok().map(Path::to_owned)
}

/// The classes of a tool that changes files: by the file, if it is one, and by their folder, if it is one and not the root.
pub(super) fn of_file(examined: &ExaminedCall<'_>) -> Vec<GrantPattern> {
    let has = |parts: &[&str]| parts.iter().any(|part| contains(examined.call.tool, part));
    if !has(CHANGES) || has(OTHERS) {
        return Vec::new();
    }
    let Some(changed) = ChangedFiles::of(examined.call.args) else { return Vec::new() };
    let places: Option<Vec<_>> =
        changed.paths.iter().map(|path| inner_place(examined, path)).collect();
    let Some(mut places) = places else { return Vec::new() };
    places.sort();
    places.dedup();
    let class = |name: String, says: String, more: Option<&'static str>| {
        changed
            .contents
            .iter()
            .copied()
            .chain(more)
            .fold(GrantPattern::new(name, says), |class, field| {
                class.with_field(field).with_pin(format!("path of {field}"))
            })
    };
    let shown = |place: &Path| countersign::show::escape(&place.display().to_string());
    let mut classes = Vec::new();
    if let ([place], false) = (places.as_slice(), changed.contents.is_empty()) {
        let file = shown(place);
        let own = (changed.field == "paths").then_some("paths");
        let says = format!("the file `{file}`, with any content");
        classes.push(class(format!("file {file}"), says, own));
    }
    let folders: Option<Vec<&Path>> = places.iter().map(|place| place.parent()).collect();
    let folder = folders.and_then(|all| {
        let first = *all.first()?;
        all.iter().all(|folder| *folder == first).then_some(first)
    });
    if let Some(folder) = folder.filter(|folder| *folder != Path::new("")) {
        let folder = shown(folder);
        let says = format!(
            "any file in `{folder}/`, and not in the folders below, that holds no secret and defines no build, with any \
             content"
        );
        let tool = countersign::show::escape_name(examined.call.tool);
        let found = class(format!("files in {folder}"), says, Some(changed.field))
            .with_example(format!("{tool}({}: {folder}/…)", changed.field))
            .with_never(format!("{tool}({}: {folder}/below/…)", changed.field))
            .with_never(format!("{tool}({}: {folder}/.env)", changed.field));
        classes.push(found);
    }
    classes
}
