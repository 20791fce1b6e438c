//! The example `conformance` against the scenarios of `tests/conformance`, most of whose results PydanticAI itself gave.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::program;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance").join(name)
}

/// The output of the runner for a scenario.
fn play(runner: &Path, scenario: &[u8]) -> Result<Value, String> {
    let mut command = Command::new(runner);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut playing = command.spawn().unwrap();
    playing.stdin.take().unwrap().write_all(scenario).unwrap();
    let played = playing.wait_with_output().unwrap();
    if !played.status.success() {
        return Err(String::from_utf8_lossy(&played.stderr).into_owned());
    }
    serde_json::from_slice(&played.stdout).map_err(|error| error.to_string())
}

/// Returns `true` if a result is as expected: `{"$any": "text"}` stands for any text, `executed` is a set, and 1 is
/// 1.0.
fn same(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (want, got) if *want == json!({"$any": "text"}) => {
            got.as_str().is_some_and(|text| !text.is_empty())
        }
        (Value::Object(want), Value::Object(got)) => {
            want.len() == got.len()
                && want.iter().all(|(key, want)| {
                    got.get(key).is_some_and(|got| match key.as_str() {
                        "executed" => same(&sorted(want), &sorted(got)),
                        _ => same(want, got),
                    })
                })
        }
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| same(want, got))
        }
        (Value::Number(want), Value::Number(got)) => want == got || want.as_f64() == got.as_f64(),
        (want, got) => want == got,
    }
}

fn sorted(executed: &Value) -> Value {
    let mut executed = executed.clone();
    if let Some(executed) = executed.as_array_mut() {
        executed.sort_by_key(Value::to_string);
    }
    executed
}

#[test]
fn every_scenario_gives_the_expected_result() {
    let runner = program("conformance");
    let (mut played, mut failed) = (0, Vec::new());
    for entry in fs::read_dir(folder("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_owned();
        let want = fs::read(folder("expected").join(&name)).unwrap();
        let want: Value = serde_json::from_slice(&want).unwrap();
        let got = play(&runner, &fs::read(&path).unwrap());
        played += 1;
        if !got.as_ref().is_ok_and(|got| same(&want, got)) {
            let got = got.map_or_else(|error| error, |got| format!("{got:#}"));
            failed.push(format!("{}\nexpected {want:#}\ngot {got}", name.display()));
        }
    }
    assert_eq!(played, fs::read_dir(folder("expected")).unwrap().count());
    assert!(failed.is_empty(), "{} of {played} failed:\n{}", failed.len(), failed.join("\n\n"));
    assert!(played >= 135, "scenarios are missing");
}

#[test]
fn the_comparison_tells_results_apart() {
    let run =
        |content: Value, args: [u32; 2]| json!({"runs": [{"content": content, "executed": args}]});
    let want = run(json!({"$any": "text"}), [1, 2]);
    assert!(same(&want, &run(json!("any"), [2, 1])));
    for got in [run(json!(""), [1, 2]), run(json!(1), [1, 2]), run(json!("any"), [1, 1]), json!({})]
    {
        assert!(!same(&want, &got), "{got}");
    }
    assert!(same(&json!(1), &json!(1.0)) && !same(&json!(1), &json!(true)));
    assert!(!same(&json!({}), &json!({"more": 1})) && !same(&json!([1, 2]), &json!([2, 1])));
}

#[test]
fn a_scenario_that_cannot_be_played_is_refused() {
    let runner = program("conformance");
    assert!(play(&runner, b"{}").unwrap_err().contains("missing field"));
}
