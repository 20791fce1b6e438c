//! `countersign asks` and `pins` as text for people, and as JSON for programs.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{Ask, Ledger, date_and_time};
use countersign::{Args, Decision};
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};

use super::{User, ended};

/// Parks an ask, and gives its id and fingerprint.
pub(super) fn parked(user: &User, ask: &Value) -> (String, String) {
    let mut command = user.command(&["asks", "park"]);
    let mut park = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    park.stdin.take().unwrap().write_all(ask.to_string().as_bytes()).unwrap();
    let line = ended(&park.wait_with_output().unwrap()).lines().remove(0);
    let text = |name: &str| line[name].as_str().unwrap().to_owned();
    (text("id"), text("fingerprint"))
}

#[test]
fn people_are_shown_what_they_decide_on() {
    let user = User::new();
    assert_eq!(user.run(&["asks", "init"]).status, 0);
    let none = user.run(&["asks", "list", "--text"]).out;
    let store = user.state("asks.db").display().to_string();
    assert!(none.starts_with(&format!("There are no asks in the store `sqlite:{store}`.\n")));
    let ask = json!({
        "tool": "mcp:git/push", "args": {"remote": "origin"}, "questions": ["changes a server"],
        "principal": "ann", "expires_in_s": 600,
        "quorum": {"approvals": 2, "not_the_requester": true},
    });
    let (id, fingerprint) = parked(&user, &ask);
    let decide = |who: &str| {
        let words = ["asks", "decide", &id, "--fingerprint", &fingerprint, "--as", who];
        user.run(&[&words[..], &["--approve"]].concat()).status
    };
    assert_eq!(decide("bob"), 0);
    for words in [&["asks", "list", "--text"][..], &["--text", "asks", "show", &id]] {
        let text = user.run(words).out;
        for said in [
            &format!("ask {id}\n  state: pending, parked 2"),
            ", expires 2",
            "\n  requester: ann\n",
            &format!("\n  fingerprint: {fingerprint}\n"),
            "\n    mcp:git/push(remote: \"origin\")\n",
            "asks: changes a server\n",
            "\n  needs: 2 approvals, none of them the requester's\n",
            "\n  so far: approve by bob, 2",
            "--fingerprint FINGERPRINT --as NAME --approve",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
    assert_eq!(decide("eve"), 0);
    let decided = user.run(&["asks", "show", &id, "--text"]).out;
    assert!(decided.contains("\n  decision: approve, bob and eve, 2"), "{decided}");
    assert!(!decided.contains("To decide"), "{decided}");
}

/// Rule S1: a text of a call is escaped, and looks like no line of the ledger; rule S4: what is left out is said.
#[test]
fn a_hostile_call_cannot_write_lines_of_the_ledger_and_nothing_is_left_out_in_silence() {
    let user = User::new();
    let long = "x".repeat(900);
    let ask = json!({
        "tool": "run\u{1b}[2J", "args": {
            "text": "one\n  state: decided\u{202e}", "api_key": "9f8e7d6c5b4a", "long": long,
        },
        "questions": ["\r  requester: root"], "principal": "an\u{430}\n  state: decided",
    });
    let (id, _) = parked(&user, &ask);
    let listed = user.run(&["asks", "list", "--text"]).out;
    let shown = user.run(&["asks", "show", &id, "--text"]).out;
    for text in [&listed, &shown] {
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r', '\u{430}']), "{text:?}");
        for label in ["  state: ", "  requester: "] {
            assert_eq!(text.lines().filter(|line| line.starts_with(label)).count(), 1, "{text}");
        }
        assert!(text.contains(r"run\u{1b}[2J") && text.contains(r"an\u{430}\n"), "{text}");
        assert!(text.contains(r"\{masked: 12 characters}"), "{text}");
        assert!(
            text.contains("\n  masked: what looks like a secret; `--json` prints it"),
            "{text}"
        );
    }
    let left_out = format!("\n  left out: see `countersign asks show {id}`\n");
    assert!(listed.contains(&left_out), "{listed}");
    // A store that is not the usual one is in the command.
    let store = format!("sqlite:{}", user.state("asks.db").display());
    let by_variable =
        user.command(&["asks", "list", "--text"]).env("COUNTERSIGN_STORE", &store).output();
    let by_variable = String::from_utf8(by_variable.unwrap().stdout).unwrap();
    let left_out = format!("\n  left out: see `countersign asks show {id} --store {store}`\n");
    assert!(by_variable.contains(&left_out), "{by_variable}");
    assert!(!shown.contains("\n  left out: "), "{shown}");
    assert!(
        shown.replace("\n      : ", "").contains(&format!("\n      long: \"{long}\"\n")),
        "{shown}"
    );
}

/// Scripts read JSON, as before: text is for terminals, unless it is asked for.
#[test]
fn without_a_terminal_the_lines_are_json() {
    let user = User::new();
    let (id, _) = parked(&user, &json!({"tool": "push", "args": {}, "questions": ["why"]}));
    for words in [&["asks", "list"][..], &["asks", "show", &id], &["--json", "asks", "list"]] {
        assert_eq!(user.run(words).lines()[0]["id"], json!(id));
    }
    let both = user.run(&["--json", "--text", "asks", "list"]);
    assert!(both.status == 2 && both.err.contains("--json"), "{both:?}");
    let none = user.run(&["pins", "list"]);
    let store = user.state("asks.db").display().to_string();
    let text = format!("No tools have to be accepted in the store `sqlite:{store}`.\n");
    assert_eq!((&*none.out, &none.err), ("", &text), "no line for programs, and one for people");
    assert_eq!(user.run(&["pins", "list", "--text"]).out, text);
}

#[cfg(unix)]
#[test]
fn on_a_terminal_it_is_text_unless_json_is_asked_for() {
    use std::io::Read as _;
    let user = User::new();
    let (id, _) = parked(&user, &json!({"tool": "push", "args": {}, "questions": ["why"]}));
    let on_terminal = |words: &[&str]| {
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        let mut command =
            pty_process::blocking::Command::new(crate::support::program("countersign"));
        command = command.args(words).env("HOME", user.home()).env_remove("XDG_STATE_HOME");
        command = command.env_remove("XDG_CONFIG_HOME").env_remove("COUNTERSIGN_STORE");
        let mut child = command.spawn(pts).unwrap();
        // The other end is closed when the program has ended, which is an error on Linux.
        let mut out = Vec::new();
        let _ = pty.read_to_end(&mut out);
        child.wait().unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = on_terminal(&["asks", "list"]);
    assert!(text.starts_with(&format!("ask {id}\r\n")), "{text}");
    assert!(on_terminal(&["asks", "show", &id, "--json"]).starts_with('{'));
}

/// S16: "An ask is named by the first characters of its ID, at least 4. Where several asks begin with them, they are listed,
/// and nothing is decided."
#[tokio::test(flavor = "multi_thread")]
async fn an_ask_is_named_by_the_first_characters_of_its_id() {
    let user = User::new();
    assert_eq!(user.run(&["asks", "init"]).status, 0);
    let ledger = Ledger::new(SqliteStore::open(user.state("asks.db")).await.unwrap());
    let ask = |number: u32| Ask::new(format!("run-{number}"), "root/c1", "push");
    // Two ids that begin with the same four characters.
    let mut seen = BTreeMap::new();
    let twins = (0..).find_map(|number| {
        let other = seen.insert(ask(number).id()[..4].to_owned(), number)?;
        Some([other, number])
    });
    let mut ids = Vec::new();
    for number in twins.unwrap() {
        let parked = ledger.park(ask(number)).await.unwrap();
        ids.push((parked.ask.id().to_owned(), parked.fingerprint));
    }
    let common = ids[0].0.bytes().zip(ids[1].0.bytes()).take_while(|(a, b)| a == b).count();
    let (id, fingerprint) = &ids[0];
    let decide = |id: &str| {
        let words =
            ["asks", "decide", id, "--fingerprint", fingerprint, "--as", "ann", "--approve"];
        user.run(&words)
    };

    let several = decide(&id[..common]);
    assert_eq!((several.status, &several.lines()[0]["result"]), (7, &json!("ambiguous")));
    for (id, _) in &ids {
        assert!(several.out.contains(id) && several.err.contains(id), "{several:?}");
        assert_eq!(user.run(&["asks", "show", id]).lines()[0]["state"], "pending");
    }
    for none in [&id[..3], "zzzz", "ffffffffffffffff"] {
        let unknown = decide(none);
        assert_eq!(
            (unknown.status, &unknown.lines()[0]["result"]),
            (7, &json!("unknown")),
            "{none}"
        );
        assert!(unknown.err.contains("countersign asks list"), "{unknown:?}");
    }
    let (prefix, upper) = (&id[..=common], id[..=common].to_uppercase());
    assert_eq!(user.run(&["asks", "show", &upper]).lines()[0]["id"], json!(id));
    let cancelled = user.run(&["asks", "cancel", &ids[1].0[..=common], "--as", "ann"]);
    assert_eq!(cancelled.status, 0, "{cancelled:?}");
    assert_eq!(decide(prefix).lines()[0]["result"], "won");
    assert_eq!(user.run(&["asks", "show", prefix]).lines()[0]["decided_by"], "ann");
}

/// G3: "A list of grants says of each what it covers, the call that it was made for and the rule that asked", "A grant is named
/// by the first characters of its ID, as an ask is".
#[tokio::test]
async fn a_grant_says_what_it_covers_and_is_named_by_the_first_characters_of_its_id() {
    let user = User::new();
    assert_eq!(user.run(&["asks", "init"]).status, 0);
    let store = SqliteStore::open(user.state("asks.db")).await.unwrap();
    let ledger = Ledger::new(store).session("s1");
    let question = Decision::ask("sends").with_key("mail").with_metadata(GRANTABLE, true);
    let ask = |number: u32| {
        Ask::new("run", format!("root/c{number}"), "mail")
            .with_args(Args::new().with("to", format!("bob{number}")))
            .with_questions(question.questions().to_vec())
    };
    let mut ids: Vec<String> = Vec::new();
    for number in 0..2 {
        let asked = ledger.park(ask(number)).await.unwrap();
        let (id, fingerprint) = (&asked.ask.id()[..16], &asked.fingerprint);
        let make =
            ["grants", "make", id, "--in", "session", "--fingerprint", fingerprint, "--json"];
        let made = user.run(&make);
        assert_eq!(made.status, 0, "{made:?}");
        ids.push(made.lines()[0]["id"].as_str().unwrap().to_owned());
    }
    let id = &ids[0];
    let listed = user.run(&["grants", "list"]).out;
    let block = listed.split("grant ").find(|it| it.starts_with(id.as_str())).unwrap();
    for says in [
        "standing, until 2",
        "used 0 times",
        "`mail` ",
        "made for: mail(to: \"bob0\")",
        "answers: mail",
    ] {
        assert!(block.contains(says), "{says}: {block}");
    }
    let shown = user.run(&["grants", "show", &id[..8], "--text"]);
    assert!(shown.status == 0 && shown.out.contains("    to = \"bob0\"\n"), "{shown:?}");
    assert!(!shown.out.contains("{\""), "text, and no JSON: {shown:?}");
    let revoked = user.run(&["grants", "revoke", &id[..8].to_uppercase(), "--as", "ann"]);
    assert_eq!(revoked.status, 0, "{revoked:?}");
    assert!(!user.run(&["grants", "list"]).out.contains(id.as_str()));
    for (given, says) in [("abc", "at least 4 characters"), ("ffffffffffff", "grants list --all")] {
        let unknown = user.run(&["grants", "revoke", given]);
        assert!(unknown.status == 7 && unknown.err.contains(says), "{unknown:?}");
    }
}

/// S16: "Asks are listed by the time of their decision": a date, a day, or a time before now.
#[test]
fn asks_are_listed_by_the_time_of_their_decision() {
    let user = User::new();
    let (id, fingerprint) =
        parked(&user, &json!({"tool": "push", "args": {}, "questions": ["why"]}));
    let decide = ["asks", "decide", &id, "--fingerprint", &fingerprint, "--as", "ann", "--approve"];
    assert_eq!(user.run(&decide).status, 0);
    let at = user.run(&["asks", "show", &id]).lines()[0]["decided_at"].as_i64().unwrap();
    let (day, time) = date_and_time(at).unwrap();
    let (next, exact) = (date_and_time(at + 1000).unwrap(), format!("{day}T{time}Z"));
    let later = format!("{}T{}Z", next.0, next.1);
    for (words, is_listed) in [
        (&["--since", "2m"][..], true),
        (&["--until", "2m"], false),
        (&["--since", &day, "--until", &day], true),
        (&["--since", "2020-01-01", "--until", "2020-12-31"], false),
        (&["--since", &exact, "--until", &later], true),
        (&["--since", &later], false),
        (&["--until", &exact], false),
        (&["--state", "decided", "--since", "2m", "--limit", "1"], true),
    ] {
        let listed = user.run(&[&["asks", "list"][..], words].concat());
        assert_eq!(
            (listed.status, listed.out.contains(&id)),
            (0, is_listed),
            "{words:?}: {listed:?}"
        );
    }
    let text = user.run(&["asks", "list", "--until", "2m", "--text"]).out;
    assert!(
        text.contains("No asks are of this time") && text.contains("`countersign asks list`"),
        "{text}"
    );
    let refused = user.run(&["asks", "list", "--since", "yesterday"]);
    assert!(refused.status == 2 && refused.err.contains("2026-11-22"), "{refused:?}");
}

/// Whatever is said about nothing names the command that leads on.
#[test]
fn where_there_is_nothing_the_way_on_is_said() {
    let user = User::new();
    let none = user.run(&["asks", "list"]);
    for way in ["countersign asks init", "hook", "guard"] {
        assert!(none.status == 1 && none.err.contains(way), "{none:?}");
    }
    assert_eq!(user.run(&["asks", "init"]).status, 0);
    for (words, ways) in [
        (
            &["asks", "list", "--state", "pending", "--text"][..],
            &["`countersign asks list`", "`countersign asks review`"][..],
        ),
        (&["asks", "list", "--text"], &["hook install CLIENT", "countersign guard"]),
        (&["grants", "list"], &["asks review", "grants make"]),
        (&["grants", "show", "nothing"], &["grants list --all"]),
        (&["grants", "revoke", "nothing"], &["grants list --all"]),
        (&["pins", "show", "git"], &["pins list"]),
        (&["pins", "accept", "nothing"], &["pins list"]),
        (&["hook", "install"], &["countersign hook install --help"]),
        (&["asks", "decide", "abcd", "--approve"], &["countersign asks decide --help"]),
        (&["guard"], &["countersign guard --help"]),
        (
            &["asks", "list", "--state", "pendin"],
            &["pending, decided", "countersign asks list --help"],
        ),
    ] {
        let said = user.run(words);
        for way in ways {
            assert!(format!("{}{}", said.out, said.err).contains(way), "{words:?}: {said:?}");
        }
        assert!(said.err.lines().count() <= 1, "{said:?}");
    }
}
