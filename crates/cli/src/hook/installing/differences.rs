//! The differences between the entries that are there and those that `install` writes.
//!
//! The entry of the event before a tool says with which options it was installed. We compare its `--limit` with the
//! client's limit. We write everything else that an entry of this program has anew from these options, and compare it
//! field by field. A person, another program or a merge of two files may have changed a field, and most of these changes
//! let a client run a call that waits for an answer.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Installation, entry};
use crate::hook::clients::Client;
use crate::hook::clients::files::HookEntry;
use crate::hook::clients::spec::{EntryForm, PluginForm};

const LIMIT: &str = "--limit";
const EVENT: &str = "--event";

/// The words of a command without those that belong to one entry, and the limit among them.
fn options(words: &[String]) -> (Vec<String>, Option<Duration>) {
    let (mut rest, mut limit) = (Vec::new(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if name != LIMIT && name != EVENT {
            rest.push(word.clone());
            continue;
        }
        let value = value.or_else(|| words.next().cloned());
        if name == LIMIT {
            let seconds = value.and_then(|it| it.parse().ok());
            limit = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        }
    }
    (rest, limit)
}

fn without_limit(client: Client) -> String {
    format!(
        "the command has no `{LIMIT}`: it answers within {} seconds, whatever the limit of the client is",
        client.shortest_limit().as_secs()
    )
}

/// The differences in a JSON file.
pub(super) fn of_entries(
    installation: &Installation,
    form: &EntryForm,
    settings: &Value,
) -> Vec<String> {
    let client = installation.client;
    let Some(words) = entry::find(settings, client).and_then(|it| entry::words(it.value)) else {
        return vec!["the command cannot be read".to_owned()];
    };
    let (command, limit) = options(&words);
    let mut found: Vec<_> = limit.is_none().then(|| without_limit(client)).into_iter().collect();
    let limit_of_entries = limit.unwrap_or_else(|| client.shortest_limit());
    let like = installation.clone().command(command).limit(limit_of_entries);
    let mut written = json!({});
    let words = |event: &str| like.words(Some(event));
    let before = entry::SwitchBefore::said(settings, client);
    if entry::add(&mut written, client, form, limit_of_entries, before, &words).is_err() {
        return found;
    }
    for event in form.events {
        let group = |settings: &Value| entry::find_in(settings, client, event).map(|it| parts(&it));
        match (group(&written), group(settings)) {
            (Some(written), Some(there)) => {
                found.extend(fields(event, &written, &there, limit.is_some()));
            }
            (_, None) => found.push(format!("there is no hook for `{event}`")),
            (None, Some(_)) => {}
        }
    }
    found
}

/// The fields of an entry, and of the group around it.
fn parts(entry: &HookEntry<'_>) -> Map<String, Value> {
    let mut fields = entry.value.as_object().cloned().unwrap_or_default();
    if let Some(around) = entry.around {
        fields.extend(
            around.iter().filter(|it| it.0 != "hooks").map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    fields
}

fn fields(
    event: &str,
    written: &Map<String, Value>,
    there: &Map<String, Value>,
    has_limit: bool,
) -> Vec<String> {
    let names = written.keys().chain(there.keys().filter(|name| !written.contains_key(*name)));
    let shown = |value: Option<&Value>| value.map_or("not there".to_owned(), Value::to_string);
    let differs = names.filter(|name| written.get(*name) != there.get(*name));
    differs
        .filter_map(|name| match name.as_str() {
            // Both follow from the limit, which is not known.
            "command" | "bash" | "timeout" | "timeoutSec" if !has_limit => None,
            "command" | "bash" => {
                Some(format!("the command of `{event}` is not the one that `install` writes"))
            }
            _ => {
                let there = shown(there.get(name));
                let writes = match written.get(name) {
                    Some(value) => format!("writes {value}"),
                    None => "does not write it".to_owned(),
                };
                Some(format!("`{name}` of `{event}` is {there} (`install` {writes})"))
            }
        })
        .collect()
}

/// The differences in a plugin.
pub(super) fn of_plugin(installation: &Installation, form: &PluginForm, text: &str) -> Vec<String> {
    let Some(words) = (form.words)(text) else {
        return vec!["the command cannot be read".to_owned()];
    };
    let (command, limit) = options(&words);
    let Some(limit) = limit else { return vec![without_limit(installation.client)] };
    let like = installation.clone().command(command).limit(limit);
    let written = (form.text)(&like.words(None), limit);
    if text == written {
        return Vec::new();
    }
    let line = |text: &str| text.lines().find(|it| it.starts_with(form.limit)).map(str::to_owned);
    match (line(text), line(&written)) {
        (Some(there), Some(written)) if there != written => {
            vec![format!(
                "the plugin has `{there}`, and `{written}` where `install` has written it"
            )]
        }
        _ => vec!["the plugin is not the one that `install` writes".to_owned()],
    }
}
