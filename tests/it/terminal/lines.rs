//! The terminal handler under a real pseudo-terminal. The program there is this test binary itself, asked to run
//! [`the_program_at_the_terminal`] only; what the handler answers goes to a file.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Piped, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use countersign::agent::TakeUp;
use countersign::decision::Preview;
use countersign::deferred::Answer;
use countersign::deferred::metadata;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Decision, DeferredToolHandler, DeferredToolRequests, RunContext, ToolCall,
    ToolMiddlewareExt as _, ToolsExt as _, Turn, decide_fn, handler_fn,
};
use countersign_terminal::TerminalHandler;
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use serde_json::{Value, json};

use crate::support::{Recorder, call, program};

pub(crate) const RESULT: &str = "COUNTERSIGN_TEST_RESULT";
const CASE: &str = "COUNTERSIGN_TEST_CASE";
const PROMPT: &str = "Approve? ";
pub(crate) const SCREEN: Duration = Duration::from_secs(20);

/// The program at the terminal: one turn whose calls are answered there. The other tests start it; as a test it does
/// nothing.
#[test]
fn the_program_at_the_terminal() {
    let Some(result) = std::env::var_os(RESULT) else { return };
    let case = std::env::var(CASE).unwrap_or_default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let told = runtime.block_on(async {
        match case.as_str() {
            "late" => tokio::time::sleep(Duration::from_millis(700)).await,
            "dropped" => return dropped().await,
            "parallel" => return parallel().await,
            "long" => return long().await,
            "granted" => return granted(false).await,
            "granted_too_late" => return granted(true).await,
            "ledger" => return in_a_ledger().await,
            "many" => return many(TerminalHandler::new()).await,
            "many_slowly" => {
                return many(TerminalHandler::new().arming(Duration::from_secs(5))).await;
            }
            "preview" => return preview().await,
            "text" => return text().await,
            "panic" | "panic elsewhere" => return super::teardown::panicking(&case).await,
            _ => {}
        }
        turn(!case.is_empty()).await
    });
    drop(runtime);
    std::fs::write(result, told.to_string()).unwrap();
}

async fn turn(slowly: bool) -> Value {
    let recorder = Recorder::new(["delete_file", "deploy"]);
    let files = decide_fn(|_, call| match call.name() {
        "deploy" => Decision::ask("production is frozen")
            .with_metadata(metadata::APPROVAL_POLICY, metadata::BLOCKED),
        _ => Decision::ask(format!("delete {}?", call.args()["path"])).with_key("delete"),
    });
    let tools = recorder.clone().layered(files.into_layer());
    let answered_by = Arc::new(Mutex::new(Value::Null));
    let seen = Arc::clone(&answered_by);
    let mut terminal = TerminalHandler::new().answered_by("ada");
    if slowly {
        terminal = terminal.arming(Duration::from_secs(3)); // So that no test has to be quick.
    }
    let terminal = Arc::new(terminal);
    let handler = handler_fn(move |cx: RunContext, requests: DeferredToolRequests| {
        let (terminal, seen) = (Arc::clone(&terminal), Arc::clone(&seen));
        async move {
            let results = terminal.handle(&cx, &requests).await?;
            *seen.lock().unwrap() = json!(results.answered_by);
            Ok::<_, countersign::BoxError>(results)
        }
    });
    let calls = vec![
        call("c1", "delete_file", json!({"path": "a\u{202e}.log"})),
        call("c2", "deploy", json!({})),
        call("c3", "delete_file", json!({"path": "b.log"})),
    ];
    let ended = Turn::new(tools).deferred_tool_handler(handler).run(calls).await;
    let stopped = ended.as_ref().is_err_and(|error| error.error().is_stopped());
    let report = match &ended {
        Ok(report) => report,
        Err(error) => error.report(),
    };
    let answered = report.calls().iter().filter_map(|call| call.answered()).count();
    let told: Vec<_> = report
        .calls()
        .iter()
        .map(|call| json!([call.outcome().word(), call.outcome().content()]))
        .collect();
    let ran: Vec<_> = recorder.ran().iter().map(|ran| ran.args.to_value()).collect();
    json!({
        "told": told, "ran": ran, "answered_by": *answered_by.lock().unwrap(), "stopped": stopped,
        "answered": answered,
    })
}

