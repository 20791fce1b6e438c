//! Two people with three chats, two servers over one store, and a record of all asks and approvals.

use std::collections::{BTreeMap, BTreeSet};

use countersign::deferred::Answer;
use countersign::ledger::AskState;
use countersign_ai_sdk::{Chats, Principal, Rejection};
use serde_json::{Value, json};

use super::client::{Client, chunks, string};
use super::order;
use super::world::World;

/// The call that an approval is for.
#[derive(Debug, Clone)]
struct Asked {
    owner: String,
    chat: String,
    part: String,
    path: Value,
}

/// The whole state, with the calls that may have run.
pub(super) struct Play {
    pub(super) world: World,
    servers: [Chats; 2],
    pub(super) clients: Vec<Client>,
    asked: BTreeMap<String, Asked>,
    /// The approvals that were given, by the path that they were given for.
    given: BTreeMap<String, BTreeSet<String>>,
    /// The calls that were denied before they ran.
    never: BTreeSet<String>,
    /// The posted bodies, with their senders.
    pub(super) log: Vec<(usize, Value)>,
    files: usize,
}

impl Play {
    pub(super) fn new(world: World) -> Self {
        let servers = [world.chats(), world.chats()];
        let client = |(who, chat): (&'static str, &str)| {
            Client::new(servers[0].clone(), Principal::new(who), chat)
        };
        let clients = [("ann", "a1"), ("ann", "a2"), ("bob", "b1")].map(client).into();
        let (asked, given, never, log) = Default::default();
        Self { world, servers, clients, asked, given, never, log, files: 0 }
    }

    /// A name that no call had before.
    pub(super) fn file(&mut self) -> String {
        self.files += 1;
        format!("f{}", self.files)
    }

    /// A server is started anew.
    pub(super) fn restart(&mut self, server: usize) {
        self.servers[server] = self.world.chats();
    }

    /// The parts of a body that answer what was really asked: of its owner, in its chat, about this part and path.
    fn answers(&self, who: &str, body: &Value) -> Vec<(String, Asked, Value)> {
        let parts = body["messages"].as_array().into_iter().flatten();
        let parts = parts.filter_map(|message| message["parts"].as_array()).flatten();
        let answer = |part: &Value| {
            let id = part["approval"]["id"].as_str()?;
            let asked = self.asked.get(id)?;
            let fits = part["state"] == "approval-responded"
                && asked.owner == who
                && body["id"] == asked.chat.as_str()
                && part["toolCallId"] == asked.part.as_str()
                && (part["type"] == "tool-delete" || part["toolName"] == "delete")
                && part["input"]["path"] == asked.path;
            fits.then(|| (id.to_owned(), asked.clone(), part["approval"]["approved"].clone()))
        };
        parts.filter_map(answer).collect()
    }

    /// Records the approvals of a body. Returns all of its answers.
    fn note_given(&mut self, who: &str, body: &Value) -> Vec<(String, Asked, Value)> {
        let answers = self.answers(who, body);
        for (id, asked, _) in answers.iter().filter(|(_, _, said)| *said == true) {
            let edited = &body["overrideArgs"][id]["path"];
            let path = if edited.is_null() { &asked.path } else { edited };
            self.given.entry(string(path)).or_default().insert(id.clone());
        }
        answers
    }

    /// Posts a body as this person, and records its approvals and the response.
    pub(super) async fn post(
        &mut self,
        server: usize,
        who: usize,
        body: &Value,
    ) -> Result<Vec<Value>, Rejection> {
        let principal = self.clients[who].principal.clone();
        let answers = self.note_given(principal.as_str(), body);
        let posted = self.servers[server].post(&principal, body.to_string().as_bytes()).await;
        let told = chunks(posted?).await;
        self.note_asks(principal.as_str(), body, &told);
        let ran = self.ran();
        for (_, asked, _) in answers.iter().filter(|(_, _, said)| *said == false) {
            let call = call_of(&asked.part);
            let given = self.given.get(asked.path.as_str().unwrap_or_default());
            // The first decision counts, on every surface (rule L1).
            let before = given.is_some_and(|given| given.iter().any(|by| by.starts_with("boss")));
            if !ran.contains(&call) && !before {
                self.never.insert(call);
            }
        }
        Ok(told)
    }

