//! The classes of calls that rules propose for grants (rule G3).
//!
//! A person who approves a call may want to approve its like from then on. What its like is, is decided here, for each
//! call anew: a later call that a grant answers has to be put into the same class by this code, with the places that its
//! paths lead to at that time.
//!
//! | call | classes, from the narrowest to the widest |
//! |---|---|
//! | a command of the list in `grantable.txt` | the same options and any operands; any of the options that the list has |
//! | a tool that changes a file of the workspace | this file with any content; any file in its folder; in the folder above |
//! | a tool of an MCP server or of a toolset, without commands | this tool, with any arguments, behind the two narrowest of the classes above |
//! | anything else | none: a grant is for exactly the same call |
//!
//! The list of commands is closed. What runs other programs (interpreters, wrappers, script runners), fetches, sends,
//! publishes or deletes is not on it, so that it is never generalised, and neither is a text with more than one
//! command, a redirection, an assignment, or a word that only the shell knows.
//!
//! Operands and paths are *plain files*: in the workspace as they are written and as they resolve, and neither secrets,
//! nor what decides about runs and permissions, nor the definition of a build.

use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;

use serde_json::Value;

use crate::calls::command::CommandView;
use crate::matching::seen::Seen;
use crate::readings::tools;
use countersign::decision::GrantPattern;
use countersign_shell::Part;

/// A command of the list.
struct Generalised {
    words: Vec<&'static str>,
    operands: &'static str,
    /// Options, and whether a text follows.
    options: Vec<(&'static str, bool)>,
    example: &'static str,
}

fn list() -> &'static [Generalised] {
    static LIST: OnceLock<Vec<Generalised>> = OnceLock::new();
    LIST.get_or_init(|| {
        let lines = include_str!("../grantable.txt").lines().filter(|line| !line.starts_with('#'));
        let parsed = lines.filter_map(|line| {
            let mut parts = line.split('|').map(str::trim);
            let words = parts.next()?.split_whitespace().collect();
            let operands = parts.next()?;
            let options = parts.next()?.split_whitespace();
            let option = |option: &'static str| match option.strip_suffix('=') {
                Some(option) => (option, true),
                None => (option, false),
            };
            let options = options.map(option).collect();
            Some(Generalised { words, operands, options, example: parts.next()? })
        });
        parsed.collect()
    })
}

