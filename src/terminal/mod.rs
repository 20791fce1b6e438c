//! The terminal handler: shows a whole batch to a person and reads the answers.
//!
//! Needs the feature `terminal`. Reading is done by `crossterm`, as line editors that block on a key cannot be taken off
//! the screen when nobody waits for the answer any more.

mod choice;
mod dialogue;
mod line;
mod screen;
mod tty;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::call::{RunContext, ToolCall};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::{BoxError, UserError};
use crate::handler::{DeferredToolHandler, Stopped, deny_blocked};
use crate::outcome::ToolDenied;
use dialogue::Dialogue;
use tty::Terminal;

/// There is one terminal: parallel runs ask one after the other.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// Asks a person at the terminal (on stdin and stderr) about every call of a batch.
///
/// The whole batch is shown first: tool, final arguments, every reason, and who asks, made safe to read (rule S1,
/// [`show`](crate::show)). Then each call is asked about:
///
/// | typed | does |
/// |---|---|
/// | `y` | approves the call |
/// | `n`, or Enter alone | denies it; `n TEXT` tells the model the text, `m` lets it be typed |
/// | `e` | edits the arguments, shows the call again, and approves it |
/// | `a`, `d` | approves, denies every call that has no answer yet |
/// | `t`, `x` | approves, denies every such call of this tool |
/// | `v`, `?` | shows the call in full, helps; `v` once more shows what is masked |
/// | Ctrl-C, Ctrl-D | stops the run |
///
/// A call of which something was left out of the view has to be opened with `v` before `y`, `a` or `t` approve it (rule
/// S4). To approve more than 50 calls at once, their number is typed (`all 499`); to deny more than 10 is confirmed.
///
/// Stopping is not denying (rule S8): the run ends with [`Stopped`], also when the terminal hangs up. With a ledger the
/// asks stay open.
///
/// Nothing runs before the last answer (rule T1). Edited arguments go through the whole stack, which may change them
/// or ask something else; then the call is asked about again (rules A1, A2).
///
/// What was typed before a question was shown does not answer it: the input opens when no key was pressed for
/// [a while](Self::arming). Pasted text answers no question.
///
/// Blocked calls are denied without asking (rule A5), calls that are executed elsewhere are left. Without a terminal
/// everything is denied, and the model and stderr are told why. Dropped while it waits, it takes the question back.
/// It runs on a blocking thread of tokio.
///
/// ```
/// use countersign::{HandlerChain, TerminalHandler};
/// let handler = TerminalHandler::new().answered_by("ada");
/// # let _ = HandlerChain::new().with(handler);
/// ```
#[derive(Debug, Clone)]
pub struct TerminalHandler {
    answered_by: Arc<str>,
    arming: Duration,
}

impl TerminalHandler {
    /// Asks at the terminal.
    #[must_use]
    pub fn new() -> Self {
        Self { answered_by: "terminal".into(), arming: Duration::from_millis(300) }
    }

    /// The name that the answers carry; `terminal` unless given.
    #[must_use]
    pub fn answered_by(mut self, name: impl Into<Arc<str>>) -> Self {
        self.answered_by = name.into();
        self
    }

    /// How long no key may be pressed before a question can be answered; 300 ms unless given. For the later
    /// questions of a batch, which are expected, it is a third of that. Pressed keys are dropped.
    #[must_use]
    pub fn arming(mut self, quiet: Duration) -> Self {
        self.arming = quiet;
        self
    }

    /// Denies everything that could be approved, because nobody can be asked.
    fn nobody(
        &self,
        requests: &DeferredToolRequests,
        why: &str,
    ) -> Result<DeferredToolResults, UserError> {
        let calls = requests.approvals.len();
        tracing::warn!(calls, why, "nobody can be asked, the calls are denied");
        // Nobody may be there to read it.
        let _ = writeln!(
            io::stderr(),
            "Nobody can be asked about {calls} tool calls, which are denied: {why}."
        );
        let mut answers = deny_blocked(requests);
        for call in askable(requests) {
            let denied = ToolDenied::new(format!("Denied: nobody can be asked, as {why}."));
            answers = answers.approval(call.id(), denied);
        }
        answers.answered_by(&self.answered_by).leave_rest().build()
    }

    /// The whole dialogue, on a thread that may block.
    fn ask(
        &self,
        agent: &str,
        requests: &DeferredToolRequests,
        abandoned: Arc<AtomicBool>,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut terminal = match Terminal::open(self.arming, abandoned) {
            Ok(terminal) => terminal,
            Err(error) => {
                let why = format!("the terminal cannot be used ({error})");
                return Ok(self.nobody(requests, &why)?);
            }
        };
        let decided = Dialogue::new(&mut terminal, requests).run(agent).ok_or(Stopped)?;
        drop(terminal);
        let mut answers = deny_blocked(requests);
        for (id, answer) in decided {
            answers = answers.approval(id, answer);
        }
        Ok(answers.answered_by(&self.answered_by).leave_rest().build()?)
    }
}

impl Default for TerminalHandler {
    fn default() -> Self {
        Self::new()
    }
}

impl DeferredToolHandler for TerminalHandler {
    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        if askable(requests).next().is_none() {
            return Ok(deny_blocked(requests).leave_rest().build()?);
        }
        if let Some(why) = no_terminal() {
            return Ok(self.nobody(requests, why)?);
        }
        let runtime = Handle::try_current()?;
        let turn = TERMINAL.lock().await;
        let waiting = Waiting(Arc::default());
        let abandoned = Arc::clone(&waiting.0);
        let (this, agent, requests) = (self.clone(), cx.agent_path(), requests.clone());
        let asked = runtime.spawn_blocking(move || {
            let _turn = turn;
            this.ask(&agent, &requests, abandoned)
        });
        asked.await?
    }
}

/// Says to the blocking thread, when it is dropped, that nobody waits any more.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The calls that a person is asked about.
fn askable(requests: &DeferredToolRequests) -> impl Iterator<Item = &ToolCall> {
    requests.approvals.iter().filter(|call| !requests.is_blocked(call.id()))
}

fn no_terminal() -> Option<&'static str> {
    if !io::stdin().is_terminal() {
        Some("stdin is not a terminal")
    } else if !io::stderr().is_terminal() {
        Some("stderr is not a terminal")
    } else {
        None
    }
}
