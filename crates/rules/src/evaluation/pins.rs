//! The pins of the questions about a call besides the rules: the resolved paths of its arguments, and what the
//! table says about its commands (rule R6).

use std::rc::Rc;

use serde_json::Value;

use super::patterns::CONTENT;
use crate::calls::command::CommandView;
use crate::matching::examined_call::ExaminedCall;
use crate::readings::shells;

/// To how many resolved paths questions are bound at most. A call that names more is bound to its arguments and the first
/// of them.
const MAX_PINS: usize = 64;

/// Binds to the resolved paths of the arguments, and to what the table says about commands.
///
/// The first place of a path is the one that is written, and the others are resolved. Binding the question to these means that a link which leads elsewhere on
/// the approved pass is a new question. Nothing is promised between the permit and the moment at which the tool opens
/// the file.
pub(super) fn of_paths_and_commands(
    examined: &ExaminedCall<'_>,
    views: &[(Vec<String>, Rc<CommandView>)],
) -> Vec<(String, String)> {
    let mut pins = Vec::new();
    for (field, view) in views {
        let digest = crate::format::rule::hex_digest(view.judged().as_bytes());
        pins.push((format!("commands of {}", field.join(".")), digest));
    }
    if !examined.places().looks() {
        return pins;
    }
    for (name, value) in examined.call.args {
        // The model's words about the call are no path, and another wording of them is no other question.
        if examined.shell_field.is_some() && shells::is_for_people(name, value) {
            continue;
        }
        if views.iter().all(|(field, _)| field.first() != Some(name)) {
            pin(examined, &mut pins, name, value, !CONTENT.contains(&name.as_str()));
        }
    }
    pins
}

/// Binds to the place that a text leads to, and to those of the texts within it, up to so many.
fn pin(
    examined: &ExaminedCall<'_>,
    pins: &mut Vec<(String, String)>,
    name: &str,
    value: &Value,
    within: bool,
) {
    if pins.len() >= MAX_PINS {
        return;
    }
    match value {
        Value::String(text) => {
            if let Some(place) = examined.resolved_place(text) {
                pins.push((format!("path of {name}"), place));
            }
        }
        Value::Array(items) if within => items.iter().enumerate().for_each(|(at, item)| {
            pin(examined, pins, &format!("{name}/{at}"), item, within);
        }),
        Value::Object(map) if within => map.iter().for_each(|(key, value)| {
            pin(examined, pins, &format!("{name}/{key}"), value, within);
        }),
        _ => {}
    }
}
