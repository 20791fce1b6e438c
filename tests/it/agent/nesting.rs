//! The levels to which agents may be nested (rule T10).

use std::future::Future;

use countersign::agent::{RunError, text};
use countersign::handler::danger_approve_all;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, DeferredToolResults, Error, FunctionToolset, SuspendedRun, Tools, ToolsExt,
};
use serde_json::json;

use crate::support::{Recorder, call, stored};

/// The limit unless it is set.
const LEVELS: usize = 16;

/// An agent over an agent over an agent, of which the last one calls `delete`.
fn nested(levels: usize, tools: Tools) -> Agent {
    let model = ScriptedModel::new([ModelResponse::calls([call("c", "delete", json!({}))])]);
    (0..levels).fold(Agent::new(model, tools), |agent, level| {
        let below = agent.as_tool("below", "Works on it");
        let tools = FunctionToolset::new().id(format!("level {level}")).tool(below);
        let calls = ModelResponse::calls([call("c", "below", json!({"prompt": "go"}))]);
        Agent::new(ScriptedModel::new([calls]), tools)
    })
}

/// Runs this on a thread with a stack of 2 MiB, as the threads of tokio have.
fn on_two_mib<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

/// The output of the agent at the bottom.
fn innermost(error: &RunError) -> &Error {
    let mut kind = error.error();
    while let Error::Agent { source, .. } = kind {
        kind = source;
    }
    kind
}

// T10: "16 levels run on a 2 MiB thread stack in a debug build".
#[test]
fn sixteen_levels_of_agents_run_on_a_stack_of_two_mib() {
    on_two_mib(|| async {
        let recorder = Recorder::new(["delete"]);
        let run = nested(LEVELS, recorder.clone().into()).run("go").await.unwrap();
        assert_eq!((run.text(), recorder.ids()), (Some("Done."), vec!["c".to_owned()]));

        let agent = nested(LEVELS, recorder.clone().approval_required());
        let run = agent.run("go").deferred_tool_handler(danger_approve_all()).await.unwrap();
        assert_eq!((run.text(), recorder.ran().len()), (Some("Done."), 2));
    });
}

// T10, L7: what 16 levels of agents wait for is stored, read back and answered, on the same stack.
#[test]
fn sixteen_levels_of_agents_are_stored_and_resumed_on_a_stack_of_two_mib() {
    on_two_mib(|| async {
        let recorder = Recorder::new(["delete"]);
        let agent = nested(LEVELS, recorder.clone().approval_required());
        let agent = agent.output(text().or_deferred());
        let run = agent.run("go").await.unwrap();
        let suspended: SuspendedRun = stored(run.suspended().unwrap());
        assert_eq!(Some(&suspended), run.suspended());
        let id = ["c"; LEVELS + 1].join("/");
        let answers = suspended.requests().answer().approve(&id).build().unwrap();
        let run = agent.resume(suspended, answers).await.unwrap();
        assert_eq!((run.text(), recorder.ids()), (Some("Done."), vec!["c".to_owned()]));
    });
}

// T10: "Agents nest to a limit … and then fail with an error"; T9: which carries the run, to continue under a higher
// limit.
#[tokio::test]
async fn one_level_too_many_is_an_error_that_can_be_resumed_under_a_higher_limit() {
    let recorder = Recorder::new(["delete"]);
    let agent = nested(LEVELS + 1, recorder.clone().into());
    let error = agent.run("go").await.unwrap_err();
    assert!(matches!(innermost(&error), Error::AgentsTooDeep { max: LEVELS }), "{error:?}");
    assert!(innermost(&error).to_string().contains("`max_nested_agents`"));
    assert!(recorder.ran().is_empty());

    let suspended: SuspendedRun = stored(error.suspended());
    let higher = agent.max_nested_agents(LEVELS as u32 + 1);
    let run = higher.resume(suspended, DeferredToolResults::new()).await.unwrap();
    assert_eq!((run.text(), recorder.ids()), (Some("Done."), vec!["c".to_owned()]));
}

// T7: "it can only be narrower": an agent below does not raise the limit of those above.
#[tokio::test]
async fn an_agent_cannot_raise_the_limit_of_its_parents() {
    let recorder = Recorder::new(["delete"]);
    let generous = nested(1, recorder.clone().into()).max_nested_agents(100);
    let below = FunctionToolset::new().tool(generous.as_tool("below", ""));
    let calls = ModelResponse::calls([call("c", "below", json!({"prompt": "go"}))]);
    let agent = Agent::new(ScriptedModel::new([calls]), below);
    let strict = agent.clone().max_nested_agents(1);
    let error = strict.run("go").await.unwrap_err();
    assert!(matches!(innermost(&error), Error::AgentsTooDeep { max: 1 }), "{error:?}");
    assert!(recorder.ran().is_empty());
    let agent = agent.max_nested_agents(2);
    let run = agent.resume(error.into_suspended(), DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c"]);
}
