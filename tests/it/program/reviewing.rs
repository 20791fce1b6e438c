//! `countersign asks review`: a person decides the pending asks of a store on a terminal.

use countersign::Decision;
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{Ask, Ledger};
use countersign_sqlite::SqliteStore;
use pty_process::blocking::Command;
use serde_json::{Value, json};

use super::User;
use super::hooks::{CALL, Call};
use super::texts::parked;
use crate::support::program;
use crate::terminal::lines::Session;

impl User {
    /// The program on a terminal of this user.
    fn on_terminal(&self, words: &[&str]) -> Command {
        let command = Command::new(program("countersign")).args(words).env("HOME", self.home());
        let command = command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        let command = command.env("TERM", "xterm-256color").env_remove("COUNTERSIGN_STORE");
        command.env_remove("VISUAL").env_remove("EDITOR").env_remove("COUNTERSIGN_LINES")
    }

    /// A review line by line.
    fn reviews(&self) -> Session {
        Session::of(self.on_terminal(&["asks", "review", "--as", "ann"]))
    }

    /// Parks an ask about this call, and gives its id.
    fn asks_about(&self, tool: &str, args: &Value) -> (String, String) {
        parked(self, &json!({"tool": tool, "args": args, "questions": ["why"]}))
    }

    fn shows(&self, id: &str) -> Value {
        self.run(&["asks", "show", id]).lines().remove(0)
    }
}

/// S16: "`countersign asks review` asks about those that wait, the oldest first, and about new ones as they come", "Every
/// answer is bound to what was on the screen": the arguments that were typed are those that run.
#[test]
fn asks_are_decided_on_the_terminal_as_they_come() {
    let user = User::new();
    let (first, _) = user.asks_about("write_file", &json!({"path": "a"}));
    let (second, _) = user.asks_about("delete_file", &json!({"path": "b"}));
    let (third, _) = user.asks_about("move_file", &json!({"path": "c"}));
    let mut session = user.reviews();
    // The oldest comes first. An edited call is shown, and approved, as it runs.
    session.asked_behind("write_file(path: \"a\")", 1).send("e\r").until("Change which?", 1);
    session.send("j\r").until("args: ", 1);
    session.send("\u{15}{\"path\": \"z\"}\r").until("Approve with these arguments?", 1);
    session.send("a\r").until("Edited: write_file", 1);
    session.asked_behind("delete_file(path: \"b\")", 1).send("d keep it\r");
    session.until("Denied: delete_file", 1);
    session.asked_behind("move_file(path: \"c\")", 1).send("l\r").until("Left for later", 1);
    session.until("No other ask waits for you (1 left for later)", 1);
    let (fourth, _) = user.asks_about("deploy", &json!({"to": "staging"}));
    session.asked_behind("deploy(to: \"staging\")", 1).send("a\r").until("Approved: deploy", 1);
    // None waits any more.
    session.until("New ones are shown as they come", 2).send("\u{3}");
    assert_eq!(session.ended(), Some(0), "{}", session.shown());
    session.until("Approved 2, denied 1, left 1 ask for later.", 1);

    let decided = |id: &str| {
        let shown = user.shows(id);
        (shown["decision"].clone(), shown["decided_by"].clone(), shown["args_to_run"].clone())
    };
    assert_eq!(decided(&first), (json!("approve"), json!("ann"), json!({"path": "z"})));
    assert_eq!(decided(&second).0, "deny");
    assert_eq!(user.shows(&second)["message"], "keep it");
    assert_eq!(user.shows(&third)["state"], "pending");
    assert_eq!(decided(&fourth), (json!("approve"), json!("ann"), json!({"to": "staging"})));
}

/// S16: "It says how many wait", and "those whose caller waits come first": of an ask whose hook no longer waits, the words say
/// what an approval does, and the equal call that comes next runs.
#[test]
fn asks_whose_caller_is_gone_come_last_and_say_what_an_approval_does() {
    let user = User::new();
    let denied = user.hook(&CALL, "0");
    assert_eq!(denied.status, 2, "{denied:?}");
    user.asks_about("push", &json!({}));
    user.asks_about("pull", &json!({}));
    let listed = user.run(&["asks", "list", "--text"]).out;
    assert_eq!(
        listed.matches("caller: the call that asked first no longer waits").count(),
        1,
        "{listed}"
    );

    let mut session = user.reviews();
    session.asked_behind("push()", 1).until("1 of 3: ", 1).send("d no\r");
    session.until("Denied: push()", 1);
    session.asked_behind("pull()", 1).until("2 of 3: ", 1).send("l\r").until("Left for later", 1);
    session.until("3 of 3: ", 1).until("the call that asked first no longer waits:", 1);
    session.asked_behind("make install", 1).send("a\r").until("Approved: ", 1);
    session.until("No other ask waits for you", 1).send("\u{3}");
    assert_eq!(session.ended(), Some(0), "{}", session.shown());
    let allowed = user.hook(&Call { id: "c2", ..CALL }, "0");
    assert_eq!(allowed.status, 0, "{allowed:?}");
    assert!(!user.run(&["asks", "list", "--text"]).out.contains("no longer waits"));
}

