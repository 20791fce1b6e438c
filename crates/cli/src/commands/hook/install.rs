//! `countersign hook install` and `uninstall`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use countersign::error::with_causes;
use countersign_cli::config::LastingProgram;
use countersign_cli::hook::{
    Client, Environment, HookFiles, Installation, Installed, ProjectSettings, Trust,
};
use countersign_rules::Rules;
use serde_json::json;

use super::options::{Allow, Edits, Options, Where};
pub(super) use super::place::Configuration;
use super::search_path::open_folders;
use crate::Context;
use crate::output::{CommandError, CommandOutput};
use crate::paths::shown;
use crate::preset_name::PresetName;
use crate::seconds::limit;
use crate::terminal;

/// Configure a client to call this program before each tool call. A changed file is copied beside itself first.
#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    place: Configuration,
    /// How long the client waits for an answer, and the hook for a person
    #[arg(long, value_name = "SECONDS", value_parser = limit, default_value = "300")]
    limit: Duration,
    /// A preset that comes with the program and decides beside your rules. Where the client has a question of its own, it
    /// then asks about edits of the project's files in its session
    #[arg(long, value_enum, value_name = "NAME")]
    preset: Option<PresetName>,
    /// What an allowed call is answered with: `silent` leaves it to the client's own rules, which may ask about it; `grant`
    /// answers for them, too. Asked on a terminal where there is a preset and it is not given
    #[arg(long, value_enum)]
    allow: Option<Allow>,
    /// Let the settings that this project brings be no reason to ask, with the values that they have now: read them first
    #[arg(long)]
    accept_settings: bool,
    /// Say all that was found: the variables of the environment, the places of the hook, and what the rules leave open
    #[arg(long)]
    verbose: bool,
    /// Edits of files in the project: `workspace` runs them unasked, but for protected files and definitions of builds; with
    /// `ask` a rule has to allow them. Asked on a terminal where there is a preset and it is not given
    #[arg(long, value_enum)]
    edits: Option<Edits>,
    #[arg(skip)]
    rules_to_come: bool,
    /// Options of `countersign hook CLIENT` that the client passes on, after `--`: `-- --rules FILE --store URL`. Relative
    /// paths are those of the current directory, and the rules have to load
    #[arg(last = true)]
    options: Vec<String>,
}

impl Configuration {
    pub(super) fn uninstall(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        let installation = self.installation(context)?;
        let state = state_of(&installation, context);
        let done =
            installation.uninstall().map_err(|error| CommandError::Store(with_causes(&error)))?;
        let path = installation.path().display();
        let mut text = match done.changed {
            true => format!("Removed the hook from {path}"),
            false => format!(
                "There is no hook in {path}: `countersign hook doctor {}` says where one is",
                self.client
            ),
        };
        if done.switched {
            text += "\nAll hooks are switched off again, as they were before the installation";
        }
        if let Some(backup) = &done.backup {
            text += &before(backup);
        }
        if self.at.file.is_some() {
            HookFiles::of(self.client, &state).remove(installation.path())?;
        }
        // Another file may have the hook of the client, too, with the same record of its environment.
        let is_there = |it: &Installation| it.has_entry().unwrap_or(true);
        let is_left =
            self.at.managed || self.others(&installation, &state, context)?.iter().any(is_there);
        if done.changed && !is_left {
            Environment::forget(&Environment::record_in(&state, self.client))?;
        }
        let line =
            json!({"file": installation.path(), "changed": done.changed, "backup": done.backup});
        Ok(CommandOutput::new(0, line).for_people(text))
    }
}

/// The state directory that an entry names, or else that of the user.
fn state_of(installation: &Installation, context: &Context) -> PathBuf {
    let options = Options::installed(installation);
    let named = options.and_then(|options| options.state().ok());
    named.unwrap_or_else(|| context.directories.state().to_owned())
}

