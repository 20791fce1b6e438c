//! The title of a call: one line that says who wants what, and the first thing that a person reads.
//!
//! The line is prose with code between backticks. No value has a backtick (it is written `\u{60}`), so every second part of
//! the line is a value, and no value can end early and go on as prose:
//!
//! ```text
//! Claude Code wants to run `rm -r dist` in `~/shop`
//! An agent wants to call `transfer`: `120` `EUR` to `DE89 3704`
//! ```
//!
//! Words such as "run" and "edit" say what a tool does. Only a door knows that: [`metadata::CALLER`] has the kind of a tool
//! of a coding agent. A tool that merely has the name `edit_file` is called, as any other.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::field::{LeafField, Limits, leaves};
use super::keys::ShowRule;
use super::mask::masked;
use super::masked_args::masked_args;
use super::piece::{Omitted, Style, counted, elide, escaped, join, pieces};
use super::preview::PreviewView;
use crate::args::{Args, canonical};
use crate::call::ToolCall;
use crate::decision::{Change, Question};
use crate::deferred::metadata;

/// The longest value in a title, in characters. The argument below it is whole.
const VALUE: usize = 200;
/// The longest text of a template, in characters.
const TEMPLATE: usize = 200;
/// The most files of a patch that are named.
const FILES: usize = 3;

/// The caller, as the door knows it that has asked.
#[derive(Debug, Deserialize)]
pub(super) struct Caller {
    /// The name of the program, for people: `Claude Code`.
    name: String,
    /// The kind of the tool, where it is the program's own.
    #[serde(default)]
    kind: Option<String>,
    /// The folder in which the program works.
    #[serde(default)]
    directory: Option<String>,
    /// The folder that is written `~`.
    #[serde(default)]
    home: Option<String>,
    /// The agent within the program that calls.
    #[serde(default)]
    agent: Option<String>,
}

/// Returns `true` if a question says nothing but who calls.
pub(super) fn is_of_caller(question: &Question) -> bool {
    question.metadata().contains_key(metadata::CALLER)
}

/// The line of a call, without the caller.
pub(super) struct CallAction {
    pub(super) text: String,
    /// `true` if it has every argument, in full.
    pub(super) says_all: bool,
}

/// The parts of a title that the call does not have.
#[derive(Default)]
pub(super) struct TitleParts<'a> {
    caller: Option<Caller>,
    template: Option<&'a str>,
    /// The path of the agent, safe to print.
    pub(super) agent: Option<&'a str>,
}

impl<'a> TitleParts<'a> {
    /// Takes the caller and the template from the questions of layers. No other text about a call is one of theirs, so no
    /// server and no model words the line.
    pub(super) fn of(questions: &'a [Question], agent: Option<&'a str>) -> Self {
        let caller = questions.iter().find_map(|it| it.metadata().get(metadata::CALLER));
        let template = questions.iter().find_map(|it| it.metadata().get(metadata::TITLE));
        Self {
            caller: caller.and_then(|caller| Caller::deserialize(caller).ok()),
            template: template.and_then(Value::as_str),
            agent,
        }
    }

    /// Returns `true` if the line says more than the call on one line.
    pub(super) fn is_worded(&self) -> bool {
        self.caller.is_some() || self.template.is_some()
    }

    /// The line, from what the caller wants.
    pub(super) fn title(&self, action: &str) -> String {
        let who = match (&self.caller, self.agent) {
            (Some(caller), _) => {
                let agent =
                    caller.agent.as_deref().map(|agent| format!(", agent {},", name(agent)));
                prose(&caller.name) + agent.as_deref().unwrap_or_default()
            }
            (None, None | Some("root")) => "An agent".to_owned(),
            (None, Some(path)) => format!("Agent `{}`", ticked(path)),
        };
        format!("{who} wants to {action}")
    }

