//! `countersign guard init`: from a server's command to a client's configuration (rule M7).
//!
//! We start the server, and a person accepts its tools one by one, after seeing all of each. Then we write a file of
//! rules that asks about each tool. A server says itself which of its tools only read. Its word allows nothing (rule M4),
//! so beside such a tool we write the rule that would allow it, behind a `#`.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use countersign::ledger::Decided;
use countersign::show::{self, counted};
use countersign_cli::config::StoreUrl;
use countersign_mcp::{Guard, OfferedTool, ServerParts, ToolStanding};
use serde_json::json;

use super::log::{accepting, log};
use super::places;
use super::server_args::{START_TIMEOUT, ServerArgs};
use crate::Context;
use crate::guard_entries::entries;
use crate::guard_program::GuardProgram;
use crate::mcp_clients::{self, ClientEntry};
use crate::output::{CommandError, CommandOutput, WIDTH};
use crate::paths::{absolute, shown as shown_path};
use crate::pins::text::fields;
use crate::project;
use crate::used_store::{UsedStore, quoted};

/// The end of `--help`.
const AFTER: &str = "\
  countersign guard init --name git -- mcp-server-git

It starts the server, shows each tool with all that the server says about it, and asks whether you accept it. The answers \
are those of `countersign pins`. Then it writes a file of rules in which each tool is asked about, unless the file is there \
already, and prints the entry for the configuration of each client, with the `--wait` that suits it.

Exit statuses: 0 done; 1 the store, a file or the server cannot be used, or nothing was accepted; 2 bad usage.";

/// Accept the tools of a server one by one, write its first rules, and print the entries for clients
#[derive(Args)]
#[command(after_help = AFTER)]
pub(super) struct GuardInit {
    #[command(flatten)]
    server: ServerArgs,
    /// The file of rules to write; by default `guard/NAME.toml` in the configuration directory
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The root of the project, for clients that start servers elsewhere; by default the working directory
    #[arg(long, value_name = "DIRECTORY")]
    project: Option<PathBuf>,
    /// Accept all tools as the server lists them now, without asking: for scripts. All of them are asked about
    #[arg(long)]
    yes: bool,
    /// The person who accepts, recorded as it is given; by default this user
    #[arg(long = "as", value_name = "WHO")]
    who: Option<String>,
}

/// The tools as a person has decided about them.
#[derive(Default)]
struct ChosenTools {
    accepted: Vec<String>,
    denied: Vec<String>,
}

impl GuardInit {
    pub(super) async fn run(&self, context: &Context) -> Result<CommandOutput, CommandError> {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        if !self.yes && !is_terminal {
            let problem = "a person accepts tools, on a terminal: run this command by hand, or with `--yes`, which accepts \
                           all tools as they are now";
            return Err(CommandError::Usage(problem.to_owned()));
        }
        log();
        let url: Option<StoreUrl> = self.server.settings.store()?;
        let project = project::root(self.project.as_deref(), context)?;
        places::refuse_in_project(context, url.as_ref(), &project)?;
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let (name, store) = (self.server.named(), UsedStore::here(context, url.as_ref()));
        let principal = context.config.principal();
        // A client's guard has this name too, so that what is accepted here is accepted there.
        let guard = Guard::new(&*name, self.server.launch(context)?, ledger)
            .principal(&*principal)
            .identified_by_name()
            .accept_hint(accepting(&name, &store));
        let who = self.who.clone().unwrap_or(principal);
        let mut parts = guard.look().await?;
        let chosen = if self.yes { all_open(&parts) } else { chosen(&name, &parts).await? };
        let decided = decide(&mut parts, &chosen, &who).await;
        let tools: Vec<OfferedTool> = parts.tools().to_vec();
        parts.close().await;
        decided?;
        if !tools.iter().any(|tool| tool.standing() == ToolStanding::Accepted) {
            let line = json!({"result": "nothing_accepted", "server": name});
            let text = "No tool is accepted, so nothing was written.";
            return Ok(CommandOutput::new(1, line).for_people(text));
        }
        let file = match &self.rules {
            Some(file) => file.clone(),
            None => places::usual_rules(context, &name),
        };
        let file = PathBuf::from(absolute(&file)?);
        let is_new = write(&file, &rules(&name, &tools, &file))?;
        let settings = self.settings(context, &store)?;
        let program = GuardProgram::of(context)?;
        program.write()?;
        let words = PrintedEntries {
            init: self,
            name: &name,
            file: &file,
            project: &project,
            settings: &settings,
            program: &program,
            started: started_by(&name, context),
        };
        Ok(words.output(&tools, is_new, &store))
    }
}

