//! Properties of every text.

use std::time::{Duration, Instant};

use countersign_shell::{Commands, Dialect, Preset};
use proptest::prelude::*;

use super::classifier;

/// Pieces that shells give a meaning to.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "ls",
        "cat",
        "git",
        "rm",
        "cd",
        "echo",
        "test",
        "[",
        "]",
        "xargs",
        "find",
        "-exec",
        "bash",
        "-c",
        "src",
        "../x",
        "~/.ssh",
        " ",
        " ",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        ">>",
        "<<",
        "<<<",
        "<(",
        "2>&1",
        "'",
        "\"",
        "\\",
        "$",
        "$(",
        "${",
        "`",
        "*",
        "?",
        "[a]",
        "!",
        "#",
        "=",
        "A=1",
        "-",
        "--",
        "-n",
        "E\n",
        "\r",
        "\0",
        "\u{a0}",
        "\u{202e}",
        "é",
        "@{0}",
        "{}",
        "if ",
        "; then ",
        "; fi",
        "time",
        "for f in a b; do ",
        "; done",
        "while ",
        "{ ",
        "; }",
        "[[ ",
        " ]]",
        "{a,b}",
        "|&",
        "$f",
        "read -r f",
        "<((",
        ">((",
        "=((",
        "$((",
        "((",
        "))",
        "case x in ",
        "x)",
        ";;",
        "esac",
        "<<E\n",
        "\nE\n",
        "~root",
        "''~",
        "x=",
        ":~",
        "{1..64}",
        "\\\n",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
        1 => any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let repeated = (proptest::collection::vec(piece(), 1..4), 1_usize..400);
    prop_oneof![
        9 => proptest::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat()),
        1 => repeated.prop_map(|(pieces, times)| pieces.concat().repeat(times)),
    ]
}

/// Writes a word so that every shell gives it back as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Nothing panics, every text is either read or refused, and neither time nor the number of words grows beyond a limit.
    #[test]
    fn parsing_and_judging_are_total(text in text()) {
        for dialect in [Dialect::Sh, Dialect::Bash, Dialect::Zsh] {
            let start = Instant::now();
            let parsed = Commands::parse(&text, dialect);
            let judgement = classifier(Preset::Developer).judge(&text, dialect);
            match parsed {
                Ok(commands) => {
                    let words: usize = commands.simple_commands().map(|one| one.words().len()).sum();
                    prop_assert!(words <= 4_096 + 64, "{}", words);
                    for command in commands.simple_commands() {
                        prop_assert!(text.get(command.span()).is_some());
                    }
                }
                Err(refused) => {
                    prop_assert!(!judgement.decision().is_allow(), "{}", refused);
                    prop_assert!(refused.at() <= text.len());
                }
            }
            prop_assert!(start.elapsed() < Duration::from_secs(5), "{:?}", text);
        }
    }

    /// An addition to a text never makes it less strict.
    #[test]
    fn an_added_command_never_makes_a_text_less_strict(one in text(), other in text()) {
        let judge = |text: &str| classifier(Preset::Developer).judge(text, Dialect::Bash).decision();
        if Commands::parse(&one, Dialect::Bash).is_ok() && Commands::parse(&other, Dialect::Bash).is_ok() && !one.contains("<<") && !one.contains('#') {
            let both = format!("{one}\n{other}");
            prop_assert!(judge(&both) >= judge(&one), "{}", both);
        }
    }

    /// Whatever words are quoted, they come out as they went in, and the verdict does not depend on the quoting.
    #[test]
    fn quoted_words_are_read_back(words in proptest::collection::vec("[ -~]{0,12}", 1..6)) {
        // Bash takes such a word for the name of a job, with quotes around it, too.
        prop_assume!(!words[0].starts_with('%'));
        let text: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let commands = Commands::parse(&text.join(" "), Dialect::Sh).unwrap();
        let argv: Vec<_> = commands.simple_commands().map(|command| command.argv().unwrap().join("\0")).collect();
        prop_assert_eq!(argv, vec![words.join("\0")]);
    }

    /// An allowed text stays allowed, with the same reasons, when its words are written with quotes.
    #[test]
    fn quoting_changes_no_verdict(text in text()) {
        if let Ok(commands) = Commands::parse(&text, Dialect::Sh) {
            let commands: Vec<_> = commands.simple_commands().collect();
            if let [command] = commands.as_slice()
                && let Some(argv) = command.argv()
                && !argv.is_empty() && command.redirections().is_empty() && command.assignments().is_empty()
            {
                let again: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
                let judge = |text: &str| classifier(Preset::Developer).judge(text, Dialect::Sh);
                prop_assert_eq!(judge(&text).decision(), judge(&again.join(" ")).decision());
            }
        }
    }
}
