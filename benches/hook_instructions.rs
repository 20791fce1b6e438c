//! Instructions of one run of `countersign hook`, counted under valgrind.
//!
//! ```text
//! cargo build --release -p countersign-cli
//! cargo bench -p benches --bench hook_instructions
//! ```
//!
//! `.ci/counts` does so, and compares with the parent of the commit. A file of its own, as gungraun takes functions or
//! programs, and not both.

#![expect(missing_docs, reason = "what the macros of gungraun make")]

use std::path::{Path, PathBuf};

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind, ExitWith, Stdin, Stdio};
use serde_json::json;

const RULES: &str = "
version = 1

[[rule]]
id = 'secrets'
deny = '*'
where.any_path = ['**/.env']
";

/// A folder beside this program, since the home that a hook is given has to be an absolute path.
fn home() -> PathBuf {
    std::env::current_exe().expect("the path of this program").with_file_name("hook_instructions")
}

/// Rules, and what a client sends about a call.
fn fill_home() {
    let home = home();
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": home, "tool_use_id": "c",
        "tool_name": "Bash", "tool_input": {"command": "cat .env"},
    });
    std::fs::create_dir_all(&home).expect("it is made");
    std::fs::write(home.join("rules.toml"), RULES).expect("it is written");
    std::fs::write(home.join("payload.json"), payload.to_string()).expect("it is written");
}

/// The program beside this one, `target/release/countersign`.
fn program() -> PathBuf {
    let named = std::env::var_os("COUNTERSIGN_BENCH_PROGRAM").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let this = std::env::current_exe().expect("the path of this program");
        let folder = this.parent().and_then(Path::parent).expect("the target directory");
        folder.join("countersign")
    })
}

/// The status of a denial, and the rise of instructions, in percent, that fails a comparison.
fn limits() -> BinaryBenchmarkConfig {
    let mut counted = Callgrind::with_args(["--collect-bus=yes"]);
    counted.soft_limits([(EventKind::Ir, 2.0)]);
    let mut config = BinaryBenchmarkConfig::default();
    config.exit_with(ExitWith::Code(2)).tool(counted);
    config
}

// From the start of the process to its answer. The command is denied: valgrind sets `LD_PRELOAD`, and with that what
// would be allowed is asked about. A hook that fails ends with the same status, so that the answer is compared, too.
#[binary_benchmark(
    setup = fill_home(),
    teardown = answered(),
    config = limits()
)]
#[bench::denied()]
fn hook() -> Command {
    let home = home();
    let arguments = "hook claude --limit 60 --rules rules.toml --store asks.db --home";
    Command::new(program())
        .args(arguments.split(' '))
        .arg(&home)
        .current_dir(&home)
        .env("HOME", &home)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdin::File(home.join("payload.json")))
        .stdout(Stdio::File(home.join("answer.json")))
        .build()
}

fn answered() {
    let answer = std::fs::read_to_string(home().join("answer.json")).expect("there is an answer");
    assert!(answer.contains("the rule `secrets` says deny"), "{answer}");
}

binary_benchmark_group!(name = processes, benchmarks = [hook]);

main!(binary_benchmark_groups = processes);
