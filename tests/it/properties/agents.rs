//! Properties that hold for every tree of agents (rule T7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use countersign::agent::{RunResult, text};
use countersign::handler::{DenyAll, danger_approve_all, handler_fn_sync};
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Decision, DeferredToolRequests, DeferredToolResults, FunctionToolset, Outcome,
    RunContext, SuspendedRun, ToolCall, Tools, ToolsExt, TurnReport, UserError, decide_fn,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call};

/// What the layers around an agent's tools say about each tool.
type Says = [u8; 3];

const TOOLS: [&str; 3] = ["t0", "t1", "t2"];

/// An agent: what its layers say, the tools its model calls in each response, who answers for it, and the agents
/// behind it, each of which is called in the first response.
#[derive(Debug, Clone)]
struct Node {
    says: Says,
    responses: Vec<Vec<u8>>,
    handler: u8,
    children: Vec<Node>,
}

fn node() -> impl Strategy<Value = Node> {
    let says = [0..8_u8, 0..8_u8, 0..8_u8];
    let responses = prop::collection::vec(prop::collection::vec(0..3_u8, 1..3), 1..3);
    let leaf = (says.clone(), responses.clone(), 0..3_u8)
        .prop_map(|(says, responses, handler)| Node { says, responses, handler, children: vec![] });
    leaf.prop_recursive(3, 6, 2, move |inner| {
        let children = prop::collection::vec(inner, 1..3);
        (says.clone(), responses.clone(), 0..3_u8, children).prop_map(
            |(says, responses, handler, children)| Node { says, responses, handler, children },
        )
    })
}

/// 0..=4 allow, 5 and 6 ask, 7 deny.
fn decision(says: u8) -> Decision {
    match says {
        0..=4 => Decision::allow(),
        5 | 6 => Decision::ask("sure?"),
        _ => Decision::deny("no"),
    }
}

fn layer(
    says: Says,
) -> impl Fn(&RunContext, &ToolCall) -> Decision + Clone + Send + Sync + 'static {
    move |_, call| {
        let at = TOOLS.iter().position(|tool| *tool == call.name());
        at.and_then(|at| says.get(at)).map_or_else(Decision::allow, |says| decision(*says))
    }
}

/// The agents, and what every layer on the way to each call says about it.
struct Built {
    recorder: Recorder,
    strictest: BTreeMap<String, u8>,
    next: usize,
}

impl Built {
    fn agent(&mut self, node: &Node, above: Says) -> Agent {
        let mut all = above;
        for (all, own) in all.iter_mut().zip(node.says) {
            *all = (*all).max(own);
        }
        let mut tools = vec![self.recorder.clone().layered(decide_fn(layer(node.says)))];
        let mut first = Vec::new();
        for (at, child) in node.children.iter().enumerate() {
            let name = format!("agent{at}");
            let set = FunctionToolset::new().id(name.clone());
            let child = self.agent(child, all);
            tools.push(
                set.tool(child.as_tool(name.as_str(), "Works"))
                    .layered(decide_fn(layer(node.says))),
            );
            self.next += 1;
            first.push(call(&format!("c{}", self.next), &name, json!({"prompt": "work"})));
        }
        let mut responses = Vec::new();
        for response in &node.responses {
            let mut calls = std::mem::take(&mut first);
            for tool in response {
                self.next += 1;
                let id = format!("c{}", self.next);
                self.strictest.insert(id.clone(), all[usize::from(*tool)]);
                calls.push(call(&id, TOOLS[usize::from(*tool)], json!({"n": 1})));
            }
            responses.push(ModelResponse::calls(calls));
        }
        let agent = Agent::new(ScriptedModel::new(responses), Tools::combined(tools));
        match node.handler {
            0 => agent,
            1 => agent.deferred_tool_handler(danger_approve_all()),
            _ => agent.deferred_tool_handler(DenyAll::default()),
        }
    }
}

