//! The implementation of each command.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use countersign::deferred::Answer;
use countersign::ledger::{Broken, Checkpoint, Entry, Ledger, LedgerError};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::cli::{AnswerArgs, Cli, Command};
use crate::{Failed, Said, cli, park, said, store};

pub(crate) async fn run(cli: Cli) -> Result<Said, Failed> {
    // The input is checked first, so that an unusable command creates no store.
    let job = Job::read(cli.command)?;
    let key = cli.audit_key_file.map(|path| file(&path)).transpose()?;
    let mut ledger = store::open(&cli.store).await?;
    if let Some(key) = key {
        ledger = ledger.audit_key(&key);
    }
    if let Job::Other(Command::Each) = job { each(&ledger).await } else { job.run(&ledger).await }
}

/// Runs the commands on stdin one after the other, until its end.
async fn each(ledger: &Ledger) -> Result<Said, Failed> {
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(words)) = commands.next_line().await {
        let said = match job(&words) {
            Ok(job) => job.run(ledger).await,
            Err(failed) => Err(failed),
        };
        let line = match said {
            Ok(Said { lines, status }) => json!({"status": status, "lines": lines}),
            Err(Failed::Usage(problem)) => json!({"status": 2, "lines": [], "error": problem}),
            Err(Failed::Store(problem)) => json!({"status": 1, "lines": [], "error": problem}),
        };
        if writeln!(std::io::stdout(), "{line}").is_err() {
            break;
        }
    }
    Ok(Said { lines: Vec::new(), status: 0 })
}

fn job(words: &str) -> Result<Job, Failed> {
    let words = serde_json::from_str(words)
        .map_err(|error| Failed::Usage(format!("a command is a list of words: {error}")))?;
    match cli::command(words).map_err(Failed::Usage)? {
        Command::Park | Command::Each => {
            Err(Failed::Usage("stdin is where commands come from".to_owned()))
        }
        command => Job::read(command),
    }
}

/// A command with its input parsed.
enum Job {
    Park(Box<countersign::ledger::Ask>),
    Decide { id: String, fingerprint: String, who: String, answer: Answer },
    Settle { id: String, token: u64, outcome: serde_json::Value },
    Verify(BTreeMap<String, (i64, String)>),
    Other(Command),
}

impl Job {
    fn read(command: Command) -> Result<Self, Failed> {
        Ok(match command {
            Command::Park => Self::Park(Box::new(park::ask()?)),
            Command::Decide { id, fingerprint, who, answer } => {
                Self::Decide { id, fingerprint, who, answer: self::answer(answer)? }
            }
            Command::Settle { id, token, outcome } => {
                Self::Settle { id, token, outcome: park::value(&outcome, "--outcome")? }
            }
            Command::Verify { earlier } => {
                Self::Verify(earlier.map(|path| heads(&path)).transpose()?.unwrap_or_default())
            }
            other => Self::Other(other),
        })
    }

    async fn run(self, ledger: &Ledger) -> Result<Said, Failed> {
        match self {
            Self::Park(ask) => {
                let record = ledger.park(*ask).await?;
                let (id, fingerprint) = (record.ask.id(), record.fingerprint.as_str());
                Ok(Said::new(0, json!({"id": id, "fingerprint": fingerprint})))
            }
            Self::Decide { id, fingerprint, who, answer } => {
                said::decided(&ledger.decide(&id, &fingerprint, &who, answer).await?)
            }
            Self::Settle { id, token, outcome } => {
                said::settled(&ledger.settle(&id, token, outcome).await?)
            }
            Self::Verify(earlier) => verify(ledger, &earlier).await,
            Self::Other(command) => other(ledger, command).await,
        }
    }
}

fn answer(args: AnswerArgs) -> Result<Answer, Failed> {
    if let Some(message) = args.deny {
        return Ok(Answer::Deny { message });
    }
    if let Some(answer) = args.answer {
        return Ok(Answer::Result { value: park::value(&answer, "--answer")? });
    }
    Ok(Answer::Approve { args: args.args.map(|args| park::args(&args)).transpose()? })
}