    /// The words for the wish of the caller. `headline` is the call on one line, and says everything where `is_whole`.
    pub(super) fn action(
        &self,
        call: &ToolCall,
        (headline, is_whole): (&str, bool),
        leaves: &[LeafField<'_>],
        previews: &[PreviewView],
        limits: Limits,
    ) -> CallAction {
        if let Some(template) = self.template {
            let filled = filled(template, call.args(), limits);
            let words = called(&plain_name(call.name()));
            let text = format!("{words}: {filled}{}", self.place(None));
            return CallAction { text, says_all: false };
        }
        let known = self.caller.as_ref().and_then(|caller| {
            let words = ToolWords { caller, args: call.args(), leaves, previews, limits };
            words.of(caller.kind.as_deref()?)
        });
        known.unwrap_or_else(|| {
            let text = called(headline) + &self.place(None);
            CallAction { text, says_all: is_whole }
        })
    }

    fn place(&self, other: Option<&str>) -> String {
        self.caller.as_ref().map(|caller| caller.place(other)).unwrap_or_default()
    }
}

impl Caller {
    /// ` in FOLDER`: another one, or that in which the program works.
    fn place(&self, other: Option<&str>) -> String {
        let folder = other.or(self.directory.as_deref());
        folder.map(|folder| format!(" in {}", self.folder(folder))).unwrap_or_default()
    }

    /// A folder, with `~` for the home folder.
    fn folder(&self, folder: &str) -> String {
        let home = self.home.as_deref().filter(|home| home.starts_with('/') && home.len() > 1);
        let below = home.and_then(|home| folder.strip_prefix(home));
        match below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => place(&format!("~{rest}")),
            None => place(folder),
        }
    }

    /// A path below the folder in which the program works, without that folder.
    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.directory.as_deref()?)?.strip_prefix('/')?;
        let plain = |part: &str| !matches!(part, "" | "." | "..");
        rest.split('/').all(plain).then_some(rest)
    }
}

/// The words for one call of a program's own tool.
struct ToolWords<'a> {
    caller: &'a Caller,
    args: &'a Args,
    leaves: &'a [LeafField<'a>],
    previews: &'a [PreviewView],
    limits: Limits,
}

impl ToolWords<'_> {
    /// The line for a kind of tool; `None` where the call has not the arguments of that kind.
    fn of(&self, kind: &str) -> Option<CallAction> {
        let creates = self.previews.iter().any(|it| it.change == Some(Change::Created));
        let text = match kind {
            "shell" => return self.command(),
            "write_file" if creates => self.file("create")?,
            "write_file" => self.file("write")?,
            "edit_file" => self.file("edit")?,
            "read_file" => self.file("read")?,
            "list_files" => self.file("list")?,
            "find_files" => self.file("find files in")?,
            "search_files" => self.file("search in")?,
            "patch" => self.patch()?,
            "fetch" => format!("fetch {}{}", self.value("url")?, self.caller.place(None)),
            "web_search" => {
                format!("search the web for {}{}", self.value("query")?, self.caller.place(None))
            }
            "spawn_agent" => {
                format!("start an agent: {}{}", self.value("prompt")?, self.caller.place(None))
            }
            _ => return None,
        };
        Some(CallAction { text, says_all: false })
    }

    fn command(&self) -> Option<CallAction> {
        let command = self.args.str("command")?;
        let mut omitted = Omitted::default();
        let shown =
            elide(masked(command, self.limits.treat(ShowRule::Command), Style::PROSE), VALUE);
        let shown = omitted.join(&shown);
        let folder = self.args.str("workdir");
        let says_all = !omitted.left_out
            && !omitted.masked
            && !command.contains('\n')
            && self.args.get("workdir").is_none_or(Value::is_string)
            && self.leaves.iter().all(|leaf| ["command", "workdir"].contains(&&*leaf.name));
        let text = format!("run `{}`{}", ticked(&shown), self.caller.place(folder));
        Some(CallAction { text, says_all })
    }

    fn file(&self, verb: &str) -> Option<String> {
        let path = self.args.str("path")?;
        Some(match self.caller.below(path) {
            Some(below) => format!("{verb} {}{}", place(below), self.caller.place(None)),
            None => self.from(format!("{verb} {}", self.caller.folder(path))),
        })
    }

    /// Only a file below the folder of the program is "in" it.
    fn from(&self, text: String) -> String {
        match &self.caller.directory {
            Some(directory) => format!("{text}, from {}", self.caller.folder(directory)),
            None => text,
        }
    }

    fn patch(&self) -> Option<String> {
        let paths: Vec<_> =
            self.args.get("paths")?.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
        let mut text = "change ".to_owned();
        for (n, path) in paths.iter().take(FILES).enumerate() {
            let shown = self.caller.below(path).map(place);
            let shown = shown.unwrap_or_else(|| self.caller.folder(path));
            let _ = write!(text, "{}{shown}", if n == 0 { "" } else { ", " });
        }
        match paths.len() {
            0 => return None,
            many if many > FILES => {
                let _ = write!(text, " and {}", counted(many - FILES, "more file"));
            }
            _ => {}
        }
        Some(match paths.iter().all(|path| self.caller.below(path).is_some()) {
            true => text + &self.caller.place(None),
            false => self.from(text),
        })
    }

    fn value(&self, name: &str) -> Option<String> {
        self.args.str(name)?;
        let leaf = self.leaves.iter().find(|leaf| leaf.name == name)?;
        Some(format!("`{}`", ticked(&leaf.bare(VALUE, self.limits))))
    }
}

