//! Call ids and tool names in the form that a provider accepts.
//!
//! A conversation may have begun at another provider, be written by another program, or hold a call of a tool that the
//! model has invented. Each provider checks ids and names in another way, and refuses the whole conversation for one of
//! them, even if it is forty messages back. We replace them in the request only: the history, the ledger and the person
//! see the original.
//!
//! We number calls in the order of the conversation. So the same history gives the same ids in each request, and the
//! provider's cache of the conversation stays valid.

use std::collections::{HashMap, HashSet};

use ::genai::adapter::AdapterKind;

use countersign::message::Message;
use countersign::model::ModelRequest;

/// The maximum length of a tool name in bytes; longer ones are refused by providers.
const MAX_NAME: usize = 64;

/// Maps the call ids and tool names of a conversation to what is sent in one request.
pub(super) struct SentIds<'a> {
    replaced: HashMap<&'a str, String>,
    tools: HashSet<&'a str>,
}

impl<'a> SentIds<'a> {
    pub(super) fn of(request: &'a ModelRequest, kind: AdapterKind) -> Self {
        let calls = request.messages().iter().flat_map(Message::tool_calls);
        let (kept, strange): (Vec<&str>, Vec<&str>) =
            calls.map(|call| call.id()).partition(|id| fits(id, kind));
        let kept: HashSet<&str> = kept.into_iter().collect();
        // Nine letters and digits fit the strictest provider (Mistral). We number ids in the order of the
        // conversation, so the next request maps the same calls to the same ids.
        let mut free =
            (1_u32..).map(|n| format!("call{n:05}")).filter(|id| !kept.contains(id.as_str()));
        let mut replaced = HashMap::new();
        for id in strange {
            replaced.entry(id).or_insert_with(|| free.next().unwrap_or_default());
        }
        let tools = request.tools().iter().map(countersign::call::ToolDefinition::name).collect();
        Self { replaced, tools }
    }

    /// The id to send for a call or its result: the original one, or its replacement.
    pub(super) fn id(&self, id: &str) -> String {
        self.replaced.get(id).map_or(id, String::as_str).to_owned()
    }

    /// The tool name to send for a call. Names of existing tools are sent as they are. A name that the model invented
    /// may contain any character, and those that providers refuse become `_`.
    pub(super) fn name(&self, name: &str) -> String {
        if self.tools.contains(name) {
            return name.to_owned();
        }
        let sound = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
        let name: String = name.chars().map(sound).take(MAX_NAME).collect();
        if name.is_empty() { "unknown".to_owned() } else { name }
    }
}

/// Returns `true` if a provider accepts an id. Most accept any id that they once issued; those listed here validate it.
fn fits(id: &str, kind: AdapterKind) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match kind {
        AdapterKind::Anthropic
        | AdapterKind::BedrockApi
        | AdapterKind::MiniMax
        | AdapterKind::Vertex => (1..=64).contains(&id.len()) && id.chars().all(sound),
        AdapterKind::OpenAI => (1..=40).contains(&id.len()),
        AdapterKind::OpenAIResp => (1..=64).contains(&id.len()),
        AdapterKind::Mistral => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        _ => !id.is_empty(),
    }
}