async fn other(ledger: &Ledger, command: Command) -> Result<Said, Failed> {
    match command {
        Command::List { state, limit } => {
            let listed = ledger.list(state, limit).await?;
            let lines = listed.records.iter().map(said::ask);
            Ok(said::refused(lines.collect(), &listed.refused))
        }
        Command::Show { id } => {
            let record = ledger.get(&id).await?;
            Ok(record.map_or_else(said::unknown, |record| Said::new(0, said::ask(&record))))
        }
        Command::Claim { id, worker, lease_s } => {
            said::claimed(&ledger.claim(&id, &worker, lease_s).await?)
        }
        Command::Renew { id, token, lease_s } => {
            said::renewed(&ledger.renew(&id, token, lease_s).await?)
        }
        Command::Expire => {
            let mut changed = Vec::new();
            let expired = ledger.expire().await?;
            for id in expired.changed {
                let state = ledger.get(&id).await?.map(|record| record.state);
                changed.push(json!({"id": id, "state": state}));
            }
            let lines = vec![json!({"result": "expired", "changed": changed})];
            Ok(said::refused(lines, &expired.refused))
        }
        Command::Cancel { id, who } => said::cancelled(&ledger.cancel(&id, &who).await?),
        Command::Checkpoint => checkpoint(ledger).await,
        Command::Export => {
            let mut lines = Vec::new();
            ledger.export(|entry| lines.push(json!(entry))).await?;
            Ok(Said { lines, status: 0 })
        }
        Command::Init
        | Command::Each
        | Command::Park
        | Command::Decide { .. }
        | Command::Settle { .. }
        | Command::Verify { .. } => Ok(Said::new(0, json!({"ok": true}))),
    }
}

async fn checkpoint(ledger: &Ledger) -> Result<Said, Failed> {
    Ok(match ledger.checkpoint().await {
        Ok(Checkpoint { entries, head, changed }) => {
            let line = json!({"ok": true, "entries": entries, "head": head, "changed": changed});
            Said::new(0, line)
        }
        Err(LedgerError::Broken(broken)) => self::broken(&broken),
        Err(error) => return Err(error.into()),
    })
}

fn broken(broken: &Broken) -> Said {
    let Broken { run, seq, problem } = broken;
    Said::new(12, json!({"ok": false, "run": run, "seq": seq, "problem": problem}))
}

async fn verify(
    ledger: &Ledger,
    earlier: &BTreeMap<String, (i64, String)>,
) -> Result<Said, Failed> {
    Ok(match ledger.verify(earlier).await {
        Ok(verified) if verified.is_empty() => {
            let note = "there is nothing to verify: the ledger is empty";
            Said::new(0, json!({"ok": true, "entries": 0, "note": note}))
        }
        Ok(verified) => Said::new(0, json!({"ok": true, "entries": verified.entries})),
        Err(LedgerError::Broken(broken)) => self::broken(&broken),
        Err(error) => return Err(error.into()),
    })
}

/// The heads to verify against, from a file of `export` or `checkpoint`: the last entry of each log, and all
/// checkpoints.
fn heads(path: &Path) -> Result<BTreeMap<String, (i64, String)>, Failed> {
    let text = String::from_utf8_lossy(&file(path)?).into_owned();
    let mut heads = BTreeMap::new();
    for line in text.lines() {
        if let Ok(checkpoint) = serde_json::from_str::<Checkpoint>(line) {
            heads.extend(checkpoint.to_heads());
            continue;
        }
        let entry: Entry = serde_json::from_str(line).map_err(|error| {
            Failed::Usage(format!("`{}` is not what `export` writes: {error}", path.display()))
        })?;
        heads.insert(entry.run, (entry.seq, entry.hash));
    }
    Ok(heads)
}

fn file(path: &Path) -> Result<Vec<u8>, Failed> {
    fs::read(path).map_err(|error| Failed::Usage(format!("`{}`: {error}", path.display())))
}
