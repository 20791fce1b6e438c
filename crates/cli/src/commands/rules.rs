//! `countersign rules`: checks, explains, examines, replays, proposes, compares, accepts and imports rules.
//!
//! Files of rules are code that decides, so they can be tested, examined and compared before they are used. The exit
//! status is 1 where a change *may* let more through, which a job in CI can stop at; a person then says that it is
//! meant.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use countersign::show;
use countersign_cli::config::{Config, Directories};
use countersign_rules::{
    self as library, DecisionJournal, Explanation, Imported, JournalEntry, RuleCall, Rules,
    RulesBuilder, RulesError,
};
use serde_json::{Map, Value, json};

use crate::accepted::{Accept, may_allow_more, shown};
use crate::output::{CommandError, CommandOutput};
use crate::preset_name::PresetName;
use crate::sessions;

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
    /// Takes calls as the tests of a file have them: `countersign rules explain 'shell: git push'`. Without one it reads
    /// JSON lines of {"tool": …, "args": {…}} on stdin. A tool is named as in rules: `mcp:SERVER/name`, `set:ID/name`
    /// or a name, or by a plain name with a "server" or "toolset". The tool `shell` with the argument `command` is the shell.
    /// For rules about origins, "said" has what the user said, and "after" what was read, as in the tests of a file.
    Explain(Explain),
    /// Find rules that do nothing, or more than they seem to
    Lint(SourceArgs),
    /// Decide about the calls of a decision journal under other rules; exits 1 if anything widens
    ///
    /// With `--sessions`: say how often rules would have asked in the sessions that you have had with Claude Code and Codex CLI,
    /// and about which calls. Their session files are read where they lie; nothing is stored, and nothing is run.
    Replay(ReplayArgs),
    /// Print the narrowest rules that would have allowed what people have approved repeatedly, and what else they would have
    /// allowed. Writes nothing
    Propose(ProposeArgs),
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
    /// A file of rules; may be repeated. Without one and without a preset, `rules.toml` in your configuration directory
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

#[derive(Args)]
struct Explain {
    /// A call in one line, such as `shell: git push` or `read_file: {path: .env}`, any number of times
    #[arg(value_name = "CALL")]
    calls: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Args)]
struct ReplayArgs {
    /// The decision journal; by default that of the configuration (`[journal]`)
    #[arg(conflicts_with = "sessions")]
    journal: Option<PathBuf>,
    /// The calls in the session files of Claude Code and Codex CLI, in place of a journal; by the preset `developer` if you have
    /// no rules yet. `--root` has no effect: a call is judged in the directory of its session
    #[arg(long)]
    sessions: bool,
    /// How many days of sessions
    #[arg(long, value_name = "DAYS", default_value_t = 30, requires = "sessions")]
    days: u32,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Args)]
struct ProposeArgs {
    /// The decision journal; by default that of the configuration (`[journal]`)
    journal: Option<PathBuf>,
    /// How often a call, or calls of one kind, must have been approved
    #[arg(long, value_name = "TIMES", default_value_t = 3)]
    least: usize,
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
    fn builder(&self, configured: &Configured) -> Result<RulesBuilder, CommandError> {
        let mut builder = Rules::builder().root(&self.root).groups(configured.groups());
        if self.lexical {
            builder = builder.lexical();
        }
        match self.preset {
            Some(preset) => builder = builder.preset(preset.preset()),
            None if self.files.is_empty() => match configured.rules() {
                Some(file) => builder = builder.file(file),
                None => {
                    return Err(CommandError::Usage(configured.without_rules()));
                }
            },
            None => {}
        }
        Ok(self.files.iter().fold(builder, RulesBuilder::file))
    }

    /// Says which of these files wait for being accepted, as a hook decides otherwise until then.
    fn with_waiting(&self, output: CommandOutput, configured: &Configured) -> CommandOutput {
        let Some((directories, config)) = &configured.0 else { return output };
        let own = configured.rules().filter(|_| self.files.is_empty() && self.preset.is_none());
        let files = self.files.iter().cloned().chain(own);
        let waiting = files.filter(|file| may_allow_more(directories, config, file));
        waiting.fold(output, |output, file| {
            let file = show::escape(&file.display().to_string());
            output.and_for_people(&format!(
                "{file} may allow more than before: until you run `countersign rules accept`, hooks and guards decide by \
                 the stricter of it and the rules that you accepted last"
            ))
        })
    }

    fn load(&self, configured: &Configured) -> Result<Rules, CommandError> {
        self.builder(configured)?.load().map_err(|error| problem(&error))
    }
}

/// The configuration of this user, which rules are examined without where there is none: in a job of CI, for example.
struct Configured(Option<(Directories, Config)>);

impl Configured {
    fn read(file: Option<&Path>) -> Result<Self, CommandError> {
        let Ok(directories) = Directories::of_user() else { return Ok(Self(None)) };
        let config = Config::load(&directories, file)?;
        Ok(Self(Some((directories, config))))
    }

