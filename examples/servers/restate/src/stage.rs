//! The processes: Restate's server and the service of this example, as a person starts them and `kill -9` ends them. For
//! the demonstration and for the tests.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use countersign::BoxError;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

/// The time that a process, or a run, may take until it is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The status of the result of a run that has not ended.
const NOT_READY: u16 = 470;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A server and a service with a folder of their own, on ports that were free. Both end with this value.
pub(crate) struct Stage {
    pub(crate) folder: PathBuf,
    server_program: PathBuf,
    service_program: PathBuf,
    ports: Ports,
    server: Option<Child>,
    service: Option<Child>,
    client: Client,
}

struct Ports {
    ingress: u16,
    admin: u16,
    node: u16,
    service: u16,
}

/// The program of the server, where `.ci/restate` has put it, or where `RESTATE_SERVER` says.
pub(crate) fn server_program(service: &Path) -> Result<PathBuf, BoxError> {
    if let Some(path) = std::env::var_os("RESTATE_SERVER") {
        return Ok(path.into());
    }
    let missing =
        "there is no `restate-server`: run `.ci/restate`, or set RESTATE_SERVER to its path";
    let target = service.parent().and_then(Path::parent).ok_or(missing)?;
    let packages = target.join("restate/node_modules/@restatedev");
    for package in std::fs::read_dir(packages).map_err(|_| missing)? {
        let program = package?.path().join("bin/restate-server");
        if program.exists() {
            return Ok(program);
        }
    }
    Err(missing.into())
}

impl Stage {
    /// Starts the server in this folder. `service` is the program of this example.
    pub(crate) async fn start(folder: &Path, service: &Path) -> Result<Self, BoxError> {
        let open = || TcpListener::bind("127.0.0.1:0");
        let free = [open()?, open()?, open()?, open()?];
        let mut ports = free.iter().map(|it| it.local_addr().map(|it| it.port()));
        let mut port = || ports.next().ok_or("a port is missing");
        let ports = Ports { ingress: port()??, admin: port()??, node: port()??, service: port()?? };
        let mut stage = Self {
            folder: folder.to_owned(),
            server_program: server_program(service)?,
            service_program: service.to_owned(),
            ports,
            server: None,
            service: None,
            client: Client::new(),
        };
        drop(free);
        std::fs::write(folder.join("server.toml"), stage.configuration())?;
        stage.start_server().await?;
        Ok(stage)
    }

    fn configuration(&self) -> String {
        let Ports { ingress, admin, node, .. } = self.ports;
        format!(
            "node-name = \"stage\"\nbase-dir = \"server\"\nlisten-mode = \"tcp\"\nbind-ip = \"127.0.0.1\"\n\
             bind-port = {node}\ndisable-telemetry = true\nlog-filter = \"warn\"\ndefault-num-partitions = 1\n\
             rocksdb-total-memory-size = \"128 MiB\"\n[ingress]\nbind-port = {ingress}\n[admin]\nbind-port = {admin}\n\
             disable-web-ui = true\n"
        )
    }

