//! The entries of the clients that are configured by JSON.
//!
//! We recognize entries of this program by their command (`…/countersign… hook <client>`), in any form that a version
//! has written. So an installation replaces the entry of an earlier version, and an uninstallation finds both. We keep
//! hooks of others, in the same list or the same group.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::hook::clients::Client;
use crate::hook::clients::files::HookEntry;
use crate::hook::clients::spec::EntryForm;
use countersign_shell::{Commands, Dialect};

/// The state of a client's switch for all hooks before we added our entries. Adding them switches the hooks on: otherwise the
/// client would read the entries and never call them. The entries themselves say what the switch said, for their removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SwitchBefore {
    On,
    Off,
    Unset,
}

impl SwitchBefore {
    /// The state that the entries in these settings name.
    pub(super) fn said(settings: &Value, client: Client) -> Self {
        let said = find(settings, client).and_then(|it| it.value.get("description")?.as_str());
        let known = [Self::Off, Self::Unset].into_iter();
        known.into_iter().find(|it| it.description() == said).unwrap_or(Self::On)
    }

    /// What entries that are added to these settings have to say.
    pub(super) fn found(settings: &Value, client: Client, form: &EntryForm) -> Self {
        let Some((table, field)) = form.switch else { return Self::On };
        let switch = settings.get(table).and_then(|it| it.get(field));
        match switch {
            Some(Value::Bool(false)) => Self::Off,
            _ if is_in(settings, client) => Self::said(settings, client),
            None => Self::Unset,
            Some(_) => Self::On,
        }
    }

    fn description(self) -> Option<&'static str> {
        match self {
            Self::On => None,
            Self::Off => Some("asks before each tool call; hooks were switched off before"),
            Self::Unset => Some("asks before each tool call; there was no switch for hooks before"),
        }
    }
}

/// Adds the entries. Their matcher stands for all tools, so they see new tools, too. Switches the hooks of the client
/// on.
pub(super) fn add(
    settings: &mut Value,
    client: Client,
    form: &EntryForm,
    limit: Duration,
    before: SwitchBefore,
    words: &dyn Fn(&str) -> Vec<String>,
) -> Result<(), String> {
    let fields = settings.as_object_mut().ok_or("it is not a JSON object")?;
    if let Some(version) = form.version {
        fields.entry("version").or_insert(json!(version));
    }
    if let Some((table, field)) = form.switch {
        let config = fields.entry(table).or_insert_with(|| json!({}));
        let config = config.as_object_mut().ok_or_else(|| format!("`{table}` is not an object"))?;
        config.insert(field.to_owned(), json!(true));
    }
    let hooks = fields.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or("`hooks` is not an object")?;
    for event in form.events {
        let list = hooks.entry((*event).to_owned()).or_insert_with(|| json!([]));
        let list = list.as_array_mut().ok_or_else(|| format!("`hooks.{event}` is not a list"))?;
        let command = match *event == client.spec().payload.before {
            true => guarded(&words(event)),
            false => shell(&words(event)),
        };
        let mut entry = (form.entry)(event, &command, limit);
        let hook = entry.pointer_mut("/hooks/0").and_then(Value::as_object_mut);
        if let Some((hook, said)) = hook.zip(before.description()) {
            hook.insert("description".to_owned(), json!(said));
        }
        // First, so that no other hook has changed the call before.
        list.insert(0, entry);
    }
    Ok(())
}

/// Puts the switch for all hooks back to what it was before the entries were added.
pub(super) fn switch_back(settings: &mut Value, form: &EntryForm, before: SwitchBefore) {
    let Some((table, field)) = form.switch else { return };
    let Some(config) = settings.get_mut(table).and_then(Value::as_object_mut) else { return };
    match before {
        SwitchBefore::On => {}
        SwitchBefore::Off => _ = config.insert(field.to_owned(), json!(false)),
        SwitchBefore::Unset => {
            config.remove(field);
            if config.is_empty() {
                settings.as_object_mut().map(|fields| fields.remove(table));
            }
        }
    }
}

/// Removes the entries of this program, and the lists and objects that are empty then.
pub(super) fn remove(settings: &mut Value, client: Client) -> Result<(), String> {
    let Some(hooks) = settings.get_mut("hooks") else { return Ok(()) };
    let hooks = hooks.as_object_mut().ok_or("`hooks` is not an object")?;
    let mut emptied = Vec::new();
    for (event, list) in hooks.iter_mut() {
        let Some(list) = list.as_array_mut() else { continue };
        let before = list.len();
        list.retain_mut(|group| match group.get_mut("hooks").and_then(Value::as_array_mut) {
            Some(commands) => {
                let before = commands.len();
                commands.retain(|hook| !is_ours(hook, client));
                // A list that was empty before stays.
                commands.len() == before || !commands.is_empty()
            }
            None => !is_ours(group, client),
        });
        if list.is_empty() && before > 0 {
            emptied.push(event.clone());
        }
    }
    for event in emptied {
        hooks.remove(&event);
    }
    if hooks.is_empty() {
        settings.as_object_mut().map(|fields| fields.remove("hooks"));
    }
    Ok(())
}

