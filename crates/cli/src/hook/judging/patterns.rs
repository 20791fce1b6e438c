//! Patterns of paths in calls that look for files.
//!
//! A pattern is relative to the directory that a call names, and rules judge that directory. We do not read patterns
//! as any client does: we doubt each in which any part may lead elsewhere.

use std::path::Path;

use serde_json::Value;

/// Returns `true` if a text of a value may be a pattern for files outside of this directory.
pub(crate) fn lead_out(value: &Value, directory: &Path) -> bool {
    match value {
        Value::String(text) => leads_out(text, directory),
        Value::Array(items) => items.iter().any(|item| lead_out(item, directory)),
        Value::Object(fields) => fields.values().any(|field| lead_out(field, directory)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The characters that begin, separate and end the alternatives of a pattern: `{a,b}`, `@(a|b)`.
const ALTERNATIVES: [char; 6] = ['{', '}', ',', '(', ')', '|'];

/// The characters that some readers take away before they compare a name: `[.].` and `\..` are `..`.
const QUOTES: [char; 10] = ['[', ']', '\\', '{', '}', '(', ')', '@', '+', '!'];

fn leads_out(pattern: &str, directory: &Path) -> bool {
    let is_up = |name: &str| name.len() > 1 && name.chars().all(|c| c == '.');
    // A set may stand for a dot: `[.-.]`, `[!a]`.
    let has_dots = |name: &str| {
        let sets = name.matches('[').count();
        sets > 0 && sets + name.matches('.').count() > 1 && {
            let outside: String =
                name.split('[').map(|part| part.rsplit(']').next().unwrap_or_default()).collect();
            outside.chars().all(|c| c == '.' || QUOTES.contains(&c))
        }
    };
    if pattern.split('/').any(has_dots) {
        return true;
    }
    let mut quoted = pattern.split('/').map(|name| name.replace(QUOTES, ""));
    // Two alternatives that are a dot make a name of two dots: `{.,a}{.,b}`.
    let dots = |name: &str| name.split(ALTERNATIVES).filter(|part| *part == ".").count();
    let mut parts = pattern.split(ALTERNATIVES).flat_map(|part| part.split(['/', '\\']));
    pattern.contains(char::is_control)
        || quoted.any(|name| is_up(&name))
        || parts.any(is_up)
        || pattern.split('/').any(|name| dots(name) > 1)
        || begins_elsewhere(pattern, directory)
}

/// Returns `true` if a pattern, or an alternative at its beginning, is an absolute path outside of the directory.
fn begins_elsewhere(pattern: &str, directory: &Path) -> bool {
    let is_elsewhere = |text: &str| {
        let bare = text.trim_start_matches(['[', '\\']);
        bare.starts_with(['/', '\\', '~', '$', '%']) || text.starts_with('\\') || text.contains(':')
    };
    let (first, rest) = match pattern.find(['{', '(']) {
        Some(at) => pattern.split_at(at),
        None => (pattern, ""),
    };
    if !first.trim_start_matches(['@', '+', '?', '*', '!']).is_empty() {
        return is_elsewhere(first) && !Path::new(first).starts_with(directory);
    }
    // It begins with alternatives. What follows an empty one may be the beginning.
    if rest.starts_with('(') && first.starts_with(['?', '*', '!']) {
        return true;
    }
    let (group, _) = rest.split_once(['}', ')']).unwrap_or((rest, ""));
    let mut alternatives = group.get(1..).unwrap_or_default().split([',', '|', '{', '(']);
    !rest.is_empty() && alternatives.any(|part| part.is_empty() || is_elsewhere(part))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::leads_out;

    #[test]
    fn a_pattern_that_leads_out_is_found() {
        for pattern in [
            "/etc/*",
            "../*",
            "src/../../*",
            "{..,src}/*",
            "{/etc,src}/*",
            "@(..|src)/*",
            "~/*",
            "a{,/..}/*",
            "$HOME/*",
            "file:///etc/*",
            "/w/../etc/*",
            "/workshop/*",
            "..",
            "a\0b",
            "C:\\*",
            "[.]./*",
            ".[.]/*",
            "[.-.][.-.]/*",
            ".[!a]/*",
            "\\.\\./*",
            "{.,a}{.,b}/*",
            "{,a}/etc/*",
            "?(a)/etc/*",
            "[/]etc/*",
            "@(/etc|src)/*",
            "{{/etc,a},b}/*",
            ".{.,a}/*",
        ] {
            assert!(leads_out(pattern, Path::new("/w")), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_below_the_directory_is_no_doubt() {
        for pattern in [
            "**/*.rs",
            "/w/src/*",
            "/w",
            "*.{js,ts}",
            "src{/a,/b}/*",
            "{1..3}.txt",
            "a..b",
            "[!a]*",
            "{src,tests}/**/*.rs",
            "@(src|tests)/*",
            "*",
            "./src/*",
            ".*",
            ".{git,hg}ignore",
            "**/*",
            "/w/{src,tests}/*",
        ] {
            assert!(!leads_out(pattern, Path::new("/w")), "{pattern}");
        }
    }
}
