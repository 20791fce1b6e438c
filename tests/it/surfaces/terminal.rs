//! Ann at a real pseudo-terminal, line by line. The program there is this test binary itself, asked to run
//! [`the_program_at_the_terminal`] only.

use std::path::Path;
use std::time::Duration;

use countersign::Turn;
use countersign_terminal::TerminalHandler;
use pty_process::blocking::Command;
use serde_json::{Value, json};

use super::{Case, Place, SurfaceDriver, TOOL, WHO};
use crate::terminal::lines::{RESULT, Session};

const CASE: &str = "COUNTERSIGN_TEST_SURFACE";
const STORE: &str = "COUNTERSIGN_TEST_STORE";
const PROGRAM: &str = "surfaces::terminal::the_program_at_the_terminal";

/// A turn over the store, whose call is asked about at the terminal. As a test it does nothing.
#[tokio::test]
async fn the_program_at_the_terminal() {
    let Ok(case) = std::env::var(CASE) else { return };
    let case: Case = serde_json::from_str(&case).unwrap();
    let ledger = case.ledger(Path::new(&std::env::var_os(STORE).unwrap())).await;
    let handler = TerminalHandler::new().answered_by(WHO).arming(Duration::ZERO);
    let turn = Turn::new(case.tools()).ledger(ledger).deferred_tool_handler(handler);
    let told = match turn.run(vec![case.call()]).await {
        Ok(report) => {
            let outcome = report.calls()[0].outcome();
            json!([outcome.word(), outcome.text()])
        }
        Err(error) => json!(["error", error.to_string()]),
    };
    std::fs::write(std::env::var_os(RESULT).unwrap(), told.to_string()).unwrap();
}

pub(super) struct AtTerminal {
    place: Place,
    /// Until the program has ended.
    session: Option<Session>,
}

impl AtTerminal {
    fn session(&self) -> &Session {
        self.session.as_ref().expect("the program runs")
    }

    /// Types the last line, and says what the turn ends with.
    fn ends(&mut self, line: &str) -> String {
        self.session().send(line);
        let ended: Option<Value> = self.session.take().map(Session::result);
        ended.unwrap_or_default().to_string()
    }
}

impl SurfaceDriver for AtTerminal {
    async fn open(case: &Case) -> Self {
        let place = Place::new().await;
        let program = Command::new(std::env::current_exe().unwrap());
        let program = program.args(["--exact", PROGRAM, "--nocapture"]).env(STORE, place.file());
        let program = program.env(CASE, serde_json::to_string(case).unwrap());
        Self { place, session: Some(Session::of(program)) }
    }

    fn place(&self) -> &Place {
        &self.place
    }

    async fn show(&mut self) -> Option<String> {
        if !self.session.as_mut().is_some_and(Session::asks) {
            return None;
        }
        // Shown in short with the question, and then all of it.
        let call = format!("{TOOL}(");
        Some(self.session().send("v\r").asked_behind(&call, 2).shown())
    }

    async fn approve(&mut self) -> String {
        self.ends("a\r")
    }

    async fn deny(&mut self, reason: &str) -> String {
        self.ends(&format!("d {reason}\r"));
        reason.to_owned()
    }

    async fn edit(&mut self, args: &str) -> Option<String> {
        self.session().send("e\r").until("Change which? ", 1).send("j\r");
        self.session().until("args: ", 1).send(&format!("\u{15}{args}\r"));
        if args.starts_with('{') {
            self.session().until("Approve with these arguments? ", 1);
            return Some(self.ends("a\r"));
        }
        // As it was typed, and when it is shown again to be corrected.
        let refused = "No JSON: ";
        let again = self.session().until(refused, 1).until(&format!("args: {args}"), 2);
        again.send("\u{1b}").prompted_behind(refused, 1, "Change which? ").send("\u{1b}");
        Some(again.asked_behind("The edit was dropped.", 1).shown())
    }

    /// A line that is typed is for the call that is asked about, in this process.
    async fn approve_something_else(&mut self) -> Option<String> {
        None
    }

    async fn leave(&mut self) {
        if self.session.as_mut().is_some_and(Session::asks) {
            self.ends("\u{3}");
        }
    }
}
