//! Instructions of what has to stay cheap, counted under valgrind: `.ci/counts`, or
//! `cargo bench -p benches --bench instructions`, which needs valgrind and, in the version of the crate,
//! `cargo install gungraun-runner`.
//!
//! Counts do not depend on how busy the machine is. One locked instruction takes as long as some twenty others, so they
//! are counted, too (`Ge`, global bus events): see `stack` for times.

#![expect(missing_docs, reason = "what the macros of gungraun make")]

#[expect(dead_code, reason = "the bench of times uses the rest")]
mod support;

use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, Claimed, Decided, Ledger, MemoryStore};
use countersign::{Outcome, ToolCall, Tools, Turn, TurnReport};
use countersign_rules::{RuleCall, Rules, Ruling};
use countersign_shell::{Classifier, Preset, SearchPath, Workspace};
use countersign_sqlite::SqliteStore;
use gungraun::prelude::*;
use gungraun::{Callgrind, EntryPoint, EventKind};
use serde_json::{Map, Value, json};
use support::{Leaf, OpenCall, Subject, asking_turn, calls_of};
use tokio::runtime::{Builder, Runtime};

/// A stack, and a call that has passed it twice, so that nothing is made for the first time.
fn stack(subject: Subject, layers: usize) -> (Tools, OpenCall) {
    let mut stack = subject.build(&Tools::from(Leaf), layers);
    let open = OpenCall::new(&stack);
    for _ in 0..2 {
        drop(open.send(&mut stack));
    }
    (stack, open)
}

