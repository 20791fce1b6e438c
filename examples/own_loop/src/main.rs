//! Your own agent loop: the same permission stack in a loop with the wire types of another crate, without this
//! library's agent.
//!
//! ```text
//! cargo run -p own_loop
//! ```
//!
//! The loop uses the chat completions format, with the types of the crate `async-openai`. All it needs from the library
//! is a [`Turn`]: the tool calls of each response go in, and one tool message per call comes out.
//!
//! ```text
//!  assistant message with tool_calls ──► admit ──► Turn::run ──► tool messages
//!                                                      │ calls wait
//!                                                      ▼
//!                               messages + SuspendedTurn, as JSON ──► Turn::resume ──► tool messages
//! ```
//!
//! The model's responses are fixed JSON, as a server would send it, with what servers do send: arguments are text, one
//! of them is cut off in the middle, and the second response reuses an id of the first one. The output shows the
//! model's texts, the tools that really run, the place where the loop suspends, and at the end every message in order.

use async_openai::types::chat::{
    ChatCompletionMessageToolCalls as WireCall, ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestMessage, ChatCompletionRequestToolMessage,
    ChatCompletionRequestUserMessage, ChatCompletionResponseMessage, ChatCompletionTool,
    ChatCompletionTools, CreateChatCompletionRequest, CreateChatCompletionResponse, FunctionObject,
};
use countersign::turn::admit;
use countersign::{
    BoxError, Decision, DeferredToolResults, FunctionToolset, SuspendedTurn, ToolCall, ToolError,
    Tools, ToolsExt as _, Turn, TurnReport, decide_fn, schemars, tool_fn,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The whole state of the loop. This is stored while calls are pending.
#[derive(Serialize, Deserialize)]
struct Conversation {
    messages: Vec<ChatCompletionRequestMessage>,
    /// The number of responses so far. Together with the run id, it is part of what an approval is bound to.
    responses: u32,
    waiting: Option<SuspendedTurn>,
}

/// The loop, whose turns refuse answers without fingerprints.
struct Loop {
    turn: Turn,
}

impl Loop {
    fn new() -> Self {
        Self { turn: Turn::new(tools()).require_bound_answers() }
    }

    /// Runs until a response has no calls, or until calls are pending.
    async fn go(&self, mut talk: Conversation) -> Result<Conversation, BoxError> {
        while talk.waiting.is_none() {
            let mut message = canned(&self.request(&talk).await?)?;
            let calls = enter(&mut message, &talk)?;
            if let Some(text) = &message.content {
                println!("assistant: {text}");
            }
            talk.messages.push(from_model(message).into());
            if calls.is_empty() {
                break;
            }
            let turn = self.turn.clone().of_run("run-1", talk.responses);
            talk.responses += 1;
            // An error carries the state of the response (`suspended`): calls that ran would not run again.
            take_in(&mut talk, turn.run(calls).await?);
        }
        Ok(talk)
    }

    /// Answers the pending calls, and continues the loop.
    async fn resume(
        &self,
        mut talk: Conversation,
        answers: DeferredToolResults,
    ) -> Result<Conversation, BoxError> {
        let waiting = talk.waiting.take().ok_or("nothing waits")?;
        take_in(&mut talk, self.turn.resume(waiting, answers).await?);
        self.go(talk).await
    }

    /// A request with all messages and the current tool definitions.
    async fn request(&self, talk: &Conversation) -> Result<CreateChatCompletionRequest, BoxError> {
        let definitions = self.turn.definitions().await?;
        let tools = definitions.iter().map(|tool| {
            let function = FunctionObject {
                name: tool.name().to_owned(),
                description: Some(tool.description().to_owned()),
                parameters: Some(tool.parameters().clone()),
                strict: None,
            };
            ChatCompletionTools::Function(ChatCompletionTool { function })
        });
        Ok(CreateChatCompletionRequest {
            messages: talk.messages.clone(),
            tools: Some(tools.collect()),
            ..Default::default()
        })
    }
}

/// Converts the calls of a response. [`admit`] replaces an id that was used before, and the new id is also written to
/// the history, so that every result matches its call.
fn enter(
    message: &mut ChatCompletionResponseMessage,
    talk: &Conversation,
) -> Result<Vec<ToolCall>, BoxError> {
    let mut read = Vec::new();
    for call in message.tool_calls.iter().flatten() {
        let WireCall::Function(call) = call else { return Err("no such tool was offered".into()) };
        // The arguments stay text here: the turn parses them, and sends unreadable ones back to the model without
        // asking a person.
        let args = call.function.arguments.as_str();
        read.push(ToolCall::new(call.id.as_str(), call.function.name.as_str(), args));
    }
    let used: Vec<&str> = talk.messages.iter().filter_map(result_id).collect();
    let calls = admit(read, &used);
    for (wire, call) in message.tool_calls.iter_mut().flatten().zip(&calls) {
        if let WireCall::Function(wire) = wire {
            call.id().clone_into(&mut wire.id);
        }
    }
    Ok(calls)
}

/// Adds one tool message per call, in the model's order; or keeps the whole response as suspended.
fn take_in(talk: &mut Conversation, report: TurnReport) {
    if report.suspended().is_none() {
        talk.messages.extend(report.calls().iter().map(|call| {
            let content = call.outcome().text().unwrap_or_default();
            let tool_call_id = call.call().id().to_owned();
            ChatCompletionRequestToolMessage { content: content.into(), tool_call_id }.into()
        }));
    }
    talk.waiting = report.into_suspended();
}

fn from_model(message: ChatCompletionResponseMessage) -> ChatCompletionRequestAssistantMessage {
    ChatCompletionRequestAssistantMessage {
        content: message.content.map(Into::into),
        tool_calls: message.tool_calls,
        ..Default::default()
    }
}

/// The id of the call that a message is the result of.
fn result_id(message: &ChatCompletionRequestMessage) -> Option<&str> {
    match message {
        ChatCompletionRequestMessage::Tool(result) => Some(&result.tool_call_id),
        _ => None,
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Fruit {
    fruit: String,
}

/// Looking up a price is allowed; buying needs an approval.
fn tools() -> Tools {
    let stall = FunctionToolset::new()
        .tool(tool_fn("get_price", "The price of a fruit", async |args: Fruit| {
            println!("  > looked up {}", args.fruit);
            Ok::<_, ToolError>(json!({"euros": 2}))
        }))
        .tool(tool_fn("buy", "Buys a fruit", async |args: Fruit| {
            println!("  > bought: {}", args.fruit);
            Ok::<_, ToolError>(format!("bought: {}", args.fruit))
        }));
    stall.layered(decide_fn(|_, call| match call.name() {
        "get_price" => Decision::allow(),
        _ => Decision::ask("spends money").with_key("buy"),
    }))
}

/// A server's response, chosen by the number of assistant messages so far.
fn canned(
    request: &CreateChatCompletionRequest,
) -> Result<ChatCompletionResponseMessage, BoxError> {
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let assistant = |it: &&_| matches!(it, ChatCompletionRequestMessage::Assistant(_));
    let message = match request.messages.iter().filter(assistant).count() {
        0 => {
            json!({"role": "assistant", "content": "I look up the price, and buy one.", "tool_calls": [
                call("call_1", "get_price", r#"{"fruit": "apple"}"#),
                call("call_2", "buy", r#"{"fruit": "apple"}"#),
            ]})
        }
        1 => json!({"role": "assistant", "content": "Perhaps a pear too.", "tool_calls": [
            call("call_1", "get_price", r#"{"fruit": "pear"}"#),
            call("call_9", "buy", r#"{"fruit": "pe"#),
        ]}),
        _ => {
            json!({"role": "assistant", "content": "An apple costs 2 euros, and you have one. I leave the pear."})
        }
    };
    let response: CreateChatCompletionResponse = serde_json::from_value(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "canned", "usage": null,
        "choices": [{"index": 0, "message": message, "finish_reason": null, "logprobs": null}],
    }))?;
    Ok(response.choices.into_iter().next().ok_or("the server sent no choice")?.message)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    println!("A line that begins with > is a tool that really runs.\n");
    let prompt = "What does an apple cost? Also buy me one.";
    println!("user: {prompt}");
    let prompt = ChatCompletionRequestUserMessage::from(prompt).into();
    let start = Conversation { messages: vec![prompt], responses: 0, waiting: None };
    let stored = serde_json::to_string(&Loop::new().go(start).await?)?;

    // Hours later, in another process: only the stored text is left.
    let talk: Conversation = serde_json::from_str(&stored)?;
    let requests = talk.waiting.as_ref().ok_or("nothing waits")?.requests();
    println!("\nThe loop has stopped, and {} bytes are stored. Pending:", stored.len());
    for call in &requests.approvals {
        let question = &requests.questions(call.id())[0];
        println!("  {}  {} {}: {}", call.id(), call.name(), call.args(), question.reason());
    }
    println!("ann approves it.\n");
    let answers = requests.answer().approve("call_2").answered_by("ann").build()?;
    let talk = Loop::new().resume(talk, answers).await?;

    println!("\nThe messages, as the server has them:");
    for message in &talk.messages {
        println!("  {}", serde_json::to_string(message)?);
    }
    Ok(())
}
