//! A worker in Rust over a store that programs in Python use, too: claims approved calls, makes their effect, and settles.
//!
//! `worker URL FOLDER NAME` works until the file `stop` is in the folder, or until it is killed. An effect is a line in the file
//! `effects`, which is on the disk before the call is settled. `tests/frameworks` kills it at any moment.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use countersign::Outcome;
use countersign::ledger::{AskState, Claimed};
use countersign_stores::StoreUrl;

const LEASE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(15);

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?
        .block_on(work())
}

async fn work() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().collect();
    let [_, url, folder, name] = &args[..] else { return Err("worker URL FOLDER NAME".into()) };
    let ledger = url.parse::<StoreUrl>()?.open().await?;
    while !Path::new(folder).join("stop").exists() {
        let decided = ledger.list(Some(AskState::Decided), 20).await?.records;
        if decided.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for record in decided {
            let id = record.ask.id();
            let Claimed::Claimed { token } = ledger.claim(id, name, LEASE).await? else { continue };
            // A while in which it can die, before the effect and behind it.
            tokio::time::sleep(PAUSE).await;
            let mut effects = OpenOptions::new()
                .append(true)
                .create(true)
                .open(Path::new(folder).join("effects"))?;
            effects.write_all(format!("{id} {name}\n").as_bytes())?;
            effects.sync_data()?;
            tokio::time::sleep(PAUSE).await;
            let outcome = serde_json::to_value(Outcome::returned(name.as_str()))?;
            ledger.settle(id, token, outcome).await?;
        }
    }
    Ok(())
}