/// Returns `true` if any event has an entry of this program.
pub(super) fn is_in(settings: &Value, client: Client) -> bool {
    let lists = settings.get("hooks").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let mut groups = lists.filter_map(Value::as_array).flatten();
    groups.any(|group| match group.get("hooks").and_then(Value::as_array) {
        Some(hooks) => hooks.iter().any(|hook| is_ours(hook, client)),
        None => is_ours(group, client),
    })
}

/// The first entry of this program for the event before a tool.
pub(super) fn find(settings: &Value, client: Client) -> Option<HookEntry<'_>> {
    find_in(settings, client, client.spec().payload.before)
}

/// The first entry of this program for this event.
pub(super) fn find_in<'a>(
    settings: &'a Value,
    client: Client,
    event: &str,
) -> Option<HookEntry<'a>> {
    let groups = settings.pointer(&format!("/hooks/{event}"))?.as_array()?;
    groups.iter().enumerate().find_map(|(at, group)| {
        let matcher = group.get("matcher").and_then(Value::as_str);
        let of = |hook, around, value| HookEntry { group: at, hook, matcher, around, value };
        match group.get("hooks").and_then(Value::as_array) {
            Some(hooks) => hooks
                .iter()
                .enumerate()
                .find(|(_, it)| is_ours(it, client))
                .map(|(n, it)| of(n, group.as_object(), it)),
            None => is_ours(group, client).then(|| of(0, None, group)),
        }
    })
}

/// The program that an entry runs, by the word before `hook`, and the words behind it; `None` where its command cannot be
/// read.
pub(super) fn words(entry: &Value) -> Option<Vec<String>> {
    let command = ["command", "bash"].iter().find_map(|name| entry.get(name)?.as_str())?;
    let commands = Commands::parse(command, Dialect::Sh).ok()?;
    let words = commands.simple_commands().next()?.words();
    let words: Option<Vec<_>> = words.iter().map(|word| word.literal()).collect();
    let words = words?;
    let at = words.iter().position(|word| *word == "hook")?;
    let words = words.get(at.checked_sub(1)?..)?;
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Returns `true` if the text of a file of its own has nothing left.
pub(super) fn is_bare(text: &str) -> bool {
    let value: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    value.keys().all(|name| name == "version")
}

/// Returns `true` if a hook runs this program for this client, with or without the guard of [`guarded`].
///
/// A directory named `countersign` is not enough: the last part of the program has to be, and the words `hook <client>`
/// have to follow.
pub(super) fn is_ours(hook: &Value, client: Client) -> bool {
    let command = ["command", "bash"].iter().find_map(|name| hook.get(*name)?.as_str());
    command.is_some_and(|command| {
        let hook = format!(" hook {client}");
        let Some((program, rest)) = command.split_once(&hook) else { return false };
        let program =
            program.trim_matches('\'').rsplit(['/', '\\', ' ']).next().unwrap_or_default();
        program.starts_with("countersign") && (rest.is_empty() || rest.starts_with(' '))
    })
}

/// The command before a tool call: a shell that makes a denial of every end of the hook but an answer.
///
/// Most clients run the tool when the hook is killed, or when its program is missing or cannot be started. The program
/// itself cannot prevent that. So the shell ends with status 2 and a line on stderr, a denial in all of them. For a
/// time limit that has passed, and for a shell that is killed, it still depends on the client what happens.
fn guarded(words: &[String]) -> String {
    if !cfg!(unix) {
        return shell(words);
    }
    let guard = ["/bin/sh", "-c", GUARD, "countersign"].map(str::to_owned);
    shell(&guard.into_iter().chain(words.iter().cloned()).collect::<Vec<_>>())
}

/// The hook is told the shell's id, since the client's time began with the shell. The shell has its absolute path, as a
/// project may set `PATH`.
const GUARD: &str = r#""$@" --shell $$ || { s=$?; [ $s = 2 ] || echo "countersign has failed (status $s), so the call is denied" >&2; exit 2; }"#;

/// The words as one line for a shell.
///
/// Quoted by single quotes, in which a shell reads nothing; a quote itself is `'\''`.
fn shell(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:=,+".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
