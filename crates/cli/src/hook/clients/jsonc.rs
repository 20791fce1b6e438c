//! JSON with comments and with commas before a bracket that closes, as editors and clients read it.

use serde_json::Value;

/// The value of a text; `None` where it is none even without comments, or where readers do not agree on the end
/// of a comment.
pub(crate) fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(&plain(text)?).ok()
}

/// The characters that end a comment for some readers, and not for all.
const ODD_LINE_ENDS: [char; 3] = ['\r', '\u{2028}', '\u{2029}'];

/// A JSON text without comments and without commas before a bracket that closes, as editors and clients read it. `None` for a
/// comment that ends earlier to some of them.
fn plain(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let (taken, kept) = if c == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            let end = end.map_or(rest.len(), |(at, _)| at + 1);
            (end, true)
        } else if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let comment = rest.get(..end)?;
            if comment.trim_end_matches('\r').contains(ODD_LINE_ENDS) {
                return None;
            }
            (end, false)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |at| at + 2), false)
        } else {
            if matches!(c, '}' | ']') && out.trim_end().ends_with(',') {
                out.truncate(out.trim_end().len() - 1);
            }
            (c.len_utf8(), true)
        };
        let (front, back) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        if kept {
            out.push_str(front);
        }
        rest = back;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{parsed, plain};

    #[test]
    fn a_comment_ends_where_every_reader_ends_it() {
        assert!(parsed("{ // x\r\n \"a\": 1 }").is_some());
        for end in ['\r', '\u{2028}', '\u{2029}'] {
            let text = format!("{{ // x{end} \"shell\": \"./evil\", // y\n \"a\": 1 }}");
            assert_eq!(parsed(&text), None, "{end:?}");
        }
    }

    #[test]
    fn comments_and_last_commas_are_no_part_of_the_settings() {
        let text = "{ // no\n \"a\": \"// \\\" /* yes\", /* no } */ \"b\": [1, 2,],\n}";
        let value: serde_json::Value = serde_json::from_str(&plain(text).unwrap()).unwrap();
        assert_eq!(value, serde_json::json!({"a": "// \" /* yes", "b": [1, 2]}));
    }
}
