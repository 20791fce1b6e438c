//! A guard in front of an MCP server: a client reads, writes and moves files, and a file of rules stands between.
//!
//! ```text
//! cargo run -p mcp_guard                                          with a small server of files, which is this program
//! cargo run -p mcp_guard -- npx -y @modelcontextprotocol/server-filesystem       with another server, given the folder
//! ```
//!
//! ```text
//! client ──MCP──> guard ──MCP──> server of files (a child process)
//!                   │
//!                   ├─ rules.toml: reading is allowed, changes are asked about, secrets are denied
//!                   └─ ledger: an approval is used once
//! ```
//!
//! The client is the official MCP library and knows nothing of the guard: it shows a form when it is sent one. In an
//! editor's configuration the guard is the program `countersign guard`; here it is the same in a few lines.

mod client;
mod server;

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;

use countersign::ledger::{Ledger, MemoryStore};
use countersign::{ToolMiddlewareExt as _, ToolsExt as _};
use countersign_mcp::{Guard, Launch, Proposal};
use countersign_rules::Rules;
use serde_json::json;

use client::Client;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rules.toml");

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match &words[..] {
        [word, folder] if word == "serve" => server::serve(Path::new(folder)).await,
        words => tour(words).await,
    }
}

/// The server: this program, or the one that was named.
fn launch(words: &[OsString], folder: &Path) -> std::io::Result<Launch> {
    Ok(match words.split_first() {
        Some((program, args)) => Launch::command(program).args(args).args([folder]),
        None => Launch::command(std::env::current_exe()?).args(["serve"]).args([folder]),
    })
}

async fn tour(words: &[OsString]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?;
    std::fs::write(root.join("notes.txt"), "buy milk\n")?;
    std::fs::write(root.join(".env"), "TOKEN=hunter2\n")?;

    let ledger = Ledger::new(MemoryStore::new());
    let rules = Rules::builder().file(RULES).root(&root).load()?;
    let guard = Guard::new("files", launch(words, &root)?, ledger.clone())
        .principal("ann")
        .layers(move |tools| tools.layered(rules.clone().into_layer()));
    let (here, there) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(there);
    let served = tokio::spawn(guard.server().on(input, output));
    let client = Client::connect(here).await?;

    // Once, a person looks at the tools of the server, and accepts exactly these.
    for proposal in Proposal::list(&ledger).await? {
        let tools: Vec<_> = proposal.added().map(|(name, _)| name).collect();
        println!("accepted by ann: {}\n", tools.join(", "));
        proposal.accept(&ledger, "ann").await?;
    }

    let path = |name: &str| root.join(name).display().to_string();
    let summary = json!({"path": path("summary.txt"), "content": "one note: milk\n"});
    let (from, to) = (path("notes.txt"), path("old.txt"));
    client.call("read_text_file", json!({"path": from}), "approve").await?;
    client.call("read_text_file", json!({"path": path(".env")}), "approve").await?;
    client.call("write_file", summary.clone(), "approve").await?;
    // The same call again is another question: the approval was used.
    client.call("write_file", summary, "deny").await?;
    client.call("move_file", json!({"source": from, "destination": to}), "deny").await?;

    let mut left: Vec<_> = std::fs::read_dir(&root)?
        .filter_map(|file| Some(file.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    left.sort();
    println!("in the folder: {}", left.join(", "));
    client.end().await?;
    Ok(served.await??)
}
