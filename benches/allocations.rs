//! Allocations per allowed call, counted: `cargo bench -p benches --bench allocations`.

mod support;

use allocation_counter::measure;
use countersign::Tools;
use support::{DEPTHS, Leaf, OpenCall, Subject, asking_turn, calls_of};
use tokio::runtime::Builder;

fn main() {
    println!("allocations per allowed call");
    for subject in [Subject::Gate, Subject::NoLayer, Subject::Match] {
        println!("  {:<34} {}", subject.name(), count(subject, 1));
    }
    for subject in [Subject::PassThrough, Subject::DecideFn, Subject::Async, Subject::Chain] {
        let counts = DEPTHS.map(|layers| count(subject, layers));
        let [first, .., last] = counts;
        let slope = (last - first) as f64 / (DEPTHS[3] - DEPTHS[0]) as f64;
        print!("  {:<34}", subject.name());
        DEPTHS.iter().zip(counts).for_each(|(layers, count)| print!(" x{layers}: {count:<4}"));
        println!(" a layer: {slope}");
    }
    println!("allocations per call of a batch of ten, approved inline; target: 40 for half asked");
    let (none, half, all) = (["read_file"; 2], ["delete_file", "read_file"], ["delete_file"; 2]);
    for (name, tools) in [("none asked", none), ("half asked", half), ("all asked", all)] {
        println!("  {name:<34} {:.1}", count_batch(tools));
    }
}

fn count(subject: Subject, layers: usize) -> u64 {
    let tools = Tools::from(Leaf);
    let mut stack = subject.build(&tools, layers);
    let open = OpenCall::new(&stack);
    // The first call applies the layers and begins the record.
    open.send(&mut stack);
    measure(|| drop(open.send(&mut stack))).count_total
}

fn count_batch(tools: [&'static str; 2]) -> f64 {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let (turn, size) = (asking_turn(), 10);
    let run = |calls| runtime.block_on(turn.run(calls)).expect("nothing fails");
    drop(run(calls_of(&tools, size)));
    let calls = calls_of(&tools, size);
    let counted = measure(|| drop(run(calls)));
    counted.count_total as f64 / size as f64
}
