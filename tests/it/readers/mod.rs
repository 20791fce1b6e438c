//! The text that is judged is the text that acts: hostile calls by a seeded generator, and daily work, at every door.
//!
//! The calls are made from the promises and from what shells, programs and other readers do with a text, without a look
//! at how the library reads it. A hostile call must not be allowed; a row of daily work must not be asked about.

mod daily;
mod desk;
mod fields;
mod floor;
mod hosts;
mod outputs;
mod paths;
mod places;
mod programs;
mod score;
mod shell_text;
mod vehicles;

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use countersign_cli::hook::Client;
use serde_json::{Value, json};

use crate::support::Dice;
use crate::support::clients::forms;
use desk::Desk;

/// Where a call is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Door {
    Library,
    /// As a tool of the server `fs`, as the guard judges it.
    Guard,
    Hook(Client),
}

/// The rules that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Policy {
    Developer,
    Reader,
    Text(&'static str),
}

/// A call that must not be allowed.
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) why: &'static str,
    pub(crate) desk: Rc<Desk>,
    pub(crate) door: Door,
    pub(crate) policy: Policy,
    pub(crate) tool: String,
    pub(crate) args: Value,
}

impl Row {
    /// A panic is no answer, and counts as the worst one.
    pub(crate) fn is_allowed(&self) -> bool {
        let judged = || self.desk.allows(self.door, self.policy, &self.tool, &self.args);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(judged)).unwrap_or(true)
    }
}

/// The calls of a list, each one once.
pub(crate) struct List {
    pub(crate) rows: Vec<Row>,
    pub(crate) dice: Dice,
    seen: HashSet<String>,
    kind: &'static str,
    why: &'static str,
    desk: Rc<Desk>,
    door: Door,
    policy: Policy,
}

impl List {
    pub(crate) fn new(seed: u64, desk: &Rc<Desk>) -> Self {
        let (door, policy) = (Door::Library, Policy::Developer);
        let seen = HashSet::new();
        let desk = Rc::clone(desk);
        Self { rows: Vec::new(), dice: Dice(seed), seen, kind: "", why: "", desk, door, policy }
    }

    /// The kind of the rows that follow, and why they must not be allowed.
    pub(crate) fn of(&mut self, kind: &'static str, why: &'static str) -> &mut Self {
        (self.kind, self.why) = (kind, why);
        self
    }

    pub(crate) fn at(&mut self, door: Door, policy: Policy) -> &mut Self {
        (self.door, self.policy) = (door, policy);
        self
    }

    pub(crate) fn on(&mut self, desk: &Rc<Desk>) -> &mut Self {
        self.desk = Rc::clone(desk);
        self
    }

    /// Adds a call; one that is there is not added again.
    pub(crate) fn call(&mut self, tool: &str, args: Value) -> &mut Self {
        let root = self.desk.root.display().to_string();
        let key = format!("{:?} {:?} {root} {tool} {args}", self.door, self.policy);
        if self.seen.insert(key) {
            let (kind, why, desk) = (self.kind, self.why, Rc::clone(&self.desk));
            let (door, policy, tool) = (self.door, self.policy, tool.to_owned());
            self.rows.push(Row { kind, why, desk, door, policy, tool, args });
        }
        self
    }

    /// Adds a command of the shell tool of this door.
    pub(crate) fn command(&mut self, command: &str) -> &mut Self {
        let (tool, field) = shell_of(self.door);
        self.call(tool, json!({ field: command }))
    }

    /// One of these, by chance.
    pub(crate) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[usize::try_from(self.dice.roll(of.len() as u64)).unwrap()]
    }
}

/// The shell tool of a door, and the field of its command.
pub(crate) fn shell_of(door: Door) -> (&'static str, &'static str) {
    match door {
        Door::Library | Door::Guard => ("shell", "command"),
        Door::Hook(Client::Codex) => ("exec_command", "cmd"),
        Door::Hook(client) => {
            let shell = forms(client.name()).tool("shell").unwrap();
            (shell[0], shell[1])
        }
    }
}

/// Everything is allowed: the tools of this program and of servers, and every command.
pub(crate) const EVERYTHING: Policy = Policy::Text(
    "version = 1\n[[rule]]\nid = 'all'\nallow = ['*', 'mcp:*/*']\n[[rule]]\nid = 'commands'\nallow = 'shell'\nwhere.command.matches = '*'\n",
);

/// How many rows of each kind there are, and how many of them are allowed.
pub(crate) fn counted(rows: &[Row]) -> (BTreeMap<&'static str, (usize, usize)>, Vec<&Row>) {
    let mut kinds: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    let mut allowed = Vec::new();
    for row in rows {
        let count = kinds.entry(row.kind).or_default();
        count.0 += 1;
        if row.is_allowed() {
            count.1 += 1;
            allowed.push(row);
        }
    }
    (kinds, allowed)
}
