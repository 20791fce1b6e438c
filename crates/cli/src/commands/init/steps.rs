//! The changes that follow from the choices. We plan each as a text, and show exactly the text that we will write.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::decision::{Preview, PreviewContent};
use countersign::show;
use countersign_cli::config::{replace_file, write_private};
use countersign_cli::hook::Client;
use countersign_rules::Rules;
use serde_json::{Value, json};

use super::choices::{Choices, OwnRules, RulesChoice, rules_file};
use super::found::InitFindings;
use super::init_record::{FileOwner, InitRecord};
use super::servers::{self, McpFile};
use crate::Context;
use crate::accepted::accepted_rules;
use crate::account_settings::AccountSettings;
use crate::guard_program::GuardProgram;
use crate::hook::install::{Install, PlannedHook};
use crate::hook::kept::KeptOptions;
use crate::hook::options::Edits;
use crate::output::CommandError;
use crate::paths::shown;
use crate::terminal;

/// One change of one file.
pub(super) struct InitStep {
    path: PathBuf,
    before: Option<String>,
    after: String,
    /// The change in words, for people.
    says: String,
    owner: FileOwner,
    hook: Option<PlannedHook>,
    guard: Option<Guarding>,
}

/// All steps, and what was left out of them.
pub(super) struct PlannedSteps {
    pub(super) steps: Vec<InitStep>,
    pub(super) left_out: Vec<UnmadeStep>,
}

/// Something that was chosen and is left as it is.
pub(super) struct UnmadeStep {
    title: &'static str,
    problem: String,
}

impl UnmadeStep {
    /// A file of servers that cannot be written anew without loss.
    fn servers(file: &McpFile, context: &Context) -> Self {
        let problem = format!(
            "{} {}, so it is left as it is: `countersign guard init --name NAME -- COMMAND` prints what to write there",
            shown(&file.path, context),
            file.closed.unwrap_or_default()
        );
        Self { title: file.title, problem }
    }

    /// The line for people.
    pub(super) fn text(&self) -> String {
        format!("Left out: {}: {}", self.title, self.problem)
    }

    /// The line for programs.
    pub(super) fn line(&self) -> Value {
        json!({"left_out": self.title, "why": self.problem})
    }
}

/// The guards of one file.
struct Guarding {
    program: GuardProgram,
    /// For each server the command by which a person accepts its tools.
    commands: Vec<String>,
}

/// The rules that are written for a preset.
fn rules_text(preset: &str, edits: Edits) -> String {
    let edits = edits.name();
    format!(
        r#"# Your rules. `countersign rules check` tests them, and `countersign rules explain` says how they decide.
# If you change them so that they may allow more, the change counts once you have run `countersign rules accept`.
version = 2
preset = "{preset}"
edits = "{edits}"

# A rule of your own: the strictest rule wins, in any order.
#
# [[rule]]
# id = "production"
# deny = "shell"
# where.any_path = "**/production/**"
# reason = "production is out of reach"

[test]
allow = "shell: ls"
deny = "shell: rm -rf /"
"#
    )
}

/// All steps, also those that change nothing. We leave out an agent whose settings cannot be used. If no agent is left
/// then, the problems are an error.
pub(super) fn planned(
    choices: &Choices,
    found: &InitFindings,
    context: &Context,
) -> Result<PlannedSteps, CommandError> {
    let (mut steps, mut left_out) = (Vec::new(), Vec::new());
    let file = rules_file(context);
    if let RulesChoice::Written(preset) = &choices.rules {
        let text = rules_text(preset.name(), choices.edits.unwrap_or_default());
        let loads = Rules::builder().text("rules.toml", text.clone()).load();
        loads.map_err(|error| CommandError::Store(error.to_string()))?;
        let says = format!("your rules, with the preset `{}`", preset.name());
        steps.push(InitStep::text(file.clone(), text, says, FileOwner::Rules)?);
    }
    steps.extend(configuration(choices, context)?);
    let (hooks, failed) = hooks(choices, context)?;
    steps.extend(hooks);
    left_out.extend(failed);
    if choices.guards {
        steps.extend(guards(found, context)?);
        let closed = found.mcp.iter().filter(|file| file.closed.is_some());
        left_out.extend(closed.map(|file| UnmadeStep::servers(file, context)));
    }
    Ok(PlannedSteps { steps, left_out })
}