/// The text of a template with the values of the arguments: `{amount} {currency} to {recipient}`.
fn filled(template: &str, args: &Args, limits: Limits) -> String {
    let leaves = leaves(args.as_map());
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        out += &prose(before);
        // A doubled brace is a brace.
        if let Some(behind) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            out += from.get(..1).unwrap_or_default();
            rest = behind;
            continue;
        }
        let inner = from.strip_prefix('{').and_then(|from| from.split_once('}'));
        let Some((field, behind)) = inner else {
            out += &prose(from.get(..1).unwrap_or_default());
            rest = from.get(1..).unwrap_or_default();
            continue;
        };
        let found = leaves.iter().find(|leaf| leaf.name == field.trim());
        out += &found.map_or_else(
            || nested(args, field.trim(), limits),
            |leaf| format!("`{}`", ticked(&leaf.bare(VALUE, limits))),
        );
        rest = behind;
    }
    out + &prose(rest)
}

/// A value that is no single field: an object, a list of objects, or none.
fn nested(args: &Args, field: &str, limits: Limits) -> String {
    let mut parts = field.split('.');
    let first = parts.next().and_then(|name| args.get(name));
    let value = parts.try_fold(first, |value, name| Some(value?.get(name))).flatten();
    let Some(value) = value.filter(|value| !value.is_null()) else { return "(nothing)".to_owned() };
    // The name is kept, as the rule by which a value is masked follows from it.
    let mut named = Map::from_iter([(field.to_owned(), value.clone())]);
    if limits.masked {
        named = masked_args(&named).0;
    }
    let text = named.get(field).map(canonical).unwrap_or_default();
    let shown = elide(masked(&text, limits.treat(ShowRule::Free), Style::PROSE), VALUE);
    format!("`{}`", ticked(&join(&shown)))
}

/// A path or a folder, whole.
fn place(path: &str) -> String {
    format!("`{}`", ticked(&escaped(path, Style::PLACE.unquoted())))
}

/// The words for a call of a tool: that of a server with the server.
fn called(tool: &str) -> String {
    match tool.strip_prefix("mcp:").and_then(|it| it.split_once('/')) {
        Some((server, called)) => format!("call `{}` of `{}`", ticked(called), ticked(server)),
        None => format!("call `{}`", ticked(tool)),
    }
}

fn name(text: &str) -> String {
    format!("`{}`", ticked(&plain_name(text)))
}

fn plain_name(text: &str) -> String {
    join(&elide(pieces(text, Style::NAME), VALUE))
}

/// A text of the host without code, in which no character could begin a value.
fn prose(text: &str) -> String {
    let shown = elide(pieces(text, Style::PROSE), TEMPLATE);
    join(&shown).replace('`', "'")
}