/// An installation whose options were checked, and of which nothing was written yet.
pub(crate) struct PlannedHook {
    place: Configuration,
    pub(crate) installation: Installation,
    words: Vec<String>,
    /// The state directory that the hook is told.
    state: PathBuf,
    /// Its places, for people.
    places: String,
    /// The variables of the terminal that the entry has values of.
    variables: Vec<&'static str>,
    environment: Environment,
    rules: Option<Rules>,
    preset: Option<PresetName>,
    lets_edits_run: bool,
    asks_in: Where,
    is_silent: bool,
    lasting: LastingProgram,
}

impl PlannedHook {
    /// The file with what the environment had at the installation.
    pub(crate) fn environment_file(&self) -> PathBuf {
        Environment::record_in(&self.state, self.place.client)
    }

    /// Writes the entry.
    pub(crate) fn install(&self) -> Result<Installed, CommandError> {
        if !self.place.at.managed {
            // First, so that a failure leaves no entry whose environment is not known.
            self.environment.record(&self.environment_file())?;
            self.lasting.write()?;
        }
        let done = self.installation.install();
        let done = done.map_err(|error| CommandError::Store(with_causes(&error)))?;
        if self.place.at.file.is_some() {
            HookFiles::of(self.place.client, &self.state).add(self.installation.path())?;
        }
        Ok(done)
    }

    pub(crate) fn client(&self) -> Client {
        self.place.client
    }

    /// The command of the entry.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The steps that are left to the user.
    pub(crate) fn next(&self, changed: bool, context: &Context) -> String {
        next(&self.place, &self.installation, changed, context)
    }
}

impl Install {
    /// The installation for all sessions of this user.
    pub(crate) fn of_user(client: Client, options: Vec<String>) -> Self {
        let (place, limit) = (Configuration::of_user(client), Duration::from_secs(300));
        Self {
            place,
            limit,
            preset: None,
            allow: None,
            edits: None,
            accept_settings: false,
            verbose: false,
            rules_to_come: false,
            options,
        }
    }

    /// Keeps the time that an entry has which is there; 300 seconds otherwise.
    pub(crate) fn limit(self, limit: Option<Duration>) -> Self {
        Self { limit: limit.unwrap_or(self.limit), ..self }
    }

    pub(crate) fn preset(self, preset: Option<PresetName>) -> Self {
        Self { preset, ..self }
    }

    pub(crate) fn allow(self, allow: Option<Allow>) -> Self {
        Self { allow, ..self }
    }

    pub(crate) fn edits(self, edits: Option<Edits>) -> Self {
        Self { edits, ..self }
    }

    /// Sets whether the files of rules are still to be written, and were looked at already.
    pub(crate) fn rules_to_come(self, rules_to_come: bool) -> Self {
        Self { rules_to_come, ..self }
    }

    /// Checks the options, and finds out what the entry will be.
    pub(crate) fn plan(self, context: &Context) -> Result<PlannedHook, CommandError> {
        let client = self.place.client;
        let program = std::env::current_exe().and_then(|path| path.canonicalize());
        let program = program.map_err(|error| CommandError::Store(error.to_string()))?;
        let options = Options::parse(self.options, context)?;
        let variables = options.variables()?;
        let options = options.filled(context, &self.place)?;
        let options = options.editing(self.edits);
        let options = options.with_preset(self.preset, client).allowing(self.allow);
        options.check_asking(client)?;
        let rules = match self.rules_to_come {
            true => None,
            false => options.check(&self.place)?,
        };
        let is_silent = options.leaves_allowed_calls();
        let lets_edits_run = options.lets_edits_run();
        let (state, preset, asks_in) = (options.state()?, options.preset(), options.asks_in());
        let here = std::env::current_dir().unwrap_or_default();
        let home = context.directories.home();
        if !self.place.at.managed {
            refuse_places_in(&options, &here, home)?;
        }
        let places = options.shown_places()?;
        let lasting = LastingProgram::of(&program, context.directories.home(), &state);
        // The machine's file names a program of the machine, which no user can exchange.
        let program = if self.place.at.managed { program.as_path() } else { lasting.path() };
        let program = program.to_string_lossy().into_owned();
        let mut words = vec![program, "hook".to_owned(), client.to_string()];
        words.extend(options.into_words()?);
        let installation =
            self.place.installation(context)?.command(words.clone()).limit(self.limit);
        let environment = match self.place.at.managed {
            true => Environment::default(),
            false if self.accept_settings => {
                let settings = ProjectSettings::new(client, &here, home).environment();
                Environment::of_process(home).and(settings)
            }
            false => Environment::of_process(home),
        };
        let place = self.place;
        Ok(PlannedHook {
            place,
            installation,
            words,
            state,
            places,
            variables,
            environment,
            rules,
            preset,
            lets_edits_run,
            asks_in,
            is_silent,
            lasting,
        })
    }

