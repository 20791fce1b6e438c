//! `countersign grants`: the answers that people have given in advance.
//!
//! `list` shows the standing grants: they say which calls still run without a question. `prune` is for the grants
//! that you made for a task of last month: a grant that nothing uses is a risk without a purpose.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use countersign::error::with_causes;
use countersign::ledger::{
    AskState, Grant, GrantOffer, GrantPlace, GrantRecord, GrantState, GrantTime, Ledger,
    RevokedGrant, date_and_time, utc,
};
use countersign::show::{self, Limits, counted};
use countersign_cli::config::StoreUrl;
use serde_json::{Value, json};

use crate::Context;
use crate::ids::Identified;
use crate::output::{CommandError, CommandOutput, WIDTH};
use crate::used_store::UsedStore;

/// The exit statuses, for the end of `--help`.
const STATUSES: &str = "\
Exit statuses: 0 done, also where a grant was revoked before; 1 the store cannot be used, or a row of it is refused; 2 bad \
usage, or a call that cannot be granted; 3 the grant has expired; 6 the ask has another fingerprint; 7 no such grant or ask, or several. \
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
    Show {
        /// Its id, or the first characters of it, at least 4
        id: String,
    },
    /// Revoke a grant: it answers nothing more, in no process
    Revoke {
        /// Its id, or the first characters of it, at least 4
        id: String,
        /// Who revokes it, recorded as it is given; by default the principal of the configuration
        #[arg(long = "as", value_name = "NAME")]
        who: Option<String>,
    },
    /// Record which grants have expired, and revoke those that were not used for a time
    Prune {
        /// Revoke the grants that have answered nothing for this many days
        #[arg(long, value_name = "DAYS")]
        unused_for: Option<u32>,
        /// Who revokes them, recorded as it is given; by default the principal of the configuration
        #[arg(long = "as", value_name = "NAME")]
        who: Option<String>,
    },
}

#[derive(Args)]
struct Make {
    /// The id of the ask, or the first characters of it, at least 4
    ask: String,
    /// The fingerprint of the ask that was shown
    #[arg(long)]
    fingerprint: String,
    /// Where the grant holds: in the `session` or in the `project` of the call
    #[arg(long = "in", value_name = "SCOPE")]
    scope: GrantPlace,
    /// Which of the grants that can be offered: 1 for exactly such calls, 2 to 4 for wider ones where there are any
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pattern: usize,
    /// Print the grants that can be offered, with examples, and make none
    #[arg(long)]
    list: bool,
    /// How long it is valid: 90s, 30m, 2h, 7d; 12 hours by default
    #[arg(long = "for", value_name = "TIME")]
    time: Option<GrantTime>,
    /// How many calls it answers
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    uses: Option<u32>,
    /// Who makes it, recorded as it is given; by default the principal of the configuration
    #[arg(long = "as", value_name = "NAME")]
    who: Option<String>,
}

