//! `countersign asks`: each command over a ledger.
//!
//! We read all input of a command before we open the store. So a command with a mistake creates no file, and sends no
//! password to a server.
//!
//! `each` is for programs that would otherwise start a process for each command. It answers its lines one by one, in
//! order, so a caller can send the next line after it has read the answer.

pub(crate) mod cli;
mod input;
mod rekey;
mod results;
mod review;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use countersign::deferred::Answer;
use countersign::ledger::{
    Approver, AskState, Broken, Cancelled, Checkpoint, Decided, Entry, Ledger, LedgerError,
    Presented, Surface,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::Context;
use crate::ids::Identified;
use crate::moment::Moment;
use crate::output::{CommandError, CommandOutput};
use crate::used_store::UsedStore;
use cli::{AnswerArgs, AsksArgs, AsksCommand};

impl AsksArgs {
    pub(crate) async fn run(
        self: Box<Self>,
        context: &Context,
    ) -> Result<CommandOutput, CommandError> {
        // The input is checked first, so that an unusable command creates no store.
        let url = self.store()?;
        let job = ParsedCommand::read(self.command)?;
        let mut config = context.config_with_key(self.audit_key_file);
        config.anchor_file = self.anchor_file.or(config.anchor_file);
        let ledger = match job {
            ParsedCommand::Park(_) | ParsedCommand::Other(AsksCommand::Init) => {
                config.open_store(&context.directories, url.as_ref()).await?
            }
            ParsedCommand::Other(AsksCommand::Rekey { .. }) => {
                config.unopened_existing_store(&context.directories, url.as_ref()).await?
            }
            ParsedCommand::Other(AsksCommand::Review { .. }) => {
                review::needs_terminal(&UsedStore::here(context, url.as_ref()))?;
                config.open_existing_store(&context.directories, url.as_ref()).await?
            }
            _ => config.open_existing_store(&context.directories, url.as_ref()).await?,
        };
        let store = UsedStore::here(context, url.as_ref());
        match job {
            ParsedCommand::Other(AsksCommand::Each) => each(&ledger, &store).await,
            ParsedCommand::Other(AsksCommand::Rekey { new_key_file }) => {
                rekey::run(&ledger, &store, (&new_key_file, &config.principal())).await
            }
            ParsedCommand::Other(AsksCommand::Review { who }) => {
                let who = who.unwrap_or_else(|| config.principal());
                review::run(&ledger, &store, who).await
            }
            job => job.run(&ledger, &store).await,
        }
    }
}

/// Runs the commands on stdin one after the other, until its end.
async fn each(ledger: &Ledger, store: &UsedStore) -> Result<CommandOutput, CommandError> {
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(words)) = commands.next_line().await {
        let result = match job(&words) {
            Ok(job) => job.run(ledger, store).await,
            Err(failed) => Err(failed),
        };
        let line = match result {
            Ok(CommandOutput { lines, status, .. }) => json!({"status": status, "lines": lines}),
            Err(CommandError::Usage(problem)) => {
                json!({"status": 2, "lines": [], "error": problem})
            }
            Err(CommandError::Store(problem)) => {
                json!({"status": 1, "lines": [], "error": problem})
            }
        };
        if writeln!(std::io::stdout(), "{line}").is_err() {
            break;
        }
    }
    Ok(CommandOutput::of(0, Vec::new()))
}

fn job(words: &str) -> Result<ParsedCommand, CommandError> {
    let words = serde_json::from_str(words)
        .map_err(|error| CommandError::Usage(format!("a command is a list of words: {error}")))?;
    match cli::command(words).map_err(CommandError::Usage)? {
        AsksCommand::Park
        | AsksCommand::Each
        | AsksCommand::Rekey { .. }
        | AsksCommand::Review { .. } => {
            Err(CommandError::Usage("stdin is where commands come from".to_owned()))
        }
        command => ParsedCommand::read(command),
    }
}

/// A command with its input parsed.
enum ParsedCommand {
    Park(Box<countersign::ledger::Ask>),
    Decide { id: String, fingerprint: String, who: String, answer: Answer },
    Settle { id: String, token: u64, outcome: serde_json::Value },
    Verify(BTreeMap<String, (i64, String)>),
    Other(AsksCommand),
}

impl ParsedCommand {
    fn read(command: AsksCommand) -> Result<Self, CommandError> {
        Ok(match command {
            AsksCommand::Park => Self::Park(Box::new(input::ask()?)),
            AsksCommand::Decide { id, fingerprint, who, answer } => {
                Self::Decide { id, fingerprint, who, answer: self::answer(answer)? }
            }
            AsksCommand::Settle { id, token, outcome } => {
                Self::Settle { id, token, outcome: input::value(&outcome, "--outcome")? }
            }
            AsksCommand::Verify { earlier } => {
                Self::Verify(earlier.map(|path| heads(&path)).transpose()?.unwrap_or_default())
            }
            other => Self::Other(other),
        })
    }

