//! The official conformance suite, against the guard in front of a server that it expects, and against tools that are
//! served. `.ci/mcp` installs the suite, with the node that it needs.
//!
//! Each scenario of the suite is expected to pass, or is in the list of those that are left out, with the reason.

use std::path::Path;
use std::process::{Command, Stdio};

use countersign::outcome::ToolReturn;
use countersign::{BoxError, Permit, RunContext, ToolDefinition, ToolError, Toolset};
use countersign_mcp::serve;
use serde_json::{Value, json};

use super::process::Desk;
use super::servers::folder;

/// The scenarios of every revision.
const OF_ALL: [&str; 19] = [
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "completion-complete",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "dns-rebinding-protection",
];

const OF_EARLIER: [&str; 8] = [
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
];

/// What only the earlier revisions have, so that a server of the newest one cannot pass them by itself.
const OF_EARLIER_ONLY: [&str; 4] = [
    "logging-set-level",
    "tools-call-with-logging",
    "resources-subscribe",
    "resources-unsubscribe",
];

const OF_THE_NEWEST: [&str; 16] = [
    "server-stateless",
    "caching",
    "http-header-validation",
    "http-custom-header-server-validation",
    "sep-2164-resource-not-found",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "input-required-result-request-state",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// Expects the server's own key of its question, which servers of earlier revisions do not have.
const WITH_KEYS: [&str; 1] = ["input-required-result-basic-elicitation"];

/// Checks of these scenarios that need a tool which asks the host's model.
const NEED_SAMPLING: [&str; 2] =
    ["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"];

/// The beginnings of the names of scenarios that are left out, with the reason.
const LEFT_OUT: [(&str, &str); 8] = [
    ("tools-call-sampling", "the server asks for the host's model, which is refused (rule M1)"),
    ("input-required-result-basic-sampling", "as before"),
    ("input-required-result-basic-list-roots", "the server asks for the host's folders (rule M1)"),
    ("input-required-result-multiple-input-requests", "model and folders beside a question"),
    ("input-required-result-capability-check", "is about a client that only offers its model"),
    ("server-sse-polling", "the server closes its stream within a call; this one is on stdio"),
    ("tasks-", "an extension that the guard does not declare"),
    ("sep-2640-skills-", "an extension that the guard does not declare"),
];

/// Asserts that no scenario was run that is neither expected to pass nor left out for a reason.
fn all_are_known(what: &str, failures: &[(String, Vec<String>)], expected: &[&str]) {
    for (name, _) in failures {
        let known = expected.iter().any(|it| it.trim_start_matches("server-") == name);
        let left_out = LEFT_OUT.iter().any(|(it, _)| {
            let short = it.trim_start_matches("server-");
            name == short || short.ends_with('-') && name.starts_with(short)
        });
        assert!(known || left_out, "{what}: `{name}` is neither expected to pass nor left out");
    }
}

/// Runs the suite, or one of its scenarios, and gives the failed checks of each scenario.
fn failures(
    url: &str,
    version: &str,
    only: Option<&str>,
    (output, secret): (&Path, Option<&str>),
) -> Vec<(String, Vec<String>)> {
    let suite = folder().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut node = Command::new(folder().join("node_modules/node/bin/node"));
    if let Some(secret) = secret {
        let adds = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/secret.mjs");
        node.env("SECRET_OF_GUARD", secret).arg("--import").arg(adds);
    }
    let ran = node
        .arg(suite)
        .args(["server", "--timeout", "20000"])
        .args(only.map_or(["--suite", "all"], |scenario| ["--scenario", scenario]))
        .args(["--url", url, "--spec-version", version, "--output-dir"])
        .arg(output)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut all = Vec::new();
    for folder in std::fs::read_dir(output).unwrap_or_else(|_| panic!("{ran:?}")) {
        let folder = folder.unwrap();
        let text = std::fs::read_to_string(folder.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
        let failed = checks.iter().filter(|check| check["status"] == "FAILURE");
        let failed = failed.filter(|check| !NEED_SAMPLING.iter().any(|id| check["id"] == *id));
        let failed = failed.map(|check| format!("{}: {}", check["id"], check["errorMessage"]));
        // `server-<scenario>-<time>`, and the time has 24 letters.
        let name = folder.file_name().into_string().unwrap();
        let name = name.trim_start_matches("server-");
        all.push((name[..name.len() - 25].to_owned(), failed.collect()));
    }
    all
}

/// Asserts that each of these scenarios was run, and has no failed check.
fn all_pass<'a>(
    what: &str,
    failures: &[(String, Vec<String>)],
    expected: impl IntoIterator<Item = &'a &'a str>,
) {
    for scenario in expected {
        let short = scenario.trim_start_matches("server-");
        let run = failures.iter().find(|(name, _)| name == short);
        let (_, failed) = run.unwrap_or_else(|| panic!("{what}: `{scenario}` was not run"));
        assert!(failed.is_empty(), "{what}, {scenario}: {failed:?}");
    }
}

// "Every server scenario that the fixture server passes bare, it passes through the guard, for both revisions": an old
// and a new client, each before an old and a new server.
#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_passes_through_the_guard() {
    for server in ["2025-11-25", "2026-07-28"] {
        for client in ["2025-11-25", "2026-07-28"] {
            let own = if client == "2025-11-25" { &OF_EARLIER[..] } else { &OF_THE_NEWEST };
            let keys = if [client, server] == ["2026-07-28"; 2] { &WITH_KEYS[..] } else { &[] };
            // A scenario may leave a question open. A server of an earlier revision asks outside of its calls, so that
            // with two of them in flight the guard cannot tell which one asks, and refuses the question.
            let is_apart =
                |scenario: &&&str| server == "2025-11-25" && scenario.starts_with("input-required");
            let what = format!("{client} before {server}");
            let earlier =
                if [client, server] == ["2025-11-25"; 2] { &OF_EARLIER_ONLY[..] } else { &[] };
            let expected = || OF_ALL.iter().chain(own).chain(keys).chain(earlier);
            let (apart, together): (Vec<_>, Vec<_>) = expected().partition(is_apart);
            let ran = through_guard(client, server, None).await;
            all_pass(&what, &ran, together);
            // A server of the newest revision cannot pass what only the earlier ones have.
            let all: Vec<_> =
                expected().chain(&WITH_KEYS).chain(&OF_EARLIER_ONLY).copied().collect();
            all_are_known(&what, &ran, &all);
            for scenario in apart {
                all_pass(&what, &through_guard(client, server, Some(scenario)).await, [scenario]);
            }
        }
    }
}

