//! A server: a scripted model, tools that record what ran, and a ledger that several processes share.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use countersign::decision::GrantPattern;
use countersign::deferred::Answer;
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{AskRecord, Ledger, MemoryStore, Store};
use countersign::message::{RequestPart, ResponsePart};
use countersign::model::{ModelRequest, ModelResponse};
use countersign::outcome::ToolFailed;
use countersign::toolset::ExternalToolset;
use countersign::{
    Agent, BoxError, Decision, FunctionToolset, Message, Model, ToolCall, ToolDefinition, Tools,
    ToolsExt as _, decide_fn,
};
use countersign_ai_sdk::{Chats, Principal};
use serde_json::{Value, json};

use super::client::Client;
use crate::support::{Recorder, call};

/// One store, its tools and its model; each [`chats`](Self::chats) is a process of its own.
#[derive(Clone)]
pub(super) struct World {
    /// The store, unless [`over`](Self::over) sets another one.
    pub(super) store: MemoryStore,
    open: Arc<dyn Fn() -> Ledger + Send + Sync>,
    pub(super) recorder: Recorder,
    pub(super) bot: Bot,
    /// The digest of the file in questions about deletions.
    pub(super) pin: Arc<Mutex<String>>,
    /// How far the store's clock is ahead, in milliseconds.
    ahead: Arc<AtomicI64>,
}

/// The user's words are the model's script: steps, parted by ` then `, of calls, parted by `; `. Then it says what it
/// was told. It keeps everything it heard, and what is wrong with it for a provider.
#[derive(Clone, Default)]
pub(super) struct Bot {
    pub(super) heard: Arc<Mutex<Vec<Vec<Message>>>>,
    pub(super) problems: Arc<Mutex<Vec<String>>>,
    /// Fails at its next request, in the middle of a text.
    pub(super) fails: Arc<AtomicBool>,
    /// Hangs at its next request, in the middle of a text.
    pub(super) hangs: Arc<AtomicBool>,
}

impl World {
    pub(super) fn new() -> Self {
        let names = ["delete", "read", "wipe", "explode", "send"];
        let recorder = Recorder::new(names).body(|_, call| match call.name() {
            "explode" => Err(ToolFailed::new("kaboom").into()),
            _ => Ok(json!({"done": call.args().get("path")})),
        });
        let (pin, ahead) = (Arc::new(Mutex::new("1".to_owned())), Arc::<AtomicI64>::default());
        let later = Arc::clone(&ahead);
        let store = MemoryStore::with_clock(move || {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
            i64::try_from(now).unwrap() + later.load(Ordering::Acquire)
        });
        let kept = store.clone();
        let open = Arc::new(move || Ledger::new(kept.clone()));
        Self { store, open, recorder, bot: Bot::default(), pin, ahead }
    }

    /// Sets the store.
    pub(super) fn over(mut self, store: impl Store + Clone) -> Self {
        self.open = Arc::new(move || Ledger::new(store.clone()));
        self
    }

    /// Sets for how long an approval is valid.
    pub(super) fn with_approvals_for(mut self, time: Duration) -> Self {
        let open = self.open;
        self.open = Arc::new(move || open().approvals_valid_for(time));
        self
    }

