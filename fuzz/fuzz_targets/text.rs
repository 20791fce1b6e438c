//! The common part of the targets for text.

/// Calls a parser with the input, if that is UTF-8. The parser decides by its result; only a panic is a finding.
pub fn never_panics<T, E: std::fmt::Display>(
    input: &[u8],
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Option<Result<T, String>> {
    let text = std::str::from_utf8(input).ok()?;
    Some(parse(text).map_err(|error| error.to_string()))
}
