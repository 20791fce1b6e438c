//! All that a client of the hook needs is there: a new one is named here until it is.

use std::path::Path;
use std::time::Duration;

use countersign_cli::hook::{Client, Hook, Installation};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::protected::is_protected;
use serde_json::json;

use super::{before, recorded};
use crate::support::clients::forms;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|_| panic!("{path} is missing"))
}

#[test]
fn every_client_has_payloads_of_each_event_and_of_each_kind_of_tool() {
    for client in Client::ALL {
        let forms = forms(client.name());
        let is_documented = forms.is_from_documentation();
        assert_eq!(
            is_documented,
            client.tested_version().is_none(),
            "{client}: where its payloads are from"
        );
        assert!(before().iter().any(|it| it.client == client), "{client}: calls");
        let (tool, _) = Hook::new(client)
            .translate(
                before()
                    .iter()
                    .find(|it| it.client == client)
                    .unwrap()
                    .payload
                    .to_string()
                    .as_bytes(),
            )
            .unwrap();
        assert!(!tool.is_empty());
        for it in recorded().iter().filter(|it| it.client == client) {
            let of = ["before", "after", "end"].map(|name| forms.text(name));
            let is_known = of.iter().any(|event| it.event.starts_with(event));
            assert!(is_known || it.event.eq_ignore_ascii_case("PermissionRequest"), "{}", it.event);
        }
        assert!(forms.texts("surfaces").contains(&"shell"), "{client}: the shell");
    }
}

/// P4: "A hook that is not told its limit answers within the shortest time that a known version of its client waits, and
/// within a minute": the seconds that each client waits by itself, measured or from its documentation.
#[test]
fn a_hook_without_a_limit_has_the_shortest_time_that_a_known_version_waits() {
    for client in Client::ALL {
        let waits = match client.name() {
            "claude" => 60, // 600 from 2.1.3 on
            "codex" => 600,
            "gemini" | "qwen" => 60,
            "copilot" | "vscode" | "cursor" => 30,
            "opencode" => u64::MAX,
            other => panic!("how long does {other} wait for a hook without a limit?"),
        };
        assert_eq!(client.shortest_limit(), Duration::from_secs(waits.min(60)), "{client}");
    }
}

#[test]
fn every_client_has_its_page_and_is_in_the_lists_that_lead_there() {
    let (pages, readme) = (read("docs/hooks/README.md"), read("README.md"));
    let guide = read("docs/guide/coding-agents.md");
    for client in Client::ALL {
        let page = read(&format!("docs/hooks/{client}.md"));
        assert!(page.starts_with(&format!("# {}\n", client.title())), "{client}: its heading");
        let said = client.tested_version().unwrap_or("*Not tested*");
        assert!(page.contains(said), "{client}: the version that was tested");
        assert!(page.contains(&format!("countersign hook install {client}")), "{client}");
        assert!(pages.contains(&format!("]({client}.md) |")), "{client}: docs/hooks/README.md");
        assert!(
            readme.contains(&format!("`{client}`"))
                || readme.contains(&format!("install {client}`")),
            "{client}: README.md"
        );
        assert!(guide.contains(client.title()), "{client}: docs/guide/coding-agents.md");
    }
}

#[test]
fn every_client_is_installed_where_its_forms_say() {
    let home = Path::new("/u/ann");
    for client in Client::ALL {
        let file = Installation::of_user(client, home);
        assert_eq!(file.path(), home.join(forms(client.name()).text("file")), "{client}");
    }
}

/// R5: "The floor is built in": the files that switch a hook off are in the list of what is protected.
#[test]
fn the_files_of_every_client_are_protected() {
    for client in Client::ALL {
        let of_machine = Installation::of_machine(client, Path::new("/"));
        let own = [
            Some(Installation::of_user(client, Path::new("/u/ann"))),
            Some(Installation::of_project(client, Path::new("/src"))),
            of_machine.filter(|_| cfg!(target_os = "linux")),
        ];
        for it in own.into_iter().flatten() {
            assert!(is_protected(it.path()), "{client}: {}", it.path().display());
        }
    }
}

/// R5: "The floor is built in": a client's program is asked about where it writes its own configuration.
#[test]
fn the_program_of_every_client_is_asked_about_where_it_writes_its_settings() {
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n";
    let rules = Rules::builder().lexical().root("/src").text("mine.toml", text).load().unwrap();
    for client in Client::ALL {
        // Editors take a file of settings, or an extension, and no sub-command.
        let command = match client.program() {
            "code" => "code --install-extension x".to_owned(),
            program => format!("{program} mcp add x -- sh -c id"),
        };
        let call = json!({"command": command});
        let ruling = rules.decide(&RuleCall::new("shell", call.as_object().unwrap()));
        assert!(ruling.is_every_time(), "{client}: `{command}`: {ruling}");
    }
}
