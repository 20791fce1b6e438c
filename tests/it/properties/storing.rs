//! Every suspended state reads back (rule L7), at any nesting of its values.

use countersign::agent::text;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Args, Decision, Error, FunctionToolset, SuspendedRun, ToolCall, Tools, ToolsExt,
    UserError, decide_fn,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::Recorder;

/// A value of this many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |value, level| match level % 2 {
        0 => json!([value]),
        _ => json!({"in": value}),
    })
}

/// What is nested how deep: the arguments of a call that runs and of one that waits, what the first gives, what a layer
/// makes of the second's arguments and says about it, and how many agents are around it all.
#[derive(Debug, Clone)]
struct Depths {
    runs: usize,
    waits: usize,
    as_text: bool,
    gives: usize,
    rewritten: Option<usize>,
    metadata: usize,
    agents: usize,
}

fn depths() -> impl Strategy<Value = Depths> {
    let levels = || prop_oneof![0..4_usize, 50..70_usize, 100..140_usize];
    let args = (levels(), levels(), any::<bool>());
    (args, levels(), prop::option::of(levels()), levels(), 0..5_usize).prop_map(
        |((runs, waits, as_text), gives, rewritten, metadata, agents)| Depths {
            runs,
            waits,
            as_text,
            gives,
            rewritten,
            metadata,
            agents,
        },
    )
}

fn tools(recorder: &Recorder, depths: &Depths) -> Tools {
    let (rewritten, metadata) = (depths.rewritten, depths.metadata);
    recorder.clone().layered(decide_fn(move |_, call: &ToolCall| {
        if call.name() != "pay" {
            return Decision::allow();
        }
        let ask = Decision::ask("sure?").with_metadata("deep", nested(metadata));
        match rewritten {
            Some(levels) => ask.with_args(Args::new().with("deep", nested(levels))),
            None => ask,
        }
    }))
}

fn agent(recorder: &Recorder, depths: &Depths) -> Agent {
    let args = |levels| match json!({"deep": nested(levels)}) {
        args if depths.as_text => json!(args.to_string()),
        args => args,
    };
    let calls = [
        ToolCall::new("runs", "list", args(depths.runs)),
        ToolCall::new("waits", "pay", args(depths.waits)),
    ];
    let model = ScriptedModel::new([ModelResponse::calls(calls)]);
    (0..depths.agents).fold(Agent::new(model, tools(recorder, depths)), |agent, level| {
        let set = FunctionToolset::new().id(format!("level {level}"));
        let call = ToolCall::new("c", "below", json!({"prompt": "go"}));
        let model = ScriptedModel::new([ModelResponse::calls([call])]);
        Agent::new(model, set.tool(agent.as_tool("below", "Works")))
    })
}

fn innermost(kind: &Error) -> &Error {
    match kind {
        Error::Agent { source, .. } => innermost(source),
        kind => kind,
    }
}

async fn check(depths: Depths) {
    let gives = depths.gives;
    let recorder = Recorder::new(["list", "pay"]).body(move |_, _| Ok(nested(gives)));
    let agent = agent(&recorder, &depths).output(text().or_deferred()).max_retries(10);
    let suspended = match agent.run("go").await {
        Ok(run) => match run.into_suspended() {
            Some(suspended) => {
                let text = serde_json::to_string(&suspended).unwrap();
                let back: SuspendedRun = serde_json::from_str(&text).unwrap();
                assert_eq!(back, suspended, "{depths:?}");
                assert_eq!(back.history(), suspended.history());
                back
            }
            None => return,
        },
        Err(error) => {
            let kind = innermost(error.error());
            let deep = matches!(kind, Error::User(UserError::StateTooDeep { .. }));
            assert!(deep, "{depths:?}: {error:?}");
            error.into_suspended()
        }
    };
    // Read back or still in memory: the run continues, and nothing runs twice.
    let requests = suspended.requests();
    let answers =
        requests.iter().fold(requests.answer(), |answers, call| answers.approve(call.id()));
    let ended = agent.resume(suspended, answers.build().unwrap()).await;
    if let Ok(run) = &ended {
        assert_eq!(run.text(), Some("Done."), "{depths:?}");
    }
    let ran = recorder.ids();
    assert!(ran.iter().filter(|id| *id == "runs").count() <= 1, "{depths:?}: {ran:?}");
    assert!(ran.iter().filter(|id| *id == "waits").count() <= 1, "{depths:?}: {ran:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // L7: "What could not be read again … is refused when it is written".
    #[test]
    fn every_suspended_state_reads_back(depths in depths()) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check(depths));
    }
}