/// S16: "An ask that is decided elsewhere meanwhile is closed, and you are told by whom."
#[test]
fn an_ask_that_is_decided_elsewhere_is_said_and_left() {
    let user = User::new();
    let (id, fingerprint) = user.asks_about("push", &json!({}));
    let mut session = user.reviews();
    session.asked_behind("push()", 1);
    let decide = ["asks", "decide", &id[..8], "--fingerprint", &fingerprint, "--as", "bob"];
    assert_eq!(user.run(&[&decide[..], &["--deny", "no"]].concat()).status, 0);
    session
        .until("Needs no answer any more: push()", 1)
        .until("It was denied by bob meanwhile.", 1);
    let (next, _) = user.asks_about("pull", &json!({}));
    // S8: to stop decides nothing.
    session.asked_behind("pull()", 1).send("\u{3}");
    assert_eq!(session.ended(), Some(0));
    session.until("the ask stays open", 1);
    assert_eq!(user.shows(&next)["state"], "pending");
    assert_eq!(user.shows(&id)["decided_by"], "bob");
}

/// S16: "A call that must not be approved is said, and not asked about", and an approval of several is one of them.
#[test]
fn a_call_that_no_one_may_approve_is_not_asked_about_and_a_quorum_waits_for_others() {
    let user = User::new();
    let blocked =
        json!({"key": "frozen", "reason": "frozen", "metadata": {"approval_policy": "blocked"}});
    let (id, _) = parked(&user, &json!({"tool": "freeze", "args": {}, "questions": [blocked]}));
    let two = json!({"tool": "pay", "args": {}, "questions": ["why"], "quorum": 2});
    let (pay, _) = parked(&user, &two);
    let mut session = user.reviews();
    session.until("Cannot be approved: freeze()", 1);
    session.asked_behind("pay()", 1).send("a\r").until("recorded: 1 of 2", 1);
    session.until("No ask waits for you", 1).send("\u{3}");
    assert_eq!(session.ended(), Some(0));
    for id in [id, pay] {
        assert_eq!(user.shows(&id)["state"], "pending");
    }
}

/// S16: "A grant is made only once the approval that it goes with counts."
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_made_with_an_approval() {
    let user = User::new();
    assert_eq!(user.run(&["asks", "init"]).status, 0);
    let store = SqliteStore::open(user.state("asks.db")).await.unwrap();
    let ledger = Ledger::new(store).session("s1");
    let question = Decision::ask("sends").with_metadata(GRANTABLE, true).questions().to_vec();
    ledger.park(Ask::new("run", "root/c1", "mail").with_questions(question)).await.unwrap();
    let mut session = user.reviews();
    session.asked_behind("mail()", 1).send("g\r").until("Grant this? [y,N", 1);
    session.send("y\r").until("Approved: mail()", 1).until("Granted as ", 1);
    session.until("No ask waits for you", 1).send("\u{3}");
    assert_eq!(session.ended(), Some(0));
    let grants = user.run(&["grants", "list", "--json"]).lines();
    assert_eq!((grants.len(), &grants[0]["by"]), (1, &json!(["ann"])));
}

/// S16: "`l` leaves an ask for later".
#[test]
fn on_the_full_screen_an_ask_is_left_for_later_with_a_key() {
    let user = User::new();
    user.configure("principal = \"ann\"\n");
    let (id, _) = user.asks_about("push", &json!({}));
    let mut session = Session::on_full_screen(user.on_terminal(&["asks", "review"]));
    session.until("1 of 1", 1).until("l later", 1).send("l").until("Left for later: push()", 1);
    let (next, _) = user.asks_about("pull", &json!({}));
    session.until("2 of 2", 1).until("l later", 2);
    // Longer than the time for which keys decide nothing.
    std::thread::sleep(std::time::Duration::from_millis(900));
    session.send("a").until("Approved: pull()", 1).until("1 left for later", 2).send("\u{3}");
    assert_eq!(session.ended(), Some(0));
    assert_eq!(user.shows(&id)["state"], "pending");
    assert_eq!(user.shows(&next)["decided_by"], "ann");
}

/// S16: "Without a terminal nothing is asked".
#[test]
fn without_a_terminal_the_error_names_the_commands_of_programs() {
    let user = User::new();
    user.asks_about("push", &json!({}));
    let piped = user.run(&["asks", "review"]);
    assert_eq!((piped.status, &*piped.out), (2, ""));
    for named in
        ["on a terminal", "countersign asks list --state pending", "countersign asks decide"]
    {
        assert!(piped.err.contains(named), "{}", piped.err);
    }
}
