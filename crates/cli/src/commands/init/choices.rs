//! The choices of the person. We take each from the options of the command, or else ask on the terminal, or else
//! keep what is there.

use std::fs;
use std::path::PathBuf;

use countersign_cli::hook::Client;

use super::cli::{ChosenPreset, InitArgs, Switch};
use super::found::InitFindings;
use crate::Context;
use crate::hook::install::{EDITING, granting};
use crate::hook::options::{Allow, Edits};
use crate::output::CommandError;
use crate::paths::shown;
use crate::preset_name::PresetName;
use crate::terminal;

/// All that `init` has to know.
pub(super) struct Choices {
    pub(super) clients: Vec<Client>,
    pub(super) rules: RulesChoice,
    /// `true` if a preset was chosen now, or none.
    pub(super) names_preset: bool,
    /// The choice about edits in the project, where it was made now.
    pub(super) edits: Option<Edits>,
    /// The user's file of rules, where there is one.
    pub(super) file: Option<OwnRules>,
    pub(super) allow: Option<Allow>,
    pub(super) has_journal: bool,
    pub(super) has_inbox: bool,
    pub(super) guards: bool,
}

/// The rules that decide.
pub(super) enum RulesChoice {
    /// The file is written, with this preset.
    Written(PresetName),
    /// The file of the user stays, and the entries name this preset beside it.
    Kept(Option<PresetName>),
    /// There are no rules.
    None,
}

impl Choices {
    /// Returns `true` if edits of the project's files run unasked.
    pub(super) fn lets_edits_run(&self) -> bool {
        self.edits.or_else(|| self.file.as_ref()?.edits()) == Some(Edits::Workspace)
    }

    pub(super) fn made(
        args: &InitArgs,
        found: &InitFindings,
        context: &Context,
    ) -> Result<Self, CommandError> {
        let asks = !args.yes && terminal::is_there();
        if asks {
            println!("{}\n", greeting(found, context));
        }
        let clients = clients(found, asks)?;
        let file = OwnRules::read(context)?;
        // Rules are for agents: in front of a server a guard asks about each call.
        let rules = match clients.is_empty() && args.preset.is_none() {
            true => RulesChoice::None,
            false => rules(args, asks, file.as_ref())?,
        };
        let edits_of_file = file.as_ref().and_then(OwnRules::edits);
        if (args.edits, edits_of_file) == (Some(Edits::Ask), Some(Edits::Workspace)) {
            let path = shown(&rules_file(context), context);
            return Err(CommandError::Usage(format!(
                "`{path}` says `edits = \"workspace\"`, which counts for every agent: write `edits = \"ask\"` there"
            )));
        }
        let edits = edits(args, asks, &rules, file.as_ref())?;
        let is_switched = |switch: Option<Switch>| switch.map(|it| it == Switch::On);
        let allow = match args.allow {
            None if asks => allow(&clients)?,
            given => given,
        };
        let guards = match is_switched(args.guard) {
            Some(on) => on,
            None if asks && found.mcp.iter().any(|it| !it.open.is_empty()) => {
                terminal::yes_or_no(&guard(found))?.unwrap_or_default()
            }
            None => false,
        };
        // Where nothing is protected, there is nothing for a journal, and nothing to answer.
        let asks = asks && (guards || !clients.is_empty());
        let asked = |given: Option<Switch>, is_now: bool, question: &str| match is_switched(given) {
            Some(on) => Ok(on),
            None if is_now || !asks => Ok(is_now),
            None => terminal::yes_or_no(question).map(Option::unwrap_or_default),
        };
        Ok(Self {
            allow,
            has_journal: asked(args.journal, context.config.journal.enabled, JOURNAL)?,
            has_inbox: asked(args.inbox, context.config.inbox.listen.is_some(), INBOX)?,
            guards,
            names_preset: args.preset.is_some(),
            clients,
            rules,
            edits,
            file,
        })
    }
}

const JOURNAL: &str = "\
Keep a journal of decisions for 30 days? It has the arguments of calls but for secrets, is readable by you alone, and later \
`countersign rules propose` finds in it which rules would save you questions";

const INBOX: &str = "\
Do you want to answer on a page in the browser, too? Then it gets the address http://127.0.0.1:8788/, which agents are told";

fn greeting(found: &InitFindings, context: &Context) -> String {
    let agents: Vec<_> = found.agents.iter().map(|it| it.client.title()).collect();
    let mut text = "Countersign decides about each tool call of your coding agents, by your rules, and asks you about the rest. \
                    Nothing is changed before you have seen it and said yes."
        .to_owned();
    if !agents.is_empty() {
        text += &format!("\n\nFound: {}", agents.join(", "));
    }
    for file in &found.mcp {
        let (path, servers) = (shown(&file.path, context), file.open.join(", "));
        text += &match file.closed {
            Some(why) => format!(
                "\nFound: MCP servers of {} in {path}, which {why}: `countersign guard --help` says what to write there",
                file.title
            ),
            None => format!("\nFound: MCP servers of {} in {path}: {servers}", file.title),
        };
    }
    text
}

