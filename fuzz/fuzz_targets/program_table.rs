//! Files that describe programs, and commands that are judged with them.
#![no_main]

mod text;

use countersign_shell::{Classifier, Dialect, Preset, Programs, SearchPath, Workspace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (table, command) = match input.iter().position(|byte| *byte == 0) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &b""[..]),
    };
    let built_in = Programs::built_in();
    let loaded = text::never_panics(table, |table| built_in.with(table));
    if let (Some(Ok(programs)), Ok(command)) = (loaded, std::str::from_utf8(command)) {
        let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
            .with_search_path(SearchPath::unchecked())
            .with_programs(programs);
        let _ = classifier.judge(command, Dialect::Bash);
    }
});
