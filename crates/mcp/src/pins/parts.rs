//! The parts of a server that are pinned, and their form in the asks by which they are accepted.
//!
//! ```json
//! {"accept_from_server": "git; 1 new: move; 1 changed: write", "server": "git",
//!  "added": {"move": {…}},
//!  "changed": {"write": {"difference": {"description": {"was": …, "now": …}}, "now": {…}}},
//!  "removed": [],
//!  "about": {"instructions": {"was": …, "now": …}},
//!  "programs": {"/x/server.js": {"now": "sha256 …"}},
//!  "set": "…"}
//! ```
//!
//! An ask of the first form has neither `about` nor `programs`, and its definitions have no `_meta`. It may have names in
//! `removed`, which are not accepted any more.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::client::launch::digest;
use crate::client::toolset::PinnedParts;
use countersign::args::Args;

/// The kinds of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PinKind {
    /// A tool, by its name; the value is its definition.
    Tool,
    /// `instructions`, `title` or `version`, by which a server describes itself.
    About,
    /// A file or package that the server's command names; the value is its digest or state.
    Program,
}

/// A part that is not accepted as it is now.
pub(super) struct Difference<'a> {
    pub(super) kind: PinKind,
    pub(super) name: &'a str,
    /// As it was accepted last, if it ever was.
    pub(super) was: Option<&'a Value>,
    pub(super) now: &'a Value,
}

impl Difference<'_> {
    pub(super) fn digest(&self) -> String {
        part_digest(self.kind, self.name, self.now)
    }
}

/// The name by which a part is known: another value of the same name is another part.
pub(super) fn part_digest(kind: PinKind, name: &str, now: &Value) -> String {
    let kind = match kind {
        PinKind::Tool => "tool",
        PinKind::About => "about",
        PinKind::Program => "program",
    };
    digest(&json!([kind, name, now]))
}

/// All parts of a server.
pub(super) fn all(parts: &PinnedParts) -> impl Iterator<Item = (PinKind, &str, &Value)> {
    let PinnedParts { tools, about, programs } = parts;
    let tools = tools.iter().map(|(name, now)| (PinKind::Tool, name.as_str(), now));
    let about = about.iter().map(|(name, now)| (PinKind::About, name.as_str(), now));
    let programs = programs.iter().map(|(name, now)| (PinKind::Program, name.as_str(), now));
    tools.chain(about).chain(programs)
}

/// The arguments of the ask for these differences.
pub(super) fn args(server: &str, differences: &[Difference<'_>]) -> Args {
    let (mut added, mut changed) = (Map::new(), Map::new());
    let (mut about, mut programs) = (Map::new(), Map::new());
    for Difference { kind, name, was, now } in differences {
        let name = (*name).to_owned();
        let from_to = || match was {
            Some(was) => json!({"was": was, "now": now}),
            None => json!({"now": now}),
        };
        match (kind, was) {
            (PinKind::Tool, None) => _ = added.insert(name, (*now).clone()),
            (PinKind::Tool, Some(was)) => {
                let differs = json!({"difference": between(was, now), "now": now});
                _ = changed.insert(name, differs);
            }
            (PinKind::About, _) => _ = about.insert(name, from_to()),
            (PinKind::Program, _) => _ = programs.insert(name, from_to()),
        }
    }
    let set: BTreeSet<String> = differences.iter().map(Difference::digest).collect();
    Args::new()
        // Surfaces show this one first, by its name, and the definitions are long.
        .with("accept_from_server", summary(server, differences))
        .with("server", server)
        .with("added", added)
        .with("changed", changed)
        // Readers of the first form need it.
        .with("removed", json!([]))
        .with("about", about)
        .with("programs", programs)
        .with("set", digest(&json!(set)))
}

/// The fields of a definition that differ.
fn between(was: &Value, now: &Value) -> Value {
    let fields: BTreeSet<&String> =
        [was, now].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
    let differs = fields.into_iter().filter(|field| was.get(*field) != now.get(*field));
    let from_to =
        differs.map(|field| (field.clone(), json!({"was": was.get(field), "now": now.get(field)})));
    Value::Object(from_to.collect())
}

/// The server and the names of the parts that a person accepts.
pub(super) fn summary(server: &str, differences: &[Difference<'_>]) -> String {
    let named = |kind: PinKind, is_new: Option<bool>| {
        let of_kind = differences.iter().filter(move |it| it.kind == kind);
        let chosen = of_kind.filter(move |it| is_new.is_none_or(|new| it.was.is_none() == new));
        chosen.map(|it| it.name).collect::<Vec<_>>()
    };
    let mut text = server.to_owned();
    for (what, names) in [
        ("new", named(PinKind::Tool, Some(true))),
        ("changed", named(PinKind::Tool, Some(false))),
        ("of the server itself", named(PinKind::About, None)),
        ("started", named(PinKind::Program, None)),
    ] {
        if !names.is_empty() {
            text += &format!("; {} {what}: {}", names.len(), names.join(", "));
        }
    }
    text
}

/// The parts in the arguments of an ask, as they would be accepted.
pub(super) fn of_args(args: &Args) -> Vec<(PinKind, String, Value)> {
    let map = |key: &str| args.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let now = |part: &Value| part.get("now").cloned();
    let mut parts = Vec::new();
    parts.extend(map("added").into_iter().map(|(name, now)| (PinKind::Tool, name, now)));
    for (kind, key) in
        [(PinKind::Tool, "changed"), (PinKind::About, "about"), (PinKind::Program, "programs")]
    {
        parts.extend(
            map(key).into_iter().filter_map(|(name, part)| Some((kind, name, now(&part)?))),
        );
    }
    parts
}

/// The digests of the parts in the arguments of an ask.
pub(super) fn digests(args: &Args) -> BTreeSet<String> {
    of_args(args).iter().map(|(kind, name, now)| part_digest(*kind, name, now)).collect()
}

/// Returns `true` if an ask is of the first form.
pub(super) fn is_of_first_form(args: &Args) -> bool {
    args.get("programs").is_none()
}
