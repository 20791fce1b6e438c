//! A4 over random answers: strict and total, inline and on resume alike, and nothing deferred has executed before.

use std::collections::BTreeSet;

use countersign::call::ToolKind;
use countersign::deferred::ToolApproved;
use countersign::handler::handler_fn_sync;
use countersign::turn::TurnError;
use countersign::{Args, DeferredToolResults, Error, ToolDefinition, Turn, TurnReport, UserError};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call, cases};

/// The calls of the response: two to approve, one executed elsewhere, one ordinary, and an unknown id.
const IDS: [&str; 5] = ["d1", "d2", "s1", "r1", "who?"];
const PENDING: [&str; 3] = ["d1", "d2", "s1"];

/// The answer to one id.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Said {
    Approved,
    Denied,
    Edited,
    EditedBadly,
    Result,
    Left,
}

fn said() -> impl Strategy<Value = Vec<(usize, Said)>> {
    let one = prop_oneof![
        4 => Just(Said::Approved),
        2 => Just(Said::Denied),
        1 => Just(Said::Edited),
        1 => Just(Said::EditedBadly),
        3 => Just(Said::Result),
        2 => Just(Said::Left),
    ];
    let at = prop_oneof![6 => 0..3_usize, 1 => 3..5_usize];
    prop::collection::vec((at, one), 0..6)
}

fn results(said: &[(usize, Said)]) -> DeferredToolResults {
    said.iter().fold(DeferredToolResults::new(), |results, (at, said)| {
        let id = IDS[*at];
        match said {
            Said::Approved => results.approve(id),
            Said::Denied => results.deny(id, "no"),
            Said::Edited => results.approval(id, ToolApproved::with_args(Args::new().with("n", 7))),
            Said::EditedBadly => {
                results.approval(id, ToolApproved::with_args(Args::new().with("invalid", 7)))
            }
            Said::Result => results.result(id, "from elsewhere"),
            Said::Left => results.leave(id),
        }
    })
}

/// Returns `true` if these answers may take effect, by the words of the rule.
fn fits(said: &[(usize, Said)]) -> bool {
    let results = results(said);
    let ways = |id: &str| {
        [results.approvals.contains_key(id), results.calls.contains_key(id), results.is_left(id)]
    };
    let one_each = PENDING.iter().all(|id| ways(id).into_iter().filter(|way| *way).count() == 1);
    let nothing_else = ["r1", "who?"].iter().all(|id| ways(id) == [false; 3]);
    let right_kind = !results.calls.contains_key("d1")
        && !results.calls.contains_key("d2")
        && !results.approvals.contains_key("s1");
    let invalid = |approval: &countersign::deferred::ToolApproval| matches!(approval, countersign::deferred::ToolApproval::Approved(it) if it.override_args.as_ref().is_some_and(|args| args.get("invalid").is_some()));
    one_each && nothing_else && right_kind && !results.approvals.values().any(invalid)
}

fn tools() -> Recorder {
    let of = |name, kind| ToolDefinition::new(name, json!({"type": "object"})).with_kind(kind);
    Recorder::of([
        of("delete", ToolKind::Unapproved),
        of("search", ToolKind::External),
        of("read", ToolKind::Function),
    ])
}

fn response() -> Vec<countersign::ToolCall> {
    ["d1", "s1", "r1", "d2"]
        .map(|id| {
            let tool = match &id[..1] {
                "d" => "delete",
                "s" => "search",
                _ => "read",
            };
            call(id, tool, json!({"n": 1}))
        })
        .to_vec()
}

/// What must hold of a turn that these answers were given to.
fn holds(
    said: &[(usize, Said)],
    ended: &Result<TurnReport, TurnError>,
    ran: &Recorder,
) -> Result<(), TestCaseError> {
    let ran: BTreeSet<String> = ran.ids().into_iter().collect();
    if fits(said) {
        let results = results(said);
        prop_assert!(ended.is_ok(), "{ended:?}");
        for id in ["d1", "d2"] {
            let approved = matches!(
                results.approvals.get(id),
                Some(countersign::deferred::ToolApproval::Approved(_))
            );
            prop_assert_eq!(ran.contains(id), approved);
        }
        return Ok(());
    }
    let Err(error) = ended else {
        return Err(TestCaseError::fail(format!("{said:?} was accepted")));
    };
    prop_assert!(matches!(error.error(), Error::Answers(_)), "{error:?}");
    prop_assert!(!error.error().ids().is_empty(), "the error names the calls: {error}");
    prop_assert_eq!(ran, BTreeSet::from(["r1".to_owned()]), "nothing deferred has executed");
    let waiting: Vec<_> =
        error.suspended().unwrap().requests().iter().map(|call| call.id().to_owned()).collect();
    prop_assert_eq!(waiting, ["d1", "d2", "s1"], "the questions stand as they were");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_take_effect_as_a_whole_or_not_at_all(said in said()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let inline = tools();
        let given = results(&said);
        let handler = handler_fn_sync(move |_, _| Ok::<_, UserError>(given.clone()));
        let ended = runtime.block_on(Turn::new(inline.clone()).deferred_tool_handler(handler).run(response()));
        holds(&said, &ended, &inline)?;

        let resumed = tools();
        let turn = Turn::new(resumed.clone());
        let suspended = runtime.block_on(turn.run(response())).unwrap().into_suspended().unwrap();
        let ended = runtime.block_on(turn.resume(suspended, results(&said)));
        holds(&said, &ended, &resumed)?;
    }
}
