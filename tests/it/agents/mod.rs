//! Coding agents of other people, which `.ci/agents` installs: that they obey the hook, as `countersign hook install`
//! configures it. They run headless against a scripted model on loopback, need no account, and send nothing.

mod model;
#[cfg(unix)]
mod repository;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::installing::trusted_by_codex;
use crate::program::{Ended, RULES, User, ended};

/// The seconds that the client waits for a hook, and the hook for a person.
const LIMIT: &str = "12";

/// The longest time that a session of an agent may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// The program of an agent, in the folder that `.ci/agents` fills.
fn installed(name: &str) -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let folder = built.ancestors().nth(3).unwrap().join("agents");
    let complete = folder.join(".installed").exists();
    assert!(complete, "run `.ci/agents` first: {} is not complete", folder.display());
    folder.join("node_modules/.bin").join(name)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Agent {
    Codex,
    Gemini,
    Qwen,
}

/// A user of an agent, whose model is a script, and who lets the agent run everything.
#[derive(Clone)]
struct Desk {
    agent: Agent,
    user: Arc<User>,
}

impl Desk {
    fn new(agent: Agent) -> Self {
        let user = User::new();
        for folder in [".codex", ".gemini", ".qwen", ".config/countersign", "work"] {
            std::fs::create_dir_all(user.home().join(folder)).unwrap();
        }
        std::fs::write(user.home().join(".config/countersign/rules.toml"), RULES).unwrap();
        Self { agent, user: Arc::new(user) }
    }

    fn work(&self) -> PathBuf {
        self.user.home().join("work")
    }

    /// The configuration of the agent as a user has it, without the hook.
    fn configure(&self, url: &str) {
        let home = self.user.home();
        let codex = format!(
            "model = \"scripted\"\nmodel_provider = \"script\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
             [analytics]\nenabled = false\n[model_providers.script]\nname = \"script\"\n\
             base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPT_KEY\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
            self.work().display()
        );
        std::fs::write(home.join(".codex/config.toml"), codex).unwrap();
        let gemini = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
            "general": {"enableAutoUpdate": false, "disableAutoUpdate": true}, "telemetry": {"enabled": false},
            "privacy": {"usageStatisticsEnabled": false}}"#;
        std::fs::write(home.join(".gemini/settings.json"), gemini).unwrap();
        let qwen = r#"{"security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
            "general": {"enableAutoUpdate": false, "disableAutoUpdate": true}, "telemetry": {"enabled": false},
            "privacy": {"usageStatisticsEnabled": false}}"#;
        std::fs::write(home.join(".qwen/settings.json"), qwen).unwrap();
    }

    /// The environment of the agent and of everything that it starts.
    fn in_its_environment(&self, command: &mut Command, url: &str) {
        let home = self.user.home();
        command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap());
        command.env("CODEX_HOME", home.join(".codex")).env("SCRIPT_KEY", "none");
        command.env("GEMINI_API_KEY", "none").env("GOOGLE_GEMINI_BASE_URL", url);
        command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", format!("{url}/v1"));
        command.env("OPENAI_MODEL", "scripted");
        command.env("CI", "1").env("NO_COLOR", "1").env("TERM", "dumb");
    }

    fn install_hook(&self, limit: &str) {
        let name = self.name();
        let installed = self.user.run(&["hook", "install", name, "--limit", limit]);
        assert_eq!(installed.status, 0, "{installed:?}");
    }

    fn name(&self) -> &'static str {
        match self.agent {
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Qwen => "qwen",
        }
    }

    /// One session of the agent, until the script ends.
    fn session(&self, url: &str) -> Ended {
        let mut command = Command::new(installed(self.name()));
        match self.agent {
            // The user has looked at the hook, and trusts it.
            Agent::Codex => {
                command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"])
            }
            Agent::Gemini => command.args(["--approval-mode", "yolo", "-p"]),
            Agent::Qwen => command.args(["--auth-type", "openai", "--approval-mode", "yolo", "-p"]),
        };
        command.arg("Do what has to be done.").current_dir(self.work());
        self.in_its_environment(&mut command, url);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("{:?}", ended(&child.wait_with_output().unwrap()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        ended(&child.wait_with_output().unwrap())
    }

    fn pending(&self) -> Vec<Value> {
        self.user.run(&["asks", "list", "--state", "pending"]).lines()
    }

    fn approve(&self, ask: &Value) {
        let text = |name: &str| ask[name].as_str().unwrap();
        let decide = [
            "asks",
            "decide",
            text("id"),
            "--fingerprint",
            text("fingerprint"),
            "--as",
            "ann",
            "--approve",
        ];
        let ended = self.user.run(&decide);
        assert_eq!(ended.status, 0, "{ended:?}");
    }

    /// Another hook, of the project, that makes `a.denied` of `a.txt`.
    fn rewrites(&self, file: &str, event: &str) {
        let path = self.work().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let answer = match self.agent {
            Agent::Codex | Agent::Qwen => json!({"hookSpecificOutput": {
                "hookEventName": event, "permissionDecision": "allow", "updatedInput": {"command": "%s"},
            }}),
            Agent::Gemini => json!({
                "decision": "allow", "hookSpecificOutput": {"hookEventName": event, "tool_input": {"command": "%s"}},
            }),
        };
        let changed = r#"sed -n 's/.*"command":"\(touch [^"]*\)a\.txt".*/\1a.denied/p'"#;
        let script = format!("c=$({changed})\n[ -z \"$c\" ] || printf '{answer}' \"$c\"\n");
        let program = self.work().join("rewrite.sh");
        std::fs::write(&program, script).unwrap();
        let command = format!("sh {}", program.display());
        let hook = json!({"type": "command", "name": "rewrite", "command": command});
        let group =
            json!({"matcher": if self.agent == Agent::Codex { "" } else { "*" }, "hooks": [hook]});
        std::fs::write(path, json!({"hooks": {event: [group]}}).to_string()).unwrap();
    }

    fn has(&self, file: &str) -> bool {
        self.work().join(file).exists()
    }
}

/// The results that an agent is told of its calls, and the files that were there after each of them.
type ToldResults = Arc<Mutex<Vec<(String, bool)>>>;

/// Plays a session in which a file is created by each command, and gives what was seen.
///
/// The asked calls come four times: no one answers in time; the approval that came late is spent; it is spent, and the
/// call is asked about again; and a person answers in time.
async fn play(agent: Agent) -> (Desk, Vec<(String, bool)>) {
    let desk = Desk::new(agent);
    let seen = ToldResults::default();
    let script = {
        let (desk, seen) = (desk.clone(), Arc::clone(&seen));
        let files = ["a.txt", "a.denied", "late.asked", "late.asked", "late.asked", "soon.asked"];
        move |results: &[String]| {
            let step = results.len();
            if let Some(result) = results.last() {
                let file = files[step - 1];
                seen.lock().unwrap().push((result.clone(), desk.has(file)));
                let _ = std::fs::remove_file(desk.work().join(file));
            }
            match step {
                3 => desk.pending().iter().for_each(|ask| desk.approve(ask)),
                5 => approve_when_asked(desk.clone(), desk.pending()),
                _ => {}
            }
            files.get(step).map(|file| format!("touch {}", desk.work().join(file).display()))
        }
    };
    let url = model::serve(script).await;
    desk.configure(&url);
    desk.install_hook(LIMIT);
    let session = {
        let desk = desk.clone();
        tokio::task::spawn_blocking(move || desk.session(&url)).await.unwrap()
    };
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 6, "{session:?} {seen:?}");
    (desk, seen)
}

