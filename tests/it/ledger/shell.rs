//! The ledger from the shell: what each command prints, its exit status, and what it refuses.

use countersign_cli::config::write_private;
use serde_json::{Value, json};

use super::{Shell, said};

over_each_store!(
    an_ask_is_parked_decided_claimed_and_settled,
    each_result_has_its_exit_status,
    a_quorum_of_several_people_decides,
    the_same_key_is_the_same_ask,
    bad_usage_and_bad_values_are_one_line_errors_and_change_nothing,
    sql_in_every_field_is_text,
    values_up_to_the_nesting_limit_are_stored,
);

fn an_ask_is_parked_decided_claimed_and_settled(shell: &Shell) {
    let init = shell.run(&["init"]);
    assert_eq!((init.status, init.line()), (0, &json!({"ok": true})));
    let ask = shell.ask();
    assert_eq!(shell.claim(&ask, "w1", "60").told(), (9, "not_decided"));
    assert_eq!(shell.decide(&ask, "ann", &["--approve"]).told(), (0, "won"));
    assert_eq!(shell.decide(&ask, "ann", &["--approve"]).told(), (0, "won"));
    let lost = shell.decide(&ask, "bob", &["--deny", "--no"]);
    assert_eq!(lost.told(), (3, "lost"));
    let winner = &lost.line()["winner"];
    assert_eq!((&winner["by"], &winner["decision"]), (&json!("ann"), &json!("approve")));
    assert!(winner["at"].is_i64());

    let claimed = shell.claim(&ask, "w1", "60");
    assert_eq!((claimed.told(), &claimed.line()["token"]), ((0, "claimed"), &json!(1)));
    let held = shell.claim(&ask, "w2", "60");
    assert_eq!((held.told(), &held.line()["by"]), ((3, "held"), &json!("w1")));
    let renew = |token| shell.run(&["renew", &ask.id, "--token", token, "--lease-s", "60"]);
    assert_eq!(renew("1").told(), (0, "renewed"));
    assert_eq!(renew("2").told(), (3, "stale_token"));
    assert_eq!(shell.settle(&ask, 2, "1").told(), (3, "stale_token"));
    assert_eq!(shell.settle(&ask, 1, r#"{"deleted": 1}"#).told(), (0, "settled"));
    for said in [shell.settle(&ask, 1, "2"), shell.claim(&ask, "w2", "60")] {
        assert_eq!(said.line()["outcome"], json!({"deleted": 1}), "L3: {said:?}");
    }
    assert_eq!(shell.claim(&ask, "w2", "60").told(), (8, "settled"));

    let shown = shell.show(&ask);
    for (field, value) in [
        ("id", json!(ask.id)),
        ("fingerprint", json!(ask.fingerprint)),
        ("tool", json!("rm")),
        ("args", json!({"path": "a.log"})),
        ("questions", json!(["sure?"])),
        ("state", json!("executed")),
        ("decision", json!("approve")),
        ("decided_by", json!("ann")),
        ("outcome", json!({"deleted": 1})),
        ("token", json!(1)),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    assert_eq!(shell.run(&["list"]).lines, [shown]);
    assert_eq!(shell.verify(), 4);
}

fn each_result_has_its_exit_status(shell: &Shell) {
    let ask = |more: Value| {
        let mut ask =
            json!({"tool": "rm", "args": {"n": 1}, "questions": [{"key": "k", "reason": "sure?"}]});
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask
    };
    let late = shell.park(&ask(json!({"expires_in_s": 0})));
    assert_eq!(shell.decide(&late, "ann", &["--approve"]).told(), (4, "expired"));
    assert_eq!(shell.claim(&late, "w", "60").told(), (10, "denied"));
    assert_eq!(shell.show(&late)["decided_by"], json!(null), "L4: an expired ask has no decider");

    let gone = shell.park(&ask(json!({})));
    let cancel = || shell.run(&["cancel", &gone.id, "--as", "mallory"]);
    assert_eq!((cancel().told(), cancel().told()), ((0, "cancelled"), (0, "cancelled")));
    assert_eq!(shell.decide(&gone, "ann", &["--approve"]).told(), (5, "cancelled"));

    let mut other = shell.park(&ask(json!({})));
    let fingerprint = std::mem::replace(&mut other.fingerprint, gone.fingerprint);
    assert_eq!(shell.decide(&other, "ann", &["--approve"]).told(), (6, "mismatch"));
    other.fingerprint = fingerprint;
    assert_eq!(shell.decide(&other, "ann", &["--deny", "keep it"]).told(), (0, "won"));
    assert_eq!(shell.claim(&other, "w", "60").told(), (10, "denied"));
    assert_eq!(shell.show(&other)["message"], "keep it");

    other.id = "never parked".to_owned();
    assert_eq!(shell.decide(&other, "ann", &["--approve"]).told(), (7, "unknown"));
    assert_eq!(shell.claim(&other, "w", "1").told(), (7, "unknown"));
    assert_eq!(shell.settle(&other, 1, "1").told(), (7, "unknown"));
    assert_eq!(shell.run(&["show", &other.id]).told(), (7, "unknown"));

    let lost = shell.approved(&ask(json!({})));
    assert_eq!(shell.claim(&lost, "w1", "0").told(), (0, "claimed"));
    assert_eq!(shell.claim(&lost, "w2", "60").told(), (11, "unknown_outcome"));
    let again = shell.approved(&ask(json!({"idempotent": true})));
    assert_eq!(shell.claim(&again, "w1", "0").line()["token"], 1);
    assert_eq!(shell.claim(&again, "w2", "60").line()["token"], 2);
    assert_eq!(shell.settle(&again, 1, "1").told(), (3, "stale_token"));

    let unanswered = shell.park(&ask(json!({})));
    let answer = shell.decide(&unanswered, "ann", &["--answer", "-42"]);
    assert_eq!(answer.told(), (10, "unapprovable"), "a result is no approval");
    assert_eq!(shell.claim(&unanswered, "w", "60").told(), (9, "not_decided"));
    assert_eq!(shell.run(&["cancel", &unanswered.id, "--as", "ann"]).told(), (0, "cancelled"));

    let edited = shell.park(&ask(json!({})));
    let edit = ["--approve", "--args", r#"{"n": 2}"#];
    assert_eq!(shell.decide(&edited, "ann", &edit).told(), (0, "won"));
    assert_eq!(shell.show(&edited)["args_to_run"], json!({"n": 2}));

    let due = shell.park(&ask(json!({"expires_in_s": 0.0})));
    let expired = shell.run(&["expire"]);
    let changed = json!([{"id": due.id, "state": "expired"}]);
    assert_eq!((expired.status, &expired.line()["changed"]), (0, &changed));
    assert_eq!(shell.run(&["expire"]).line()["changed"], json!([]));
    let states = |state: &str| shell.run(&["list", "--state", state]).lines.len();
    assert_eq!((states("expired"), states("unknown"), states("pending")), (2, 1, 0));
    assert_eq!(shell.run(&["list", "--limit", "3"]).lines.len(), 3);
    shell.verify();
}

fn a_quorum_of_several_people_decides(shell: &Shell) {
    let quorum = json!({"approvals": 2, "not_the_requester": true});
    let ask =
        json!({"tool": "rm", "args": {}, "questions": [], "principal": "eve", "quorum": quorum});
    let ask = shell.park(&ask);
    let approve = |who: &str| shell.decide(&ask, who, &["--approve"]).told().1.to_owned();
    let refused = shell.decide(&ask, "eve", &["--approve"]);
    assert_eq!(refused.told(), (10, "not_allowed"));
    assert_eq!((approve("ann"), approve("ann")), ("recorded".into(), "recorded".into()));
    assert_eq!(shell.claim(&ask, "w", "60").told(), (9, "not_decided"));
    assert_eq!((approve("bob"), approve("ann")), ("won".into(), "won".into()));
    assert_eq!(shell.show(&ask)["decided_by"], json!(["ann", "bob"]));
    assert_eq!(shell.decide(&ask, "zoe", &["--deny", "no"]).told(), (0, "won"), "a veto");
    assert_eq!(shell.claim(&ask, "w", "60").told(), (10, "denied"));
}

fn the_same_key_is_the_same_ask(shell: &Shell) {
    let ask = json!({"tool": "rm", "args": {"n": 1}, "questions": [], "key": "k'; --"});
    let (first, second) = (shell.park(&ask), shell.park(&ask));
    assert_eq!((&first.id, &first.fingerprint), (&second.id, &second.fingerprint), "L3");
    assert_ne!(shell.ask().id, shell.ask().id, "without a key each ask is a new one");
}

fn bad_usage_and_bad_values_are_one_line_errors_and_change_nothing(shell: &Shell) {
    let ask = shell.ask();
    let before = shell.show(&ask);
    let (id, f) = (ask.id.as_str(), ask.fingerprint.as_str());
    let decide = ["decide", id, "--fingerprint", f, "--as", "ann"];
    let with = |more: &[&'static str]| -> Vec<String> {
        decide.iter().chain(more).map(|it| (*it).to_owned()).collect()
    };
    let plain = |args: &[&str]| -> Vec<String> { args.iter().map(|it| (*it).to_owned()).collect() };
    for args in [
        plain(&[]),
        plain(&["frob"]),
        plain(&["decide", id, "--approve"]),
        plain(&["decide", id, "--fingerprint", f, "--as", " ", "--approve"]),
        with(&[]),
        with(&["--approve", "--deny", "no"]),
        with(&["--deny", "no", "--args", "{}"]),
        with(&["--approve", "--args", "[]"]),
        with(&["--approve", "--args", ""]),
        with(&["--approve", "--args", "null"]),
        with(&["--approve", "--args", r#"{"a":1,"a":2}"#]),
        with(&["--approve", "--args", r#"{"a":99999999999999999999}"#]),
        with(&["--answer", "1,\"x\":2"]),
        with(&["--answer", "{"]),
        plain(&["claim", id, "--worker", "w", "--lease-s", "-1"]),
        plain(&["claim", id, "--worker", "w", "--lease-s", "NaN"]),
        plain(&["claim", id]),
        plain(&["settle", id, "--token", "-1", "--outcome", "1"]),
        plain(&["settle", id, "--token", "1", "--outcome", "nonsense"]),
        plain(&["list", "--state", "sold"]),
    ] {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let said = shell.run(&args);
        assert_eq!((said.status, &said.lines[..]), (2, &[][..]), "{args:?}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{args:?}: {}", said.err);
    }
    for bad in [
        "",
        "[]",
        "{}",
        "nonsense",
        r#"{"tool":"rm"}"#,
        r#"{"tool":" ","args":{}}"#,
        r#"{"tool":7,"args":{}}"#,
        r#"{"tool":"rm","args":[1]}"#,
        r#"{"tool":"rm","args":"{}"}"#,
        r#"{"tool":"rm","args":{"a":1,"a":2}}"#,
        r#"{"tool":"rm","args":{"a":123456789012345678901234567890}}"#,
        r#"{"tool":"rm","args":{},"questions":"sure?"}"#,
        r#"{"tool":"rm","args":{},"questions":[7]}"#,
        r#"{"tool":"rm","args":{},"questions":[{}]}"#,
        r#"{"tool":"rm","args":{},"expires_in_s":-1}"#,
        r#"{"tool":"rm","args":{},"expires_in_s":"1"}"#,
        r#"{"tool":"rm","args":{},"expires_in_s":1e300}"#,
        r#"{"tool":"rm","args":{},"quorum":0}"#,
        r#"{"tool":"rm","args":{},"quorum":{"approvals":2,"not_the_requester":true}}"#,
        r#"{"tool":"rm","args":{},"idempotent":"yes"}"#,
        r#"{"tool":"rm","args":{},"unheard":1}"#,
        &format!(r#"{{"tool":"rm","args":{{"a":"{}"}}}}"#, "x".repeat(2 << 20)),
        &format!(r#"{{"tool":"rm","args":{{"a":{}{}}}}}"#, "[".repeat(500), "]".repeat(500)),
    ] {
        let said = said(shell.start(&["park"], bad));
        assert_eq!((said.status, &said.lines[..]), (2, &[][..]), "{bad:.80}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{bad:.80}: {}", said.err);
    }
    assert_eq!(shell.run(&["list"]).lines, [before], "the pending ask is unchanged");
    assert_eq!(shell.verify(), 1);
}

fn sql_in_every_field_is_text(shell: &Shell) {
    let sql = r#"'; DROP TABLE countersign_rows; DELETE FROM countersign_log; --"#;
    let ask = shell.park(&json!({
        "tool": sql, "args": {sql: sql}, "questions": [sql, {"key": sql, "layer": sql}],
        "principal": sql, "key": sql,
    }));
    let mut wrong = ask.clone();
    wrong.fingerprint = sql.to_owned();
    assert_eq!(shell.decide(&wrong, sql, &["--approve"]).told(), (6, "mismatch"));
    wrong.id = sql.to_owned();
    assert_eq!(shell.decide(&wrong, sql, &["--approve"]).told(), (7, "unknown"));
    let edit = json!({ sql: 1 }).to_string();
    assert_eq!(shell.decide(&ask, sql, &["--approve", "--args", &edit]).told(), (0, "won"));
    assert_eq!(shell.claim(&ask, sql, "60").told(), (0, "claimed"));
    assert_eq!(shell.settle(&ask, 1, &json!(sql).to_string()).told(), (0, "settled"));
    let shown = shell.show(&ask);
    for field in ["tool", "principal", "decided_by", "outcome"] {
        assert_eq!(shown[field], sql, "{field}");
    }
    assert_eq!(shell.run(&["cancel", sql, "--as", sql]).told(), (7, "unknown"));
    assert_eq!(shell.run(&["list"]).lines.len(), 1);
    assert_eq!(shell.verify(), 4);
}

fn values_up_to_the_nesting_limit_are_stored(shell: &Shell) {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let park = |levels| {
        let ask = format!(r#"{{"tool":"t","args":{{"a":{}}}}}"#, nested(levels));
        said(shell.start(&["park"], &ask))
    };
    // Rule T5: at most 64 levels. The command reads the whole ask by that rule, which has two around the list.
    let refused = park(63);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.err.contains("nested more than 64 levels deep"), "{refused:?}");
    let parked = park(62);
    assert_eq!(parked.status, 0, "{parked:?}");
    let deep = nested(62);
    let text = |field: &str| parked.line()[field].as_str().unwrap().to_owned();
    let ask = super::Parked { id: text("id"), fingerprint: text("fingerprint") };
    assert_eq!(shell.decide(&ask, "ann", &["--approve"]).told(), (0, "won"));
    assert_eq!(shell.claim(&ask, "w", "60").told(), (0, "claimed"));
    assert_eq!(shell.settle(&ask, 1, &deep).told(), (0, "settled"));
    assert_eq!(shell.claim(&ask, "w", "60").status, 8);
    assert_eq!(shell.run(&["list", "--state", "executed"]).status, 0);
    shell.verify();
}

#[test]
fn a_store_that_cannot_be_used_is_a_one_line_error() {
    let shell = Shell::sqlite();
    let path = |name: &str| shell.place.path().join(name);
    std::fs::write(
        path("junk"),
        "no database, but a text that is longer than a header".repeat(100),
    )
    .unwrap();
    std::fs::create_dir(path("folder")).unwrap();
    let newer = path("newer");
    let tables = rusqlite::Connection::open(&newer).unwrap();
    let version =
        "CREATE TABLE countersign_version (one INTEGER PRIMARY KEY, version INTEGER NOT NULL);
        INSERT INTO countersign_version VALUES (1, 99);";
    tables.execute_batch(version).unwrap();
    drop(tables);
    for (name, why, status) in [
        ("sqlite:", "names no file", 2),
        ("", "is no store", 2),
        ("mysql://host/db", "is no store", 2),
        (&*format!("sqlite:{}", path("no/such/folder").display()), "o", 1),
        (&*format!("sqlite:{}", path("junk").display()), "not a database", 1),
        (&*format!("sqlite:{}", path("folder").display()), "unable to open", 1),
        (&*format!("sqlite:{}", newer.display()), "version 99", 1),
    ] {
        let shell = Shell { url: name.to_owned(), place: tempfile::TempDir::new().unwrap() };
        for command in ["init", "list", "verify", "export", "expire"] {
            let said = shell.run(&[command]);
            assert_eq!((said.status, &said.lines[..]), (status, &[][..]), "{name}: {said:?}");
            assert!(
                said.err.contains(why) && said.err.lines().count() == 1,
                "{name}: {}",
                said.err
            );
        }
    }
}

/// "Commands about an existing store do not create one."
#[test]
fn only_init_and_park_create_a_store() {
    let shell = Shell::sqlite();
    let file = shell.place.path().join("asks.db");
    for command in [
        &["list"][..],
        &["show", "x"],
        &["verify"],
        &["checkpoint"],
        &["export"],
        &["expire"],
        &["each"],
        &["claim", "x", "--worker", "w"],
        &["cancel", "x", "--as", "ann"],
    ] {
        let said = shell.run(command);
        assert_eq!((said.status, &said.lines[..]), (1, &[][..]), "{command:?}: {said:?}");
        assert!(said.err.contains("there is no store at"), "{}", said.err);
        assert!(said.err.contains("countersign asks init"), "it names what helps: {}", said.err);
        assert!(!file.exists(), "{command:?} has created it");
    }
    assert_eq!(shell.run(&["init"]).status, 0);
    let empty = shell.run(&["verify"]);
    assert_eq!((empty.status, &empty.line()["ok"]), (3, &json!(false)), "L2: nothing to verify");
    shell.ask();
    assert_eq!(shell.verify(), 1);
}

/// P1, L8: a key that protects nothing is refused: one that others can read or change, one that is empty or short, and what is
/// no file.
#[test]
#[cfg(unix)]
fn an_audit_key_that_protects_nothing_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let shell = Shell::sqlite();
    let file = |name: &str, text: &str, mode: u32| {
        let path = shell.place.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    const KEY: &str = "a key of the store, of some length";
    let refused = [
        (file("empty", "", 0o600), "16 bytes to 64 KiB"),
        (file("short", "fifteen bytes..", 0o600), "16 bytes to 64 KiB"),
        (file("readable", KEY, 0o644), "others can read this secret"),
        (file("writable", KEY, 0o622), "can write it"),
        ("/dev/null".into(), "16 bytes to 64 KiB"),
        ("/dev/zero".into(), "16 bytes to 64 KiB"),
        (shell.place.path().to_owned(), "16 bytes to 64 KiB"),
        (shell.place.path().join("nowhere"), "No such file"),
    ];
    for (path, says) in refused {
        let ended = shell.run(&["init", "--audit-key-file", path.to_str().unwrap()]);
        assert!(ended.status != 0 && ended.err.contains(says), "{}: {ended:?}", path.display());
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
    let good = file("good", KEY, 0o600);
    assert_eq!(shell.run(&["init", "--audit-key-file", good.to_str().unwrap()]).status, 0);
}

/// L8: "a process without it, or with another one, is refused when it opens the store, before it writes".
#[test]
fn a_command_without_the_audit_key_is_refused() {
    let shell = Shell::sqlite();
    let [key, other] = ["key", "other"].map(|name| shell.place.path().join(name));
    write_private(&key, "a key of the store, of some length").unwrap();
    write_private(&other, "another key, of the same length!!").unwrap();
    let [key, other] = [&key, &other].map(|path| path.to_str().unwrap());
    let keyed = |words: &[&str]| shell.run(&[words, &["--audit-key-file", key]].concat());
    assert_eq!(keyed(&["init"]).status, 0);
    // The store says which key it has before there is any ask.
    assert_eq!(shell.run(&["list"]).status, 1);
    assert_eq!(shell.run(&["list", "--audit-key-file", other]).status, 1);
    let parked = said(shell.start(
        &["park", "--audit-key-file", key],
        &json!({"tool": "rm", "args": {}, "questions": ["sure?"]}).to_string(),
    ));
    let text = |field: &str| parked.line()[field].as_str().unwrap().to_owned();
    let (id, fingerprint) = (text("id"), text("fingerprint"));
    let decide = ["decide", &id, "--fingerprint", &fingerprint, "--as", "ann", "--approve"];
    for refused in
        [shell.run(&decide), shell.run(&[&decide[..], &["--audit-key-file", other]].concat())]
    {
        assert_eq!((refused.status, &refused.lines[..]), (1, &[][..]), "{refused:?}");
        assert!(refused.err.contains("--audit-key-file"), "it names what helps: {}", refused.err);
    }
    assert_eq!(keyed(&["verify"]).line()["entries"], 1);
    assert_eq!(keyed(&decide).told(), (0, "won"));
    assert_eq!(keyed(&["claim", &id, "--worker", "w"]).told(), (0, "claimed"));
    assert_eq!(keyed(&["verify"]).line()["entries"], 3);
    // A key is changed by a person, on a terminal.
    let rekey = keyed(&["rekey", "--new-key-file", other]);
    assert_eq!((rekey.status, &rekey.lines[..]), (2, &[][..]), "{rekey:?}");
    assert!(rekey.err.contains("on a terminal"), "{}", rekey.err);
}

/// On a full disk nothing is half written, and earlier data stays.
#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing() {
    let shell = Shell::sqlite();
    let ask = shell.approved(&json!({"tool": "rm", "args": {}, "questions": []}));
    let before = shell.show(&ask);
    let big = "x".repeat(900_000);
    // No file may grow beyond 256 KiB: writing fails as it does on a full disk.
    let script = "trap '' XFSZ; ulimit -f 512; exec \"$0\" asks --store \"$1\" park";
    let mut child = std::process::Command::new("sh")
        .args(["-c", script, crate::support::program("countersign").to_str().unwrap(), &shell.url])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let input = json!({"tool": "rm", "args": {"text": big}, "questions": []}).to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let failed = said(child);
    assert_eq!((failed.status, failed.lines.len()), (1, 0), "{failed:?}");
    assert!(failed.err.contains("could not write"), "{}", failed.err);
    assert_eq!(shell.run(&["list"]).lines, [before]);
    assert_eq!(shell.verify(), 2);
    assert_eq!(shell.claim(&ask, "w", "60").told(), (0, "claimed"), "it works again afterwards");
}

#[cfg(unix)]
#[test]
fn a_read_only_file_is_read_and_not_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let shell = Shell::sqlite();
    let ask = shell.ask();
    let file = shell.place.path().join("asks.db");
    let mode =
        |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    // Root may write every file, so the test has no effect then.
    if std::fs::OpenOptions::new().write(true).open(&file).is_err() {
        let said = shell.decide(&ask, "ann", &["--approve"]);
        assert_eq!((said.status, said.err.lines().count()), (1, 1), "{said:?}");
        assert!(said.err.contains("readonly"), "{}", said.err);
    }
    mode(0o644);
    assert_eq!(shell.show(&ask)["state"], "pending");
    assert_eq!(shell.decide(&ask, "ann", &["--approve"]).told(), (0, "won"));
}
