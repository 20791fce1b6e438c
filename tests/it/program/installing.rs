//! `countersign hook install`, `uninstall` and `doctor`: what others have configured stays, and a canary proves the rest.

use std::fs;
use std::path::PathBuf;
#[cfg(unix)]
use std::process::Command;

use serde_json::{Value, json};

use crate::support::clients::{forms, some_clients};
use crate::support::write_program;

use super::User;

fn read(path: &PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

impl User {
    pub(crate) fn file_of(&self, client: &str) -> PathBuf {
        self.home().join(forms(client).text("file"))
    }
}

#[test]
fn the_entry_has_the_limit_in_the_clients_unit_and_its_switch_to_fail_closed() {
    let user = User::new();
    for (client, entry) in some_clients(0).filter_map(|it| Some((it, forms(it).entry()?))) {
        let (name, unit) = forms(client).limit();
        let ended =
            user.run(&["hook", "install", client, "--limit", "90", "--", "--store", "memory:"]);
        assert_eq!(ended.status, 0, "{ended:?}");
        let settings = read(&user.file_of(client));
        let limit = settings.pointer(&format!("{entry}/{name}"));
        assert_eq!(limit, Some(&json!(90 * unit)), "{settings}");
        let text = settings.to_string();
        assert!(text.contains("--store memory: --limit 90"), "{text}");
        let command = command_of(&user, client);
        let (before, _) = command.split_once(&format!(" hook {client} ")).unwrap();
        let program = before.rsplit(' ').next().unwrap();
        assert!(PathBuf::from(program.trim_matches('\'')).is_absolute(), "{command}");
    }
    let claude = read(&user.file_of("claude"));
    let hook = &claude["hooks"]["PreToolUse"][0];
    assert_eq!((&hook["matcher"], &hook["hooks"][0]["onFailure"]), (&json!("*"), &json!("block")));
    user.run(&["hook", "install", "opencode", "--limit", "90"]);
    let plugin = fs::read_to_string(user.file_of("opencode")).unwrap();
    assert!(
        plugin.contains("const LIMIT = 90000") && plugin.contains(r#""hook","opencode""#),
        "{plugin}"
    );
}

/// "It is asked before each tool call" is said where it is so: a switch of the client may turn all hooks off.
#[test]
fn an_installation_says_where_the_clients_own_files_keep_the_hook_off() {
    for client in ["claude", "qwen", "copilot"] {
        let user = User::new();
        assert!(
            user.run(&["hook", "install", client]).out.contains("It is asked before"),
            "{client}"
        );
        let file = user.file_of(client);
        let mut settings = read(&file);
        settings["disableAllHooks"] = json!(true);
        fs::write(&file, settings.to_string()).unwrap();
        let again = user.run(&["hook", "install", client]);
        assert!(
            again.out.contains("The hook is off") && again.out.contains("disableAllHooks"),
            "{again:?}"
        );
        assert!(!again.out.contains("It is asked before"), "{again:?}");
    }
}

/// The command that a client runs before a tool call.
fn command_of(user: &User, client: &str) -> String {
    let settings = read(&user.file_of(client));
    let place = format!("{}/{}", forms(client).entry().unwrap(), forms(client).text("command"));
    settings.pointer(&place).and_then(Value::as_str).unwrap().to_owned()
}

/// An entry lasts longer than a virtual environment of `pip` or the cache of `uvx`, and no project exchanges its program.
#[cfg(unix)]
#[test]
fn a_program_that_runs_from_a_passing_place_is_copied_into_the_users_own_directory() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    let home = user.home().canonicalize().unwrap();
    let venv = home.join("venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    let (program, own) = (venv.join("bin/countersign"), user.state("bin/countersign"));
    write_program(&program, fs::read(crate::support::program("countersign")).unwrap());
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        super::in_environment_of(&mut command, user.home());
        super::ended(&command.args(words).current_dir(&home).output().unwrap())
    };

    let ended = run(&["hook", "install", "claude"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.out.contains("runs from a virtual environment"), "{ended:?}");
    let command = command_of(&user, "claude");
    assert!(command.contains(own.to_str().unwrap()) && !command.contains("/venv/"), "{command}");
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    let doctor = || run(&["hook", "doctor", "claude", "--program", "true"]).out;
    assert!(!doctor().contains("another version"), "{}", doctor());

    // An update in the virtual environment leaves the hook as it is, which the doctor says, until it is installed again.
    let mut newer = fs::read(&program).unwrap();
    newer.extend_from_slice(b"newer");
    write_program(&program, newer);
    assert!(doctor().contains("another version"), "{}", doctor());
    assert_eq!(run(&["hook", "install", "claude"]).status, 0);
    assert!(!doctor().contains("another version"), "{}", doctor());

    // The hook answers without the virtual environment.
    fs::remove_dir_all(&venv).unwrap();
    let answered = Command::new(&own).arg("--version").output().unwrap();
    assert!(answered.status.success());
}

/// Rule P2: what the program itself cannot prevent is a denial of the command that is installed.
#[cfg(unix)]
#[test]
fn a_hook_that_is_missing_or_killed_is_a_denial_of_the_installed_command() {
    let user = User::new();
    let other = user.home().join("other");
    for client in some_clients(1).filter(|it| forms(it).entry().is_some()) {
        user.run(&["hook", "install", client]);
        let installed = command_of(&user, client);
        let words: Vec<_> = installed.split(' ').collect();
        let program = words[words.iter().position(|word| *word == "hook").unwrap() - 1];
        let command = installed.replace(program, other.to_str().unwrap());
        for (script, says) in [
            (None, "status 127"),
            (Some("kill -9 $$"), "status 137"),
            (Some("exit 1"), "status 1"),
            (Some("echo no >&2; exit 2"), "no\n"),
        ] {
            if let Some(script) = script {
                write_program(&other, format!("#!/bin/sh\n{script}\n"));
            }
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{err}");
            assert!(err.contains(says), "{client}: {err}");
        }
        write_program(&other, "#!/bin/sh\necho \"$*\"\n");
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.starts_with(&format!("hook {client} ")), "{said}");
        fs::remove_file(&other).unwrap();
    }
}

#[test]
fn the_entry_is_where_the_client_is_told_to_look() {
    let user = User::new();
    let folder = user.home().join("elsewhere");
    for (client, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/countersign.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugin/countersign.js"),
    ] {
        for (command, is_there) in [("install", true), ("uninstall", false)] {
            let mut program = user.command(&["hook", command, client]);
            let output = program.env(variable, &folder).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            assert_eq!(text.contains("countersign"), is_there, "{client}: {text}");
        }
        assert!(!user.file_of(client).exists(), "{client}");
    }
}

/// "First sight is three lines": where, what happens at the next call, where to answer. Variables are for `--verbose`.
#[test]
fn an_installation_says_three_lines() {
    for client in some_clients(2) {
        let user = User::new();
        let install = |words: &[&str]| {
            let mut command = user.command(&[&["hook", "install", client], words].concat());
            super::ended(&command.env("GIT_SSH", "ssh -4").output().unwrap())
        };
        let first = install(&[]);
        let lines: Vec<_> = first.out.lines().collect();
        assert_eq!(lines.len(), 3, "{client}: {first:?}");
        assert!(
            lines[0].contains(forms(client).text("file").rsplit('/').next().unwrap()),
            "{first:?}"
        );
        assert!(lines[1].contains("every call is asked about"), "{first:?}");
        assert!(lines[2].contains("countersign asks review"), "{first:?}");
        assert!(!first.out.contains("GIT_SSH"), "{first:?}");
        user.own_rules(super::RULES);
        let verbose = install(&["--verbose"]);
        assert!(verbose.out.contains("`GIT_SSH`"), "{verbose:?}");
        assert!(verbose.out.contains(&user.state("asks.db").display().to_string()), "{verbose:?}");
    }
}

/// An editor's terminal has the variables of the project that is open there: what the entry takes from one is said.
#[test]
fn an_installation_names_the_variables_that_its_entry_has_values_of() {
    let user = User::new();
    let install = |words: &[&str]| {
        let mut command = user.command(&[&["hook", "install", "codex"], words].concat());
        super::ended(&command.env("COUNTERSIGN_PRINCIPAL", "boss").output().unwrap())
    };
    let taken = install(&[]);
    let line = taken.out.lines().nth(3).unwrap_or_default();
    assert!(line.contains("`COUNTERSIGN_PRINCIPAL`") && line.contains("unset"), "{taken:?}");
    let given = install(&["--", "--principal", "ann"]);
    assert_eq!(given.out.lines().count(), 3, "{given:?}");
}

/// An editor's terminal has the variables of the project that is open there: they name no place of the entry.
#[test]
fn an_installation_refuses_places_that_lie_in_the_project() {
    let user = User::new();
    let project = user.home().join("project");
    fs::create_dir(&project).unwrap();
    let at = |name: &str| project.join(name).display().to_string();
    for (name, value) in [
        ("XDG_STATE_HOME", at(".x")),
        ("XDG_CONFIG_HOME", at(".x")),
        ("COUNTERSIGN_STORE", format!("sqlite:{}", at("evil.db"))),
    ] {
        let mut command = user.command(&["hook", "install", "codex"]);
        let refused = command.env(name, &value).current_dir(&project).output().unwrap();
        let refused = super::ended(&refused);
        assert!(
            refused.status == 2 && refused.err.contains("lies in the project"),
            "{name}: {refused:?}"
        );
        assert!(!user.file_of("codex").exists());
        // The same place is none of the project elsewhere.
        let mut command = user.command(&["hook", "install", "codex"]);
        let elsewhere = command.env(name, &value).output().unwrap();
        assert!(elsewhere.status.success(), "{elsewhere:?}");
        let mut doctor = user.command(&["--json", "hook", "doctor", "codex", "--program", "true"]);
        let lines = super::ended(&doctor.current_dir(&project).output().unwrap()).lines();
        let places = lines.iter().find(|line| line["check"] == "places").unwrap();
        assert_eq!(places["ok"], false, "{places}");
        fs::remove_file(user.file_of("codex")).unwrap();
    }
}

#[test]
fn the_user_is_told_about_rules_and_copies() {
    let user = User::new();
    let first = user.run(&["hook", "install", "gemini"]);
    assert!(first.out.contains("no rules") && first.out.contains("rules.toml"), "{first:?}");
    fs::write(user.home().join("r.toml"), "version = 1\n").unwrap();
    let named = user.run(&["hook", "install", "gemini", "--", "--rules", "r.toml"]);
    assert!(!named.out.contains("no rules"), "{named:?}");
    assert!(named.out.contains(".backup"), "{named:?}");
    fs::create_dir_all(user.home().join(".config/countersign")).unwrap();
    fs::write(user.home().join(".config/countersign/rules.toml"), "version = 1\n").unwrap();
    let own = user.run(&["hook", "install", "gemini"]);
    assert!(!own.out.contains("no rules"), "{own:?}");
    let removed = user.run(&["hook", "uninstall", "gemini"]);
    assert!(removed.out.contains(".backup"), "{removed:?}");
}

/// A client runs the hook in the directory of its session, which is not that of the installation.
#[cfg(unix)]
#[test]
fn relative_paths_are_those_of_the_installation() {
    use std::io::Write as _;
    use std::process::Stdio;
    let user = User::new();
    let elsewhere = user.home().join("else where");
    fs::create_dir_all(&elsewhere).unwrap();
    // A place within the project in which one installs is refused.
    fs::write(user.home().join("rel.toml"), super::RULES).unwrap();
    fs::write(user.home().join("con.toml"), "principal = \"ann\"\n").unwrap();
    let options = [
        "--rules",
        "../rel.toml",
        "--root=.",
        "--store",
        "sqlite:../rel.db",
        "--config",
        "../con.toml",
    ];
    let mut install = user.command(&[&["hook", "install", "gemini", "--"], &options[..]].concat());
    assert!(install.current_dir(&elsewhere).status().unwrap().success());
    let command = command_of(&user, "gemini");
    for file in ["rel.toml", "rel.db", "con.toml"] {
        let path = elsewhere.join("..").join(file).display().to_string();
        assert!(command.contains(&path), "{file}: {command}");
    }
    let answer = |tool_input: &str| {
        let payload = json!({
            "session_id": "s", "cwd": user.home(), "hook_event_name": "BeforeTool",
            "tool_name": "run_shell_command", "tool_input": {"command": tool_input},
        });
        let mut shell = Command::new("sh");
        super::in_environment_of(&mut shell, user.home());
        shell.args(["-c", &command]).current_dir(user.home());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        super::ended(&shell.wait_with_output().unwrap())
    };
    let allowed = answer("ls");
    assert_eq!(allowed.status, 0, "{allowed:?}");
    let denied = answer("cat a.denied");
    assert!(denied.err.contains("not in this project"), "{denied:?}");
}

/// A hook whose rules or options cannot be used denies every call, so it is not installed.
#[test]
fn what_cannot_be_used_is_an_error_of_the_installation() {
    let user = User::new();
    fs::write(user.home().join("bad.toml"), "version = 1\n[[rule]]\nid = 3\n").unwrap();
    for (options, status, says) in [
        (&["--rules", "none.toml"][..], 1, "none.toml"),
        (&["--rules", "bad.toml"], 1, "bad.toml:3"),
        (&["--rulse", "bad.toml"], 2, "--rulse"),
        (&["--store", "mysql://db"], 2, "mysql://db"),
        (&["--root", "nowhere"], 2, "nowhere"),
        (&["--config", "none.toml"], 2, "none.toml"),
        (&["--limit", "60"], 2, "before `--`"),
    ] {
        let ended = user.run(&[&["hook", "install", "claude", "--"], options].concat());
        assert_eq!(ended.status, status, "{ended:?}");
        assert!(ended.err.contains(says), "{says}: {ended:?}");
        assert!(!user.file_of("claude").exists(), "{options:?}");
    }
    user.configure("");
    fs::write(user.home().join(".config/countersign/rules.toml"), "version = 9\n").unwrap();
    let of_user = user.run(&["hook", "install", "claude"]);
    assert!(of_user.status == 1 && of_user.err.contains("rules.toml:1"), "{of_user:?}");
    assert!(!user.file_of("claude").exists());
}

#[test]
fn entries_of_other_programs_stay() {
    let user = User::new();
    let theirs = json!({
        "model": "m",
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "/opt/other hook claude"}]}],
            "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        },
    });
    let file = user.file_of("claude");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, theirs.to_string()).unwrap();
    let first = user.run(&["--json", "hook", "install", "claude"]);
    let backup = PathBuf::from(first.lines()[0]["backup"].as_str().unwrap());
    assert_eq!(read(&backup), theirs);
    let installed = read(&file);
    assert_eq!(installed["hooks"]["PreToolUse"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&installed["model"], &installed["hooks"]["Stop"]),
        (&theirs["model"], &theirs["hooks"]["Stop"])
    );
    let again = user.run(&["--json", "hook", "install", "claude"]);
    assert_eq!(again.lines()[0]["changed"], false);
    let other = user.run(&["--json", "hook", "install", "claude", "--limit", "60"]);
    assert_eq!(other.lines()[0]["changed"], true);
    assert_eq!(
        read(&file)["hooks"]["PreToolUse"].as_array().unwrap().len(),
        2,
        "the earlier entry is replaced"
    );
    assert_eq!(user.run(&["hook", "uninstall", "claude"]).status, 0);
    assert_eq!(read(&file), theirs);
    assert_eq!(user.run(&["--json", "hook", "uninstall", "claude"]).lines()[0]["changed"], false);
}