/// A call with elided text, beside another call.
async fn long() -> Value {
    let recorder = Recorder::new(["write_file"]);
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::ask("sure?")).into_layer());
    let input = format!("{} curl-evil|sh {}", "a".repeat(5000), "b".repeat(5000));
    let calls = vec![
        call("c1", "write_file", json!({"path": "a.sh", "input": input})),
        call("c2", "write_file", json!({"path": "b.txt", "password": "hunter2"})),
    ];
    Turn::new(tools).deferred_tool_handler(TerminalHandler::new()).run(calls).await.unwrap();
    json!(recorder.ids())
}

/// A call with elided text, for which a grant is offered. Another person may deny it before this one answers.
async fn granted(is_denied: bool) -> Value {
    let ledger = Ledger::new(MemoryStore::new()).session("s1");
    let recorder = Recorder::new(["write_file"]);
    let asked = Decision::ask("sure?").with_metadata(metadata::GRANTABLE, true);
    let tools = recorder.clone().layered(decide_fn(move |_, _| asked.clone()).into_layer());
    let input = format!("{} curl-evil|sh {}", "a".repeat(5000), "b".repeat(5000));
    let calls = vec![call("c1", "write_file", json!({"path": "a.sh", "input": input}))];
    let handler = TerminalHandler::new().answered_by("ann").grants(ledger.clone());
    let turn = Turn::new(tools).of_run("run", 0).ledger(ledger.clone());
    let elsewhere = async {
        if !is_denied {
            return;
        }
        loop {
            let pending = ledger.list(Some(AskState::Pending), 1).await.unwrap().records;
            if let [ask] = &*pending {
                let no = Answer::Deny { message: "no".to_owned() };
                ledger.decide(ask.ask.id(), &ask.fingerprint, "bob", no).await.unwrap();
                eprintln!("denied elsewhere");
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let turn = turn.deferred_tool_handler(handler);
    tokio::join!(turn.run(calls), elsewhere).0.unwrap();
    json!({"ran": recorder.ids(), "grants": ledger.grants(9).await.unwrap().records.len()})
}

/// Sixty calls, of which ten are equal.
async fn many(handler: TerminalHandler) -> Value {
    let recorder = Recorder::new(["delete_file"]);
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::ask("sure?")).into_layer());
    let path =
        |i: usize| json!({"path": if i < 50 { format!("{i}.log") } else { "same.log".to_owned() }});
    let calls = (0..60).map(|i| call(&format!("c{i}"), "delete_file", path(i))).collect();
    let ended = Turn::new(tools).deferred_tool_handler(handler).run(calls).await;
    json!({"ran": recorder.ids().len(), "stopped": ended.is_err()})
}

/// A call with the change that it would make.
async fn preview() -> Value {
    let recorder = Recorder::new(["write_file"]);
    let ask = Decision::ask("writes a file").with_key("write");
    let ask = ask.with_preview(Preview::diff("a.txt", "one\ntwo\n", "one\n2\u{1b}[2J\n"));
    let tools = recorder.clone().layered(decide_fn(move |_, _| ask.clone()).into_layer());
    let calls = vec![call("c1", "write_file", json!({"path": "a.txt"}))];
    Turn::new(tools).deferred_tool_handler(TerminalHandler::new()).run(calls).await.unwrap();
    json!(recorder.ids())
}

/// A call that writes a text of several lines.
async fn text() -> Value {
    let recorder = Recorder::new(["write_file"]);
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::ask("sure?")).into_layer());
    let content: Vec<_> = (1..14).map(|n| format!("line {n}\n")).collect();
    let args = json!({"path": "notes.txt", "content": content.concat()});
    let calls = vec![call("c1", "write_file", args)];
    Turn::new(tools).deferred_tool_handler(TerminalHandler::new()).run(calls).await.unwrap();
    json!(recorder.ran().iter().map(|ran| ran.args.to_value()).collect::<Vec<_>>())
}

