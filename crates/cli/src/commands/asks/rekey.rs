//! `countersign asks rekey`: adds an audit key to a store, or exchanges it.
//!
//! A store that has entries without its key cannot be used any more. Such an entry was made by an honest process that had
//! no key, or by any program that can write to the store. Only a person can tell. So we show each of them, with the asks
//! that they are about as these would count, and the person types how many there are.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use countersign::ledger::{AskRecord, Entry, Ledger, LedgerError, Rekeyed, utc};
use countersign::show;
use countersign_cli::config::audit_key;
use serde_json::{Value, json};

use crate::output::{CommandError, CommandOutput};
use crate::used_store::UsedStore;

/// The most characters of one word in the line of an entry. The asks are shown whole.
const LONGEST: usize = 120;

/// Asks the person at the terminal, and adds the key.
pub(super) async fn run(
    ledger: &Ledger,
    store: &UsedStore,
    (file, by): (&Path, &str),
) -> Result<CommandOutput, CommandError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let problem = "a person changes the audit key of a store, on a terminal: run this command by hand, without a pipe";
        return Err(CommandError::Usage(problem.to_owned()));
    }
    let key = audit_key(file)?;
    let keyless = ledger.keyless_entries().await?;
    let asks = ledger.asks_of(&keyless).await?;
    if !agreed(store, file, (&keyless, &asks))
        .map_err(|error| CommandError::Store(error.to_string()))?
    {
        let line = json!({"ok": false});
        return Ok(CommandOutput::new(1, line).for_people("The key was not changed."));
    }
    match ledger.rekey_accepting(&key, by, &keyless).await {
        Ok(Rekeyed { key, logs, entries, .. }) => {
            let text = format!(
                "{entries} entries in {logs} logs were verified, and the store has the audit key `{key}` now.\n\
                 Name its file in every process that uses the store, with `--audit-key-file` or as `audit_key_file`. \
                 `{}` checks it.",
                store.command("asks verify")
            );
            let line = json!({"ok": true, "key": key, "logs": logs, "entries": entries});
            Ok(CommandOutput::new(0, line).for_people(text))
        }
        Err(LedgerError::Broken(broken)) => Ok(super::broken(&broken)),
        Err(error) => Err(error.into()),
    }
}

fn agreed(
    store: &UsedStore,
    file: &Path,
    (keyless, asks): (&[Entry], &[AskRecord]),
) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "The store {} will be verified as a whole, and gets the key in `{}`.\n\
         End all other processes that use it first: what they write with the earlier key is refused.",
        store.name(),
        file.display()
    )?;
    let word = match keyless.len() {
        0 => "yes".to_owned(),
        number => {
            writeln!(
                out,
                "\nThese entries of the log were made without the key of the store, by a process that had none or by another \
                 program that can write to the store:"
            )?;
            for entry in keyless {
                writeln!(out, "  {}", line(entry))?;
            }
            if !asks.is_empty() {
                writeln!(
                    out,
                    "\nThey are about these asks, which would count as they stand here:\n"
                )?;
            }
            for ask in asks {
                writeln!(out, "{}\n", super::text::whole(ask, ask.changed_at, store))?;
            }
            writeln!(out, "With the new key they count as if they had been made with a key.\n")?;
            format!("accept {number}")
        }
    };
    write!(out, "Type `{word}` to change the key: ")?;
    out.flush()?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    Ok(typed.trim() == word)
}

/// An entry for a person: when, what happened, by whose word, and to what.
fn line(entry: &Entry) -> String {
    let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(short);
    let at = body.get("at").and_then(Value::as_i64).map_or_else(|| "?".to_owned(), utc);
    let event = text("event").unwrap_or_else(|| "?".to_owned());
    let by = text("by").map(|by| format!(" by {by}")).unwrap_or_default();
    let tool = text("tool").map(|tool| format!(" {tool}")).unwrap_or_default();
    let about = entry.about().map(|it| format!(": {}", short(&it))).unwrap_or_default();
    let Entry { run, seq, .. } = entry;
    format!("{at} {event}{by}{about}{tool} (entry {seq} of `{}`)", short(run))
}

/// A word of an entry. It may be of any length, and nothing counts that it says.
fn short(word: &str) -> String {
    let cut: String = word.chars().take(LONGEST).collect();
    show::escape(&cut) + if cut.len() < word.len() { "…" } else { "" }
}
