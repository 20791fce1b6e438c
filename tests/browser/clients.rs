//! The AI SDK's own clients, unmodified, in five versions: conversations of honest clients, and attacks.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::program;

struct Fixture(Child, String);

impl Fixture {
    fn start(sdk: &str) -> Self {
        let mut child = Command::new(program("ai_sdk_fixture"))
            .args(["--port", "0", "--sdk", sdk])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self(child, url.trim().to_owned())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets a client of this version have all conversations and try all attacks, with a server for clients from there on.
fn converse(client: &str, server: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/clients");
    assert!(folder.join("node_modules").exists(), ".ci/browser installs the clients");
    let fixture = Fixture::start(server);
    let node = Command::new("node")
        .arg(folder.join("run.mjs"))
        .args(["--base-url", &fixture.1, "--sdk", client])
        .output()
        .expect("the tests of clients need node: .ci/browser installs it");
    let said = String::from_utf8_lossy(&node.stdout);
    assert!(node.status.success(), "{said}\n{}", String::from_utf8_lossy(&node.stderr));
    assert!(said.lines().filter(|line| line.starts_with("passed")).count() > 50, "{said}");
}

#[test]
fn the_first_client_with_approvals() {
    converse("6.0.0", "v6");
}

#[test]
fn the_last_client_of_6_that_refuses_unknown_fields() {
    converse("6.0.230", "v6");
}

#[test]
fn the_newest_client_of_6() {
    converse("6.0.326", "v6");
}

#[test]
fn the_last_client_of_7_that_refuses_unknown_fields() {
    converse("7.0.31", "v7");
}

#[test]
fn the_newest_client_of_7_with_every_chunk() {
    converse("7.0.173", "7.0.173");
}
