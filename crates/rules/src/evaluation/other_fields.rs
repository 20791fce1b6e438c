//! The fields of a shell's call beside its command that no rule has looked at (rule R8).
//!
//! A rule that allows by the command is silent about a call with such a field, and so is the default, unless the rule
//! has a condition on the field itself: then its author has looked at it. Everything that is known to be harmless is in
//! the table of [`shells`].
//!
//! The start of another agent is looked at in the same way: what it is told and who it is, is harmless, as each call of it
//! is decided by itself; a field such as `mode` may switch that off.
//!
//! The other reasons for which a rule that allows is silent are here as well: see [`allows_nothing`].

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::format::rule::Rule;
use crate::format::rule_file::RuleFile;
use crate::matching::condition::{FieldPath, Test};
use crate::matching::examined_call::ExaminedCall;
use crate::readings::argument;
use crate::readings::scheme::scheme;
use crate::readings::shells;
use crate::readings::shells::{DIRECTORIES, Doubt};
use crate::readings::tools;
use crate::readings::tools::CommonTool;
use countersign::show::escape;
use countersign_shell::lexically_normal;

/// How many fields a question names. A call may have thousands.
const MAX_NAMED: usize = 4;

/// The names of arguments that mean the working directory in any tool.
const OF_ANY_TOOL: &[&str] =
    &["cwd", "workdir", "working_directory", "workingDirectory", "working_dir", "current_dir"];

/// A field that no rule has looked at, and why that matters.
#[derive(Debug)]
pub(crate) struct Unread {
    name: String,
    why: String,
}

/// The fields of a call of a shell that may change what runs. Of a call of another tool, the directories that are not
/// certain.
pub(crate) fn unread(examined: &ExaminedCall<'_>) -> Vec<Unread> {
    match examined.shell_field {
        Some(command) => of_judged(examined, &[command.to_owned()]),
        None => {
            let more = if starts_agent(examined) { of_agent(examined) } else { Vec::new() };
            directories(examined).into_iter().chain(more).collect()
        }
    }
}

/// The fields beside some texts that are commands, which may change what runs.
pub(crate) fn of_judged(examined: &ExaminedCall<'_>, commands: &[String]) -> Vec<Unread> {
    let mut found = Vec::new();
    let mut places: Vec<(&String, PathBuf)> = Vec::new();
    for (name, value) in examined.call.args.iter().filter(|(name, _)| !commands.contains(name)) {
        let why = if DIRECTORIES.contains(&name.as_str()) {
            match place(examined, value).and_then(|place| is_there(examined, place)) {
                Ok(place) => {
                    places.extend(place.map(|place| (name, place)));
                    None
                }
                Err(why) => Some(why),
            }
        } else if name == "paths" && commands.iter().any(|it| is_of_patch(examined, it)) {
            None
        } else {
            shells::doubt(name, value).map(why)
        };
        found.extend(why.map(|why| Unread::new(name, examined.call.tool, why)));
    }
    // The tool starts in one of them, and it is not known in which.
    if places.windows(2).any(|pair| matches!(pair, [(_, one), (_, other)] if one != other)) {
        let why = "is one of several directories";
        found.extend(places.iter().map(|(name, _)| Unread::new(name, examined.call.tool, why)));
    }
    found
}

/// Returns `true` if the call starts another agent of a coding agent.
fn starts_agent(examined: &ExaminedCall<'_>) -> bool {
    let is_of_client = examined.call.toolset_as_set().is_some_and(tools::is_of_client);
    is_of_client && examined.call.tool == CommonTool::SpawnAgent.name()
}

/// The fields of the start of an agent that may change what the agent may do.
fn of_agent(examined: &ExaminedCall<'_>) -> Vec<Unread> {
    let doubts = examined.call.args.iter().filter_map(|(name, value)| {
        let why = why(shells::doubt_of_agent(name, value)?);
        Some(Unread::new(name, examined.call.tool, why))
    });
    doubts.collect()
}

/// The arguments that name the directory of any tool, where it may be another one.
fn directories(examined: &ExaminedCall<'_>) -> Vec<Unread> {
    let named = examined.call.args.iter().filter(|(name, _)| OF_ANY_TOOL.contains(&name.as_str()));
    let doubts = named.filter_map(|(name, value)| {
        let why = place(examined, value).err()?;
        Some(Unread::new(name, examined.call.tool, why))
    });
    doubts.collect()
}

/// The directory, if it is there: a tool that does not find it, or has no such argument, may work in another one. One
/// outside of the root is judged as that.
fn is_there(
    examined: &ExaminedCall<'_>,
    place: Option<PathBuf>,
) -> Result<Option<PathBuf>, &'static str> {
    let root = examined.places().root();
    let is_missing = |place: &PathBuf| {
        let below = *place != examined.base() && place.starts_with(root) && root.is_dir();
        below && examined.places().looks() && !place.is_dir()
    };
    match &place {
        Some(place) if is_missing(place) => Err("is no directory"),
        _ => Ok(place),
    }
}