#[test]
fn our_own_file_is_removed_and_that_of_another_program_is_not_touched() {
    let user = User::new();
    for client in ["codex", "copilot", "opencode"] {
        let project = user.run(&["hook", "install", client, "--project"]);
        assert_eq!(project.status, 0, "{project:?}");
        user.run(&["hook", "install", client]);
        assert_eq!(user.run(&["hook", "uninstall", client]).status, 0);
        assert!(!user.file_of(client).exists(), "{client}");
    }
    assert!(
        user.home().join(".github/hooks/countersign.json").exists(),
        "the project's is another one"
    );
    fs::write(user.file_of("opencode"), "export const Mine = () => {}").unwrap();
    for command in ["install", "uninstall"] {
        let ended = user.run(&["hook", command, "opencode"]);
        assert!(ended.status == 1 && ended.err.contains("another program"), "{ended:?}");
    }
    let gemini = user.file_of("gemini");
    fs::create_dir_all(gemini.parent().unwrap()).unwrap();
    for text in ["{ // a comment\n}", "[]", "{\"hooks\": []}"] {
        fs::write(&gemini, text).unwrap();
        let ended = user.run(&["hook", "install", "gemini"]);
        assert_eq!(ended.status, 1, "{ended:?}");
        assert_eq!(fs::read_to_string(&gemini).unwrap(), text);
    }
}

