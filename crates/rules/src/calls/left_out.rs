//! The words of a command that say what it leaves out: these name no file that it reads or writes.
//!
//! For example, `grep -r --exclude=.env KEY .` does not read `.env`. We count only options of known programs, written in
//! full, that are certain to leave something out.

use countersign_shell::program_files::program_name;

/// Programs with the options whose values they leave out.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["grep", "egrep", "fgrep", "ggrep", "rgrep", "zgrep", "ug", "ugrep"],
        &["--exclude", "--exclude-dir"],
    ),
    (&["tar", "gtar", "bsdtar", "rsync", "du"], &["--exclude"]),
    (&["diff", "gdiff", "colordiff"], &["--exclude", "-x"]),
    (&["fd", "fdfind"], &["--exclude", "-E"]),
    (&["ls", "gls"], &["--ignore", "--hide", "-I"]),
    (&["tree"], &["-I"]),
    (&["ag"], &["--ignore", "--ignore-dir"]),
];

/// Returns `true` if the word at this place of a command says only what is left out.
pub(crate) fn is_left_out(argv: &[String], at: usize) -> bool {
    let Some(program) = argv.first().map(|it| program_name(it)) else { return false };
    let word = |at: usize| argv.get(at).map(String::as_str).unwrap_or_default();
    let before =
        |back: usize| at.checked_sub(back).filter(|it| *it > 0).map(word).unwrap_or_default();
    if argv.get(1..at).is_some_and(|words| words.iter().any(|it| it == "--")) {
        return false;
    }
    if matches!(program, "find" | "gfind" | "bfs") {
        // `! ! -name x` finds it.
        return matches!(before(1), "-name" | "-iname" | "-path" | "-ipath" | "-wholename")
            && matches!(before(2), "!" | "-not")
            && !matches!(before(3), "!" | "-not" | "-exec" | "-execdir")
            && !argv
                .get(1..at)
                .is_some_and(|words| words.iter().any(|it| it.starts_with("-exec")));
    }
    let options = OPTIONS.iter().filter(|(programs, _)| programs.contains(&program));
    options.flat_map(|(_, options)| *options).any(|option| {
        let attached = word(at).strip_prefix(option);
        attached.is_some_and(|rest| rest.starts_with('='))
            || before(1) == *option && takes_no_value(before(2))
    })
}

/// Returns `true` if a word takes no value from the next one, which may look like an option.
fn takes_no_value(word: &str) -> bool {
    match word.strip_prefix('-') {
        Some(letters) if letters.starts_with('-') => letters.contains('='),
        Some(letters) => letters.chars().all(|letter| "rRuNqainlvsHhz".contains(letter)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::is_left_out;

    #[test]
    fn only_the_value_of_an_option_that_leaves_out_is_left_out() {
        for (text, word) in [
            ("grep -r --exclude=.env K .", "--exclude=.env"),
            ("grep --exclude .env -r K .", ".env"),
            ("tar --exclude=.env -c .", "--exclude=.env"),
            ("find . ! -name .env", ".env"),
            ("find . -type f -not -name .env -print", ".env"),
            ("diff -ru -x .env a b", ".env"),
            ("find . -name '*.rs' -not -path ./x", "./x"),
        ] {
            assert!(left_out(text, word), "{text}");
        }
        for (text, word) in [
            ("grep -r K .env", ".env"),
            ("grep -e --exclude .env", ".env"),
            ("grep -- --exclude=.env .env", "--exclude=.env"),
            ("grep --excludes=.env K", "--excludes=.env"),
            ("cat --exclude=.env", "--exclude=.env"),
            ("find . -name .env", ".env"),
            ("find . ! ! -name .env", ".env"),
            ("find . -exec x ! -name .env", ".env"),
            ("tar -x .env", ".env"),
        ] {
            assert!(!left_out(text, word), "{text}");
        }
    }

    fn left_out(text: &str, word: &str) -> bool {
        let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
        is_left_out(&argv, argv.iter().position(|it| it == word).unwrap())
    }
}
