//! Names in conditions that would pass for the name of a field: misspelt tests, and tests without a field.

/// Names of tests in other systems, with the test that is meant.
const ELSEWHERE: &[(&str, &str)] = &[
    ("class", "is"),
    ("classes", "is"),
    ("contains", "matches"),
    ("eq", "equals"),
    ("ge", "at_least"),
    ("glob", "matches"),
    ("gt", "above"),
    ("gte", "at_least"),
    ("hosts", "host"),
    ("in", "equals"),
    ("inside", "within"),
    ("iss", "is"),
    ("ist", "is"),
    ("le", "at_most"),
    ("like", "matches"),
    ("lt", "below"),
    ("lte", "at_most"),
    ("max", "at_most"),
    ("min", "at_least"),
    ("one_of", "equals"),
    ("pattern", "matches"),
    ("prefix", "matches"),
    ("regex", "matches"),
    ("run", "runs"),
    ("starts_with", "matches"),
    ("under", "within"),
];

/// Tests that are no usual name of an argument, so that one without a field is a mistake.
const NO_FIELDS: &[&str] =
    &["equals", "matches", "above", "at_least", "below", "at_most", "within", "outside", "runs"];

/// The problem of a name below the field `field`, if it may be meant as one of these tests.
pub(super) fn of_test<'t>(
    field: &[String],
    key: &str,
    tests: impl Iterator<Item = &'t str>,
) -> Option<String> {
    let meant = near(tests, key)
        .or_else(|| ELSEWHERE.iter().find(|(name, _)| *name == key).map(|(_, meant)| *meant))?;
    let place = field.join("/");
    Some(format!(
        "`{key}` is no test of a field: is `{meant}` meant? \
         A field of that name in `{}` is written as `\"/{place}/{key}\"`",
        field.join(".")
    ))
}

/// The problem of the name of a field, if `any_path` or a test may be meant.
pub(super) fn of_field(key: &str, is_value: bool) -> Option<String> {
    if is_value && NO_FIELDS.contains(&key) {
        return Some(format!(
            "`{key}` is a test, and needs a field in front of it, such as `path.{key}`; \
             a field of that name is written as `\"/{key}\"`"
        ));
    }
    let near = near(["any_path"].into_iter(), key).filter(|near| *near != key).map(|near| {
        format!("is `{near}` meant by `{key}`? A field of that name is written as `\"/{key}\"`")
    });
    near.or_else(|| {
        let is_meant = key.starts_with("any_") && key != "any_path";
        is_meant.then(|| {
            format!(
                "`{key}` is no test: only `any_path` looks at all arguments, and others need a field in front of them, such \
                 as `command.matches`; a field of that name is written as `\"/{key}\"`"
            )
        })
    })
}

/// The name that differs from a text in one letter, or in two letters of a long name.
fn near<'n>(names: impl Iterator<Item = &'n str>, text: &str) -> Option<&'n str> {
    let distance = |name: &str| strsim::damerau_levenshtein(name, &text.to_lowercase());
    let most = |name: &str| match name.len() {
        0..=2 => 0,
        3..=4 => 1,
        _ => 2,
    };
    names.filter(|name| distance(name) <= most(name)).min_by_key(|name| distance(name))
}
