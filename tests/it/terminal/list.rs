//! The full screen of the terminal handler, in a real pseudo-terminal whose screen is read by an emulator.
#![cfg(unix)]

use std::num::NonZero;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::Command;
use serde_json::json;

use super::lines::{SCREEN, Session, arguments};
use crate::support::program;

fn size(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}

/// Longer than the time for which keys decide nothing.
fn armed() {
    std::thread::sleep(Duration::from_millis(900));
}

fn start(case: &str, set: &[(&str, &str)]) -> Session {
    start_as(Command::new(std::env::current_exe().unwrap()), case, set)
}

/// Starts the program by a command to which its arguments are appended.
fn start_as(command: Command, case: &str, set: &[(&str, &str)]) -> Session {
    let mut program =
        command.args(arguments()).env("COUNTERSIGN_TEST_CASE", case).env_remove("NO_COLOR");
    program = program.env_remove("VISUAL").env_remove("EDITOR").env("TERM", "xterm-256color");
    for (name, value) in set {
        program = program.env(name, value);
    }
    Session::on_full_screen(program)
}

/// Before and after each screen that the program draws: a terminal shows nothing of one that is not complete.
const DRAWING: [&str; 2] = ["\u{1b}[?2026h", "\u{1b}[?2026l"];

impl Session {
    /// The screen that a terminal of this size shows.
    fn screen(&self, height: u16, width: u16) -> vt100::Parser {
        let shown = self.shown();
        let [begins, ends] = DRAWING.map(|text| shown.rfind(text));
        let complete = if begins > ends { begins } else { None };
        let mut parser = vt100::Parser::new(size(height), size(width), 0);
        parser.process(&shown.as_bytes()[..complete.unwrap_or(shown.len())]);
        parser
    }

    /// The rows of a screen of this size.
    fn rows(&self, height: u16, width: u16) -> Vec<String> {
        self.screen(height, width).screen().rows(0, width).collect()
    }

    fn text(&self) -> String {
        self.screen(40, 100).screen().contents()
    }

