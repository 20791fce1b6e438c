//! `countersign reference`: one page with every command, option, key, variable, file and exit status. We make it from the
//! definitions by which the program reads them, and commit it as `docs/reference.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, Args, Command};
use countersign_cli::hook::Client;
use serde_json::Value;

use crate::output::CommandOutput;

/// Print the page with every command, option, key, variable, file and exit status, as Markdown
#[derive(Args)]
pub(crate) struct Reference {}

const HEAD: &str = "\
# Reference

Every command, option, key, variable, file and exit status of the program `countersign`. `countersign reference` prints this
page. The [guide](guide/index.md) has the ways through it, and [the rules](rules.md) what is promised.
";

/// The keys of the configuration file.
const CONFIGURATION: &[(&str, &str, &str)] = &[
    (
        "store",
        "`asks.db` in the state directory",
        "the URL of the store: `sqlite:///path`, `/path`, `postgres://host/database`, `memory:`",
    ),
    ("principal", "the name of the account", "the name under which you decide"),
    ("audit_key_file", "none", "a private file whose bytes are the key of the ledger's log"),
    ("anchor_file", "none", "a file that keeps the last checkpoint of the store"),
    (
        "groups",
        "none",
        "a table of groups that rules name as `group:NAME`, each with the names of its members",
    ),
    (
        "inbox.listen",
        "the last port, or a free one, of the loopback interface",
        "the address that the inbox is served on",
    ),
    ("inbox.public_url", "none", "the address by which browsers reach the inbox, behind a proxy"),
    (
        "inbox.proxy_secret_file",
        "none",
        "a private file with the secret by which a proxy proves itself that logs people in",
    ),
    (
        "inbox.proxy_user_header",
        "`X-Forwarded-User`",
        "the header in which that proxy sends the name of a person",
    ),
    (
        "inbox.webhook.url",
        "none",
        "the address that messages about asks are posted to, without the arguments of calls",
    ),
    (
        "inbox.webhook.url_file",
        "none",
        "a private file with that address, which is a secret at Slack and Teams",
    ),
    ("inbox.webhook.form", "`slack`", "the service, which decides what its messages look like"),
    (
        "inbox.webhook.expiring_before_s",
        "600",
        "how many seconds before its deadline an ask is told as expiring",
    ),
    (
        "journal.enabled",
        "`false`",
        "`true` if hook and guard write each decision of the rules into the journal",
    ),
    ("journal.keep_days", "30", "for how many days an entry is kept"),
    ("journal.file", "`journal.jsonl` in the state directory", "the file of the journal"),
];

/// The variables of the environment. A hook takes no setting from them.
const VARIABLES: &[(&str, &str)] = &[
    ("COUNTERSIGN_CONFIG", "the configuration file, in place of `--config`"),
    ("COUNTERSIGN_STORE", "the URL of the store"),
    ("COUNTERSIGN_PRINCIPAL", "the name under which you decide"),
    ("COUNTERSIGN_AUDIT_KEY_FILE", "the key of the ledger's log"),
    (
        "COUNTERSIGN_LINES",
        "`asks review` asks line by line where this is not empty, for a screen reader for example",
    ),
    (
        "COUNTERSIGN_GUARD_TOKEN",
        "not read by the program: clients of a guard over HTTP read its secret from it",
    ),
    ("XDG_CONFIG_HOME", "the folder above the configuration directory; `~/.config` by default"),
    ("XDG_STATE_HOME", "the folder above the state directory; `~/.local/state` by default"),
];

/// The files. Those below are in the configuration directory, or in the state directory.
const FILES: &[(&str, &str)] = &[
    ("~/.config/countersign/config.toml", "the configuration"),
    (
        "~/.config/countersign/rules.toml",
        "your rules, which the hook reads unless its entry names other files",
    ),
    (
        "~/.config/countersign/guard/NAME.toml",
        "the rules of the guard of this name, as `guard init` writes them",
    ),
    ("~/.local/state/countersign/asks.db", "the default store"),
    ("~/.local/state/countersign/seal.key", "the key that seals links and sessions"),
    ("~/.local/state/countersign/inbox.secret", "the secret that logs a browser in"),
    ("~/.local/state/countersign/inbox.url", "the address of the inbox, without the secret"),
    (
        "~/.local/state/countersign/webhook.secret",
        "the key that signs the messages of the inbox's webhook",
    ),
    ("~/.local/state/countersign/guard.token", "the secret of guards over HTTP"),
    ("~/.local/state/countersign/journal.jsonl", "the journal of decisions, where it is enabled"),
    ("~/.local/state/countersign/rules/", "the rules that you have accepted"),
    (
        "~/.local/state/countersign/environment/",
        "which variables were there when a hook was installed, as digests",
    ),
    ("~/.local/state/countersign/hook-files/", "the files that `hook install --file` has named"),
    (
        "~/.local/state/countersign/allowed/",
        "the calls that a hook has allowed, until they have ended; which files a session has written, and where its shell may be",
    ),
    (
        "~/.local/state/countersign/bin/countersign",
        "a copy of the program that entries name, where the installed one may be replaced or removed",
    ),
    ("~/.local/state/countersign/proven/", "which agents have obeyed `hook doctor --live` here"),
    ("~/.local/state/countersign/canary/", "the call of a `hook doctor --live` that runs"),
    (
        "~/.local/state/countersign/init/",
        "the files as they were before `init`, until `init --undo`",
    ),
    (
        "/etc/countersign/rules.toml",
        "the rules of a hook for all users of a machine (`hook install --managed`)",
    ),
];

/// The options of every command, which stand once, and not below each.
const EVERYWHERE: &[&str] = &["config", "json", "text", "help", "version"];

