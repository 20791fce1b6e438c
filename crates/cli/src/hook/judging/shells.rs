//! Commands that open a shell or an interpreter whose input no hook sees.
//!
//! A rule that allows `python3 test.py` must not allow `python3`, which reads program text from its input. What is
//! typed into it later is no tool call that a hook sees. So whatever the rules say, we ask about a command that
//! starts a reader without telling it what to run.
//!
//! | command | asked, because |
//! |---|---|
//! | `python3` | it reads its input |
//! | `python3 test.py`, `python3 --version` | not asked |
//! | `bc <<< 1+2`, `echo 1+2 \| bc`, `command -v node` | not asked: the input is there already, and nothing is started |
//! | `bash -i -c ls` | `-i` reads input as well |
//! | `timeout 9 which bash` | is none: it says where the program is |
//! | `sudo -u ann bash` | the program among the operands of a wrapper is judged, too |
//! | `ls; sh` | each simple command of the text is judged |
//! | `eval "$(cat x"` | it cannot be read |
//!
//! The list of readers cannot be complete: it has those that agents are known to use. About all other programs the
//! rules decide.

use serde_json::Value;

use super::prompts;
use countersign::args::Args;
use countersign_shell::program_files::{program_name, without_version};
use countersign_shell::{Commands, Dialect, RedirectionTarget, SimpleCommand, Stage, Word};

/// Programs that read commands from their terminal when they are given none.
const READERS: &[&str] = &[
    "ash", "bash", "bc", "busybox", "cmd", "csh", "dash", "ed", "elvish", "ex", "fish", "ftp",
    "gdb", "ghci", "iex", "irb", "ksh", "lua", "mysql", "nc", "node", "nu", "perl", "php", "psql",
    "pwsh", "python", "python2", "python3", "ruby", "screen", "sftp", "sh", "sqlite3", "ssh", "su",
    "tclsh", "telnet", "tmux", "vi", "vim", "zsh",
];

/// Programs that run the program among their operands.
const WRAPPERS: &[&str] = &[
    "busybox", "command", "doas", "env", "exec", "nice", "nohup", "script", "setsid", "stdbuf",
    "sudo", "time", "timeout", "unbuffer", "xargs",
];

/// Programs that say where a program is, or what it is, and start none.
const NAMERS: &[&str] = &["man", "type", "whereis", "which"];

/// The reason why a command may open a shell that text can be typed into, and the key of that question. `types_unasked`
/// says that the client types into an open command without asking a hook.
pub(crate) fn doubt(
    command: &str,
    has_terminal: bool,
    types_unasked: bool,
) -> Option<(&'static str, String)> {
    if has_terminal {
        return Some(("open-shell", "it opens a terminal whose input is not seen".to_owned()));
    }
    let commands = match Commands::parse(command, Dialect::Bash) {
        Ok(commands) => commands,
        Err(refused) => {
            return Some((
                "shell-syntax",
                format!("the command cannot be read: {}", refused.why()),
            ));
        }
    };
    let told = told_by_text(&commands);
    let is_told = |command: &SimpleCommand| told.iter().any(|it| std::ptr::eq(*it, command));
    let open = |command| opens(command, is_told(command) || is_fed(command));
    if let Some(open) = commands.simple_commands().find_map(open) {
        return Some(("open-shell", format!("`{open}` opens a shell whose input is not seen")));
    }
    let waiting = types_unasked.then(|| commands.simple_commands().find_map(waits)).flatten()?;
    Some(("open-shell", format!("`{waiting}` waits for input that is not seen")))
}

/// Returns `true` if the arguments of a command ask for a terminal. A value of another type is one that the client may
/// take for yes.
pub(crate) fn has_terminal(args: &Args) -> bool {
    !matches!(args.get("tty"), None | Some(Value::Null | Value::Bool(false)))
}

/// Returns `true` if a command works in another directory than it begins in, or cannot be read.
pub(crate) fn changes_directory(command: &str) -> bool {
    let Ok(commands) = Commands::parse(command, Dialect::Bash) else { return true };
    commands.simple_commands().any(SimpleCommand::may_change_directory)
}

/// A word whose text only the shell knows, such as `$c`.
const UNKNOWN: &str = "?";

/// The program that reads its input, if this command starts one without telling it what to run.
///
/// Behind a wrapper each word could be the program, as the options of wrappers take values in many forms. So we try
/// all of them. A file with the name of a shell costs a question.
fn opens(command: &SimpleCommand, is_fed: bool) -> Option<String> {
    let words: Vec<_> =
        command.words().iter().map(|word| word.literal().unwrap_or(UNKNOWN)).collect();
    let mut rest = words.as_slice();
    while let [program, others @ ..] = rest {
        let name = program_name(program);
        // It says where a program is, and starts none.
        if name == "command" && matches!(others.first(), Some(&("-v" | "-V"))) {
            return None;
        }
        let base = without_version(name);
        let is_reader = READERS.contains(&name) || READERS.contains(&base);
        if WRAPPERS.contains(&name) {
            // The program that it runs is one of the words that follow.
            rest = others;
            continue;
        }
        // Behind an option it may be the value: `env -C which bash`.
        let at = words.len() - rest.len();
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        if NAMERS.contains(&name) && before.is_some_and(|it| !it.starts_with('-')) {
            return None;
        }
        let is_first = at == 0;
        // A program that only the shell knows may be any.
        if is_reader || (is_first && *program == UNKNOWN) {
            let interactive = others.iter().any(|word| is_interactive(word));
            let told = is_fed
                || others.iter().any(|word| !word.starts_with('-'))
                || others.iter().any(|word| tells(base, word));
            return (interactive || !told).then(|| (*name).to_owned());
        }
        if is_first {
            return None;
        }
        rest = others;
    }
    None
}

