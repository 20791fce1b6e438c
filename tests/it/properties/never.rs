//! Properties that hold for every stack, batch and answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use countersign::deferred::ToolApproved;
use countersign::handler::handler_fn_sync;
use countersign::outcome::DeferralKind;
use countersign::{
    DeferredToolRequests, DeferredToolResults, Error, RunContext, SuspendedTurn, Turn, UserError,
};
use proptest::prelude::*;
use serde_json::json;

use super::model::{self, Ends, Execution, Level, Log, Says};
use crate::support::{call, cases};

/// How an approver answers a call.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Approve,
    Deny,
    Edit(u8),
    Leave,
}

/// What was answered, and when.
#[derive(Debug, Clone)]
struct Given {
    at: usize,
    id: String,
    yes: Option<Yes>,
}

#[derive(Debug, Clone)]
struct Yes {
    /// The arguments that were approved.
    n: u8,
    /// The questions that were shown.
    shown: Vec<(String, String)>,
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        5 => Just(Answer::Approve),
        2 => Just(Answer::Deny),
        1 => (0..6_u8).prop_map(Answer::Edit),
        1 => Just(Answer::Leave),
    ]
}

struct Played {
    levels: Vec<Level>,
    executions: Vec<Execution>,
    given: Vec<Given>,
    /// The bodies that were started after the last turn had ended.
    late: usize,
}

