//! `countersign init`: from an installed program to protected agents, and back (rule P6).
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::hooks::{CALL, Call};
use super::{Ended, User};
use crate::support::program;
use crate::terminal::lines::Session;

const ALL: [&str; 11] = [
    "init",
    "--yes",
    "--preset",
    "developer",
    "--allow",
    "grant",
    "--journal=on",
    "--inbox=on",
    "--guard=on",
    "--client=claude",
    "--client=qwen",
];

const DESKTOP: &str = ".config/Claude/claude_desktop_config.json";
const SERVERS: &str = r#"{"mcpServers": {"git": {"command": "mcp-server-git", "args": ["-r", "/x"], "env": {"A": "b"}},
    "far": {"url": "https://mcp.example"}}, "theme":"dark"}"#;

impl User {
    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.home().join(path)).unwrap_or_else(|_| panic!("{path} is missing"))
    }

    /// A person with settings of their own.
    fn with_settings() -> Self {
        let user = Self::new();
        user.put(".claude/settings.json", "{\"theme\":\"dark\",\n\t\"size\": 1e3}");
        user.put(".config/countersign/config.toml", "# mine\nprincipal = \"ann\"");
        user.put(DESKTOP, SERVERS);
        user
    }

    /// Every file and folder of this user but the state of the program, with its text.
    fn files(&self) -> BTreeMap<PathBuf, Option<String>> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.home().to_owned()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with(".local") {
                    continue;
                }
                let text = path.is_file().then(|| fs::read_to_string(&path).unwrap());
                open.extend(path.is_dir().then(|| path.clone()));
                found.insert(path, text);
            }
        }
        found
    }
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// P6: "`countersign init` installs the hook in each agent that is there", "`--undo` puts each file back, to the byte".
#[test]
fn everything_is_protected_and_taken_back_to_the_byte() {
    let user = User::with_settings();
    let before = user.files();
    let done = user.run(&ALL);
    assert_eq!(done.status, 0, "{done:?}");

    let claude = json_of(&user.text(".claude/settings.json"));
    let command = claude["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(command.contains("--allow grant --ask edits --limit 300"), "{command}");
    assert!(user.text(".qwen/settings.json").contains("hook qwen"));
    assert!(user.text(".config/countersign/rules.toml").contains("preset = \"developer\""));
    let config = user.text(".config/countersign/config.toml");
    assert!(config.starts_with("# mine\nprincipal = \"ann\"\n"), "{config}");
    assert!(
        config.contains("[journal]\nenabled = true") && config.contains("[inbox]\nlisten"),
        "{config}"
    );
    let servers = json_of(&user.text(DESKTOP));
    // The home of the tests is not that of the account, which a guard takes by itself.
    let home = user.home();
    let words = json!([
        "guard",
        "--name",
        "git",
        "--wait",
        "45",
        "--home",
        home,
        "--",
        "mcp-server-git",
        "-r",
        "/x"
    ]);
    assert_eq!(servers["mcpServers"]["git"]["args"], words);
    // Tests run the program from a folder that a build makes anew, and the copy of it stays.
    let program = Path::new(servers["mcpServers"]["git"]["command"].as_str().unwrap());
    assert!(program.starts_with(home) && program.is_file(), "{}", program.display());
    let accept = format!("guard init --name git --home {} -- mcp-server-git -r /x", home.display());
    assert!(done.out.contains(&accept), "{}", done.out);
    assert_eq!(servers["mcpServers"]["far"], json!({"url": "https://mcp.example"}));
    assert_eq!(user.run(&["rules", "check"]).status, 0);

    let undone = user.run(&["init", "--undo"]);
    assert_eq!(undone.status, 0, "{undone:?}");
    assert_eq!(user.files(), before);
    assert!(!user.state("init").exists(), "no copy is left");
    assert!(user.run(&["init", "--undo"]).out.contains("nothing to take back"));
}

/// P6: "A second run changes nothing".
#[test]
fn a_second_run_changes_nothing() {
    let user = User::with_settings();
    let before = user.files();
    user.run(&ALL);
    let (once, record) = (user.files(), fs::read(user.state("init/changes.json")).unwrap());
    let again = user.run(&ALL);
    assert!(
        again.status == 0 && again.out.contains("Everything is as you have chosen"),
        "{again:?}"
    );
    assert_eq!((user.files(), fs::read(user.state("init/changes.json")).unwrap()), (once, record));
    // Another choice changes what it is about, and the way back is still that to the beginning.
    let other: Vec<_> = ALL.iter().map(|it| if *it == "grant" { "silent" } else { *it }).collect();
    assert_eq!(user.run(&other).status, 0);
    assert!(!user.text(".claude/settings.json").contains("--allow"));
    assert_eq!(user.run(&["init", "--undo"]).status, 0);
    assert_eq!(user.files(), before);
}

/// P6: "What an entry has stays, unless the run chooses otherwise".
#[test]
fn a_second_run_keeps_what_an_entry_has() {
    let user = User::with_settings();
    user.run(&ALL);
    let store = format!("sqlite:{}", user.home().join("elsewhere.db").display());
    let own = ["hook", "install", "claude", "--allow", "grant", "--limit", "45"];
    let own = user.run(&[&own[..], &["--", "--store", &store, "--wait", "5"]].concat());
    assert_eq!(own.status, 0, "{own:?}");
    let installed = user.text(".claude/settings.json");
    assert!(installed.contains("--allow grant --limit 45"), "{installed}");

    let again = user.run(&["init", "--yes"]);
    assert_eq!(again.status, 0, "{again:?}");
    assert_eq!(user.text(".claude/settings.json"), installed);
    assert_eq!(user.run(&["init", "--yes", "--allow", "silent"]).status, 0);
    assert_eq!(user.text(".claude/settings.json"), installed.replace(" --allow grant", ""));
    // A preset that is named counts beside that of the file, and is gone again when none is named.
    let named = user.run(&["init", "--yes", "--preset", "reader"]);
    assert!(named.out.contains("`reader` counts beside `developer`"), "{named:?}");
    assert!(user.text(".claude/settings.json").contains("--preset reader"));
    assert_eq!(user.run(&["init", "--yes", "--preset", "none"]).status, 0);
    assert!(!user.text(".claude/settings.json").contains("--preset"));
}

/// P6: what an entry has stays in each later run, for every client: its store, its limit and its person. An entry with an
/// option that is not known is an error, and not an entry without options.
#[test]
fn the_entries_of_every_client_stay_as_they_are_in_each_later_run() {
    let clients = ["claude", "codex", "gemini", "copilot", "opencode", "qwen", "cursor"];
    for client in clients {
        let user = User::new();
        let store = format!("sqlite:{}", user.home().join("x.db").display());
        let own = ["hook", "install", client, "--preset", "developer", "--limit", "120"];
        let own = user.run(&[&own[..], &["--", "--store", &store, "--principal", "zoe"]].concat());
        assert_eq!(own.status, 0, "{own:?}");
        let run = || {
            let ended = user.run(&["init", "--yes", "--preset", "developer", "--client", client]);
            assert_eq!(ended.status, 0, "{ended:?}");
            let files = user.files();
            let all: String = files.values().flatten().map(String::as_str).collect();
            for kept in [&store, "--principal zoe", "--limit 120"] {
                assert!(all.contains(kept) || client == "opencode", "{client}: {kept}: {all}");
            }
            assert!(all.contains("zoe") && !all.contains("--event --event"), "{client}: {all}");
            let twice = |line: &str| line.matches("--event").count() > 1;
            assert!(!all.lines().any(twice), "{client}: {all}");
            files
        };
        let once = run();
        assert_eq!(run(), once, "{client}");
        assert_eq!(run(), once, "{client}");
    }

    let user = User::new();
    user.put(".claude/settings.json", "{}");
    assert_eq!(user.run(&["hook", "install", "claude", "--preset", "developer"]).status, 0);
    let text = user.text(".claude/settings.json");
    let other = text.replace("--preset developer", "--preset developer --preset developer");
    assert_ne!(text, other);
    user.put(".claude/settings.json", &other);
    let ended = user.run(&["init", "--yes", "--preset", "developer", "--client", "claude"]);
    assert!(ended.status == 2 && ended.err.contains("hook uninstall claude"), "{ended:?}");
    assert_eq!(user.text(".claude/settings.json"), other);
}

/// P6: "A second run changes nothing", also where edits run unasked, and a choice that the file would overrule is refused.
#[test]
fn a_choice_about_edits_is_made_once() {
    let user = User::new();
    user.put(".claude/settings.json", "{}");
    let with = |edits: &str| {
        user.run(&["init", "--yes", "--preset", "developer", "--edits", edits, "--client=claude"])
    };
    assert_eq!(with("workspace").status, 0);
    let once = user.files();
    assert!(with("workspace").out.contains("Everything is as you have chosen"));
    assert_eq!(user.files(), once);
    let refused = with("ask");
    assert!(refused.status == 2 && refused.err.contains("write `edits = \"ask\"`"), "{refused:?}");
}

/// A person with an MCP client alone needs no preset, which is about agents.
#[test]
fn the_servers_of_a_client_are_guarded_without_an_agent() {
    let user = User::new();
    user.put(DESKTOP, SERVERS);
    let run = |words: &[&str]| {
        let mut command = user.command(words);
        super::ended(&command.env("PATH", "/nowhere").output().unwrap())
    };
    let nothing = run(&["init", "--yes"]);
    assert!(nothing.status == 3 && nothing.out.contains("--guard on"), "{nothing:?}");
    assert_eq!(user.text(DESKTOP), SERVERS);
    let journal = run(&["init", "--yes", "--journal", "on"]);
    assert!(journal.status == 0 && journal.out.contains("No agent and no server was chosen"));
    assert!(journal.out.contains("--guard on") && !journal.out.contains("waits for you"));
    assert_eq!(run(&["init", "--undo"]).status, 0);
    let guarded = run(&["init", "--yes", "--guard", "on"]);
    assert_eq!(guarded.status, 0, "{guarded:?}");
    assert!(user.text(DESKTOP).contains("\"guard\""));
    assert!(!user.home().join(".config/countersign/rules.toml").exists());
    assert_eq!(run(&["init", "--undo"]).status, 0);
    assert_eq!(user.text(DESKTOP), SERVERS);
}

/// A person who wants no guard, and has no agent, is asked nothing more.
#[test]
fn without_anything_to_protect_nothing_more_is_asked() {
    let user = User::new();
    user.put(DESKTOP, SERVERS);
    let command = pty_process::blocking::Command::new(program("countersign"))
        .arg("init")
        .env_clear()
        .env("HOME", user.home())
        .env("PATH", "/nowhere");
    let mut session = Session::of(command);
    session.until("Put a guard in front of the MCP servers of Claude Desktop?", 1).send("n\r");
    session.until("Nothing was chosen, so nothing was changed.", 1);
    assert_eq!(session.ended(), Some(3), "{}", session.shown());
    assert!(!session.shown().contains("journal"), "{}", session.shown());
    assert_eq!(user.text(DESKTOP), SERVERS);
}

/// P6: "`init` names the folders of `PATH` in which tools may put programs".
#[test]
fn a_search_path_that_tools_may_write_is_said() {
    let user = User::with_settings();
    fs::create_dir_all(user.home().join(".venv/bin")).unwrap();
    let open = user.home().join(".venv/bin").display().to_string();
    let run = |path: String| {
        let said = super::ended(&user.command(&ALL).env("PATH", path).output().unwrap());
        said.out.split("To do: `PATH` names ").nth(1).map(str::to_owned)
    };
    let said = run(format!("{open}:/usr/bin:/bin")).expect("it is first");
    assert!(said.starts_with(&format!("`{open}`")) && said.contains("also `ls`"), "{said}");
    assert_eq!(run(format!("/usr/bin:/bin:{open}")), None, "no program is behind it");
}

/// P6: "The copy of the program that the entries start is removed, unless another entry of this user starts it."
#[test]
fn the_copy_of_the_program_is_taken_back_with_the_last_entry_that_starts_it() {
    let user = User::with_settings();
    let copy = user.state("bin/countersign");
    assert_eq!(user.run(&ALL).status, 0);
    assert!(copy.exists());
    assert_eq!(user.run(&["init", "--undo"]).status, 0);
    assert!(!copy.exists() && !user.state("bin").exists());
    assert_eq!(user.run(&ALL).status, 0);
    assert_eq!(user.run(&["hook", "install", "codex"]).status, 0);
    let undone = user.run(&["init", "--undo"]);
    assert!(undone.status == 3 && copy.exists(), "{undone:?}");
    assert!(undone.out.contains("kept, as it is started by ~/.codex"), "{undone:?}");
}

/// P6: "An entry counts wherever its client finds MCP servers: in a file that a variable names, among the servers of one project,
/// or in a file with comments. A file that cannot be read and has the name of this program counts as one that may start it."
#[test]
fn the_copy_of_the_program_stays_for_a_guard_in_any_file_of_a_client() {
    let json = |copy: &Path| {
        let args = ["guard", "--name", "git", "--", "mcp-server-git"];
        json!({"git": {"command": copy, "args": args}}).to_string()
    };
    let of_project =
        |copy: &Path| format!(r#"{{"projects": {{"/src": {{"mcpServers": {}}}}}}}"#, json(copy));
    let commented = |copy: &Path| format!("{{\n// mine\n\"mcpServers\": {},\n}}", json(copy));
    let toml = |copy: &Path| format!("[mcp_servers.git]\ncommand = {copy:?}\nargs = [\"guard\"]\n");
    let broken = |copy: &Path| format!("[mcp_servers.git\ncommand = {copy:?}\n");
    type TextOf<'a> = &'a dyn Fn(&Path) -> String;
    let cases: [(&str, TextOf<'_>, &str); 5] = [
        (".claude.json", &of_project, "kept, as it is started by ~/.claude.json"),
        (".gemini/settings.json", &commented, "kept, as it is started by ~/.gemini/settings.json"),
        (".copilot/mcp-config.json", &commented, "started by ~/.copilot/mcp-config.json"),
        ("elsewhere/config.toml", &toml, "kept, as it is started by ~/elsewhere/config.toml"),
        (".codex/config.toml", &broken, "~/.codex/config.toml cannot be read, and may start it"),
    ];
    for (file, text, said) in cases {
        let user = User::with_settings();
        let copy = user.state("bin/countersign");
        assert_eq!(user.run(&ALL).status, 0);
        user.put(file, &text(&copy));
        let mut undo = user.command(&["init", "--undo"]);
        let undo = undo.env("CODEX_HOME", user.home().join("elsewhere")).output().unwrap();
        let undone = super::ended(&undo);
        assert!(undone.status == 3 && copy.exists(), "{file}: {undone:?}");
        assert!(undone.out.contains(said) && !undone.out.contains("rm -r"), "{file}: {undone:?}");
    }
}

/// R3: what `init` writes without a person is a change like any other, and it says what is left to do.
#[test]
fn rules_that_allow_more_than_those_before_are_said() {
    let user = User::new();
    fs::create_dir_all(user.home().join("p")).unwrap();
    user.put(".claude/settings.json", "{}");
    let with = |preset: &str| user.run(&["init", "--yes", "--preset", preset, "--client=claude"]);
    assert!(!with("reader").out.contains("rules accept"));
    called(&user, "Bash", &json!({"command": "ls"}));
    let file = user.home().join(".config/countersign/rules.toml");
    let text = fs::read_to_string(&file).unwrap().replace("\"reader\"", "\"developer\"");
    fs::write(&file, text).unwrap();
    let changed = with("developer");
    assert!(changed.out.contains("until you run `countersign rules accept`"), "{changed:?}");
}

/// P6: "A file that was edited in between keeps the edit, and `--undo` says so".
#[test]
fn a_file_that_was_edited_in_between_keeps_the_edit() {
    let user = User::with_settings();
    user.run(&ALL);
    let edited = |path: &str, from: &str, to: &str| {
        let text = user.text(path);
        assert!(text.contains(from), "{path}: {text}");
        user.put(path, &text.replace(from, to));
    };
    edited(".claude/settings.json", "\"dark\"", "\"light\"");
    edited(DESKTOP, "\"dark\"", "\"light\"");
    edited(".config/countersign/rules.toml", "# Your rules.", "# My rules.");
    fs::remove_file(user.home().join(".qwen/settings.json")).unwrap();

    let undone = user.run(&["init", "--undo"]);
    assert_eq!(undone.status, 3, "{undone:?}");
    for says in [
        "only the hook was removed",
        "only the guards were removed",
        "not taken back, as it was edited",
    ] {
        assert!(undone.out.contains(says), "{says}: {undone:?}");
    }
    let claude = json_of(&user.text(".claude/settings.json"));
    assert_eq!(claude, json!({"theme": "light", "size": 1000.0}));
    let servers = json_of(&user.text(DESKTOP));
    let git = json!({"command": "mcp-server-git", "args": ["-r", "/x"], "env": {"A": "b"}});
    assert_eq!((&servers["mcpServers"]["git"], &servers["theme"]), (&git, &json!("light")));
    assert!(user.text(".config/countersign/rules.toml").contains("# My rules."));
    assert_eq!(user.text(".config/countersign/config.toml"), "# mine\nprincipal = \"ann\"");
    // The text that was there is where `--undo` says.
    let kept =
        undone.out.lines().find(|line| line.contains("settings.json") && line.contains("~/.local"));
    let kept = kept.unwrap().rsplit("is ~/").next().unwrap();
    assert_eq!(user.text(kept), "{\"theme\":\"dark\",\n\t\"size\": 1e3}");
}

/// P6: "`--undo` names what stays, where, and the command that removes it": which then leaves nothing. "After it, `init` begins
/// anew": its rules count at once, as they did the first time.
#[test]
fn an_undo_says_what_stays_and_begins_anew() {
    let user = User::with_settings();
    fs::create_dir_all(user.home().join("p")).unwrap();
    let init = ["init", "--yes", "--preset", "developer", "--allow", "grant", "--client", "claude"];
    let ls = json!({"command": "ls"});
    for _ in 0..2 {
        assert_eq!(user.run(&[&init[..], &["--journal", "on"]].concat()).status, 0);
        let decided = called(&user, "Bash", &ls);
        assert!(decided.out.contains("\"allow\""), "{decided:?}");
        // A copy of settings by a command of its own.
        let (install, uninstall) = (["hook", "install", "gemini"], ["hook", "uninstall", "gemini"]);
        user.put(".gemini/settings.json", "{\"a\": 1}");
        assert_eq!((user.run(&install).status, user.run(&uninstall).status), (0, 0));
        user.put(".gemini/.settings.json.x.backup", "{}");
        let undone = user.run(&["init", "--undo"]);
        assert_eq!(undone.status, 0, "{undone:?}");
        for stays in [
            "~/.local/state/countersign/asks.db: asks and grants, ",
            "~/.local/state/countersign/journal.jsonl: decisions, with the arguments of calls, ",
            "~/.gemini/.settings.json.x.backup: a copy of settings",
        ] {
            assert!(undone.out.contains(stays), "{stays}: {undone:?}");
        }
        assert!(!undone.out.contains("Everything"), "{undone:?}");
    }
    assert_eq!(user.run(&init).status, 0);
    let undone = user.run(&["init", "--undo"]);
    let command = undone.out.lines().map(str::trim).find(|line| line.starts_with("rm -r "));
    let command = command.unwrap_or_else(|| panic!("{undone:?}"));
    let removed = std::process::Command::new("/bin/sh").args(["-c", command]).status().unwrap();
    assert!(removed.success() && !user.state("asks.db").exists());
    assert_eq!(fs::read_dir(user.home().join(".gemini")).unwrap().count(), 1);

    // Where a hook is left, it knew that there are no rules, and those that appear wait to be accepted.
    assert_eq!(user.run(&init).status, 0);
    assert!(called(&user, "Bash", &ls).out.contains("\"allow\""));
    assert_eq!(user.run(&["hook", "install", "gemini"]).status, 0);
    let undone = user.run(&["init", "--undo"]);
    assert!(
        undone.out.contains("A hook or a guard in ~/.gemini/settings.json still uses"),
        "{undone:?}"
    );
    assert!(!undone.out.contains("rm -r"), "{undone:?}");
    assert!(user.run(&init).out.contains("until you run `countersign rules accept`"));
}

/// P6: what a person has edited stays, and each `--undo` names it, with the command that removes it.
#[test]
fn an_undo_names_the_files_that_a_person_has_edited_each_time() {
    let user = User::with_settings();
    let init = ["init", "--yes", "--preset", "developer", "--allow", "grant", "--client", "claude"];
    assert_eq!(user.run(&init).status, 0);
    let rules = ".config/countersign/rules.toml";
    user.put(rules, &(user.text(rules) + "# mine\n"));
    let first = user.run(&["init", "--undo"]);
    assert_eq!(first.status, 3, "{first:?}");
    let second = user.run(&["init", "--undo"]);
    assert_eq!(second.status, 0, "{second:?}");
    let folder = user.home().join(".config/countersign");
    for undone in [&first, &second] {
        assert!(undone.out.contains("rules.toml: your rules, "), "{undone:?}");
        assert!(undone.out.contains(&format!("rm -r {}", folder.display())), "{undone:?}");
    }
    assert!(second.out.contains("nothing to take back"), "{second:?}");
}

/// P6: "A crash at any moment loses nothing": whenever it ends, the way back leads to the byte.
#[test]
fn a_crash_at_any_moment_loses_nothing() {
    let user = User::with_settings();
    let before = user.files();
    for step in 0..12 {
        let mut child = user.command(&ALL).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(step * 3));
        let _ = child.kill();
        child.wait().unwrap();
        let undone = user.run(&["init", "--undo"]);
        assert_eq!(undone.status, 0, "{step}: {undone:?}");
        let mut after = user.files();
        // A file that was being written, beside the one that it was to replace.
        after.retain(|path, _| path.extension().is_none_or(|it| it != "new"));
        // A folder may be there whose file was not written yet.
        after.retain(|path, text| before.contains_key(path) || text.is_some());
        assert_eq!(after, before, "{step}");
    }
    // A crash behind the record and before the change: the run after it does what is left.
    user.run(&ALL);
    user.put(
        ".claude/settings.json",
        before[&user.home().join(".claude/settings.json")].as_ref().unwrap(),
    );
    assert_eq!(user.run(&ALL).status, 0);
    assert!(user.text(".claude/settings.json").contains("hook claude"));
}

/// P6: "Nothing is chosen for the user": not the preset, and not an agent that was never tested.
#[test]
fn a_script_has_to_name_a_preset_and_an_agent_that_was_never_tested() {
    let user = User::new();
    user.put(".claude/settings.json", "{}");
    user.put(".cursor/hooks.json", "{\"version\": 1}");
    let refused = user.run(&["init", "--yes"]);
    assert!(refused.status == 2 && refused.err.contains("--preset developer"), "{refused:?}");
    let silent = user.run(&["init"]);
    assert!(silent.status == 2 && silent.err.contains("--yes"), "no terminal: {silent:?}");
    assert_eq!(user.run(&["init", "--yes", "--preset", "reader"]).status, 0);
    assert!(user.text(".claude/settings.json").contains("hook claude"));
    assert!(!user.text(".claude/settings.json").contains("--allow"), "not asked for");
    assert!(!user.text(".cursor/hooks.json").contains("countersign"));
    assert!(!user.home().join(".config/countersign/config.toml").exists());
    assert_eq!(user.run(&["init", "--yes", "--client", "cursor"]).status, 0);
    assert!(user.text(".cursor/hooks.json").contains("hook cursor"));
}

/// P6: rules that are there stay as they are; a preset that is named counts beside them, in the entry.
#[test]
fn rules_that_are_there_are_kept() {
    let user = User::new();
    let own =
        "version = 1\n[[rule]]\nid = 'never'\ndeny = 'shell'\nwhere.command.runs = 'git push'\n";
    user.own_rules(own);
    let done = user.run(&[
        "init",
        "--yes",
        "--client",
        "claude",
        "--preset",
        "developer",
        "--allow",
        "grant",
    ]);
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(user.text(".config/countersign/rules.toml"), own);
    assert!(
        user.text(".claude/settings.json").contains("--preset developer --allow grant --ask edits")
    );
}

/// P6: "The page that people copy, what `init` writes and the preset decide alike."
#[test]
fn what_init_writes_is_the_beginning_of_the_page() {
    let page = format!("{}/../docs/guide/coding-agents.md", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(page).unwrap();
    let copied = page.split("```toml\n").nth(1).unwrap();
    let begins = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    for (edits, unasked) in [("workspace", true), ("ask", false)] {
        let user = User::new();
        user.put(".claude/settings.json", "{}");
        let options =
            ["init", "--yes", "--preset", "developer", "--edits", edits, "--client", "claude"];
        assert_eq!(user.run(&options).status, 0);
        let written = user.text(".config/countersign/rules.toml");
        assert_eq!(
            begins(&written),
            begins(&copied.replace("\"workspace\"", &format!("\"{edits}\"")))
        );
        let directory = user.home().join("p");
        fs::create_dir_all(&directory).unwrap();
        let edit = json!({"file_path": directory.join("a.md"), "content": "x"});
        let asked = called(&user, "Write", &edit);
        assert_eq!(!asked.out.contains("ask") && asked.status == 0, unasked, "{edits}: {asked:?}");
        let elsewhere = json!({"file_path": user.home().join("a.md"), "content": "x"});
        assert_ne!(called(&user, "Write", &elsewhere).status, 0, "{edits}");
    }
    // A file of the user stays, and the entry says it.
    let user = User::new();
    user.own_rules(
        "version = 1\n[[rule]]\nid = 'never'\ndeny = 'shell'\nwhere.command.runs = 'git push'\n",
    );
    let options =
        ["init", "--yes", "--preset", "developer", "--edits", "workspace", "--client", "claude"];
    assert_eq!(user.run(&options).status, 0);
    let entry = user.text(".claude/settings.json");
    assert!(
        entry.contains("--preset developer --edits workspace") && !entry.contains("--ask"),
        "{entry}"
    );
}

#[test]
fn a_file_with_comments_is_not_written_anew() {
    let user = User::new();
    let servers = "{// mine\n\"mcpServers\": {\"git\": {\"command\": \"mcp-server-git\"}}}";
    user.put(DESKTOP, servers);
    user.put(".claude/settings.json", "{}");
    let done = user.run(&["init", "--yes", "--preset", "none", "--guard", "on"]);
    assert_eq!(done.status, 3, "something was left out: {done:?}");
    assert_eq!(user.text(DESKTOP), servers);
    assert!(done.out.contains("has comments") && done.out.contains("guard init"), "{done:?}");
}

/// P6: "An agent whose settings cannot be changed without loss is left out, by name and with what to do, and the others are set
/// up": comments, what is no JSON, what is no text. The status says so.
#[test]
fn an_agent_whose_settings_cannot_be_used_is_left_out_and_the_others_are_set_up() {
    let run = |user: &User| {
        let clients = ["--client=claude", "--client=qwen", "--client=codex"];
        user.run(&[&["init", "--yes", "--preset", "developer"][..], &clients].concat())
    };
    let broken: [(&[u8], &str); 4] = [
        (b"{\"env\": {\"A\": \"1\", \"A\": \"2\"}}", "it has a key twice"),
        (b"{\"a\": 1, // mine\n}", "it has comments"),
        (b"{\"a\": ", "it is not JSON"),
        (b"\xff\xfe{\0}\0", "save it as such"),
    ];
    for (text, says) in broken {
        let user = User::new();
        let file = user.put(".claude/settings.json", "");
        fs::write(&file, text).unwrap();
        let done = run(&user);
        assert_eq!(done.status, 3, "{done:?}");
        let left_out = done.out.split("Left out: Claude Code: ").nth(1).expect(&done.out);
        assert!(left_out.contains(says) && left_out.contains("settings.json"), "{done:?}");
        assert_eq!(fs::read(&file).unwrap(), text, "it is left alone");
        assert!(user.text(".qwen/settings.json").contains("hook qwen"), "{done:?}");
        assert!(user.text(".codex/hooks.json").contains("hook codex"), "{done:?}");
        // The second run changes nothing, and says the same.
        let again = run(&user);
        assert!(again.status == 3 && again.out.contains("Left out: Claude Code: "), "{again:?}");
        let undone = user.run(&["init", "--undo"]);
        assert_eq!((undone.status, fs::read(&file).unwrap()), (0, text.to_vec()), "{undone:?}");
        // Where no agent is left it is an error, and nothing is changed.
        let alone = user.run(&["init", "--yes", "--preset", "developer", "--client=claude"]);
        assert!(alone.status == 1 && alone.err.contains("settings.json"), "{alone:?}");
        assert!(!user.home().join(".config/countersign/rules.toml").exists());
    }
}

/// P6: "A byte order mark is no part of the settings": such a file is changed, and is put back with it.
#[test]
fn a_byte_order_mark_is_skipped_and_put_back() {
    let user = User::new();
    let settings = "\u{feff}{\"theme\": \"dark\"}";
    user.put(".claude/settings.json", settings);
    let servers = format!("\u{feff}{SERVERS}");
    user.put(DESKTOP, &servers);
    let done = user.run(&ALL);
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(json_of(&user.text(".claude/settings.json"))["theme"], "dark");
    assert!(user.text(DESKTOP).contains("\"guard\""));
    assert_eq!(user.run(&["init", "--undo"]).status, 0);
    assert_eq!(user.text(".claude/settings.json"), settings);
    assert_eq!(user.text(DESKTOP), servers);
    // The hook by itself, too.
    assert_eq!(user.run(&["hook", "install", "claude"]).status, 0);
    assert!(user.text(".claude/settings.json").contains("hook claude"));
    assert_eq!(user.run(&["hook", "uninstall", "claude"]).status, 0);
    assert_eq!(user.text(".claude/settings.json"), settings);
}

#[test]
fn where_there_is_no_agent_the_known_ones_are_named() {
    let user = User::new();
    let mut command = user.command(&["init", "--yes", "--preset", "developer"]);
    let found = super::ended(&command.env("PATH", "/nowhere").output().unwrap());
    assert!(found.status == 3 && found.out.contains("Claude Code (`claude`)"), "{found:?}");
    assert!(user.files().is_empty());
}

/// The hook as `init` has installed it, with one call of Claude Code.
fn called(user: &User, tool: &str, args: &Value) -> Ended {
    let settings = json_of(&user.text(".claude/settings.json"));
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    let command = command.replace("--limit 300", "--limit 300 --wait 0");
    let mut payload = Call { directory: user.home().join("p").to_str().unwrap(), ..CALL }.before();
    payload["tool_name"] = tool.into();
    payload["tool_input"] = args.clone();
    let mut shell = std::process::Command::new("/bin/sh");
    super::in_environment_of(&mut shell, user.home());
    shell.args(["-c", &command]).current_dir(user.home().join("p"));
    super::hooks::answered(shell, &payload.to_string())
}

/// P6: "reading runs unasked, an edit of the project is asked about in the client, and what leaves the project in the inbox".
#[test]
fn what_init_has_installed_decides_as_it_says() {
    let user = User::new();
    fs::create_dir_all(user.home().join("p/src")).unwrap();
    let run = ["init", "--yes", "--preset", "developer", "--allow", "grant", "--client", "claude"];
    assert_eq!(user.run(&run).status, 0);
    let decided = |tool: &str, args: Value| {
        let ended = called(&user, tool, &args);
        let answer = json_of(&ended.out);
        let decision =
            answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap().to_owned();
        (decision, ended.err)
    };
    assert_eq!(decided("Bash", json!({"command": "ls"})).0, "allow");
    let edit = |path: &Path| json!({"file_path": path, "old_string": "a", "new_string": "b"});
    let inside = user.home().join("p");
    assert_eq!(decided("Edit", edit(&inside.join("src/a.rs"))).0, "ask");
    for elsewhere in
        [user.home().join("b.md"), inside.join("Cargo.toml"), inside.join(".git/config")]
    {
        let (decision, says) = decided("Edit", edit(&elsewhere));
        assert_eq!(decision, "deny", "{}", elsewhere.display());
        assert!(says.contains("waits for approval"), "{says}");
    }
    for (tool, args) in [
        ("Bash", json!({"command": "git push"})),
        ("mcp__git__git_status", json!({"repo": "."})),
        ("mcp__x__read_file", json!({"path": inside.join("src/a.rs")})),
    ] {
        let (decision, says) = decided(tool, args);
        assert!(decision == "deny" && says.contains("countersign asks review"), "{tool}: {says}");
    }
}

/// P1: "If the file is gone, the call is denied", also where the entry has a preset.
#[test]
fn a_preset_does_not_answer_for_rules_that_are_gone() {
    let user = User::new();
    fs::create_dir_all(user.home().join("p")).unwrap();
    user.own_rules("version = 1\n[[rule]]\nid = 'x'\ndeny = 'shell'\nwhere.command.runs = 'cargo'");
    user.run(&["hook", "install", "claude", "--preset", "developer", "--allow", "grant"]);
    let ls = json!({"command": "ls"});
    assert_eq!(called(&user, "Bash", &ls).status, 0);
    fs::remove_file(user.home().join(".config/countersign/rules.toml")).unwrap();
    let gone = called(&user, "Bash", &ls);
    assert!(gone.status == 2 && gone.err.contains("rules.toml"), "{gone:?}");
    // The same where the entry names no file, and one was there at the last call.
    let user = User::new();
    fs::create_dir_all(user.home().join("p")).unwrap();
    user.run(&["hook", "install", "claude", "--preset", "developer", "--allow", "grant"]);
    user.own_rules("version = 1\n[[rule]]\nid = 'x'\ndeny = 'shell'\nwhere.command.runs = 'cargo'");
    assert_eq!(called(&user, "Bash", &ls).status, 0);
    fs::remove_file(user.home().join(".config/countersign/rules.toml")).unwrap();
    let gone = called(&user, "Bash", &ls);
    assert!(gone.status == 2 && gone.err.contains("was there and is gone"), "{gone:?}");
}
