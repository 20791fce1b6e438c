//! A call whose end was not seen: reported, or asked about anew, and never silently run again (rules L2, A1).

use std::time::Duration;

use countersign::agent::{TakeUp, text};
use countersign::call::Phase;
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Claimed, Decided, Ledger, Settled};
use countersign::message::RequestPart;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Decision, Message, Outcome, RunContext, ToolCall, ToolDefinition, ToolMiddleware,
    ToolMiddlewareExt, ToolsExt,
};
use proptest::prelude::*;
use serde_json::json;

use super::closing::{Fate, World};
use crate::support::failing_store::{Failing, How};
use crate::support::{Recorder, call};

/// Where its worker dies.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dies {
    InTheTool,
    BeforeSettling,
}

const DEATHS: [Dies; 2] = [Dies::InTheTool, Dies::BeforeSettling];

impl World {
    fn asking(&self) -> Ledger {
        self.ledger().worker("second").ask_before_repeating()
    }

    /// A worker takes the run up and dies, and its leases end.
    async fn dies(&self, run: &str, dies: Dies) {
        let mut at = match dies {
            Dies::InTheTool => usize::MAX,
            Dies::BeforeSettling => 3, // taken, decided, claimed, settled
        };
        let newest = &self.asks().await[0];
        // What repeats another ask is claimed with it.
        at = at.saturating_add(usize::from(newest.ask.questions().iter().any(is_about)));
        let failing = Failing::at(&self.store, Some((at, How::DiesBefore)));
        let ledger = Ledger::new(failing.clone()).worker("first").ask_before_repeating();
        let takes = match dies {
            Dies::InTheTool => Duration::from_secs(3_600),
            Dies::BeforeSettling => Duration::ZERO,
        };
        let mut world = Self { store: self.store.clone(), ..World::new() };
        world.recorder = self.recorder.clone().taking(takes);
        let agent = world.agent(ledger, ScriptedModel::new([]));
        let before = self.recorder.ran().len();
        let ended =
            tokio::time::timeout(Duration::from_millis(50), failing.work(agent.take_up(run)));
        assert!(!matches!(ended.await, Ok(Some(_))), "it dies");
        assert_eq!(
            self.recorder.ran().len(),
            before + 1,
            "it dies behind the beginning of the tool"
        );
        self.pass(31);
    }

    async fn take_up(&self, ledger: Ledger, run: &str) -> countersign::agent::RunResult {
        let taken = self.agent(ledger, ScriptedModel::new([])).take_up(run).await.unwrap();
        let TakeUp::Resumed(Ok(ended)) = taken else { panic!("{taken:?}") };
        ended
    }

    async fn pending(&self) -> Vec<AskRecord> {
        self.ledger().list(Some(AskState::Pending), 10).await.unwrap().records
    }

    /// The result of the call for the model.
    async fn told(&self, run: countersign::agent::RunResult) -> String {
        let last = run.history().iter().rev().find_map(|message| match message {
            Message::Request { parts } => parts.iter().find_map(|part| match part {
                RequestPart::ToolReturn { content, .. } => Some(content.to_string()),
                _ => None,
            }),
            Message::Response { .. } => None,
        });
        last.unwrap()
    }
}

fn is_about(question: &countersign::decision::Question) -> bool {
    question.key() == "may-have-run"
}

#[tokio::test]
async fn by_default_the_model_gets_may_have_run() {
    // L2: "A crash between leaves *unknown*, never silently run again".
    for dies in DEATHS {
        let world = World::new();
        let run = world.parked(&[Fate::Approved]).await;
        world.dies(&run, dies).await;
        let ended = world.take_up(world.ledger(), &run).await;
        assert!(matches!(ended.turns()[0].calls()[0].outcome(), Outcome::Unknown(_)), "{dies:?}");
        assert_eq!((ended.text(), world.recorder.ran().len()), (Some("Done."), 1), "{dies:?}");
        assert_eq!(world.asks().await.len(), 1);
    }
}

