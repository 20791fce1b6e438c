//! Chats for AI SDK front ends: the encoder beside plain `serde_json`, and a thousand chats that are open at once.
//!
//! ```text
//! cargo bench -p benches --bench ai_sdk --features ai-sdk
//! ```

use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{Agent, BoxError, FunctionToolset, Model};
use countersign_ai_sdk::{Chats, Chunk, Principal, encode, router};
use serde_json::{Value, json};

/// How many chats are open at once.
const CHATS: usize = 1_000;

/// How often each side encodes all chunks, turn by turn.
const ROUNDS: usize = 41;

/// Set in the environment of the process that is the server.
const SERVES: &str = "COUNTERSIGN_BENCH_SERVES";

fn main() -> Result<(), BoxError> {
    let runtime = tokio::runtime::Runtime::new()?;
    if std::env::var_os(SERVES).is_some() {
        return runtime.block_on(serve());
    }
    encoder();
    runtime.block_on(open_chats())
}

/// The events of a response of some length.
fn chunks() -> Vec<Chunk> {
    let words = (0..200).map(|n| Chunk::TextDelta {
        id: "text-1".into(),
        delta: format!("word{n} "),
        provider_metadata: None,
    });
    let calls = (0..20).map(|n| Chunk::ToolOutputAvailable {
        tool_call_id: format!("call_{n}"),
        output: json!({"path": "logs/worker.log", "lines": vec!["a line of a log"; 20], "size": n}),
        preliminary: None,
        dynamic: None,
        provider_executed: None,
        provider_metadata: None,
        tool_metadata: None,
    });
    words.chain(calls).collect()
}

fn encoder() {
    let chunks = chunks();
    let values: Vec<Value> =
        chunks.iter().filter_map(|chunk| serde_json::to_value(chunk).ok()).collect();
    let (mut ours, mut plain, mut buffer) = (Vec::new(), Vec::new(), Vec::with_capacity(1 << 20));
    for _ in 0..ROUNDS {
        ours.push(timed(&mut buffer, |buffer| {
            chunks.iter().for_each(|chunk| encode(black_box(chunk), buffer));
        }));
        plain.push(timed(&mut buffer, |buffer| {
            for value in &values {
                let _ = serde_json::to_writer(&mut *buffer, black_box(value));
            }
        }));
    }
    let per_second = |times: &mut Vec<Duration>| chunks.len() as f64 / median(times).as_secs_f64();
    let (ours, plain) = (per_second(&mut ours), per_second(&mut plain));
    println!("encoder      {ours:>12.0} chunks/s");
    println!("serde_json   {plain:>12.0} values/s    ratio {:.2}", ours / plain);
    let mut into = Vec::with_capacity(1 << 20);
    let counted = allocation_counter::measure(|| {
        chunks.iter().for_each(|chunk| encode(black_box(chunk), &mut into));
    });
    println!(
        "per chunk    {} bytes written once, {} allocations",
        into.len() / chunks.len(),
        counted.count_total
    );
}

/// Measures how long it takes to fill the buffer in this way.
fn timed(buffer: &mut Vec<u8>, fill: impl Fn(&mut Vec<u8>)) -> Duration {
    let begun = Instant::now();
    for _ in 0..20 {
        buffer.clear();
        fill(buffer);
    }
    begun.elapsed() / 20
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Says one word, and then nothing for a long time.
struct Thoughtful;

impl Model for Thoughtful {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        request.text_delta("Well, ");
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok(ModelResponse::text("Well, I do not know."))
    }
}

async fn serve() -> Result<(), BoxError> {
    let chats = Chats::new(Agent::new(Thoughtful, FunctionToolset::new()));
    let app = Router::new().nest("/chat", router(chats, async |_| Ok(Principal::new("bench"))));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/chat", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

/// Opens chats at a server in a process of its own, until all of them are open.
async fn open_chats() -> Result<(), BoxError> {
    let mut server = Command::new(std::env::current_exe()?)
        .env(SERVES, "1")
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?;
    let mut url = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut url)?;
    let (client, url) = (reqwest::Client::new(), url.trim().to_owned());
    let before = resident(server.id())?;
    let mut open = Vec::new();
    let mut waited = Vec::new();
    for n in 0..CHATS {
        let text = json!([{"type": "text", "text": "What is the meaning of it all?"}]);
        let message = json!({"id": format!("m{n}"), "role": "user", "parts": text});
        let body = json!({"id": format!("chat-{n}"), "messages": [message]});
        let begun = Instant::now();
        let mut response = client.post(&url).json(&body).send().await?.error_for_status()?;
        response.chunk().await?.ok_or("the stream is empty")?;
        waited.push(begun.elapsed());
        open.push(response);
    }
    let each = (resident(server.id())?.saturating_sub(before)) / CHATS as u64;
    waited.sort_unstable();
    let at = |share: usize| waited.get(CHATS * share / 100).copied().unwrap_or_default();
    println!("{CHATS} chats open at once: {each} KiB each");
    println!("first byte   p50 {:?}, p99 {:?}", at(50), at(99));
    drop(open);
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// How much memory a process has, in KiB.
fn resident(process: u32) -> Result<u64, BoxError> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