    async fn run(self, ledger: &Ledger, store: &UsedStore) -> Result<CommandOutput, CommandError> {
        match self {
            Self::Park(ask) => {
                let record = ledger.park(*ask).await?;
                let (id, fingerprint) = (record.ask.id(), record.fingerprint.as_str());
                Ok(CommandOutput::new(0, json!({"id": id, "fingerprint": fingerprint})))
            }
            Self::Decide { id, fingerprint, who, answer } => {
                let id = match Identified::Ask.named(ledger, &id, store).await? {
                    Ok(id) => id,
                    Err(unnamed) => return Ok(unnamed),
                };
                let ledger = unproven(ledger, store);
                // `show` leaves nothing out, and names the fingerprint.
                let shown = Presented::whole(id, fingerprint);
                let (surface, who) = (Surface::new(ledger), Approver::new(who));
                let is_edited = matches!(answer, Answer::Approve { args: Some(_) });
                let decided = surface.decide(&who, &shown, answer).await?;
                if decided == Decided::UnknownAsk {
                    return Ok(Identified::Ask.unknown(&shown.ask, store));
                }
                let output = results::decided(&decided)?;
                Ok(output.for_terminals(text::answered(&decided, is_edited, &shown.ask, store)))
            }
            Self::Settle { id, token, outcome } => {
                results::settled(&ledger.settle(&id, token, outcome).await?)
            }
            Self::Verify(earlier) => verify(ledger, &earlier).await,
            Self::Other(command) => other(ledger, command, store).await,
        }
    }
}

/// The ledger for decisions in a name that the caller has only given, as with `--as`. The ledger tells such names from
/// checked ones where several accounts share the store.
fn unproven(ledger: &Ledger, store: &UsedStore) -> Ledger {
    let ledger = ledger.clone();
    if store.is_shared() { ledger.with_unchecked_names() } else { ledger }
}

fn answer(args: AnswerArgs) -> Result<Answer, CommandError> {
    if let Some(message) = args.deny {
        return Ok(Answer::Deny { message });
    }
    if let Some(answer) = args.answer {
        return Ok(Answer::Result { value: input::value(&answer, "--answer")? });
    }
    Ok(Answer::Approve { args: args.args.map(|args| input::args(&args)).transpose()? })
}

async fn other(
    ledger: &Ledger,
    command: AsksCommand,
    store: &UsedStore,
) -> Result<CommandOutput, CommandError> {
    match command {
        AsksCommand::List { state, since, until, limit } => {
            list(ledger, (state, limit), (since, until), store).await
        }
        AsksCommand::Show { id } => show(ledger, &id, store).await,
        AsksCommand::Claim { id, worker, lease_s } => {
            results::claimed(&ledger.claim(&id, &worker, lease_s).await?)
        }
        AsksCommand::Renew { id, token, lease_s } => {
            results::renewed(&ledger.renew(&id, token, lease_s).await?)
        }
        AsksCommand::Expire => {
            let mut changed = Vec::new();
            let expired = ledger.expire().await?;
            for id in expired.changed {
                let state = ledger.get(&id).await?.map(|record| record.state);
                changed.push(json!({"id": id, "state": state}));
            }
            let lines = vec![json!({"result": "expired", "changed": changed})];
            Ok(results::refused(lines, &expired.refused))
        }
        AsksCommand::Cancel { id, who } => cancel(ledger, (&id, &who), store).await,
        AsksCommand::Checkpoint => checkpoint(ledger).await,
        AsksCommand::Export => {
            let mut lines = Vec::new();
            ledger.export(|entry| lines.push(json!(entry))).await?;
            Ok(CommandOutput::of(0, lines))
        }
        AsksCommand::Init => {
            ledger.note_key().await?;
            Ok(CommandOutput::new(0, json!({"ok": true})))
        }
        AsksCommand::Rekey { .. }
        | AsksCommand::Review { .. }
        | AsksCommand::Each
        | AsksCommand::Park
        | AsksCommand::Decide { .. }
        | AsksCommand::Settle { .. }
        | AsksCommand::Verify { .. } => Ok(CommandOutput::new(0, json!({"ok": true}))),
    }
}

