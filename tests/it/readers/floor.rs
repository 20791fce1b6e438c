//! The floor: every vehicle that writes, onto every protected place, in every spelling, under rules that allow everything.

use std::rc::Rc;

use countersign_cli::hook::Client;
use serde_json::json;

use super::desk::Desk;
use super::places::{self, Place, any_place, as_a_word, as_an_argument, as_an_odd_argument};
use super::vehicles::{self, INTO_FOLDERS, OUTPUTS, PROGRAMS, REDIRECTIONS, SCRIPTS, TOOLS};
use super::{Door, EVERYTHING, List, Policy, counted, shell_of};
use crate::support::one_row_of;

const DEFAULT_ALLOW: Policy = Policy::Text("version = 1\ndanger_default_allow = true\n");

/// Adds a command with this vehicle, at a place and in a spelling by chance.
fn command(list: &mut List, vehicle: &str, desk: &Rc<Desk>) {
    let place = any_place(list);
    if list.dice.roll(20) == 0 {
        let (kind, why) = (list.kind, list.why);
        let word = format!("\"$(echo {})\"", place.relative());
        list.of(
            "floor: names that are computed",
            "a command writes a file whose name is not known (rule R5)",
        );
        list.command(&vehicle.replace("{}", &word)).of(kind, why);
        return;
    }
    let (before, word) = match INTO_FOLDERS.contains(&vehicle) || SCRIPTS.contains(&vehicle) {
        true => (String::new(), folder_or_file(list, vehicle, place, desk)),
        false => as_a_word(list, place, desk),
    };
    list.command(&format!("{before}{}", vehicle.replace("{}", &word)));
}

fn folder_or_file(list: &mut List, vehicle: &str, place: Place, desk: &Desk) -> String {
    let path = list.one(&[&place.relative()[..], &place.absolute(desk)]).to_owned();
    if SCRIPTS.contains(&vehicle) {
        return path;
    }
    // A file in the project's root has the project as its folder, in which anything may be written.
    let folder = path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let is_root =
        |it: &String| it == ".." || desk.root.display().to_string() == *it || it == "docs";
    let home = desk.home.display().to_string();
    match folder {
        Some(folder)
            if !is_root(&folder)
                && folder != home
                && !["/bin", "/docs", "/etc", "/opencode", ".github"]
                    .iter()
                    .any(|it| folder.ends_with(it)) =>
        {
            folder
        }
        _ => ".git".to_owned(),
    }
}

/// Commands.
fn commands(list: &mut List, desk: &Rc<Desk>, door: Door, rounds: usize) {
    let groups: [(&str, &[&str]); 5] = [
        ("floor: redirections", REDIRECTIONS),
        ("floor: programs that write", PROGRAMS),
        ("floor: outputs", OUTPUTS),
        ("floor: into folders", INTO_FOLDERS),
        ("floor: scripts that write", SCRIPTS),
    ];
    for (kind, vehicles) in groups {
        list.of(kind, "a command writes what other programs obey (rule R5)");
        for vehicle in vehicles {
            for round in 0..rounds {
                list.at(door, if round % 3 == 2 { DEFAULT_ALLOW } else { EVERYTHING });
                command(list, vehicle, desk);
            }
        }
    }
}

/// Tools of this program and of a server.
fn tools(list: &mut List, desk: &Rc<Desk>, door: Door, rounds: usize) {
    list.at(door, EVERYTHING);
    for &(tool, field) in TOOLS {
        for _ in 0..rounds {
            let (place, shape) = (any_place(list), list.dice.roll(8));
            let spelling = list.dice.roll(places::COMMON);
            let path = as_an_argument(spelling, place, desk);
            list.of(
                "floor: tools",
                "a tool that may write names what other programs obey (rule R5)",
            );
            list.call(tool, vehicles::arguments(shape, field, &path));
            let path = as_an_odd_argument(list.dice.roll(places::ODD), place, desk);
            list.of(
                "floor: tools, odd spellings",
                "some file systems and readers take it for the place (rule R5)",
            );
            list.call(tool, vehicles::arguments(shape, field, &path));
        }
        let place = any_place(list);
        list.of("floor: tools, names as keys", "the file is the name of a field (rule R5)");
        list.call(tool, json!({"files": { place.relative(): "x" }}));
        let place = any_place(list);
        list.call(tool, json!({ place.absolute(desk): "x" }));
    }
    list.of("floor: patches", "the headers of a patch name the file that is written (rule R5)");
    for tool in ["apply_patch", "patch", "apply_diff", "edit"] {
        for format in 0..10 {
            for _ in 0..rounds.div_ceil(2) {
                let place = any_place(list);
                let path = match list.dice.roll(3) {
                    0 => format!("docs/../{}", place.relative()),
                    1 if !matches!(format, 4 | 6) => place.absolute(desk),
                    _ => place.relative(),
                };
                let field = list.one(&["input", "patch", "diff"]);
                list.call(tool, json!({ field: vehicles::patch(format, &path) }));
            }
        }
    }
}