/// Plays a response: the first pass, with a handler that answers inline or without one, then up to four rounds of
/// answers, each from the stored form.
fn play(levels: Vec<Level>, calls: &[(Ends, u8)], answers: &[Answer], inline: bool) -> Played {
    let log = Log::default();
    let given = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (log, given, asked, answers) =
            (log.clone(), Arc::clone(&given), Arc::clone(&asked), answers.to_vec());
        handler_fn_sync(move |_: &RunContext, requests: &DeferredToolRequests| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok::<_, UserError>(decide(requests, &answers, 3, &log, &mut given.lock().unwrap()))
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let late = runtime.block_on(async {
        let turn = Turn::new(model::build(&levels, &log)).max_deferrals(4);
        let ids = (0..calls.len()).map(|at| format!("c{at}")).collect::<Vec<_>>();
        let response = calls
            .iter()
            .zip(&ids)
            .map(|((ends, n), id)| call(id, ends.tool(), json!({"n": n})))
            .collect();
        let first = if inline { turn.clone().deferred_tool_handler(handler) } else { turn.clone() };
        let mut waiting = ended(&first.run(response).await, &ids);
        assert!(
            asked.load(Ordering::Relaxed) <= 1,
            "T2, T4: the handler is asked once per response"
        );
        for round in 0..4 {
            let Some(suspended) = waiting else { break };
            let stored = serde_json::to_string(&suspended).unwrap();
            let suspended: SuspendedTurn = serde_json::from_str(&stored).unwrap();
            let results =
                decide(&suspended.requests(), answers, round, &log, &mut given.lock().unwrap());
            waiting = ended(&turn.resume(suspended, results).await, &ids);
        }
        let before = log.executions().len();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        log.executions().len() - before
    });
    let given = given.lock().unwrap().clone();
    Played { levels, executions: log.executions(), given, late }
}

/// Checks the form of the result of a turn, and returns the calls that still wait.
fn ended(
    result: &Result<countersign::TurnReport, countersign::turn::TurnError>,
    ids: &[String],
) -> Option<SuspendedTurn> {
    let (report, suspended) = match result {
        Ok(report) => (report, report.suspended().cloned()),
        Err(error) => {
            assert!(matches!(error.error(), Error::Tool { .. } | Error::User(_)), "{error:?}");
            assert!(
                error.suspended().is_some(),
                "T9: every error after something ran carries the suspended state"
            );
            (error.report(), error.suspended().cloned())
        }
    };
    // T3: every call has exactly one result, in model order.
    let reported: Vec<_> = report.calls().iter().map(|call| call.call().id().to_owned()).collect();
    assert_eq!(reported, ids);
    suspended.filter(|suspended| !suspended.requests().is_empty())
}

fn decide(
    requests: &DeferredToolRequests,
    answers: &[Answer],
    round: usize,
    log: &Log,
    given: &mut Vec<Given>,
) -> DeferredToolResults {
    let mut building = requests.answer();
    for (index, call) in requests.iter().enumerate() {
        let id = call.id();
        if requests.kind(id) != Some(DeferralKind::Approval) {
            building = building.result(id, "from elsewhere");
            continue;
        }
        let shown = requests
            .questions(id)
            .iter()
            .map(|it| (it.layer().to_owned(), it.key().to_owned()))
            .collect();
        let yes = |n| Some(Yes { n, shown });
        let (next, yes) = match answers[(index + round) % answers.len()] {
            Answer::Approve => (building.approve(id), yes(model::number(call))),
            Answer::Edit(n) => (
                building.approval(id, ToolApproved::with_args(call.args().clone().with("n", n))),
                yes(n),
            ),
            Answer::Deny => (building.deny(id, "no"), None),
            Answer::Leave => {
                building = building.leave(id);
                continue;
            }
        };
        building = next;
        given.push(Given { at: log.tick(), id: id.to_owned(), yes });
    }
    building.build().unwrap()
}

/// The questions that the stack asks about these arguments, and whether it would let them pass.
fn verdict(levels: &[Level], n: u8) -> Result<Vec<(String, String)>, Says> {
    let mut questions = Vec::new();
    for (at, level) in levels.iter().enumerate() {
        for (member, table) in level.tables().iter().enumerate() {
            match table.says(n) {
                Says::Allow => {}
                // It made these arguments itself, and so has decided on them.
                _ if table.makes(n) => {}
                Says::Ask => questions.push((format!("level {at}.{member}"), format!("ask {n}"))),
                Says::AskAndRewrite(to) if to == n => {
                    questions.push((format!("level {at}.{member}"), format!("ask {n}")));
                }
                Says::Rewrite(to) if to == n => {}
                other => return Err(other),
            }
        }
    }
    Ok(questions)
}

/// The promise: no tool body ran that was not allowed by all, or approved for exactly these arguments and questions.
fn was_allowed_or_approved(played: &Played, execution: &Execution) {
    let questions = match verdict(&played.levels, execution.n) {
        Ok(questions) => questions,
        Err(said) => panic!(
            "D1, D3: {execution:?} ran, though a middleware says {said:?} of these arguments"
        ),
    };
    let before = |given: &&Given| given.id == execution.id && given.at < execution.at;
    if let Some(no) = played.given.iter().find(|given| before(given) && given.yes.is_none()) {
        panic!("A3: {execution:?} ran after {no:?}");
    }
    let covered = |yes: &Yes| {
        yes.n == execution.n && questions.iter().all(|question| yes.shown.contains(question))
    };
    let last = played.given.iter().rfind(before).and_then(|given| given.yes.as_ref());
    if questions.is_empty() && last.is_none() {
        return;
    }
    assert!(
        last.is_some_and(covered),
        "A1: {execution:?} ran with {questions:?}, and the approval was {last:?}"
    );
    assert!(execution.approved, "{execution:?}");
}

/// The promise: no call ran twice, except for bodies that deferred, and calls without a question that ended with an
/// error.
fn ran_once(calls: &[(Ends, u8)], executions: &[Execution]) {
    let mut by_id: BTreeMap<&str, Vec<&Execution>> = BTreeMap::new();
    for execution in executions {
        by_id.entry(&execution.id).or_default().push(execution);
    }
    for (id, executions) in by_id {
        let (ends, _) = calls[id[1..].parse::<usize>().unwrap()];
        let failed = matches!(ends, Ends::Failed | Ends::Retry | Ends::Fatal | Ends::Panics);
        for pair in executions.windows(2) {
            let again = pair[0].deferred || failed && !pair[0].approved && !pair[1].approved;
            assert!(again, "{id} ran twice: {pair:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(3000), failure_persistence: None, ..ProptestConfig::default() })]

    // "A pass is executed at most once"; D1, D3, A1, A3, T3, T6, T9.
    #[test]
    fn only_allowed_or_approved_calls_run_and_none_twice(
        levels in model::levels(),
        calls in model::calls(),
        answers in prop::collection::vec(answer(), 1..5),
        inline: bool,
    ) {
        let played = play(levels, &calls, &answers, inline);
        for execution in &played.executions {
            was_allowed_or_approved(&played, execution);
        }
        ran_once(&calls, &played.executions);
        prop_assert_eq!(played.late, 0, "T6: a late or detached attempt gets no permit");
    }
}