    /// Advances the clock of the store.
    pub(super) fn wait(&self, time: Duration) {
        self.ahead.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::AcqRel);
    }

    /// Makes every body take this long.
    pub(super) fn taking(mut self, time: Duration) -> Self {
        self.recorder = self.recorder.taking(time);
        self
    }

    pub(super) fn ledger(&self) -> Ledger {
        (self.open)().ask_policy(|_, ask| ask.with_expires_in(Duration::from_secs(3600)))
    }

    /// The agent's own tools, with its policy, and one that the client executes.
    pub(super) fn tools(&self) -> Tools {
        let pin = Arc::clone(&self.pin);
        let policy = decide_fn(move |_, call: &ToolCall| match call.name() {
            "delete" => {
                Decision::ask("deleting is permanent").with_pin("disk", &*pin.lock().unwrap())
            }
            "explode" => Decision::ask("it may explode"),
            "send" => sends(),
            "wipe" => Decision::deny("wiping disks is forbidden"),
            _ => Decision::allow(),
        });
        let locate = ToolDefinition::new("locate", json!({"type": "object"}));
        let cleaner = Agent::new(self.bot.clone(), self.recorder.clone().layered(policy.clone()));
        Tools::combined([
            self.recorder.clone().layered(policy),
            ExternalToolset::new("browser", [locate]).into(),
            FunctionToolset::new().tool(cleaner.as_tool("clean", "Cleans up")).into(),
        ])
    }

    pub(super) fn agent(&self) -> Agent {
        Agent::new(self.bot.clone(), self.tools())
    }

    /// A process.
    pub(super) fn chats(&self) -> Chats {
        Chats::new(self.agent().ledger(self.ledger()))
    }

    /// Ann's browser, with this chat.
    pub(super) fn ann(&self, chat: &str) -> Client {
        Client::new(self.chats(), Principal::new("ann"), chat)
    }

    /// The paths that calls have run with, sorted.
    pub(super) fn ran(&self) -> Vec<String> {
        let path = |args: &countersign::Args| args.get("path").map(text).unwrap_or_default();
        let mut paths: Vec<_> = self.recorder.ran().iter().map(|ran| path(&ran.args)).collect();
        paths.sort();
        paths
    }

    /// The last request to the model: results as `outcome: content`, prompts as they are.
    pub(super) fn told(&self) -> Vec<String> {
        let heard = self.bot.heard.lock().unwrap();
        match heard.last().and_then(|history| history.last()) {
            Some(Message::Request { parts }) => parts.iter().map(said).collect(),
            _ => Vec::new(),
        }
    }

    /// The asks, oldest first.
    pub(super) async fn asks(&self) -> Vec<AskRecord> {
        let mut asks = self.ledger().list(None, 100).await.unwrap().records;
        asks.reverse();
        asks
    }

    /// Decides the newest ask on another surface.
    pub(super) async fn decide(&self, answer: Answer) {
        let ask = self.asks().await.pop().unwrap().ask;
        self.ledger().decide(ask.id(), &ask.fingerprint(), "boss", answer).await.unwrap();
    }

    /// Checks that every history was valid for a provider.
    pub(super) fn check(&self) {
        let problems = self.bot.problems.lock().unwrap();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn said(part: &RequestPart) -> String {
    match part {
        RequestPart::UserPrompt { content } => text(content),
        RequestPart::ToolReturn { outcome, content, .. } => {
            format!("{}: {}", json!(outcome).as_str().unwrap(), text(content))
        }
        RequestPart::SystemPrompt { .. } => String::new(),
    }
}

impl Model for Bot {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let history = request.messages().to_vec();
        self.problems.lock().unwrap().extend(problem(&history));
        self.heard.lock().unwrap().push(history.clone());
        if self.fails.swap(false, Ordering::AcqRel) {
            request.text_delta("partial ");
            return Err("the model exploded: secret-inside".into());
        }
        if self.hangs.swap(false, Ordering::AcqRel) {
            request.text_delta("thinking ");
            std::future::pending::<()>().await;
        }
        let (prompt, behind) = since_the_user_spoke(&history);
        let step = behind.iter().filter(|it| matches!(it, Message::Response { .. })).count();
        let calls = prompt.split(" then ").nth(step).unwrap_or_default();
        let calls: Vec<_> = calls.split("; ").filter_map(one_call).collect();
        if !calls.is_empty() {
            return Ok(ModelResponse { parts: calls, ..ModelResponse::default() });
        }
        if prompt == "be silent" || prompt.ends_with(" silently") && step > 0 {
            return Ok(ModelResponse { parts: Vec::new(), ..ModelResponse::default() });
        }
        let told = match history.last() {
            Some(Message::Request { parts }) => parts.iter().map(said).collect(),
            _ => Vec::new(),
        };
        let says = format!("I heard: {}", told.join(", "));
        request.text_delta(&says);
        Ok(ModelResponse { parts: vec![ResponsePart::Text(says)], ..ModelResponse::default() })
    }
}

/// A question that a person may answer in advance: for equal calls, or for those with any path.
pub(super) fn sends() -> Decision {
    let any = GrantPattern::new("any", "of any file").with_field("path");
    let any = any.with_example("send(path: \"b.txt\")");
    Decision::ask("sends mail").with_metadata(GRANTABLE, true).with_grant_patterns([any])
}

fn one_call(words: &str) -> Option<ResponsePart> {
    let (tool, path) = words.split_once(' ')?;
    let args = match tool {
        "delete" | "read" | "wipe" | "explode" | "locate" | "send" => {
            json!({"path": path.split(' ').next()})
        }
        "clean" => json!({"prompt": path.replace('+', " ").replace('&', "; ")}),
        _ => return None,
    };
    let id = format!("call-{}", uuid::Uuid::now_v7());
    Some(ResponsePart::ToolCall(call(&id, tool, args)))
}

fn since_the_user_spoke(history: &[Message]) -> (String, &[Message]) {
    let prompt = |message: &Message| match message {
        Message::Request { parts } => parts.iter().rev().find_map(|part| match part {
            RequestPart::UserPrompt { content } => Some(text(content)),
            _ => None,
        }),
        Message::Response { .. } => None,
    };
    let last = history.iter().rposition(|message| prompt(message).is_some());
    let behind = last.map_or(history, |at| &history[at + 1..]);
    (last.and_then(|at| prompt(&history[at])).unwrap_or_default(), behind)
}

/// The error of a provider about a history (rule T3): each response with calls is followed by exactly their results, in
/// order.
fn problem(history: &[Message]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for message in history {
        match message {
            Message::Request { parts } => {
                let results = parts.iter().filter_map(|part| match part {
                    RequestPart::ToolReturn { tool_call_id, .. } => Some(tool_call_id.as_str()),
                    _ => None,
                });
                let results: Vec<_> = results.collect();
                if results != open {
                    return Some(format!("calls {open:?}, and results {results:?}"));
                }
                open.clear();
            }
            Message::Response { .. } if !open.is_empty() => {
                return Some(format!("no results of {open:?}"));
            }
            Message::Response { .. } => open = message.tool_calls().map(ToolCall::id).collect(),
        }
    }
    match history.last() {
        Some(Message::Request { .. }) => None,
        _ => Some("the model is asked, and told nothing".to_owned()),
    }
}
