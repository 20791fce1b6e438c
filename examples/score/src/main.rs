//! Scores a policy over files of commands that were labelled by hand: how many dangerous commands it asks about or
//! denies (*caught*), and how many everyday ones (*over-ask*).
//!
//! ```text
//! cargo run -p score -- tests/shell/dangerous.jsonl tests/shell/everyday.jsonl
//! cargo run -p score -- --preset reader --rows my.jsonl
//! cargo run -p score -- --rules rules.toml --root . my.jsonl
//! ```
//!
//! A file has one JSON object a line, as `tests/shell/README.md` says; only `cmd` and `label` are needed. The commands
//! are judged by their text alone, so that the score is the same on every machine; with `--root` files and installed
//! programs are looked up. `--rows` prints the dangerous commands that run and the everyday ones that are asked about.

mod corpus;

use std::error::Error;
use std::path::PathBuf;

use corpus::{Row, Score, Share};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::Preset;
use lexopt::{Arg, Parser, ValueExt as _};
use serde_json::{Map, Value};

/// The options of the command line.
struct Options {
    preset: Option<Preset>,
    rules: Option<PathBuf>,
    root: Option<PathBuf>,
    rows: bool,
    files: Vec<PathBuf>,
}

const USAGE: &str =
    "score [--preset developer|reader] [--rules FILE] [--root FOLDER] [--rows] FILE...";

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options =
        Options { preset: None, rules: None, root: None, rows: false, files: Vec::new() };
    let mut parser = Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("preset") => {
                options.preset = Some(match parser.value()?.string()?.as_str() {
                    "developer" => Preset::Developer,
                    "reader" => Preset::Reader,
                    other => return Err(format!("there is no preset `{other}`").into()),
                });
            }
            Arg::Long("rules") => options.rules = Some(parser.value()?.into()),
            Arg::Long("root") => options.root = Some(parser.value()?.into()),
            Arg::Long("rows") => options.rows = true,
            Arg::Value(file) => options.files.push(file.into()),
            Arg::Long(_) | Arg::Short(_) => {
                return Err(format!("{}\n{USAGE}", arg.unexpected()).into());
            }
        }
    }
    if options.files.is_empty() {
        return Err(USAGE.into());
    }
    Ok(options)
}

fn load(options: &Options) -> Result<Rules, Box<dyn Error>> {
    let builder = match &options.root {
        Some(root) => Rules::builder().root(root),
        None => Rules::builder().lexical().root("/users/user/project").home("/users/user"),
    };
    let builder = match &options.rules {
        Some(file) => builder.file(file),
        None => builder.preset(options.preset.unwrap_or(Preset::Developer)),
    };
    Ok(builder.load()?)
}

/// Judges a command as a call of the tool `shell`.
fn judge(rules: &Rules, command: &str) -> (bool, String) {
    let args = Map::from_iter([("command".to_owned(), Value::from(command))]);
    let ruling = rules.decide(&RuleCall::new("shell", &args));
    (ruling.decision().is_allow(), ruling.decision().to_string())
}

fn percent((part, all): Share) -> String {
    let share = if all == 0 { 0.0 } else { 100.0 * part as f64 / all as f64 };
    format!("{part:>5} of {all:>5} {share:>6.1} %")
}

/// Prints a score: all kinds, and of the programs those with a wrong row, the worst ones first.
fn print(name: &str, score: &Score, asked: bool, rows: bool) {
    println!("\n{name:<24} {}", percent(score.all));
    for (kind, share) in &score.kinds {
        println!("  {kind:<22} {}", percent(*share));
    }
    let wrong = |share: &Share| if asked { share.1 - share.0 } else { share.0 };
    let mut programs: Vec<_> = score.programs.iter().filter(|(_, it)| wrong(it) > 0).collect();
    programs.sort_by_key(|(name, share)| (std::cmp::Reverse(wrong(share)), (*name).clone()));
    if !programs.is_empty() {
        println!("  programs that are not right everywhere:");
    }
    for (program, share) in programs.iter().take(20) {
        println!("    {program:<20} {}", percent(**share));
    }
    if programs.len() > 20 {
        println!("    and {} more", programs.len() - 20);
    }
    if rows {
        println!(
            "  {}",
            if asked {
                "dangerous commands that run:"
            } else {
                "everyday commands that are asked about:"
            }
        );
        score.others.iter().for_each(|row| println!("    {row}"));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let rules = load(&options)?;
    let mut rows: Vec<Row> = Vec::new();
    for file in &options.files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        rows.extend(corpus::read(&text).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    for (label, name, asked) in [("dangerous", "caught", true), ("everyday", "over-ask", false)] {
        let of = rows.iter().filter(|row| row.label == label);
        let score = corpus::score(of, asked, |command| judge(&rules, command));
        print(&format!("{label}: {name}"), &score, asked, options.rows);
    }
    let others =
        rows.iter().filter(|row| row.label != "dangerous" && row.label != "everyday").count();
    if others > 0 {
        println!(
            "\n{others} rows have neither the label `dangerous` nor `everyday`, and were left out"
        );
    }
    Ok(())
}
