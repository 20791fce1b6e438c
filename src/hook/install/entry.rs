//! The entries of the clients that are configured by JSON.
//!
//! Entries of this program are recognized by their command (`…/countersign… hook <client>`), in whatever form they were
//! written, so that an installation replaces that of an earlier version, and an uninstallation finds both. Hooks of
//! others, in the same list or the same group, are kept.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::client::Client;
use crate::shell::{Commands, Dialect};

/// The name of the entry, in clients whose entries have one.
pub(super) const NAME: &str = "countersign";

/// The events that a client calls the hook for.
pub(super) fn events(client: Client) -> &'static [&'static str] {
    match client {
        Client::Claude => &["PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd"],
        Client::Codex => &["PreToolUse", "PostToolUse"],
        Client::Gemini => &["BeforeTool", "AfterTool", "SessionEnd"],
        Client::Copilot => &["preToolUse", "postToolUse", "sessionEnd"],
        Client::Opencode => &[],
    }
}

/// How an entry of Gemini says that a person had switched hooks off before, for the removal.
const WERE_OFF: &str = "asks before each tool call; hooks were switched off before";

/// Whether the entries say that a person had switched hooks off before they were added.
pub(super) fn were_off(settings: &Value, client: Client) -> bool {
    find(settings, client).is_some_and(|it| it.value.get("description") == Some(&json!(WERE_OFF)))
}

/// Adds the entries. Tools are matched by `*`, so that new tools are seen, too. Gives whether hooks were switched off.
///
/// Gemini's hooks are switched on, as without it the entries would be read and never called. `were_off` says that an
/// earlier installation has done so.
pub(super) fn add(
    settings: &mut Value,
    client: Client,
    limit: Duration,
    were_off: bool,
    words: &dyn Fn(&str) -> Vec<String>,
) -> Result<bool, String> {
    let fields = settings.as_object_mut().ok_or("it is not a JSON object")?;
    if client == Client::Copilot {
        fields.entry("version").or_insert(json!(1));
    }
    let mut are_off = false;
    if client == Client::Gemini {
        let config = fields.entry("hooksConfig").or_insert_with(|| json!({}));
        let config = config.as_object_mut().ok_or("`hooksConfig` is not an object")?;
        let before = config.insert("enabled".to_owned(), json!(true));
        are_off = before == Some(json!(false));
    }
    let hooks = fields.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or("`hooks` is not an object")?;
    for event in events(client) {
        let list = hooks.entry((*event).to_owned()).or_insert_with(|| json!([]));
        let list = list.as_array_mut().ok_or_else(|| format!("`hooks.{event}` is not a list"))?;
        // First, so that no other hook has changed the call before.
        let command = match *event == client.fields().before {
            true => guarded(&words(event)),
            false => shell(&words(event)),
        };
        let mut entry = one(client, event, limit, &command);
        let hook = entry.pointer_mut("/hooks/0").and_then(Value::as_object_mut);
        if let Some(hook) = hook.filter(|_| are_off || were_off) {
            hook.insert("description".to_owned(), json!(WERE_OFF));
        }
        list.insert(0, entry);
    }
    Ok(are_off)
}

/// `onFailure: block` exists in Claude only: there a hook that is too late blocks the call, too. In the others it lets
/// the call run, which is why [`Hook::answer`](crate::hook::Hook::answer) always ends in time.
fn one(client: Client, event: &str, limit: Duration, command: &str) -> Value {
    let seconds = limit.as_secs().max(1);
    let is_tool = !event.eq_ignore_ascii_case("SessionEnd");
    let group = |hook: Value| match (is_tool, client) {
        (true, Client::Codex) => json!({"matcher": "", "hooks": [hook]}),
        (true, _) => json!({"matcher": "*", "hooks": [hook]}),
        (false, _) => json!({"hooks": [hook]}),
    };
    match client {
        Client::Claude if event == "PreToolUse" => group(
            json!({"type": "command", "command": command, "timeout": seconds, "onFailure": "block"}),
        ),
        Client::Claude | Client::Codex => {
            group(json!({"type": "command", "command": command, "timeout": seconds}))
        }
        Client::Gemini => group(json!({
            "type": "command", "name": NAME, "command": command, "timeout": seconds.saturating_mul(1000),
        })),
        Client::Copilot | Client::Opencode => {
            json!({"type": "command", "bash": command, "timeoutSec": seconds})
        }
    }
}

/// Switches hooks off again, as they were before the entries were added.
pub(super) fn switch_off(settings: &mut Value) {
    let config = settings.get_mut("hooksConfig").and_then(Value::as_object_mut);
    config.map(|config| config.insert("enabled".to_owned(), json!(false)));
}

/// Removes the entries of this program, and the lists and objects that are empty then.
pub(super) fn remove(settings: &mut Value, client: Client) -> Result<(), String> {
    let Some(hooks) = settings.get_mut("hooks") else { return Ok(()) };
    let hooks = hooks.as_object_mut().ok_or("`hooks` is not an object")?;
    let mut emptied = Vec::new();
    for (event, list) in hooks.iter_mut() {
        let Some(list) = list.as_array_mut() else { continue };
        let before = list.len();
        for group in list.iter_mut() {
            if let Some(commands) = group.get_mut("hooks").and_then(Value::as_array_mut) {
                commands.retain(|hook| !is_ours(hook, client));
            }
        }
        list.retain(|group| match group.get("hooks").and_then(Value::as_array) {
            Some(commands) => !commands.is_empty(),
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

/// An entry of this program for one event.
pub(super) struct HookEntry<'a> {
    /// The position of its group in the list of the event.
    pub(super) group: usize,
    /// Its position in the group.
    pub(super) hook: usize,
    pub(super) matcher: Option<&'a str>,
    /// The group around it, in clients that have groups.
    pub(super) around: Option<&'a Map<String, Value>>,
    pub(super) value: &'a Value,
}

/// The first entry of this program for the event before a tool.
pub(super) fn find(settings: &Value, client: Client) -> Option<HookEntry<'_>> {
    find_in(settings, client, client.fields().before)
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

/// Whether the text of a file of its own has nothing left.
pub(super) fn is_bare(text: &str) -> bool {
    let value: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    value.keys().all(|name| name == "version")
}

/// Whether a hook runs this program for this client, with or without the guard of [`guarded`].
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
/// Most clients run the tool when the hook is killed, or its program is missing or cannot be started, which the program
/// itself cannot prevent. Status 2 with a line on stderr is a denial in all of them. A time limit that has passed, and
/// a shell that is killed, are still left to the client.
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
