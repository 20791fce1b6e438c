//! L8: a person adds an audit key to a store, on a terminal.

use std::io::{Read as _, Write as _};

use countersign_cli::config::write_private;
use serde_json::json;

use super::User;
use crate::support::place::{Place, written_with_and_without};

impl User {
    /// What `asks rekey` says on a terminal, where a person types this.
    fn rekey(&self, words: &[&str], typed: &str) -> String {
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        let command = pty_process::blocking::Command::new(crate::support::program("countersign"));
        let command = command.args([&["asks", "rekey"], words].concat()).env("HOME", self.home());
        let command = command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        let mut child = command.env_remove("COUNTERSIGN_STORE").spawn(pts).unwrap();
        pty.write_all(typed.as_bytes()).unwrap();
        // The other end is closed when the program has ended, which is an error on Linux.
        let mut out = Vec::new();
        let _ = pty.read_to_end(&mut out);
        child.wait().unwrap();
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[test]
fn a_key_is_added_on_a_terminal_and_pending_asks_are_decided_with_it() {
    let user = User::new();
    let (id, fingerprint) =
        super::texts::parked(&user, &json!({"tool": "push", "args": {}, "questions": ["why"]}));
    let [key, short] = ["audit.key", "short.key"].map(|name| user.home().join(name));
    write_private(&key, "32 bytes, which no one else knows").unwrap();
    write_private(&short, "short").unwrap();
    let [key, short] = [&key, &short].map(|path| path.to_str().unwrap());

    let said = user.rekey(&["--new-key-file", short], "yes\n");
    assert!(said.contains("16 bytes to 64 KiB"), "{said}");
    let said = user.rekey(&["--new-key-file", key], "no\n");
    assert!(said.contains("End all other processes") && said.contains("was not changed"), "{said}");
    assert_eq!(user.run(&["asks", "verify"]).status, 0);
    let said = user.rekey(&["--new-key-file", key], "yes\n");
    assert!(said.contains("1 entries in 2 logs were verified"), "{said}");

    let decide = ["asks", "decide", &id, "--fingerprint", &fingerprint, "--as", "ann", "--approve"];
    let without = user.run(&decide);
    assert!(without.status == 1 && without.err.contains("--audit-key-file"), "{without:?}");
    let with = user.run(&[&decide[..], &["--audit-key-file", key]].concat());
    assert_eq!(with.lines()[0]["result"], "won");
    let verified = user.run(&["asks", "verify", "--audit-key-file", key]);
    assert_eq!(verified.lines()[0]["entries"], 3, "with the entry that added the key");
}

// L8: "a person is shown each of them", and types their number.
#[tokio::test(flavor = "multi_thread")]
async fn entries_that_were_made_without_the_key_are_shown_and_accepted_on_a_terminal() {
    let (user, place) = (User::new(), Place::sqlite());
    let [old, new] = ["old.key", "new.key"].map(|name| user.home().join(name));
    write_private(&old, "the key that one process had").unwrap();
    write_private(&new, "the key that all processes have").unwrap();
    let ask = written_with_and_without(&place, b"the key that one process had").await;
    let [old, new] = [&old, &new].map(|path| path.to_str().unwrap());
    let store = format!("sqlite://{}", place.path().display());
    let with = |key| ["--store", &store, "--audit-key-file", key];
    let verify = |key| user.run(&[&["asks", "verify"][..], &with(key)].concat());
    let refused = verify(old);
    assert!(refused.status == 1 && refused.err.contains("countersign asks rekey"), "{refused:?}");

    let rekey = [&with(old)[..], &["--new-key-file", new]].concat();
    for typed in ["yes\n", "accept 2\n", "\n"] {
        let said = user.rekey(&rekey, typed);
        let id = ask.ask.id();
        for shown in ["without the key of the store", &format!("decided by eve: {id} pay")] {
            assert!(said.contains(shown), "{shown}: {said}");
        }
        assert!(said.contains("Type `accept 1`") && said.contains("was not changed"), "{said}");
    }
    let said = user.rekey(&rekey, "accept 1\n");
    assert!(said.contains("3 entries in 1 logs were verified"), "{said}");
    assert_eq!(verify(new).status, 0);
}
