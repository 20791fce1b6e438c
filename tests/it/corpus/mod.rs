//! L7: the data of every version loads and can be continued. `tests/corpus` describes it, and how to add to it.

mod asks;
mod dump;
mod earlier;
mod future;
mod runs;
mod stack;
mod stores;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use countersign::seal::SealKeys;
use serde_json::Value;
use tempfile::TempDir;

/// The directory for a new version, if one is to be written: `v2`.
const WRITE: &str = "CORPUS_WRITE";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every version, the newest last.
fn versions() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &PathBuf| -> Option<u32> {
        path.file_name()?.to_str()?.strip_prefix('v')?.parse().ok()
    };
    let mut versions: Vec<_> = entries.filter(|path| number(path).is_some()).collect();
    versions.sort_by_key(number);
    assert!(versions.first().is_some_and(|path| path.ends_with("v1")), "nothing was taken away");
    versions
}

fn read(version: &Path, file: &str) -> String {
    let path = version.join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(to: &Path, file: &str, value: &Value) {
    std::fs::write(to.join(file), format!("{value:#}\n")).unwrap();
}

/// The keys that seal the tokens of the corpus.
fn keys() -> SealKeys {
    SealKeys::danger_with_guessable_secret("corpus", [9; 32]).unwrap()
}

fn in_the_year_9999() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(253_402_300_799)
}

/// Returns whether every stored field is still there; a later version may have more.
fn keeps(stood: &Value, stands: &Value) -> Result<(), String> {
    let within = |name: &str, problem: String| format!("{name}/{problem}");
    match (stood, stands) {
        (Value::Object(stood), Value::Object(stands)) => {
            stood.iter().try_for_each(|(name, value)| {
                let now = stands.get(name).unwrap_or(&Value::Null);
                keeps(value, now).map_err(|problem| within(name, problem))
            })
        }
        (Value::Array(stood), Value::Array(stands)) if stood.len() == stands.len() => {
            stood.iter().zip(stands).enumerate().try_for_each(|(n, (value, now))| {
                keeps(value, now).map_err(|problem| within(&n.to_string(), problem))
            })
        }
        _ if stood == stands => Ok(()),
        _ => Err(format!("{stood} → {stands}")),
    }
}

/// The form of a JSON value: the names and kinds in it, without the values.
fn form(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| form(value, &format!("{at}/{name}"), found));
        }
        Value::Array(list) => list.iter().for_each(|it| form(it, &format!("{at}/*"), found)),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(inner @ Value::Object(_)) => form(&inner, &format!("{at}/text"), found),
            _ => _ = found.insert(format!("{at}: text")),
        },
        Value::Null => _ = found.insert(format!("{at}: null")),
        Value::Bool(_) => _ = found.insert(format!("{at}: bool")),
        Value::Number(_) => _ = found.insert(format!("{at}: number")),
    }
}

/// The form of everything that is stored as JSON.
fn forms(version: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(version).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stored = [".run.json", ".requests.json", ".answers.json", "turn.json", "rows.json"];
        let lines: Vec<String> = match &*name {
            "log.jsonl" => read(version, &name).lines().map(str::to_owned).collect(),
            _ if stored.iter().any(|end| name.ends_with(end)) => vec![read(version, &name)],
            _ => continue,
        };
        for line in lines {
            form(&serde_json::from_str(&line).unwrap(), &name, &mut found);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_every_version_are_resumed_to_their_end() {
    for version in versions() {
        runs::check(&version).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_logs_of_every_version_load_and_continue() {
    for version in versions() {
        stores::check_memory(&version).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_files_of_every_version_load_and_continue() {
    for version in versions() {
        stores::check_sqlite(&version).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_tables_of_every_version_load_and_continue() {
    for version in versions() {
        dump::check_postgres(&version).await;
    }
}

/// The present form is that of the newest version, which the other tests here read.
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_version_of_the_corpus_is_the_present_form() {
    let place = TempDir::new().unwrap();
    let (mut to, mut wanted) = (place.path().to_owned(), false);
    if let Ok(version) = std::env::var(WRITE) {
        (to, wanted) = (folder().join(version), true);
        std::fs::create_dir(&to).expect("a version is written once, and never changed");
    }
    runs::write_all(&to).await;
    stores::write_all(&to).await;

    runs::check(&to).await;
    stores::check_memory(&to).await;
    stores::check_sqlite(&to).await;
    dump::check_postgres(&to).await;
    if !wanted {
        let newest = versions().pop().unwrap();
        let (before, today) = (forms(&newest), forms(&to));
        let differ: Vec<_> = before.symmetric_difference(&today).collect();
        assert!(differ.is_empty(), "the stored form has changed, see tests/corpus: {differ:#?}");
        assert_eq!(stores::tables(&newest), stores::tables(&to), "tables changed: tests/corpus");
    }
}