/// A run with a ledger that is stopped at its first question, and resumed with an approval from another surface.
async fn in_a_ledger() -> Value {
    let ledger = Ledger::new(MemoryStore::new());
    let recorder = Recorder::new(["delete_file"]);
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::ask("sure?")).into_layer());
    let calls = vec![call("c1", "delete_file", json!({"path": "a.log"}))];
    let agent = Agent::new(ScriptedModel::calls(calls), tools).ledger(ledger.clone());
    let run = agent.run("go").deferred_tool_handler(TerminalHandler::new()).await;
    let error = run.unwrap_err();
    let open = ledger.list(Some(AskState::Pending), 10).await.unwrap().records;
    let run_id = error.suspended().run_id().to_owned();
    for record in &open {
        let approve = Answer::Approve { args: None };
        ledger.decide(record.ask.id(), &record.fingerprint, "bob", approve).await.unwrap();
    }
    let TakeUp::Resumed(Ok(done)) = agent.take_up(&run_id).await.unwrap() else {
        panic!("taken up")
    };
    json!({"stopped": error.error().is_stopped(), "open": open.len(), "text": done.text(), "ran": recorder.ids()})
}

fn one(id: &str) -> DeferredToolRequests {
    DeferredToolRequests::new([ToolCall::new(id, "delete_file", json!({"path": id}))], [])
}

/// The run is dropped during its question, and another one asks after it.
async fn dropped() -> Value {
    let handler = TerminalHandler::new();
    let waiting = in_a_turn(handler.clone(), "first");
    let gone = tokio::time::timeout(Duration::from_millis(1200), waiting).await.is_err();
    let second = in_a_turn(handler, "second").await;
    json!({"gone": gone, "second": second})
}

/// Two runs ask at once.
async fn parallel() -> Value {
    let handler = TerminalHandler::new();
    let (left, right) =
        tokio::join!(in_a_turn(handler.clone(), "left"), in_a_turn(handler, "right"));
    json!([left, right])
}

/// Returns `true` if the one call of a turn was approved.
async fn in_a_turn(handler: TerminalHandler, id: &str) -> bool {
    let requests = one(id);
    let recorder = Recorder::new(["delete_file"]);
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::ask("sure?")).into_layer());
    let calls = requests.approvals.clone();
    Turn::new(tools).deferred_tool_handler(handler).run(calls).await.unwrap();
    recorder.ids() == [id]
}

/// The program at a pseudo-terminal, with its output.
pub(crate) struct Session {
    child: Child,
    pub(crate) pty: Arc<Pty>,
    shown: Arc<Mutex<Vec<u8>>>,
    result: PathBuf,
    _dir: tempfile::TempDir,
}

pub(crate) fn arguments() -> [&'static str; 3] {
    ["--exact", "terminal::lines::the_program_at_the_terminal", "--nocapture"]
}

impl Session {
    fn start(case: &str) -> Self {
        let program = Command::new(std::env::current_exe().unwrap()).args(arguments());
        Self::of(program.env(CASE, case))
    }

    /// The program, which asks line by line.
    pub(crate) fn of(program: Command) -> Self {
        Self::on_full_screen(
            program.env("COUNTERSIGN_LINES", "1").env_remove("VISUAL").env_remove("EDITOR"),
        )
    }

