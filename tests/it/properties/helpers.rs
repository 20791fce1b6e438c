//! A4 over random batches: what the helpers build fits, whatever the batch; what is left over and what is answered are
//! the whole; and answers of several people join in any order.

use std::collections::BTreeSet;

use countersign::call::ToolKind;
use countersign::deferred::{Answers, ToolApproved};
use countersign::outcome::{CallDeferred, ModelRetry};
use countersign::{AnswerError, DeferredToolRequests, DeferredToolResults, ToolDefinition, Turn};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call, cases, words};

/// The kind of answer that a call of the response needs, if any.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Ordinary,
    Approval,
    External,
    Question,
}

impl Kind {
    fn tool(self) -> &'static str {
        match self {
            Self::Ordinary => "read",
            Self::Approval => "delete",
            Self::External => "search",
            Self::Question => "question",
        }
    }
}

/// The answer to a pending call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    Leaves,
    SaysYes,
    SaysNo,
    Edits,
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind =
        prop::sample::select(vec![Kind::Ordinary, Kind::Approval, Kind::External, Kind::Question]);
    prop::collection::vec(kind, 0..6)
}

fn does() -> impl Strategy<Value = Vec<Does>> {
    let does = prop::sample::select(vec![
        Does::Nothing,
        Does::Leaves,
        Does::SaysYes,
        Does::SaysNo,
        Does::Edits,
    ]);
    prop::collection::vec(does, 6)
}

fn turn() -> (Turn, Recorder) {
    let of = |name, kind| ToolDefinition::new(name, json!({"type": "object"})).with_kind(kind);
    let recorder = Recorder::of([
        of("read", ToolKind::Function),
        of("delete", ToolKind::Unapproved),
        of("search", ToolKind::External),
        of("question", ToolKind::Function),
    ]);
    let recorder = recorder.body(|_, call| match call.name() {
        "question" => Err(CallDeferred::question().into()),
        _ => Ok(call.args().to_value()),
    });
    (Turn::new(recorder.clone()).of_run("run", 0).require_bound_answers(), recorder)
}

fn calls(kinds: &[Kind]) -> Vec<countersign::ToolCall> {
    let call = |(n, kind): (usize, &Kind)| call(&format!("c{n}"), kind.tool(), json!({"n": n}));
    kinds.iter().enumerate().map(call).collect()
}

/// The number of a call, from its id.
fn number(id: &str) -> usize {
    id[1..].parse().unwrap()
}

/// Answers every call of the batch.
fn say<'a>(
    mut answers: Answers<'a>,
    requests: &'a DeferredToolRequests,
    does: &[Does],
) -> Answers<'a> {
    for call in requests.iter() {
        let (id, approval) = (call.id(), requests.approvals.contains(call));
        answers = match (does[number(id)], approval) {
            (Does::Nothing, _) => answers,
            (Does::Leaves, _) => answers.leave(id),
            (Does::SaysYes, true) => answers.approve(id),
            (Does::SaysNo, true) => answers.deny(id, "no"),
            (Does::Edits, true) => {
                answers.approval(id, ToolApproved::with_args(call.args().clone()))
            }
            (Does::SaysNo, false) => answers.result(id, ModelRetry::new("again")),
            (Does::SaysYes | Does::Edits, false) => answers.result(id, 1),
        };
    }
    answers
}

