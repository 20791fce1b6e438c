//! The lab runs real programs in the forms that the table of programs allows, in workspaces full of traps, without a network
//! and without privileges, and compares what they did with what the table claims.
//!
//! `forms` makes the forms, `traps` the workspaces, `place` runs a form and finds its effects, `verdict` compares them with
//! the table, and `rows` keeps the results and makes `docs/lab.md` of them.

pub mod forms;
pub mod known;
pub mod place;
pub mod rows;
pub mod traps;
pub mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use countersign_shell::Programs;

use forms::{Forms, Random};
use place::{Effects, Run};
use rows::Row;
use verdict::Table;

/// Where the lab is: its image, and a folder for workspaces and mounts.
#[derive(Debug, Clone)]
pub struct Lab {
    image: PathBuf,
    folder: PathBuf,
    layers: BTreeMap<String, PathBuf>,
    jobs: usize,
}

impl Lab {
    /// The lab of an image, which `install` has made. Makes the workspaces that are missing.
    ///
    /// # Errors
    ///
    /// When the image is not there, or a workspace could not be made.
    pub fn new(image: &Path, folder: &Path, jobs: usize) -> io::Result<Self> {
        let image = image.canonicalize()?;
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let layers = traps::layers(&folder, &image, &operands())?;
        Ok(Self { image, folder, layers, jobs })
    }

    /// The programs of the table that the image has.
    #[must_use]
    pub fn installed(&self, programs: &Programs) -> BTreeSet<String> {
        let folders = ["usr/local/bin", "usr/bin", "usr/sbin", "usr/local/sbin", "usr/games"];
        let there = |name: &str| {
            let roots = [&self.image, &self.layers["plain"]];
            roots.iter().any(|root| {
                folders.iter().any(|it| root.join(it).join(name).symlink_metadata().is_ok())
            })
        };
        programs.names().filter(|name| there(name)).map(str::to_owned).collect()
    }

    /// Returns `true` if a program was installed from npm, PyPI or crates.io, or is a proxy of `rustup`.
    fn is_of_a_registry(&self, program: &str) -> bool {
        [&self.image, &self.layers["plain"]]
            .iter()
            .any(|root| root.join("usr/local/bin").join(program).symlink_metadata().is_ok())
    }

