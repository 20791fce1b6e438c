//! `countersign grants`: the answers that people have given in advance.
//!
//! Listing shows the standing grants, as these are what still runs without a question. `prune` is for the ones that
//! were made for a task of last month: a grant that nothing uses is a risk without a purpose.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use countersign::config::StoreUrl;
use countersign::error::with_causes;
use countersign::ledger::{Grant, GrantRecord, GrantScope, GrantState, Ledger, RevokedGrant};
use countersign::show;
use serde_json::{Value, json};

use crate::Context;
use crate::output::{CommandError, CommandOutput};

/// The exit statuses, for the end of `--help`.
const STATUSES: &str = "\
Exit statuses: 0 done, also where a grant was revoked before; 1 the store cannot be used, or a row of it is refused; 2 bad \
usage, or a call that cannot be granted; 3 the grant has expired; 6 the ask has another fingerprint; 7 no such grant or ask. \
Times in JSON are milliseconds since 1970.";

/// Grants: calls that a person has approved in advance.
#[derive(Args)]
#[command(after_help = STATUSES)]
pub(crate) struct Grants {
    /// Where the grants are; by default the store of the configuration
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// A file whose bytes are the key of the log; the same for every command over one store
    #[arg(long, value_name = "PATH", global = true)]
    audit_key_file: Option<PathBuf>,
    #[command(subcommand)]
    command: GrantsCommand,
}

#[derive(Subcommand)]
enum GrantsCommand {
    /// List the standing grants, newest first
    List {
        /// Also those that are used up, expired or revoked
        #[arg(long)]
        all: bool,
    },
    /// Make a grant for calls that equal the call of an ask. The ask itself is decided as before
    Make(Make),
    /// Show one grant with the whole rule that it is
    Show { id: String },
    /// Revoke a grant: it answers nothing more, in no process
    Revoke {
        id: String,
        /// Who revokes it; by default the principal of the configuration
        #[arg(long = "as", value_name = "NAME")]
        who: Option<String>,
    },
    /// Record which grants have expired, and revoke those that were not used for a time
    Prune {
        /// Revoke the grants that have answered nothing for this many days
        #[arg(long, value_name = "DAYS")]
        unused_for: Option<u32>,
        /// Who revokes them; by default the principal of the configuration
        #[arg(long = "as", value_name = "NAME")]
        who: Option<String>,
    },
}

#[derive(Args)]
struct Make {
    /// The id of the ask
    ask: String,
    /// The fingerprint of the ask that was shown
    #[arg(long)]
    fingerprint: String,
    /// Where the grant holds: in the session or in the project of the call
    #[arg(long = "in", value_name = "SCOPE")]
    scope: GrantPlace,
    /// How long it is valid: 90s, 30m, 2h, 7d; 12 hours by default
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// How many calls it answers
    #[arg(long)]
    uses: Option<u32>,
    /// Who makes it; by default the principal of the configuration
    #[arg(long = "as", value_name = "NAME")]
    who: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GrantPlace {
    Session,
    Project,
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).unwrap_or_default();
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => 0_u64,
    };
    let all = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    let all = all.filter(|all| (1..=366 * 24 * 3600).contains(all)).map(Duration::from_secs);
    all.ok_or_else(|| "a time is a number with s, m, h or d, of at most a year".to_owned())
}

impl Grants {
    pub(crate) async fn run(
        self: Box<Self>,
        context: &Context,
    ) -> Result<CommandOutput, CommandError> {
        let url: Option<StoreUrl> = self.store.as_deref().map(str::parse).transpose()?;
        let mut ledger = context.config.open_store(&context.directories, url.as_ref()).await?;
        if let Some(path) = &self.audit_key_file {
            ledger = ledger.audit_key(&crate::asks::file(path)?);
        }
        let named = |who: Option<String>| who.unwrap_or_else(|| context.config.principal());
        match self.command {
            GrantsCommand::List { all } => list(&ledger, all).await,
            GrantsCommand::Make(wanted) => make(&ledger, wanted, context.config.principal()).await,
            GrantsCommand::Show { id } => match ledger.grant(&id).await? {
                Some(record) => Ok(shown(&record, ledger.now().await?)),
                None => Ok(unknown()),
            },
            GrantsCommand::Revoke { id, who } => revoke(&ledger, &id, &named(who)).await,
            GrantsCommand::Prune { unused_for: None, .. } => {
                let expired = ledger.expire_grants().await?;
                Ok(CommandOutput::new(0, json!({"expired": expired, "revoked": []})))
            }
            GrantsCommand::Prune { unused_for: Some(days), who } => {
                prune(&ledger, days, &named(who)).await
            }
        }
    }
}

/// The state at `now`: a grant whose time is over has expired, also before that is recorded.
fn state(record: &GrantRecord, now: i64) -> &'static str {
    match record.state {
        GrantState::Standing if now >= record.until => GrantState::Expired.as_str(),
        state => state.as_str(),
    }
}

