//! `countersign init`: from an installed program to protected coding agents, and back.
//!
//! Each step is a command of its own as well: rules are a file, `hook install` writes the entry of an agent, and the
//! configuration is a file. This module leads from one to the next. It looks for agents, asks the person, shows what would
//! change, and keeps a record by which `--undo` takes everything back.
//!
//! | file | contents |
//! |---|---|
//! | `found` | the agents and MCP clients of this user |
//! | `servers` | MCP servers in the configuration of their clients, and the guard in front of them |
//! | `cli` | the command line |
//! | `choices` | what the person wants, by options or by questions |
//! | `steps` | the changes that follow, as texts that can be shown before anything is written |
//! | `init_record` | what was changed, and the files as they were before |
//! | `undo` | the way back |
//! | `stays` | what is still there after the way back |

mod choices;
pub(crate) mod cli;
mod found;
mod init_record;
mod servers;
mod stays;
mod steps;
mod undo;

use countersign_cli::hook::Client;
use serde_json::json;

use crate::Context;
use crate::accepted;
use crate::hook::search_path::open_folders;
use crate::output::{CommandError, CommandOutput};
use crate::terminal;
use choices::Choices;
use cli::InitArgs;
use found::InitFindings;
use init_record::InitRecord;
use steps::{InitStep, PlannedSteps, UnmadeStep};

impl InitArgs {
    pub(crate) async fn run(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        if self.undo {
            return undo::run(context);
        }
        if !self.yes && !self.dry_run && !terminal::is_there() {
            let problem = "`init` asks on a terminal: run it by hand, or with `--yes` and the options that you want";
            return Err(CommandError::Usage(problem.to_owned()));
        }
        let found = InitFindings::look(context, &self.client);
        if found.agents.is_empty() && found.mcp.is_empty() {
            return Ok(nothing_found());
        }
        let choices = Choices::made(self, &found, context)?;
        let planned = steps::planned(&choices, &found, context)?;
        let PlannedSteps { steps, left_out } = &planned;
        if choices.clients.is_empty() && !choices.guards && steps.is_empty() {
            return Ok(nothing_chosen(&found));
        }
        if self.dry_run {
            let text = differences(steps, context);
            let text = if text.is_empty() { "nothing would be changed".to_owned() } else { text };
            return Ok(planned.output(vec![text]));
        }
        if steps.iter().all(|step| !step.changes()) {
            let said = match left_out.is_empty() {
                true => "Everything is as you have chosen already.",
                false => "Everything else is as you have chosen already.",
            };
            return Ok(planned.output(vec![said.to_owned(), next(steps, context)]));
        }
        if !self.yes && !Self::agreed(&planned, context)? {
            return Err(CommandError::Usage("nothing was changed".to_owned()));
        }
        let mut record = InitRecord::read(context)?;
        for step in steps.iter().filter(|step| step.changes()) {
            step.make(&mut record, context)?;
        }
        // `asks review` waits for the first ask then, in place of finding no store.
        context.config.open_store(&context.directories, None).await?;
        let mut text: Vec<_> = steps.iter().map(|step| step.done(context)).collect();
        text.push(match choices.clients.is_empty() && !choices.guards {
            true => format!("No agent and no server was chosen. {}", ways(&found)),
            false => next(steps, context),
        });
        Ok(planned.output(text))
    }

    fn agreed(planned: &PlannedSteps, context: &Context) -> Result<bool, CommandError> {
        let steps = &planned.steps;
        let mut text: String =
            planned.left_out.iter().map(|it| format!("\n{}", it.text())).collect();
        text += "\nThese files would be changed:\n";
        for step in steps.iter().filter(|step| step.changes()) {
            text += &format!("\n{}\n", step.summary(context));
        }
        text +=
            "\nThe files as they are now are kept, and `countersign init --undo` puts them back.";
        loop {
            let answer = terminal::asked(&format!(
                "{text}\nMake these changes? (y/n, d shows the differences):"
            ))?;
            match answer.to_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                "d" => text = differences(steps, context),
                _ => text = String::new(),
            }
        }
    }
}

