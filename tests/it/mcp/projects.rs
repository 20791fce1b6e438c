//! The project that a guard's rules are about (rule R1).

use serde_json::{Value, json};

use super::client::{Client, told};
use super::process::Desk;
use crate::program::ended;

const ERA: &str = "2025-11-25";

/// A rules file that allows reading within the project.
fn within(desk: &Desk) -> String {
    let rules = desk.user.home().join("rules.toml");
    let text =
        "version = 1\n[[rule]]\nid = 'mine'\nallow = 'mcp:files/*'\nwhere.path.within = '.'\n";
    std::fs::write(&rules, text).unwrap();
    rules.display().to_string()
}

/// A server with a tool that reads a path.
fn reader(desk: &Desk) -> Value {
    let mut server = desk.told();
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    server["tools"] = json!([{"name": "read", "inputSchema": schema}]);
    server
}

/// What a call of the tool with this path is told, by a guard in this directory.
async fn called(desk: &Desk, directory: &str, options: &[&str], path: &str) -> String {
    let all = [&["--wait", "0", "--name", "files"], options].concat();
    let mut guard = desk.guard_of("ann", &all, &reader(desk));
    guard.current_dir(directory);
    let mut client = Client::earlier(guard, ERA, json!({})).await;
    let (text, _) = told(&client.call("read", json!({"path": path})).await);
    client.goes().await;
    text
}

/// Accepts the tools of the server.
async fn accepted(desk: &Desk) {
    let guard = desk.guard_of("ann", &["--name", "files"], &reader(desk));
    Client::earlier(guard, ERA, json!({})).await.goes().await;
    desk.accept_tools().await;
}

// Rule R1: "a guard whose working directory is `/`, a home directory or above one refuses it".
#[test]
fn rules_about_a_project_are_refused_where_the_working_directory_is_none() {
    let desk = Desk::new();
    let rules = within(&desk);
    let home = desk.user.home().display().to_string();
    for directory in ["/", &home, "/home", "/root"] {
        if !std::path::Path::new(directory).is_dir() {
            continue;
        }
        let mut guard = desk.user.command(&["guard", "--rules", &rules, "--", "no-such-server"]);
        let ended = ended(&guard.current_dir(directory).output().unwrap());
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{directory}: {ended:?}");
        for part in ["rules.toml:2: rule `mine`", "is none", "--project DIRECTORY"] {
            assert!(ended.err.contains(part), "{directory}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn rules_about_a_project_are_about_the_one_that_was_given() {
    let desk = Desk::new();
    let rules = within(&desk);
    let home = desk.user.home();
    let site = home.join("site");
    std::fs::create_dir_all(&site).unwrap();
    let (site, home) = (site.display().to_string(), home.display().to_string());
    let inside = format!("{site}/a.txt");
    accepted(&desk).await;
    let ways: [(&str, &[&str]); 5] = [
        (&site, &[]),
        ("/", &["--project", &site]),
        ("/", &["--project", "~/site"]),
        (&home, &["--project", "site"]),
        (&home, &["--project", "./site/../site"]),
    ];
    for (directory, project) in ways {
        let options = [&["--rules", &rules], project].concat();
        let text = called(&desk, directory, &options, &inside).await;
        assert!(text.starts_with("wrote"), "{directory} {project:?}: {text}");
        let text = called(&desk, directory, &options, "/etc/passwd").await;
        assert!(text.contains("waits for an approval"), "{directory} {project:?}: {text}");
    }
    // A person who gives `/` means it.
    let options = ["--rules", &*rules, "--project", "/"];
    assert!(called(&desk, &site, &options, "/etc/passwd").await.starts_with("wrote"));
}

#[tokio::test]
async fn rules_about_no_project_work_everywhere() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = 'mcp:files/*'\n\
                [[rule]]\nid = 'keys'\ndeny = '*'\nwhere.any_path = ['~/.ssh/**', '/etc/**', '**/.env']\n";
    std::fs::write(&rules, text).unwrap();
    let options = ["--rules", &*rules.display().to_string()];
    accepted(&desk).await;
    assert!(called(&desk, "/", &options, "/srv/a").await.starts_with("wrote"));
    let denied = called(&desk, "/", &options, "/etc/passwd").await;
    assert!(denied.contains("`keys`"), "{denied}");
}

#[test]
fn a_project_that_is_not_there_is_an_error() {
    let desk = Desk::new();
    std::fs::write(desk.user.home().join("file"), "").unwrap();
    for project in ["/nowhere", "~/nowhere", "~", "file", "~other"] {
        let ended = desk.user.run(&["guard", "--project", project, "--", "no-such-server"]);
        match project {
            // The home directory is there; the server is not, which only a client's request shows.
            "~" => assert_eq!(ended.status, 0, "{ended:?}"),
            _ => {
                assert_eq!(ended.status, 2, "{project}: {ended:?}");
                assert!(ended.err.contains("there is no such directory"), "{project}: {ended:?}");
            }
        }
    }
}
