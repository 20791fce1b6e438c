//! The cost of deciding by rules: `cargo bench -p benches --bench rules`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use countersign_rules::{RuleCall, Rules};
use criterion::{Criterion, Throughput};
use serde_json::{Map, Value, json};

/// 200 bytes, six programs.
const COMMAND: &str = "ls src && RUST_BACKTRACE=1 cargo test -p core --all-features -- --nocapture 2>&1 | grep -n 'test result' \
                       | sort -u | head -20 && git diff --stat HEAD~1 -- src/lib.rs src/shell/mod.rs src/shell/word.rs";

/// Files with so many rules, and as many tests where these are wanted.
fn file(rules: usize, tests: bool) -> String {
    let mut text = String::from(
        "version = 1\n[[rule]]\nid = 'shell'\nallow = 'shell'\nwhere.command.is = ['read-only', 'project-build']\n\
         [[rule]]\nid = 'look'\nallow = 'read_file'\nwhere.path.within = '.'\n",
    );
    for number in 2..rules {
        let _ = writeln!(
            text,
            "[[rule]]\nid = 'rule-{number}'\nask = 'tool_{}'\nwhere.path.path = 'src/{number}/**'\nwhere.amount.above = {number}",
            number % 10
        );
    }
    if tests {
        text.push_str("[test]\nask = [\n");
        for number in 2..rules {
            let _ = writeln!(
                text,
                "'tool_{}: {{path: src/{number}/a.rs, amount: {}}}',",
                number % 10,
                number + 1
            );
        }
        text.push_str("]\n");
    }
    text
}

fn load(text: &str) -> Rules {
    let builder = Rules::builder().lexical().root("/src/project").text("bench.toml", text);
    builder.load().unwrap_or_else(|error| panic!("{error}"))
}

fn args(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let rules = load(&file(50, false));
    let calls = [
        ("a call that rules name", "read_file", args(&json!({"path": "src/lib.rs"}))),
        ("a call of ten rules", "tool_3", args(&json!({"path": "src/13/a.rs", "amount": 20}))),
        ("a call that no rule names", "unknown", args(&json!({"path": "src/lib.rs"}))),
        ("a command of 200 bytes", "shell", args(&json!({"command": COMMAND}))),
    ];
    let mut group = criterion.benchmark_group("50 rules");
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(1));
    for (name, tool, args) in &calls {
        let decide = || rules.decide(&RuleCall::new(tool, args));
        // The first decision also parses the entries of the table that it needs.
        let decision = decide().decision();
        let count = allocation_counter::measure(|| drop(black_box(decide()))).count_total;
        println!("{name}: {decision:?}, {count} allocations");
        group.bench_function(*name, |bencher| bencher.iter(decide));
    }
    group.finish();
    let (text, tests) = (file(1000, false), file(1000, true));
    let mut group = criterion.benchmark_group("load 1000 rules");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.bench_function("without tests", |bencher| bencher.iter(|| load(&text)));
    group.bench_function("with 1000 tests", |bencher| bencher.iter(|| load(&tests)));
    group.finish();
    criterion.final_summary();
}
