//! `countersign rules replay --sessions`: what rules would have asked about in the sessions that a person has had.
//!
//! We judge each call as a hook would judge it at this moment, with the files and programs that are there. We store nothing,
//! and run nothing: the ledger of each call is in memory, and ends with it.

mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use countersign::ToolMiddlewareExt as _;
use countersign::decision::Question;
use countersign::ledger::{Ask, AskState, Ledger, MemoryStore, Offers, date_and_time};
use countersign::show;
use countersign_cli::config::Directories;
use countersign_cli::hook::{Client, Hook};
use countersign_rules::RulesBuilder;
use serde_json::{Value, json};

use self::history::PastCall;
use crate::output::{CommandError, CommandOutput};

/// The number of questions that people are shown; the others are in the JSON.
const MOST_SHOWN: usize = 100;

/// The length of the text of a call for people, in characters.
const MOST_CHARACTERS: usize = 120;

/// A question that a hook would have asked.
struct PastQuestion {
    call: PastCall,
    causes: Vec<String>,
    why: String,
    /// `true` if an answer to an earlier question of the session, remembered for it, would have answered this one.
    is_answered: bool,
}

/// The counts of a replay.
#[derive(Default)]
struct SessionReplay {
    sessions: BTreeSet<(&'static str, String)>,
    calls: usize,
    denied: usize,
    questions: Vec<PastQuestion>,
}

/// Decides about the calls of the last days by the rules that `builder` makes for a root.
pub(crate) fn replay(
    days: u32,
    directories: &Directories,
    builder: impl Fn(PathBuf) -> Result<RulesBuilder, CommandError>,
) -> Result<CommandOutput, CommandError> {
    let since = since(days);
    let calls = history::calls(directories.home(), &since);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::Store(error.to_string()))?;
    let mut hooks: BTreeMap<(&str, PathBuf), Hook> = BTreeMap::new();
    let mut remembered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut replayed = SessionReplay::default();
    for call in calls {
        let place = (call.client.name(), call.root.clone());
        let hook = match hooks.get(&place) {
            Some(hook) => hook,
            None => {
                let hook = hook_of(call.client, directories, builder(call.root.clone())?)?;
                hooks.entry(place).or_insert(hook)
            }
        };
        replayed.calls += 1;
        replayed.sessions.insert((call.client.name(), call.session.clone()));
        let ledger = Ledger::new(MemoryStore::new());
        let payload = call.payload();
        let store = async { Ok(ledger.clone()) };
        let reply = runtime.block_on(hook.answer(payload.as_bytes(), Instant::now(), store));
        let pending = runtime.block_on(ledger.list(Some(AskState::Pending), 1))?.records.pop();
        match pending {
            Some(pending) => {
                let answered = remembered.entry(call.session.clone()).or_default();
                replayed.questions.push(PastQuestion::of(call, &pending.ask, answered));
            }
            None if reply.is_denial() => replayed.denied += 1,
            None => {}
        }
    }
    Ok(replayed.output(days))
}

/// The time so many days ago, as session files write it.
fn since(days: u32) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = now.saturating_sub(Duration::from_secs(u64::from(days) * 24 * 3600));
    let since = i64::try_from(since.as_millis()).unwrap_or_default();
    date_and_time(since).map(|(date, time)| format!("{date}T{time}")).unwrap_or_default()
}

fn hook_of(
    client: Client,
    directories: &Directories,
    builder: RulesBuilder,
) -> Result<Hook, CommandError> {
    let rules = builder.load().map_err(|error| CommandError::Store(error.to_string()))?;
    let servers = client.servers(directories.home(), &[]);
    Ok(Hook::new(client).layered(rules.into_layer()).unknown_by_name(true).servers(servers))
}

impl PastQuestion {
    /// The question about a call. We remember what it would be answered by, as if a person answered each question with the
    /// widest grant for the session.
    fn of(call: PastCall, ask: &Ask, answered: &mut BTreeSet<String>) -> Self {
        let asks = |question: &&Question| !question.metadata().contains_key("hook");
        let questions: Vec<&Question> = ask.questions().iter().filter(asks).collect();
        let why: Vec<&str> = questions.iter().map(|question| question.reason()).collect();
        let why = why.join("; ");
        let mut causes: Vec<String> = why.split("; ").map(cause).collect();
        causes.sort();
        causes.dedup();
        let mut names = questions.iter().map(|question| {
            let classes = question.grant_patterns();
            classes.iter().map(|class| class.name().to_owned()).collect::<BTreeSet<_>>()
        });
        let first = names.next().unwrap_or_default();
        let mut names = names.fold(first, |all, other| all.intersection(&other).cloned().collect());
        let mut args = call.args.clone();
        args.retain(|name, _| name != "description" && name != "justification");
        names.insert(format!("{} {} {}", call.tool, call.directory.display(), Value::Object(args)));
        let is_grantable = !Offers::of(ask).is_empty();
        let is_answered = is_grantable && names.iter().any(|name| answered.contains(name));
        if is_grantable {
            answered.extend(names);
        }
        Self { call, causes, why, is_answered }
    }

