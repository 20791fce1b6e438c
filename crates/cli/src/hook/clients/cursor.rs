//! Cursor, from its documentation: this hook was never run with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools;
use serde_json::json;

use super::answers::seconds;
use super::files::Trust;
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, LiveForm, McpNames, OtherForm, PayloadForm,
    PlaceForm, ProjectForm, ServerForm, ToolForm, WrittenForm,
};

pub(super) static CURSOR: ClientSpec = ClientSpec {
    name: "cursor",
    program: "cursor-agent",
    title: "Cursor",
    tested: None,
    shortest_limit: Duration::from_secs(30),
    payload: PayloadForm {
        event: &["hook_event_name"],
        before: "preToolUse",
        after: &["postToolUse", "postToolUseFailure"],
        end: "sessionEnd",
        session: "conversation_id",
        tool: "tool_name",
        args: "tool_input",
        call: Some("tool_use_id"),
        unnamed: None,
        args_as_text: false,
    },
    tools: ToolForm {
        known: |tool, _| tools::CURSOR.get(tool),
        // `MCP:TOOL` does not tell the server.
        mcp: McpNames::InPayload,
        servers: None,
        shell_directory: Some("working_directory"),
        for_people: &["description"],
        types_unasked: false,
        keeps_shell: true,
        changes: ChangeForm::Replace,
        fetches_prompt: false,
    },
    answers: AnswerForm {
        deny: |reason, _| json!({"permission": "deny", "user_message": reason, "agent_message": reason}),
        // With `failClosed` no answer may count as a failure.
        allow: |args, explicit| {
            Some(match args {
                Some(args) => json!({"permission": "allow", "updated_input": args}),
                None if explicit => json!({"permission": "allow"}),
                None => json!({}),
            })
        },
        allow_is_explicit: true,
        // The answer `ask` is documented as one that this event does not obey yet.
        ask: None,
    },
    place: PlaceForm {
        variable: None,
        folder: ".cursor",
        file: "hooks.json",
        project: ".cursor/hooks.json",
        machine: Some(("etc/cursor/hooks.json", "Library/Application Support/Cursor/hooks.json")),
        levels: 1,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["preToolUse", "postToolUse", "postToolUseFailure", "sessionEnd"],
        entry: |event, command, limit| match event {
            "preToolUse" => {
                json!({"command": command, "timeout": seconds(limit), "failClosed": true})
            }
            _ => json!({"command": command, "timeout": seconds(limit)}),
        },
        version: Some(1),
        switch: None,
    }),
    trust: |_| Ok(Trust::Given),
    trusted_by: None,
    others: OtherForm {
        json: |user, project| files(user, project).into(),
        toml: |_, _| Vec::new(),
        events: EVENTS,
        project_events: EVENTS,
        named: |_, _| Vec::new(),
    },
    user_servers: ServerForm {
        files: |user| vec![user.with_file_name("mcp.json")],
        keys: &[&["mcpServers"]],
    },
    project: ProjectForm {
        files: &[],
        borrowed: &[],
        servers: &[(".cursor/mcp.json", "mcpServers")],
        variables: &["CURSOR_CONFIG_DIR"],
        is_editor: false,
        root_variable: None,
    },
    live: LiveForm { before: &["-p"], after: &["--force"], trusts: None, opens_window: false },
};

const EVENTS: &[&str] =
    &["preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"];

fn files(user: &Path, project: &Path) -> [PathBuf; 2] {
    [user.to_owned(), project.join(".cursor/hooks.json")]
}