    pub(crate) fn on_full_screen(program: Command) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let result = dir.path().join("result.json");
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(40, 100)).unwrap();
        let child = program.env(RESULT, &result).spawn(pts).unwrap();
        let (pty, shown) = (Arc::new(pty), Arc::new(Mutex::new(Vec::new())));
        let (reader, sink) = (Arc::clone(&pty), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = (&*reader).read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, pty, shown, result, _dir: dir }
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that the program has written until now.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    pub(crate) fn send(&self, keys: &str) -> &Self {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits until this text was shown this many times.
    pub(crate) fn until(&self, text: &str, times: usize) -> &Self {
        let start = Instant::now();
        while self.shown().matches(text).count() < times {
            assert!(start.elapsed() < SCREEN, "`{text}` was not shown:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    /// Waits until the input of a question is open, which is a moment after the question is shown.
    pub(crate) fn asked_behind(&self, question: &str, times: usize) -> &Self {
        self.prompted_behind(question, times, PROMPT)
    }

    /// Waits until this prompt is shown behind a text.
    pub(crate) fn prompted_behind(&self, text: &str, times: usize, prompt: &str) -> &Self {
        self.until(text, times);
        let start = Instant::now();
        while !self.shown().rsplit(text).next().is_some_and(|rest| rest.contains(prompt)) {
            assert!(start.elapsed() < SCREEN, "nothing asked:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
        self
    }

    pub(crate) fn result(mut self) -> Value {
        self.ended();
        read(&self.result).unwrap_or_else(|| panic!("no result:\n{}", self.shown()))
    }

    /// Waits until a question is asked, or the program has ended; whether it asks.
    pub(crate) fn asks(&mut self) -> bool {
        let start = Instant::now();
        while !self.shown().contains(PROMPT) {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(start.elapsed() < SCREEN, "nothing asked:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Waits for the end of the program, and says its status.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            if start.elapsed() > SCREEN {
                self.child.kill().unwrap();
                panic!("the program still runs:\n{}", self.shown());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

const FROZEN: &str = "Blocked by policy: production is frozen";

#[test]
fn a_person_approves_and_denies_with_a_message() {
    let session = Session::start("");
    session.until(PROMPT, 1).send("y\r").asked_behind("3 of 3: delete_file", 1);
    session.send("n not today\r");
    let shown = session.shown();
    let first = shown.find(PROMPT).unwrap();
    for text in [
        "1. delete_file(path: \"a\\u{202e}.log\")",
        "! blocked by policy",
        "3. delete_file(path: \"b.log\")",
        "asks: delete \"b.log\"?",
    ] {
        assert!(shown.find(text).is_some_and(|at| at < first), "{text} in {shown}");
    }
    assert!(!shown.contains('\u{202e}'));
    let result = session.result();
    assert_eq!(
        result["told"],
        json!([["returned", {"path": "a\u{202e}.log"}], ["denied", FROZEN], ["denied", "not today"]])
    );
    assert_eq!(result["ran"], json!([{"path": "a\u{202e}.log"}]));
    assert_eq!(result["answered_by"], json!({"c1": "ada", "c2": "policy", "c3": "ada"}));
}

#[test]
fn arguments_are_edited_and_confirmed() {
    let session = Session::start("");
    session.until(PROMPT, 1).send("e\r").until(r#"1. path: "a\u{202e}.log""#, 1);
    session.until("Change which? ", 1).send("j\r").until(r#"args: {"path":"a\u202e.log"}"#, 1);
    session.send("\u{15}[1]\r").until("No JSON: ", 1).until("args: [1]", 2);
    session.send("\u{15}{\"path\": \"c.log\"}\r").until("Approve with these arguments? ", 1);
    session.send("y\r").asked_behind("3 of 3: delete_file", 1);
    session.send("\r");
    let result = session.result();
    assert_eq!(result["ran"], json!([{"path": "c.log"}]), "{result}");
}

/// "the default is No"
#[test]
fn an_empty_line_denies() {
    let session = Session::start("");
    session.until(PROMPT, 1).send("\r").asked_behind("3 of 3: delete_file", 1);
    session.send("\r");
    let result = session.result();
    assert_eq!(result["ran"], json!([]));
    assert_eq!(result["told"][0][0], "denied");
}

/// S3: "a key or a pointer that went down before that does not count".
#[test]
fn input_typed_before_the_question_does_not_answer_it() {
    let session = Session::start("late");
    session.send("a\ry\ry\r").until("Ignored 6 keys", 1).until(PROMPT, 1);
    // What follows the answer was typed before the second question was open.
    session.send("\ry\r").until("3 of 3: delete_file", 1).until("Ignored 2 keys", 1);
    session.send("n\r");
    assert_eq!(session.result()["ran"], json!([]));
}

#[test]
fn pasted_text_answers_nothing() {
    let session = Session::start("slow");
    session.until(PROMPT, 1).send("\u{1b}[200~a\ry\r\u{1b}[201~");
    session.send("n\ry\ry\ry\r").until("3 of 3: delete_file", 1).until("Ignored 6 keys", 1);
    session
        .send("\u{3}")
        .until("Stopped, as Ctrl-C was pressed: 2 calls not decided, and not run.", 1);
    assert_eq!(session.result()["ran"], json!([]));
}

/// S8: "Stop is not no": "without one the calls are cancelled".
#[test]
fn ctrl_c_stops_the_run_and_denies_nothing() {
    let session = Session::start("");
    session.until(PROMPT, 1).send("y\r").asked_behind("3 of 3: delete_file", 1);
    session.send("\u{3}");
    let result = session.result();
    assert_eq!(
        (&result["stopped"], &result["ran"], &result["answered"]),
        (&json!(true), &json!([]), &json!(0))
    );
    let cancelled = json!(["failed", "Not executed: a person stopped the run."]);
    assert_eq!(result["told"], json!([cancelled, cancelled, cancelled]));
    assert_eq!(result["answered_by"], Value::Null);
}

/// S8: "with a ledger its asks stay open and can be taken up".
#[test]
fn a_run_with_a_ledger_that_was_stopped_is_resumed() {
    let session = Session::start("ledger");
    session.until(PROMPT, 1).send("\u{3}");
    assert_eq!(
        session.result(),
        json!({"stopped": true, "open": 1, "text": "Done.", "ran": ["c1"]})
    );
}

/// S8: "Stopping ends the run": the assistant asks nothing more.
#[test]
fn the_assistant_ends_when_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("cache.tmp");
    std::fs::write(&note, "cache").unwrap();
    std::fs::write(dir.path().join("todo.txt"), "tidy up").unwrap();
    let mut session = Session::of(Command::new(program("assistant")).arg(dir.path()));
    session.until(PROMPT, 1).send("\u{3}");
    assert_eq!(session.ended(), Some(130));
    let shown = session.shown();
    assert_eq!(shown.matches("asks to run").count(), 1, "{shown}");
    assert!(shown.contains("Stopped: none of the calls that were asked about has run."));
    assert!(note.exists());
}

/// G3: "Each is shown as a sentence, as the rule, and with examples of what else it would allow".
#[test]
fn a_person_answers_for_the_session_of_the_assistant() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [("cache.tmp", "cache"), ("todo.txt", "tidy up"), (".env", "KEY=1")] {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    let mut session = Session::of(Command::new(program("assistant")).arg(dir.path()));
    session.asked_behind("1 of 2: move_file", 1).send("a\r");
    // The rule about deletions wants a person each time.
    session.asked_behind("2 of 2: delete_file", 1).send("g\r").until("No grant is offered", 1);
    session.asked_behind("No grant is offered", 1).send("a\r");
    session.asked_behind("asks to run a tool:", 1).send("g\r");
    // A grant for exactly this change would never answer a call again, and is not offered.
    session.until("1. `write_file` for the file `SUMMARY.md`, with any content", 1);
    session.until("2. `write_file` with any arguments", 1);
    session.until("Which of these?", 1).send("1\r");
    session.until("Grant this?", 1).send("y\r");
    // The same file with another text: nothing is asked, and the answer names the grant.
    assert_eq!(session.ended(), Some(0));
    let shown = session.shown();
    assert_eq!(shown.matches("asks to run").count(), 2, "{shown}");
    assert!(shown.contains("approved (by grant ") && shown.contains(" of you, "), "{shown}");
    let summary = std::fs::read_to_string(dir.path().join("SUMMARY.md")).unwrap();
    assert!(summary.contains("## Not allowed\n\n- read_file `.env`"), "{summary}");
}

/// S4: "What runs has been seen."
#[test]
fn elided_text_is_opened_before_its_call_is_approved() {
    let session = Session::start("long");
    session.until(PROMPT, 1).send("y\r").asked_behind("v shows all of it", 1);
    session.send("A\r").until("Approve 1 call? [y,N]", 1);
    session.send("y\r").asked_behind("1 of 2: write_file", 2);
    assert!(session.shown().contains("Not approved: 1 call"));
    assert!(!session.shown().contains("curl-evil|sh"));
    session.send("v\r").asked_behind("curl-evil|sh", 1).send("y\r");
    assert_eq!(session.result(), json!(["c1", "c2"]));
}

/// G3: "A call of which something was not seen cannot be granted either."
#[test]
fn elided_text_is_opened_before_its_call_is_granted() {
    let session = Session::start("granted");
    session.until(PROMPT, 1).send("g\r").asked_behind("v shows all of it", 1);
    assert!(!session.shown().contains("Grant this?"), "{}", session.shown());
    session.send("v\r").asked_behind("curl-evil|sh", 1).send("g\r").until("Grant this?", 1);
    session.send("y\r");
    assert_eq!(session.result(), json!({"ran": ["c1"], "grants": 1}));
}

/// G3: "No grant is made for a call that another person has decided meanwhile".
#[test]
fn no_grant_is_made_where_another_person_has_decided_meanwhile() {
    let session = Session::start("granted_too_late");
    session.until("denied elsewhere", 1).until(PROMPT, 1).send("v\r");
    session.asked_behind("curl-evil|sh", 1).send("g\r").until("Grant this?", 1).send("y\r");
    session.until("No grant was made with this answer", 1);
    assert_eq!(session.result(), json!({"ran": [], "grants": 0}));
}

#[test]
fn a_question_is_withdrawn_when_the_run_is_dropped() {
    let session = Session::start("dropped");
    session.asked_behind("as the run no longer needs an answer", 1).send("y\r");
    assert_eq!(session.result(), json!({"gone": true, "second": true}));
}

#[test]
fn parallel_runs_are_asked_about_one_after_the_other() {
    let session = Session::start("parallel");
    session.until(PROMPT, 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(session.shown().matches("asks to run").count(), 1);
    session.send("y\r").until("Approved: 1. Denied: 0.", 1).asked_behind("asks to run", 2);
    session.send("y\r").until("Approved: 1. Denied: 0.", 2);
    assert_eq!(session.result(), json!([true, true]));
}

/// The window is closed while the program, which outlives it, waits. No person has decided anything: the run is stopped.
#[test]
fn a_terminal_that_hangs_up_stops_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let result = dir.path().join("result.json");
    let (mut pty, pts) = open().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(arguments())
        .env(RESULT, &result)
        .env("COUNTERSIGN_LINES", "1")
        .stdout(Stdio::null())
        .spawn(pts)
        .unwrap();
    let (mut shown, mut buffer) = (String::new(), [0; 4096]);
    while !shown.contains(PROMPT) {
        let count = pty.read(&mut buffer).unwrap();
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    drop(pty);
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > SCREEN {
            child.kill().unwrap();
            panic!("the program still waits");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let result = read(&result).unwrap();
    assert_eq!(result["ran"], json!([]));
    assert_eq!(result["stopped"], true);
}

/// "without a terminal on stdin it denies, saying so"; D11: "Only a person's denials count, not those of […] a terminal
/// without a person".
#[test]
fn without_a_terminal_everything_is_denied() {
    let dir = tempfile::tempdir().unwrap();
    let result = dir.path().join("result.json");
    let output = Piped::new(std::env::current_exe().unwrap())
        .args(arguments())
        .env(RESULT, &result)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let result = read(&result).unwrap();
    assert_eq!(result["ran"], json!([]));
    let denied = "Denied: no person can be asked, as stdin is not a terminal.";
    assert_eq!(result["told"], json!([["denied", denied], ["denied", FROZEN], ["denied", denied]]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stdin is not a terminal"));
    let policy = "policy: no terminal";
    assert_eq!(result["answered_by"], json!({"c1": policy, "c2": "policy", "c3": policy}));
}