#[tokio::test]
async fn a_call_with_an_unknown_end_runs_again_after_a_new_approval() {
    for dies in DEATHS {
        let world = World::new();
        let run = world.parked(&[Fate::Approved]).await;
        world.dies(&run, dies).await;
        let ended = world.take_up(world.asking(), &run).await;
        let requests = ended.suspended().unwrap().requests();
        assert_eq!(requests.iter().count(), 1, "{dies:?}: it waits");
        let report = &ended.turns()[0].calls()[0];
        assert!(report.execution().started(), "the report says that it was started");
        // The question says that it may have run, when it was claimed and by whom.
        let [ask] = &world.pending().await[..] else { panic!("one new ask") };
        let question = ask.ask.questions().iter().find(|it| is_about(it)).unwrap();
        for says in ["may have run", "`first`", "at 1970-01-01 00:00:11 UTC"] {
            assert!(question.reason().contains(says), "{says}: {}", question.reason());
        }
        // A1: no earlier approval is for it.
        for _ in 0..3 {
            let ended = world.take_up(world.asking(), &run).await;
            assert!(ended.suspended().is_some());
        }
        assert_eq!((world.recorder.ran().len(), world.pending().await.len()), (1, 1), "{dies:?}");
        let old = world.asks().await.into_iter().find(|it| it.state == AskState::Unknown).unwrap();
        assert_ne!((old.ask.id(), &old.fingerprint), (ask.ask.id(), &ask.fingerprint));
        let yes = Answer::Approve { args: None };
        let made = world.ledger().decide(ask.ask.id(), &old.fingerprint, "ann", yes.clone()).await;
        assert!(matches!(made.unwrap(), Decided::Mismatch { .. }));
        world.approve_all().await;
        let ended = world.take_up(world.asking(), &run).await;
        assert_eq!(ended.text(), Some("Done."));
        assert!(ended.turns()[0].calls()[0].outcome().is_returned(), "{dies:?}");
        assert_eq!(world.recorder.ran().len(), 2, "{dies:?}: it runs again, once");
        // The first worker returns: its settlement does not count any more.
        let late = world.ledger().settle(old.ask.id(), old.token, json!("late")).await.unwrap();
        assert_eq!(late, Settled::StaleToken);
        let verified = world.ledger().verify(&Default::default()).await;
        assert!(verified.is_ok(), "{verified:?}");
    }
}

#[tokio::test]
async fn a_denied_or_closed_rerun_says_that_the_call_may_have_run() {
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    world.dies(&run, Dies::InTheTool).await;
    let _ = world.take_up(world.asking(), &run).await;
    let ask = world.pending().await.remove(0);
    let no = Answer::Deny { message: "look first".into() };
    world.ledger().decide(ask.ask.id(), &ask.fingerprint, "ann", no).await.unwrap();
    let ended = world.take_up(world.asking(), &run).await;
    let told = world.told(ended).await;
    for says in ["may have run", "not run again", "look first"] {
        assert!(told.contains(says), "{says}: {told}");
    }
    assert_eq!(world.recorder.ran().len(), 1);
    let open = world.asks().await.into_iter().filter(|it| it.state == AskState::Decided).count();
    assert_eq!(open, 0, "L5: the ask of a call that has its result is closed");

    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    world.dies(&run, Dies::InTheTool).await;
    let ended = world.take_up(world.asking(), &run).await;
    let history = ended.into_suspended().unwrap().close("superseded");
    assert!(format!("{:?}", json!(history)).contains("may have run"));
}

#[tokio::test]
async fn a_late_outcome_of_the_first_start_prevents_the_rerun() {
    // L2: "A settle by the latest claim is accepted even late".
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    world.dies(&run, Dies::BeforeSettling).await;
    let _ = world.take_up(world.asking(), &run).await;
    let old = world.asks().await.into_iter().find(|it| it.state == AskState::Unknown).unwrap();
    world.approve_all().await;
    let outcome = serde_json::to_value(Outcome::returned("paid")).unwrap();
    world.ledger().settle(old.ask.id(), old.token, outcome).await.unwrap();
    let ended = world.take_up(world.asking(), &run).await;
    assert_eq!(ended.turns()[0].calls()[0].outcome(), &Outcome::returned("paid"));
    assert_eq!(world.recorder.ran().len(), 1);
    let states: Vec<_> = world.asks().await.iter().map(|ask| ask.state).collect();
    assert!(
        states.iter().all(|it| matches!(it, AskState::Executed | AskState::Closed)),
        "{states:?}"
    );
}

#[tokio::test]
async fn each_start_whose_end_was_not_seen_is_asked_about() {
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    for starts in 1..=3 {
        world.dies(&run, Dies::InTheTool).await;
        let ended = world.take_up(world.asking(), &run).await;
        assert!(ended.suspended().is_some());
        let [ask] = &world.pending().await[..] else { panic!("one new ask") };
        let about = ask.ask.questions().iter().filter(|it| is_about(it)).count();
        assert_eq!((about, world.recorder.ran().len()), (starts, starts));
        let early = world.asking().claim(ask.ask.id(), "w", Duration::from_secs(1)).await.unwrap();
        assert_eq!(early, Claimed::NotDecided);
        world.approve_all().await;
    }
    assert_eq!(world.take_up(world.asking(), &run).await.text(), Some("Done."));
    assert_eq!(world.recorder.ran().len(), 4);
}

/// Asks something else each time it is approved, up to a point.
struct AsksMore;

