//! Suspend to a file, and resume: the approval comes by HTTP, hours later, to another process.
//!
//! ```text
//! cargo run -p webhook                      plays both ends, and is done
//! cargo run -p webhook -- --serve [FOLDER]  keeps serving, for curl; prints the lines to type
//! ```
//!
//! | request | does |
//! |---|---|
//! | `POST /tasks` | runs the agent. The run suspends: `202`, with the pending calls |
//! | `GET /tasks/{task}` | shows the pending calls, or the result |
//! | `POST /tasks/{task}/decisions` | answers the pending calls, and the run resumes: `200`, or `202` as before |
//!
//! The pending calls are a [`DeferredToolRequests`], an answer is a [`DeferredToolResults`], and both travel as the
//! JSON that they serialise to. The requests carry the fingerprints of the calls that were shown, `requests.answer()`
//! copies them into the answers, and the turn refuses answers without them.
//!
//! Each task is a directory. **An approval is used once**: a decision first *takes* the suspended run by renaming its
//! file, which only one of any number of processes can do; the others get `409`. Answers that do not match (`422`) run
//! nothing: the run is put back and stays open. When the process dies in between, the taken file stays: a person has to
//! look at what happened, and no process repeats it.
//!
//! The output is the story of one task, from the caller's side. A line that begins with `>` is a tool that really runs.
//! Callers are not authenticated here: a real service checks who calls, and sets `answered_by` itself.

use std::fs;
use std::io::ErrorKind::{AlreadyExists, NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path as InPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use countersign::agent::{RunError, RunOutput, RunResult, text};
use countersign::message::RequestPart;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::outcome::ToolFailed;
use countersign::{
    Agent, BoxError, Decision, DeferredToolRequests, DeferredToolResults, Error, FunctionToolset,
    Message, Model, RunContext, SuspendedRun, ToolCall, ToolError, ToolsExt as _, Turn, decide_fn,
    schemars, tool_fn,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct App {
    agent: Agent,
    tasks: Tasks,
}

#[derive(Deserialize)]
struct NewTask {
    prompt: String,
}

type Reply = Result<(StatusCode, Json<Value>), Refused>;

async fn start(State(app): State<Arc<App>>, body: Bytes) -> Reply {
    let NewTask { prompt } = read(&body)?;
    to_its_end(async move {
        let ended = app.agent.run(prompt).await;
        app.ended(app.tasks.add()?, ended)
    })
    .await
}

async fn show(State(app): State<Arc<App>>, InPath(task): InPath<u32>) -> Reply {
    match app.tasks.read(task, WAITING)? {
        Some(run) => Ok((StatusCode::OK, Json(awaiting(task, &serde_json::from_value(run)?)))),
        None => app.tasks.answered(task),
    }
}

async fn decide(State(app): State<Arc<App>>, InPath(task): InPath<u32>, body: Bytes) -> Reply {
    let answers: DeferredToolResults = read(&body)?;
    to_its_end(async move {
        let run = app.tasks.take(task)?;
        let ended = app.agent.resume(run, answers).await;
        app.ended(task, ended)
    })
    .await
}

/// Runs the work in a task of its own. When a caller hangs up, its request future is dropped; the run must not be
/// dropped with it, as that would stop it in the middle of a tool.
async fn to_its_end(work: impl Future<Output = Reply> + Send + 'static) -> Reply {
    tokio::spawn(work).await?
}

impl App {
    /// Stores the result of a run, and makes the response for the caller.
    fn ended(&self, task: u32, ended: Result<RunResult, RunError>) -> Reply {
        let run = match ended {
            Ok(run) => run,
            // Every error carries a snapshot of the run. Refused answers have changed nothing, and after any other
            // error the calls that ran are settled, so the next decision resumes from the snapshot in both cases.
            Err(error) => {
                self.tasks.write(task, WAITING, error.suspended())?;
                return Err(match error.error() {
                    Error::Answers(problem) => refused(StatusCode::UNPROCESSABLE_ENTITY, problem),
                    _ => Refused::from(error),
                });
            }
        };
        if let RunOutput::Deferred(run) = run.output() {
            self.tasks.write(task, WAITING, run)?;
            return Ok((StatusCode::ACCEPTED, Json(awaiting(task, run))));
        }
        let done = json!({"task": task, "status": "done", "text": run.text()});
        self.tasks.write(task, DONE, &done)?;
        Ok((StatusCode::OK, Json(done)))
    }
}

fn awaiting(task: u32, run: &SuspendedRun) -> Value {
    json!({"task": task, "status": "awaiting_approval", "requests": run.requests()})
}

/// The HTTP status and the text of an error response.
struct Refused(StatusCode, String);

fn refused(status: StatusCode, problem: &(impl ToString + ?Sized)) -> Refused {
    Refused(status, problem.to_string())
}

/// Parses a body strictly, so that nothing else is taken for an answer.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| refused(StatusCode::BAD_REQUEST, &error))
}

impl<E: std::error::Error> From<E> for Refused {
    fn from(error: E) -> Self {
        refused(StatusCode::INTERNAL_SERVER_ERROR, &error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"error": self.1}))).into_response()
    }
}

