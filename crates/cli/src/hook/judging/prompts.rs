//! Commands that wait for what is typed, for a client that types it without asking a hook.
//!
//! Codex CLI writes into an open terminal (`write_stdin`) and shows that to no hook. So a rule that allows every command
//! would allow `psql shop`, and with it each statement that the client types into it. We ask about these commands:
//!
//! | command | ends by itself, and is not asked about |
//! |---|---|
//! | `ssh host`, `docker exec -it c sh`, `screen`, `script` | `ssh host uptime`, `docker exec c ls` |
//! | `psql shop`, `sqlite3 x.db`, `redis-cli` | `psql shop -c 'select 1'`, `sqlite3 x.db .tables`, `psql shop < x.sql` |
//! | `gdb -p 1`, `vim x`, `less x`, `top` | `gdb -batch …`, `top -b` |
//! | `rails console`, `nix-shell`, `deno` | `nix-shell --run x`, `deno run x.ts` |
//!
//! The list cannot be complete. Rules that allow commands by their classes ask about almost all of these by themselves.

use countersign_shell::program_files::{program_name, without_version};

/// The case in which a program of a row does not wait.
enum PromptEnd {
    /// With one of these options, also as the beginning of a word.
    With(&'static [&'static str]),
    /// With one of these options, or with this many operands.
    Told(&'static [&'static str], usize),
}

const PROGRAMS: &[(&[&str], PromptEnd)] = &[
    (
        &["byobu", "screen", "tmux", "zellij"],
        PromptEnd::With(&[
            "-ls",
            "-list",
            "ls",
            "list-",
            "has-session",
            "kill-",
            "send-keys",
            "capture-pane",
            "-V",
        ]),
    ),
    (&["cu", "dtach", "minicom", "mosh", "picocom", "telnet"], PromptEnd::With(&["--version"])),
    (&["newgrp", "script", "sg"], PromptEnd::With(&["-c", "--command", "--version"])),
    (
        &["nano", "nvim", "pico", "vi", "view", "vim", "vimdiff"],
        PromptEnd::With(&["-es", "-Es", "--headless", "--version", "--help"]),
    ),
    (
        &["info", "less", "man", "more", "most"],
        PromptEnd::With(&["-k", "-f", "-w", "--where", "--help", "--version"]),
    ),
    (&["emacs"], PromptEnd::With(&["-batch", "--batch", "--script", "--version"])),
    (&["btop", "htop", "top"], PromptEnd::With(&["-b", "-l", "--version"])),
    (
        &["cgdb", "gdb", "lldb", "rr"],
        PromptEnd::With(&["-batch", "--batch", "record", "--version"]),
    ),
    (&["ftp", "lftp", "sftp"], PromptEnd::With(&["-b", "-c", "-e", "-f"])),
    (
        &["mariadb", "mycli", "mysql", "pgcli", "psql", "usql"],
        PromptEnd::With(&[
            "-c",
            "-f",
            "-l",
            "-e",
            "--command",
            "--file",
            "--list",
            "--execute",
            "--version",
        ]),
    ),
    (
        &["clickhouse", "clickhouse-client", "cqlsh", "mongo", "mongosh", "sqlcmd", "sqlplus"],
        PromptEnd::With(&[
            "-q",
            "-Q",
            "-e",
            "-f",
            "--query",
            "--eval",
            "--file",
            "--execute",
            "--version",
        ]),
    ),
    (&["duckdb"], PromptEnd::Told(&["-c", "-f", "--version"], 2)),
    (&["litecli", "sqlite3"], PromptEnd::Told(&["-version", "--version", "-help"], 2)),
    (
        &["redis-cli", "valkey-cli"],
        PromptEnd::Told(&["--scan", "--eval", "--pipe", "--bigkeys", "--version"], 1),
    ),
    (
        &[
            "R", "clj", "deno", "elixir", "erl", "gnuplot", "groovysh", "ipython", "jshell",
            "julia", "maxima", "ocaml", "octave", "pry", "scala", "swift", "utop",
        ],
        PromptEnd::Told(
            &["-e", "-c", "--eval", "--version", "--help", "-f", "--script", "-noshell"],
            1,
        ),
    ),
    (&["nix-shell"], PromptEnd::With(&["--run", "--command"])),
    (&["chroot", "nsenter", "unshare"], PromptEnd::Told(&[], 2)),
];

