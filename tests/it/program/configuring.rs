//! One configuration: the command line, the environment, a file of the user. And no other user can change any of it.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use super::{Ended, User, ended};

/// Parks an ask with this tool, and expects that it works.
fn park(user: &User, tool: &str, options: &[&str], env: &[(&str, &str)]) {
    let mut command = user.command(&[&["asks"], options, &["park"]].concat());
    command.envs(env.iter().copied()).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ask = json!({"tool": tool, "args": {}}).to_string();
    child.stdin.take().unwrap().write_all(ask.as_bytes()).unwrap();
    let ended = ended(&child.wait_with_output().unwrap());
    assert_eq!(ended.status, 0, "{ended:?}");
}

/// The tools of the asks in a store.
fn tools(user: &User, options: &[&str]) -> Vec<String> {
    let listed = user.run(&[&["asks"], options, &["list"]].concat());
    assert_eq!(listed.status, 0, "{listed:?}");
    listed.lines().iter().map(|line| line["tool"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_command_line_comes_before_the_environment_and_that_before_the_file() {
    let user = User::new();
    let url = |name: &str| format!("sqlite://{}", user.home().join(name).display());
    let (file, env, option) = (url("file.db"), url("env.db"), url("option.db"));
    let options = ["--store", option.as_str()];
    park(&user, "by_default", &[], &[]);
    user.configure(&format!("store = {file:?}\nprincipal = \"ann\"\n"));
    park(&user, "by_file", &[], &[]);
    park(&user, "by_environment", &[], &[("COUNTERSIGN_STORE", &env)]);
    park(&user, "by_option", &options, &[("COUNTERSIGN_STORE", &env)]);
    assert_eq!(tools(&user, &[]), ["by_file"]);
    assert_eq!(tools(&user, &["--store", &env]), ["by_environment"]);
    assert_eq!(tools(&user, &options), ["by_option"]);
    let default = format!("sqlite:{}", user.state("asks.db").display());
    assert_eq!(tools(&user, &["--store", &default]), ["by_default"]);
    // A bare path is a file, too.
    assert_eq!(tools(&user, &["--store", user.state("asks.db").to_str().unwrap()]), ["by_default"]);
    let elsewhere = user.home().join("other.toml");
    std::fs::write(&elsewhere, format!("store = {env:?}")).unwrap();
    let listed = user.run(&["--config", elsewhere.to_str().unwrap(), "asks", "list"]);
    assert_eq!(listed.lines()[0]["tool"], "by_environment");
}

#[test]
fn the_xdg_directories_are_used_and_relative_ones_ignored() {
    let user = User::new();
    let state = user.home().join("elsewhere");
    let init = |value: &str| {
        let mut command = user.command(&["asks", "init"]);
        assert!(command.env("XDG_STATE_HOME", value).status().unwrap().success());
    };
    init(state.to_str().unwrap());
    assert!(state.join("countersign/asks.db").exists() && !user.state("asks.db").exists());
    init("relative");
    assert!(user.state("asks.db").exists() && !user.home().join("relative").exists());
}

#[test]
fn a_store_in_memory_ends_with_its_process() {
    let user = User::new();
    park(&user, "gone", &["--store", "memory:"], &[]);
    assert_eq!(tools(&user, &["--store", "memory:"]), [""; 0]);
    assert!(!user.state("").exists(), "nothing is created that was not named");
}

/// L9: "A command about an existing store does not create one." A report over a deleted store would stay green.
#[test]
fn a_command_about_an_existing_store_creates_none() {
    let user = User::new();
    for command in [
        &["asks", "list"][..],
        &["asks", "verify"],
        &["grants", "list"],
        &["grants", "prune"],
        &["grants", "revoke", "x"],
        &["pins", "list"],
        &["pins", "accept", "--all"],
    ] {
        let said = user.run(command);
        assert_eq!((said.status, said.out.as_str()), (1, ""), "{command:?}: {said:?}");
        assert!(said.err.contains("there is no store at"), "{command:?}: {}", said.err);
        assert!(!user.state("").exists(), "{command:?} has created something");
    }
}

#[test]
fn an_unusable_configuration_is_a_one_line_error_and_runs_nothing() {
    let user = User::new();
    let refused = |ended: Ended, why: &str| {
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(ended.err.contains(why) && ended.err.lines().count() == 1, "{ended:?}");
    };
    refused(user.run(&["--config", "missing.toml", "asks", "init"]), "no such file");
    for (text, why) in [
        ("stroe = \"memory:\"", "unknown field"),
        ("store = \"mysql://ann:secret@db/asks\"", "is no store"),
        ("store = 7", "invalid type"),
        ("store =", "config.toml"),
        ("[inbox]\nlisten = \"everywhere\"", "config.toml"),
        ("[hook]\nmode = 1", "unknown field"),
    ] {
        user.configure(text);
        let ended = user.run(&["asks", "init"]);
        assert!(!ended.err.contains("secret"), "S2: {ended:?}");
        refused(ended, why);
    }
    assert!(!user.state("").exists());
}

#[cfg(unix)]
mod on_a_shared_machine {
    use std::fs::{self, Permissions};
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    use serde_json::json;

    use super::{User, park, tools};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_default_store_is_created_for_its_user_alone() {
        let user = User::new();
        park(&user, "rm", &[], &[]);
        assert_eq!(mode(&user.state("")), 0o700);
        assert_eq!(mode(&user.state("asks.db")), 0o600);
        let named = user.home().join("named.db");
        park(&user, "rm", &["--store", named.to_str().unwrap()], &[]);
        assert_eq!(mode(&named), 0o600);
    }

    /// The files below a folder, and the folders.
    fn all_below(folder: &Path) -> Vec<PathBuf> {
        let below = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        below
            .flat_map(|path| match path.is_dir() {
                true => [vec![path.clone()], all_below(&path)].concat(),
                false => vec![path],
            })
            .collect()
    }

    // The notes of a hook, the record of what it is set to, keys, secrets and stores: no other account reads any of them,
    // whatever the user's `umask`.
    #[test]
    fn every_file_that_the_program_keeps_is_for_its_user_alone() {
        let user = User::new();
        user.own_rules("version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n");
        let payload = |event: &str, more: serde_json::Value| {
            let mut payload = json!({
                "session_id": "s1", "cwd": user.home(), "hook_event_name": event,
                "transcript_path": "/dev/null", "permission_mode": "default",
            });
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            payload.to_string()
        };
        let call = |command: &str| json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1"});
        for payload in [
            payload("SessionStart", json!({"source": "startup"})),
            payload("PreToolUse", call("true")),
            payload(
                "PreToolUse",
                json!({"tool_name": "Unknown", "tool_input": {}, "tool_use_id": "t2"}),
            ),
        ] {
            let mut command = user.command(&["hook", "claude", "--limit", "90", "--wait", "0"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
            child.wait_with_output().unwrap();
        }
        park(&user, "rm", &[], &[]);
        let mut inbox = user.command(&["inbox", "--listen", "127.0.0.1:0", "--new-secret"]);
        let mut inbox = inbox.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let start = std::time::Instant::now();
        while !user.state("inbox.secret").exists() && start.elapsed().as_secs() < 30 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        inbox.kill().unwrap();
        inbox.wait().unwrap();
        let found = all_below(&user.state(""));
        assert!(found.iter().filter(|path| path.is_file()).count() > 3, "{found:?}");
        assert!(found.iter().any(|path| path.ends_with("inbox.secret")), "{found:?}");
        assert!(
            found.iter().any(|path| path.is_dir() && *path != user.state("")),
            "no notes: {found:?}"
        );
        for path in found {
            let open = mode(&path) & 0o077;
            assert_eq!(open, 0, "{} is open to others: {open:o}", path.display());
        }
    }

    #[test]
    fn a_file_that_another_user_can_change_is_refused_and_says_what_to_do() {
        let user = User::new();
        park(&user, "rm", &[], &[]);
        let config = user.configure("principal = \"ann\"");
        let (local, state) = (user.home().join(".local"), user.state(""));
        for (path, open) in [
            (&config, 0o666),
            (&config.parent().unwrap().to_owned(), 0o777),
            (&state, 0o702),
            (&user.state("asks.db"), 0o606),
            (&local, 0o777),
        ] {
            let before = mode(path);
            set_mode(path, open);
            let ended = user.run(&["asks", "list"]);
            assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{path:?}: {ended:?}");
            assert!(ended.err.contains("every user can write it; run `chmod go-w"), "{ended:?}");
            set_mode(path, before);
        }
        assert_eq!(tools(&user, &[]), ["rm"]);
    }

    #[test]
    fn a_link_to_a_place_that_is_open_to_others_is_refused() {
        let user = User::new();
        let open = user.home().join("open");
        fs::create_dir(&open).unwrap();
        set_mode(&open, 0o777);
        fs::create_dir_all(user.home().join(".local/state")).unwrap();
        symlink(&open, user.home().join(".local/state/countersign")).unwrap();
        let ended = user.run(&["asks", "init"]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(!open.join("asks.db").exists());
    }
}

#[test]
fn the_help_describes_every_command() {
    let user = User::new();
    let help = user.run(&["--help"]);
    assert_eq!(help.status, 0);
    for word in
        ["config.toml", "COUNTERSIGN_STORE", "seal.key", "postgres://", "Exit statuses", "--json"]
    {
        assert!(help.out.contains(word), "{word}");
    }
    let asks = user.run(&["asks", "--help"]);
    assert!(asks.out.contains("11 its outcome is unknown"), "{}", asks.out);
    let manifest = include_str!("../../../Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.expect("the manifest has a version").trim_matches('"');
    assert_eq!(user.run(&["--version"]).out, format!("countersign {version}\n"));
    let bad = user.run(&["askss"]);
    assert_eq!((bad.status, bad.err.lines().count()), (2, 1), "{bad:?}");
    assert!(
        bad.err.contains("'asks'") && bad.err.contains("`countersign --help` lists"),
        "{bad:?}"
    );
    // Without a command, the help says which there are.
    for (args, command) in [(&[][..], "inbox"), (&["asks"][..], "decide"), (&["rules"], "lint")] {
        let none = user.run(args);
        assert_eq!((none.status, &*none.out), (2, ""), "{none:?}");
        assert!(none.err.contains("Usage: ") && none.err.contains(command), "{none:?}");
    }
}

#[test]
fn every_shell_gets_its_completions() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = user.run(&["completions", shell]);
        assert!(ended.status == 0 && ended.out.contains("audit-key-file"), "{shell}");
        let json = user.run(&["--json", "completions", shell]);
        assert_eq!(json.lines()[0]["text"].as_str(), Some(ended.out.trim_end()));
    }
    assert_eq!(user.run(&["completions", "tcsh"]).status, 2);
}
