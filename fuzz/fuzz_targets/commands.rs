//! Shell commands, in each dialect.
#![no_main]

mod text;

use countersign_shell::{Classifier, Commands, Dialect, Preset, SearchPath, Workspace};
use libfuzzer_sys::fuzz_target;

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fuzz_target!(|input: &[u8]| {
    for dialect in [Dialect::Sh, Dialect::Bash, Dialect::Zsh] {
        let Some(parsed) = text::never_panics(input, |text| Commands::parse(text, dialect)) else {
            return;
        };
        let Ok(text) = std::str::from_utf8(input) else { return };
        for preset in [Preset::Developer, Preset::Reader] {
            let classifier = Classifier::new(Workspace::lexical("/src/project"), preset)
                .with_search_path(SearchPath::unchecked());
            let judgement = classifier.judge(text, dialect);
            let Ok(commands) = &parsed else {
                assert!(!judgement.decision().is_allow(), "refused, and allowed: {text:?}");
                continue;
            };
            let simple: Vec<_> = commands.simple_commands().collect();
            if let [command] = simple.as_slice()
                && let Some(argv) = command.argv()
                && !argv.is_empty()
                && command.redirections().is_empty()
                && command.assignments().is_empty()
            {
                let again: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
                let again = classifier.judge(&again.join(" "), dialect);
                assert_eq!(judgement.decision(), again.decision(), "{text:?}");
            }
        }
    }
});