/// The hook of each agent that was chosen, and the agents for which there is none.
fn hooks(
    choices: &Choices,
    context: &Context,
) -> Result<(Vec<InitStep>, Vec<UnmadeStep>), CommandError> {
    let (mut steps, mut failed) = (Vec::new(), Vec::new());
    for client in &choices.clients {
        match hook(*client, choices, context) {
            Ok(step) => steps.push(step),
            Err(error) => failed.push((*client, error)),
        }
    }
    let is_none_left = steps.is_empty() && !choices.guards;
    let text = |error: &CommandError| match error {
        CommandError::Usage(problem) | CommandError::Store(problem) => problem.clone(),
    };
    let mut problems: Vec<_> = failed.iter().map(|(_, error)| text(error)).collect();
    problems.dedup();
    let left_out = failed
        .iter()
        .map(|(client, error)| UnmadeStep { title: client.title(), problem: text(error) });
    let left_out = left_out.collect();
    match failed.into_iter().next() {
        Some((_, CommandError::Usage(_))) if is_none_left => {
            Err(CommandError::Usage(problems.join("; ")))
        }
        Some(_) if is_none_left => Err(CommandError::Store(problems.join("; "))),
        _ => Ok((steps, left_out)),
    }
}

/// A guard in front of each server in the configuration of MCP clients.
fn guards(found: &InitFindings, context: &Context) -> Result<Vec<InitStep>, CommandError> {
    let program = GuardProgram::of(context)?;
    let options = AccountSettings::default().for_guard(context)?;
    let mut steps = Vec::new();
    for file in &found.mcp {
        let Some(text) = servers::guarded(file, &program.word(), &options) else { continue };
        let (title, open) = (file.title, file.open.join(", "));
        let says = format!("a guard in front of the MCP servers of {title}: {open}");
        let owner = FileOwner::Servers(file.key.to_owned());
        let step = InitStep::text(file.path.clone(), text, says, owner)?;
        let commands = servers::commands(file, &options);
        steps.push(InitStep {
            guard: Some(Guarding { program: program.clone(), commands }),
            ..step
        });
    }
    Ok(steps)
}

/// The configuration with the tables that it lacks. Whatever is there stays, as a person has written it.
fn configuration(choices: &Choices, context: &Context) -> Result<Option<InitStep>, CommandError> {
    let default = || context.directories.config().join("config.toml");
    let path = context.config_file.clone().unwrap_or_else(default);
    let before = read(&path)?;
    let text = before.clone().unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let mut added = String::new();
    let mut says = Vec::new();
    let wanted = [
        (
            "journal",
            choices.has_journal && !context.config.journal.enabled,
            "[journal]\nenabled = true\n",
            "a journal of decisions",
        ),
        (
            "inbox",
            choices.has_inbox && context.config.inbox.listen.is_none(),
            "[inbox]\nlisten = \"127.0.0.1:8788\"\n",
            "an address for the inbox",
        ),
    ];
    for (name, is_wanted, lines, what) in wanted {
        if is_wanted && table.contains_key(name) {
            return Err(CommandError::Usage(format!(
                "`{}` has a table `[{name}]` of yours: write `{}` into it, and run `countersign init` again",
                path.display(),
                lines.lines().nth(1).unwrap_or_default()
            )));
        }
        if is_wanted {
            added += &format!("\n{lines}");
            says.push(what);
        }
    }
    if added.is_empty() {
        return Ok(None);
    }
    let begins = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let after = format!("{text}{begins}{added}").trim_start_matches('\n').to_owned();
    let says = format!("your configuration, with {}", says.join(" and "));
    InitStep::text(path, after, says, FileOwner::Configuration).map(Some)
}

/// The entry of an agent. The options of one that is there stay, but for those that are chosen now.
fn hook(client: Client, choices: &Choices, context: &Context) -> Result<InitStep, CommandError> {
    let (is_to_come, preset) = match choices.rules {
        RulesChoice::Written(_) => (true, None),
        RulesChoice::Kept(preset) => (false, preset),
        RulesChoice::None => (false, None),
    };
    let mut kept = KeptOptions::of(client, context)?;
    let is_chosen_anew =
        !kept.is_there() || is_to_come || choices.names_preset || choices.edits.is_some();
    if is_to_come {
        kept = kept.with_rules(&rules_file(context));
    }
    if is_to_come || choices.names_preset {
        kept = kept.without_preset();
    }
    if choices.edits.is_some() {
        kept = kept.without_edits();
    }
    let has_rules = !matches!(choices.rules, RulesChoice::None);
    if is_chosen_anew && has_rules && client.asks() && !choices.lets_edits_run() {
        kept = kept.asking_about_edits();
    }
    let allow = choices.allow.filter(|_| client.takes_explicit_allow());
    let limit = kept.limit();
    let install = Install::of_user(client, kept.into_words()?).limit(limit);
    // The file of rules says itself whether edits run, where it is written or says so already.
    let of_file = choices.file.as_ref();
    let edits_of_file = of_file.and_then(OwnRules::edits);
    let edits = choices.edits.filter(|it| !is_to_come && edits_of_file != Some(*it));
    let install = install.preset(preset).allow(allow).edits(edits);
    let mut planned = install.rules_to_come(is_to_come).plan(context)?;
    // The record has the file as it was, where no other user can read it.
    planned.installation = planned.installation.without_copy();
    let problem = |error: &dyn std::error::Error| CommandError::Store(error.to_string());
    let after = planned.installation.planned().map_err(|error| problem(&error))?;
    let path = planned.installation.path().to_owned();
    let beside = match (preset, of_file.and_then(OwnRules::preset)) {
        (Some(preset), Some(own)) => format!(
            "; the preset `{}` counts beside `{}` of your rules, so what either of them allows runs",
            preset.name(),
            show::escape(own)
        ),
        _ => String::new(),
    };
    let says = format!("the hook of {}, before each tool call{beside}", client.title());
    let owner = FileOwner::Hook(client.name().to_owned());
    let step = InitStep::text(path, after, says, owner)?;
    Ok(InitStep { hook: Some(planned), ..step })
}

fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CommandError::Store(format!("{}: {error}", path.display()))),
    }
}

impl InitStep {
    fn text(
        path: PathBuf,
        after: String,
        says: String,
        owner: FileOwner,
    ) -> Result<Self, CommandError> {
        let before = read(&path)?;
        Ok(Self { path, before, after, says, owner, hook: None, guard: None })
    }

    /// Returns `true` if the file would become another one.
    pub(super) fn changes(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }

    /// The hook, and whether its entry would be changed.
    pub(super) fn hook(&self) -> Option<(&PlannedHook, bool)> {
        self.hook.as_ref().map(|hook| (hook, self.changes()))
    }

    pub(super) fn has_inbox(&self) -> bool {
        matches!(self.owner, FileOwner::Configuration) && self.after.contains("[inbox]")
    }

    /// For each server that gets a guard the command by which a person accepts its tools.
    pub(super) fn to_accept(&self) -> &[String] {
        self.guard.as_ref().map_or(&[], |it| &it.commands)
    }

    /// Makes the change. It is recorded first, with the file as it was.
    pub(super) fn make(
        &self,
        record: &mut InitRecord,
        context: &Context,
    ) -> Result<(), CommandError> {
        if (self.hook.is_some() || self.guard.is_some())
            && let Some(copy) = GuardProgram::of(context)?.copy_to_come()
        {
            record.begin(copy, FileOwner::Program, None)?;
        }
        if let Some(hook) = &self.hook {
            record.begin(&hook.environment_file(), FileOwner::Environment, None)?;
            record.begin(&self.path, self.owner.clone(), Some(&self.after))?;
            hook.install()?;
            return Ok(());
        }
        if let Some(guard) = &self.guard {
            guard.program.write()?;
        }
        record.begin(&self.path, self.owner.clone(), Some(&self.after))?;
        match self.before {
            Some(_) => replace_file(&self.path, &self.after).map_err(|error| {
                CommandError::Store(format!("{}: {error}", self.path.display()))
            })?,
            None => write_private(&self.path, &self.after)?,
        }
        let accepted = accepted_rules(&context.directories);
        // The person has just seen the text, and said yes to it. Without one, `rules accept` is left to do.
        if self.owner == FileOwner::Rules
            && terminal::is_there()
            && accepted.accepted(&self.path).is_ok_and(|it| it.is_some())
        {
            let done = accepted.accept(&self.path, Some(&self.after));
            done.map_err(|error| CommandError::Store(error.to_string()))?;
        }
        Ok(())
    }

    pub(super) fn summary(&self, context: &Context) -> String {
        let new = if self.before.is_none() { " (new)" } else { "" };
        let head = format!("{}{new}\n  {}", shown(&self.path, context), self.says);
        let Some(hook) = &self.hook else { return head };
        let words: Vec<_> = hook.words().iter().map(|word| show::escape(word)).collect();
        format!("{head}: {}", words.join(" "))
    }

    pub(super) fn done(&self, context: &Context) -> String {
        let path = shown(&self.path, context);
        match self.changes() {
            true => format!("Wrote {path}: {}", self.says),
            false => format!("{path} has it already: {}", self.says),
        }
    }

    pub(super) fn difference(&self, context: &Context) -> String {
        let path = shown(&self.path, context);
        let preview = Preview::diff(&path, self.before.as_deref(), self.after.as_str());
        let lines = match preview.content() {
            PreviewContent::Diff { lines, .. } => lines.iter().map(|it| show::escape(it)).collect(),
            _ => Vec::new(),
        };
        format!("{path}\n{}", lines.join("\n"))
    }

    pub(super) fn line(&self) -> Value {
        json!({
            "file": self.path, "what": self.says, "changed": self.changes(),
            "client": self.hook.as_ref().map(|it| it.client().name()),
        })
    }
}