impl GuardInit {
    /// The options of the guard, with what was found here: a guard takes nothing from the environment.
    fn settings(&self, context: &Context, store: &UsedStore) -> Result<Vec<String>, CommandError> {
        let mut settings = self.server.settings.clone();
        // The name has no password.
        let is_named = settings.store.is_some() || std::env::var_os("COUNTERSIGN_STORE").is_some();
        settings.store = is_named.then(|| store.name().to_owned());
        settings.for_guard(context)
    }
}

/// All tools that are not accepted as they are, for a script. What a person has denied stays so.
fn all_open(parts: &ServerParts) -> ChosenTools {
    let open =
        |it: &&OfferedTool| matches!(it.standing(), ToolStanding::New | ToolStanding::Changed);
    let accepted = parts.tools().iter().filter(open).map(|it| it.name().to_owned()).collect();
    ChosenTools { accepted, denied: Vec::new() }
}

async fn decide(
    parts: &mut ServerParts,
    chosen: &ChosenTools,
    who: &str,
) -> Result<(), CommandError> {
    fn names(names: &[String]) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }
    let denied = match chosen.denied.is_empty() {
        true => None,
        false => parts.deny(&names(&chosen.denied), who).await?,
    };
    let accepted = match chosen.accepted.is_empty() {
        true => None,
        false => parts.accept(&names(&chosen.accepted), who).await?,
    };
    let lost = |it: &Decided| !matches!(it, Decided::Won { .. });
    match [denied, accepted].iter().flatten().any(lost) {
        true => Err(CommandError::Store(
            "another person has decided about these tools meanwhile: run the command again".into(),
        )),
        false => Ok(()),
    }
}

/// Shows the tools that are not accepted, and asks about each.
async fn chosen(name: &str, parts: &ServerParts) -> Result<ChosenTools, CommandError> {
    let failed = |error: io::Error| CommandError::Store(error.to_string());
    let open: Vec<_> =
        parts.tools().iter().filter(|it| it.standing() != ToolStanding::Accepted).collect();
    let itself = parts.itself().await;
    // The server's lines on stderr wait until the person has decided, so that none stands between ours.
    let _held = io::stderr().lock();
    let mut text = format!("The MCP server `{}`\n", show::escape_name(name));
    for (part, told) in &itself {
        text += &format!("  {}\n{}\n", show::escape_name(part), fields(told).join("\n"));
    }
    let accepted = parts.tools().len() - open.len();
    if accepted > 0 {
        text += &format!("Accepted before: {}.\n", counted(accepted, "tool"));
    }
    say(&text).map_err(failed)?;
    if open.is_empty() {
        let again = !itself.is_empty() && agreed("Accept the server as it is now? [y/N] ")?;
        let names = parts.tools().iter().map(|it| it.name().to_owned());
        return Ok(ChosenTools {
            accepted: if again { names.collect() } else { Vec::new() },
            denied: Vec::new(),
        });
    }
    let mut chosen = ChosenTools::default();
    for (at, tool) in open.iter().enumerate() {
        say(&shown(tool, at + 1, open.len())).map_err(failed)?;
        match key()? {
            ToolKey::Accept => chosen.accepted.push(tool.name().to_owned()),
            ToolKey::Deny => chosen.denied.push(tool.name().to_owned()),
            ToolKey::Skip => {}
            ToolKey::AcceptAll => {
                let left = open.iter().skip(at);
                let rest = open.iter().skip(at + 1).enumerate();
                let rest = rest.map(|(n, tool)| shown(tool, at + n + 2, open.len()));
                say(&rest.collect::<String>()).map_err(failed)?;
                if agreed(&format!("Accept all {}? [y/N] ", counted(open.len() - at, "tool")))? {
                    chosen.accepted.extend(left.map(|it| it.name().to_owned()));
                }
                break;
            }
            ToolKey::Quit => break,
        }
    }
    Ok(chosen)
}

/// A tool for a person: its name and the server's description first, and then all that is accepted.
fn shown(tool: &OfferedTool, number: usize, of: usize) -> String {
    let standing = match tool.standing() {
        ToolStanding::Changed => ", changed since it was accepted",
        ToolStanding::Denied => ", denied before",
        ToolStanding::Accepted | ToolStanding::New => "",
    };
    let reads = if tool.is_called_reading() { "; the server says that it only reads" } else { "" };
    let mut lines = vec![
        String::new(),
        format!("{number} of {of}: {}{standing}{reads}", show::escape_name(tool.name())),
    ];
    for line in tool.description().lines() {
        lines.extend(show::wrap("  | ", &show::escape(line), WIDTH));
    }
    let mut rest = tool.definition().clone();
    if let Some(rest) = rest.as_object_mut() {
        rest.retain(|field, _| field != "name" && field != "description");
    }
    lines.extend(fields(&rest));
    lines.join("\n") + "\n"
}

