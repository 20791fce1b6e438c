//! `countersign pins`: the tools of guarded servers, which a person accepts.
//!
//! They are accepted by the id of the ask that was shown. Another set of tools has another ask, so what is accepted is
//! what the person has seen, also where the server has changed its tools meanwhile.

mod text;

use clap::{Args, Subcommand};
use countersign::config::StoreUrl;
use countersign::ledger::{Decided, Ledger};
use countersign::mcp::{ACCEPT_TOOLS, Proposal};
use serde_json::{Value, json};

use crate::Context;
use crate::output::{CommandError, CommandOutput};

/// Show and accept the tools of guarded MCP servers
#[derive(Args)]
#[command(
    after_help = "Exit statuses: 0 done; 1 the store cannot be used; 2 bad usage; 3 this set is not proposed any more, or another person has decided; 7 nothing is proposed."
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
    /// Accept the tools of a server, exactly as they were shown
    Accept {
        /// The id of the ask, which `list` and `show` print
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
        let ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        let proposals = Proposal::list(&ledger).await?;
        match self.command {
            PinsCommand::List => {
                let lines = proposals.iter().map(short).collect();
                Ok(CommandOutput::of(0, lines).for_terminals(text::list(&proposals)))
            }
            PinsCommand::Show { server } => match named(&proposals, &server) {
                found if found.is_empty() => Ok(CommandOutput::new(
                    7,
                    json!({"result": "nothing_proposed", "server": server}),
                )),
                found => {
                    let text = text::shown(&found);
                    let lines = found.into_iter().map(whole).collect();
                    Ok(CommandOutput::of(0, lines).for_terminals(text))
                }
            },
            PinsCommand::Accept { ask, all: _, who } => {
                let who = who.unwrap_or_else(|| context.config.principal());
                let Some(ask) = ask else {
                    return accept(&ledger, &proposals.iter().collect::<Vec<_>>(), &who).await;
                };
                match proposals.iter().find(|it| it.id() == ask) {
                    Some(proposal) => accept(&ledger, &[proposal], &who).await,
                    None => not_proposed(&ledger, &proposals, &ask).await,
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
) -> Result<CommandOutput, CommandError> {
    if proposals.iter().any(|it| it.server() == ask) {
        return Err(CommandError::Usage(format!(
            "`{ask}` is the name of a server, whose tools may have changed since they were shown. Give the ask that \
             `countersign pins show {ask}` prints"
        )));
    }
    let record = ledger.get(ask).await?.filter(|record| record.ask.tool() == ACCEPT_TOOLS);
    let Some(record) = record else {
        return Ok(CommandOutput::new(7, json!({"result": "nothing_proposed", "ask": ask})));
    };
    let server = record.ask.args().str("server").unwrap_or_default();
    let now = proposals.iter().find(|it| it.server() == server).map(Proposal::id);
    let line = json!({"result": "not_proposed_any_more", "ask": ask, "state": record.state, "server": server, "proposed_now": now});
    Ok(CommandOutput::new(3, line))
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