/// A client that calls its hook, or does not, and obeys it, or does not.
#[cfg(unix)]
fn client(user: &User, body: &str) -> String {
    let path = user.home().join("client");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'tool 9.8.7.'; exit; }}\ncall=${{2#*: }}\n{body}\n"
    );
    write_program(&path, script);
    path.to_str().unwrap().to_owned()
}

#[cfg(unix)]
#[test]
fn the_doctor_proves_by_a_canary_that_a_denial_is_obeyed() {
    let user = User::new();
    user.own_rules(super::RULES);
    user.run(&["hook", "install", "claude", "--limit", "10"]);
    let hook = command_of(&user, "claude");
    let ask = format!(
        "echo \"{{\\\"hook_event_name\\\":\\\"PreToolUse\\\",\\\"session_id\\\":\\\"s\\\",\\\"cwd\\\":\\\"/src\\\",\
         \\\"tool_name\\\":\\\"Bash\\\",\\\"tool_input\\\":{{\\\"command\\\":\\\"$call\\\"}}}}\" | {} >/dev/null 2>&1",
        hook
    );
    for (body, ok, says, status) in [
        (format!("{ask} && $call"), json!(true), "obeyed", 0),
        (format!("{ask}; $call"), json!(false), "ran the denied call", 3),
        ("$call".to_owned(), json!(false), "without asking", 3),
        // One that has ended well was able to make the call.
        (String::new(), json!(false), "ended well", 3),
        ("exit 1".to_owned(), json!(null), "made no call", 3),
    ] {
        let program = client(&user, &body);
        let ended =
            user.run(&["--json", "hook", "doctor", "claude", "--live", "--program", &program]);
        let lines = ended.lines();
        let canary = lines.iter().find(|line| line["check"] == "canary").unwrap();
        assert_eq!((&canary["ok"], ended.status), (&ok, status), "{ended:?}");
        assert!(canary["found"].as_str().unwrap().contains(says), "{canary}");
        assert_eq!(lines[0]["ok"], true, "9.8.7 is not older than what was tested");
    }
    let none = user.run(&["hook", "doctor", "codex", "--program", "/no/such/program"]);
    assert!(none.status == 3 && none.out.contains("cannot be run"), "{none:?}");
}

