//! The examples of one file each, as their users run them: their output says which calls ran and which did not.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use countersign::{DeferredToolRequests, DeferredToolResults};
use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::program;

/// What an example without arguments prints.
fn printed(name: &str) -> String {
    let ran = Command::new(program(name)).stdin(Stdio::null()).output().unwrap();
    let (out, err) =
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert!(ran.status.success(), "{name}: {out}\n{err}");
    out
}

/// The lines that say which tool bodies ran, in order.
fn ran(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.trim_start().strip_prefix("> ")).collect()
}

/// Returns whether these texts follow each other.
#[track_caller]
fn tells(printed: &str, texts: &[&str]) {
    let mut rest = printed;
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("`{text}` is missing, or comes too early, in:\n{printed}");
        };
        rest = after;
    }
}

#[test]
fn hello_runs_nothing_where_no_person_can_answer() {
    // D4: "Nothing fails open". There is no terminal here.
    let out = printed("hello");
    assert!(!out.contains("deployed"), "{out}");
}

#[test]
fn capabilities_have_the_duration_and_reach_of_their_grant() {
    // The proposal: "Manage grant lifetime (per-run, inheritable to child workers)". A5, T7.
    let out = printed("capabilities");
    assert_eq!(
        ran(&out),
        [
            "root wrote a.txt (granted [\"fs.write\"])",
            "root fetched a.example (granted [\"net.external\"])",
            "root fetched c.example (granted before)",
            "root/worker wrote b.txt (granted before)",
        ]
    );
    assert_eq!(out.matches("asked: ").count(), 3);
    tells(&out, &["asked: root/worker wants to call fetch", "refused", "fetch: denied"]);
}

#[test]
fn multi_agent_answers_one_batch_for_all_agents_and_runs_nothing_twice() {
    // T7: "Its asks join the parent's batch … and it resumes where it stopped".
    let out = printed("multi_agent");
    let expected = ["root/auditor/list_files logs", "root/auditor/cleaner/delete_file b.log"];
    assert_eq!(ran(&out), expected);
    tells(
        &out,
        &[
            "waits: p1/c1  root/cleaner/delete_file",
            "waits: p2/b2/d1  root/auditor/cleaner/delete_file",
            "> root/auditor/cleaner/delete_file b.log",
            "waits: p1/c1",
            "delete_file: Keep a.log.",
            "Nothing below `archive/` is deleted",
            "The chief says: Done.",
        ],
    );
}

#[test]
fn batch_policy_runs_what_its_rules_approve_and_nothing_else() {
    // The proposal: "Batch decisions: approve all reads, deny all writes".  T2.
    let out = printed("batch_policy");
    assert_eq!(
        ran(&out),
        [
            "looked up apples: 2 euros",
            "read orders.txt",
            "bought apples for 12 euros",
            "bought pears for 20 euros",
            "bought saffron for 15 euros",
        ]
    );
    assert_eq!(out.matches("The handler is asked, once").count(), 2);
    tells(&out, &["> looked up", "It sees:", "call_7  count_stock", "> read orders.txt"]);
    tells(
        &out,
        &[
            "call_2",
            "approved by rule 1",
            "call_3",
            "denied by rule 2",
            "call_4",
            "approved by rule 3",
        ],
    );
    tells(
        &out,
        &[
            "call_5",
            "edited by rule 4",
            "call_6",
            "denied by rule 5",
            "call_7",
            "result by the warehouse",
        ],
    );
    tells(
        &out,
        &[
            "Nothing is written while the stall is open.",
            "> bought saffron for 15",
            "The stall is stocked.",
        ],
    );
}

