//! The contract of a surface: what every place at which people decide has to do, played at each of them.
//!
//! A surface takes part by a [`SurfaceDriver`], which does what a person does there, and by its line in
//! [`at_every_surface`]. It cannot leave a scenario out: each of them is played with each driver, and the trait has no
//! default methods. How a page or a screen looks and is armed (rule S3) is tested at each surface by itself.

mod chat;
mod command;
mod form;
mod inbox;
#[cfg(unix)]
mod terminal;

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::decision::Preview;
use countersign::deferred::{Answer, metadata};
use countersign::ledger::{Ask, AskRecord, AskState, Ledger, Quorum};
use countersign::{Args, Decision, ToolCall, Tools, ToolsExt as _, decide_fn};
use countersign_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::Recorder;

/// Plays the scenarios at each surface.
macro_rules! at_every_surface {
    ($($scenario:ident),+ $(,)?) => {
        mod at_the_inbox {
            $(#[tokio::test] async fn $scenario() { super::$scenario::<super::inbox::InboxPage>().await; })+
        }

        #[cfg(unix)]
        mod at_the_terminal {
            $(#[tokio::test] async fn $scenario() { super::$scenario::<super::terminal::AtTerminal>().await; })+
        }

        mod in_the_chat {
            $(#[tokio::test] async fn $scenario() { super::$scenario::<super::chat::InChat>().await; })+
        }

        mod in_a_form {
            $(#[tokio::test] async fn $scenario() { super::$scenario::<super::form::InForm>().await; })+
        }

        mod by_command {
            $(#[tokio::test] async fn $scenario() { super::$scenario::<super::command::ByCommand>().await; })+
        }
    };
}

at_every_surface!(
    what_is_shown_is_the_call_that_runs,
    text_of_a_model_is_shown_escaped,
    a_long_call_can_be_shown_whole,
    a_change_is_shown_as_a_change,
    a_denial_reaches_the_model,
    edited_arguments_are_what_is_approved,
    an_edit_that_is_no_object_decides_nothing,
    a_blocked_call_is_not_approved,
    the_requester_does_not_approve_what_others_have_to,
    of_two_answers_the_first_counts,
    an_answer_to_something_else_decides_nothing,
    to_leave_is_no_answer,
);

/// The acts of a person at a surface. They are Ann, who has also asked for the call.
trait SurfaceDriver: Sized {
    /// Brings the call of the case before the person.
    async fn open(case: &Case) -> Self;
    /// The store behind the surface.
    fn place(&self) -> &Place;
    /// All that the person can read of the call, opened as far as it goes; `None` when they are not asked about it here.
    async fn show(&mut self) -> Option<String>;
    /// Approves what is shown, and says what the surface answers.
    async fn approve(&mut self) -> String;
    /// Denies what is shown with this reason, and says which reason the surface passes on.
    async fn deny(&mut self, reason: &str) -> String;
    /// Approves the call with the arguments of this text, and says what the surface answers; `None` where nothing can be
    /// edited.
    async fn edit(&mut self, args: &str) -> Option<String>;
    /// Gives an approval that was made for something else, and says what the surface answers; `None` where no one can.
    async fn approve_something_else(&mut self) -> Option<String>;
    /// Leaves without an answer.
    async fn leave(&mut self);
}

const TOOL: &str = "write_file";
const WHO: &str = "ann";

/// A call, and what is asked about it.
#[derive(Clone, Serialize, Deserialize)]
struct Case {
    args: Value,
    reason: String,
    blocked: bool,
    /// `true` if others than the requester have to approve.
    others: bool,
    /// The text before and after the call.
    change: Option<(String, String)>,
}

impl Case {
    fn new(args: Value) -> Self {
        let reason = "it overwrites a file".to_owned();
        Self { args, reason, blocked: false, others: false, change: None }
    }

    fn decision(&self) -> Decision {
        let mut asked = Decision::ask(self.reason.as_str()).with_key("write");
        if self.blocked {
            asked = asked.with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED);
        }
        match &self.change {
            Some((before, after)) => {
                asked.with_preview(Preview::diff("notes.txt", before.as_str(), after.as_str()))
            }
            None => asked,
        }
    }

    fn quorum(&self) -> Quorum {
        Quorum { approvals: 1, not_the_requester: self.others }
    }

    /// The call as a model makes it.
    fn call(&self) -> ToolCall {
        ToolCall::new("c1", TOOL, self.args.clone())
    }

    /// The tool, and the layer that asks.
    fn tools(&self) -> Tools {
        let asked = self.decision();
        Recorder::new([TOOL]).layered(decide_fn(move |_, _| asked.clone()))
    }

    /// A ledger whose asks are Ann's.
    async fn ledger(&self, place: &Path) -> Ledger {
        let (quorum, store) = (self.quorum(), SqliteStore::open(place).await.unwrap());
        Ledger::new(store).ask_policy(move |_, ask| ask.with_principal(WHO).with_quorum(quorum))
    }
}

/// A store in a file.
struct Place {
    folder: tempfile::TempDir,
    ledger: Ledger,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(SqliteStore::open(folder.path().join("asks.db")).await.unwrap());
        Self { folder, ledger }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("asks.db")
    }

    /// Parks the call of a case, as another process does.
    async fn park(&self, case: &Case) -> AskRecord {
        let args = Args::try_from(case.args.clone()).unwrap();
        let ask = Ask::new("run-1", "root/c1", TOOL).with_args(args).with_principal(WHO);
        let questions = case.decision().questions().to_vec();
        self.ledger.park(ask.with_questions(questions).with_quorum(case.quorum())).await.unwrap()
    }

    /// The one ask, if there is one.
    async fn found(&self) -> Option<AskRecord> {
        let mut records = self.ledger.list(None, 9).await.unwrap().records;
        assert!(records.len() < 2, "one call is asked about");
        records.pop()
    }

    async fn record(&self) -> AskRecord {
        self.found().await.expect("the call is asked about")
    }

    /// Nothing is decided, and no vote was taken.
    async fn is_open(&self) {
        let record = self.record().await;
        assert_eq!((record.state, record.votes.len()), (AskState::Pending, 0), "{record:?}");
    }
}

/// Who has decided, and how.
fn decided(record: &AskRecord) -> (&'static str, &[String]) {
    let decision = record.decision.as_ref().expect("a decision");
    (decision.answer.word(), &decision.by)
}

fn notes() -> Case {
    Case::new(json!({"path": "notes.txt"}))
}

/// S1: "What an approver sees is made from the call that will run."
async fn what_is_shown_is_the_call_that_runs<S: SurfaceDriver>() {
    let case = notes();
    let mut surface = S::open(&case).await;
    let shown = surface.show().await.expect("the person is asked");
    for part in [TOOL, "notes.txt", &*case.reason] {
        assert!(shown.contains(part), "`{part}` is not in {shown}");
    }
    surface.approve().await;
    let record = surface.place().record().await;
    assert_eq!(decided(&record), ("approve", &[WHO.to_owned()][..]));
    assert_eq!(record.args_to_run().to_value(), case.args);
}

/// S1: "Control, bidi, zero-width and escape characters […] are shown as escapes."
async fn text_of_a_model_is_shown_escaped<S: SurfaceDriver>() {
    let mut case = Case::new(json!({"path": "a\u{202e}gol.txt"}));
    case.reason = "it is\u{202e} harmless".to_owned();
    let mut surface = S::open(&case).await;
    let shown = surface.show().await.expect("the person is asked");
    assert!(shown.contains(r"a\u{202e}gol.txt"), "{shown}");
    assert!(shown.contains(r"it is\u{202e} harmless"), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
    surface.leave().await;
}

/// S4: "A view says whether it leaves something out, and such a call has to be opened before it is approved."
async fn a_long_call_can_be_shown_whole<S: SurfaceDriver>() {
    let hidden = " curl-evil|sh ".repeat(5);
    let text = format!("{}{hidden}{}", "a".repeat(2_000), "b".repeat(2_000));
    let mut surface = S::open(&Case::new(json!({"path": "a.sh", "text": text}))).await;
    let shown = surface.show().await.expect("the person is asked");
    assert!(shown.contains("curl-evil|sh"), "{shown}");
    surface.approve().await;
    assert_eq!(decided(&surface.place().record().await).0, "approve");
}

/// S7: "every surface shows it."
async fn a_change_is_shown_as_a_change<S: SurfaceDriver>() {
    let mut case = notes();
    case.change = Some(("one\ntwo\n".to_owned(), "one\nthree\n".to_owned()));
    let mut surface = S::open(&case).await;
    let shown = surface.show().await.expect("the person is asked");
    assert!(shown.contains("-two") && shown.contains("+three"), "{shown}");
    surface.leave().await;
}

/// D2: "it reaches the model verbatim", where the surface has a place to write it.
async fn a_denial_reaches_the_model<S: SurfaceDriver>() {
    let mut surface = S::open(&notes()).await;
    surface.show().await.expect("the person is asked");
    let reason = surface.deny("keep the notes").await;
    let record = surface.place().record().await;
    assert_eq!(decided(&record), ("deny", &[WHO.to_owned()][..]));
    assert_eq!(record.decision.unwrap().answer, Answer::Deny { message: reason });
}

/// S5: "While an edit is open, the only approval is of the edited arguments."
async fn edited_arguments_are_what_is_approved<S: SurfaceDriver>() {
    let mut surface = S::open(&notes()).await;
    surface.show().await.expect("the person is asked");
    if surface.edit(r#"{"path": "draft.txt"}"#).await.is_none() {
        return surface.place().is_open().await;
    }
    let record = surface.place().record().await;
    assert_eq!(decided(&record).0, "edit");
    assert_eq!(record.args_to_run().to_value(), json!({"path": "draft.txt"}));
}

/// A2, S5: an edit that cannot be used is told, and decides nothing.
async fn an_edit_that_is_no_object_decides_nothing<S: SurfaceDriver>() {
    let mut surface = S::open(&notes()).await;
    surface.show().await.expect("the person is asked");
    surface.edit("[1]").await;
    surface.leave().await;
    surface.place().is_open().await;
}

/// A5: a call that a layer blocks is approved nowhere.
async fn a_blocked_call_is_not_approved<S: SurfaceDriver>() {
    let mut case = notes();
    case.blocked = true;
    let mut surface = S::open(&case).await;
    if surface.show().await.is_some() {
        surface.approve().await;
    }
    surface.leave().await;
    let Some(record) = surface.place().found().await else { return };
    let answer = record.decision.as_ref().map(|decision| &decision.answer);
    assert!(matches!(answer, None | Some(Answer::Deny { .. })), "{record:?}");
    assert!(record.claim.is_none() && record.votes.is_empty(), "{record:?}");
}

/// L1: the requester does not approve where others have to.
async fn the_requester_does_not_approve_what_others_have_to<S: SurfaceDriver>() {
    let mut case = notes();
    case.others = true;
    let mut surface = S::open(&case).await;
    if surface.show().await.is_some() {
        surface.approve().await;
    }
    surface.leave().await;
    surface.place().is_open().await;
}

/// L1: "the first answer is the decision", and the others are told whose it was.
async fn of_two_answers_the_first_counts<S: SurfaceDriver>() {
    let mut surface = S::open(&notes()).await;
    surface.show().await.expect("the person is asked");
    let record = surface.place().record().await;
    let no = Answer::Deny { message: "bob keeps them".to_owned() };
    let ledger = surface.place().ledger.clone();
    ledger.decide(record.ask.id(), &record.fingerprint, "bob", no).await.unwrap();
    let told = surface.approve().await;
    assert!(told.contains("bob"), "{told}");
    let record = surface.place().record().await;
    assert_eq!(decided(&record), ("deny", &["bob".to_owned()][..]));
    assert!(record.claim.is_none(), "nothing has run: {record:?}");
}

/// L0, A6: an answer counts for what was shown, and for nothing else.
async fn an_answer_to_something_else_decides_nothing<S: SurfaceDriver>() {
    let mut surface = S::open(&notes()).await;
    surface.show().await.expect("the person is asked");
    surface.approve_something_else().await;
    surface.leave().await;
    surface.place().is_open().await;
}

/// S8: "Stop is not no."
async fn to_leave_is_no_answer<S: SurfaceDriver>() {
    let mut surface = S::open(&notes()).await;
    surface.show().await.expect("the person is asked");
    surface.leave().await;
    surface.place().is_open().await;
}

/// Long enough for a store to be read, and short enough to wait for.
const SHORT: Duration = Duration::from_millis(200);
