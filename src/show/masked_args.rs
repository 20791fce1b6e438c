//! Arguments with their secrets masked, for records that are kept.

use serde_json::{Map, Value};

use super::keys::{ShowRule, rule};
use super::mask::masked;
use super::piece::{Piece, Style, join};

/// The arguments of a call for a record, and whether anything is masked in them: the secrets that people are not shown
/// (rule S1), also in what is written into a script, as nothing is decided by a record.
///
/// ```
/// use countersign::show;
/// use serde_json::json;
///
/// let args = json!({"url": "https://api.example", "api_key": "sk-proj-Zx81mQp0aLw93kdT"});
/// let (masked, any) = show::masked_args(args.as_object().unwrap());
/// assert_eq!(masked["url"], "https://api.example");
/// assert_eq!((&masked["api_key"], any), (&json!(r"\{masked: 24 characters}"), true));
/// ```
#[must_use]
pub fn masked_args(args: &Map<String, Value>) -> (Map<String, Value>, bool) {
    let mut any = false;
    let masked = object(args, ShowRule::Free, &mut any);
    (masked, any)
}

fn object(map: &Map<String, Value>, around: ShowRule, any: &mut bool) -> Map<String, Value> {
    let value = |(name, value): (&String, &Value)| {
        (name.clone(), masked_value(value, rule(name, around), any))
    };
    map.iter().map(value).collect()
}

fn masked_value(value: &Value, rule: ShowRule, any: &mut bool) -> Value {
    match value {
        Value::String(text) => {
            let pieces = masked(text, rule, Style::PROSE);
            // A text without a secret stays as it is: a record is compared, and not shown.
            if !pieces.iter().any(|piece| matches!(piece, Piece::Masked(..))) {
                return value.clone();
            }
            *any = true;
            Value::String(join(&pieces))
        }
        Value::Array(items) => {
            items.iter().map(|item| masked_value(item, rule, any)).collect::<Vec<_>>().into()
        }
        Value::Object(map) => Value::Object(object(map, rule, any)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