/// The answers about one tool, with the keys that other reviews have.
enum ToolKey {
    Accept,
    AcceptAll,
    Deny,
    Skip,
    Quit,
}

fn key() -> Result<ToolKey, CommandError> {
    loop {
        let line =
            answer("[a] accept  [A] accept all that are left  [d] deny  [s] later  [q] end: ")?;
        match line.as_deref().map(str::trim) {
            Some("a") => return Ok(ToolKey::Accept),
            Some("A") => return Ok(ToolKey::AcceptAll),
            Some("d") => return Ok(ToolKey::Deny),
            Some("s") => return Ok(ToolKey::Skip),
            Some("q") | None => return Ok(ToolKey::Quit),
            Some(_) => {}
        }
    }
}

fn agreed(question: &str) -> Result<bool, CommandError> {
    Ok(answer(question)?.is_some_and(|line| matches!(line.trim(), "y" | "yes")))
}

/// A line of the person at the terminal; `None` at its end.
fn answer(question: &str) -> Result<Option<String>, CommandError> {
    let failed = |error: io::Error| CommandError::Store(error.to_string());
    say(question).map_err(failed)?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok((read > 0).then_some(line))
}

fn say(text: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(text.as_bytes())?;
    err.flush()
}

/// The first rules for a server: each accepted tool is asked about.
fn rules(server: &str, tools: &[OfferedTool], file: &Path) -> String {
    let file = show::escape(&quoted(&file.display().to_string()));
    let mut text = format!(
        "# Rules for the MCP server `{server}`, begun by `countersign guard init`.\n\
         # A tool that no rule is about is asked about. To run one unasked, put `allow` in the place of `ask` in its rule.\n\
         # A guard that runs, or has run, decides by a wider rule once you have accepted it, on a terminal:\n\
         #   countersign rules check --rules {file}\n\
         #   countersign rules accept\n\
         version = 1\n"
    );
    let accepted = || tools.iter().filter(|it| it.standing() == ToolStanding::Accepted);
    for tool in accepted() {
        let (id, pattern) = (json!(tool.name()), json!(format!("mcp:{server}/{}", tool.name())));
        let first = tool.description().lines().map(str::trim).find(|line| !line.is_empty());
        let first: String = show::escape(first.unwrap_or_default()).chars().take(100).collect();
        text += "\n";
        if !first.is_empty() {
            text += &format!("# The server says: {first}\n");
        }
        let (allow, reason) = match tool.is_called_reading() {
            true => (
                format!("# allow = {pattern}\n"),
                "the server says that it only reads, and you have not allowed it yet",
            ),
            false => (String::new(), "the server does not say that it only reads"),
        };
        text +=
            &format!("[[rule]]\nid = {id}\nask = {pattern}\n{allow}reason = {}\n", json!(reason));
    }
    if let Some(tool) = accepted().find(|it| it.is_called_reading()) {
        let call = json!(format!("mcp:{server}/{}: {{}}", tool.name()));
        text += &format!(
            "\n# A rule that allows has a test, which `countersign rules check` runs:\n# [test]\n# allow = [{call}]\n"
        );
    }
    text
}