    fn groups(&self) -> BTreeMap<String, Vec<String>> {
        self.0.as_ref().map(|(_, config)| config.groups.clone()).unwrap_or_default()
    }

    /// Returns `true` if other accounts write to the store, so that names are worth what a surface has checked of them.
    fn is_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|(directories, config)| config.is_shared(directories, None))
    }

    /// The rules of this user, if there are any.
    fn rules(&self) -> Option<PathBuf> {
        let (directories, _) = self.0.as_ref()?;
        Some(directories.config().join("rules.toml")).filter(|file| file.exists())
    }

    /// The way on for a user without a file of rules. Guards have files of their own.
    fn without_rules(&self) -> String {
        let mut text = "name `--rules FILE` or `--preset NAME`, as there is no `rules.toml` of yours: `countersign init` writes one"
            .to_owned();
        let folder = self.0.as_ref().map(|(directories, _)| directories.config().join("guard"));
        let entries =
            folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|it| it == "toml")).collect();
        files.sort();
        if !files.is_empty() {
            let files: Vec<_> =
                files.iter().map(|file| format!("`--rules {}`", file.display())).collect();
            text += &format!("; the rules of your guards are {}", files.join(", "));
        }
        text
    }

    /// The named journal, or that of the configuration, with its entries and the number of lines that cannot be read.
    fn journal(&self, named: Option<&Path>) -> Result<(Vec<JournalEntry>, usize), CommandError> {
        let journal = match (named, &self.0) {
            (Some(path), _) => DecisionJournal::at(path),
            (None, Some((directories, config))) => config.journal.written(directories),
            (None, None) => {
                return Err(CommandError::Usage("name the file of the decision journal".into()));
            }
        };
        let path = journal.path();
        if named.is_none() && !path.exists() {
            return Err(CommandError::Usage(format!(
                "there is no journal `{}`: `countersign init --journal on` begins one, or write `enabled = true` below `[journal]` in \
                 the configuration file, or name another one",
                path.display()
            )));
        }
        journal
            .entries()
            .map_err(|error| CommandError::Store(format!("{}: {error}", path.display())))
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
    pub(crate) fn run(&self, config: Option<&Path>) -> Result<CommandOutput, CommandError> {
        let configured = || Configured::read(config);
        match &self.action {
            Action::Check(source) => check(source, &configured()?),
            Action::Explain(explain) => explain.run(&configured()?),
            Action::Lint(source) => Ok(lint(&source.load(&configured()?)?, 0, false)),
            Action::Replay(replay) => replay.run(&configured()?),
            Action::Propose(propose) => propose.run(&configured()?),
            Action::Diff(diff) => diff.run(),
            Action::Accept(accept) => accept.run(config),
            Action::Import(import) => import.run(),
            Action::Schema => Ok(CommandOutput::new(0, library::schema())),
        }
    }
}