fn ids(requests: Option<&DeferredToolRequests>) -> BTreeSet<String> {
    requests
        .into_iter()
        .flat_map(DeferredToolRequests::iter)
        .map(|call| call.id().to_owned())
        .collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    // `requests.answer()` … `build()` is taken by the turn, and what it says happens.
    #[test]
    fn built_answers_are_accepted_for_any_batch(kinds in kinds(), does in does(), rest in 0..3) {
        block_on(async {
            let (turn, recorder) = turn();
            let report = turn.run(calls(&kinds)).await.unwrap();
            let Some(suspended) = report.into_suspended() else { return Ok(()) };
            let requests = suspended.requests();
            let answers = say(requests.answer(), &requests, &does);
            let open = ids(requests.remaining(&answers.clone().unchecked()).as_ref());
            let answers = match rest {
                0 => answers.leave_rest(),
                1 => answers.deny_rest("no"),
                _ => answers.approve_tool("delete").leave_rest(),
            };
            let answers = answers.answered_by("ann").build();
            prop_assert!(answers.is_ok(), "{answers:?}");
            let stored = serde_json::to_string(&answers.unwrap()).unwrap();
            let answers: DeferredToolResults = serde_json::from_str(&stored).unwrap();
            let report = turn.resume(suspended, answers.clone()).await;
            prop_assert!(report.is_ok(), "{report:?}");
            let report = report.unwrap();
            let waiting: BTreeSet<_> = answers.left().map(str::to_owned).collect();
            prop_assert_eq!(ids(report.deferred().as_ref()), waiting.clone(), "what is left waits");
            for call in recorder.ran().into_iter().filter(|ran| ran.tool == "delete") {
                let said = does[number(&call.id)];
                let rest = open.contains(&call.id) && rest == 2;
                prop_assert!(rest || matches!(said, Does::SaysYes | Does::Edits), "{} was not approved", call.id);
            }
            prop_assert_eq!(words(&report).iter().filter(|word| **word == "deferred").count(), waiting.len());
            Ok(())
        })?;
    }

    // What is left over after some answers, with the answers to just that, is the whole.
    #[test]
    fn remaining_and_answered_calls_are_the_whole_batch(kinds in kinds(), does in does()) {
        block_on(async {
            let (turn, _) = turn();
            let Some(suspended) = turn.run(calls(&kinds)).await.unwrap().into_suspended() else { return Ok(()) };
            let requests = suspended.requests();
            let first = say(requests.answer(), &requests, &does).unchecked();
            let remaining = requests.remaining(&first);
            let said: BTreeSet<String> = first.approvals.keys().chain(first.calls.keys()).cloned()
                .chain(first.left().map(str::to_owned)).collect();
            let open = ids(remaining.as_ref());
            prop_assert!(said.is_disjoint(&open));
            prop_assert_eq!(said.union(&open).cloned().collect::<BTreeSet<_>>(), ids(Some(&requests)));

            let whole = match &remaining {
                Some(remaining) => {
                    let later = remaining.answer().deny_rest("no").build().unwrap();
                    prop_assert_eq!(remaining.remaining(&later), None);
                    first.merge(later).unwrap()
                }
                None => first,
            };
            prop_assert_eq!(requests.remaining(&whole), None);
            prop_assert!(turn.resume(suspended, whole).await.is_ok());
            Ok(())
        })?;
    }

    // A3: in any order the same, or the same calls in contradiction; and no answer is overturned or lost.
    #[test]
    fn answers_join_in_any_order(kinds in kinds(), does in prop::collection::vec(does(), 3)) {
        block_on(async {
            let (turn, _) = turn();
            let Some(suspended) = turn.run(calls(&kinds)).await.unwrap().into_suspended() else { return Ok(()) };
            let requests = suspended.requests();
            let by = |n: usize| say(requests.answer(), &requests, &does[n]).answered_by(["ann", "bob", "cy"][n]).unchecked();
            let (ann, bob, cy) = (by(0), by(1), by(2));
            let merged = ann.clone().merge(bob.clone());
            prop_assert_eq!(&merged, &bob.clone().merge(ann.clone()), "commutative");
            let answered = |set: &DeferredToolResults| -> BTreeSet<String> {
                set.approvals.keys().chain(set.calls.keys()).cloned().collect()
            };
            let both: Vec<String> = answered(&ann).intersection(&answered(&bob)).cloned().collect();
            match &merged {
                Ok(whole) => {
                    prop_assert!(both.is_empty());
                    for one in [&ann, &bob] {
                        prop_assert!(one.approvals.iter().all(|(id, answer)| whole.approvals.get(id) == Some(answer)));
                        prop_assert!(one.calls.iter().all(|(id, result)| whole.calls.get(id) == Some(result)));
                        prop_assert!(one.answered_by.iter().all(|(id, who)| whole.answered_by.get(id) == Some(who)));
                    }
                    prop_assert_eq!(answered(whole).len(), answered(&ann).len() + answered(&bob).len());
                    prop_assert!(whole.left().all(|id| !answered(whole).contains(id)));
                }
                Err(error) => prop_assert_eq!(error, &AnswerError::Contradictory { ids: both }),
            }
            let left = merged.and_then(|both| both.merge(cy.clone()));
            let right = bob.merge(cy).and_then(|both| ann.merge(both));
            prop_assert_eq!(left.ok(), right.ok(), "associative");
            Ok(())
        })?;
    }
}