    fn line(&self) -> Value {
        json!({
            "at": self.call.at, "client": self.call.client.name(), "session": self.call.session,
            "directory": self.call.directory, "tool": self.call.tool, "args": self.call.args, "why": self.why,
            "causes": self.causes, "remembered": self.is_answered,
        })
    }

    /// The call in one line for people.
    fn shown(&self) -> String {
        let args = &self.call.args;
        let named = ["command", "file_path", "path", "url", "prompt", "pattern", "skill"];
        let text = named.iter().find_map(|name| args.get(*name)?.as_str());
        let text = text.map(show::escape).unwrap_or_default();
        let cut: String = text.chars().take(MOST_CHARACTERS).collect();
        let more = if cut.len() < text.len() { "…" } else { "" };
        format!("{} {cut}{more}", show::escape_name(&self.call.tool))
    }
}

/// The kind of a reason: without the call that it is about, and without the paths and texts in it.
fn cause(reason: &str) -> String {
    let about = reason.strip_prefix("no rule allows ");
    let reason = match about.and_then(|rest| rest.rsplit_once("`: ")) {
        Some((_, why)) => why,
        None => reason,
    };
    let kind = reason.split('`').enumerate().map(|(at, piece)| {
        let is_text =
            at % 2 == 1 && piece.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        if is_text { "…".to_owned() } else { piece.to_owned() }
    });
    kind.collect::<Vec<_>>().join("`")
}

/// So many times in 100 calls.
#[expect(clippy::cast_precision_loss, reason = "a double counts more calls than there are")]
fn rate(times: usize, calls: usize) -> f64 {
    100.0 * times as f64 / calls.max(1) as f64
}

impl SessionReplay {
    fn output(&self, days: u32) -> CommandOutput {
        let asked = self.questions.len();
        let left = self.questions.iter().filter(|question| !question.is_answered).count();
        let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
        for cause in self.questions.iter().flat_map(|question| &question.causes) {
            *causes.entry(cause).or_default() += 1;
        }
        let mut causes: Vec<(&str, usize)> = causes.into_iter().collect();
        causes.sort_by_key(|(cause, times)| (std::cmp::Reverse(*times), *cause));
        let line = json!({
            "days": days, "sessions": self.sessions.len(), "calls": self.calls, "asked": asked, "denied": self.denied,
            "per_100_calls": rate(asked, self.calls), "asked_if_remembered": left,
            "causes": causes.iter().map(|(cause, times)| json!({"cause": cause, "times": times})).collect::<Vec<_>>(),
            "questions": self.questions.iter().map(PastQuestion::line).collect::<Vec<_>>(),
        });
        CommandOutput::new(0, line).for_people(self.text(days, left, &causes))
    }

    fn text(&self, days: u32, left: usize, causes: &[(&str, usize)]) -> String {
        let sessions = show::counted(self.sessions.len(), "session");
        let calls = show::counted(self.calls, "call");
        if self.calls == 0 {
            return format!(
                "there is no call of Claude Code or Codex CLI in your last {days} days: they write their sessions below \
                 `~/.claude/projects` and `~/.codex/sessions`"
            );
        }
        let asked = self.questions.len();
        let mut lines = vec![
            format!(
                "in your last {days} days ({sessions}, {calls}) this would have asked {}, {:.1} per 100 calls, and denied {}",
                show::counted(asked, "time"),
                rate(asked, self.calls),
                show::counted(self.denied, "call"),
            ),
            format!(
                "with each answer remembered for its session: {}, {:.1} per 100 calls",
                show::counted(left, "time"),
                rate(left, self.calls)
            ),
        ];
        if asked > 0 {
            lines.push("by cause:".to_owned());
            lines.extend(
                causes.iter().map(|(cause, times)| format!("{times:>5}  {}", show::escape(cause))),
            );
            lines.push("here they are:".to_owned());
        }
        for question in self.questions.iter().take(MOST_SHOWN) {
            let at = question.call.at.get(..16).unwrap_or_default().replace('T', " ");
            let mark = if question.is_answered { " (remembered)" } else { "" };
            lines.push(format!("  {} {}{mark}", show::escape(&at), question.shown()));
        }
        if let Some(more) = asked.checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
            lines.push(format!("and {more} others: `--json` lists them all"));
        }
        lines.push("nothing of this was stored or run".to_owned());
        lines.join("\n")
    }
}
