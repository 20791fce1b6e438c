//! The options of `countersign hook CLIENT`, and how `install` puts them into the command of a client.
//!
//! A client runs the command in the directory of its session, so a relative path would mean another file in each
//! session, and a mistake would deny every call. So `install` parses the options and loads the rules before it writes
//! anything, and writes paths as absolute ones.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use countersign::ledger::{Ledger, MemoryStore};
use countersign_cli::config::{Config, StoreUrl};
use countersign_cli::hook::{Client, Installation};
use countersign_rules::Rules;

use super::place::Configuration;
use super::rule_sources::{self, RuleSources};
use crate::Context;
use crate::account_settings::AccountSettings;
use crate::output::CommandError;
use crate::paths::{absolute, in_project};
use crate::preset_name::PresetName;
use crate::seconds::{limit, seconds};

/// The options for the answer to a payload on stdin.
#[derive(Args, Clone, Default)]
pub(crate) struct Answering {
    /// A file of rules, any number of times; by default `rules.toml` in the user's configuration directory. Without rules
    /// every call is asked about
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// A preset that comes with the program, whose rules count beside those of the files; none by default. It allows no
    /// tool of an MCP server
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<PresetName>,
    /// Edits of files in the project: `workspace` runs them unasked, but for protected files and definitions of builds; with
    /// `ask`, the default, a rule has to allow them
    #[arg(long, value_enum)]
    pub(crate) edits: Option<Edits>,
    /// The root of the project that paths in rules are relative to; by default the directory of the session
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: AccountSettings,
    /// The time limit of the hook in the client's configuration, in seconds; by default a minute, or less where a version
    /// of the client waits less. The answer is given shortly before
    #[arg(long, value_name = "SECONDS", value_parser = limit)]
    pub(crate) limit: Option<Duration>,
    /// How many seconds a person is waited for, at most; by default as long as the limit allows. With 0 the model is told at
    /// once that the call waits
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) wait: Option<Duration>,
    /// What an allowed call is answered with: `silent` leaves it to the client's own rules, `grant` answers for them
    #[arg(long, value_enum, default_value_t)]
    pub(crate) allow: Allow,
    /// Where a person is asked: `inbox`; `client` for the client's own question in its session, where it has one; `edits`
    /// for that question about edits of the project's files, and the inbox for the rest. What has to be asked every time is
    /// always asked in the inbox
    #[arg(long, value_enum)]
    pub(crate) ask: Option<Where>,
    /// The event that this hook is configured for, for clients whose payloads do not name it
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// The id of the shell around the hook, with which the client's time began
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) shell: Option<u32>,
}

impl Answering {
    /// The place where a person is asked; the inbox unless the options say otherwise.
    pub(crate) fn asks_in(&self) -> Where {
        self.ask.unwrap_or_default()
    }

    /// Returns `true` if edits in the project run unasked.
    pub(crate) fn lets_edits_run(&self) -> bool {
        self.edits == Some(Edits::Workspace)
    }
}

/// The edits that run unasked.
#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Edits {
    /// Those that a rule allows
    #[default]
    Ask,
    /// Those of files in the project, too, but for protected files and definitions of builds
    Workspace,
}

impl Edits {
    /// The word on the command line and in a file of rules.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Workspace => "workspace",
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Allow {
    #[default]
    Silent,
    Grant,
}

#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Where {
    #[default]
    Inbox,
    Client,
    Edits,
}

impl Where {
    /// The word on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Client => "client",
            Self::Edits => "edits",
        }
    }
}