impl ToolMiddleware for AsksMore {
    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        match cx.phase() {
            Phase::Approved => Decision::ask("is the window closed?"),
            _ => Decision::allow(),
        }
    }
}

#[tokio::test]
async fn another_question_does_not_replace_the_question_to_run_again() {
    // A1: an approval covers the questions it was shown.
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    world.dies(&run, Dies::InTheTool).await;
    let _ = world.take_up(world.asking(), &run).await;
    world.approve_all().await;
    let tools = world.recorder.clone().approval_required().layered(AsksMore.into_layer());
    let stricter = Agent::new(ScriptedModel::new([]), tools).output(text().or_deferred());
    let taken = stricter.ledger(world.asking()).take_up(&run).await.unwrap();
    assert!(matches!(taken, TakeUp::Resumed(Ok(run)) if run.suspended().is_some()));
    let [ask] = &world.pending().await[..] else { panic!("one new ask") };
    let keys: Vec<_> = ask.ask.questions().iter().map(|it| it.key().to_owned()).collect();
    assert!(keys.contains(&"may-have-run".to_owned()), "{keys:?}");
    assert!(keys.contains(&"is the window closed?".to_owned()), "{keys:?}");
    assert_eq!(world.recorder.ran().len(), 1);
}

#[tokio::test]
async fn idempotent_tools_run_again_without_asking() {
    let tool = |name: &str| ToolDefinition::new(name, json!({"type": "object"}));
    for (definition, asks) in
        [(tool("pay").with_idempotent(true), 1), (tool("pay").with_journaled(true), 2)]
    {
        let mut world = World::new();
        world.recorder = Recorder::of([definition]);
        let run = world.parked(&[Fate::Approved]).await;
        world.dies(&run, Dies::InTheTool).await;
        let ended = world.take_up(world.asking(), &run).await;
        assert_eq!(world.asks().await.len(), asks);
        assert_eq!(ended.suspended().is_none(), asks == 1);
        assert_eq!(world.recorder.ran().len(), 3 - asks);
    }
}

#[tokio::test]
async fn an_allowed_call_with_an_unknown_end_is_asked_about() {
    let world = World::new();
    let definition = ToolDefinition::new("pay", json!({"type": "object"})).with_journaled(true);
    let slow = Recorder::of([definition]).taking(Duration::from_secs(3_600));
    let calls = || vec![call("c1", "pay", json!({}))];
    let turn = countersign::Turn::new(slow.clone()).of_run("run", 0).ledger(world.asking());
    let lost = tokio::time::timeout(Duration::from_millis(50), turn.run(calls())).await;
    assert!(lost.is_err());
    world.pass(31);
    let report = turn.run(calls()).await.unwrap();
    let suspended = report.into_suspended().unwrap();
    let requests = suspended.requests();
    assert!(requests.questions("c1").iter().any(is_about));
    assert_eq!(slow.ran().len(), 1);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A worker takes the run up, and this transaction goes wrong.
    TakeUp(usize, How),
    Approve,
    Deny,
    TimePasses,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..7, 0_usize..4).prop_map(|(at, how)| Step::TakeUp(at, How::ALL[how])),
        3 => Just(Step::Approve),
        1 => Just(Step::Deny),
        3 => Just(Step::TimePasses),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn each_run_of_a_tool_has_an_approval_of_its_own(
        steps in prop::collection::vec(step(), 1..16),
        asks in any::<bool>(),
    ) {
        // "what was approved is what runs: at most once, and never silently"
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let run = world.parked(&[Fate::Waits]).await;
            for step in steps {
                match step {
                    Step::Approve => world.approve_all().await,
                    Step::TimePasses => world.pass(31),
                    Step::Deny => for ask in world.pending().await {
                        let no = Answer::Deny { message: "no".into() };
                        world.ledger().decide(ask.ask.id(), &ask.fingerprint, "bob", no).await.unwrap();
                    },
                    Step::TakeUp(at, how) => {
                        let failing = Failing::at(&world.store, Some((at, how)));
                        let ledger = Ledger::new(failing.clone());
                        let ledger = if asks { ledger.ask_before_repeating() } else { ledger };
                        let agent = world.agent(ledger, ScriptedModel::new([]));
                        let _ = failing.work(agent.take_up(&run)).await;
                    }
                }
                let approved = world.asks().await.into_iter().filter(|ask| {
                    let decision = ask.decision.as_ref();
                    decision.is_some_and(|it| matches!(it.answer, Answer::Approve { .. }))
                });
                let approved = approved.count();
                let ran = world.recorder.ran().len();
                assert!(ran <= approved, "{ran} runs, {approved} approvals");
                assert!(asks || ran <= 1);
            }
            world.check(&run, "at the end").await;
            assert!(world.ledger().verify(&Default::default()).await.is_ok());
        });
    }
}
