//! Files that decide are protected in their place, and not only by their names (rule R5).
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::{CALL, Call, answered, assert_allowed, assert_denied};
use crate::program::{Ended, User};

/// Rules that allow everything.
const OPEN: &str = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n";

/// R5: the floor is about what decides, wherever a link of the user's home directory leads to it.
#[test]
fn settings_in_a_folder_of_dotfiles_are_protected_where_they_are() {
    let user = User::new();
    user.own_rules(OPEN);
    let home = user.home();
    for folder in ["dots/cl", "dots/codex", ".codex", ".config/opencode", "dots/plain", "project"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    let written = [
        ("dots/cl/settings.json", "dots/cl", ".claude"),
        ("dots/codex/hooks.json", "../dots/codex/hooks.json", ".codex/hooks.json"),
        ("dots/oc.json", "../../dots/oc.json", ".config/opencode/opencode.json"),
        ("dots/config.toml", "../../dots/config.toml", ".config/countersign/config.toml"),
        ("dots/rc", "dots/rc", ".bashrc"),
        // What the link leads to may be made later.
        ("dots/later", "dots/later", ".zshrc"),
    ];
    for (file, target, link) in written {
        if !file.ends_with("later") {
            fs::write(home.join(file), "").unwrap();
        }
        symlink(target, home.join(link)).unwrap();
    }
    symlink("dots/plain", home.join("plain")).unwrap();
    let project = home.join("project");
    let call = |command: &str, client: &'static str| {
        let call = Call { directory: project.to_str().unwrap(), client, command, ..CALL };
        let mut hook = user.command(&["hook", client, "--limit", "90", "--wait", "0"]);
        hook.current_dir(&project);
        answered(hook, &call.before().to_string())
    };
    for (file, ..) in written {
        let command = format!("cp a.txt {}", home.join(file).display());
        assert_floor("claude", &call(&command, "claude"));
    }
    let other = format!("cp a.txt {}", home.join("dots/cl/settings.json").display());
    assert_floor("codex", &call(&other, "codex"));
    for file in ["dots/plain/a.txt", "dots/other", "project/a.txt"] {
        assert_allowed(&call(&format!("cp a.txt {}", home.join(file).display()), "claude"));
    }
    let written = home.join("dots/cl/settings.local.json");
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": project, "tool_use_id": "c1", "tool_name": "Write",
        "tool_input": {"file_path": written, "content": "{}"},
    });
    let mut hook = user.command(&["hook", "claude", "--limit", "90", "--wait", "0"]);
    hook.current_dir(&project);
    assert_floor("claude", &answered(hook, &payload.to_string()));
}

/// R5: a link of the project under a protected name, which a repository brings.
#[test]
fn settings_that_a_project_links_to_are_protected_where_they_are() {
    let user = User::new();
    user.own_rules(OPEN);
    let project = user.home().join("project");
    for folder in ["cfg", "scripts", ".git/hooks"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    symlink("cfg", project.join(".claude")).unwrap();
    symlink("../../scripts/pre-commit", project.join(".git/hooks/pre-commit")).unwrap();
    let call = |command: &str| {
        let call = Call { directory: project.to_str().unwrap(), command, ..CALL };
        let mut hook = user.command(&["hook", "claude", "--limit", "90", "--wait", "0"]);
        hook.current_dir(&project);
        answered(hook, &call.before().to_string())
    };
    for file in ["cfg/settings.json", "scripts/pre-commit"] {
        assert_floor("claude", &call(&format!("cp a.txt {file}")));
    }
    assert_allowed(&call("cp a.txt scripts/other"));
}

/// R5: the entry of the hook is protected where a variable of the environment tells the client to keep it.
#[test]
fn the_folder_that_a_variable_names_for_a_client_is_protected() {
    let user = User::new();
    user.own_rules(OPEN);
    let project = user.home().join("project");
    fs::create_dir_all(&project).unwrap();
    let told = |client: &'static str, variable: &str, folder: &Path, file: &Path| {
        let command = format!("cp a.txt {}", file.display());
        let call = Call { client, directory: project.to_str().unwrap(), command: &command, ..CALL };
        let mut hook = user.command(&["hook", client, "--limit", "90", "--wait", "0"]);
        hook.current_dir(&project).env(variable, folder);
        answered(hook, &call.before().to_string())
    };
    let (home, work) = (user.home(), user.home().join("work"));
    for (client, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.local.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot", "COPILOT_HOME", "config.json"),
    ] {
        assert_allowed(&told(client, "ANOTHER", &work, &work.join(file)));
        assert_floor(client, &told(client, variable, &work, &work.join(file)));
    }
    // A folder that has the project within it is none of a client alone.
    let claude = |file: &Path| told("claude", "CLAUDE_CONFIG_DIR", home, file);
    assert_floor("claude", &claude(&home.join("settings.json")));
    assert_allowed(&claude(&project.join("b.txt")));
}

/// The floor asks, and not another question.
#[track_caller]
fn assert_floor(client: &str, told: &Ended) {
    assert_denied(client, told, "waits for approval");
    assert!(told.err.contains("decides what runs or what is allowed"), "{told:?}");
}