/// Lists asks. A range of time is about when an ask was decided, or else about when it was made.
async fn list(
    ledger: &Ledger,
    (state, limit): (Option<AskState>, u32),
    (since, until): (Option<Moment>, Option<Moment>),
    store: &UsedStore,
) -> Result<CommandOutput, CommandError> {
    let now = ledger.now().await?;
    let (first, end) = (since.map(|it| it.begins(now)), until.map(|it| it.ends(now)));
    let is_of_time = since.is_some() || until.is_some();
    let mut listed = ledger.list(state, if is_of_time { u32::MAX } else { limit }).await?;
    listed.records.retain(|record| {
        let at = record.decision.as_ref().map_or(record.parked_at, |decision| decision.at);
        first.is_none_or(|first| first <= at) && end.is_none_or(|end| at < end)
    });
    listed.records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let lines = listed.records.iter().map(results::ask);
    let output = results::refused(lines.collect(), &listed.refused);
    let is_empty = listed.records.is_empty() && listed.refused.is_empty();
    Ok(output.for_terminals(match is_of_time && is_empty {
        true => format!(
            "No asks are of this time in the store `{}`. `{}` lists all.",
            store.name(),
            store.command("asks list")
        ),
        false => text::list(&listed, state, (now, store)),
    }))
}

async fn show(ledger: &Ledger, id: &str, store: &UsedStore) -> Result<CommandOutput, CommandError> {
    let id = match Identified::Ask.named(ledger, id, store).await? {
        Ok(id) => id,
        Err(unnamed) => return Ok(unnamed),
    };
    let (record, now) = (ledger.get(&id).await?, ledger.now().await?);
    let Some(record) = record else { return Ok(Identified::Ask.unknown(&id, store)) };
    let text = text::shown(&record, now, store);
    Ok(CommandOutput::new(0, results::ask(&record)).for_terminals(text))
}

async fn cancel(
    ledger: &Ledger,
    (id, who): (&str, &str),
    store: &UsedStore,
) -> Result<CommandOutput, CommandError> {
    let id = match Identified::Ask.named(ledger, id, store).await? {
        Ok(id) => id,
        Err(unnamed) => return Ok(unnamed),
    };
    match ledger.cancel(&id, who).await? {
        Cancelled::UnknownAsk => Ok(Identified::Ask.unknown(&id, store)),
        cancelled => results::cancelled(&cancelled),
    }
}

async fn checkpoint(ledger: &Ledger) -> Result<CommandOutput, CommandError> {
    Ok(match ledger.checkpoint().await {
        Ok(Checkpoint { entries, head, changed, .. }) => {
            let line = json!({"ok": true, "entries": entries, "head": head, "changed": changed});
            CommandOutput::new(0, line)
        }
        Err(LedgerError::Broken(broken)) => self::broken(&broken),
        Err(error) => return Err(error.into()),
    })
}

fn broken(broken: &Broken) -> CommandOutput {
    let Broken { run, seq, problem, .. } = broken;
    CommandOutput::new(12, json!({"ok": false, "run": run, "seq": seq, "problem": problem}))
}

async fn verify(
    ledger: &Ledger,
    earlier: &BTreeMap<String, (i64, String)>,
) -> Result<CommandOutput, CommandError> {
    Ok(match ledger.verify(earlier).await {
        Ok(verified) if verified.is_empty() => {
            let note = "there is nothing to verify: the ledger is empty";
            CommandOutput::new(3, json!({"ok": false, "entries": 0, "note": note}))
        }
        Ok(verified) => {
            let mut line = json!({"ok": true, "entries": verified.entries});
            if verified.ran_unapproved > 0 {
                line["ran_unapproved"] = json!(verified.ran_unapproved);
            }
            CommandOutput::new(0, line)
        }
        Err(LedgerError::Broken(broken)) => self::broken(&broken),
        Err(error) => return Err(error.into()),
    })
}

/// The heads to verify against, from a file of `export` or `checkpoint`: the last entry of each log, and all
/// checkpoints.
fn heads(path: &Path) -> Result<BTreeMap<String, (i64, String)>, CommandError> {
    let text = String::from_utf8_lossy(&file(path)?).into_owned();
    let mut heads = BTreeMap::new();
    for line in text.lines() {
        if let Ok(checkpoint) = serde_json::from_str::<Checkpoint>(line) {
            heads.extend(checkpoint.to_heads());
            continue;
        }
        let entry: Entry = serde_json::from_str(line).map_err(|error| {
            CommandError::Usage(format!(
                "`{}` is not what `export` writes: {error}",
                path.display()
            ))
        })?;
        heads.insert(entry.run, (entry.seq, entry.hash));
    }
    Ok(heads)
}

pub(crate) fn file(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|error| CommandError::Usage(format!("`{}`: {error}", path.display())))
}
