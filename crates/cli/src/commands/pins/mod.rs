//! `countersign pins`: the tools of guarded servers, which a person accepts.
//!
//! A person accepts them by the id of the ask that was shown. Another set of tools has another ask, so the person accepts
//! what they have seen, even if the server has changed its tools meanwhile. A set that was denied stays as it is. So to
//! accept it after all, the name of its server is enough.

pub(crate) mod text;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use countersign::ledger::{Decided, Ledger};
use countersign_cli::config::StoreUrl;
use countersign_mcp::{ACCEPT_TOOLS, Proposal};
use serde_json::{Value, json};

use crate::Context;
use crate::output::{CommandError, CommandOutput};
use crate::used_store::{UsedStore, quoted};

/// Show and accept the tools of guarded MCP servers
#[derive(Args)]
#[command(
    after_help = "Exit statuses: 0 done; 1 the store cannot be used; 2 bad usage; 3 this set is not proposed any more, or another person has decided; 7 nothing is proposed."
)]
pub(crate) struct PinsArgs {
    /// Where the asks are; by default the store of the configuration
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// A file whose bytes are the key of the log; the same for every command over one store
    #[arg(long, value_name = "PATH", global = true)]
    audit_key_file: Option<PathBuf>,
    #[command(subcommand)]
    command: PinsCommand,
}

#[derive(Subcommand)]
enum PinsCommand {
    /// List the servers that propose something new, and those whose last proposal was denied
    List,
    /// Show what is new and changed: tools with their definitions, texts of the server, files that it is started by
    Show {
        /// The name of the server, or the id of the ask
        server: String,
    },
    /// Accept the tools of a server, exactly as they were shown
    Accept {
        /// The id of the ask, which `list` and `show` print; of a denied set also the name of the server
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        ask: Option<String>,
        /// Accept the tools that all servers propose at this moment, shown or not
        #[arg(long)]
        all: bool,
        /// The person who accepts, recorded as it is given; by default this user
        #[arg(long = "as", value_name = "WHO")]
        who: Option<String>,
    },
}

impl PinsArgs {
    pub(crate) async fn run(self, context: &Context) -> Result<CommandOutput, CommandError> {
        let url: Option<StoreUrl> = self.store.as_deref().map(str::parse).transpose()?;
        let config = context.config_with_key(self.audit_key_file);
        let ledger = config.open_existing_store(&context.directories, url.as_ref()).await?;
        let store = UsedStore::here(context, url.as_ref());
        let proposals = Proposal::list(&ledger).await?;
        if let PinsCommand::Accept { ask: None, all: _, who } = self.command {
            let who = who.unwrap_or_else(|| context.config.principal());
            return accept(&ledger, &proposals.iter().collect::<Vec<_>>(), &who, &store).await;
        }
        let denied = Proposal::denied(&ledger).await?;
        let proposals: Vec<Proposal> = proposals.into_iter().chain(denied).collect();
        match self.command {
            PinsCommand::List => {
                let lines = proposals.iter().map(short).collect();
                let text = text::list(&proposals, &store);
                let output = CommandOutput::of(0, lines).for_terminals(&*text);
                Ok(if proposals.is_empty() { output.noting(text) } else { output })
            }
            PinsCommand::Show { server } => match named(&proposals, &server) {
                found if found.is_empty() => {
                    let line = json!({"result": "nothing_proposed", "server": server, "store": store.name()});
                    Ok(nothing_proposed(line, &store))
                }
                found => {
                    let text = text::shown(&found, &store);
                    let lines = found.into_iter().map(whole).collect();
                    Ok(CommandOutput::of(0, lines).for_terminals(text))
                }
            },
            PinsCommand::Accept { ask, all: _, who } => {
                let who = who.unwrap_or_else(|| context.config.principal());
                let ask = ask.unwrap_or_default();
                match named(&proposals, &ask).as_slice() {
                    // The set of a pending proposal may be another one than was shown under this name.
                    [proposal] if proposal.id() == ask || proposal.is_denied() => {
                        accept(&ledger, &[proposal], &who, &store).await
                    }
                    _ => not_proposed(&ledger, &proposals, &ask, &store).await,
                }
            }
        }
    }
}