/// Answers in turn from a list: 0..=2 approve, 3 deny, 4 leave.
#[derive(Clone)]
struct Approver {
    says: Vec<u8>,
    at: Arc<AtomicUsize>,
    approved: Arc<Mutex<BTreeSet<String>>>,
    denied: Arc<Mutex<BTreeSet<String>>>,
}

impl Approver {
    fn answer(&self, requests: &DeferredToolRequests, may_leave: bool) -> DeferredToolResults {
        let mut answers = requests.answer();
        for call in requests.iter() {
            let at = self.at.fetch_add(1, Ordering::Relaxed);
            let id = call.id();
            let last = id.rsplit('/').next().unwrap().to_owned();
            match self.says.get(at % self.says.len()) {
                Some(3) => {
                    self.denied.lock().unwrap().insert(last);
                    answers = answers.deny(id, "no");
                }
                Some(4) if may_leave => answers = answers.leave(id),
                _ => {
                    self.approved.lock().unwrap().insert(last);
                    answers = answers.approve(id);
                }
            }
        }
        answers.build().unwrap()
    }
}

/// Runs the tree to its end: inline, and in up to three rounds from the stored form; what is left then is denied.
async fn play(root: &Agent, approver: &Approver, inline: bool) -> RunResult {
    let handler = {
        let approver = approver.clone();
        handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            Ok::<_, UserError>(approver.answer(requests, true))
        })
    };
    let run = root.run("go");
    let mut result = if inline {
        run.deferred_tool_handler(handler).await
    } else {
        run.without_deferred_tool_handler().await
    }
    .unwrap();
    for round in 0.. {
        let Some(suspended) = result.suspended() else { break };
        assert!(round < 40, "the run does not end");
        let suspended: SuspendedRun =
            serde_json::from_str(&serde_json::to_string(suspended).unwrap()).unwrap();
        let answers = approver.answer(&suspended.requests(), round < 3);
        result = root.resume(suspended, answers).without_deferred_tool_handler().await.unwrap();
    }
    result
}

/// Every call of the reports has one outcome, and none waits.
fn all_settled(turns: &[TurnReport]) -> bool {
    turns
        .iter()
        .flat_map(TurnReport::calls)
        .all(|call| !matches!(call.outcome(), Outcome::Deferred(_)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// "It inherits the ancestors' middleware (decisions only), so it can only be narrower; its own handlers may deny
    /// or leave, only the root's approve. … it resumes where it stopped."
    #[test]
    fn no_tree_of_agents_runs_denied_or_unapproved_calls(
        tree in node(), says in prop::collection::vec(0..5_u8, 1..12), inline in any::<bool>(),
    ) {
        let recorder = Recorder::new(TOOLS);
        let mut built = Built { recorder: recorder.clone(), strictest: BTreeMap::new(), next: 0 };
        let root = built.agent(&tree, [0; 3]).output(text().or_deferred());
        let approver = Approver {
            says,
            at: Arc::default(),
            approved: Arc::default(),
            denied: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(play(&root, &approver, inline));

        let ids = recorder.ids();
        let once: BTreeSet<_> = ids.iter().cloned().collect();
        prop_assert_eq!(ids.len(), once.len(), "a call ran twice: {:?}", ids);
        let approved = approver.approved.lock().unwrap().clone();
        for id in &once {
            match built.strictest[id] {
                0..=4 => {}
                5 | 6 => prop_assert!(approved.contains(id), "{id} ran without an approval"),
                _ => prop_assert!(false, "{id} ran against a denial"),
            }
            prop_assert!(!approver.denied.lock().unwrap().contains(id), "{id} ran against a no");
        }
        prop_assert!(all_settled(result.turns()));
        // What was allowed by all and reached, or approved, did run.
        for id in &approved {
            prop_assert!(once.contains(id), "{id} was approved and did not run");
        }
        let again = root.run("more").history(result.history().to_vec()).without_deferred_tool_handler();
        prop_assert!(runtime.block_on(again.into_future()).is_ok());
    }
}