    pub(super) fn run(mut self, context: &Context) -> Result<CommandOutput, CommandError> {
        let client = self.place.client;
        if self.preset.is_some() && self.allow.is_none() && client.takes_explicit_allow() {
            self.allow = terminal::yes_or_no(&granting(client))?
                .map(|yes| if yes { Allow::Grant } else { Allow::Silent });
        }
        if self.preset.is_some() && self.edits.is_none() {
            self.edits = terminal::yes_or_no(EDITING)?
                .map(|yes| if yes { Edits::Workspace } else { Edits::Ask });
        }
        let verbose = self.verbose;
        let planned = self.plan(context)?;
        let done = planned.install()?;
        let installation = &planned.installation;
        let next = planned.next(done.changed, context);
        let mut text = [
            where_it_is(&planned, &done, context),
            at_the_next_call(&planned, &next, context),
            where_to_answer(&planned),
        ]
        .join("\n");
        if !planned.variables.is_empty() && !planned.place.at.managed {
            text += &from_variables(&planned.variables);
        }
        if let Some(open) = open_folders().filter(|_| !planned.place.at.managed) {
            text += &format!("\nTo do: {open}.");
        }
        if verbose {
            text += &known(&planned.environment);
            text += &format!("\nThe hook has {}", planned.places);
        }
        let line = json!({
            "file": installation.path(), "changed": done.changed, "backup": done.backup, "next": next,
            "switched_on": done.switched, "environment": planned.environment.names().collect::<Vec<_>>(),
        });
        Ok(CommandOutput::new(0, line).for_people(text))
    }
}

/// Refuses an entry with a place in the project: a terminal of an editor may have the variables of the one that is open.
fn refuse_places_in(options: &Options, here: &Path, home: &Path) -> Result<(), CommandError> {
    match options.places_in(here, home)?.first() {
        None => Ok(()),
        Some(within) => Err(CommandError::Usage(format!(
            "{within}, whose tools could change it: unset the variable that names it, or install in another directory"
        ))),
    }
}

fn before(backup: &Path) -> String {
    format!("\nThe file as it was before: {}", backup.display())
}

/// The question whether edits run unasked.
pub(crate) const EDITING: &str = "\
May edits of the project's files run without a question? Protected files, definitions of builds and files elsewhere stay \
questions";

/// The question whether an allow answers for the client as well.
pub(crate) fn granting(client: Client) -> String {
    format!(
        "May a call that the rules allow run without a question of {}? Otherwise its own rules may still ask",
        client.title()
    )
}

/// The first line: which file has the hook, and what was changed there.
fn where_it_is(planned: &PlannedHook, done: &Installed, context: &Context) -> String {
    let title = planned.place.client.title();
    let path = shown(planned.installation.path(), context);
    let mut text = match done.changed {
        true => format!("Installed the hook of {title} in {path}"),
        false => format!("The hook of {title} is in {path} already"),
    };
    if let Some(backup) = &done.backup {
        text += &format!(" (the file as it was before: {})", shown(backup, context));
    }
    if let Some(why) = planned.lasting.why_copied().filter(|_| !planned.place.at.managed) {
        text += &format!(
            ". This program runs from {why}, so the hook is a copy of it, {}: install the hook again after an update",
            shown(planned.lasting.path(), context)
        );
    }
    if done.switched {
        text += ". All hooks of this client were switched off, and are on now: `uninstall` switches them off again";
    }
    text
}