/// The file of a suspended run.
const WAITING: &str = "waiting.json";
/// The file of a suspended run while one process handles a decision.
const TAKEN: &str = "taken.json";
/// The file of the final result.
const DONE: &str = "done.json";

/// One directory per task. The name of the file in it is the state of the task.
struct Tasks(PathBuf);

impl Tasks {
    fn file(&self, task: u32, name: &str) -> PathBuf {
        self.0.join(task.to_string()).join(name)
    }

    /// Creates a task. If two processes try the same number, one of them gets it.
    fn add(&self) -> Result<u32, Refused> {
        fs::create_dir_all(&self.0)?;
        let mut task = 1;
        loop {
            match fs::create_dir(self.0.join(task.to_string())) {
                Err(error) if error.kind() == AlreadyExists => task += 1,
                made => return Ok(made.map(|()| task)?),
            }
        }
    }

    /// Writes the state of a task atomically, in place of the taken file.
    fn write(&self, task: u32, name: &str, value: &impl Serialize) -> Result<(), Refused> {
        let (new, taken) = (self.file(task, "new.json"), self.file(task, TAKEN));
        fs::write(&new, serde_json::to_vec_pretty(value)?)?;
        fs::rename(new, &taken)?;
        // The last step: from here on another process may take the run.
        Ok(fs::rename(taken, self.file(task, name))?)
    }

    fn read(&self, task: u32, name: &str) -> Result<Option<Value>, Refused> {
        match fs::read(self.file(task, name)) {
            Err(error) if error.kind() == NotFound => Ok(None),
            stored => Ok(Some(serde_json::from_slice(&stored?)?)),
        }
    }

    /// Takes the suspended run. The rename is atomic, so each approval is used once.
    fn take(&self, task: u32) -> Result<SuspendedRun, Refused> {
        let taken = self.file(task, TAKEN);
        match fs::rename(self.file(task, WAITING), &taken) {
            Err(error) if error.kind() == NotFound => {
                let _ = self.answered(task)?;
                Err(refused(StatusCode::CONFLICT, "no call is pending: the task has its result"))
            }
            renamed => Ok(serde_json::from_slice(&renamed.and_then(|()| fs::read(taken))?)?),
        }
    }

    /// The response about a task that has no pending calls.
    fn answered(&self, task: u32) -> Reply {
        match self.read(task, DONE)? {
            Some(done) => Ok((StatusCode::OK, Json(done))),
            // One process is handling the decision, or died while it did.
            None if self.0.join(task.to_string()).exists() => {
                Ok((StatusCode::OK, Json(json!({"task": task, "status": "taken"}))))
            }
            None => Err(refused(StatusCode::NOT_FOUND, &format!("there is no task {task}"))),
        }
    }
}

/// The directory of the databases, which are plain files here.
struct Databases(PathBuf);

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[derive(Deserialize, schemars::JsonSchema)]
struct Database {
    name: String,
}

async fn count_databases(cx: RunContext, _: Nothing) -> Result<String, ToolError> {
    let databases = fs::read_dir(&cx.deps::<Databases>()?.0)?.count();
    println!("  > counted the databases: {databases}");
    Ok(format!("databases: {databases}"))
}

async fn delete_database(cx: RunContext, args: Database) -> Result<String, ToolError> {
    let file = cx.deps::<Databases>()?.0.join(&args.name);
    // The model gets this text. A `?` alone would send it the text of the `io::Error` instead.
    fs::remove_file(file).map_err(|_| ToolFailed::new(format!("cannot delete {}", args.name)))?;
    println!("  > deleted {}", args.name);
    Ok(format!("deleted {}", args.name))
}

fn policy(_: &RunContext, call: &ToolCall) -> Decision {
    match (call.name(), call.args().str("name")) {
        ("count_databases", _) => Decision::allow(),
        // The name becomes part of a path, so it must not contain separators or dots.
        (_, Some(name)) if name.chars().all(char::is_alphanumeric) => {
            Decision::ask("deletes a database for good").with_key("delete")
        }
        _ => Decision::deny("That is not the name of a database."),
    }
}

fn agent(folder: &Path) -> Agent {
    let tools = FunctionToolset::new()
        .tool(tool_fn("count_databases", "Counts the databases", count_databases))
        .tool(tool_fn("delete_database", "Deletes a database", delete_database))
        .layered(decide_fn(policy).named("Policy"));
    Agent::new(Operator, tools)
        .deps(Databases(folder.join("databases")))
        .output(text().or_deferred())
        .turns(Turn::require_bound_answers)
}

/// A scripted model. Its only state is the conversation, so it continues in any process.
struct Operator;

