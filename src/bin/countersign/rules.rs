//! `countersign rules`: checks, explains, examines, replays, compares, accepts and imports rules.
//!
//! Files of rules are code that decides, so they can be tested, examined and compared before they are used. The exit
//! status is 1 where a change *may* let more through, which a job in CI can stop at; a person then says that it is
//! meant.

use std::io::{BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use countersign::rules::{
    self as library, DecisionJournal, Imported, RuleCall, Rules, RulesBuilder, RulesError,
};
use countersign::{shell, show};
use serde_json::{Map, Value, json};

use crate::accepted::{Accept, shown};
use crate::output::{CommandError, CommandOutput};

/// Exit statuses: 0 done; 1 the rules have a problem, or something widens; 2 bad usage.
#[derive(Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Load rules, run the tests in them and examine them; exits 1 if there is an error or a finding
    Check(SourceArgs),
    /// Say why calls are allowed, asked about or denied
    ///
    /// Reads JSON lines of {"tool": …, "args": {…}} on stdin. A tool is named as in rules: `mcp:SERVER/name`, `set:ID/name`
    /// or a name, or by a plain name with a "server" or "toolset". The tool `shell` with the argument `command` is the shell.
    Explain(SourceArgs),
    /// Find rules that do nothing, or more than they seem to
    Lint(SourceArgs),
    /// Decide about the calls of a decision journal under other rules; exits 1 if anything widens
    Replay(ReplayArgs),
    /// Show which rules differ between two files; exits 1 if a difference may widen
    Diff(Diff),
    /// Accept changed rules, for which the stricter of them and those before decide until then. Needs a terminal
    Accept(Accept),
    /// Print the rules of another agent's file as a file of rules, and on stderr what is not carried over and why
    Import(Import),
    /// Print the JSON Schema of files of rules
    Schema,
}

#[derive(Args)]
struct SourceArgs {
    /// A file of rules; may be repeated
    #[arg(long = "rules", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A preset that comes with the program
    #[arg(long)]
    preset: Option<PresetName>,
    /// The root of the workspace
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Judge paths by their text alone, and look up no file and no program
    #[arg(long)]
    lexical: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum PresetName {
    Developer,
    Reader,
}

#[derive(Args)]
struct ReplayArgs {
    /// The decision journal
    journal: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Args)]
struct Diff {
    /// The file before
    old: PathBuf,
    /// The file after
    new: PathBuf,
}

#[derive(Args)]
struct Import {
    /// The agent whose file it is
    agent: ImportedAgent,
    /// The file: `settings.json` of Claude Code, or a `.rules` file of Codex
    file: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum ImportedAgent {
    Claude,
    Codex,
}

impl SourceArgs {
    fn builder(&self) -> Result<RulesBuilder, CommandError> {
        let mut builder = Rules::builder().root(&self.root);
        if self.lexical {
            builder = builder.lexical();
        }
        match self.preset {
            Some(PresetName::Developer) => builder = builder.preset(shell::Preset::Developer),
            Some(PresetName::Reader) => builder = builder.preset(shell::Preset::Reader),
            None if self.files.is_empty() => {
                return Err(CommandError::Usage("name `--rules FILE` or `--preset NAME`".into()));
            }
            None => {}
        }
        Ok(self.files.iter().fold(builder, RulesBuilder::file))
    }

    fn load(&self) -> Result<Rules, CommandError> {
        self.builder()?.load().map_err(|error| problem(&error))
    }
}

fn problem(error: &RulesError) -> CommandError {
    CommandError::Store(error.to_string())
}

fn text_of(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path)
        .map_err(|error| CommandError::Store(format!("{}: {error}", path.display())))
}

impl RulesArgs {
    pub(crate) fn run(&self) -> Result<CommandOutput, CommandError> {
        match &self.action {
            Action::Check(source) => check(source),
            Action::Explain(source) => explain(&source.load()?),
            Action::Lint(source) => Ok(lint(&source.load()?, 0, false)),
            Action::Replay(replay) => replay.run(),
            Action::Diff(diff) => diff.run(),
            Action::Accept(accept) => accept.run(),
            Action::Import(import) => import.run(),
            Action::Schema => Ok(CommandOutput::new(0, library::schema())),
        }
    }
}

fn check(source: &SourceArgs) -> Result<CommandOutput, CommandError> {
    match source.builder()?.load() {
        Ok(rules) => Ok(lint(&rules, 1, true)),
        Err(error) => {
            let lines = error.problems().iter().map(|problem| {
                json!({"kind": "error", "file": problem.file(), "line": problem.line(), "column": problem.column(), "text": problem.text()})
            });
            Ok(CommandOutput::of(1, lines.collect()).for_people(error.to_string()))
        }
    }
}

