//! The agent whose runs are in the corpus. Its layers and tools do not change, as approvals are bound to them; a new
//! version of the corpus only adds others.

use std::borrow::Cow;
use std::future::pending;
use std::time::Duration;

use countersign::agent::text;
use countersign::call::ToolKind;
use countersign::message::ResponsePart;
use countersign::model::ModelResponse;
use countersign::outcome::{CallDeferred, ModelRetry, ToolFailed};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Decision, FunctionToolset, RunContext, ToolCall, ToolDefinition, ToolError,
    ToolMiddleware, ToolMiddlewareExt, Tools, ToolsExt, schemars, tool_fn,
};
use serde_json::{Value, json};
use tower::timeout::TimeoutLayer;

use crate::support::{Recorder, call};

struct Rules;

impl ToolMiddleware for Rules {
    fn name(&self) -> Cow<'static, str> {
        "Rules".into()
    }

    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        match call.name() {
            "pay" => asked(),
            "twice" => Decision::ask("the first time?"),
            "forbidden" => Decision::deny("not in this bank"),
            _ => Decision::allow(),
        }
    }
}

/// A question with everything that a question may have.
pub(super) fn asked() -> Decision {
    let large = Decision::ask("pays 6 €").with_key("large").with_pin("account", "a digest");
    large.with_metadata("risk", json!({"level": "high", "of": [1, 2.5, null]}))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// The tools, and the recorder of their runs.
pub(super) fn bank() -> Recorder {
    let of = |name: &str| ToolDefinition::new(name, json!({"type": "object"}));
    let plain = ["look", "pay", "twice", "forbidden", "fails", "again", "choose"].map(of);
    let delete = of("delete").with_kind(ToolKind::Unapproved).with_idempotent(true);
    let send = of("send").with_kind(ToolKind::External);
    let bank = Recorder::of(plain.into_iter().chain([delete, send])).id("bank");
    bank.body(|cx, call| match call.name() {
        "twice" => cx.approved_for("the second time?").map(|()| json!("twice")).map_err(Into::into),
        "fails" => Err(ToolFailed::new("out of money").into()),
        "again" => Err(ModelRetry::new("say how much").into()),
        "choose" => {
            Err(CallDeferred::question().with_metadata("of", json!(["red", "blue"])).into())
        }
        name => Ok(json!({"did": name, "with": call.args().to_value()})),
    })
}

/// The agent, with scripted models.
pub(super) fn agent(says: ScriptedModel, worker_says: ScriptedModel, bank: &Recorder) -> Agent {
    let asking = |bank: &Recorder| bank.clone().layered(Rules.into_layer());
    let worker = Agent::new(worker_says, asking(bank));
    let never = |_: Nothing| pending::<Result<String, ToolError>>();
    let hangs = FunctionToolset::new().tool(tool_fn("hangs", "Never ends", never));
    let tools = Tools::combined([
        asking(bank),
        hangs.layered(TimeoutLayer::new(Duration::from_millis(50))),
        FunctionToolset::new().tool(worker.as_tool("worker", "Works")).into(),
    ]);
    Agent::new(says, tools).output(text().or_deferred())
}

/// The agent with models whose scripts have ended, but for the last words of the worker, which the corpus has recorded.
pub(super) fn resuming(bank: &Recorder) -> Agent {
    agent(ScriptedModel::new([]), ScriptedModel::new([]).then_text("done"), bank)
}

fn pay(id: &str) -> ToolCall {
    call(id, "pay", json!({"n": 6, "to": "é\n", "exactly": 9_007_199_254_740_993_u64}))
}

/// A response whose calls are settled or pending in every possible way.
pub(super) fn every_way() -> (ModelResponse, ModelResponse) {
    let of = |id: &str, tool: &str| call(id, tool, json!({"n": 1}));
    let mut says = ModelResponse::calls([
        of("c1", "look"),
        of("c2", "forbidden"),
        of("c3", "fails"),
        of("c4", "again"),
        call("c5", "hangs", json!({})),
        pay("c6"),
        of("c7", "delete"),
        of("c8", "send"),
        of("c9", "choose"),
        call("c10", "worker", json!({"prompt": "pay it"})),
    ])
    .saying("One after the other.");
    says.parts.insert(0, thoughts());
    (says, ModelResponse::calls([pay("w1"), of("w2", "look")]))
}

fn thoughts() -> ResponsePart {
    let some = |text: &str| Some(text.to_owned());
    ResponsePart::Thinking {
        content: "First I look.".into(),
        signature: some("c2lnbmF0dXJl"),
        id: some("t1"),
        provider_name: some("anthropic"),
    }
}

/// Two calls, of which the body of one asks again.
pub(super) fn two() -> ModelResponse {
    ModelResponse::calls([
        call("a1", "twice", json!({"n": 1})),
        call("a2", "delete", json!({"n": 2})),
    ])
}

/// One call that is asked about.
pub(super) fn one() -> ModelResponse {
    ModelResponse::calls([pay("b1")])
}

/// The executed calls: tool, id and arguments, in the order of the ids.
pub(super) fn ran(bank: &Recorder) -> Value {
    let mut ran: Vec<_> = bank.ran().into_iter().map(|it| (it.id, it.tool, it.args)).collect();
    ran.sort_by(|a, b| a.0.cmp(&b.0));
    json!(ran)
}
