//! Ann in a chat, by a client that does what `useChat` does.

use countersign::Agent;
use countersign::testing::ScriptedModel;
use countersign_ai_sdk::{Chats, Principal};
use serde_json::{Value, json};

use super::{Case, Place, SurfaceDriver, WHO};
use crate::ai_sdk::client::Client;

pub(super) struct InChat {
    place: Place,
    client: Client,
}

impl InChat {
    /// Posts the chat, and says what the client is told.
    async fn post(&mut self, body: &Value) -> String {
        // The client keeps its own answer where it does not count.
        self.client.differs = true;
        match self.client.post(body).await {
            Ok(response) => json!(response.chunks).to_string(),
            Err(rejection) => rejection.message,
        }
    }

    fn waiting(&self) -> String {
        self.client.waiting().remove(0)
    }
}

impl SurfaceDriver for InChat {
    async fn open(case: &Case) -> Self {
        let place = Place::new().await;
        let model = ScriptedModel::calls([case.call()]).then_text("Done.");
        let agent = Agent::new(model, case.tools()).ledger(case.ledger(&place.file()).await);
        let client = Client::new(Chats::new(agent), Principal::new(WHO), "chat-1");
        Self { place, client }
    }

    fn place(&self) -> &Place {
        &self.place
    }

    async fn show(&mut self) -> Option<String> {
        self.client.say("Write it").await;
        let data = self.client.shown().pop()?;
        let mut shown = vec![data["headline"].clone(), data["canonical"].clone()];
        for question in data["questions"].as_array().into_iter().flatten() {
            shown.push(question["reason"].clone());
        }
        for preview in data["previews"].as_array().into_iter().flatten() {
            shown.extend(preview["lines"].as_array().into_iter().flatten().cloned());
        }
        let texts: Vec<_> = shown.iter().filter_map(Value::as_str).collect();
        Some(texts.join("\n"))
    }

    async fn approve(&mut self) -> String {
        let ask = self.waiting();
        let body = self.client.note(&ask, true, None).body();
        self.post(&body).await
    }

    async fn deny(&mut self, reason: &str) -> String {
        let ask = self.waiting();
        let body = self.client.note(&ask, false, Some(reason)).body();
        self.post(&body).await;
        reason.to_owned()
    }

    async fn edit(&mut self, args: &str) -> Option<String> {
        let ask = self.waiting();
        let mut body = self.client.note(&ask, true, None).body();
        body["overrideArgs"] = json!({ask: serde_json::from_str::<Value>(args).unwrap()});
        Some(self.post(&body).await)
    }

    async fn approve_something_else(&mut self) -> Option<String> {
        let ask = self.waiting();
        let body = self.client.note(&ask, true, None).body().to_string();
        let other = body.replace(&ask, &format!("ask-{}", "0".repeat(32)));
        Some(self.post(&serde_json::from_str(&other).unwrap()).await)
    }

    async fn leave(&mut self) {}
}