// One allowed call through this many layers. What a bench returns is dropped without being counted.
#[library_benchmark(setup = stack)]
#[bench::none(Subject::NoLayer, 0)]
#[bench::pass_through_1(Subject::PassThrough, 1)]
#[bench::pass_through_16(Subject::PassThrough, 16)]
#[bench::decide_fn_1(Subject::DecideFn, 1)]
#[bench::decide_fn_16(Subject::DecideFn, 16)]
#[bench::separate_1(Subject::Async, 1)]
#[bench::separate_16(Subject::Async, 16)]
#[bench::chain_1(Subject::Chain, 1)]
#[bench::chain_16(Subject::Chain, 16)]
#[bench::chain_32(Subject::Chain, 32)]
fn allowed((mut stack, open): (Tools, OpenCall)) -> (Outcome, (Tools, OpenCall)) {
    (open.send(&mut stack), (stack, open))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A turn that has run once, and a response of ten calls of these tools in turn.
fn turn(tools: [&'static str; 2]) -> (Runtime, Turn, Vec<ToolCall>) {
    let (runtime, turn) = (runtime(), asking_turn());
    let calls = || calls_of(&tools, 10);
    drop(runtime.block_on(turn.run(calls())));
    (runtime, turn, calls())
}

// A response; the calls of `delete_file` are asked about, and approved inline.
#[library_benchmark(setup = turn)]
#[bench::none_asked(["read_file", "read_file"])]
#[bench::half_asked(["delete_file", "read_file"])]
fn batch((runtime, turn, calls): (Runtime, Turn, Vec<ToolCall>)) -> (TurnReport, Runtime, Turn) {
    let report = runtime.block_on(turn.run(calls)).expect("nothing fails");
    (report, runtime, turn)
}

const RULES: &str = "
version = 1

[[rule]]
id = 'shell'
allow = 'shell'
where.command.is = ['read-only', 'project-build']

[[rule]]
id = 'look'
allow = 'read_file'
where.path.within = '.'

[[rule]]
id = 'pay'
ask = 'pay'
where.amount.above = 100
";

/// 200 bytes, six programs.
const COMMAND: &str = "ls src && RUST_BACKTRACE=1 cargo test -p core --all-features -- --nocapture 2>&1 | grep -n 'test result' \
                       | sort -u | head -20 && git diff --stat HEAD~1 -- src/lib.rs src/shell/mod.rs src/shell/word.rs";

/// Rules that have decided once, and a call.
fn ruled(tool: &'static str, args: &Value) -> (Rules, &'static str, Map<String, Value>) {
    let rules = Rules::builder().lexical().root("/src/project").text("bench.toml", RULES);
    let rules = rules.load().expect("they load");
    let args = args.as_object().cloned().unwrap_or_default();
    drop(rules.decide(&RuleCall::new(tool, &args)));
    (rules, tool, args)
}

// A decision by rules.
#[library_benchmark(setup = ruled)]
#[bench::tool("read_file", &json!({"path": "src/lib.rs"}))]
#[bench::command("shell", &json!({"command": COMMAND}))]
fn rules(
    (rules, tool, args): (Rules, &'static str, Map<String, Value>),
) -> (Ruling, Rules, Map<String, Value>) {
    (rules.decide(&RuleCall::new(tool, &args)), rules, args)
}

// A new process looks up its first program in the built-in table.
#[library_benchmark]
#[bench::first()]
fn table() -> Classifier {
    let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Reader);
    let classifier = classifier.with_search_path(SearchPath::unchecked());
    drop(classifier.judge("cat a.txt", countersign_shell::Dialect::Bash));
    classifier
}

const LEASE: Duration = Duration::from_secs(60);

fn ask(n: usize) -> Ask {
    Ask::new(format!("run {n}"), "c", "rm")
}

async fn decided(ledger: &Ledger, record: &AskRecord) -> Decided {
    let yes = Answer::Approve { args: None };
    ledger.decide(record.ask.id(), &record.fingerprint, "ann", yes).await.expect("it is decided")
}

async fn claimed(ledger: &Ledger, record: &AskRecord) -> Claimed {
    ledger.claim(record.ask.id(), "w", LEASE).await.expect("it is claimed")
}

/// A ledger in memory with a pending ask and a decided one.
fn ledger() -> (Runtime, Ledger, [AskRecord; 2]) {
    let (runtime, ledger) = (runtime(), Ledger::new(MemoryStore::new()));
    let records = runtime.block_on(async {
        let records = [ledger.park(ask(1)).await, ledger.park(ask(2)).await];
        let records = records.map(|record| record.expect("it is parked"));
        decided(&ledger, &records[1]).await;
        records
    });
    (runtime, ledger, records)
}

// One transition each, in memory.
#[library_benchmark(setup = ledger)]
#[bench::in_memory()]
fn park((runtime, ledger, _): (Runtime, Ledger, [AskRecord; 2])) -> (AskRecord, Runtime, Ledger) {
    (runtime.block_on(ledger.park(ask(3))).expect("it is parked"), runtime, ledger)
}

#[library_benchmark(setup = ledger)]
#[bench::in_memory()]
fn decide(
    (runtime, ledger, records): (Runtime, Ledger, [AskRecord; 2]),
) -> (Decided, Runtime, Ledger, [AskRecord; 2]) {
    (runtime.block_on(decided(&ledger, &records[0])), runtime, ledger, records)
}

#[library_benchmark(setup = ledger)]
#[bench::in_memory()]
fn claim(
    (runtime, ledger, records): (Runtime, Ledger, [AskRecord; 2]),
) -> (Claimed, Runtime, Ledger, [AskRecord; 2]) {
    (runtime.block_on(claimed(&ledger, &records[1])), runtime, ledger, records)
}

// Twenty asks in a file, from the open store to the claim. SQLite has a thread of its own, and a bench counts one
// thread, if it is not the whole process, as here: with the schema of a new file.
#[library_benchmark]
#[bench::twenty_asks(20)]
fn sqlite(asks: usize) -> usize {
    let place = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let store = SqliteStore::open(place.path().join("asks.db")).await.expect("a store");
        let ledger = Ledger::new(store);
        for n in 0..asks {
            let record = ledger.park(ask(n)).await.expect("it is parked");
            decided(&ledger, &record).await;
            claimed(&ledger, &record).await;
        }
    });
    asks
}

/// The rise of instructions, in percent, that fails a comparison.
fn at_most(percent: f64) -> LibraryBenchmarkConfig {
    let mut counted = Callgrind::with_args(["--collect-bus=yes"]);
    counted.soft_limits([(EventKind::Ir, percent)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(counted);
    config
}

fn whole_process() -> LibraryBenchmarkConfig {
    let mut counted = Callgrind::with_args(["--collect-bus=yes"]);
    counted.soft_limits([(EventKind::Ir, 2.0)]).entry_point(EntryPoint::None);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(counted);
    config
}

// Layers are equal from run to run, and the others within 0.4 %, by random ids and the seeds of maps.
library_benchmark_group!(name = layers, config = at_most(1.0), benchmarks = [allowed]);
library_benchmark_group!(
    name = calls,
    config = at_most(2.0),
    benchmarks = [batch, rules, table, park, decide, claim]
);
library_benchmark_group!(name = files, config = whole_process(), benchmarks = [sqlite]);

main!(library_benchmark_groups = layers, calls, files);
