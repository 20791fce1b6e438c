//! The time to read a text, and to ask about a value: `cargo bench -p benches --bench origin`.

use std::hint::black_box;
use std::time::Duration;

use countersign::origin::{ReadCall, ReadLabel, ReadRecord};
use criterion::{BatchSize, Criterion, Throughput};
use serde_json::{Value, json};

/// 64 KiB of a text that repeats with other numbers, so that most of its words are known.
fn text(sentence: &str) -> Value {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 64 * 1024 {
        text.push_str(&sentence.replace("{n}", &number.to_string()));
        number += 1;
    }
    Value::String(text)
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("origin");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let label = ReadLabel::others("web");
    let call = || ReadCall::new("c1", "fetch", json!({"url": "https://example.com/page"}));
    let texts = [
        (
            "prose",
            "The harvest of the year {n} was larger than in the years before, and the farmers sold most of it in town. ",
        ),
        (
            "mails",
            "From: ann{n}@example.com\nSubject: Invoice {n}\nDear Bob, please pay 12{n}.50 euro until 2026-05-26, see https://example.com/i/{n}.\n",
        ),
        (
            "code",
            "fn value_{n}(input: &str) -> Option<u32> { input.trim().parse().ok().filter(|it| *it > {n}) } // src/lib.rs\n",
        ),
        ("numbers", "{n}88321 {n}77123 {n}99004 {n}10203 "),
    ];
    for (name, sentence) in texts {
        let text = text(sentence);
        group.throughput(Throughput::Bytes(text.as_str().map_or(0, str::len) as u64));
        group.bench_function(format!("read 64 KiB of {name}"), |bencher| {
            bencher.iter_batched(
                ReadRecord::new,
                |record| {
                    record.read(&label, &call(), black_box(&text));
                    record
                },
                BatchSize::LargeInput,
            );
        });
    }
    let record = ReadRecord::new();
    record.user_said("Write to ann@example.com, and pay DE89 3704 0044 0532 0130 00");
    record.read(&label, &call(), &text(texts[1].1));
    let origin = record.origin();
    group.throughput(Throughput::Elements(1));
    for (name, value) in [
        ("address", json!("ann@example.com")),
        ("name", json!("Fred Smith")),
        ("URL", json!("https://example.com/i/7")),
    ] {
        group.bench_function(format!("ask about a value, {name}"), |bencher| {
            bencher.iter(|| origin.named_by(&["user", "own"], black_box(&value)));
        });
    }
    group.finish();
    criterion.final_summary();
}
