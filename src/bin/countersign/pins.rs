//! `countersign pins`: the tools of guarded servers, which a person accepts.

use clap::{Args, Subcommand};
use countersign::config::StoreUrl;
use countersign::ledger::{Decided, Ledger};
use countersign::mcp::Proposal;
use serde_json::{Value, json};

use crate::Context;
use crate::output::{CommandError, CommandOutput};

/// Show and accept the tools of guarded MCP servers
#[derive(Args)]
#[command(
    after_help = "Exit statuses: 0 done; 1 the store cannot be used; 2 bad usage; 3 another person has decided; 7 nothing is proposed."
)]
pub(crate) struct PinsArgs {
    /// Where the asks are; by default the store of the configuration
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    #[command(subcommand)]
    command: PinsCommand,
}

#[derive(Subcommand)]
enum PinsCommand {
    /// List the servers whose tools have to be accepted
    List,
    /// Show what is new, changed and gone, with the definitions
    Show {
        /// The name of the server, or the id of the ask
        server: String,
    },
    /// Accept the tools of a server, exactly as they are shown
    Accept {
        /// The name of the server, or the id of the ask
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        server: Option<String>,
        /// Accept the tools of all servers
        #[arg(long)]
        all: bool,
        /// The person who accepts; by default this user
        #[arg(long = "as", value_name = "WHO")]
        who: Option<String>,
    },
}

impl PinsArgs {
    pub(crate) async fn run(self, context: &Context) -> Result<CommandOutput, CommandError> {
        let url: Option<StoreUrl> = self.store.as_deref().map(str::parse).transpose()?;
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let proposals = Proposal::list(&ledger).await?;
        match self.command {
            PinsCommand::List => Ok(CommandOutput::of(0, proposals.iter().map(short).collect())),
            PinsCommand::Show { server } => match named(&proposals, &server) {
                found if found.is_empty() => Ok(CommandOutput::new(
                    7,
                    json!({"result": "nothing_proposed", "server": server}),
                )),
                found => Ok(CommandOutput::of(0, found.into_iter().map(whole).collect())),
            },
            PinsCommand::Accept { server, all: _, who } => {
                let who = who.unwrap_or_else(|| context.config.principal());
                let chosen = match &server {
                    Some(server) => named(&proposals, server),
                    None => proposals.iter().collect(),
                };
                accept(&ledger, &chosen, &who).await
            }
        }
    }
}

async fn accept(
    ledger: &Ledger,
    chosen: &[&Proposal],
    who: &str,
) -> Result<CommandOutput, CommandError> {
    if chosen.is_empty() {
        return Ok(CommandOutput::new(7, json!({"result": "nothing_proposed"})));
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
        "added": proposal.added().map(|(name, _)| name).collect::<Vec<_>>(),
        "changed": proposal.changed().map(|(name, _)| name).collect::<Vec<_>>(),
        "removed": proposal.removed().collect::<Vec<_>>(),
    })
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
        "added": map(proposal.added().collect()),
        "changed": map(proposal.changed().collect()),
        "removed": proposal.removed().collect::<Vec<_>>(),
    })
}