/// The findings, for people behind what was loaded and tested.
fn lint(rules: &Rules, status: u8, checked: bool) -> CommandOutput {
    let found = library::lint(rules, None);
    let mut text: Vec<String> = Vec::new();
    if checked {
        text.extend(rules.files().iter().map(|file| show::escape(&file.to_string())));
    }
    text.extend(found.iter().map(ToString::to_string));
    if found.is_empty() {
        text.push("no findings".to_owned());
    }
    let status = if found.is_empty() { 0 } else { status };
    let lines = found.iter().map(|it| json!(it)).collect();
    CommandOutput::of(status, lines).for_people(text.join("\n"))
}

fn explain(rules: &Rules) -> Result<CommandOutput, CommandError> {
    let (mut lines, mut texts) = (Vec::new(), Vec::new());
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line =
            line.map_err(|error| CommandError::Usage(format!("line {}: {error}", number + 1)))?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |what: &str| CommandError::Usage(format!("line {}: {what}", number + 1));
        let call: Value = serde_json::from_str(&line).map_err(|error| bad(&error.to_string()))?;
        let tool = call["tool"].as_str().ok_or_else(|| bad("`tool` has to be a text"))?;
        let none = Map::new();
        let args = match call.get("args") {
            None | Some(Value::Null) => &none,
            Some(args) => args.as_object().ok_or_else(|| bad("`args` has to be an object"))?,
        };
        let seen = match (call["server"].as_str(), call["toolset"].as_str()) {
            (Some(server), _) => RuleCall::new(tool, args).server(server),
            (None, Some(toolset)) => RuleCall::new(tool, args).toolset(toolset),
            (None, None) => RuleCall::named(tool, args),
        };
        let explanation = rules.explain(&seen);
        texts.push(explanation.to_string());
        lines.push(json!(explanation));
    }
    Ok(CommandOutput::of(0, lines).for_people(texts.join("\n")))
}

impl ReplayArgs {
    fn run(&self) -> Result<CommandOutput, CommandError> {
        let rules = self.source.load()?;
        let journal = DecisionJournal::at(&self.journal);
        let (entries, unreadable) = journal
            .entries()
            .map_err(|error| CommandError::Store(format!("{}: {error}", self.journal.display())))?;
        let replayed = library::replay(&entries, &rules);
        let mut text =
            format!("{} calls, {} decided otherwise", replayed.calls, replayed.changes.len());
        if unreadable > 0 {
            text.push_str(&format!(", {unreadable} lines cannot be read"));
        }
        for change in replayed.changes.iter().take(10) {
            let word = if change.widens() { "widens" } else { "narrows" };
            text.push_str(&format!(
                "\n{word}: {} {}: {}",
                change.tool,
                Value::Object(change.args.clone()),
                change.because
            ));
        }
        let status = u8::from(replayed.widens() || unreadable > 0);
        Ok(CommandOutput::new(
            status,
            json!({"calls": replayed.calls, "unreadable": unreadable, "changes": replayed.changes}),
        )
        .for_people(text))
    }
}

impl Diff {
    fn run(&self) -> Result<CommandOutput, CommandError> {
        let found = library::difference(&text_of(&self.old)?, &text_of(&self.new)?)
            .map_err(|error| problem(&error))?;
        let text = shown(&found);
        let status = u8::from(found.iter().any(|it| it.may_widen));
        Ok(CommandOutput::of(status, found.iter().map(|it| json!(it)).collect()).for_people(text))
    }
}

impl Import {
    fn run(&self) -> Result<CommandOutput, CommandError> {
        let mut text = String::new();
        std::fs::File::open(&self.file)
            .and_then(|file| file.take(4 * 1024 * 1024).read_to_string(&mut text))
            .map_err(|error| CommandError::Store(format!("{}: {error}", self.file.display())))?;
        let imported = match self.agent {
            ImportedAgent::Claude => library::import_claude(&text),
            ImportedAgent::Codex => library::import_codex(&text),
        };
        let imported: Imported = imported.map_err(|error| problem(&error))?;
        // Stdout is the file; a closed stderr is no error.
        let mut told = std::io::stderr().lock();
        for one in &imported.left_out {
            let dead = if one.dead { " (it has no effect there either)" } else { "" };
            let rule: Vec<&str> = one.rule.split_whitespace().collect();
            let line = format!("not carried over: {}: {}{dead}", rule.join(" "), one.why);
            let _ = writeln!(told, "{}", show::escape(&line));
        }
        Ok(CommandOutput::new(0, json!(imported)).for_people(imported.text.trim_end()))
    }
}
