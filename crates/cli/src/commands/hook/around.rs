//! Checks of what is around a hook: the project, other hooks, the environment and the places that its entry names.

use std::path::PathBuf;

use countersign::show::escape;
use countersign_cli::hook::{Client, Environment, Installation, ProjectSettings};

use super::install::Configuration;
use super::options::Options;
use crate::Context;
use crate::findings::Finding;
use crate::output::CommandError;

/// Checks that no file of the project acts before the hook, or switches it off.
pub(super) fn project(place: &Configuration, context: &Context) -> Result<Finding, CommandError> {
    let directory = here()?;
    let home = context.directories.home();
    let settings = ProjectSettings::new(place.client, &directory, home).managed(place.at.managed);
    let (problems, unknown) = (settings.problems(), settings.unknown());
    Ok(match (problems.is_empty(), unknown.is_empty()) {
        (true, true) => {
            let found = format!("no file in {} acts before the hook", directory.display());
            Finding("project", Some(true), found)
        }
        (true, false) => Finding("project", None, unknown.join("; ")),
        (false, _) => Finding("project", Some(false), [problems, unknown].concat().join("; ")),
    })
}

/// Lists the programs that the client runs for the project without a call.
pub(super) fn by_itself(client: Client, context: &Context) -> Result<Finding, CommandError> {
    let settings = ProjectSettings::new(client, &here()?, context.directories.home());
    let runs = settings.by_itself();
    let servers: Vec<_> = settings.servers().into_iter().map(|(name, _)| escape(&name)).collect();
    Ok(match (runs.is_empty(), servers.is_empty()) {
        (true, true) => {
            let found = "no file of the project runs a program without a call";
            Finding("by itself", Some(true), found.to_owned())
        }
        (true, false) => {
            let found = format!(
                "{client} starts the MCP servers of the project without asking this hook: {}",
                servers.join(", ")
            );
            Finding("by itself", None, found)
        }
        (false, _) => {
            let found = format!(
                "{}: {client} runs it without a call, so that no hook is asked, and it may do what you may",
                runs.join(", ")
            );
            Finding("by itself", Some(false), found)
        }
    })
}

/// The MCP servers of the project whose tools the rules allow by the name of the server.
pub(super) fn servers(
    installation: &Installation,
    place: &Configuration,
    context: &Context,
) -> Result<Option<Finding>, CommandError> {
    let settings = ProjectSettings::new(place.client, &here()?, context.directories.home());
    let servers = settings.servers();
    if servers.is_empty() {
        return Ok(None);
    }
    let options = Options::installed(installation);
    let rules = options.and_then(|options| options.rules(place).ok().flatten());
    let allowed = servers.iter().filter_map(|(name, file)| {
        let rules = rules.as_ref()?.allowing_server(name);
        let rule = rules.first()?;
        Some(format!("{rule} allows tools of `{}`, which {} names", escape(name), file.display()))
    });
    let allowed: Vec<_> = allowed.collect();
    Ok(Some(match allowed.is_empty() {
        true => {
            let found = "no rule allows a tool of the project's MCP servers by name";
            Finding("servers", Some(true), found.to_owned())
        }
        false => {
            let found = format!(
                "{}: rules know a server by its name, and the project decides which program has it",
                allowed.join("; ")
            );
            Finding("servers", Some(false), found)
        }
    }))
}

/// Checks that the entry names no place within the project, and those of the account.
pub(super) fn places(
    installation: &Installation,
    context: &Context,
) -> Result<Finding, CommandError> {
    let Some(options) = Options::installed(installation) else {
        return Ok(Finding("places", None, "the entry was written by hand".to_owned()));
    };
    let here = here()?;
    let within = options.places_in(&here, context.directories.home());
    let found = within.and_then(|within| Ok((within, options.shown_places()?)));
    Ok(match found {
        Ok((within, places)) if within.is_empty() => Finding("places", Some(true), places),
        Ok((within, _)) => {
            let found = format!("{}: the tools of the project could change it", within.join("; "));
            Finding("places", Some(false), found)
        }
        Err(CommandError::Usage(problem) | CommandError::Store(problem)) => {
            Finding("places", Some(false), problem)
        }
    })
}

/// Finds the variables of the environment here that change what commands do.
pub(super) fn environment(
    installation: &Installation,
    client: Client,
    context: &Context,
) -> Finding {
    let options = Options::installed(installation);
    let state = options.and_then(|options| options.state().ok());
    let state = state.unwrap_or_else(|| context.directories.state().to_owned());
    let now = Environment::of_process(context.directories.home());
    let named = |names: &[&str]| {
        let names = names.iter().map(|name| format!("`{}`", name.escape_debug()));
        names.collect::<Vec<_>>().join(", ")
    };
    match now.clone().without_recorded(&Environment::record_in(&state, client)) {
        Ok(new) if new.names().next().is_none() => {
            let found = match now.names().next() {
                None => "no variable changes what commands do".to_owned(),
                Some(_) => {
                    let names: Vec<_> = now.names().collect();
                    format!("{} were there at the installation, and ask nothing", named(&names))
                }
            };
            Finding("environment", Some(true), found)
        }
        Ok(new) => {
            let (of_folder, added): (Vec<_>, Vec<_>) =
                new.names().partition(|name| new.lets_folders_load(name));
            let mut found = Vec::new();
            if !added.is_empty() {
                found.push(format!(
                    "{} may change what commands do, and were not there at the installation: calls that they concern are \
                     asked about, until you install the hook again",
                    named(&added)
                ));
            }
            if !of_folder.is_empty() {
                found.push(format!(
                    "{} has an empty or relative folder, which stands for the one that a program works in: calls in a folder \
                     with libraries are asked about, until you remove it",
                    named(&of_folder)
                ));
            }
            Finding("environment", None, found.join("; "))
        }
        Err(error) => Finding("environment", Some(false), error.to_string()),
    }
}

/// The other hooks that are asked about tool calls, too.
pub(super) fn others(
    installation: &Installation,
    context: &Context,
) -> Result<Finding, CommandError> {
    let others = installation.other_hooks(context.directories.home(), &here()?);
    if others.is_empty() {
        let found = "no other hook before tools in the files of the user and of this project";
        return Ok(Finding("other hooks", Some(true), found.to_owned()));
    }
    let listed: Vec<_> = others
        .iter()
        .map(|it| format!("`{}` in {}", escape(&it.runs), it.file.display()))
        .collect();
    let found = format!(
        "{}: each may change a call that was allowed, answer the client's questions, or give variables to commands; a \
         call that was changed is reported when it has run",
        listed.join("; ")
    );
    Ok(Finding("other hooks", Some(false), found))
}

/// The directory that the command was started in.
pub(super) fn here() -> Result<PathBuf, CommandError> {
    std::env::current_dir().map_err(|error| CommandError::Store(error.to_string()))
}