/// The clients' own tools.
fn clients(list: &mut List, desk: &Rc<Desk>, rounds: usize) {
    for client in Client::ALL {
        list.at(Door::Hook(client), EVERYTHING);
        for which in 0..3 {
            for _ in 0..rounds {
                let place = any_place(list);
                // The headers of a patch are names as they are.
                let spellings =
                    if client == Client::Codex || which == 2 { 4 } else { places::COMMON };
                let path = as_an_argument(list.dice.roll(spellings), place, desk);
                let (tool, args) = vehicles::of_a_client(client, which, &path);
                list.of(
                    "floor: tools of clients",
                    "a client's tool writes what other programs obey (rule R5)",
                );
                list.call(tool, args);
            }
        }
        let server = match client {
            Client::Claude | Client::Codex | Client::Qwen => "mcp__fs__write",
            Client::Gemini => "mcp_fs_write",
            Client::Copilot => "fs-write",
            _ => "fs_write",
        };
        for _ in 0..rounds * 2 {
            let place = any_place(list);
            let path = as_an_argument(list.dice.roll(places::COMMON), place, desk);
            let shape = list.dice.roll(8);
            list.of(
                "floor: tools of a client's servers",
                "a server's tool writes what other programs obey (rule R5)",
            );
            list.call(server, vehicles::arguments(shape, "path", &path));
        }
    }
}

pub(super) fn rows(list: &mut List, desk: &Rc<Desk>) {
    commands(list, desk, Door::Library, 5);
    commands(list, desk, Door::Hook(Client::Claude), 1);
    commands(list, desk, Door::Hook(Client::Codex), 1);
    tools(list, desk, Door::Library, 8);
    tools(list, desk, Door::Guard, 8);
    clients(list, desk, 10);
}

/// Rule R5: whatever writes, wherever it is protected, however it is spelt, in library, hook and guard: a person is asked.
#[test]
fn no_rule_allows_what_the_floor_asks_about() {
    let desk = Rc::new(Desk::new());
    let mut list = List::new(0x2545_F491_4F6C_DD1D, &desk);
    let rounds = |all: usize| all.div_ceil(one_row_of());
    commands(&mut list, &desk, Door::Library, rounds(24));
    for client in Client::ALL.into_iter().step_by(one_row_of().min(3)) {
        commands(&mut list, &desk, Door::Hook(client), rounds(3));
    }
    tools(&mut list, &desk, Door::Library, rounds(60));
    tools(&mut list, &desk, Door::Guard, rounds(60));
    clients(&mut list, &desk, rounds(40));
    let (kinds, allowed) = counted(&list.rows);
    println!("{}: {kinds:#?}", list.rows.len());
    let wrong: Vec<_> = allowed
        .into_iter()
        .map(|row| format!("{} {:?} {} {}", row.kind, row.door, row.tool, row.args))
        .collect();
    assert!(wrong.is_empty(), "{} are allowed\n{}", wrong.len(), wrong.join("\n"));
}

/// Reading such a file is daily work.
#[test]
fn reading_what_agents_are_told_is_not_asked_about() {
    let desk = Desk::new();
    for (door, policy) in
        [(Door::Library, Policy::Developer), (Door::Hook(Client::Claude), Policy::Developer)]
    {
        let (tool, field) = shell_of(door);
        for command in [
            "cat CLAUDE.md",
            "head -20 AGENTS.md",
            "grep -n test .github/workflows/ci.yml",
            "wc -l .gitattributes",
        ] {
            assert!(desk.allows(door, policy, tool, &json!({ field: command })), "{command}");
        }
    }
    // The rules of a user who lets an agent read, and the tools of a client.
    let reads = Policy::Text(
        "version = 1\n[[rule]]\nid = 'reads'\nallow = ['read_file', 'search_files']\nwhere.path.within = '.'\n\
         [[rule]]\nid = 'looks'\nallow = 'shell'\nwhere.command.is = 'read-only'\n",
    );
    for name in ["CLAUDE.md", "AGENTS.md", ".github/workflows/ci.yml", ".mcp.json"] {
        let path = desk.root.join(name).display().to_string();
        for (door, tool, args) in [
            (Door::Library, "read_file", json!({ "path": name })),
            (Door::Library, "search_files", json!({ "path": name, "pattern": "x" })),
            (Door::Hook(Client::Claude), "Read", json!({ "file_path": path })),
            (Door::Hook(Client::Claude), "Grep", json!({ "path": path, "pattern": "x" })),
            (Door::Library, "shell", json!({ "command": format!("cat {name}") })),
        ] {
            assert!(desk.allows(door, reads, tool, &args), "{door:?} {tool} {name}");
        }
        assert!(!desk.allows(
            Door::Library,
            EVERYTHING,
            "write_file",
            &json!({ "path": name, "content": "x" })
        ));
    }
}