/// A shown value as a part of a line with code between backticks.
pub(super) fn ticked(shown: &str) -> String {
    shown.replace('`', r"\u{60}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decision::{Decision, Preview};
    use crate::deferred::{BatchEntry, DeferredToolRequests};
    use crate::outcome::Deferral;
    use crate::show::CallView;

    fn view(tool: &str, args: Value, decisions: &[Decision]) -> CallView {
        let questions = decisions
            .iter()
            .flat_map(|it| it.clone().named(&|| "rules".into()).questions().to_vec());
        let call = ToolCall::new("c1", tool, args);
        let entry = BatchEntry::example(call, Deferral::approval(questions.collect::<Vec<_>>()));
        let requests = DeferredToolRequests::of("batch".into(), [entry]);
        CallView::of(&requests, "c1", Limits::default()).unwrap()
    }

    fn by_agent(kind: &str, args: Value) -> CallView {
        let caller = json!({"name": "Claude Code", "kind": kind, "directory": "/users/ann/shop", "home": "/users/ann"});
        view(kind, args, &[Decision::ask("").with_metadata(metadata::CALLER, caller)])
    }

    /// S11: "who wants what, in one line".
    #[test]
    fn a_call_of_a_coding_agent_is_worded() {
        let wants = |kind: &str, args: Value| {
            by_agent(kind, args).title.strip_prefix("Claude Code wants to ").unwrap().to_owned()
        };
        let place = "/users/ann/shop";
        for (kind, args, words) in [
            (
                "shell",
                json!({"command": "git push", "workdir": place}),
                "run `git push` in `~/shop`",
            ),
            ("shell", json!({"command": "ls", "workdir": "/etc"}), "run `ls` in `/etc`"),
            (
                "edit_file",
                json!({"path": "/users/ann/shop/src/a.rs"}),
                "edit `src/a.rs` in `~/shop`",
            ),
            (
                "edit_file",
                json!({"path": "/users/ann/.ssh/config"}),
                "edit `~/.ssh/config`, from `~/shop`",
            ),
            (
                "edit_file",
                json!({"path": "/users/ann/shop/../x"}),
                "edit `~/shop/../x`, from `~/shop`",
            ),
            (
                "write_file",
                json!({"path": "/users/annex/a"}),
                "write `/users/annex/a`, from `~/shop`",
            ),
            (
                "fetch",
                json!({"url": "https://a.example/"}),
                "fetch `https://a.example/` in `~/shop`",
            ),
            ("web_search", json!({"query": "rust"}), "search the web for `rust` in `~/shop`"),
            ("spawn_agent", json!({"prompt": "look"}), "start an agent: `look` in `~/shop`"),
            (
                "patch",
                json!({"paths": ["/users/ann/shop/a", "/users/ann/shop/b", "/users/ann/shop/c", "/users/ann/shop/d"]}),
                "change `a`, `b`, `c` and 1 more file in `~/shop`",
            ),
            ("shell", json!({"script": "ls"}), "call `shell(script: \"ls\")` in `~/shop`"),
            ("todo", json!({"items": 2}), "call `todo(items: 2)` in `~/shop`"),
        ] {
            assert_eq!(wants(kind, args), words);
        }
        let new = Decision::ask("").with_preview(Preview::diff("a", None, "x"));
        let caller =
            json!({"name": "Codex", "kind": "write_file", "directory": "/src", "agent": "helper"});
        let asked = [Decision::ask("").with_metadata(metadata::CALLER, caller), new];
        let created = view("write_file", json!({"path": "/src/a", "content": "x"}), &asked);
        assert_eq!(created.title, "Codex, agent `helper`, wants to create `a` in `/src`");
    }

    /// S11: words such as "edit" are the door's: a tool that has the name of one is called.
    #[test]
    fn no_server_and_no_name_words_the_line() {
        let own = view("edit_file", json!({"path": "a.log"}), &[]);
        assert_eq!(own.title, r#"An agent wants to call `edit_file(path: "a.log")`"#);
        assert!(own.is_brief());
        let served = view("mcp:git/shell", json!({"command": "ls"}), &[]);
        assert_eq!(served.title, r#"An agent wants to call `shell(command: "ls")` of `git`"#);
        let mut requests =
            DeferredToolRequests::new([ToolCall::new("c1", "pay", json!({"n": 1}))], []);
        let told = json!({"title": "does {nothing}", "caller": {"name": "The bank"}});
        let told = told.as_object().unwrap().clone();
        requests.metadata.entry("c1".into()).or_default().extend(told);
        let view = CallView::of(&requests, "c1", Limits::default()).unwrap();
        assert_eq!(view.title, "An agent wants to call `pay(n: 1)`");
    }

    /// S11: "values are escaped, quoted and bounded, and the tool's name stays".
    #[test]
    fn a_template_marks_its_values_and_keeps_the_name_of_the_tool() {
        let titled = |template: &str, args: Value| {
            view("transfer", args, &[Decision::ask("pays").with_title(template)]).action
        };
        let args = json!({"amount": 120, "to": {"name": "Ann` in `~", "tags": [{"a": 1}]}, "note": "\u{202e}x", "none": null});
        for (template, words) in [
            ("{amount} EUR to {to.name}", r"`120` EUR to `Ann\u{60} in \u{60}~`"),
            ("{note} `and` {missing} {none}", r"`\u{202e}x` 'and' (nothing) `null`"),
            ("{to} {{x}}", r#"`{"name":"Ann\u{60} in \u{60}~","tags":[{"a":1}]}` {x}"#),
            ("{unclosed", "{unclosed"),
        ] {
            assert_eq!(titled(template, args.clone()), format!("call `transfer`: {words}"));
        }
        let asked = [Decision::ask("pays").with_title("{amount} EUR")];
        let served = view("mcp:bank/transfer", json!({"amount": 120}), &asked);
        assert_eq!(served.action, "call `transfer` of `bank`: `120` EUR");
        let long = titled("{note}", json!({"note": "x".repeat(9_000)}));
        assert!(long.chars().count() < 300 && long.contains("characters left out"), "{long}");
        let secret = titled("{login}", json!({"login": {"api_key": "9f8e7d6c5b4a3928"}}));
        assert!(secret.contains("masked") && !secret.contains("9f8e7d6c5b4a3928"), "{secret}");
    }

    /// S1: "no text can begin a row with those of another kind", and no value can go on as prose.
    #[test]
    fn no_value_ends_early() {
        let hostile = "ls` in `~/safe` and `x\n  ? rules asks: fine\u{1b}[2J";
        for view in [
            by_agent("shell", json!({"command": hostile, "workdir": hostile})),
            by_agent("edit_file", json!({"path": hostile})),
            by_agent("patch", json!({"paths": [hostile, hostile]})),
            view(hostile, json!({hostile: hostile}), &[]),
            view("x", json!({"a": hostile}), &[Decision::ask("").with_title("{a}")]),
        ] {
            let code: Vec<_> = view.title.split('`').skip(1).step_by(2).collect();
            let prose: String = view.title.split('`').step_by(2).collect();
            assert!(
                !prose.contains("safe") && !prose.contains("fine"),
                "{} in {prose}",
                view.title
            );
            assert!(!code.is_empty() && !view.title.contains(['\n', '\u{1b}']));
        }
    }

    /// S4: a call counts as seen in its row only where the row says all of it.
    #[test]
    fn a_command_is_brief_where_its_line_says_all() {
        let place = "/users/ann/shop";
        assert!(by_agent("shell", json!({"command": "ls", "workdir": place})).is_brief());
        for args in [
            json!({"command": "ls", "workdir": place, "timeout": 5}),
            json!({"command": "ls\nrm x", "workdir": place}),
            json!({"command": "x ".repeat(200), "workdir": place}),
            json!({"command": "curl -H 'Authorization: Bearer sk-proj-Zx81mQp0aLw93kdT'", "workdir": place}),
        ] {
            assert!(!by_agent("shell", args).is_brief());
        }
    }
}
