//! `countersign inbox`: the page over a store, behind an address that only its user knows.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use reqwest::Client;
use serde_json::{Value, json};

use super::User;

/// A process of the inbox, and the address that it has printed.
pub(super) struct Served {
    process: Child,
    pub(super) url: String,
}

impl Served {
    pub(super) fn start(user: &User) -> Self {
        let mut command = user.command(&["inbox", "--principal", "ann"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, url: line.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn park(user: &User, tool: &str) -> Value {
    use std::io::Write as _;
    let mut command = user.command(&["asks", "park"]);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let ask = json!({"tool": tool, "args": {"path": "a.log"}, "questions": ["deletes"]});
    process.stdin.take().unwrap().write_all(ask.to_string().as_bytes()).unwrap();
    super::ended(&process.wait_with_output().unwrap()).lines().remove(0)
}

pub(super) async fn text(client: &Client, url: &str) -> (u16, String) {
    let reply = client.get(url).send().await.unwrap();
    (reply.status().as_u16(), reply.text().await.unwrap())
}

#[tokio::test]
async fn the_printed_address_is_that_of_a_page_with_all_its_files() {
    let user = User::new();
    let served = Served::start(&user);
    let client = Client::new();
    let origin = &served.url[..served.url.find("/").unwrap() + 2];
    let host = served.url[origin.len()..].split('/').next().unwrap();
    for url in [served.url.as_str(), served.url.trim_end_matches('/')] {
        let (status, page) = text(&client, url).await;
        assert_eq!(status, 200, "{url}: {page}");
        let files = page.split(['"']).filter(|part| part.contains("/files/"));
        let mut count = 0;
        for file in files {
            let (status, _) = text(&client, &format!("{origin}{host}{file}")).await;
            assert_eq!(status, 200, "{file}");
            count += 1;
        }
        assert!(count >= 3, "a page with a style and scripts: {page}");
    }
    for path in ["", "/", "/api/asks", "/0000/", "/0000/api/asks"] {
        let (status, page) = text(&client, &format!("{origin}{host}{path}")).await;
        assert_eq!(status, 404, "{path} needs the secret");
        assert!(page.contains("countersign inbox"), "it says which address to open: {page}");
    }
}

#[tokio::test]
async fn a_decision_on_the_page_is_in_the_store() {
    let user = User::new();
    let ask = park(&user, "delete_file");
    let served = Served::start(&user);
    let client = Client::new();
    let (status, listed) = text(&client, &format!("{}api/asks", served.url)).await;
    assert!(status == 200 && listed.contains("delete_file"), "{listed}");
    let id = ask["id"].as_str().unwrap();
    let decide = format!("{}api/asks/{id}/decision", served.url);
    let decision = json!({"verdict": "approve", "fingerprint": ask["fingerprint"]});
    let reply = client.post(&decide).json(&decision).send().await.unwrap();
    assert_eq!(reply.status().as_u16(), 200, "{}", reply.text().await.unwrap());
    let shown = user.run(&["asks", "show", id]).lines().remove(0);
    assert_eq!((&shown["state"], &shown["decided_by"]), (&json!("decided"), &json!("ann")));
}