    /// Waits until the screen has this text.
    fn shows(&self, text: &str) -> &Self {
        let start = Instant::now();
        while !self.text().contains(text) {
            assert!(start.elapsed() < SCREEN, "`{text}` is not on the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Presses keys once they decide. On a machine that is busy, the program may begin to wait later than this process, and
    /// say that it has ignored them: then they are pressed again.
    fn press(&self, keys: &str) -> &Self {
        let ignored = || -> usize {
            let text = self.text();
            let number = text.split("Ignored ").nth(1).and_then(|rest| rest.split(' ').next());
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let without_times = || self.text().replace(|c: char| c.is_ascii_digit(), "");
        loop {
            armed();
            let (before, screen) = (ignored(), without_times());
            self.send(keys);
            let pressed = Instant::now();
            while without_times() == screen && pressed.elapsed() < Duration::from_secs(2) {
                std::thread::sleep(Duration::from_millis(20));
            }
            if ignored() <= before {
                return self;
            }
        }
    }
}

/// S3: "Keys and clicks from before do not count."
#[test]
fn keys_from_before_the_screen_decide_nothing() {
    let session = start("", &[]);
    session.send("aaaAAA").shows("1 of 2").shows("0 approved, 0 denied");
    session.press("a").shows("1 approved").press("d").shows("tell the model").send("\r");
    let result = session.result();
    assert_eq!(result["ran"], json!([{"path": "a\u{202e}.log"}]), "{result}");
}

#[test]
fn a_key_held_down_decides_one_call_at_most() {
    let session = start("many_slowly", &[]);
    session.shows("1 of 51");
    // Longer than the keys wait, and so long that no pause of this process is as long as that.
    std::thread::sleep(Duration::from_secs(7));
    for _ in 0..40 {
        session.send("a");
        std::thread::sleep(Duration::from_millis(30));
    }
    session.shows("1 approved, 0 denied, 59 open").shows("Ignored").send("\u{3}");
    assert_eq!(session.result(), json!({"ran": 0, "stopped": true}));
}

/// S4: "Text that was left out of the view has to be opened before the call can be approved".
#[test]
fn a_call_with_text_left_out_is_opened_first() {
    let session = start("long", &[]);
    session.shows("1 of 2").press("a").shows("v shows all of it");
    session
        .send("j")
        .shows("2 of 2")
        .press("A")
        .shows("Type `yes` to approve 1 call")
        .send("yes\r");
    session.shows("Not approved: 1 call").shows("1 approved");
    session.send("v").shows("more rows below").press("a").shows("not all of this call was on");
    session.send("\u{1b}[F").shows("The end of this call").press("a");
    assert_eq!(session.result(), json!(["c1", "c2"]));
}

/// G3: "A call of which something was not seen cannot be granted either", and a grant is made once all of it was seen.
#[test]
fn a_call_with_text_left_out_is_opened_before_it_is_granted() {
    let session = start("granted", &[]);
    session.shows("1 of 1").press("g").shows("v shows all of it");
    session.send("v").shows("more rows below").press("g").shows("not all of this call was on");
    session.send("\u{1b}[F").shows("The end of this call").press("g").shows("Always: `write_file`");
    session.press("a").shows("Not granted: not all of it was on the screen");
    session.send("\u{1b}[F").press("a");
    assert_eq!(session.result(), json!({"ran": ["c1"], "grants": 1}));
}

/// S5: "While an edit is open the only approval is of the edited arguments."
#[test]
fn an_edit_is_shown_and_approved_as_edited() {
    let editor = "sed -i s/a.u202e/edited/";
    let session = start("", &[("EDITOR", editor)]);
    session.shows("1 of 2").send("e").shows("a approve as edited").shows("edited.log");
    session.press("a").shows("1 approved").press("d").shows("tell the model").send("\r");
    let result = session.result();
    assert_eq!(result["ran"], json!([{"path": "edited.log"}]), "{result}");
}

/// S5: "Unfinished text survives": the draft is shown again, and approves nothing.
#[test]
fn an_edit_that_is_no_json_is_kept() {
    let session = start("", &[]);
    session.shows("1 of 2").send("e").shows("path:").shows("  | a\\u{202e}.log");
    // As JSON, with the closing brace taken away.
    session.send("\u{14}").shows("\"path\": \"a").send("\u{1b}[B\u{1b}[B\u{1b}[3~\u{13}");
    session.shows("No JSON: ").send("}\u{13}").shows("Nothing was changed.");
    session.send("e").shows("  | a\\u{202e}.log").send("2\u{13}").shows("a approve as edited");
    session.send("\u{1b}").shows("The edit is kept").send("e").shows("  | a\\u{202e}.log2");
    session.send("\u{1b}").shows("Nothing was decided.").send("\u{3}");
    let result = session.result();
    assert_eq!((&result["ran"], &result["stopped"]), (&json!([]), &json!(true)));
}

/// A file of several lines is changed as such, with no editor of the person's.
#[test]
fn a_text_of_several_lines_is_edited_in_a_form() {
    let session = start("text", &[]);
    session.shows("1 of 1").send("e").shows("content:").shows("  | line 2").shows("Ctrl-S done");
    session.send("\t\u{1b}[B\u{1b}[F!\r\"quoted\"").shows("  | line 2!").shows("  | \"quoted\"");
    session.send("\u{13}").shows("a approve as edited").shows("line 2!").press("a");
    let lines: Vec<_> = (1..14).map(|n| format!("line {n}\n")).collect();
    let text = lines.concat().replace("line 2\n", "line 2!\n\"quoted\"\n");
    assert_eq!(session.result(), json!([{"content": text, "path": "notes.txt"}]));
}

/// S6: "every ask reachable", "equal calls grouped", "search".
#[test]
fn every_call_of_a_large_batch_is_reached_and_equal_ones_are_one_entry() {
    let session = start("many", &[]);
    session.shows("1 of 51").send(">").shows("51 of 51").shows("same.log").shows("10 equal calls");
    session.send("/37.log\r").shows("1 of 1 found").press("d").shows("tell the model").send("\r");
    session.shows("1 denied, 59 open");
    session.send("\u{3}");
    assert_eq!(session.result(), json!({"ran": 0, "stopped": true}));
}

#[test]
fn all_are_approved_by_their_number_once_they_were_seen() {
    let session = start("many", &[]);
    session.shows("1 of 51").press("A").shows("Type `yes` to approve").send("yes\r");
    session.shows("of which not all was on the screen").send("\u{3}");
    assert_eq!(session.result(), json!({"ran": 0, "stopped": true}));

    let session = start("many", &[]);
    session.shows("1 of 51");
    for _ in 0..60 {
        session.send("j");
        std::thread::sleep(Duration::from_millis(15));
    }
    session.shows("51 of 51").press("D").shows("Type `yes` to deny").send("no\r");
    session.shows("Nothing was decided").press("A").shows("Type `all 60` to approve");
    session.send("all 60\r");
    assert_eq!(session.result(), json!({"ran": 60, "stopped": false}));
}

/// S6: "select and decide many"; S4: "alone or with others".
#[test]
fn those_that_are_selected_are_decided_together() {
    let session = start("many", &[]);
    session.shows("1 of 51").send("x").shows(">*").send("jjx").shows("the 2 selected");
    session.send("x").shows("the 1 selected").send("jx").shows("the 2 selected");
    session.press("a").shows("Approved 2 calls.").shows("2 approved, 0 denied, 58 open");
    session.send("xjx").shows("the 2 selected").send("\u{1b}").shows("a approve  d deny");
    session.send("xjjx").shows("the 2 selected").press("d").shows("Deny, and tell the model: ");
    session.send("not these\r").shows("Denied 2 calls.").shows("2 approved, 2 denied, 56 open");
    // Equal calls are one entry.
    session.send(">xkx").shows("the 2 selected").press("d").shows("tell the model").send("\r");
    session
        .shows("Type `yes` to deny 11 calls")
        .send("yes\r")
        .shows("2 approved, 13 denied, 45 open")
        .send("\u{3}");
    assert_eq!(session.result(), json!({"ran": 0, "stopped": true}));

    let session = start("long", &[]);
    session.shows("1 of 2").send("xjx").shows("the 2 selected").press("a");
    session.shows("Not approved: 1 call").shows("1 approved").press("d").shows("tell the model");
    session.send("\r");
    assert_eq!(session.result(), json!(["c2"]));
}

/// S8: "Stop is not no."
#[test]
fn ctrl_c_on_the_full_screen_stops_the_run() {
    let session = start("ledger", &[]);
    session.shows("1 of 1").send("\u{3}");
    session.until("Stopped, as Ctrl-C was pressed: 1 call not decided, and not run.", 1);
    let shown = session.shown();
    assert!(shown.contains("\u{1b}[?1049l"), "the screen is given back");
    assert_eq!(
        session.result(),
        json!({"stopped": true, "open": 1, "text": "Done.", "ran": ["c1"]})
    );
}

/// S1: "Control, bidi, zero-width and escape characters … are shown as escapes".
#[test]
fn hostile_text_is_shown_escaped_on_the_full_screen() {
    let session = start("", &[]);
    session.shows("a\\u{202e}.log");
    assert!(!session.shown().contains('\u{202e}'));
    session.send("\u{3}");
    session.result();
}

/// S7: "A change is shown as a change", with colors unless `NO_COLOR` is set.
#[test]
fn a_change_is_shown_in_color_on_the_full_screen() {
    for (set, colored) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let session = start("preview", set);
        session.shows("|-two").shows("|+2\\u{1b}[2J").shows("shows a.txt, which is changed");
        assert_eq!(session.shown().contains("\u{1b}[38;5;"), colored);
        session.press("a");
        assert_eq!(session.result(), json!(["c1"]));
    }
}

/// S4: a message says what to do next, which a narrow window must not cut; the help has rows below there.
#[test]
fn messages_and_help_are_whole_in_a_small_window() {
    let session = start("long", &[]);
    session.shows("1 of 2");
    assert!(
        session.text().lines().any(|row| row.trim_end().len() == 100 && row.starts_with("---"))
    );
    session.pty.resize(Size::new(12, 40)).unwrap();
    let shows = |text: &str| {
        let begun = Instant::now();
        loop {
            let shown = session.rows(12, 40);
            if shown.join(" ").split_whitespace().collect::<Vec<_>>().join(" ").contains(text) {
                return shown;
            }
            assert!(
                begun.elapsed() < SCREEN,
                "`{text}` is not on the screen:\n{}",
                shown.join("\n")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // The first row has no counts on the small screen alone, and nothing of it is cut: now the program knows its size.
    let begun = Instant::now();
    while session.rows(12, 40)[0].trim_end() != "root asks to run 2 tools  1 of 2" {
        assert!(begun.elapsed() < SCREEN, "{}", session.rows(12, 40).join("\n"));
        std::thread::sleep(Duration::from_millis(20));
    }
    session.press("a");
    shows("Not approved: something was left out of the view of this call. v shows all of it.");
    shows("? help");
    session.send("?");
    let first = shows("more rows below");
    assert!(!first.join(" ").contains("goes back"));
    session.send("\u{1b}[F");
    shows("Any other key goes back.");
    session.send("q");
    shows("1 of 2");
    session.press("d");
    shows("tell the model");
    session.send("\r");
    shows("2 of 2");
    session.press("d");
    shows("tell the model");
    session.send("\r");
    assert_eq!(session.result(), json!([]));
}

/// G3: "the time that is chosen is the time that is shown and made", before the call and not behind all of it.
#[test]
fn a_grant_is_shown_with_the_time_that_was_typed() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [("cache.tmp", "cache"), ("todo.txt", "tidy up"), (".env", "KEY=1")] {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    let assistant =
        Command::new(program("assistant")).arg(dir.path()).env("TERM", "xterm-256color");
    let mut session = Session::on_full_screen(assistant.env_remove("COUNTERSIGN_LINES"));
    session.shows("1 of 2").press("a").shows("1 approved").press("a").shows("1 of 1");
    session.send("g").shows("Always: `write_file` for the file `SUMMARY.md`, with any content");
    session.send("U").shows("Grant for how long").send("2h\r").shows("for at most 2h.");
    session.shows("valid_for = \"2h\"").press("a");
    assert_eq!(session.ended(), Some(0), "{}", session.shown());
    assert!(session.shown().contains("Granted as "), "{}", session.shown());
}

/// "Every surface shows a call from top to bottom like this": the call, the reason, the change, the keys; nothing of the keys
/// that decide is cut.
#[test]
fn the_order_is_the_same_on_a_small_screen() {
    for (height, width) in [(24, 80), (12, 40)] {
        let session = start("preview", &[]);
        session.shows("1 of 1").pty.resize(Size::new(height, width)).unwrap();
        // The screen of the size before may be shown for a while, and keys from then do not count. Its rule is longer.
        let begun = Instant::now();
        loop {
            let shown = session.rows(height, width);
            let row = |text: &str| shown.iter().position(|row| row.contains(text));
            let rule = row("-----").unwrap_or_default();
            let rules = shown.iter().filter(|row| row.starts_with("-----"));
            let is_of_size = rules.count() == 1 && shown[rule] == "-".repeat(width.into());
            let call = shown[rule..].iter().position(|it| it.contains("write_file"));
            let is_reason = |row: &String| row.starts_with("  ? ") && !row.contains("? help");
            let mut order = vec![call.map(|call| call + rule), shown.iter().position(is_reason)];
            // On the small one the change is below, which the row above the keys says.
            order.extend(if height == 24 { vec![row("  = "), row("|-two")] } else { Vec::new() });
            order.extend([row("a approve  d deny  e change"), row("? help")]);
            if is_of_size && order.is_sorted() && !order.contains(&None) {
                break;
            }
            assert!(begun.elapsed() < SCREEN, "{order:?}:\n{}", shown.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
        session.press("d").shows("tell the model").send("\r");
        assert_eq!(session.result(), json!([]));
    }
}

/// A list of one call would say it twice, and the room is the call's; nothing is cut where the advice stands.
#[test]
fn one_call_is_named_once_and_the_advice_is_whole() {
    let session = start("preview", &[]);
    session.shows("1 of 1").pty.resize(Size::new(12, 40)).unwrap();
    session.send("\u{1b}[F");
    let begun = Instant::now();
    let of_end = |rows: &[String]| {
        rows[0].trim_end() == "root asks to run a tool  1 of 1"
            && rows[1].starts_with("-----")
            && rows.iter().any(|row| row.trim_end() == "  The end of this call: PageUp")
    };
    while !of_end(&session.rows(12, 40)) {
        assert!(begun.elapsed() < SCREEN, "{}", session.rows(12, 40).join("\n"));
        std::thread::sleep(Duration::from_millis(20));
    }
    session.send("\u{1b}[5~\u{1b}[5~\u{1b}[5~");
    let named = |rows: Vec<String>| rows.iter().filter(|row| row.contains("write_file(")).count();
    let begun = Instant::now();
    while named(session.rows(12, 40)) != 1 {
        assert!(begun.elapsed() < SCREEN, "{}", session.rows(12, 40).join("\n"));
        std::thread::sleep(Duration::from_millis(20));
    }
    session.press("d").shows("tell the model").send("\r");
    assert_eq!(session.result(), json!([]));
}

/// A session of its own gets no signal when the window changes, as over some connections.
#[test]
fn a_window_is_drawn_anew_where_nothing_says_that_it_was_resized() {
    const IN_A_SESSION: &str =
        "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], start_new_session=True))";
    let program =
        Command::new("python3").args(["-c", IN_A_SESSION]).arg(std::env::current_exe().unwrap());
    let session = start_as(program, "", &[]);
    session.shows("1 of 2");
    armed();
    session.pty.resize(Size::new(6, 40)).unwrap();
    session.until("Make the window larger.", 1);
    session.pty.resize(Size::new(40, 100)).unwrap();
    session.shows("0 approved").send("\u{3}");
    assert_eq!(session.result()["ran"], json!([]));
}

#[test]
fn a_resized_window_is_drawn_anew() {
    let session = start("", &[]);
    session.shows("1 of 2");
    session.pty.resize(Size::new(6, 40)).unwrap();
    session.until("Make the window larger.", 1);
    session.press("a").pty.resize(Size::new(40, 100)).unwrap();
    session.shows("0 approved").send("\u{3}");
    assert_eq!(session.result()["ran"], json!([]));
}