#[test]
fn fail_closed_runs_only_approved_calls_and_continues() {
    // The proposal: "deny anything not explicitly approved".
    let out = printed("fail_closed");
    let scenes: Vec<&str> = out.split("== ").skip(1).collect();
    let [forgets, forgets_wrapped, rest @ ..] = &scenes[..] else { panic!("{out}") };
    assert_eq!(ran(forgets), ["read disk.txt"]);
    assert_eq!(ran(forgets_wrapped), ["read disk.txt", "deleted old.log"]);
    tells(
        forgets,
        &[
            "the run stops: no answer for calls `call_3`, `call_4`",
            "call_2, call_3, call_4 still pending",
        ],
    );
    tells(
        forgets_wrapped,
        &[
            "call_2",
            "answered by ann",
            "call_3",
            "denied",
            "call_4",
            "failed",
            "answered by fail closed",
            "assistant:",
        ],
    );
    assert_eq!(rest.len(), 4);
    for (scene, why) in rest.iter().zip(["is down", "is down", "panicked", "panicked"]) {
        assert_eq!(ran(scene), ["read disk.txt"], "{scene}");
        assert!(scene.contains(why), "{scene}");
    }
    for wrapped in [rest[1], rest[3]] {
        tells(
            wrapped,
            &[
                "a handler failed, the calls are denied",
                "call_2",
                "Denied by policy.",
                "assistant:",
            ],
        );
    }
}

#[test]
fn a_custom_layer_loses_no_question_and_runs_no_tool_twice() {
    let out = printed("custom_layer");
    let acts: Vec<&str> = out.split("\n\n").skip(1).collect();
    let [twice, asked, unasked, approved] = acts[..] else { panic!("{out}") };
    assert_eq!(ran(twice), ["read prices"]);
    tells(twice, &["call_2", "the cache knows", "and no tool ran"]);
    assert_eq!(ran(asked), ["read salaries"]);
    tells(
        asked,
        &[
            "call_4",
            "the cache knows",
            "call_4: waits",
            "ann approves",
            "call_4: \"the text of salaries\"",
        ],
    );
    assert!(!asked.split("call_4: waits").next().unwrap().contains("call_4: \"the text"));
    assert_eq!(ran(unasked), ["sent the report, attempt 1", "sent the report, attempt 2"]);
    assert_eq!(ran(approved), ["paid the invoice, and heard no answer"]);
    tells(approved, &["ann approves", "retry sends call_6 again", "the bank did not answer"]);
}

#[test]
fn own_loop_stores_pending_calls_and_answers_every_call() {
    // The proposal: "What does an apple cost? Also buy me one."
    let out = printed("own_loop");
    assert_eq!(ran(&out), ["looked up apple", "bought: apple", "looked up pear"]);
    tells(
        &out,
        &[
            "> looked up apple",
            "The loop has stopped",
            "call_2  buy",
            "ann approves it",
            "> bought: apple",
        ],
    );
    let (_, messages) = out.split_once("as the server has them:").unwrap();
    let messages = messages.lines().map(str::trim).filter(|line| !line.is_empty());
    let messages: Vec<Value> = messages.map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |message: &Value| message["tool_calls"].as_array().cloned().unwrap_or_default();
    let called: Vec<Value> = messages.iter().flat_map(of).map(|call| call["id"].clone()).collect();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<Value> = results.map(|message| message["tool_call_id"].clone()).collect();
    assert_eq!(called, results, "every call has one result, in the model's order");
    assert!(
        called[2].as_str().unwrap().starts_with("cs_"),
        "an id that was used before is replaced"
    );
    assert!(messages[6]["content"].as_str().unwrap().contains("not valid JSON"));
}

#[test]
fn the_webhook_tells_its_story() {
    let out = printed("webhook");
    assert_eq!(ran(&out), ["counted the databases: 2", "deleted test"]);
    tells(
        &out,
        &[
            "> counted",
            "202 Accepted",
            "It is gone",
            "call_2 delete_database",
            "call_3 delete_database",
        ],
    );
    tells(
        &out,
        &[
            "400 Bad Request",
            "422 ",
            "call `call_9` is not waiting",
            "422 ",
            "no fingerprints",
            "> deleted test",
        ],
    );
    tells(&out, &["ann's answers", "200 OK", "the same again", "409 Conflict"]);
}

/// The webhook's server, as a process of its own.
struct Server {
    process: Child,
    url: String,
    http: Client,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(program("webhook"));
        command.arg("--serve").arg(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (_, url) = line.split_once("Listening on ").unwrap();
        let url = url.split(',').next().unwrap().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { process, url, http: Client::builder().no_proxy().build().unwrap() }
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        Self::sent(self.http.get(format!("{}{path}", self.url))).await
    }

    async fn post(&self, path: &str, body: impl ToString) -> (u16, Value) {
        Self::sent(self.http.post(format!("{}{path}", self.url)).body(body.to_string())).await
    }

    async fn sent(request: reqwest::RequestBuilder) -> (u16, Value) {
        let reply = request.send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
    }

