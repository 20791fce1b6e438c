//! The time to judge a command: `cargo bench -p benches --bench shell`.

use std::hint::black_box;
use std::time::Duration;

use countersign_shell::{Classifier, Commands, Dialect, Preset, SearchPath, Workspace};
use criterion::{Criterion, Throughput};

/// 200 bytes, six programs.
const COMMAND: &str = "ls src && RUST_BACKTRACE=1 cargo test -p core --all-features -- --nocapture 2>&1 | grep -n 'test result' \
                       | sort -u | head -20 && git diff --stat HEAD~1 -- src/lib.rs src/shell/mod.rs src/shell/word.rs";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    assert_eq!(COMMAND.len(), 200);
    let classifier = Classifier::new(Workspace::lexical("/src/project"), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    let judge = || classifier.judge(black_box(COMMAND), Dialect::Bash);
    assert!(judge().decision().is_allow(), "{}", judge());
    let mut group = criterion.benchmark_group("shell");
    group
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .throughput(Throughput::Elements(1));
    group.bench_function("parse 200 bytes", |bencher| {
        bencher.iter(|| Commands::parse(black_box(COMMAND), Dialect::Bash));
    });
    group.bench_function("judge 200 bytes", |bencher| bencher.iter(judge));
    group.finish();
    criterion.final_summary();
}
