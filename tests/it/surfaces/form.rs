//! Ann in the form of an MCP client.

use countersign_mcp::serve;
use serde_json::{Value, json};

use super::{Case, Place, SHORT, SurfaceDriver, TOOL, WHO};
use crate::mcp::client::{Client, forms, no, yes};

pub(super) struct InForm {
    place: Place,
    client: Client,
    args: Value,
    /// The fields that the client sends back with the answer to the form.
    state: Value,
}

impl InForm {
    async fn answer(&mut self, args: Value, answer: Value) -> String {
        let state = self.state.clone();
        self.client.retry(TOOL, args, &state, answer).await.to_string()
    }
}

impl SurfaceDriver for InForm {
    async fn open(case: &Case) -> Self {
        let (place, quorum) = (Place::new().await, case.quorum());
        let server = serve(case.tools()).ledger(place.ledger.clone()).principal(WHO).wait(SHORT);
        let server = server.ask_policy(move |_, ask| ask.with_quorum(quorum));
        let client = Client::newest(server, forms()).await;
        Self { place, client, args: case.args.clone(), state: Value::Null }
    }

    fn place(&self) -> &Place {
        &self.place
    }

    async fn show(&mut self) -> Option<String> {
        let response = self.client.call(TOOL, self.args.clone()).await;
        let result = &response["result"];
        self.state = result["requestState"].clone();
        let question = &result["inputRequests"]["countersign"]["params"];
        Some(question["message"].as_str()?.to_owned())
    }

    async fn approve(&mut self) -> String {
        self.answer(self.args.clone(), yes()).await
    }

    /// A form has no place for a reason.
    async fn deny(&mut self, _: &str) -> String {
        self.answer(self.args.clone(), no()).await;
        "denied in the client".to_owned()
    }

    async fn edit(&mut self, _: &str) -> Option<String> {
        None
    }

    async fn approve_something_else(&mut self) -> Option<String> {
        Some(self.answer(json!({"path": "another.txt"}), yes()).await)
    }

    async fn leave(&mut self) {
        if !self.state.is_null() {
            self.answer(self.args.clone(), json!({"action": "cancel"})).await;
        }
    }
}
