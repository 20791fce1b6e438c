//! Ann at a shell, with `countersign asks`.

use std::process::{Command, Output};

use serde_json::Value;

use super::{Case, Place, SurfaceDriver, WHO};
use crate::support::program;

pub(super) struct ByCommand {
    place: Place,
    id: String,
    fingerprint: String,
}

impl ByCommand {
    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(program("countersign"));
        command.args(words).arg("--store").arg(self.place.file());
        // The user's own files are no part of a test.
        command.env("HOME", self.place.folder.path());
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command.output().unwrap()
    }

    fn decide(&self, answer: &[&str]) -> String {
        let words = ["asks", "decide", &self.id, "--fingerprint", &self.fingerprint, "--as", WHO];
        let told = self.run(&[&words[..], answer].concat());
        String::from_utf8([told.stdout, told.stderr].concat()).unwrap()
    }
}

impl SurfaceDriver for ByCommand {
    async fn open(case: &Case) -> Self {
        let place = Place::new().await;
        let parked = place.park(case).await;
        Self { place, id: parked.ask.id().to_owned(), fingerprint: String::new() }
    }

    fn place(&self) -> &Place {
        &self.place
    }

    async fn show(&mut self) -> Option<String> {
        let line = self.run(&["asks", "show", &self.id]).stdout;
        let line: Value = serde_json::from_slice(&line).unwrap();
        self.fingerprint = line["fingerprint"].as_str().unwrap().to_owned();
        let shown = self.run(&["--text", "asks", "show", &self.id]);
        Some(String::from_utf8(shown.stdout).unwrap())
    }

    async fn approve(&mut self) -> String {
        self.decide(&["--approve"])
    }

    async fn deny(&mut self, reason: &str) -> String {
        self.decide(&["--deny", reason]);
        reason.to_owned()
    }

    async fn edit(&mut self, args: &str) -> Option<String> {
        Some(self.decide(&["--approve", "--args", args]))
    }

    async fn approve_something_else(&mut self) -> Option<String> {
        self.fingerprint = "0".repeat(64);
        Some(self.approve().await)
    }

    async fn leave(&mut self) {}
}

/// A5: "Nor does one take a result for a call that needs an approval: it would be told as the outcome of a call that has
/// not run."
#[tokio::test]
async fn a_result_for_a_call_that_needs_an_approval_decides_nothing() {
    let mut surface = ByCommand::open(&super::notes()).await;
    surface.show().await.expect("the person is asked");
    let told = surface.decide(&["--answer", r#"{"kind":"returned","content":"done"}"#]);
    assert!(told.contains("unapprovable") && told.contains("needs_approval"), "{told}");
    surface.place().is_open().await;
    surface.approve().await;
    assert_eq!(super::decided(&surface.place().record().await).0, "approve");
}