/// Runs the suite, or one of its scenarios, against a guard in front of the server that it expects.
async fn through_guard(
    client: &'static str,
    server: &str,
    only: Option<&'static str>,
) -> Vec<(String, Vec<String>)> {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = 'mcp:fixture/*'\n";
    std::fs::write(&rules, text).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/fixture.py");
    let (rules, script) = (rules.display().to_string(), script.display().to_string());
    let options = ["--name", "fixture", "--rules", &rules, "--listen", "127.0.0.1:0"];
    let options = [&options[..], &["--danger-accept-all-tools"]].concat();
    let command = desk.guard_before("ann", &options, &["python3", &script, server]);
    let (guard, output) = (desk.listening(command).await, desk.user.home().join("results"));
    let ran = tokio::task::spawn_blocking(move || {
        failures(&guard.url, client, only, (&output, Some(&guard.secret)))
    });
    ran.await.unwrap()
}

/// The tools that the suite calls.
struct Fixture;

impl Toolset for Fixture {
    fn id(&self) -> &str {
        "fixture"
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let named = |name: &str| {
            ToolDefinition::new(name, json!({"type": "object"}))
                .with_description(format!("Tests: {name}"))
        };
        Ok(vec![named("test_simple_text"), named("test_error_handling")])
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        match permit.tool() {
            "test_simple_text" => {
                Ok(ToolReturn::new(json!("This is a simple text response for testing.")))
            }
            _ => Err("This tool intentionally returns an error for testing".into()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_passes_against_served_tools() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = serve(Fixture).named("fixture").router().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let both =
        ["tools-list", "tools-call-simple-text", "tools-call-error", "dns-rebinding-protection"];
    let earlier = ["server-initialize", "server-session-lifecycle", "ping"];
    let newest = ["server-stateless", "http-header-validation"];
    for (version, own) in [("2025-11-25", &earlier[..]), ("2026-07-28", &newest)] {
        let output = tempfile::tempdir().unwrap();
        let (url, path) = (url.clone(), output.path().join("results"));
        let ran = tokio::task::spawn_blocking(move || failures(&url, version, None, (&path, None)))
            .await
            .unwrap();
        all_pass(version, &ran, both.iter().chain(own));
    }
}