/// The options of `countersign hook CLIENT`.
#[derive(Parser, Clone)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) answering: Answering,
    #[arg(long)]
    pub(super) config: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(words: Vec<String>, context: &Context) -> Result<Self, CommandError> {
        let mut options = Self::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let text = text.split("\n\n").next().unwrap_or(text);
            CommandError::Usage(format!("after `--`: {text}"))
        })?;
        if options.answering.limit.is_some() {
            let problem = "`--limit` belongs before `--`, as the client has to know it, too";
            return Err(CommandError::Usage(problem.to_owned()));
        }
        // Otherwise the hook would use another configuration than its installation.
        options.config = options.config.or_else(|| context.config_file.clone());
        Ok(options)
    }

    /// The variables of the terminal whose values go into the entry, where no option says otherwise. `HOME` is none of them:
    /// the home directory of the account counts.
    pub(super) fn variables(&self) -> Result<Vec<&'static str>, CommandError> {
        let settings = &self.answering.settings;
        let found = settings.without_effect(&settings.directories()?, self.config.as_deref());
        Ok(found.into_iter().map(|(name, _)| name).filter(|name| *name != "HOME").collect())
    }

    /// The options with all that a hook in this place has to be told.
    pub(super) fn filled(
        mut self,
        context: &Context,
        place: &Configuration,
    ) -> Result<Self, CommandError> {
        if place.at.managed {
            if self.answering.rules.is_empty() {
                self.answering.rules.push("/etc/countersign/rules.toml".into());
            }
            return Ok(self);
        }
        let file = self.config.clone();
        let settings = self.answering.settings.of_user(context, file.as_deref())?;
        let of_user = settings.directories()?.config().join("rules.toml");
        if self.answering.rules.is_empty() && of_user.exists() {
            self.answering.rules.push(of_user);
        }
        self.answering.settings = match place.at.project {
            true => settings.without_defaults(),
            false => settings,
        };
        Ok(self)
    }

    /// An error where the client has no question of its own that a hook can ask for.
    pub(super) fn check_asking(&self, client: Client) -> Result<(), CommandError> {
        match self.asks_in() {
            Where::Client | Where::Edits if !client.asks() => {
                let asking = Client::ALL.into_iter().filter(|it| it.asks()).map(Client::name);
                let asking = asking.collect::<Vec<_>>().join(" and ");
                Err(CommandError::Usage(format!(
                    "`--ask {}` is for {asking}: {client} asks no question that a hook tells it to ask",
                    self.asks_in().name()
                )))
            }
            Where::Client | Where::Edits | Where::Inbox => Ok(()),
        }
    }

    /// These options for a client, with what was not given and follows from a preset: edits of the project's files are
    /// asked about in the client, where it has a question of its own and they are asked about at all.
    pub(super) fn with_preset(mut self, preset: Option<PresetName>, client: Client) -> Self {
        self.answering.preset = preset.or(self.answering.preset);
        if self.answering.preset.is_some() && client.asks() && !self.answering.lets_edits_run() {
            self.answering.ask.get_or_insert(Where::Edits);
        }
        self
    }

    /// Lets edits in the project run unasked, or not.
    pub(super) fn editing(mut self, edits: Option<Edits>) -> Self {
        self.answering.edits = edits.or(self.answering.edits);
        self
    }

    /// Returns `true` if edits in the project run unasked.
    pub(super) fn lets_edits_run(&self) -> bool {
        self.answering.lets_edits_run()
    }

    /// Answers for the client's own rules, too, or leaves them to decide.
    pub(super) fn allowing(mut self, allow: Option<Allow>) -> Self {
        self.answering.allow = allow.unwrap_or(self.answering.allow);
        self
    }

    /// The place where a person is asked; the inbox unless the options say otherwise.
    pub(super) fn asks_in(&self) -> Where {
        self.answering.asks_in()
    }

    pub(super) fn preset(&self) -> Option<PresetName> {
        self.answering.preset
    }

    /// True if an allowed call is left to the client's own rules.
    pub(super) fn leaves_allowed_calls(&self) -> bool {
        self.answering.allow == Allow::Silent
    }

    /// The state directory of the hook.
    pub(super) fn state(&self) -> Result<PathBuf, CommandError> {
        Ok(self.answering.settings.directories()?.state().to_owned())
    }

    /// The places of the hook that lie in a project, each in words.
    pub(super) fn places_in(
        &self,
        project: &Path,
        home: &Path,
    ) -> Result<Vec<String>, CommandError> {
        let is_in_project = in_project(project, home);
        let within = self.places()?.into_iter().filter(|(_, place)| is_in_project(place));
        let named =
            within.map(|(what, place)| format!("{what} {} lies in the project", place.display()));
        Ok(named.collect())
    }

    /// The places of the hook, for people.
    pub(super) fn shown_places(&self) -> Result<String, CommandError> {
        let named =
            self.places()?.into_iter().map(|(what, place)| format!("{what} {}", place.display()));
        Ok(named.collect::<Vec<_>>().join(", "))
    }

    fn places(&self) -> Result<Vec<(&'static str, PathBuf)>, CommandError> {
        let settings = &self.answering.settings;
        let directories = settings.directories()?;
        let config = Config::of_file(&directories, self.config.as_deref())?;
        let mut places = vec![
            ("the configuration in", directories.config().to_owned()),
            ("the state in", directories.state().to_owned()),
        ];
        if let StoreUrl::Sqlite(file) = config.store_url(&directories, settings.store()?.as_ref()) {
            places.push(("the store in", file));
        }
        places.extend(self.config.iter().map(|file| ("the configuration file", file.clone())));
        places.extend(config.audit_key_file.map(|file| ("the key of the log in", file)));
        Ok(places)
    }

    /// The options of the installed entry, behind the program and the words `hook CLIENT`; none where there is no entry. `None`
    /// where they are not those of a hook.
    pub(super) fn installed(installation: &Installation) -> Option<Self> {
        let words = installation.installed_command().ok().flatten().unwrap_or_default();
        Self::of_entry(words.get(3..).unwrap_or_default()).ok()
    }

    /// The options that an entry has, behind the words `hook CLIENT`.
    pub(super) fn of_entry(words: &[String]) -> Result<Self, String> {
        Self::try_parse_from(words).map_err(|error| error.to_string())
    }

    /// The rules of a hook that is installed. Rules that cannot be used would deny every call, so they
    /// are an error here.
    pub(super) fn check(&self, place: &Configuration) -> Result<Option<Rules>, CommandError> {
        self.rules(place).map_err(|error| match error {
            CommandError::Store(problem) => {
                CommandError::Store(format!("nothing was installed, as {problem}"))
            }
            other @ CommandError::Usage(_) => other,
        })
    }

    /// The rules that the options name, or else those of the user, if there are any. Rules that are
    /// found for the first time are accepted by that.
    pub(super) fn rules(&self, place: &Configuration) -> Result<Option<Rules>, CommandError> {
        let directories = self.answering.settings.directories()?;
        let config = Config::of_file(&directories, self.config.as_deref())?;
        let root = absolute(self.answering.root.as_deref().unwrap_or(Path::new(".")))?;
        let root = Path::new(&root);
        if !root.is_dir() {
            let problem = format!("`{}` is no directory", root.display());
            return Err(CommandError::Usage(problem));
        }
        let counts = Ledger::new(MemoryStore::new());
        let files: Vec<_> = self.answering.rules.iter().map(|file| place.below(file)).collect();
        let (preset, edits) = (self.answering.preset, self.answering.lets_edits_run());
        // The rules of an image are none of the user who builds it.
        let are_recorded = !place.at.managed;
        let sources = RuleSources { files: &files, preset, edits, own_files: &[], are_recorded };
        let loaded = rule_sources::load(sources, (&config, None), &directories, root, &[], counts);
        loaded.map_err(|problem| CommandError::Store(format!("the rules do not load: {problem}")))
    }

    /// The options as words, with absolute paths.
    pub(super) fn into_words(self) -> Result<Vec<String>, CommandError> {
        let Answering {
            rules,
            preset,
            edits,
            root,
            settings,
            limit: _,
            wait,
            allow,
            ask,
            event,
            shell: _,
        } = self.answering;
        let mut words = settings.into_words()?;
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for file in rules {
            add("--rules", absolute(&file)?);
        }
        if let Some(preset) = preset {
            add("--preset", preset.name().to_owned());
        }
        if let Some(edits) = edits.filter(|it| *it != Edits::default()) {
            add("--edits", edits.name().to_owned());
        }
        if let Some(root) = root {
            add("--root", absolute(&root)?);
        }
        if let Some(wait) = wait {
            add("--wait", wait.as_secs_f64().to_string());
        }
        if allow != Allow::default()
            && let Some(value) = allow.to_possible_value()
        {
            add("--allow", value.get_name().to_owned());
        }
        if let Some(ask) = ask.filter(|ask| *ask != Where::default()) {
            add("--ask", ask.name().to_owned());
        }
        if let Some(event) = event {
            add("--event", event);
        }
        if let Some(config) = self.config {
            add("--config", absolute(&config)?);
        }
        Ok(words)
    }
}