impl Grants {
    pub(crate) async fn run(
        self: Box<Self>,
        context: &Context,
    ) -> Result<CommandOutput, CommandError> {
        let url: Option<StoreUrl> = self.store.as_deref().map(str::parse).transpose()?;
        let config = context.config_with_key(self.audit_key_file);
        let ledger = config.open_existing_store(&context.directories, url.as_ref()).await?;
        let store = UsedStore::here(context, url.as_ref());
        let named = |who: Option<String>| who.unwrap_or_else(|| context.config.principal());
        match self.command {
            GrantsCommand::List { all } => list(&ledger, all).await,
            GrantsCommand::Make(wanted) => {
                make(&ledger, wanted, (&store, context.config.principal())).await
            }
            GrantsCommand::Show { id } => {
                let id = match Identified::Grant.named(&ledger, &id, &store).await? {
                    Ok(id) => id,
                    Err(unnamed) => return Ok(unnamed),
                };
                Ok(match ledger.grant(&id).await? {
                    Some(record) => shown(&record, ledger.now().await?),
                    None => Identified::Grant.unknown(&id, &store),
                })
            }
            GrantsCommand::Revoke { id, who } => revoke(&ledger, &id, (&store, &named(who))).await,
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

/// The state at `now`. A grant whose time is over has expired, even before a process has recorded
/// that.
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
        "made_for": record.grant.made_for(Limits::default()),
        "answers": record.grant.answers_to().collect::<Vec<_>>(),
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

/// The grant for people: what it covers, the call that it was made for, and whose questions it answers.
fn grant_text(record: &GrantRecord, now: i64) -> String {
    let by: Vec<_> = record.by.iter().map(|name| show::escape_name(name)).collect();
    let used = counted(usize::try_from(record.used).unwrap_or(usize::MAX), "time");
    let of = record.grant.uses().map(|uses| format!(" of {uses}")).unwrap_or_default();
    let (state, until, by) = (state(record, now), until(record.until), by.join(" and "));
    let mut rows = vec![format!("grant {}: {state}, {until}, by {by}, used {used}{of}", record.id)];
    let grant = &record.grant;
    let answers: Vec<_> = grant.answers_to().map(|it| show::escape(&it)).collect();
    rows.extend(show::wrap("  ", &show::escape(&grant.sentence()), WIDTH));
    rows.extend(show::wrap("  made for: ", &grant.made_for(Limits::default()), WIDTH));
    rows.extend(show::wrap("  answers: ", &answers.join(", "), WIDTH));
    rows.join("\n")
}

fn shown(record: &GrantRecord, now: i64) -> CommandOutput {
    let mut object = object(record, now);
    object["rule"] = record.grant.rule();
    let rule: Vec<_> = record.grant.to_toml().lines().map(|line| format!("    {line}")).collect();
    let text = format!("{}\n  as a rule:\n{}", grant_text(record, now), rule.join("\n"));
    CommandOutput::new(0, object).for_people(text)
}

async fn make(
    ledger: &Ledger,
    wanted: Make,
    (store, principal): (&UsedStore, String),
) -> Result<CommandOutput, CommandError> {
    let ask = match Identified::Ask.named(ledger, &wanted.ask, store).await? {
        Ok(id) => id,
        Err(unnamed) => return Ok(unnamed),
    };
    let Some(record) = ledger.get(&ask).await? else {
        return Ok(CommandOutput::new(7, json!({"result": "unknown_ask"})));
    };
    if record.fingerprint != wanted.fingerprint {
        let found = json!({"result": "mismatch", "fingerprint": record.fingerprint});
        return Ok(CommandOutput::new(6, found));
    }
    let usage = |problem: &str| CommandError::Usage(problem.to_owned());
    let scope = wanted.scope.scope(&record.ask);
    let scope = scope.ok_or_else(|| usage("the call was made in no such session or project"))?;
    // Says why where no grant may answer such a call.
    Grant::of(&record.ask, scope.clone()).map_err(|error| usage(&with_causes(&error)))?;
    let offers = GrantOffer::all(&record.ask, &scope);
    if wanted.list {
        return Ok(offered(&offers));
    }
    let number = wanted.pattern.checked_sub(1);
    let offer = offers.into_iter().find(|offer| Some(offer.number()) == number);
    let offer = offer.ok_or_else(|| usage("no grant of this number is offered: see --list"))?;
    let offer = match wanted.time {
        Some(time) => offer.with_time(time),
        None => offer,
    };
    let mut grant = offer.into_grant();
    if let Some(uses) = wanted.uses {
        grant = grant.with_uses(uses);
    }
    let who = wanted.who.unwrap_or(principal);
    let made = ledger.make_grant(grant, &[&who]).await?;
    let output = shown(&made, ledger.now().await?);
    Ok(match record.state {
        AskState::Pending => {
            let decide = store.command("asks review");
            output.and_for_people(&format!(
                "The ask that it was made from still waits, also for the next equal call: `{decide}` decides it."
            ))
        }
        _ => output,
    })
}

fn offered(offers: &[GrantOffer]) -> CommandOutput {
    let numbered = || offers.iter().map(|offer| (offer.number() + 1, offer));
    let object = |(number, offer): (usize, &GrantOffer)| json!({"pattern": number, "says": offer.sentence(), "rule": offer.rule(), "also": offer.examples()});
    let line = |(number, offer): (usize, &GrantOffer)| {
        let also: Vec<_> = offer.examples().iter().map(|example| show::escape(example)).collect();
        let also = if also.is_empty() {
            String::new()
        } else {
            format!("\n   would also allow: {}", also.join("; "))
        };
        format!("{number}. {}{also}", show::escape(&offer.sentence()))
    };
    let text: Vec<_> = numbered().map(line).collect();
    CommandOutput::of(0, numbered().map(object).collect()).for_people(text.join("\n"))
}

async fn list(ledger: &Ledger, all: bool) -> Result<CommandOutput, CommandError> {
    let (listed, now) = (ledger.grants(u32::MAX).await?, ledger.now().await?);
    let meant = |record: &&GrantRecord| all || record.stands(now);
    let records: Vec<_> = listed.records.iter().filter(meant).collect();
    let mut lines: Vec<_> = records.iter().map(|record| object(record, now)).collect();
    let mut text: Vec<_> = records.iter().map(|record| grant_text(record, now)).collect();
    for refused in &listed.refused {
        let problem = with_causes(&refused.error);
        text.push(format!("refused: {problem}"));
        lines.push(json!({"refused": refused.id, "problem": problem}));
    }
    if text.is_empty() {
        let past = match all {
            true => "",
            false => " `countersign grants list --all` also lists the past ones.",
        };
        text.push(format!(
            "There are no grants. You make one as you approve a call, in `countersign asks review` or the inbox, or with \
             `countersign grants make`.{past}"
        ));
    }
    let status = u8::from(!listed.refused.is_empty());
    Ok(CommandOutput::of(status, lines).for_people(text.join("\n")))
}

async fn revoke(
    ledger: &Ledger,
    id: &str,
    (store, who): (&UsedStore, &str),
) -> Result<CommandOutput, CommandError> {
    let id = match Identified::Grant.named(ledger, id, store).await? {
        Ok(id) => id,
        Err(unnamed) => return Ok(unnamed),
    };
    Ok(match ledger.revoke_grant(&id, who).await? {
        RevokedGrant::Revoked { again } => {
            CommandOutput::new(0, json!({"result": "revoked", "again": again}))
        }
        RevokedGrant::Over { state } => {
            CommandOutput::new(3, json!({"result": "over", "state": state.as_str()}))
        }
        _ => Identified::Grant.unknown(&id, store),
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

/// The end of a grant. One beyond the year 9999 has none.
fn until(at: i64) -> String {
    match date_and_time(at) {
        Some(_) => format!("until {}", utc(at)),
        None => "for ever".to_owned(),
    }
}
