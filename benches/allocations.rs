//! Allocations per allowed call, counted: `cargo bench -p benches --bench allocations`.

mod support;

use allocation_counter::measure;
use countersign::Tools;
use support::{DEPTHS, Leaf, OpenCall, Subject};

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
}

fn count(subject: Subject, layers: usize) -> u64 {
    let tools = Tools::from(Leaf);
    let mut stack = subject.build(&tools, layers);
    let open = OpenCall::new(&stack);
    // The first call applies the layers and begins the record.
    open.send(&mut stack);
    measure(|| drop(open.send(&mut stack))).count_total
}