impl Unread {
    fn new(name: &str, tool: &str, why: &str) -> Self {
        let why = format!("`{}` of `{}` {why}", escape(name), escape(tool));
        Self { name: name.to_owned(), why }
    }
}

fn why(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Unknown => "is an argument that is not known here",
        Doubt::Value => "has a value that is not known here",
        Doubt::Sandbox => "may switch the sandbox off",
    }
}

/// The directory that a value of such a field means, if it means one. The error says why it may be another one.
fn place(examined: &ExaminedCall<'_>, value: &Value) -> Result<Option<PathBuf>, &'static str> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) if !is_read_otherwise(text) => {
            Ok(Some(lexically_normal(&examined.base().join(text))))
        }
        _ => Err("may be another directory than it seems to be"),
    }
}

/// Whether a tool may read a text as another directory than its characters say: by expanding or decoding it, or by
/// taking a link before a `..` literally.
fn is_read_otherwise(text: &str) -> bool {
    argument::is_expanded(text)
        || text.starts_with('-')
        || text.contains("://")
        || scheme(text).is_some_and(|it| it.is_file())
        || text.split(['/', '\\']).any(|part| part == "..")
        || argument::has_codes(text)
}

/// Whether the command is a patch, to which the hook of an agent adds the paths that it changes.
fn is_of_patch(examined: &ExaminedCall<'_>, command: &str) -> bool {
    let text = examined.call.args.get(command).and_then(Value::as_str);
    // A comment with these words makes no command a patch.
    text.is_some_and(|text| text.lines().any(|line| line.trim() == "*** Begin Patch"))
}

/// Why a rule that allows is silent about a call with these fields: it has no condition on one of them. A condition of an
/// exception does not count, as an exception never makes a rule allow more.
pub(crate) fn silences(rule: &Rule, unread: &[Unread]) -> Option<String> {
    let names = |unread: &Unread| {
        rule.whole.iter().any(|condition| match &condition.field {
            FieldPath::Named(path) => matches!(path.as_slice(), [name] if *name == unread.name),
            FieldPath::AnyPath | FieldPath::Run => false,
        })
    };
    unread.iter().find(|unread| !names(unread)).map(|unread| unread.why.clone())
}

/// Why a rule that allows is silent about a call before its conditions are looked at: the file of a project was not approved
/// (rule R4), or the call has an argument that a rule with `no_other_arguments` does not name (rule R1).
pub(crate) fn allows_nothing(
    file: &RuleFile,
    rule: &Rule,
    args: &Map<String, Value>,
) -> Option<String> {
    if !file.widens {
        let why =
            "the project's file was not approved in its present form, so that it allows nothing";
        return Some(why.to_owned());
    }
    if !rule.no_other_arguments {
        return None;
    }
    let conditions = rule.whole.iter().chain(&rule.commands);
    let named = conditions.filter_map(|condition| match &condition.field {
        FieldPath::Named(path) => {
            // A value that is there may hold anything.
            let looks_within = !matches!(condition.test, Test::Exists(_));
            Some(NamedPlace { path: path.as_slice(), looks_within })
        }
        FieldPath::AnyPath | FieldPath::Run => None,
    });
    let other = not_named(&named.collect::<Vec<_>>(), args)?;
    Some(format!("the call has the argument `{}`, which the rule does not name", escape(&other)))
}

/// A place in the arguments that a rule has a condition on.
#[derive(Debug, Clone, Copy)]
struct NamedPlace<'a> {
    path: &'a [String],
    /// `true` if the condition is about all that is in the value.
    looks_within: bool,
}

/// The first argument that a rule does not look at, nor the value that it is in. `order.admin` is one beside the path
/// `order.amount`.
fn not_named<'p>(paths: &[NamedPlace<'p>], args: &Map<String, Value>) -> Option<String> {
    args.iter().find_map(|(name, value)| {
        let below = |it: &NamedPlace<'p>| {
            let (first, path) = it.path.split_first()?;
            (first == name).then_some(NamedPlace { path, ..*it })
        };
        let rest: Vec<_> = paths.iter().filter_map(below).collect();
        if rest.is_empty() {
            return Some(name.clone());
        }
        let is_scalar = !value.is_object() && !value.is_array();
        if rest.iter().any(|it| it.path.is_empty() && (it.looks_within || is_scalar)) {
            return None;
        }
        let Some(within) = value.as_object() else { return value.is_array().then(|| name.clone()) };
        let other = not_named(&rest, within)?;
        Some(format!("{name}.{other}"))
    })
}

/// The fields as one reason.
pub(crate) fn reason(unread: &[Unread], unread_of_judged: &[Unread]) -> String {
    let all = || unread.iter().chain(unread_of_judged).map(|it| &it.why);
    let mut named: Vec<String> = Vec::new();
    for why in all() {
        if named.len() < MAX_NAMED && !named.contains(why) {
            named.push(why.clone());
        }
    }
    if all().count() > MAX_NAMED {
        named.push(format!("and {} more", all().count() - MAX_NAMED));
    }
    named.join("; ")
}