/// The commands whose input is what `echo` or `printf` writes into a pipe, which is in the text of the call.
fn told_by_text(commands: &Commands) -> Vec<&SimpleCommand> {
    let told = commands.pipelines().iter().filter_map(|pipeline| match pipeline.stages() {
        [Stage::Simple(first), Stage::Simple(second), ..] => {
            let name = first.words().first().and_then(Word::literal);
            matches!(name, Some("echo" | "printf")).then_some(second)
        }
        _ => None,
    });
    told.collect()
}

/// The program that waits for what is typed, also behind a wrapper.
fn waits(command: &SimpleCommand) -> Option<String> {
    let words: Vec<_> =
        command.words().iter().map(|word| word.literal().unwrap_or(UNKNOWN)).collect();
    let is_fed = is_fed(command);
    let mut rest = words.as_slice();
    while let [program, others @ ..] = rest {
        if prompts::waits(rest, is_fed) {
            return Some(program_name(program).to_owned());
        }
        if rest.len() == words.len() && !WRAPPERS.contains(&program_name(program)) {
            return None;
        }
        rest = others;
    }
    None
}

/// Returns `true` if the input of a command is there already: then nothing can be typed. A device does not count, as it
/// may be the terminal.
fn is_fed(command: &SimpleCommand) -> bool {
    let is_file = |word: &Word| {
        word.literal().is_some_and(|path| !path.contains("/dev/") && !path.contains("/proc/"))
    };
    command.redirections().iter().any(|it| match it.target() {
        RedirectionTarget::Read(word) => is_file(word),
        RedirectionTarget::HereDocument(_) | RedirectionTarget::HereString(_) => true,
        _ => false,
    })
}

/// Returns `true` if an option asks for input although there is a script.
fn is_interactive(word: &str) -> bool {
    let short = word.starts_with('-') && !word.starts_with("--");
    (short && word.contains('i') && word.len() <= 4) || word == "--interactive"
}

/// Returns `true` if an option by itself says that the program ends without reading input.
fn tells(program: &str, word: &str) -> bool {
    matches!(
        (program, word),
        ("node", "--test")
            | ("php", "-m" | "-i" | "--ini" | "--modules" | "--info")
            | ("screen", "-ls" | "-list")
    ) || matches!(word, "--version" | "--help" | "-V" | "-h" | "-v")
        || (word.starts_with("--") && word.contains('=') && word.starts_with("--eval"))
}

#[cfg(test)]
mod tests {
    use super::doubt;

    #[test]
    fn an_open_shell_is_found_behind_options_and_wrappers() {
        for command in [
            "bash",
            "bash --norc",
            "/bin/sh -i",
            "cd src && python3",
            "python3.12 -i script.py",
            "bash -i <<< ls",
            "command bash",
            "bash < /dev/stdin",
            "python3 < /proc/self/fd/0",
            "env A=b bash",
            "sudo -u ann zsh",
            "env -C which bash",
            "script -q /dev/null bash",
            "FOO=1 node",
            "(true; sqlite3)",
            "while :; do bash; done",
            "for c in bash; do $c; done",
            "$SHELL",
        ] {
            assert_eq!(doubt(command, false, true).map(|it| it.0), Some("open-shell"), "{command}");
        }
        assert!(doubt("ls", true, false).is_some());
        assert_eq!(doubt("f() { bash; }; f", false, false).map(|it| it.0), Some("shell-syntax"));
    }

    #[test]
    fn a_command_that_waits_is_asked_about_where_the_client_types_into_it_unasked() {
        for command in
            ["ssh h", "cd x && psql shop", "timeout 9 sqlite3 x.db", "env A=b docker exec -it c sh"]
        {
            assert_eq!(doubt(command, false, true).map(|it| it.0), Some("open-shell"), "{command}");
        }
        assert_eq!(doubt("psql shop", false, false), None);
    }

    #[test]
    fn a_command_that_says_what_it_runs_is_no_open_shell() {
        for command in [
            "bash -c 'ls'",
            "python3 script.py",
            "node --version",
            "node --test",
            "command -v node",
            "timeout 120 which python3",
            "bc <<< '1+2'",
            "php -m",
            "screen -ls",
            "ls -i",
            "grep bash README.md",
            "$PYTHON script.py",
            "psql shop < x.sql",
            "psql shop <<E\nselect 1\nE\n",
        ] {
            assert_eq!(doubt(command, false, true), None, "{command}");
        }
    }
}