/// Writes the file, unless there is one. Returns whether it has.
fn write(file: &Path, text: &str) -> Result<bool, CommandError> {
    let failed = |error: io::Error| CommandError::Store(format!("{}: {error}", file.display()));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    match std::fs::File::options().write(true).create_new(true).open(file) {
        Ok(mut new) => new.write_all(text.as_bytes()).map_err(failed).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// The clients of this user that start a guard of this name, each with its file.
fn started_by(name: &str, context: &Context) -> Vec<String> {
    let all = entries(context.directories.home()).found.into_iter();
    let same = all.filter(|entry| entry.name == name);
    same.map(|entry| format!("{} ({})", entry.title, shown_path(&entry.file, context))).collect()
}

/// The entries that are printed at the end.
struct PrintedEntries<'a> {
    init: &'a GuardInit,
    name: &'a str,
    file: &'a Path,
    project: &'a Path,
    /// The options that say where the guard has its store and its directories.
    settings: &'a [String],
    program: &'a GuardProgram,
    /// The clients that start this guard already, each with its file.
    started: Vec<String>,
}

impl PrintedEntries<'_> {
    fn output(&self, tools: &[OfferedTool], is_new: bool, store: &UsedStore) -> CommandOutput {
        let of = |standing| {
            let those = tools.iter().filter(move |tool| tool.standing() == standing);
            those.map(OfferedTool::name).collect::<Vec<_>>()
        };
        let (accepted, denied) = (of(ToolStanding::Accepted), of(ToolStanding::Denied));
        let reading: Vec<_> = tools
            .iter()
            .filter(|it| it.is_called_reading() && it.standing() == ToolStanding::Accepted)
            .map(OfferedTool::name)
            .collect();
        let clients: Vec<_> = mcp_clients::ALL.iter().map(|it| (it, self.entry(it))).collect();
        let file = self.file.display().to_string();
        let entries = clients.iter().map(|(client, entry)| {
            json!({"client": client.name, "file": client.file, "wait": client.wait, "entry": entry})
        });
        let line = json!({
            "server": self.name, "accepted": accepted, "denied": denied, "called_reading": reading, "rules": file,
            "rules_written": is_new, "clients": entries.collect::<Vec<_>>(),
        });
        // The next step stands last, where it is on the screen.
        let mut text = String::new();
        for (client, entry) in &clients {
            let entry = entry.replace('\n', "\n  ");
            text += &format!("{} ({}):\n  {entry}\n\n", client.name, client.file);
        }
        text += &self.decided(tools, is_new, &reading);
        let review = store.command("asks review");
        text += &format!(
            "\nYou answer in a form of your client, or on a terminal: {review}{}",
            store.note()
        );
        CommandOutput::new(0, line).for_people(text)
    }

    /// Tells a person what was decided and written, and what is to do with the entries.
    fn decided(&self, tools: &[OfferedTool], is_new: bool, reading: &[&str]) -> String {
        let number = |standing| tools.iter().filter(|tool| tool.standing() == standing).count();
        let mut text = format!(
            "{} of `{}` accepted, {} denied.\n",
            counted(number(ToolStanding::Accepted), "tool"),
            show::escape_name(self.name),
            number(ToolStanding::Denied)
        );
        let quoted_file = quoted(&self.file.display().to_string());
        text += &match is_new {
            true => format!(
                "Rules were written to {quoted_file}: each call of a tool is asked about.\n"
            ),
            false => format!("The rules in {quoted_file} were there, and stay as they are.\n"),
        };
        if is_new && !reading.is_empty() {
            text += &format!(
                "The server says of {} that they only read. If you believe it of one, put its line `allow` in the place of \
                 the line `ask`, and look at the whole: countersign rules check --rules {quoted_file}\n",
                reading.join(", ")
            );
        }
        text += &match self.started.as_slice() {
            [] => "\nPut the entry of your client, which stands above, into its configuration in place of the server, and start the \
                   client again.\n"
                .to_owned(),
            started => format!(
                "\nA guard of this name is in the configuration of {} already: start the client again. The entries above are for \
                 other clients.\n",
                started.join(" and ")
            ),
        };
        if let Some(why) = self.program.why_copied() {
            text += &format!(
                "This program runs from {why}, so the entries name a copy of it: run this command again after an update.\n"
            );
        }
        text
    }

    /// The entry of a client, with whole paths: clients of a desktop have another `PATH` and another directory.
    fn entry(&self, client: &ClientEntry) -> String {
        client.text(self.name, &self.program.word(), &self.words(client))
    }

    fn words(&self, client: &ClientEntry) -> Vec<String> {
        let server = &self.init.server;
        let mut words: Vec<String> =
            ["guard", "--name", self.name, "--wait"].map(str::to_owned).into();
        words.push(client.wait.to_string());
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("--rules", self.file.display().to_string());
        if client.needs_project || self.init.project.is_some() {
            option("--project", self.project.display().to_string());
        }
        words.extend_from_slice(self.settings);
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(url) = &server.upstream {
            option("--upstream", url.clone());
        }
        if let Some(file) = &server.upstream_header_file {
            let file = absolute(file).unwrap_or_else(|_| file.display().to_string());
            option("--upstream-header-file", file);
        }
        if server.start_timeout != START_TIMEOUT {
            option("--start-timeout", server.start_timeout.as_secs_f64().to_string());
        }
        if let Some((program, args)) = server.command.split_first() {
            let program = match client.needs_project {
                true => in_path(Path::new(program)),
                false => program.to_string_lossy().into_owned(),
            };
            words.extend(["--".to_owned(), program]);
            words.extend(args.iter().map(|word| word.to_string_lossy().into_owned()));
        }
        words
    }
}

/// The whole path of a program that is found by its name.
fn in_path(program: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = match program.components().count() {
        1 => {
            std::env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file())
        }
        _ => std::path::absolute(program).ok(),
    };
    found.as_deref().unwrap_or(program).to_string_lossy().into_owned()
}