/// Options of `ssh` with a value.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOopQRSWw";

/// Programs that open a console by one of their sub-commands.
const CONSOLES: &[(&str, &[&str])] = &[
    ("artisan", &["tinker"]),
    ("bundle", &["console"]),
    ("bun", &["repl"]),
    ("deno", &["repl"]),
    ("distrobox", &["enter"]),
    ("fly", &["console"]),
    ("flyctl", &["console"]),
    ("flask", &["shell"]),
    ("gcloud", &["ssh"]),
    ("gh", &["ssh"]),
    ("heroku", &["run", "psql", "console"]),
    ("lein", &["repl"]),
    ("manage.py", &["shell", "dbshell"]),
    ("multipass", &["shell"]),
    ("pipenv", &["shell"]),
    ("poetry", &["shell"]),
    ("rails", &["console", "c", "dbconsole", "db"]),
    ("toolbox", &["enter"]),
    ("vagrant", &["ssh"]),
];

/// Programs that run another one in a container, and attach a terminal by an option.
const CONTAINERS: &[&str] =
    &["crictl", "docker", "docker-compose", "kubectl", "lxc", "nerdctl", "oc", "podman"];

/// Returns `true` if a command waits for what is typed into it. `is_fed` says that the text of the command gives it
/// its input.
pub(crate) fn waits(words: &[&str], is_fed: bool) -> bool {
    let [program, rest @ ..] = words else { return false };
    let name = program_name(program);
    if is_fed {
        return false;
    }
    let row = PROGRAMS
        .iter()
        .find(|(names, _)| names.contains(&name) || names.contains(&without_version(name)));
    if row.is_some_and(|(_, ends)| !has_ended(ends, rest)) {
        return true;
    }
    match name {
        "ssh" => is_login(rest),
        _ if CONTAINERS.contains(&name) => is_attached(rest),
        "sudo" | "doas" => rest.iter().any(|it| matches!(*it, "-i" | "-s" | "--login" | "--shell")),
        "nix" | "guix" => {
            matches!(rest.first(), Some(&("develop" | "shell" | "repl")))
                && !rest.iter().any(|it| matches!(*it, "-c" | "--command" | "--"))
        }
        "aws" => rest.contains(&"start-session") || rest.contains(&"execute-command"),
        _ if is_module_console(name, rest) => true,
        _ => CONSOLES.iter().any(|(program, subs)| {
            // A script among the words counts, as in `python manage.py shell`.
            let at = words.iter().position(|it| program_name(it) == *program);
            let after = at.and_then(|at| words.get(at + 1..)).unwrap_or_default();
            let told = after.iter().any(|it| matches!(*it, "-c" | "--command" | "--"));
            !told && after.iter().any(|it| subs.contains(it))
        }),
    }
}

fn has_ended(ends: &PromptEnd, rest: &[&str]) -> bool {
    let has =
        |options: &[&str]| rest.iter().any(|word| options.iter().any(|it| word.starts_with(it)));
    match ends {
        PromptEnd::With(options) => has(options),
        PromptEnd::Told(options, operands) => {
            has(options) || rest.iter().filter(|it| !it.starts_with('-')).count() >= *operands
        }
    }
}

/// Returns `true` if `ssh` is given a host and no command.
fn is_login(rest: &[&str]) -> bool {
    let mut words = rest.iter();
    let mut operands = 0;
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some(letters) if operands == 0 => {
                if letters.starts_with(['N', 'V', 'Q', 'G']) {
                    return false;
                }
                if letters.len() == 1 && SSH_VALUES.contains(letters) {
                    words.next();
                }
            }
            _ => operands += 1,
        }
    }
    operands < 2
}

/// Returns `true` if a terminal is attached to what runs in a container: `-it`, `attach`, or `compose exec`, which
/// does so by itself.
fn is_attached(rest: &[&str]) -> bool {
    let bundled = |word: &&str| {
        word.strip_prefix('-')
            .is_some_and(|it| !it.starts_with('-') && it.len() < 4 && it.contains(['i', 't']))
    };
    let runs = rest.iter().any(|it| matches!(*it, "exec" | "run" | "start" | "debug" | "shell"));
    let by_option =
        rest.iter().any(|it| bundled(it) || matches!(*it, "--tty" | "--interactive" | "--stdin"));
    let is_compose = rest.first() == Some(&"compose") && !rest.contains(&"-T");
    rest.contains(&"attach") || runs && (by_option || is_compose && rest.contains(&"exec"))
}

