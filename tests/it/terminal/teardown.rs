//! The terminal is given back in every case: a program that panics, is told to end or hangs up leaves it as it was.

use std::fs;
use std::process::Command as Kill;
use std::time::Duration;

use countersign::{Decision, ToolsExt as _, Turn, decide_fn};
use countersign_terminal::TerminalHandler;
use pty_process::blocking::Command;
use serde_json::{Value, json};

use super::lines::{Session, arguments};
use crate::support::{Recorder, call};

/// What leaves the full screen, and what ends bracketed paste.
const GIVEN_BACK: [&str; 2] = ["\u{1b}[?1049l", "\u{1b}[?2004l"];

/// Runs at the terminal: while a question is open, the program panics, or only a task of it does.
pub(crate) async fn panicking(case: &str) -> Value {
    let recorder = Recorder::new(["delete_file"]);
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::ask("sure?")));
    let calls = vec![call("c1", "delete_file", json!({"path": "a.log"}))];
    let turn = Turn::new(tools).deferred_tool_handler(TerminalHandler::new());
    let turn = turn.run(calls);
    let bug = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        panic!("the program has a bug");
    };
    if case == "panic" {
        tokio::select! {
            _ = turn => {}
            () = bug => {}
        }
    } else {
        let task = tokio::spawn(bug);
        turn.await.unwrap();
        assert!(task.await.is_err());
    }
    json!(recorder.ids())
}

/// The program, started by a shell that says afterwards how the terminal is left. The signals have their default effect,
/// also where the tests run with SIGHUP ignored, as under `nohup`.
fn in_a_shell(case: &str, lines: bool) -> Session {
    let this = std::env::current_exe().unwrap();
    let script = r#"env --default-signal=HUP,TERM "$@"; echo "status=$?"; stty -a | tr ' ;' '\n\n' | grep -x -e '-\?icanon' -e '-\?echo'"#;
    let mut program = Command::new("sh").args(["-c", script, "sh"]).arg(this).args(arguments());
    program = program.env("COUNTERSIGN_TEST_CASE", case).env("TERM", "xterm-256color");
    if lines {
        program = program.env("COUNTERSIGN_LINES", "1");
    }
    Session::on_full_screen(program)
}

/// Sends a signal to the program, and not to the shell around it.
fn signal(session: &Session, name: &str) {
    let shell = session.id();
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let sent = Kill::new("kill").args([name, children.trim()]).status().unwrap();
    assert!(sent.success());
}

fn is_given_back(session: &Session, full: bool) {
    session.until("status=", 1).until("icanon", 1).until("echo", 1);
    let shown = session.shown();
    let (_, left) = shown.rsplit_once("status=").unwrap();
    assert!(!left.contains("-icanon") && !left.contains("-echo"), "keys are lines again: {left}");
    for end in GIVEN_BACK.into_iter().skip(usize::from(!full)) {
        assert_eq!(shown.matches(end).count(), 1, "{end:?} in {shown:?}");
    }
}

#[test]
fn a_signal_that_ends_the_program_gives_the_terminal_back_and_decides_nothing() {
    for (name, status) in [("-TERM", 143), ("-HUP", 129)] {
        for lines in [false, true] {
            let session = in_a_shell("", lines);
            session.until(if lines { "Approve? " } else { "1 of 2" }, 1);
            signal(&session, name);
            is_given_back(&session, !lines);
            session.until(&format!("status={status}"), 1);
            session.until("the program was told to end", 1);
        }
    }
}

#[test]
fn a_program_that_panics_gives_the_terminal_back_before_it_says_why() {
    for lines in [false, true] {
        let session = in_a_shell("panic", lines);
        is_given_back(&session, !lines);
        let shown = session.shown();
        let back = shown.find(GIVEN_BACK[1]).unwrap();
        let why = shown.find("the program has a bug").unwrap();
        assert!(back < why, "{shown:?}");
        session.until("status=101", 1);
    }
}

#[test]
fn a_panic_elsewhere_is_shown_and_the_question_stays_open() {
    for lines in [false, true] {
        let session = in_a_shell("panic elsewhere", lines);
        session.until("the program has a bug", 1);
        let taken = if lines { "\u{1b}[?2004h" } else { "\u{1b}[?1049h" };
        session.until(taken, 2);
        // Keys that are pressed within 600 ms of a new screen are ignored.
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(900));
            if session.shown().contains("status=0") {
                break;
            }
            session.send(if lines { "y\r" } else { "a" });
        }
        session.until("status=0", 1);
        assert_eq!(session.shown().matches(taken).count(), 2, "it is taken again");
    }
}