fn object(record: &GrantRecord, now: i64) -> Value {
    json!({
        "id": record.id,
        "by": record.by,
        "says": record.grant.sentence(),
        "requester": record.grant.requester(),
        "agent": record.grant.agent(),
        "state": state(record, now),
        "made_at": record.made_at,
        "until": record.until,
        "used": record.used,
        "uses": record.grant.uses(),
        "used_at": record.used_at,
        "revoked_by": record.revoked_by,
    })
}

fn line(record: &GrantRecord, now: i64) -> String {
    let by: Vec<_> = record.by.iter().map(|name| show::escape_name(name)).collect();
    let times = match record.grant.uses() {
        Some(uses) => format!("used {} of {uses}", record.used),
        None => format!("used {}", record.used),
    };
    let until = jiff::Timestamp::from_millisecond(record.until);
    let until = until.map_or_else(
        |_| "for ever".to_owned(),
        |at| at.strftime("until %Y-%m-%d %H:%M UTC").to_string(),
    );
    let (id, says) = (&record.id, record.grant.sentence());
    format!("{id}  {}  {until}  {times}  by {}  {says}", state(record, now), by.join(" and "))
}

fn shown(record: &GrantRecord, now: i64) -> CommandOutput {
    let mut object = object(record, now);
    object["rule"] = record.grant.rule();
    let rule = show::escape(&record.grant.rule().to_string());
    CommandOutput::new(0, object).for_people(format!("{}\n{rule}", line(record, now)))
}

async fn make(
    ledger: &Ledger,
    wanted: Make,
    principal: String,
) -> Result<CommandOutput, CommandError> {
    let Some(record) = ledger.get(&wanted.ask).await? else {
        return Ok(CommandOutput::new(7, json!({"result": "unknown_ask"})));
    };
    if record.fingerprint != wanted.fingerprint {
        let found = json!({"result": "mismatch", "fingerprint": record.fingerprint});
        return Ok(CommandOutput::new(6, found));
    }
    let meant = |scope: &GrantScope| match scope {
        GrantScope::Session(_) => wanted.scope == GrantPlace::Session,
        GrantScope::Project(_) => wanted.scope == GrantPlace::Project,
        _ => false,
    };
    let none = || CommandError::Usage("the call was made in no such session or project".to_owned());
    let scope = record.ask.scopes().into_iter().find(meant).ok_or_else(none)?;
    let refused = |error: countersign::ledger::GrantError| CommandError::Usage(with_causes(&error));
    let mut grant = Grant::of(&record.ask, scope).map_err(refused)?;
    if let Some(time) = wanted.time {
        grant = grant.with_valid_for(time);
    }
    if let Some(uses) = wanted.uses {
        grant = grant.with_uses(uses);
    }
    let who = wanted.who.unwrap_or(principal);
    let made = ledger.make_grant(grant, &[&who]).await?;
    Ok(shown(&made, ledger.now().await?))
}

async fn list(ledger: &Ledger, all: bool) -> Result<CommandOutput, CommandError> {
    let (listed, now) = (ledger.grants(u32::MAX).await?, ledger.now().await?);
    let meant = |record: &&GrantRecord| all || record.stands(now);
    let records: Vec<_> = listed.records.iter().filter(meant).collect();
    let mut lines: Vec<_> = records.iter().map(|record| object(record, now)).collect();
    let mut text: Vec<_> = records.iter().map(|record| line(record, now)).collect();
    for refused in &listed.refused {
        let problem = with_causes(&refused.error);
        text.push(format!("refused: {problem}"));
        lines.push(json!({"refused": refused.id, "problem": problem}));
    }
    if text.is_empty() {
        text.push("no grants".to_owned());
    }
    let status = u8::from(!listed.refused.is_empty());
    Ok(CommandOutput::of(status, lines).for_people(text.join("\n")))
}

async fn revoke(ledger: &Ledger, id: &str, who: &str) -> Result<CommandOutput, CommandError> {
    Ok(match ledger.revoke_grant(id, who).await? {
        RevokedGrant::Revoked { again } => {
            CommandOutput::new(0, json!({"result": "revoked", "again": again}))
        }
        RevokedGrant::Over { state } => {
            CommandOutput::new(3, json!({"result": "over", "state": state.as_str()}))
        }
        _ => unknown(),
    })
}

async fn prune(ledger: &Ledger, days: u32, who: &str) -> Result<CommandOutput, CommandError> {
    let (expired, now) = (ledger.expire_grants().await?, ledger.now().await?);
    let before = now.saturating_sub(i64::from(days) * 24 * 3600 * 1000);
    let unused = |record: &GrantRecord| {
        record.stands(now) && record.used_at.unwrap_or(record.made_at) <= before
    };
    let mut revoked = Vec::new();
    for record in ledger.grants(u32::MAX).await?.records.into_iter().filter(unused) {
        if let RevokedGrant::Revoked { .. } = ledger.revoke_grant(&record.id, who).await? {
            revoked.push(record.id);
        }
    }
    Ok(CommandOutput::new(0, json!({"expired": expired, "revoked": revoked})))
}

fn unknown() -> CommandOutput {
    CommandOutput::new(7, json!({"result": "unknown_grant"}))
}