/// Approves the next ask, apart from those that are pending already.
fn approve_when_asked(desk: Desk, before: Vec<Value>) {
    std::thread::spawn(move || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if let Some(ask) = desk.pending().iter().find(|ask| !before.contains(ask)) {
                return desk.approve(ask);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

/// P2, P3: an agent runs what is allowed or approved, and nothing else, and the model is told why.
async fn obeys(agent: Agent) {
    let (desk, seen) = play(agent).await;
    let what: Vec<_> = seen.iter().map(|(_, exists)| *exists).collect();
    assert_eq!(what, [true, false, false, true, false, true], "{seen:?}");
    for (at, why) in [
        (1, "not in this project"),
        (2, "call again with the same arguments"),
        (4, "waits for approval"),
    ] {
        assert!(seen[at].0.contains(why), "{}: {seen:?}", seen[at].0);
    }
    let mut states: Vec<_> = desk.user.run(&["asks", "list"]).lines();
    states.sort_by_key(|ask| ask["state"].to_string());
    let states: Vec<_> = states.iter().map(|ask| ask["state"].as_str().unwrap()).collect();
    // The agents tell that a call has ended.
    assert_eq!(states, ["executed", "executed", "pending"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_obeys_the_hook() {
    obeys(Agent::Codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_obeys_the_hook() {
    obeys(Agent::Gemini).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn qwen_obeys_the_hook() {
    obeys(Agent::Qwen).await;
}

/// P4: an agent whose own limit is below that of the hook runs a call that waits for an approval, and one that another
/// hook of the project has changed. Both are closed asks that say so, and the doctor has said it before.
async fn is_reported(agent: Agent) {
    let desk = Desk::new(agent);
    let commands =
        ["late.asked", "a.txt"].map(|it| format!("touch {}", desk.work().join(it).display()));
    let url = model::serve(move |results: &[String]| commands.get(results.len()).cloned()).await;
    desk.configure(&url);
    desk.install_hook("30");
    let (file, event) = match agent {
        Agent::Codex => (".codex/hooks.json", "PreToolUse"),
        Agent::Gemini => (".gemini/settings.json", "BeforeTool"),
        Agent::Qwen => (".qwen/settings.json", "PreToolUse"),
    };
    let path = desk.user.home().join(file);
    let mut settings: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let limit = &mut settings["hooks"][event][0]["hooks"][0]["timeout"];
    *limit = json!(limit.as_u64().unwrap() / 6);
    std::fs::write(&path, settings.to_string()).unwrap();
    desk.rewrites(file, event);
    let mut doctor =
        desk.user.command(&["--json", "hook", "doctor", desk.name(), "--program", "true"]);
    let checks = ended(&doctor.current_dir(desk.work()).output().unwrap()).lines();
    for name in ["entry", "other hooks"] {
        assert_eq!(found(&checks, name)["ok"], false, "{checks:?}");
    }
    let session = {
        let desk = desk.clone();
        tokio::task::spawn_blocking(move || desk.session(&url)).await.unwrap()
    };
    assert!(desk.has("late.asked") && desk.has("a.denied"), "{session:?}");
    let mut asks = desk.user.run(&["asks", "list"]).lines();
    asks.sort_by_key(|ask| ask["parked_at"].as_i64());
    let about = |ask: &Value| ask["outcome"]["ran_unapproved"].clone();
    assert_eq!(asks.len(), 2, "{asks:?}");
    assert_eq!(about(&asks[0])["as_asked"], true, "{asks:?}");
    assert_eq!(about(&asks[1])["reason"], "not in this project", "{asks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_codex_ran_without_approval_is_reported() {
    is_reported(Agent::Codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gemini_ran_without_approval_is_reported() {
    is_reported(Agent::Gemini).await;
}

/// The findings of `doctor --live`, for a model that runs the command that it is told to run.
async fn doctor(agent: Agent, trusts: bool) -> Vec<Value> {
    let desk = Desk::new(agent);
    let canary = desk.user.state("canary");
    let script = move |results: &[String]| {
        let marker = std::fs::read_dir(&canary).ok()?.next()?.ok()?.file_name();
        let path = canary.join(&marker).join("work").join(&marker);
        results.is_empty().then(|| format!("touch {}", path.display()))
    };
    let url = model::serve(script).await;
    desk.configure(&url);
    desk.install_hook(LIMIT);
    if trusts {
        let config = desk.user.home().join(".codex/config.toml");
        let text = std::fs::read_to_string(&config).unwrap() + &trusted_by_codex(&desk.user);
        std::fs::write(config, text).unwrap();
    }
    let program = installed(desk.name());
    let words = ["--json", "hook", "doctor", desk.name(), "--live", "--program"];
    let words: Vec<_> = words.into_iter().chain([Path::to_str(&program).unwrap()]).collect();
    let mut command = desk.user.command(&words);
    desk.in_its_environment(&mut command, &url);
    tokio::task::spawn_blocking(move || ended(&command.output().unwrap()).lines()).await.unwrap()
}

fn found<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("{checks:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_proves_that_an_agent_obeys() {
    for agent in [Agent::Gemini, Agent::Qwen] {
        let checks = doctor(agent, false).await;
        for name in ["version", "configuration", "program", "trust", "canary"] {
            assert_eq!(found(&checks, name)["ok"], true, "{agent:?}: {checks:?}");
        }
    }
}

/// Codex skips a hook that is not trusted without a word, which only a call can show.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_an_agent_that_does_not_ask() {
    let checks = doctor(Agent::Codex, false).await;
    assert_eq!(found(&checks, "configuration")["ok"], true);
    assert_eq!(found(&checks, "trust")["ok"], false, "{checks:?}");
    let canary = found(&checks, "canary");
    assert_eq!(canary["ok"], false, "{checks:?}");
    assert!(canary["found"].as_str().unwrap().contains("without asking the hook"), "{canary}");
}

/// The trust of a user of codex is read as codex itself reads it.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_proves_that_an_agent_obeys_whose_user_trusts_the_hook() {
    let checks = doctor(Agent::Codex, true).await;
    for name in ["trust", "canary"] {
        assert_eq!(found(&checks, name)["ok"], true, "{checks:?}");
    }
}
