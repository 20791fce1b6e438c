//! A guard has its store, its directories and the name of the person (rule P1) from its options and the account, and
//! never from the environment, which a client lets a project set.

use std::fs;

use serde_json::{Value, json};

use super::client::{Client, told};
use super::process::Desk;
use crate::program::ended;

const ERA: &str = "2025-11-25";

/// A guard takes no setting from its environment, and names each variable with the option that takes its place.
#[tokio::test]
async fn no_variable_of_a_project_is_a_setting_of_a_guard() {
    let desk = Desk::new();
    let project = desk.user.home().join("project");
    fs::create_dir_all(project.join("countersign")).unwrap();
    let at = |name: &str| project.join(name).display().to_string();
    let config = at("countersign/config.toml");
    fs::write(&config, format!("principal = \"boss\"\nstore = \"sqlite:{}\"\n", at("evil.db")))
        .unwrap();
    let place = project.display().to_string();
    let all = [
        ("COUNTERSIGN_STORE", format!("sqlite:{}", at("evil.db")), "--store"),
        ("COUNTERSIGN_CONFIG", config, "--config"),
        ("COUNTERSIGN_PRINCIPAL", "boss".to_owned(), "--principal"),
        ("COUNTERSIGN_AUDIT_KEY_FILE", at("key"), "--audit-key-file"),
        ("XDG_CONFIG_HOME", place.clone(), "--config-dir"),
        ("XDG_STATE_HOME", place.clone(), "--state-dir"),
        ("HOME", place, "--home"),
    ];
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("mcp/server.py")
        .display()
        .to_string();
    let told_server = desk.told().to_string();
    let server = ["--", "python3", &script, &told_server];
    let guard = |options: &[&str]| {
        desk.user
            .command(&[&["guard", "--name", "files", "--wait", "0"], options, &server].concat())
    };
    let mut command = guard(&[]);
    command.current_dir(&project).envs(all.iter().map(|(name, value, _)| (name, value)));
    let log = desk.user.home().join("stderr");
    command.stderr(fs::File::create(&log).unwrap());
    // The option of the home is given, so that the variable is none of these.
    let mut client = Client::earlier(command, ERA, json!({})).await;
    let (text, is_error) = told(&client.call("write", json!({})).await);
    assert!(is_error && desk.runs().is_empty(), "{text}");
    client.goes().await;
    assert!(!project.join("evil.db").exists() && !project.join("countersign/asks.db").exists());
    let pending = desk.user.run(&["asks", "list", "--state", "pending"]).lines();
    assert!(
        !pending.is_empty() && pending.iter().all(|it| it["principal"] != "boss"),
        "{pending:?}"
    );
    let log = fs::read_to_string(&log).unwrap();
    for (name, _, option) in all.iter().filter(|(name, ..)| *name != "HOME") {
        let line = log.lines().find(|line| line.contains(&format!("`{name}` counts for nothing")));
        assert!(line.is_some_and(|line| line.contains(&format!("`{option} "))), "{name}: {log}");
    }

    // The value of an option counts, and a variable beside it is not worth a word.
    let other = desk.user.home().join("other.db").display().to_string();
    let mut command = guard(&["--store", &format!("sqlite:{other}"), "--principal", "bob"]);
    command.env("COUNTERSIGN_STORE", "memory:").env("COUNTERSIGN_PRINCIPAL", "boss");
    let log = desk.user.home().join("stderr");
    command.stderr(fs::File::create(&log).unwrap());
    let mut client = Client::earlier(command, ERA, json!({})).await;
    client.call("write", json!({})).await;
    client.goes().await;
    let listed = desk.user.run(&["asks", "--store", &format!("sqlite:{other}"), "list"]).lines();
    assert!(listed.iter().any(|it| it["principal"] == "bob"), "{listed:?}");
    assert!(!fs::read_to_string(&log).unwrap().contains("counts for nothing"));
}

/// A store, a state or a configuration in the project could be one that the project brings.
#[test]
fn a_guard_refuses_places_in_its_project() {
    let desk = Desk::new();
    let project = desk.user.home().join("project");
    fs::create_dir(&project).unwrap();
    let at = |name: &str| project.join(name).display().to_string();
    let elsewhere = desk.user.home().join("elsewhere").display().to_string();
    let link = desk.user.home().join("link");
    std::os::unix::fs::symlink(&project, &link).unwrap();
    let linked = link.join("state").display().to_string();
    let run = |option: &str, value: &str| {
        let mut guard = desk.user.command(&["guard", option, value, "--", "no-such-server"]);
        ended(&guard.current_dir(&project).output().unwrap())
    };
    for (option, value) in [
        ("--store", &*format!("sqlite:{}", at("evil.db"))),
        ("--store", "sqlite:evil.db"),
        ("--state-dir", &*at(".x")),
        ("--config-dir", &*at(".x")),
        ("--state-dir", &*linked),
    ] {
        let refused = run(option, value);
        assert!(
            refused.status == 2 && refused.err.contains("lies in the project"),
            "{value}: {refused:?}"
        );
        assert!(refused.err.contains(option), "{refused:?}");
    }
    for option in ["--state-dir", "--config-dir"] {
        let told = run(option, &elsewhere);
        assert!(told.status != 2 && !told.err.contains("lies in the project"), "{told:?}");
    }
}

