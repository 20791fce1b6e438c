//! `lab run` runs the forms and makes the page; `lab again` runs those with a difference again; `lab try FORM` runs one form; `lab page` makes the page again.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use countersign_lab::place::Run;
use countersign_lab::rows::{Row, page};
use countersign_lab::{Lab, known};
use countersign_shell::Programs;

fn main() -> ExitCode {
    match command() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::from(2)
        }
    }
}

fn command() -> io::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["inside", run] => {
            let run: Run = serde_json::from_str(run)?;
            println!("{}", serde_json::to_string(&run.inside()?)?);
        }
        ["try", form] => tried(form, "plain")?,
        ["try", form, workspace] => tried(form, workspace)?,
        ["page"] => written(&kept()?)?,
        ["again"] => {
            let rows = lab()?.again(&Programs::built_in(), kept()?)?;
            return ended(&rows);
        }
        ["run", options @ ..] => return run(options),
        _ => {
            eprintln!(
                "usage: lab run [--seed N] [--forms N] [PROGRAM…] | again | try FORM [WORKSPACE] | page"
            );
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The lab that the environment names: `LAB_IMAGE`, `LAB` for the workspaces, and `LAB_JOBS`.
fn lab() -> io::Result<Lab> {
    let folder = std::env::var_os("LAB")
        .map_or_else(|| repository().join("tests/lab/target/lab"), PathBuf::from);
    let image = std::env::var_os("LAB_IMAGE").map_or_else(|| folder.join("image"), PathBuf::from);
    let jobs = std::env::var("LAB_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(2);
    Lab::new(&image, &folder, jobs)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn tried(form: &str, workspace: &str) -> io::Result<()> {
    match lab()?.try_form(&Programs::built_in(), form, workspace)? {
        Some(row) => println!("{row:#?}"),
        None => println!("a developer is asked about it"),
    }
    Ok(())
}

fn run(options: &[&str]) -> io::Result<ExitCode> {
    let (mut seed, mut forms, mut only) = (1, 3_600, BTreeSet::new());
    let mut rest = options.iter();
    while let Some(word) = rest.next() {
        let mut number = || {
            rest.next()
                .and_then(|it| it.parse().ok())
                .ok_or_else(|| io::Error::other("a number is missing"))
        };
        match *word {
            "--seed" => seed = number()?,
            "--forms" => forms = number()? as usize,
            program => {
                only.insert(program.to_owned());
            }
        }
    }
    let rows = lab()?.run_all(&Programs::built_in(), &only, forms, seed)?;
    if only.is_empty() {
        return ended(&rows);
    }
    rows.iter().for_each(|row| println!("{}", row.line()));
    Ok(ExitCode::SUCCESS)
}

/// The rows of the last run.
fn kept() -> io::Result<Vec<Row>> {
    let text = std::fs::read_to_string(repository().join("tests/lab/rows.tsv"))?;
    Ok(text.lines().filter_map(Row::parse).collect())
}

/// Writes the rows and the page.
fn ended(rows: &[Row]) -> io::Result<ExitCode> {
    let open = rows.iter().filter(|row| !row.differences.is_empty()).count();
    let text: String = rows.iter().map(|row| row.line() + "\n").collect();
    std::fs::write(repository().join("tests/lab/rows.tsv"), text)?;
    written(rows)?;
    eprintln!("{} forms were run, {open} with a difference", rows.len());
    Ok(if open == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn written(rows: &[Row]) -> io::Result<()> {
    let repaired = std::fs::read_to_string(repository().join("tests/lab/repaired.tsv"))?;
    std::fs::write(repository().join("docs/lab.md"), page(rows, &repaired, known::entries().len()))
}
