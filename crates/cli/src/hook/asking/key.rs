//! The key of a call, to which its approval is bound.
//!
//! The asks of a session are one run of the ledger. The key has the path of the agent and a digest of client, session, agent,
//! directory, tool, arguments, questions and the person that the call is made for. So a call with other arguments, in another
//! directory or session, or under other rules, is another ask. The key leaves out only the words with which a model tells
//! people what a command is about: the model words them anew each time, and the client does nothing with them. The ask has
//! them as they were when it was made. We number equal calls: the next one is asked about when the one before has been
//! answered.

use serde_json::{Map, Value, json};

use crate::hook::clients::Client;
use crate::hook::digest::digest;
use crate::hook::judging::vocabulary::Normal;
use crate::hook::payload::HookCall;
use countersign::args::Args;
use countersign::decision::Question;
use countersign::ledger::Ask;

/// The name under which the hook acts in the log.
pub(crate) const HOOK: &str = "countersign hook";

/// The run that holds the asks of a session.
pub(crate) fn run(client: Client, session: &str) -> String {
    let digest = digest(json!(["session", client.name(), session]));
    format!("hook-{}-{}", client.name(), short(&digest))
}

/// A run for the turn of one call, which no other call has.
pub(crate) fn new_run() -> String {
    format!("hook-call-{}", uuid::Uuid::now_v7())
}

/// The first 32 digits of a digest: 128 bits.
fn short(digest: &str) -> &str {
    digest.get(..32).unwrap_or(digest)
}

/// A call as it is asked about.
///
/// Its questions are a part of it, with their pins. If a rule has changed since, or a file has another content, that
/// is another ask, and an earlier approval does not answer it (rule A2).
pub(crate) struct CallKey {
    pub(crate) run: String,
    agent: String,
    digest: String,
}

impl CallKey {
    pub(crate) fn new(
        call: &HookCall,
        normal: &Normal,
        args: &Args,
        questions: &[Question],
        principal: Option<&str>,
    ) -> Self {
        // Without a session the ask belongs to this call alone.
        let session = call.session.clone();
        let session = session.unwrap_or_else(|| format!("none {}", uuid::Uuid::now_v7()));
        let asked: Vec<_> =
            questions.iter().map(|it| json!([it.layer(), it.key(), it.pins()])).collect();
        let (agent, tool) = (call.agent.as_deref(), normal.shown());
        let directory = call.directory.to_string_lossy();
        let client = call.client.name();
        let args = normal.compared(args);
        let mut parts = json!(["call", client, session, agent, directory, tool, args, asked]);
        if let (Some(parts), Some(principal)) = (parts.as_array_mut(), principal) {
            parts.push(json!(principal));
        }
        let digest = digest(parts);
        // A `/` separates agents in paths.
        let agent = agent.map(|it| format!("/{}", it.replace('/', "_"))).unwrap_or_default();
        Self { run: run(call.client, &session), agent: format!("{client}{agent}"), digest }
    }

    /// The ask of the n-th of these calls, counted from 1.
    pub(crate) fn ask(&self, n: u64, tool: &str) -> Ask {
        let path = format!("{}/{}-{n}", self.agent, short(&self.digest));
        Ask::new(self.run.clone(), path, tool)
    }
}

/// The worker that claims a call: the client, the id of the call if it has one, and the arguments in the client's own
/// names, by which the event after the call is matched.
pub(crate) fn worker(call: &HookCall, args: &Map<String, Value>) -> String {
    let ran = digest(json!(["ran", call.tool, args]));
    let id = call.id.as_deref().map(|id| short(&digest(json!(["id", id]))).to_owned());
    format!("{} {} {}", call.client, id.as_deref().unwrap_or("-"), short(&ran))
}