impl Model for Operator {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let [.., _, Message::Request { parts }] = request.messages() else {
            // Counting needs no approval and is done at once. The deletions are deferred.
            return Ok(ModelResponse::calls([
                ToolCall::new("call_1", "count_databases", json!({})),
                ToolCall::new("call_2", "delete_database", json!({"name": "customers"})),
                ToolCall::new("call_3", "delete_database", json!({"name": "test"})),
            ]));
        };
        let results = parts.iter().filter_map(|part| match part {
            RequestPart::ToolReturn { content, .. } => content.as_str(),
            _ => None,
        });
        Ok(ModelResponse::text(results.collect::<Vec<_>>().join("; ")))
    }
}

/// A server and its agent, created from the directory alone.
struct Process {
    url: String,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Process {
    async fn start(folder: &Path) -> Result<Self, BoxError> {
        let app = App { agent: agent(folder), tasks: Tasks(folder.join("tasks")) };
        let router = Router::new()
            .route("/tasks", post(start))
            .route("/tasks/{task}", get(show))
            .route("/tasks/{task}/decisions", post(decide))
            .with_state(Arc::new(app));
        // Listens on the loopback interface only, at a free port.
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel();
        let server = axum::serve(listener, router).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        Ok(Self { url, stop, server: tokio::spawn(server.into_future()) })
    }

    async fn end(self) -> Result<(), BoxError> {
        drop(self.stop);
        Ok(self.server.await??)
    }

    /// Sends a request, as any caller could, and prints the response.
    async fn send(&self, path: &str, what: &str, body: Option<&str>) -> Result<Value, BoxError> {
        let (http, url) = (reqwest::Client::builder().no_proxy().build()?, &self.url);
        let (verb, request) = match body {
            Some(body) => ("POST", http.post(format!("{url}{path}")).body(body.to_owned())),
            None => ("GET", http.get(format!("{url}{path}"))),
        };
        let response = request.send().await?;
        let status = response.status();
        let reply: Value = response.json().await?;
        let said = ["error", "text", "status"].iter().find_map(|key| reply[key].as_str());
        println!("  {verb} {path}: {what}\n    {status}: {}", said.unwrap_or_default());
        Ok(reply)
    }
}

/// Plays both processes and the caller.
async fn play(folder: &Path) -> Result<(), BoxError> {
    println!("The first process gets a task.");
    let first = Process::start(folder).await?;
    first.send("/tasks", "a prompt", Some(r#"{"prompt": "Delete all databases."}"#)).await?;
    first.end().await?;

    println!("\nIt is gone. Hours later there is another one, with the same folder.");
    let second = Process::start(folder).await?;
    let shown = second.send("/tasks/1", "what is pending?", None).await?;
    let requests: DeferredToolRequests = serde_json::from_value(shown["requests"].clone())?;
    for call in &requests.approvals {
        let question = &requests.questions(call.id())[0];
        println!("    {} {} {}: {}", call.id(), call.name(), call.args(), question.reason());
    }
    let ann = requests.answer().deny("call_2", "customers: we need it").approve("call_3");
    let ann = ann.answered_by("ann").build()?;
    let unknown = ann.clone().approve("call_9");
    let bare = DeferredToolResults::new().approve("call_2").approve("call_3");
    let [ann, unknown, bare] = [&ann, &unknown, &bare].map(serde_json::to_string);
    let (ann, path) = (ann?, "/tasks/1/decisions");
    second.send(path, "no JSON", Some("{approvals")).await?;
    second.send(path, "about a call that is not pending", Some(&unknown?)).await?;
    second.send(path, "yes to everything, without fingerprints", Some(&bare?)).await?;
    second.send(path, "ann's answers", Some(&ann)).await?;
    second.send(path, "the same again", Some(&ann)).await?;
    second.send("/tasks/1", "what is pending?", None).await?;
    second.end().await
}

/// Serves until the process is killed.
async fn serve(folder: &Path) -> Result<(), BoxError> {
    let Process { url, server, stop: _stop } = Process::start(folder).await?;
    println!("Listening on {url}, with the folder {}.", folder.display());
    let lines = r#"In another terminal:

  curl -s URL/tasks -d '{"prompt": "Delete all databases."}'
  curl -s URL/tasks/1 > task.json
  jq '{approvals: {call_2: {kind: "tool-denied", message: "we need it"}, call_3: true},
       _countersign: .requests._countersign}' task.json > answers.json
  curl -s URL/tasks/1/decisions -d @answers.json

`_countersign` says which requests these are the answers to."#;
    println!("{}", lines.replace("URL", &url));
    Ok(server.await??)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let own = tempfile::tempdir()?;
    let folder = match args[..] {
        ["--serve", folder] => PathBuf::from(folder),
        [] | ["--serve"] => own.path().to_owned(),
        _ => return Err("usage: webhook [--serve [FOLDER]]".into()),
    };
    if !folder.join("databases").exists() {
        fs::create_dir_all(folder.join("databases"))?;
        fs::write(folder.join("databases/customers"), "42 rows")?;
        fs::write(folder.join("databases/test"), "7 rows")?;
    }
    match args.is_empty() {
        true => play(&folder).await,
        false => serve(&folder).await,
    }
}