fn check(source: &SourceArgs, configured: &Configured) -> Result<CommandOutput, CommandError> {
    match source.builder(configured)?.load() {
        Ok(rules) => {
            let output = with_worth_of_names(lint(&rules, 1, true), &rules, configured);
            Ok(source.with_waiting(output, configured))
        }
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

/// Says what a demand for certain people is worth, where one account can answer in any name. It is no finding: the rule
/// does what it says.
fn with_worth_of_names(
    output: CommandOutput,
    rules: &Rules,
    configured: &Configured,
) -> CommandOutput {
    let of_people = rules.of_people();
    if of_people.is_empty() || configured.is_shared() {
        return output;
    }
    let note = format!(
        "{}: `people`, `not_the_requester` and `approvers` protect from mistakes, not from this account, which can answer in \
         any name: the store is a file of one account",
        of_people.join(", ")
    );
    output.and_for_people(&note)
}

impl Explain {
    fn run(&self, configured: &Configured) -> Result<CommandOutput, CommandError> {
        let rules = self.source.load(configured)?;
        let found = match self.calls.as_slice() {
            [] if std::io::stdin().is_terminal() => {
                let problem = "name a call, such as `countersign rules explain 'shell: git push'`, or give JSON lines on stdin";
                return Err(CommandError::Usage(problem.to_owned()));
            }
            [] => explained(&rules)?,
            calls => {
                let explained = |text: &String| {
                    let call = rules.written_call(text).map_err(CommandError::Usage)?;
                    Ok(rules.explain(&call.call()))
                };
                calls.iter().map(explained).collect::<Result<Vec<_>, CommandError>>()?
            }
        };
        let text = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let lines = found.iter().map(|it| json!(it)).collect();
        Ok(self.source.with_waiting(CommandOutput::of(0, lines).for_people(text), configured))
    }
}

/// The explanations of the calls on stdin.
fn explained(rules: &Rules) -> Result<Vec<Explanation>, CommandError> {
    let mut found = Vec::new();
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line =
            line.map_err(|error| CommandError::Usage(format!("line {}: {error}", number + 1)))?;
        if line.trim().is_empty() {
            continue;
        }
        let bad = |what: &str| {
            let form = "a line is `{\"tool\": \"shell\", \"args\": {\"command\": \"git push\"}}`, and `countersign rules explain \
                        'shell: git push'` takes a call without JSON";
            CommandError::Usage(format!("line {}: {what}; {form}", number + 1))
        };
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
        let [said, after] = ["said", "after"].map(|key| texts_of(&call[key]));
        let seen = match said.is_empty() && after.is_empty() {
            true => seen,
            false => {
                let record = library::stated_record(&said, &after).map_err(bad)?;
                seen.origin(record.origin())
            }
        };
        found.push(rules.explain(&seen));
    }
    Ok(found)
}

/// A text, or a list of texts.
fn texts_of(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

impl ReplayArgs {
    fn sessions(&self, configured: &Configured) -> Result<CommandOutput, CommandError> {
        let directories = Directories::of_user()?;
        let has_rules = self.source.preset.is_some() || !self.source.files.is_empty();
        sessions::replay(self.days, &directories, |root| {
            if !has_rules && configured.rules().is_none() {
                let preset = countersign_shell::Preset::Developer;
                return Ok(Rules::builder().root(root).preset(preset));
            }
            Ok(self.source.builder(configured)?.root(root))
        })
    }

    fn run(&self, configured: &Configured) -> Result<CommandOutput, CommandError> {
        if self.sessions {
            return self.sessions(configured);
        }
        let rules = self.source.load(configured)?;
        let (entries, unreadable) = configured.journal(self.journal.as_deref())?;
        let replayed = library::replay(&entries, &rules);
        let mut text =
            format!("{} calls, {} decided otherwise", replayed.calls, replayed.changes.len());
        if unreadable > 0 {
            text.push_str(&format!(", {unreadable} lines cannot be read"));
        }
        // The same call is mostly there many times.
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for change in &replayed.changes {
            let word = if change.widens() { "widens" } else { "narrows" };
            let args = Value::Object(change.args.clone());
            let line = format!("{word}: {} {args}: {}", change.tool, change.because);
            match kinds.iter_mut().find(|(known, _)| *known == line) {
                Some((_, times)) => *times += 1,
                None => kinds.push((line, 1)),
            }
        }
        for (line, times) in kinds.iter().take(10) {
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            text.push_str(&format!("\n{line}{times}"));
        }
        if let Some(more) = kinds.len().checked_sub(10).filter(|more| *more > 0) {
            text.push_str(&format!("\nand {more} others: `--json` lists them all"));
        }
        let status = u8::from(replayed.widens() || unreadable > 0);
        Ok(CommandOutput::new(
            status,
            json!({"calls": replayed.calls, "unreadable": unreadable, "changes": replayed.changes}),
        )
        .for_people(text))
    }
}

impl ProposeArgs {
    fn run(&self, configured: &Configured) -> Result<CommandOutput, CommandError> {
        let (entries, unreadable) = configured.journal(self.journal.as_deref())?;
        let present = self.source.builder(configured)?;
        let with = |more: &str| present.clone().text("proposed", more).load();
        let found =
            library::propose(&entries, self.least.max(1), with).map_err(|error| problem(&error))?;
        let mut text = found.to_string();
        if unreadable > 0 {
            text.push_str(&format!("\n# {unreadable} lines of the journal cannot be read\n"));
        }
        if found.rules.is_empty() && found.uncovered.is_empty() {
            let approved = entries.iter().filter(|entry| entry.approved).count();
            let (least, calls) = (self.least, show::counted(entries.len(), "call"));
            text = format!(
                "nothing to propose: of {calls} in the journal {approved} were approved, and none of those that the rules \
                 ask about {least} times"
            );
        }
        if !found.rules.is_empty() {
            text.push_str(
                "\n# To use a rule, copy its `[[rule]]` into your file of rules, and its line below `allow` into your `[test]`.\n# Then \
                 `countersign rules replay` says what of the journal it changes,\n# `countersign rules check` tests the file, and \
                 `countersign rules accept` makes it count.\n",
            );
        }
        Ok(CommandOutput::new(0, json!(found)).for_people(text.trim_end()))
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
    /// The reason why the file cannot be read, and where it usually is.
    fn unread(&self, error: &std::io::Error) -> String {
        let usual = match self.agent {
            ImportedAgent::Claude => {
                "~/.claude/settings.json, and .claude/settings.json of a project"
            }
            ImportedAgent::Codex => "in ~/.codex/rules",
        };
        format!("{}: {error}. These rules are usually {usual}", self.file.display())
    }

    fn run(&self) -> Result<CommandOutput, CommandError> {
        let mut text = String::new();
        std::fs::File::open(&self.file)
            .and_then(|file| file.take(4 * 1024 * 1024).read_to_string(&mut text))
            .map_err(|error| CommandError::Store(self.unread(&error)))?;
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