    /// Posts two bodies of one person to the two servers at once.
    pub(super) async fn race(&mut self, who: usize, one: &Value, other: &Value) {
        let principal = self.clients[who].principal.clone();
        for body in [one, other] {
            self.note_given(principal.as_str(), body);
        }
        let post = async |server: usize, body: &Value| match self.servers[server]
            .post(&principal, body.to_string().as_bytes())
            .await
        {
            Ok(events) => chunks(events).await,
            Err(_) => Vec::new(),
        };
        let (first, second) = futures::join!(post(0, one), post(1, other));
        self.note_asks(principal.as_str(), one, &first);
        self.note_asks(principal.as_str(), other, &second);
    }

    /// Posts the messages of a client, applies the response as `useChat` does, and reloads the chat after a rejection.
    pub(super) async fn send(&mut self, server: usize, who: usize, body: &Value) -> bool {
        self.log.push((who, body.clone()));
        match self.post(server, who, body).await {
            Ok(told) => {
                let client = &mut self.clients[who];
                let id = &told[0]["messageId"];
                order::check(&told, client.messages.iter().find(|it| it["id"] == *id));
                told.iter().for_each(|chunk| client.apply(chunk));
                true
            }
            Err(refused) => {
                assert!((400..500).contains(&refused.status), "{refused}");
                self.load(server, who).await;
                false
            }
        }
    }

    /// Loads the page again.
    pub(super) async fn load(&mut self, server: usize, who: usize) {
        let client = &mut self.clients[who];
        let kept = self.servers[server].messages(&client.principal, &client.chat).await.unwrap();
        let kept = json!(kept.unwrap_or_default());
        client.messages = kept.as_array().unwrap().clone();
    }

    /// Decides the newest pending ask on another surface.
    pub(super) async fn decide(&mut self, yes: bool) {
        let asks = self.world.asks().await;
        let Some(ask) = asks.iter().rfind(|ask| ask.state == AskState::Pending) else { return };
        let (path, by) = (string(&ask.ask.args()["path"]), format!("boss {}", ask.ask.id()));
        let answer = if yes {
            self.given.entry(path).or_default().insert(by);
            Answer::Approve { args: None }
        } else {
            Answer::Deny { message: "no".into() }
        };
        let (id, fingerprint) = (ask.ask.id(), ask.ask.fingerprint());
        self.world.ledger().decide(id, &fingerprint, "boss", answer).await.unwrap();
    }

    fn note_asks(&mut self, owner: &str, body: &Value, told: &[Value]) {
        let chat = string(&body["id"]);
        for chunk in told.iter().filter(|chunk| chunk["type"] == "data-approval") {
            let data = &chunk["data"];
            let Some(id) = data["approvalId"].as_str() else { continue };
            let (part, path) = (string(&data["toolCallId"]), data["input"]["path"].clone());
            let (owner, chat) = (owner.to_owned(), chat.clone());
            self.asked.entry(id.to_owned()).or_insert(Asked { owner, chat, part, path });
        }
    }

    /// The calls that ran.
    fn ran(&self) -> BTreeSet<String> {
        self.world.recorder.ran().into_iter().map(|ran| ran.id).collect()
    }

    /// Nothing ran without an approval of its own, twice, or after a no; and every history was valid.
    pub(super) fn check(&self) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls = BTreeSet::new();
        for ran in self.world.recorder.ran() {
            assert!(calls.insert(ran.id.clone()), "{} ran twice", ran.id);
            assert!(!self.never.contains(&ran.id), "{} was denied", ran.id);
            if ran.tool == "delete" {
                assert!(ran.approved, "A7: {}", ran.id);
                *counts.entry(string(&ran.args["path"])).or_default() += 1;
            }
        }
        for (path, count) in counts {
            let given = self.given.get(&path).map_or(0, BTreeSet::len);
            assert!(count <= given, "`{path}`: {count} executions, {given} approvals");
        }
        self.world.check();
    }
}

/// The call of a part that may be one of several, or of an agent behind a tool.
fn call_of(part: &str) -> String {
    let call = part.rsplit('/').next().unwrap_or(part);
    call.split('#').next().unwrap_or(call).to_owned()
}
