//! The terminal handler: shows a whole batch to a person and reads the answers.
//!
//! Needs the feature `terminal`. Keys are read through `crossterm`: a line editor that blocks on a key would keep its
//! question on the screen when the run has been dropped and no longer needs the answer.

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

use crate::call::RunContext;
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::{BoxError, UserError};
use crate::handler::{DeferredToolHandler, Stopped, deny_blocked};
use crate::outcome::ToolDenied;
use dialogue::{Dialogue, askable};
use tty::Terminal;

/// A process has one terminal, so parallel runs ask one after the other.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// Asks a person at the terminal (on stdin and stderr) about every call of a batch.
///
/// The whole batch is shown first: tools, final arguments, and every question with its layer and reason, made safe to
/// read (rule S1, [`show`](crate::show)). Then each call is asked about:
///
/// | input | effect |
/// |---|---|
/// | `y` | approves the call |
/// | `n`, or Enter alone | denies the call; `n TEXT` tells the model the text, `m` asks for the text |
/// | `e` | edits the arguments, shows the call again, and approves it |
/// | `a`, `d` | approves or denies every call without an answer |
/// | `t`, `x` | approves or denies every call of this tool without an answer |
/// | `v`, `?` | shows the call in full, shows help; a second `v` shows masked values |
/// | Ctrl-C, Ctrl-D | stops the run |
///
/// A call whose view leaves something out has to be opened with `v` before `y`, `a` or `t` approve it (rule S4). To
/// approve more than 50 calls at once, the person types their number (`all 499`); denying more than 10 is confirmed.
///
/// Stopping is not denying (rule S8): the run ends with [`Stopped`], also when the terminal hangs up. With a ledger the
/// asks stay open.
///
/// Nothing runs before the last answer (rule T1). Edited arguments go through the whole stack, which may change them
/// or ask something else; then the call is asked about again (rules A1, A2).
///
/// Keys pressed before a question is shown do not answer it: input is accepted once no key has been pressed for
/// [a while](Self::arming). Pasted text answers no question.
///
/// Blocked calls are denied without asking (rule A5), and calls that are executed elsewhere are left pending. Without a
/// terminal every approval is denied, and the model and stderr are told why. When the run is dropped while a question
/// is open, the question is withdrawn. The handler runs on a blocking thread of tokio.
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
    /// Creates a handler that asks on stdin and stderr.
    #[must_use]
    pub fn new() -> Self {
        Self { answered_by: "terminal".into(), arming: Duration::from_millis(300) }
    }

    /// Sets the name that is recorded with the answers; `terminal` by default.
    #[must_use]
    pub fn answered_by(mut self, name: impl Into<Arc<str>>) -> Self {
        self.answered_by = name.into();
        self
    }

    /// Sets for how long no key may be pressed before a question can be answered; 300 ms by default. For the later
    /// questions of a batch, which the person expects, a third of that time is enough. Keys pressed earlier are
    /// dropped.
    #[must_use]
    pub fn arming(mut self, quiet: Duration) -> Self {
        self.arming = quiet;
        self
    }

    /// Denies all calls that need an approval, because there is no terminal to ask at.
    fn nobody(
        &self,
        requests: &DeferredToolRequests,
        why: &str,
    ) -> Result<DeferredToolResults, UserError> {
        let calls = requests.approvals.len();
        tracing::warn!(calls, why, "nobody can be asked, the calls are denied");
        // An error is ignored, as stderr may be closed.
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

    /// Runs the whole dialogue. Blocks the thread until the person has answered.
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

/// Tells the blocking thread, when dropped, that the answers are no longer needed.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
