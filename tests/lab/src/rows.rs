//! What was found, as lines of a table under version control, and the page that is made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::place::Effects;
use crate::verdict::Claim;

/// A form that was run in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The program.
    pub program: String,
    /// The text that was run.
    pub form: String,
    /// The workspace that it was run in.
    pub workspace: String,
    /// `reader` or `developer`: the strictest preset that allows the form.
    pub preset: String,
    /// What the table claims, in its words.
    pub claim: String,
    /// The exit status.
    pub status: i32,
    /// What was seen: traps that ran, files that were written, hosts.
    pub seen: Vec<String>,
    /// What was not within the claim.
    pub differences: Vec<String>,
}

/// How many of a row's effects are kept.
const KEPT: usize = 3;

impl Row {
    /// The row of a run.
    #[must_use]
    pub fn new(
        program: &str,
        form: &str,
        workspace: &str,
        claim: &Claim,
        effects: &Effects,
    ) -> Self {
        let mut seen = Vec::new();
        seen.extend(effects.fired.iter().map(|it| format!("ran {it}")));
        seen.extend(effects.started.iter().map(|it| format!("started {it}")));
        seen.extend(effects.written.iter().map(|it| format!("wrote {it}")));
        seen.extend(effects.sent.iter().map(|it| format!("sent to {it}")));
        seen.extend(effects.shown.iter().map(|it| format!("showed {it}")));
        seen.truncate(KEPT);
        let mut differences = claim.differences(effects);
        differences.truncate(KEPT);
        Self {
            program: program.to_owned(),
            form: form.to_owned(),
            workspace: workspace.to_owned(),
            preset: if claim.reader { "reader" } else { "developer" }.to_owned(),
            claim: claim.words(),
            status: effects.status,
            seen,
            differences,
        }
    }

    /// The row as a line.
    #[must_use]
    pub fn line(&self) -> String {
        let joined = |list: &[String]| list.join("; ").replace(['\t', '\n'], " ");
        let (seen, differences) = (joined(&self.seen), joined(&self.differences));
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{seen}\t{differences}",
            self.program, self.form, self.workspace, self.preset, self.claim, self.status
        )
    }

    /// The row of a line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut next = || parts.next();
        let list = |text: String| {
            text.split("; ").filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        Some(Self {
            program: next()?,
            form: next()?,
            workspace: next()?,
            preset: next()?,
            claim: next()?,
            status: next()?.parse().ok()?,
            seen: list(next()?),
            differences: list(next()?),
        })
    }
}

/// `docs/lab.md`.
#[must_use]
pub fn page(rows: &[Row], repaired: &str, known: usize) -> String {
    let programs: BTreeSet<_> = rows.iter().map(|row| &row.program).collect();
    let forms: BTreeSet<_> = rows.iter().map(|row| &row.form).collect();
    let worked: Vec<_> = rows.iter().filter(|row| row.status == 0).collect();
    let worked_programs: BTreeSet<_> = worked.iter().map(|row| &row.program).collect();
    let worked_forms: BTreeSet<_> = worked.iter().map(|row| &row.form).collect();
    let open: Vec<_> = rows.iter().filter(|row| !row.differences.is_empty()).collect();
    let repaired: Vec<_> =
        repaired.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut page = include_str!("page.md").to_owned();
    for (name, value) in [
        ("PROGRAMS", programs.len()),
        ("FORMS", forms.len()),
        ("RUNS", rows.len()),
        ("WORKED_PROGRAMS", worked_programs.len()),
        ("WORKED_FORMS", worked_forms.len()),
        ("REPAIRED", repaired.len()),
        ("KNOWN", known),
        ("OPEN_READER", open.iter().filter(|row| row.preset == "reader").count()),
        ("OPEN_DEVELOPER", open.iter().filter(|row| row.preset == "developer").count()),
    ] {
        page = page.replace(&format!("@{name}@"), &value.to_string());
    }
    let mut table = String::from(
        "| claim | forms | ran code of the project | wrote into it | talked to a host |\n|---|---|---|---|---|\n",
    );
    let mut by_claim: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| by_claim.entry(&row.claim).or_default().push(row));
    for (claim, rows) in by_claim {
        let with = |start: &str| {
            rows.iter().filter(|row| row.seen.iter().any(|it| it.starts_with(start))).count()
        };
        let _ = writeln!(
            table,
            "| {claim} | {} | {} | {} | {} |",
            rows.len(),
            with("ran "),
            with("wrote /home/dev/project/"),
            with("sent to ")
        );
    }
    page = page.replace("@CLAIMS@", table.trim_end());
    let mut list = String::new();
    for row in &open {
        let _ = writeln!(
            list,
            "- `{}` ({}, claims {}): {}",
            row.form,
            row.workspace,
            row.claim,
            row.differences.join("; ")
        );
    }
    page = page.replace("@OPEN@", if list.is_empty() { "None.\n" } else { &list });
    let mut list = String::from("| form | what it did | now |\n|---|---|---|\n");
    for line in repaired {
        let cells: Vec<_> = line.split('\t').map(|cell| cell.replace('|', "\\|")).collect();
        if let [form, did, reader, developer] = &*cells {
            let _ =
                writeln!(list, "| `{form}` | {did} | reader: {reader}, developer: {developer} |");
        }
    }
    page = page.replace("@REPAIRS@", list.trim_end());
    let names: Vec<_> = programs.iter().map(|name| format!("`{name}`")).collect();
    page.replace("@NAMES@", &names.join(" "))
}