/// Modules of Python that read commands.
fn is_module_console(name: &str, rest: &[&str]) -> bool {
    let modules = ["IPython", "asyncio", "code", "pdb", "ptpython", "bpython"];
    let of_python = without_version(name) == "python";
    let module = rest.iter().position(|it| *it == "-m").and_then(|at| rest.get(at + 1));
    let is_debugger =
        matches!(without_version(name), "perl") && rest.iter().any(|it| it.starts_with("-d"));
    of_python && module.is_some_and(|it| modules.contains(it))
        || name == "node" && rest.first() == Some(&"inspect")
        || is_debugger
}

#[cfg(test)]
mod tests {
    use super::waits;

    fn is_waiting(command: &str) -> bool {
        waits(&command.split(' ').collect::<Vec<_>>(), false)
    }

    #[test]
    fn a_command_that_waits_for_what_is_typed_is_found() {
        for command in [
            "ssh h",
            "ssh -p 22 ann@h",
            "ssh -tt h",
            "script",
            "script log",
            "screen -S x",
            "tmux new -d",
            "tmux",
            "docker exec -it c sh",
            "docker exec -i -t c bash",
            "docker run --rm -ti alpine",
            "docker attach c",
            "docker compose exec web sh",
            "kubectl exec -it p -- sh",
            "kubectl attach p",
            "sqlite3 x.db",
            "psql db",
            "psql -h host db",
            "mysql -u root shop",
            "redis-cli",
            "mongosh",
            "ipython",
            "ipython3",
            "deno",
            "R",
            "julia",
            "gdb -p 1",
            "lldb ./a.out",
            "vim x",
            "vi x",
            "nano x",
            "emacs x",
            "less x",
            "man ls",
            "top",
            "htop",
            "rails console",
            "bin/rails c",
            "python3 manage.py shell",
            "php artisan tinker",
            "flask shell",
            "nix-shell",
            "nix develop",
            "poetry shell",
            "vagrant ssh",
            "gcloud compute ssh vm",
            "aws ssm start-session --target i",
            "sudo -i",
            "sudo -s",
            "python3 -m pdb x.py",
            "python -m code",
            "node inspect x.js",
            "perl -de0",
            "chroot /x",
            "sftp h",
            "mosh h",
            "telnet h",
            "heroku run bash",
            "lein repl",
            "gh codespace ssh",
        ] {
            assert!(is_waiting(command), "{command}");
        }
    }

    #[test]
    fn a_command_that_ends_by_itself_is_not() {
        for command in [
            "ssh h uptime",
            "ssh -i key -o A=b h ls",
            "ssh -N h",
            "tmux ls",
            "tmux kill-session",
            "script -c ls log",
            "docker exec c ls",
            "docker run --rm alpine ls",
            "docker compose up -d",
            "docker compose exec -T web ls",
            "docker ps -a",
            "kubectl get pods",
            "kubectl logs p",
            "sqlite3 x.db .tables",
            "psql db -c x",
            "psql -f x.sql db",
            "mysql -e x",
            "redis-cli get a",
            "mongosh --eval x",
            "deno run x.ts",
            "R --version",
            "julia x.jl",
            "gdb -batch -ex bt a",
            "emacs --batch x",
            "top -b -n1",
            "rails test",
            "python3 manage.py test",
            "php artisan migrate",
            "nix-shell --run make",
            "nix develop -c make",
            "poetry install",
            "vagrant ssh -c ls",
            "gcloud compute ssh vm --command ls",
            "python3 -m pytest",
            "node x.js",
            "perl x.pl",
            "chroot /x ls",
            "cargo test",
            "git log",
            "ls",
            "man -k x",
            "gh pr list",
            "sudo ls",
            "aws s3 ls",
        ] {
            assert!(!is_waiting(command), "{command}");
        }
        assert!(!waits(&["psql", "db"], true), "its input is in the text");
    }
}
