//! The clients of the hook, by their fixtures: `tests/hooks/CLIENT.jsonl`. The first line of each has the forms that the
//! client sends and obeys, written by hand; the others are payloads.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use countersign_cli::hook::Client;
use serde_json::{Value, json};

use super::one_row_of;

/// The forms of one client.
pub(crate) struct ClientForms {
    pub(crate) client: Client,
    forms: Value,
    /// Payloads, each with the event and the tool that it is about.
    pub(crate) payloads: Vec<Value>,
}

static ALL: LazyLock<BTreeMap<&'static str, ClientForms>> = LazyLock::new(|| {
    Client::ALL.into_iter().map(|client| (client.name(), ClientForms::read(client))).collect()
});

/// The names of all clients.
pub(crate) fn clients() -> impl Iterator<Item = &'static str> + Clone {
    Client::ALL.into_iter().map(Client::name)
}

/// All clients, or in the short form each third one from `first` on. Each of them is tried in the tests that start no process.
pub(crate) fn some_clients(first: usize) -> impl Iterator<Item = &'static str> + Clone {
    let each = one_row_of().min(3);
    clients().skip(first % each).step_by(each)
}

/// The forms of the client of this name.
pub(crate) fn forms(client: &str) -> &'static ClientForms {
    ALL.get(client).unwrap_or_else(|| panic!("there is no client `{client}`"))
}

impl ClientForms {
    fn read(client: Client) -> Self {
        let path = format!("{}/hooks/{client}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| {
            panic!("tests/hooks/{client}.jsonl is missing: payloads of {client}")
        });
        let text = text.replace("WS", "/src/ws");
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let forms = lines.next().unwrap()["forms"].take();
        Self { client, forms, payloads: lines.collect() }
    }

    #[track_caller]
    fn get(&self, name: &str) -> &Value {
        let missing = || panic!("the forms in tests/hooks/{}.jsonl have no `{name}`", self.client);
        self.forms.get(name).unwrap_or_else(missing)
    }

    #[track_caller]
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_else(|| panic!("`{name}` of {}", self.client))
    }

    /// The texts of a list, such as the surfaces that have payloads.
    #[track_caller]
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        self.get(name).as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
    }

    /// `true` if the payloads are examples of the client's documentation, and were not recorded.
    pub(crate) fn is_from_documentation(&self) -> bool {
        self.forms.get("source").is_some_and(|it| it == "documentation")
    }

    /// A tool of this kind: its name, and those of its arguments. `None` where the client has none.
    #[track_caller]
    pub(crate) fn tool(&self, kind: &str) -> Option<Vec<&str>> {
        match &self.get("tools")[kind] {
            Value::Null => None,
            Value::String(name) => Some(vec![name]),
            Value::Array(words) => Some(words.iter().map(|it| it.as_str().unwrap()).collect()),
            other => panic!("{other}"),
        }
    }

    /// A payload of this event.
    pub(crate) fn payload(&self, event: &str, call: &ToldCall<'_>) -> Value {
        let mut payload = self.get("payload").clone();
        for value in payload.as_object_mut().unwrap().values_mut() {
            let new = match value.as_str() {
                Some("EVENT") => json!(event),
                Some("SESSION") => json!(call.session),
                Some("CWD") => json!(call.directory),
                Some("CALL") => json!(call.id),
                Some("TOOL") => json!(call.tool),
                Some("ARGS") => call.args.clone(),
                _ => continue,
            };
            *value = new;
        }
        payload
    }

    /// The answer to the client, for this reason: `denial` or `allowed`. `None` is silence.
    pub(crate) fn answer(&self, name: &str, reason: &str) -> Option<Value> {
        let form = self.get(name);
        let text = form.to_string().replace("\"REASON\"", &json!(reason).to_string());
        (!form.is_null()).then(|| serde_json::from_str(&text).unwrap())
    }

    /// `true` if an allow can be said in so many words.
    pub(crate) fn has_explicit_allow(&self) -> bool {
        self.get("explicit") == &json!(true)
    }

    /// Where an answer has other arguments for the call, in clients that take them.
    pub(crate) fn changed(&self) -> Option<&str> {
        self.get("changed").as_str()
    }

    /// The place of the entry of the event before a tool, in clients that are configured by JSON.
    pub(crate) fn entry(&self) -> Option<&str> {
        self.forms.get("entry")?.as_str()
    }

    /// The name of the limit in an entry, and how many of its units a second has.
    pub(crate) fn limit(&self) -> (&str, u64) {
        let limit = self.get("limit");
        (limit[0].as_str().unwrap(), limit[1].as_u64().unwrap())
    }
}

/// A call as a client tells it.
pub(crate) struct ToldCall<'a> {
    pub(crate) session: &'a str,
    pub(crate) directory: &'a str,
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) args: Value,
}
