//! Stores that earlier versions have written, opened by the program.

use std::fs;
use std::path::Path;

use super::User;

/// L7: "The state that any earlier version has written loads and can be continued", here by the commands of a person.
#[test]
fn the_asks_of_every_earlier_store_are_listed_and_decided() {
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut versions = 0;
    for folder in folders {
        let user = User::new();
        let store = user.state("asks.db");
        fs::create_dir_all(store.parent().unwrap()).unwrap();
        fs::copy(folder.join("ledger.db"), &store).unwrap();
        let listed = user.run(&["asks", "list", "--state", "pending"]);
        assert_eq!(listed.status, 0, "{}: {listed:?}", folder.display());
        let pending = listed.lines();
        assert!(!pending.is_empty(), "{}", folder.display());
        for ask in pending {
            let text = |name: &str| ask[name].as_str().unwrap().to_owned();
            let (id, fingerprint) = (text("id"), text("fingerprint"));
            let decide = ["asks", "decide", &id, "--fingerprint", &fingerprint, "--as", "ann"];
            let denied = user.run(&[&decide[..], &["--deny", "not today"]].concat());
            assert_eq!(denied.status, 0, "{}: {denied:?}", folder.display());
        }
        assert!(user.run(&["asks", "list", "--state", "pending"]).lines().is_empty());
        versions += 1;
    }
    assert!(versions >= 5, "{versions}");
}