fn nothing_found() -> CommandOutput {
    let known: Vec<_> = Client::ALL.iter().map(|it| format!("{} (`{it}`)", it.title())).collect();
    let text = format!(
        "No coding agent was found: neither its program nor its settings. Known are {}. `countersign init --client CLIENT` \
         configures one that is somewhere else, and `countersign guard --help` says how an MCP server is guarded",
        known.join(", ")
    );
    CommandOutput::new(3, json!({"found": []})).for_people(text)
}

/// Says how what was found is protected.
fn ways(found: &InitFindings) -> String {
    let mut ways: Vec<String> = Vec::new();
    for agent in &found.agents {
        let client = agent.client;
        ways.push(format!("`countersign init --client {client}` protects {}", client.title()));
    }
    let servers: Vec<_> = found.mcp.iter().map(|it| it.title).collect();
    if !servers.is_empty() {
        let servers = servers.join(" and ");
        let way = format!(
            "`countersign init --guard on` puts a guard in front of the MCP servers of {servers}"
        );
        ways.push(way);
    }
    ways.join("; ")
}

fn nothing_chosen(found: &InitFindings) -> CommandOutput {
    let text = format!("Nothing was chosen, so nothing was changed. {}", ways(found));
    CommandOutput::of(3, Vec::new()).for_people(text)
}

impl PlannedSteps {
    /// The result, with what was left out below the text. The status is 3 where there is such a thing.
    fn output(&self, text: Vec<String>) -> CommandOutput {
        let lines = self.steps.iter().map(InitStep::line);
        let lines = lines.chain(self.left_out.iter().map(UnmadeStep::line)).collect();
        let text = text.into_iter().chain(self.left_out.iter().map(UnmadeStep::text));
        let text: Vec<_> = text.filter(|it| !it.is_empty()).collect();
        let status = if self.left_out.is_empty() { 0 } else { 3 };
        CommandOutput::of(status, lines).for_people(text.join("\n"))
    }
}

fn differences(steps: &[InitStep], context: &Context) -> String {
    let changing = steps.iter().filter(|step| step.changes());
    changing.map(|step| step.difference(context)).collect::<Vec<_>>().join("\n\n")
}

/// The steps that are left to the person.
fn next(steps: &[InitStep], context: &Context) -> String {
    let hooks: Vec<_> = steps.iter().filter_map(InitStep::hook).collect();
    let mut text = String::new();
    for (hook, changed) in &hooks {
        text += &format!("\n{}: {}", hook.client().title(), hook.next(*changed, context));
    }
    let inbox = context.config.inbox.listen.is_some() || steps.iter().any(InitStep::has_inbox);
    let inbox = if inbox {
        "`countersign inbox` (a page)"
    } else {
        "`countersign inbox` (a page, once it runs)"
    };
    text += &format!(
        "\n\nA call that is asked about waits for you: `countersign asks review` (on a terminal) or {inbox}."
    );
    if let Some((hook, _)) = hooks.first() {
        text += &format!(
            "\n`countersign hook doctor {} --live` proves that the agent obeys.",
            hook.client()
        );
    }
    if let Some(open) = open_folders().filter(|_| !hooks.is_empty()) {
        text += &format!("\nTo do: {open}.");
    }
    let to_accept: Vec<_> = steps.iter().flat_map(InitStep::to_accept).cloned().collect();
    if !to_accept.is_empty() {
        text += &format!(
            "\nThe tools of a guarded server have to be accepted once. This shows them, and writes rules that you can change:\n  {}\n\
             Then start the client again.",
            to_accept.join("\n  ")
        );
    }
    if accepted::may_allow_more(
        &context.directories,
        &context.config,
        &choices::rules_file(context),
    ) {
        text += "\nYour rules may allow more than those before, so the stricter of both decides until you run `countersign rules \
                 accept`.";
    }
    text.trim_start().to_owned()
}
