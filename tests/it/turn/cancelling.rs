//! Dropping a turn at every await point.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use countersign::handler::danger_approve_all;
use countersign::{Decision, RunContext, ToolCall, ToolsExt, Turn, decide_fn, from_fn};
use serde_json::json;

use crate::support::foreign::{Foreign, Mischief};
use crate::support::{Recorder, call};

/// T6: Dropping the turn … closes its pass: late or detached attempts get no permit. And whatever was started when the
/// turn was dropped was started once.
#[tokio::test]
async fn a_turn_can_be_dropped_at_every_await_point() {
    let mut finished = false;
    for polls in 0..200 {
        if finished {
            return;
        }
        let recorder = Recorder::new(["read", "delete"]);
        let policy = |_: &RunContext, call: &ToolCall| match call.name() {
            "delete" => Decision::ask("sure?"),
            _ => Decision::allow(),
        };
        let tools = recorder
            .clone()
            .layered(Foreign::new(Mischief::Retry))
            .layered(Foreign::new(Mischief::Detach))
            .layered(from_fn(async |_, _| {
                tokio::task::yield_now().await;
                Decision::allow()
            }))
            .layered(decide_fn(policy));
        let turn = Turn::new(tools).deferred_tool_handler(danger_approve_all());
        let calls = vec![
            call("c1", "read", json!({})),
            call("c2", "delete", json!({})),
            call("c3", "read", json!({})),
        ];
        {
            let mut running = pin!(turn.run(calls));
            let mut cx = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                if let Poll::Ready(report) = running.as_mut().poll(&mut cx) {
                    assert_eq!(report.unwrap().calls().len(), 3);
                    finished = true;
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let started = recorder.ran().len();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            recorder.ran().len(),
            started,
            "after {polls} polls: a detached attempt ran after the drop"
        );
        let mut ids = recorder.ids();
        ids.dedup();
        assert_eq!(ids.len(), started, "after {polls} polls: a body ran twice");
    }
    panic!("the turn never finished");
}