/// Says why nothing is proposed under this id, and what is instead.
async fn not_proposed(
    ledger: &Ledger,
    proposals: &[Proposal],
    ask: &str,
    store: &UsedStore,
) -> Result<CommandOutput, CommandError> {
    if proposals.iter().any(|it| it.server() == ask) {
        return Err(CommandError::Usage(format!(
            "`{ask}` is the name of a server, whose tools may have changed since they were shown. Give the ask that \
             `{}` prints",
            store.command(&format!("pins show {}", quoted(ask)))
        )));
    }
    let record = ledger.get(ask).await?.filter(|record| record.ask.tool() == ACCEPT_TOOLS);
    let Some(record) = record else {
        let line = json!({"result": "nothing_proposed", "ask": ask, "store": store.name()});
        return Ok(nothing_proposed(line, store));
    };
    let server = record.ask.args().str("server").unwrap_or_default();
    let now = proposals.iter().find(|it| it.server() == server).map(Proposal::id);
    let line = json!({"result": "not_proposed_any_more", "ask": ask, "state": record.state, "server": server, "proposed_now": now});
    Ok(CommandOutput::new(3, line))
}

fn nothing_proposed(line: Value, store: &UsedStore) -> CommandOutput {
    let list = store.command("pins list");
    let note = format!("Nothing of that name has to be accepted. `{list}` lists what has to be.");
    CommandOutput::new(7, line).noting(note)
}

async fn accept(
    ledger: &Ledger,
    chosen: &[&Proposal],
    who: &str,
    store: &UsedStore,
) -> Result<CommandOutput, CommandError> {
    if chosen.is_empty() {
        let line = json!({"result": "nothing_proposed", "store": store.name()});
        return Ok(nothing_proposed(line, store));
    }
    let (mut lines, mut status) = (Vec::new(), 0);
    for proposal in chosen {
        let decided = proposal.accept(ledger, who).await?;
        if !matches!(decided, Decided::Won { .. }) {
            status = 3;
        }
        lines.push(json!({"server": proposal.server(), "ask": proposal.id(), "decided": decided}));
    }
    Ok(CommandOutput::of(status, lines))
}

fn named<'a>(proposals: &'a [Proposal], name: &str) -> Vec<&'a Proposal> {
    proposals.iter().filter(|it| it.server() == name || it.id() == name).collect()
}

fn short(proposal: &Proposal) -> Value {
    json!({
        "server": proposal.server(),
        "ask": proposal.id(),
        "state": state(proposal),
        "added": proposal.added().map(|(name, _)| name).collect::<Vec<_>>(),
        "changed": proposal.changed().map(|(name, _)| name).collect::<Vec<_>>(),
        "removed": proposal.removed().collect::<Vec<_>>(),
        "about": proposal.about().map(|(name, _)| name).collect::<Vec<_>>(),
        "programs": proposal.programs().map(|(name, _)| name).collect::<Vec<_>>(),
    })
}

fn state(proposal: &Proposal) -> &'static str {
    if proposal.is_denied() { "denied" } else { "proposed" }
}

fn whole(proposal: &Proposal) -> Value {
    let map = |parts: Vec<(&str, &Value)>| {
        Value::Object(
            parts.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        )
    };
    json!({
        "server": proposal.server(),
        "ask": proposal.id(),
        "state": state(proposal),
        "added": map(proposal.added().collect()),
        "changed": map(proposal.changed().collect()),
        "removed": proposal.removed().collect::<Vec<_>>(),
        "about": map(proposal.about().collect()),
        "programs": map(proposal.programs().collect()),
    })
}