    /// The workspaces that a form is run in. `--version` and `--help` are run where the project names a version of the
    /// program; what installs, also where nothing has to be fetched.
    fn workspaces(&self, program: &str, form: &str, is_base: bool) -> Vec<&'static str> {
        if matches!(program, "hg" | "svn") {
            return vec!["mercurial"];
        }
        if !is_base || form.contains('|') {
            return vec!["plain"];
        }
        let is_bare = !form.contains(' ');
        let asks = form.ends_with(" --version") || form.ends_with(" --help");
        let loads = ["python", "pip", "pytest", "node", "mvn", "java", "ts-node", "pypy"];
        let loads =
            self.is_of_a_registry(program) || loads.iter().any(|name| program.starts_with(name));
        let mut names = if loads && asks { Vec::new() } else { vec!["plain"] };
        if loads {
            names.push("launch");
        }
        if matches!(program, "git" | "tig" | "pre-commit") {
            names.extend(["git-filter", "git-diff"]);
        }
        let installs = [
            "npm",
            "pnpm",
            "yarn",
            "bun",
            "pip",
            "pip3",
            "uv",
            "poetry",
            "pdm",
            "pipenv",
            "hatch",
            "bundle",
            "composer",
            "cargo",
            "pre-commit",
        ];
        if is_bare && installs.contains(&program) {
            names.push("empty");
        }
        names
    }

    /// Runs a form in a workspace. `None` if the table asks about it there.
    ///
    /// # Errors
    ///
    /// When there is no place for it.
    pub fn try_form(
        &self,
        programs: &Programs,
        form: &str,
        workspace: &str,
    ) -> io::Result<Option<Row>> {
        let table = Table::new(programs, self.layer(workspace)?);
        let Some(claim) = table.claim(form) else { return Ok(None) };
        let command = form.rsplit('|').next().unwrap_or(form).trim();
        let program = command.split(' ').next().unwrap_or_default();
        let effects = self.run(form, workspace, "one")?;
        Ok(Some(Row::new(program, form, workspace, &claim, &effects)))
    }

    /// Runs the forms again that had a difference, as after a repair of the table: a row whose form is asked about now is
    /// left out.
    ///
    /// # Errors
    /// When there is no place for a form.
    pub fn again(&self, programs: &Programs, rows: Vec<Row>) -> io::Result<Vec<Row>> {
        let mut found = Vec::new();
        for row in rows {
            if row.differences.is_empty() {
                found.push(row);
            } else {
                found.extend(self.try_form(programs, &row.form, &row.workspace)?);
            }
        }
        Ok(found)
    }

    fn layer(&self, workspace: &str) -> io::Result<&Path> {
        let known = self.layers.get(workspace).map(PathBuf::as_path);
        known.ok_or_else(|| io::Error::other(format!("there is no workspace `{workspace}`")))
    }

    fn run(&self, form: &str, workspace: &str, worker: &str) -> io::Result<Effects> {
        let scratch = self.folder.join("scratch").join(worker);
        std::fs::create_dir_all(&scratch)?;
        let layer = self.layer(workspace)?.to_owned();
        let run =
            Run { image: self.image.clone(), layer, scratch, form: form.to_owned(), seconds: 15 };
        run.start()
    }

    /// Runs forms of programs, as many as wanted: all of their base forms, and options alone and in pairs, in proportion.
    ///
    /// # Errors
    ///
    /// When there is no place for a form.
    pub fn run_all(
        &self,
        programs: &Programs,
        only: &BTreeSet<String>,
        wanted: usize,
        seed: u64,
    ) -> io::Result<Vec<Row>> {
        let mut installed = self.installed(programs);
        if !only.is_empty() {
            installed.retain(|name| only.contains(name));
        }
        let lexical = Table::lexical(programs);
        let all = forms::forms(programs, &lexical, &installed);
        let each = |list: fn(&Forms) -> &BTreeSet<String>, is_base: bool| {
            let lists = all
                .iter()
                .flat_map(|(program, forms)| list(forms).iter().map(move |form| (program, form)));
            lists
                .map(|(program, form)| (program.clone(), form.clone(), is_base))
                .collect::<Vec<_>>()
        };
        let mut random = Random(seed);
        let base = each(|forms| &forms.base, true);
        // A quarter of what is left for sub-commands, the rest for options: three alone to one pair.
        let left = wanted.saturating_sub(base.len());
        let more = random.shuffled(each(|forms| &forms.more, false)).into_iter().take(left / 4);
        let single = chosen(&all, &lexical, &mut random, left * 9 / 16);
        let options =
            single.iter().map(|(program, (_, _, form))| (program.clone(), form.clone(), false));
        let base = base.into_iter().chain(more);
        let mut rows = self.run_each(programs, base.chain(options).collect())?;
        let worked: BTreeSet<&str> =
            rows.iter().filter(|row| row.status == 0).map(|row| &*row.form).collect();
        let pairs = pairs(&single, &worked);
        let pairs = random.shuffled(pairs).into_iter().take(left * 3 / 16).collect();
        rows.extend(self.run_each(programs, pairs)?);
        rows.sort_by(|one, other| {
            (&one.program, &one.form, &one.workspace).cmp(&(
                &other.program,
                &other.form,
                &other.workspace,
            ))
        });
        rows.dedup();
        Ok(rows)
    }

    fn run_each(
        &self,
        programs: &Programs,
        forms: Vec<(String, String, bool)>,
    ) -> io::Result<Vec<Row>> {
        let mut runs = Vec::new();
        let tables: BTreeMap<&str, Table> = self
            .layers
            .iter()
            .map(|(name, layer)| (&**name, Table::new(programs, layer)))
            .collect();
        for (program, form, is_base) in forms {
            for workspace in self.workspaces(&program, &form, is_base) {
                if let Some(claim) = tables[workspace].claim(&form) {
                    runs.push((program.clone(), form.clone(), workspace, claim));
                }
            }
        }
        let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = |worker: usize| -> io::Result<()> {
            while let Some((program, form, workspace, claim)) =
                runs.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let effects = self.run(form, workspace, &worker.to_string())?;
                let row = Row::new(program, form, workspace, claim, &effects);
                if !row.differences.is_empty() {
                    eprintln!(
                        "{} ({workspace}, {}): {}",
                        row.form,
                        row.claim,
                        row.differences.join("; ")
                    );
                }
                let mut rows = rows.lock().unwrap();
                rows.push(row);
                if rows.len() % 200 == 0 {
                    eprintln!("{} of {}", rows.len(), runs.len());
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..self.jobs).map(|worker| scope.spawn(move || work(worker))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().unwrap())
        })?;
        Ok(rows.into_inner().unwrap())
    }
}

type Single = (String, (String, String, String));

/// Options alone, in proportion to how many each program has.
fn chosen(
    all: &BTreeMap<String, Forms>,
    table: &Table,
    random: &mut Random,
    most: usize,
) -> Vec<Single> {
    let options = all.iter().flat_map(|(program, forms)| {
        forms.options.iter().map(move |option| (program.clone(), option.clone()))
    });
    let shuffled = random.shuffled(options.collect()).into_iter();
    let mut chosen: Vec<_> =
        shuffled.filter(|(_, (_, _, form))| table.claim(form).is_some()).take(most).collect();
    chosen.sort();
    chosen
}

/// Two options of one program that ended well alone.
fn pairs(single: &[Single], worked: &BTreeSet<&str>) -> Vec<(String, String, bool)> {
    let mut by_name: BTreeMap<&str, Vec<&Single>> = BTreeMap::new();
    for one in single.iter().filter(|(_, (_, _, form))| worked.contains(&**form)) {
        by_name.entry(&one.1.0).or_default().push(one);
    }
    let mut found = Vec::new();
    for (name, singles) in by_name {
        for pair in singles.windows(2) {
            let [(program, (_, _, form)), (_, (_, option, _))] = pair else { continue };
            if let Some(form) = forms::with_option(name, form, option) {
                found.push((program.clone(), form, false));
            }
        }
    }
    found
}

/// The files of the workspace that examples of the table read.
fn operands() -> Vec<String> {
    let table = Table::lexical(&Programs::built_in());
    let mut found = BTreeSet::new();
    for example in Programs::built_in().examples().iter().filter(|it| it.safe) {
        let Some(claim) = table.claim(&example.command) else { continue };
        for path in &claim.reads {
            let below = path.strip_prefix(place::PROJECT).and_then(|it| it.strip_prefix('/'));
            found.extend(
                below
                    .filter(|it| it.contains('.') && !it.contains(['*', '?', '[', '{']))
                    .map(str::to_owned),
            );
        }
    }
    found.into_iter().collect()
}