/// The classes of a call, from the narrowest to the widest.
pub(crate) fn patterns(
    seen: &Seen<'_>,
    commands: &[(Vec<String>, Rc<CommandView>)],
) -> Vec<GrantPattern> {
    match commands {
        [] => {
            let mut classes = of_file(seen);
            if let Some(tool) = of_tool(seen) {
                classes.truncate(NARROWER);
                classes.push(tool);
            }
            classes
        }
        [(field, view)] => match (field.as_slice(), view.parts(), &view.refused) {
            ([field], [part], None) if view.is_one_command() => of_command(seen, field, part),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// How many classes of files are offered beside the one of the tool.
const NARROWER: usize = 2;

/// The class of all calls of a tool. A tool of a coding agent has none: it is one of few that do everything there.
fn of_tool(seen: &Seen<'_>) -> Option<GrantPattern> {
    let source = seen.call.source.as_ref()?;
    let is_of_client = seen.call.toolset_as_set().is_some_and(tools::is_of_client);
    if is_of_client || seen.shell_field.is_some() {
        return None;
    }
    let tool = countersign::show::escape_name(seen.call.tool);
    let kind = if source.is_server() { "mcp" } else { "set" };
    let name = format!("tool {kind}:{}/{}", source.set(), source.tool());
    let class = GrantPattern::new(name, "any arguments").with_any_args();
    Some(class.with_example(format!("{tool}(…), whatever its arguments are")))
}

fn of_command(seen: &Seen<'_>, field: &str, part: &Part) -> Vec<GrantPattern> {
    let Some(known) = list().iter().find(|known| part.argv().starts_with(&owned(&known.words)))
    else {
        return Vec::new();
    };
    let [directory] = part.directories() else { return Vec::new() };
    let bare = part.assignments().is_empty()
        && part.redirections().is_empty()
        && part.wrapped_by().is_none()
        && part.program().is_some()
        && part.reasons().len() == 1
        && directory.starts_with(seen.places().root());
    let rest = part.words().get(known.words.len()..).unwrap_or_default();
    let literal: Option<Vec<&str>> = rest.iter().map(|word| word.literal()).collect();
    let (true, Some(rest)) = (bare, literal) else { return Vec::new() };
    let Some(options) = options_of(seen, known, &rest, directory) else { return Vec::new() };
    let command = known.words.join(" ");
    let what = match known.operands {
        "files" => " of files of the workspace",
        _ => "",
    };
    let pattern = |name: String, says: String, example: &str| {
        GrantPattern::new(name, says)
            .with_field(field)
            .with_pin(format!("commands of {field}"))
            .with_example(example)
    };
    let with = match options.is_empty() {
        true => " without options".to_owned(),
        false => format!(" with {}", options.join(" ")),
    };
    let same = format!("{command}{with}");
    let example = match options.is_empty() || known.operands == "nothing" {
        true => None,
        false => Some(format!("{command} {} …", options.join(" "))),
    };
    vec![
        pattern(
            format!("command {same}"),
            format!("any `{command}`{what}{with}"),
            example.as_deref().unwrap_or(known.example),
        ),
        pattern(
            format!("command {command}"),
            format!("any `{command}`{what}, with options such as {}", all_options(known)),
            known.example,
        ),
    ]
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn all_options(known: &Generalised) -> String {
    known.options.iter().map(|(option, _)| format!("`{option}`")).collect::<Vec<_>>().join(", ")
}

/// The options of a command, sorted, without their texts. `None` if one is not in the list, or an operand is not of its
/// kind.
fn options_of(
    seen: &Seen<'_>,
    known: &Generalised,
    words: &[&str],
    directory: &Path,
) -> Option<Vec<String>> {
    let mut options: Vec<String> = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if let Some((option, has_text)) = known.options.iter().find(|(option, _)| *option == word) {
            options.push((*option).to_owned());
            if *has_text && words.next().is_none_or(|text| text.starts_with('-')) {
                return None;
            }
            continue;
        }
        let fits = match known.operands {
            "files" => {
                !word.starts_with('-') && seen.engine.classifier.is_plain_file(word, directory)
            }
            "names" => is_plain_name(word),
            _ => false,
        };
        if !fits {
            return None;
        }
    }
    options.sort();
    options.dedup();
    Some(options)
}

fn is_plain_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(plain)
        && !word.contains("..")
}

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

/// The classes of a tool that changes one file: by this file, by its folder, and by the folders above.
fn of_file(seen: &Seen<'_>) -> Vec<GrantPattern> {
    let has = |parts: &[&str]| parts.iter().any(|part| contains(seen.call.tool, part));
    if !has(CHANGES) || has(OTHERS) {
        return Vec::new();
    }
    let args = seen.call.args;
    let mut named = FILE.iter().filter_map(|field| Some((*field, args.get(*field)?.as_str()?)));
    let (Some((field, path)), None) = (named.next(), named.next()) else { return Vec::new() };
    let root = seen.places().root();
    let [directory] = seen.directories() else { return Vec::new() };
    if !seen.engine.classifier.is_plain_file(path, directory) {
        return Vec::new();
    }
    // The first place is the written one. Where links and `..` lead to two others, no class is offered.
    let Ok(places) = seen.places_of(path) else { return Vec::new() };
    let (Some(place), true) = (places.last(), places.len() <= 2) else { return Vec::new() };
    let Ok(inside) = place.strip_prefix(root) else { return Vec::new() };
    let contents: Vec<&str> = CONTENT
        .iter()
        .copied()
        .filter(|field| args.get(*field).is_some_and(|it| *it != Value::Null))
        .collect();
    let class = |name: String, says: String| {
        contents.iter().fold(GrantPattern::new(name, says), |class, field| {
            class.with_field(*field).with_pin(format!("path of {field}"))
        })
    };
    let shown = countersign::show::escape(&inside.display().to_string());
    let mut classes = Vec::new();
    if !contents.is_empty() {
        classes
            .push(class(format!("file {shown}"), format!("the file `{shown}`, with any content")));
    }
    let folders = inside.ancestors().skip(1).filter(|folder| *folder != Path::new(""));
    classes.extend(folders.take(8).map(|folder| {
        let folder = countersign::show::escape(&folder.display().to_string());
        class(format!("files in {folder}"), format!("any file in `{folder}/` that holds no secret and defines no build, with any content"))
            .with_field(field)
            .with_pin(format!("path of {field}"))
            .with_example(format!("{}({field}: {folder}/…)", countersign::show::escape_name(seen.call.tool)))
    }));
    classes
}