/// A client has other settings in a project than in a directory of its own.
#[cfg(unix)]
#[test]
fn the_doctor_lets_the_client_run_in_the_project_on_request() {
    let user = User::new();
    user.own_rules(super::RULES);
    user.run(&["hook", "install", "claude"]);
    let project = user.home().join("project");
    fs::create_dir(&project).unwrap();
    let program = client(&user, "pwd > \"$HOME/where\"");
    for (options, is_here) in [(&["--live"][..], false), (&["--live", "--here"], true)] {
        let words = [&["hook", "doctor", "claude", "--program", &program], options].concat();
        let told = user.command(&words).current_dir(&project).output().unwrap();
        assert_eq!(told.status.code(), Some(3), "the hook was not asked");
        let where_it_ran = fs::read_to_string(user.home().join("where")).unwrap();
        assert_eq!(where_it_ran.trim_end() == project.to_str().unwrap(), is_here, "{where_it_ran}");
    }
}

/// A client that made no call mostly says why.
#[cfg(unix)]
#[test]
fn the_doctor_quotes_a_client_that_made_no_call() {
    let user = User::new();
    user.run(&["hook", "install", "claude"]);
    for (body, says) in [
        (
            "printf 'starting\\n\\033[31mPlease run /login\\n\\n' >&2; exit 1",
            "failed (exit status: 1)",
        ),
        ("echo Please run /login", "is not logged in"),
    ] {
        let program = client(&user, body);
        let ended = user.run(&["hook", "doctor", "claude", "--live", "--program", &program]);
        // A client that has ended well was able to call the hook: that is red. Otherwise nothing is proven.
        assert_eq!(ended.status, 3, "{ended:?}");
        let canary = ended.out.lines().find(|line| line.starts_with("canary")).unwrap();
        assert_eq!(canary.contains("PROBLEM"), body.starts_with("echo"), "{canary}");
        assert!(ended.out.contains(says) && ended.out.contains("Please run /login"), "{ended:?}");
        assert!(!ended.out.contains('\u{1b}'), "{ended:?}");
        assert!(ended.err.contains("three minutes"), "{ended:?}");
    }
    assert_eq!(fs::read_dir(user.state("canary")).unwrap().count(), 0, "nothing is left behind");
}

