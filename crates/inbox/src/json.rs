//! Fields of JSON objects, set without the panic of an index.

use serde_json::Value;

/// Sets a field, if the value is an object.
pub(super) fn set(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value);
    }
}