/// A line that is there only where a variable of the terminal stands in the entry: a project may have set it.
fn from_variables(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    format!(
        "\nThe entry has what {names} of this terminal said: unset what you did not set yourself, and install again"
    )
}

/// The second line: what happens at the next call.
fn at_the_next_call(planned: &PlannedHook, next: &str, context: &Context) -> String {
    let (client, rules) = (planned.place.client, planned.rules.as_ref());
    let mut text = next.to_owned();
    let preset = planned.preset.map(|preset| format!("the preset `{}`", preset.name()));
    text += &match (rules, preset) {
        (None, _) => format!(
            " Then every call is asked about, as there are no rules: install with `--preset developer`, or write rules \
             into {}, which count once you run `countersign rules accept`.",
            shown(&context.directories.config().join("rules.toml"), context)
        ),
        (Some(rules), _) if rules.needs_accepting() => {
            " The rules were changed since you accepted them, and the stricter of both decides: `countersign rules accept` \
             shows the difference."
                .to_owned()
        }
        (Some(_), Some(preset)) => format!(
            " Then {preset} decides beside your rules, as `countersign rules explain` says; it allows no tool of an MCP server."
        ),
        (Some(_), None) => " Then your rules decide: `countersign rules explain` says how.".to_owned(),
    };
    if planned.lets_edits_run {
        text += " An edit of a file of the project runs unasked, but for protected files and definitions of builds: \
                 `--edits ask` asks about each.";
    }
    if planned.is_silent && client.takes_explicit_allow() {
        text += &format!(
            " A call that they allow is still left to {client}'s own rules, unless you install with `--allow grant`."
        );
    }
    text
}

/// The third line: where a person answers.
fn where_to_answer(planned: &PlannedHook) -> String {
    let client = planned.place.client;
    let edits = match planned.asks_in {
        Where::Edits if !planned.lets_edits_run => format!(
            "You answer about an edit of the project's files in {} (`-- --ask inbox` asks elsewhere), and about other calls",
            client.title()
        ),
        Where::Client => {
            format!("You answer in {}, and what is asked about every time", client.title())
        }
        Where::Edits | Where::Inbox => "You answer".to_owned(),
    };
    format!(
        "{edits} with `countersign asks review` on a terminal, or `countersign inbox` on a page; `countersign hook doctor \
         {client} --live` proves that {client} obeys."
    )
}

/// The variables that are no reason to ask from now on.
fn known(environment: &Environment) -> String {
    let names = environment.names().map(|name| format!("`{}`", name.escape_debug()));
    let names = names.collect::<Vec<_>>().join(", ");
    match names.is_empty() {
        true => "\nThe environment has no variable that changes what commands do".to_owned(),
        false => format!(
            "\nThe environment has {names}, which may change what commands do. With these values no call is asked about \
             for that: unset what is not yours, and install the hook again"
        ),
    }
}

/// The steps that are left to the user.
fn next(
    place: &Configuration,
    installation: &Installation,
    changed: bool,
    context: &Context,
) -> String {
    let restart =
        "It is asked before each tool call of sessions that begin now: start open ones again."
            .to_owned();
    if place.at.managed {
        return restart;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let title = place.client.title();
    match (installation.trust(context.directories.home(), &here), place.client.trusted_by()) {
        (Ok(Trust::Given), _) => restart,
        (_, Some(how)) => format!(
            "The hook is off: {title} runs every tool without asking{} until you trust the hook: {how}. Do so after each \
             change.",
            if changed { ", as the entry is new or has changed," } else { "" }
        ),
        (Ok(Trust::Missing(why)), None) => {
            format!("The hook is off: {title} runs every tool without asking, as {why}.")
        }
        (_, None) => restart,
    }
}