    /// A task of which two deletions wait.
    async fn task(&self, number: u32) -> DeferredToolRequests {
        let (status, reply) = self.post("/tasks", json!({"prompt": "Delete all databases."})).await;
        assert_eq!((status, &reply["task"]), (202, &json!(number)), "{reply}");
        waits(&reply)
    }

    /// Answers that are refused: the question stands as it was.
    async fn refuses(&self, task: u32, answers: impl ToString, status: u16, why: &str) {
        let path = format!("/tasks/{task}");
        let before = self.get(&path).await;
        let (refused, reply) = self.post(&format!("{path}/decisions"), answers).await;
        assert_eq!(refused, status, "{reply}");
        assert!(reply["error"].as_str().unwrap().contains(why), "{reply}");
        assert_eq!(self.get(&path).await, before);
    }
}

impl Drop for Server {
    /// Kills the process.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn waits(reply: &Value) -> DeferredToolRequests {
    assert_eq!(reply["status"], "awaiting_approval");
    let requests: DeferredToolRequests = serde_json::from_value(reply["requests"].clone()).unwrap();
    let ids: Vec<_> = requests.iter().map(|call| call.id().to_owned()).collect();
    assert_eq!(ids, ["call_2", "call_3"]);
    assert_eq!(requests.questions("call_3")[0].reason(), "deletes a database for good");
    requests
}

fn text(answers: &DeferredToolResults) -> String {
    serde_json::to_string(answers).unwrap()
}

#[tokio::test]
async fn a_decision_over_http_reaches_another_process_and_counts_once() {
    // The proposal: "Hours later, when approval comes via webhook".  A4, A6.
    let folder = TempDir::new().unwrap();
    let has = |name: &str| folder.path().join("databases").join(name).exists();
    let first = Server::start(folder.path());
    let shown = first.task(1).await;
    drop(first);

    let server = Server::start(folder.path());
    let (status, reply) = server.get("/tasks/1").await;
    let requests = waits(&reply);
    assert_eq!(
        (status, &requests),
        (200, &shown),
        "the pending calls are the ones that were shown"
    );
    let answers = requests.answer().approve("call_3").deny("call_2", "we need it");
    let answers = answers.answered_by("ann").build().unwrap();
    server.refuses(1, "{", 400, "EOF").await;
    server.refuses(1, json!({"approvals": {"call_2": "yes"}}), 400, "expected true, false").await;
    server
        .refuses(1, text(&answers.clone().approve("call_9")), 422, "call `call_9` is not waiting")
        .await;
    server.refuses(1, "{}", 422, "no answer for calls `call_2`, `call_3`").await;
    let bare = DeferredToolResults::new().approve("call_2").approve("call_3");
    server.refuses(1, text(&bare), 422, "no fingerprints").await;
    assert!(has("customers") && has("test"), "no refused answer has run anything");

    // The decision comes many times at once, and counts once.
    let decide = || server.post("/tasks/1/decisions", text(&answers));
    let mut replies = join_all((0..8).map(|_| decide())).await;
    replies.sort_by_key(|(status, _)| *status);
    assert_eq!(replies[0].0, 200, "{replies:?}");
    assert_eq!(replies[0].1["text"], "databases: 2; we need it; deleted test");
    assert!(replies[1..].iter().all(|(status, _)| *status == 409), "{replies:?}");
    assert!(has("customers") && !has("test"));
    drop(server);

    // Neither another process nor another task takes it again.
    let server = Server::start(folder.path());
    server.refuses(1, text(&answers), 409, "no call is pending").await;
    assert_eq!(server.get("/tasks/1").await.1["status"], "done");
    server.task(2).await;
    server.refuses(2, text(&answers), 422, "made for other questions").await;
    let (_, reply) = server.get("/tasks/2").await;
    let answers = waits(&reply).answer().approve("call_3").deny("call_2", "no").build().unwrap();
    let (status, reply) = server.post("/tasks/2/decisions", text(&answers)).await;
    assert_eq!((status, &reply["text"]), (200, &json!("databases: 1; no; cannot delete test")));
    assert_eq!(server.get("/tasks/3").await.0, 404);
    assert_eq!(server.post("/tasks/3/decisions", text(&answers)).await.0, 404);
    assert!(has("customers"));
}
