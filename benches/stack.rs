//! The cost of layers: `cargo bench -p benches --bench stack`. Ends with the figures beside their targets.

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign::{ToolCall, Tools, Turn};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use support::{DEPTHS, Leaf, OpenCall, Subject, asking_turn, calls_of};
use tokio::runtime::{Builder, Runtime};

const BATCHES: [usize; 4] = [1, 10, 100, 1_000];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    one_call(&mut criterion);
    batches(&mut criterion);
    criterion.final_summary();
    let args: Vec<_> = std::env::args().collect();
    let has = |flag| args.iter().any(|arg| arg == flag);
    if has("--bench") && !has("--list") && !has("--profile-time") {
        summary();
    }
}

/// One allowed call through this many layers.
fn one_call(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one_call");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
    for (subject, layers) in subjects() {
        let mut measured = Measured::new(subject, layers);
        group.bench_function(BenchmarkId::new(subject.name(), layers), |bencher| {
            bencher.iter(|| measured.open.send(&mut measured.stack));
        });
    }
    group.finish();
}

fn subjects() -> Vec<(Subject, usize)> {
    let layered = [Subject::PassThrough, Subject::DecideFn, Subject::Async, Subject::Chain];
    let layered = layered.into_iter().flat_map(|it| DEPTHS.map(|layers| (it, layers)));
    [(Subject::Gate, 0), (Subject::NoLayer, 0), (Subject::Match, 1)]
        .into_iter()
        .chain(layered)
        .collect()
}

/// A stack, and a call that goes through it.
struct Measured {
    subject: Subject,
    layers: usize,
    stack: Tools,
    open: OpenCall,
    /// Nanoseconds per call.
    times: Vec<f64>,
}

impl Measured {
    fn new(subject: Subject, layers: usize) -> Self {
        let tools = Tools::from(Leaf);
        let stack = subject.build(&tools, layers);
        let open = OpenCall::new(&stack);
        Self { subject, layers, stack, open, times: Vec::new() }
    }

    fn time(&mut self, calls: u32) {
        let begin = Instant::now();
        for _ in 0..calls {
            black_box(self.open.send(&mut self.stack));
        }
        self.times.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
    }

    fn median(&mut self) -> f64 {
        median(&mut self.times)
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A response of this many calls; every second one is asked about, and approved inline.
fn batches(criterion: &mut Criterion) {
    let (runtime, turn) = (runtime(), asking_turn());
    let mut group = criterion.benchmark_group("batch");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for size in BATCHES {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_batched(
                || calls(size),
                |calls| runtime.block_on(turn.run(calls)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// Every second one is asked about.
fn calls(size: usize) -> Vec<ToolCall> {
    calls_of(&["delete_file", "read_file"], size)
}

/// The figures beside their targets. Rounds take turns between the stacks, and medians are compared, so that a busy
/// machine slows all of them. A round is shorter than a time slice, so that other programs disturb few rounds.
fn summary() {
    let mut all: Vec<_> = subjects().into_iter().map(|it| Measured::new(it.0, it.1)).collect();
    for _ in 0..2_001 {
        all.iter_mut().for_each(|measured| measured.time(100));
    }
    println!("\none allowed call, medians of 2 001 rounds of 100 calls");
    for measured in &mut all {
        let (name, layers, median) = (measured.subject.name(), measured.layers, measured.median());
        println!("  {name:<34} x{layers:<3} {median:>7.0} ns");
    }
    let mut ns = |subject, layers| {
        let mut found = all.iter_mut().filter(|it| it.subject == subject && it.layers == layers);
        found.next().expect("it was measured").median()
    };
    let none = ns(Subject::NoLayer, 0);
    let mut each = |subject, layers| (ns(subject, layers) - none) / layers as f64;
    let ratio = each(Subject::DecideFn, 16) / each(Subject::PassThrough, 16);
    let [separate, chain] = [Subject::Async, Subject::Chain].map(|it| each(it, 16));
    println!("beside the targets; a layer is the difference to no layer, divided by their number");
    println!("  decide_fn / pass-through, a layer at 16   {ratio:>5.2}    at most 0.6");
    println!("  async middleware, separate, a layer at 16 {separate:>5.0} ns at most 100");
    println!("  async middleware, one chain, each of 16   {chain:>5.0} ns at most 30");
    for subject in [Subject::DecideFn, Subject::Async, Subject::Chain] {
        let growth = each(subject, 32) / each(subject, 4);
        println!("  a layer at 32 / at 4, {:<34} {growth:>5.2} at most 1.4", subject.name());
    }
    let ratio = ns(Subject::DecideFn, 16) / ns(Subject::PassThrough, 16);
    println!("  whole call, decide_fn / pass-through at 16 {ratio:>5.2}");
    fresh_summary();
    batch_summary();
}

/// The cost of a new pass, with the layers that its call passes: responses of ten calls that need no approval.
fn fresh_summary() {
    let runtime = runtime();
    let turns = [0, 1, 4, 16, 32].map(|layers| {
        let subject = if layers == 0 { Subject::NoLayer } else { Subject::DecideFn };
        (layers, Turn::new(subject.build(&Tools::from(Leaf), layers)), Vec::new())
    });
    let mut turns = Vec::from(turns);
    for _ in 0..2_001 {
        for (_, turn, times) in &mut turns {
            let calls = calls(10);
            let begin = Instant::now();
            black_box(runtime.block_on(turn.run(calls)).expect("nothing fails"));
            times.push(begin.elapsed().as_secs_f64() * 1e9 / 10.0);
        }
    }
    println!(
        "a fresh pass, with its share of a turn of 10 calls, decide_fn layers, medians of 2 001"
    );
    for (layers, _, times) in &mut turns {
        println!("  x{layers:<3} {:>7.0} ns a call", median(times));
    }
}

/// Which calls of a batch are asked about, and approved inline.
const ASKED: [(&str, &[&str], &str); 3] = [
    ("none asked", &["read_file"], "1.5"),
    ("half asked", &["delete_file", "read_file"], "4.5"),
    ("all asked", &["delete_file"], "7"),
];

fn batch_summary() {
    let (runtime, turn) = (runtime(), asking_turn());
    println!("a batch, approved inline, µs a call, medians; targets are for 10 calls");
    for size in BATCHES {
        let mut times = ASKED.map(|_| Vec::new());
        for _ in 0..(30_000 / size).min(2_001) {
            for ((_, tools, _), times) in ASKED.iter().zip(&mut times) {
                let calls = calls_of(tools, size);
                let begin = Instant::now();
                black_box(runtime.block_on(turn.run(calls)).expect("nothing fails"));
                times.push(begin.elapsed().as_secs_f64() * 1e6 / size as f64);
            }
        }
        print!("  {size:>5} calls");
        for ((name, _, target), times) in ASKED.iter().zip(&mut times) {
            print!("   {name} {:>6.2} (at most {target})", median(times));
        }
        println!();
    }
}