/// What a check of the doctor finds, for a client that is new enough.
#[cfg(unix)]
pub(super) fn finding(user: &User, name: &str, check: &str) -> Option<(Value, String)> {
    let program = client(user, "");
    let ended = user.run(&["--json", "hook", "doctor", name, "--program", &program]);
    let lines = ended.lines();
    let line = lines.iter().find(|line| line["check"] == check)?;
    assert_eq!(ended.status == 3, lines.iter().any(|line| line["ok"] == false), "{ended:?}");
    Some((line["ok"].clone(), line["found"].as_str().unwrap().to_owned()))
}

#[cfg(unix)]
#[test]
fn the_doctor_finds_a_switch_that_turns_hooks_off() {
    let user = User::new();
    let project = user.home().join(".claude/settings.local.json");
    for (client, file, change, says) in [
        ("claude", user.file_of("claude"), json!({"disableAllHooks": true}), "disableAllHooks"),
        ("claude", project, json!({"disableAllHooks": true}), "settings.local.json"),
        ("gemini", user.file_of("gemini"), json!({"hooksConfig": {"enabled": false}}), "enabled"),
        (
            "gemini",
            user.file_of("gemini"),
            json!({"hooksConfig": {"disabled": ["countersign"]}}),
            "disabled",
        ),
        ("copilot", user.file_of("copilot"), json!({"disableAllHooks": true}), "disableAllHooks"),
    ] {
        user.run(&["hook", "install", client]);
        let is_trusted = |user: &User| finding(user, client, "trust").unwrap();
        assert_eq!(is_trusted(&user).0, true, "{client}");
        let before = fs::read_to_string(&file).ok();
        let mut settings =
            before.as_deref().map_or(json!({}), |it| serde_json::from_str(it).unwrap());
        settings.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        fs::write(&file, settings.to_string()).unwrap();
        let (ok, found) = is_trusted(&user);
        assert!(ok == false && found.contains(says), "{client}: {found}");
        match before {
            Some(before) => fs::write(&file, before).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
    }
    user.run(&["hook", "install", "opencode"]);
    assert_eq!(finding(&user, "opencode", "trust").unwrap().0, true);
}

/// Codex skips a hook that is not trusted without a word.
#[cfg(unix)]
#[test]
fn the_doctor_reads_whether_codex_trusts_the_hook() {
    let user = User::new();
    user.run(&["hook", "install", "codex", "--limit", "90"]);
    let trust = || finding(&user, "codex", "trust").unwrap();
    let config = user.home().join(".codex/config.toml");
    let (ok, found) = trust();
    assert!(ok == false && found.contains("/hooks"), "{found}");
    let trusted = trusted_by_codex(&user);
    fs::write(&config, &trusted).unwrap();
    assert_eq!(trust().0, true, "{}", trust().1);
    fs::write(&config, format!("{trusted}enabled = false\n")).unwrap();
    assert!(trust().1.contains("switched off"), "{}", trust().1);
    fs::write(&config, format!("{trusted}[features]\nhooks = false\n")).unwrap();
    assert!(trust().1.contains("features"), "{}", trust().1);
    fs::write(&config, &trusted).unwrap();
    // Another limit is another command, which codex has not shown to the user.
    user.run(&["hook", "install", "codex", "--limit", "91"]);
    assert!(trust().0 == false && trust().1.contains("changed"), "{}", trust().1);
    let other = "[projects.\"/somewhere\"]\ntrust_level = \"trusted\"\n";
    user.run(&["hook", "uninstall", "codex"]);
    fs::write(&config, other).unwrap();
    let project = user.home().join("project");
    fs::create_dir_all(&project).unwrap();
    let in_project = |args: &[&str]| {
        let output = user.command(args).current_dir(&project).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    in_project(&["hook", "install", "codex", "--project"]);
    let doctor = ["hook", "doctor", "codex", "--project", "--program", "true"];
    assert!(in_project(&doctor).contains("does not trust"), "{}", in_project(&doctor));
    fs::write(&config, other.replace("/somewhere", project.to_str().unwrap())).unwrap();
    assert!(in_project(&doctor).contains("untrusted hook"), "{}", in_project(&doctor));
}

/// What codex writes into its configuration when its user trusts the hook that is installed.
#[cfg(unix)]
pub(crate) fn trusted_by_codex(user: &User) -> String {
    use sha2::{Digest as _, Sha256};
    let file = user.file_of("codex");
    let group = &read(&file)["hooks"]["PreToolUse"][0];
    let hook = &group["hooks"][0];
    let identity = format!(
        r#"{{"event_name":"pre_tool_use","hooks":[{{"async":false,"command":{},"timeout":{},"type":"command"}}],"matcher":{}}}"#,
        hook["command"], hook["timeout"], group["matcher"],
    );
    let digest = Sha256::digest(identity);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "[hooks.state.\"{}:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:{digits}\"\n",
        file.display()
    )
}

#[cfg(unix)]
#[test]
fn the_doctor_finds_an_entry_whose_program_is_gone() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    let moved = user.home().join("a b/countersign");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    for client in some_clients(0) {
        user.run(&["hook", "install", client]);
        assert_eq!(finding(&user, client, "program").unwrap().0, true);
        let (_, installed) = finding(&user, client, "program").unwrap();
        let file = user.file_of(client);
        let text = fs::read_to_string(&file).unwrap();
        let quoted = |path: &str| {
            if forms(client).entry().is_none() { path.to_owned() } else { format!("'{path}'") }
        };
        fs::write(&file, text.replace(&installed, &quoted(moved.to_str().unwrap()))).unwrap();
        let (ok, found) = finding(&user, client, "program").unwrap();
        assert!(
            ok == false && found.contains("a b/countersign cannot be run"),
            "{client}: {found}"
        );
        fs::write(&moved, "#!/bin/sh\n").unwrap();
        assert_eq!(finding(&user, client, "program").unwrap().0, false, "it is no program");
        fs::set_permissions(&moved, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(finding(&user, client, "program").unwrap().0, true);
        fs::remove_file(&moved).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn the_doctor_finds_a_client_that_is_older_than_any_that_was_tested() {
    let user = User::new();
    for name in some_clients(1).filter(|name| !forms(name).is_from_documentation()) {
        user.run(&["hook", "install", name]);
        let program = client(&user, "");
        let text = fs::read_to_string(&program).unwrap();
        fs::write(&program, text.replace("9.8.7", "0.9.8")).unwrap();
        let ended = user.run(&["hook", "doctor", name, "--program", &program]);
        assert!(ended.status == 3 && ended.out.contains("older than any"), "{ended:?}");
    }
}

/// Two hooks for one call are two asks after each approval.
#[cfg(unix)]
#[test]
fn the_doctor_finds_a_hook_that_is_installed_twice() {
    let user = User::new();
    for client in ["copilot", "opencode"] {
        user.run(&["hook", "install", client]);
        assert_eq!(finding(&user, client, "once"), None);
        user.run(&["hook", "install", client, "--project"]);
        let (ok, found) = finding(&user, client, "once").unwrap();
        assert!(ok == false && found.contains("uninstall"), "{found}");
        user.run(&["hook", "uninstall", client, "--project"]);
        assert_eq!(finding(&user, client, "once"), None);
    }
}

/// A command of the entry, with the words that follow it.
fn option(command: &str, name: &str) -> Option<String> {
    let mut words = command.split(' ').skip_while(|word| *word != name).skip(1);
    words.next().map(|word| word.trim_matches('\'').to_owned())
}

/// P1: the entry says what the hook would otherwise take from the environment.
#[test]
fn the_entry_names_every_setting_by_an_absolute_path() {
    let user = User::new();
    let home = user.home();
    let at = |name: &str| home.join(name).display().to_string();
    let config = user.configure("");
    fs::write(config.with_file_name("rules.toml"), "version = 1\n").unwrap();
    for client in some_clients(2).filter(|it| forms(it).entry().is_some()) {
        assert_eq!(user.run(&["hook", "install", client]).status, 0);
        let command = command_of(&user, client);
        assert!(command.starts_with("/bin/sh -c "), "{command}");
        for (name, value) in [
            ("--home", at("")),
            ("--config-dir", at(".config/countersign")),
            ("--state-dir", at(".local/state/countersign")),
            ("--rules", at(".config/countersign/rules.toml")),
        ] {
            let found = option(&command, name).unwrap_or_else(|| panic!("{name}: {command}"));
            assert_eq!(found.trim_end_matches('/'), value.trim_end_matches('/'), "{command}");
        }
        assert!(option(&command, "--principal").is_some(), "{command}");
    }
    // A setting of the environment is written out, and one of the file stays there.
    let key = at("key");
    let mut install = user.command(&["hook", "install", "codex"]);
    install.env("COUNTERSIGN_STORE", "sqlite:rel.db").env("COUNTERSIGN_PRINCIPAL", "ann");
    install.env("COUNTERSIGN_AUDIT_KEY_FILE", &key).env("XDG_STATE_HOME", at("state"));
    assert!(install.status().unwrap().success());
    let command = command_of(&user, "codex");
    let store = format!("sqlite:{}", at("rel.db"));
    for (name, value) in [
        ("--store", &*store),
        ("--principal", "ann"),
        ("--audit-key-file", &*key),
        ("--state-dir", &*at("state/countersign")),
    ] {
        assert_eq!(option(&command, name).as_deref(), Some(value), "{command}");
    }
    user.configure("principal = \"bob\"\nstore = \"postgres://bob:secret@db/asks\"\n");
    assert_eq!(user.run(&["hook", "install", "codex"]).status, 0);
    let command = command_of(&user, "codex");
    assert!(!command.contains("secret") && !command.contains("--principal"), "{command}");
    // A password does not belong into the configuration of a client.
    let mut refused = user.command(&["hook", "install", "claude"]);
    refused.env("COUNTERSIGN_STORE", "postgres://ann:secret@db/asks");
    let refused = super::ended(&refused.output().unwrap());
    assert!(refused.status == 2 && refused.err.contains("password"), "{refused:?}");
    assert!(!refused.err.contains("secret"), "{refused:?}");
}

/// Codex skips a hook that has changed, until its user trusts it.
#[cfg(unix)]
#[test]
fn an_installation_that_changes_the_entry_of_codex_says_that_the_hook_is_off() {
    let user = User::new();
    let first = user.run(&["hook", "install", "codex"]);
    assert!(first.out.contains("The hook is off") && first.out.contains("/hooks"), "{first:?}");
    fs::write(user.home().join(".codex/config.toml"), trusted_by_codex(&user)).unwrap();
    let same = user.run(&["hook", "install", "codex"]);
    assert!(!same.out.contains("The hook is off"), "{same:?}");
    let other = user.run(&["hook", "install", "codex", "--limit", "91"]);
    assert!(other.out.contains("The hook is off"), "{other:?}");
}

/// Hooks that a person has switched off are not switched on without a word, and not for ever.
#[test]
fn hooks_of_gemini_that_were_off_are_off_again_after_the_uninstallation() {
    let user = User::new();
    let file = user.file_of("gemini");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let theirs = json!({"hooksConfig": {"enabled": false}, "theme": "x"});
    fs::write(&file, theirs.to_string()).unwrap();
    let first = user.run(&["hook", "install", "gemini"]);
    assert!(first.out.contains("were switched off, and are on now"), "{first:?}");
    assert_eq!(read(&file)["hooksConfig"]["enabled"], true);
    // A later installation remembers it.
    let again = user.run(&["hook", "install", "gemini", "--limit", "60"]);
    assert!(!again.out.contains("switched off"), "{again:?}");
    let removed = user.run(&["hook", "uninstall", "gemini"]);
    assert!(removed.out.contains("switched off again"), "{removed:?}");
    assert_eq!(read(&file), theirs);
    // Without that, nothing is said, and the file is as it was: also after a second installation, by which no copy of the
    // file is one from before the first.
    for before in [json!({"theme": "x"}), json!({"theme": "x", "hooksConfig": {"enabled": true}})] {
        fs::write(&file, before.to_string()).unwrap();
        let plain = user.run(&["hook", "install", "gemini"]);
        assert!(!plain.out.contains("switched"), "{plain:?}");
        assert_eq!(read(&file)["hooksConfig"]["enabled"], true);
        user.run(&["hook", "install", "gemini", "--limit", "60"]);
        user.run(&["hook", "uninstall", "gemini"]);
        assert_eq!(read(&file), before);
    }
}

/// The file for administrators names rules of the machine, and nothing of the one who installs it.
#[cfg(unix)]
#[test]
fn the_entry_of_the_machine_names_no_user() {
    let user = User::new();
    let image = user.home().join("image");
    let below = ["--managed", "--below", image.to_str().unwrap()];
    let run =
        |command: &str, client: &str| user.run(&[&["hook", command, client], &below[..]].concat());
    let missing = run("install", "claude");
    assert!(
        missing.status == 1 && missing.err.contains("etc/countersign/rules.toml"),
        "{missing:?}"
    );
    fs::create_dir_all(image.join("etc/countersign")).unwrap();
    fs::write(image.join("etc/countersign/rules.toml"), super::RULES).unwrap();
    for (client, file) in [
        ("claude", "etc/claude-code/managed-settings.json"),
        ("codex", "etc/codex/hooks.json"),
        ("gemini", "etc/gemini-cli/settings.json"),
        ("copilot", "etc/github-copilot/policy.d/countersign.json"),
    ] {
        let installed = run("install", client);
        assert_eq!(installed.status, 0, "{installed:?}");
        let text = fs::read_to_string(image.join(file)).unwrap();
        assert!(text.contains(" --rules /etc/countersign/rules.toml"), "{text}");
        for option in ["--home", "--config-dir", "--state-dir", "--principal", "--store"] {
            assert!(!text.contains(option), "{option}: {text}");
        }
        assert!(!user.file_of(client).exists(), "{client}");
        let program = self::client(&user, "");
        let doctor = ["hook", "doctor", client, "--program", program.as_str()];
        let doctor = user.run(&[&doctor[..], &below[..]].concat());
        assert_eq!(doctor.status, 0, "{doctor:?}");
        // The one who builds an image has accepted no rules by that.
        let account = countersign_cli::config::Directories::of_account().unwrap();
        let records = countersign_rules::AcceptedRules::at(account.state().join("rules"));
        let mut records = records.all().unwrap_or_default().into_iter();
        assert!(records.all(|it| !it.path.starts_with(&image)), "{client}");
        assert_eq!(run("uninstall", client).status, 0);
        let left = fs::read_to_string(image.join(file)).unwrap_or_default();
        assert!(!left.contains("countersign"), "{client}: {left}");
    }
    let opencode = run("install", "opencode");
    assert!(opencode.status == 2 && opencode.err.contains("opencode"), "{opencode:?}");
}

/// P1: what was recorded for a hook goes with it.
#[test]
fn uninstalling_takes_the_record_of_the_environment_away() {
    let user = User::new();
    for client in some_clients(0) {
        let record = user.state("environment").join(client);
        assert_eq!(user.run(&["hook", "install", client]).status, 0);
        assert!(record.exists(), "{client}");
        assert_eq!(user.run(&["hook", "uninstall", client]).status, 0);
        assert!(!record.exists(), "{client}");
    }
    // The hook of a project has the same record.
    let record = user.state("environment/claude");
    let work = user.home().join("work");
    fs::create_dir_all(&work).unwrap();
    let run = |words: &[&str]| user.command(words).current_dir(&work).status().unwrap().success();
    assert!(
        run(&["hook", "install", "claude", "--project"]) && run(&["hook", "install", "claude"])
    );
    assert!(run(&["hook", "uninstall", "claude"]) && record.exists());
    assert!(run(&["hook", "uninstall", "claude", "--project"]) && !record.exists());
    // The state directory is that of the entry.
    let state = user.home().join("elsewhere");
    fs::create_dir(&state).unwrap();
    let options = ["--", "--state-dir", state.to_str().unwrap()];
    assert!(run(&[&["hook", "install", "gemini"], &options[..]].concat()));
    assert!(state.join("environment/gemini").exists());
    assert!(run(&["hook", "uninstall", "gemini"]) && !state.join("environment/gemini").exists());
}

/// P5: "one in a file that was named (`--file`) is found again": its record stays when another one goes, and the doctor
/// names it.
#[test]
fn a_hook_in_a_file_that_was_named_is_found_again() {
    let user = User::new();
    let work = user.home().join("ci");
    fs::create_dir(&work).unwrap();
    let run = |words: &[&str]| {
        super::ended(&user.command(words).current_dir(&work).output().unwrap()).status
    };
    let doctor = |check: &str| {
        let ended = user.run(&["--json", "hook", "doctor", "claude", "--program", "true"]);
        let lines = ended.lines();
        let found = lines.iter().find(|it| it["check"] == check).cloned().unwrap_or_default();
        (found["ok"].clone(), found["found"].as_str().unwrap_or_default().to_owned())
    };
    let (record, file) = (user.state("environment/claude"), work.join("settings.json"));
    let named = ["hook", "install", "claude", "--file", "settings.json"];
    assert_eq!(run(&named), 0);
    assert!(file.exists() && record.exists());
    let (ok, found) = doctor("configuration");
    let says = format!("countersign hook doctor claude --file {}", file.display());
    assert!(ok == json!(false) && found.contains(&says), "{found}");

    // The hook of the user beside it: both are named, and the record stays until the last has gone.
    assert_eq!(user.run(&["hook", "install", "claude"]).status, 0);
    let (ok, found) = doctor("once");
    assert!(ok == Value::Null && found.contains(&file.display().to_string()), "{found}");
    assert_eq!(user.run(&["hook", "uninstall", "claude"]).status, 0);
    assert!(record.exists(), "the other hook has the same record");
    assert_eq!(run(&["hook", "uninstall", "claude", "--file", "settings.json"]), 0);
    assert!(!record.exists() && !user.state("hook-files/claude").exists());
    let (_, found) = doctor("configuration");
    assert!(found.ends_with("run `countersign hook install claude`"), "{found}");

    // A file that is gone is no hook, and keeps nothing.
    assert_eq!(run(&named), 0);
    fs::remove_file(&file).unwrap();
    assert_eq!(user.run(&["hook", "install", "claude"]).status, 0);
    assert_eq!(doctor("once").1, "");
    assert_eq!(user.run(&["hook", "uninstall", "claude"]).status, 0);
    assert!(!record.exists());
}

/// An allowed call is left to the client's own rules, unless the person who installs the hook says otherwise.
#[test]
fn installing_says_who_is_asked_about_an_allowed_call() {
    let user = User::new();
    for (client, has_own) in
        [("claude", true), ("copilot", true), ("gemini", true), ("codex", false)]
    {
        let silent = user.run(&["hook", "install", client]);
        assert_eq!(silent.out.contains("--allow grant"), has_own, "{silent:?}");
        let granted = user.run(&["hook", "install", client, "--", "--allow", "grant"]);
        assert!(granted.status == 0 && !granted.out.contains("--allow grant"), "{granted:?}");
    }
}

/// The file is there again, byte for byte, with its spaces, its numbers and its empty objects.
#[test]
fn uninstalling_puts_the_file_back_as_it_was() {
    let user = User::new();
    for (client, text) in [
        (
            "claude",
            "{\n\t\"model\": \"x\",\n\t\"big\": 12345678901234567890123, \"e\": 1e3, \"u\": \"\\u00e9\" }",
        ),
        ("claude", "{\"hooks\": {}}"),
        (
            "codex",
            "{ \"hooks\": {\"PreToolUse\": [{\"matcher\": \"\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}]} }\n\n",
        ),
        ("gemini", "{\"hooksConfig\": {\"enabled\": false},   \"theme\": \"x\"}"),
    ] {
        let file = user.file_of(client);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        for limit in ["45", "60"] {
            assert_eq!(user.run(&["hook", "install", client, "--limit", limit]).status, 0);
        }
        let removed = user.run(&["hook", "uninstall", client]);
        assert_eq!(removed.status, 0, "{removed:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{client}");
    }
    // A change in between is kept.
    let file = user.file_of("claude");
    fs::write(&file, "{\"model\":\"x\"}").unwrap();
    user.run(&["hook", "install", "claude"]);
    let mut settings = read(&file);
    settings["model"] = json!("y");
    fs::write(&file, settings.to_string()).unwrap();
    user.run(&["hook", "uninstall", "claude"]);
    assert_eq!(read(&file), json!({"model": "y"}));
}

/// A file that cannot be changed without loss is left alone, and the error has what to add to it.
#[test]
fn settings_with_comments_are_left_alone_and_the_entry_is_printed() {
    let user = User::new();
    for text in ["// mine\n{\"theme\": \"x\"}", "\u{feff}{\"theme\": \"x\",}", "{\"theme\": "] {
        let file = user.file_of("gemini");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let refused = user.run(&["hook", "install", "gemini"]);
        assert_eq!(refused.status, 1, "{refused:?}");
        let (_, entry) =
            refused.err.split_once("by hand: ").unwrap_or_else(|| panic!("{refused:?}"));
        let entry: Value = serde_json::from_str(entry).unwrap();
        assert_eq!(entry["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"], 300_000, "{entry}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
