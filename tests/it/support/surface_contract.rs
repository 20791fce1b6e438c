//! The scenarios that every surface passes, by name. A surface is a place where a person decides: a terminal, an inbox,
//! a chat. Its tests say for each name which test shows it, and [`holds`] fails if one is missing.

/// The names of the scenarios, with what each shows.
pub(crate) const SCENARIOS: &[(&str, &str)] = &[
    ("arming", "a key or click from before a control appeared decides nothing"),
    ("shifting", "after a decision the next call is not decided by the same keys or clicks"),
    ("elision", "a call with text that was left out is opened before it is approved"),
    ("edits", "while an edit is open, only the edited arguments can be approved"),
    ("drafts", "an unfinished edit is kept, with what is wrong with it"),
    ("floods", "every call of a large batch can be found, and equal ones are one entry"),
    ("bulk", "many calls are decided together, but none that was not seen"),
    ("stop", "stopping decides nothing and ends the run"),
    ("hostile text", "no text of a call or preview reaches the surface unescaped"),
    ("previews", "a change is shown as a change"),
];

/// Fails unless the surface names a test for each scenario, and each of these tests is in its source.
pub(crate) fn holds(surface: &str, source: &str, tests: &[(&str, &str)]) {
    for (scenario, shows) in SCENARIOS {
        let test = tests.iter().find(|(name, _)| name == scenario);
        let Some((_, test)) = test else {
            panic!("{surface} has no test of `{scenario}`: {shows}")
        };
        assert!(source.contains(&format!("fn {test}()")), "{surface} has no test `{test}`");
    }
}