    /// The URL at which the server takes requests.
    pub(crate) fn ingress(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.ingress)
    }

    fn admin(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.admin)
    }

    /// The steps and effects so far.
    pub(crate) fn steps(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("steps.jsonl")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter_map(|line| Some(line["step"].as_str()?.to_owned())).collect()
    }

    pub(crate) async fn start_server(&mut self) -> Result<(), BoxError> {
        let mut command = Command::new(&self.server_program);
        command.args(["--config-file", "server.toml", "--no-logo"]).current_dir(&self.folder);
        self.server = Some(self.spawn(command, "server.log")?);
        for url in [self.ingress() + "/restate/health", self.admin() + "/health"] {
            let client = self.client.clone();
            until("the server is ready", async || {
                let answer = client.get(&url).send().await;
                Ok(answer.is_ok_and(|answer| answer.status().is_success()).then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// Starts the service with these options, and tells the server where it is.
    pub(crate) async fn start_service(&mut self, options: &[&str]) -> Result<(), BoxError> {
        let address = format!("127.0.0.1:{}", self.ports.service);
        let mut command = Command::new(&self.service_program);
        command.args(["serve", "--listen", &address, "--ingress", &self.ingress()]);
        command.args(["--steps", "steps.jsonl"]).args(options).current_dir(&self.folder);
        if !options.contains(&"--store") {
            command.args(["--store", "sqlite:ledger.db"]);
        }
        self.service = Some(self.spawn(command, "service.log")?);
        let url = format!("{}/deployments", self.admin());
        // The same address is told anew with each start: it is the same program.
        let deployment = json!({"uri": format!("http://{address}"), "force": true});
        until("the service is registered", async || {
            let answer = self.client.post(&url).json(&deployment).send().await;
            Ok(answer.is_ok_and(|answer| answer.status().is_success()).then_some(()))
        })
        .await
    }

    fn spawn(&self, mut command: Command, log: &str) -> Result<Child, BoxError> {
        let log = File::options().create(true).append(true).open(self.folder.join(log))?;
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RESTATE_")) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command.spawn()?)
    }

    /// Ends the service, and the server if it is to, as `kill -9` does: neither can finish anything.
    pub(crate) fn kill(&mut self, server_too: bool) {
        let server = self.server.take_if(|_| server_too);
        for mut child in self.service.take().into_iter().chain(server) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Begins a run, without waiting for its result.
    pub(crate) async fn begin(&self, run: &str, task: &str) -> Result<(), BoxError> {
        let (status, answer) =
            self.post(&format!("/Run/{run}/run/send"), &json!(task), None).await?;
        if status.is_success() { Ok(()) } else { Err(answer.to_string().into()) }
    }

    /// Waits for the result of a run.
    ///
    /// # Errors
    /// The error that the run has ended with, or that it takes too long.
    pub(crate) async fn result(&self, run: &str) -> Result<String, BoxError> {
        let url = format!("{}/restate/workflow/Run/{run}/output", self.ingress());
        until("the run ends", async || {
            let Ok(answer) = self.client.get(&url).send().await else { return Ok(None) };
            match answer.status() {
                // The run has not ended.
                status if status.as_u16() == NOT_READY => Ok(None),
                status => {
                    let text = answer.text().await?;
                    let result = serde_json::from_str(&text).unwrap_or_else(|_| text.clone());
                    if status.is_success() { Ok(Some(result)) } else { Err(text.into()) }
                }
            }
        })
        .await
    }

    /// Waits until this many calls of a run are pending, and returns them.
    pub(crate) async fn pending(&self, run: &str, many: usize) -> Result<Vec<Value>, BoxError> {
        until("calls are pending", async || {
            let Ok((_, asks)) = self.post(&format!("/Run/{run}/pending"), &Value::Null, None).await
            else {
                return Ok(None);
            };
            Ok(asks.as_array().filter(|asks| asks.len() == many).cloned())
        })
        .await
    }

    /// Decides a pending call, and returns what the decider is told. A request that gets no answer is sent again under
    /// the same key.
    pub(crate) async fn decide(
        &self,
        pending: &Value,
        by: &str,
        answer: Value,
    ) -> Result<Value, BoxError> {
        let path = format!("/Ask/{}/decide", pending["ask"].as_str().unwrap_or_default());
        let body = json!({"by": by, "fingerprint": pending["fingerprint"], "answer": answer});
        let key = format!("{by} {answer}");
        until("the decision is answered", async || {
            let Ok((status, told)) = self.post(&path, &body, Some(&key)).await else {
                return Ok(None);
            };
            Ok(status.is_success().then_some(told))
        })
        .await
    }

    async fn post(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> Result<(StatusCode, Value), BoxError> {
        let mut request = self.client.post(self.ingress() + path);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        // A handler without an argument takes no body.
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await?;
        Ok((answer.status(), answer.json().await.unwrap_or_default()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill(true);
    }
}

/// Asks again and again, until there is an answer.
pub(crate) async fn until<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Option<T>, BoxError>,
) -> Result<T, BoxError> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Err(format!("after {} seconds it is not so that {what}", PATIENCE.as_secs()).into())
}