/// The agents that get the hook. One that was never tested has to be named.
fn clients(found: &InitFindings, asks: bool) -> Result<Vec<Client>, CommandError> {
    let mut chosen = Vec::new();
    for agent in &found.agents {
        let client = agent.client;
        let is_wanted = match (agent.is_named, asks, client.tested_version()) {
            (true, ..) => true,
            (false, false, tested) => tested.is_some(),
            (false, true, Some(_)) => {
                terminal::yes_or_no(&format!("Protect {}?", client.title()))?.unwrap_or_default()
            }
            (false, true, None) => {
                let question = format!(
                    "Protect {}? It was not tested: what is known of it comes from its documentation",
                    client.title()
                );
                terminal::yes_or_no(&question)?.unwrap_or_default()
            }
        };
        if is_wanted {
            chosen.push(client);
        }
    }
    Ok(chosen)
}

/// The file of the user's rules.
pub(super) fn rules_file(context: &Context) -> PathBuf {
    context.directories.config().join("rules.toml")
}

/// The user's file of rules, as it is.
pub(super) struct OwnRules(toml::Table);

impl OwnRules {
    fn read(context: &Context) -> Result<Option<Self>, CommandError> {
        let file = rules_file(context);
        match fs::read_to_string(&file) {
            // A file that does not load is said with its line when the entry is planned.
            Ok(text) => Ok(Some(Self(text.parse().unwrap_or_default()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CommandError::Store(format!("{}: {error}", file.display()))),
        }
    }

    pub(super) fn preset(&self) -> Option<&str> {
        self.0.get("preset")?.as_str()
    }

    pub(super) fn edits(&self) -> Option<Edits> {
        let name = self.0.get("edits")?.as_str()?;
        [Edits::Ask, Edits::Workspace].into_iter().find(|it| it.name() == name)
    }
}

fn rules(
    args: &InitArgs,
    asks: bool,
    file: Option<&OwnRules>,
) -> Result<RulesChoice, CommandError> {
    let Some(file) = file else {
        return match args.preset {
            Some(preset) => Ok(written(preset)),
            None if asks => {
                println!("{PRESETS}");
                let name = terminal::choice("Preset", &["developer", "reader", "none"])?;
                Ok(written(match name {
                    "developer" => ChosenPreset::Developer,
                    "reader" => ChosenPreset::Reader,
                    _ => ChosenPreset::None,
                }))
            }
            None => Err(CommandError::Usage(
                "there are no rules yet: name `--preset developer`, `--preset reader` or `--preset none`; \
                 `countersign init --help` says what they allow"
                    .to_owned(),
            )),
        };
    };
    let named = args.preset.and_then(named);
    Ok(RulesChoice::Kept(named.filter(|preset| file.preset() != Some(preset.name()))))
}

/// Asks once whether edits in the project run unasked, where a preset decides and nothing says it yet.
fn edits(
    args: &InitArgs,
    asks: bool,
    rules: &RulesChoice,
    file: Option<&OwnRules>,
) -> Result<Option<Edits>, CommandError> {
    let has_preset = match rules {
        RulesChoice::Written(_) => true,
        RulesChoice::Kept(named) => {
            let of_file = file.is_some_and(|it| it.preset().is_some());
            file.and_then(OwnRules::edits).is_none() && (named.is_some() || of_file)
        }
        RulesChoice::None => false,
    };
    if args.edits.is_some() || !asks || !has_preset {
        return Ok(args.edits);
    }
    let yes = terminal::yes_or_no(EDITING)?;
    Ok(yes.map(|yes| if yes { Edits::Workspace } else { Edits::Ask }))
}

const PRESETS: &str = "\
You have no rules yet. A preset comes with the program, and your own rules count beside it:
  developer  reading, building, testing and formatting the project runs unasked; edits, and what leaves the project, are asked about
  reader     reading in the project runs unasked
  none       every call is asked about";

fn named(preset: ChosenPreset) -> Option<PresetName> {
    match preset {
        ChosenPreset::Developer => Some(PresetName::Developer),
        ChosenPreset::Reader => Some(PresetName::Reader),
        ChosenPreset::None => None,
    }
}

fn written(preset: ChosenPreset) -> RulesChoice {
    named(preset).map_or(RulesChoice::None, RulesChoice::Written)
}

/// Asks once for all agents that have such an answer.
fn allow(clients: &[Client]) -> Result<Option<Allow>, CommandError> {
    let with: Vec<_> = clients.iter().filter(|it| it.takes_explicit_allow()).collect();
    let Some(first) = with.first() else { return Ok(None) };
    let question = match with.as_slice() {
        [_] => granting(**first),
        _ => {
            let all: Vec<_> = with.iter().map(|it| it.title()).collect();
            format!(
                "May a call that the rules allow run without a question of {}? Otherwise their own rules may still ask",
                all.join(" or ")
            )
        }
    };
    let yes = terminal::yes_or_no(&question)?;
    Ok(yes.map(|yes| if yes { Allow::Grant } else { Allow::Silent }))
}

fn guard(found: &InitFindings) -> String {
    let with = found.mcp.iter().filter(|it| !it.open.is_empty());
    let titles: Vec<_> = with.map(|it| it.title).collect();
    format!(
        "Put a guard in front of the MCP servers of {}? Each call is asked about then, and the tools have to be accepted once",
        titles.join(" and ")
    )
}