impl Reference {
    pub(crate) fn run(program: Command) -> CommandOutput {
        CommandOutput::text(0, page(program).trim_end())
    }
}

fn page(mut program: Command) -> String {
    program.build();
    let mut page = HEAD.to_owned();
    page += "\n## Commands\n\nThese options are of every command.\n\n";
    let global: Vec<_> = program.get_arguments().filter(|arg| arg.is_global_set()).collect();
    options(&mut page, &global);
    commands(&mut page, "countersign", &program);
    page += "\n## Keys of the configuration file\n\n| key | default | meaning |\n|---|---|---|\n";
    for (key, default, says) in CONFIGURATION {
        row(&mut page, &[&format!("`{key}`"), default, says]);
    }
    rules(&mut page);
    page += "\n## Variables of the environment\n\nA hook and a guard take no setting from their environment.\n\n| variable | meaning |\n|---|---|\n";
    for (name, says) in VARIABLES {
        row(&mut page, &[&format!("`{name}`"), says]);
    }
    page += "\n## Files\n\nThe directories are those of the XDG variables. All but the last are for this user alone.\n\n| file | contents |\n|---|---|\n";
    for (name, says) in FILES {
        row(&mut page, &[&format!("`{name}`"), says]);
    }
    page
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<_> = cells.iter().map(|it| it.replace('|', "\\|").replace('\n', " ")).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// The commands below a command, each with its options. Those of the clients of the hook are the same, and one of them
/// stands for all.
fn commands(page: &mut String, path: &str, command: &Command) {
    let mut has_client = false;
    for below in command.get_subcommands() {
        let name = below.get_name();
        if below.is_hide_set() || name == "help" {
            continue;
        }
        let is_client = name.parse::<Client>().is_ok();
        if is_client && std::mem::replace(&mut has_client, true) {
            continue;
        }
        let path = format!("{path} {}", if is_client { "CLIENT" } else { name });
        let _ = write!(page, "\n### {path}\n\n");
        if is_client {
            let all: Vec<_> =
                Client::ALL.iter().map(|it| format!("`{it}` ({})", it.title())).collect();
            let _ =
                write!(page, "Answer a hook of a client. The clients are {}.\n\n", all.join(", "));
        } else if let Some(about) = below.get_long_about().or(below.get_about()) {
            let _ = write!(
                page,
                "{}\n\n",
                about.to_string().trim_end().trim_end_matches('.').to_owned() + "."
            );
        }
        let own: Vec<_> = below
            .get_arguments()
            .filter(|arg| !arg.is_hide_set() && !EVERYWHERE.contains(&arg.get_id().as_str()))
            .collect();
        options(page, &own);
        let after = below.get_after_long_help().or(below.get_after_help());
        if let Some(after) = after.filter(|_| !is_client) {
            let _ = write!(page, "\n```text\n{}\n```\n", after.to_string().trim_end());
        }
        commands(page, &path, below);
    }
}

fn options(page: &mut String, args: &[&Arg]) {
    if args.is_empty() {
        return;
    }
    page.push_str("| option | default | meaning |\n|---|---|---|\n");
    for arg in args {
        let long = arg.get_long().map(|long| format!("--{long}"));
        let values = if arg.get_action().takes_values() { values(arg) } else { String::new() };
        let name = match long {
            Some(long) => format!("`{}`", format!("{long} {values}").trim_end()),
            None => format!("`{values}`"),
        };
        let default: Vec<_> = arg
            .get_default_values()
            .iter()
            .map(|it| format!("`{}`", it.to_string_lossy()))
            .collect();
        let default =
            if arg.get_action().takes_values() { default.join(", ") } else { String::new() };
        let help =
            arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        row(page, &[&name, &default, &help.replace("\n\n", " ")]);
    }
}

/// The values of an option: the words that it takes, or a name for them.
fn values(arg: &Arg) -> String {
    let words: Vec<_> =
        arg.get_possible_values().iter().map(|it| it.get_name().to_owned()).collect();
    if !words.is_empty() {
        return words.join("|");
    }
    let named = arg.get_value_names().unwrap_or_default();
    let named: Vec<_> = named.iter().map(|it| it.to_string()).collect();
    if named.is_empty() { arg.get_id().as_str().to_uppercase() } else { named.join(" ") }
}

/// The keys of a file of rules, by its schema.
fn rules(page: &mut String) {
    let schema = countersign_rules::schema();
    let tables = [
        ("Keys of a file of rules", "key", schema.pointer("/properties")),
        ("Keys of a rule", "key", schema.pointer("/$defs/rule/properties")),
        (
            "Tests of a condition",
            "test",
            schema.pointer("/$defs/conditions/additionalProperties/oneOf/2/properties"),
        ),
    ];
    for (title, what, properties) in tables {
        let _ = write!(page, "\n## {title}\n\n| {what} | meaning |\n|---|---|\n");
        // In one order under every feature of serde_json.
        let sorted: BTreeMap<_, _> =
            properties.and_then(Value::as_object).into_iter().flatten().collect();
        for (key, shape) in sorted {
            let says = shape.get("description").and_then(Value::as_str).unwrap_or_default();
            let words = shape.get("enum").and_then(Value::as_array).into_iter().flatten();
            let words: Vec<_> = words.map(|it| format!("`{it}`")).collect();
            let says = if words.is_empty() {
                says.to_owned()
            } else {
                format!("{says} One of {}.", words.join(", "))
            };
            row(page, &[&format!("`{key}`"), &says]);
        }
    }
    page.push_str("\n[The file of rules](rules-file.md) says what they do.\n");
}