/// "`guard doctor` names a variable that was a setting with the option that replaces it", places in the project, entries
/// whose program the search path decides, and servers of the project that take the name of a guarded one.
#[test]
fn the_doctor_of_guards_says_what_a_project_would_decide() {
    let desk = Desk::new();
    let project = desk.user.home().join("project");
    fs::create_dir(&project).unwrap();
    let doctor = |variables: &[(&str, &str)]| {
        let mut doctor =
            desk.user.command(&["guard", "doctor", "--home", desk.user.home().to_str().unwrap()]);
        doctor.arg("--json").envs(variables.iter().copied()).current_dir(&project);
        ended(&doctor.output().unwrap())
    };
    let of = |told: &crate::program::Ended, check: &str| -> Value {
        told.lines().into_iter().find(|line| line["check"] == check).unwrap()
    };
    let well = doctor(&[]);
    assert_eq!((well.status, &of(&well, "environment")["ok"]), (0, &json!(true)), "{well:?}");
    assert_eq!(of(&well, "places")["ok"], true);

    let set = doctor(&[("COUNTERSIGN_STORE", "memory:")]);
    let found = of(&set, "environment");
    assert!(
        set.status == 3 && found["found"].as_str().unwrap().contains("`--store URL`"),
        "{found}"
    );

    let file = desk.user.home().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let entry = |program: &str| json!({"mcpServers": {"git": {"command": program, "args": ["guard", "--name", "git", "--", "x"]}}});
    fs::write(&file, entry("countersign").to_string()).unwrap();
    let bare = doctor(&[]);
    assert_eq!((bare.status, &of(&bare, "program")["ok"]), (3, &json!(false)), "{bare:?}");
    fs::write(&file, entry("/usr/local/bin/countersign").to_string()).unwrap();
    let whole = doctor(&[]);
    assert_eq!((whole.status, &of(&whole, "program")["ok"]), (0, &json!(true)), "{whole:?}");

    fs::write(project.join(".mcp.json"), r#"{"mcpServers": {"other": {"command": "x"}}}"#).unwrap();
    assert_eq!(of(&doctor(&[]), "servers")["ok"], true);
    for (name, text) in [
        (".mcp.json", r#"{"mcpServers": {"git": {"command": "x"}}}"#),
        (".codex/config.toml", "[mcp_servers.git]\ncommand = 'x'\n"),
        (".gemini/settings.json", r#"{"mcpServers": {"git": {"command": "x"}}}"#),
    ] {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let told = doctor(&[]);
        let found = of(&told, "servers");
        assert!(told.status == 3 && found["found"].as_str().unwrap().contains(name), "{found}");
        fs::remove_file(path).unwrap();
    }
}

/// `guard init` writes what it has found into the entry, as the guard takes nothing from the environment.
#[test]
fn the_entry_of_a_guard_names_its_places() {
    let desk = Desk::new();
    let state = desk.user.home().join("elsewhere/state");
    let server = desk.user.home().join("server");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/server.py");
    let text = format!("#!/bin/sh\nexec python3 '{}' '{}'\n", script.display(), desk.told());
    crate::support::write_program(&server, text);
    let words =
        ["--json", "guard", "init", "--name", "files", "--yes", "--", server.to_str().unwrap()];
    let mut init = desk.user.command(&words);
    init.env("XDG_STATE_HOME", &state).env("COUNTERSIGN_PRINCIPAL", "ann");
    let line = ended(&init.output().unwrap()).lines().remove(0);
    let entry = line["clients"][0]["entry"].as_str().unwrap();
    let home = desk.user.home().display().to_string();
    for (option, value) in [
        ("--home", &*home),
        ("--state-dir", &*state.join("countersign").display().to_string()),
        ("--principal", "ann"),
    ] {
        assert!(entry.contains(&format!("\"{option}\", \"{value}\"")), "{option}: {entry}");
    }
    assert!(!entry.contains("--config-dir"), "{entry}");
    let entry: Value = serde_json::from_str(entry).unwrap();
    let program = entry["mcpServers"]["files"]["command"].as_str().unwrap();
    assert!(std::path::Path::new(program).is_absolute(), "{program}");
}
