//! The terminal handler: shows a whole batch to a person and reads the answers.
//!
//! We read keys through `crossterm`. A line editor that blocks on a key would keep its question on
//! the screen when the run has been dropped and needs no answer any more.
//!
//! ```
//! use countersign_terminal::TerminalHandler;
//! use countersign::{FunctionToolset, ToolsExt, Turn};
//!
//! let tools = FunctionToolset::new().approval_required();
//! let turn = Turn::new(tools).deferred_tool_handler(TerminalHandler::new().answered_by("ann"));
//! # let _ = turn;
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod area;
mod batch;
mod choice;
mod dialogue;
mod editing;
mod editor;
mod form;
mod frame;
mod full;
mod granting;
mod head;
mod input;
mod layout;
mod line;
mod list;
mod mode;
mod review;
mod screen;
mod teardown;
mod tty;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;

use countersign::call::RunContext;
use countersign::deferred::{DeferredToolRequests, DeferredToolResults};
use countersign::error::{AnswerError, BoxError};
use countersign::handler::{DeferredToolHandler, Stopped, deny_blocked};
use countersign::ledger::Ledger;
use countersign::outcome::ToolDenied;
use countersign::show::counted;
use dialogue::{CallAnswers, Dialogue, askable};
use granting::{CallOffers, Chosen};
use head::ReviewHead;
pub use head::ReviewPlace;
pub use review::Review;
use screen::Gone;
use teardown::Signals;
use tty::Terminal;

/// A process has one terminal, so parallel runs ask one after the other.
///
/// Two dialogues on one terminal would draw over each other and share the keys: an answer would reach the question that
/// happens to read first. The blocking thread holds this lock of tokio, so a dropped run keeps it until its thread has
/// put the terminal back.
static TERMINAL: Mutex<()> = Mutex::const_new(());

/// Asks a person at the terminal (on stdin and stderr) about every call of a batch.
///
/// On a full screen, the calls are a list with their reasons, above all of the selected call: its final arguments, its
/// questions, and the previews of what it would change. Everything is made safe to read (rule S1,
/// [`show`](countersign::show)), and equal calls are one entry.
///
/// | key | effect |
/// |---|---|
/// | `a`, `d` | approve the call, or deny it with what is typed for the model |
/// | `A`, `D` | approve or deny every listed call without an answer, after their number was shown and confirmed |
/// | `e` | changes the arguments, with `$VISUAL` or `$EDITOR` if set, else in a form; shows the call with them, and then `a` approves it |
/// | `g` | with [grants](Self::grants), Always: approves it, and such calls from now on; `w`, `s`, `p` and `U` choose among the grants, their place and their time |
/// | `v`, `?` | show everything (again: the masked values), show help |
/// | `j`, `k`, arrows | select another call; Space and Page Up move within the call |
/// | `x` | selects the call, or no longer; `a` and `d` are then about all selected calls; Esc selects none |
/// | `u`, `/` | takes the answer back, searches the list |
/// | Ctrl-C, Ctrl-D | stop the run |
///
/// A key decides nothing while its call has been on the screen for less than [a while](Self::arming) (rule S3). If a
/// part of a call is not on the screen, the person has to open the call or scroll to its end before approving it,
/// alone or with others (rule S4). To approve more than 50 calls at once, the person types their number (`all 499`).
/// To deny more than 10 selected ones, the person confirms.
///
/// In some cases the handler asks line by line: it prints each call and asks about it. It does so in a terminal that
/// cannot do more (`TERM=dumb`), if stdout is no terminal, with [`line_by_line`](Self::line_by_line), and with the
/// environment variable `COUNTERSIGN_LINES`, for a screen reader for example. There the person types the same letters,
/// and Enter: `a` and `d` are about the call, `A` and `D` about all that are left. `y` is `a`, and `n` is `d`. `NO_COLOR`
/// switches colors off.
///
/// To stop is not to deny (rule S8): the run ends with [`Stopped`], and so it does when the terminal hangs up. With a
/// ledger the asks stay open.
///
/// The handler gives the terminal back in every case: when the run is dropped, before a panic is reported (it extends the
/// panic hook as the first question opens), and on Linux before SIGTERM or SIGHUP ends the program. If your program
/// handles these signals itself from before its first question, the handler leaves them to it: the program gives the
/// terminal back by dropping the run.
///
/// Nothing runs before the last answer (rule T1). Edited arguments go through the whole stack, which may change them
/// or ask something else; then the call is asked about again (rules A1, A2).
///
/// Keys from before a question do not answer it: the handler accepts input once no key has been pressed for [a
/// while](Self::arming). Pasted text answers no question.
///
/// Blocked calls are denied without asking (rule A5), and calls that are executed elsewhere are left pending. Without a
/// terminal every approval is denied, by `policy: no terminal` and no person (rule D11), and the model and stderr are told
/// why. When the run is dropped while a question
/// is open, the question is withdrawn. The handler runs on a blocking thread of tokio.
///
/// ```
/// use countersign::handler::HandlerChain;
/// use countersign_terminal::TerminalHandler;
/// let handler = TerminalHandler::new().answered_by("ada");
/// # let _ = HandlerChain::new().with(handler);
/// ```
#[derive(Debug, Clone)]
pub struct TerminalHandler {
    answered_by: Arc<str>,
    arming: Duration,
    line_by_line: bool,
    grants: Option<Ledger>,
}

/// Asks line by line where this is set and not empty, as for a screen reader.
const LINES: &str = "COUNTERSIGN_LINES";

impl TerminalHandler {
    /// Creates a handler that asks on stdin and stderr.
    ///
    /// ```
    /// use countersign::deferred::DeferredToolRequests;
    /// use countersign::handler::DeferredToolHandler;
    /// use countersign_terminal::TerminalHandler;
    /// use countersign::RunContext;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// // A batch without a question needs no terminal.
    /// let nothing = DeferredToolRequests::default();
    /// let results = TerminalHandler::new().handle(&RunContext::default(), &nothing).await?;
    /// assert!(results.approvals.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            answered_by: "terminal".into(),
            arming: Duration::from_millis(600),
            line_by_line: false,
            grants: None,
        }
    }

    /// Sets the name that is recorded with the answers; `terminal` by default.
    ///
    /// An audit shows this name as the person. So if your program knows who has logged in, say it here. The name proves
    /// nothing: anyone who sits at the terminal counts as that person. A denial because there is no terminal is in no
    /// person's name.
    ///
    /// ```
    /// use countersign_terminal::TerminalHandler;
    /// let handler = TerminalHandler::new().answered_by("ann@host");
    /// assert!(format!("{handler:?}").contains("ann@host"));
    /// ```
    #[must_use]
    pub fn answered_by(mut self, name: impl Into<Arc<str>>) -> Self {
        self.answered_by = name.into();
        self
    }

    /// Sets for how long a call has to be on the screen, without a deciding key being pressed, before it can be decided;
    /// 600 ms by default. Keys pressed earlier are dropped, and the time begins again. Line by line, a third of the time
    /// is enough for the later questions of a batch.
    ///
    /// Zero switches the protection off (rule S3). Use it only for tests with a scripted terminal: the key that ends a
    /// line in another window would approve a call that has just appeared.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_terminal::TerminalHandler;
    ///
    /// let handler = TerminalHandler::new().arming(Duration::from_secs(1));
    /// assert!(format!("{handler:?}").contains("1s"));
    /// ```
    #[must_use]
    pub fn arming(mut self, quiet: Duration) -> Self {
        self.arming = quiet;
        self
    }

    /// Asks line by line instead of on a full screen, as a screen reader needs it. The environment variable
    /// `COUNTERSIGN_LINES` does the same for every handler.
    ///
    /// ```
    /// use countersign_terminal::TerminalHandler;
    /// let handler = TerminalHandler::new().line_by_line();
    /// # let _ = handler;
    /// ```
    #[must_use]
    pub fn line_by_line(mut self) -> Self {
        self.line_by_line = true;
        self
    }

    /// Offers grants: for exactly such calls, or for a class of calls that the asking layer has proposed; for the session of
    /// this ledger, for its project, or until a time (rule G3). Give the ledger of the run, with its
    /// [session](Ledger::session) and [project](Ledger::project). The person sees a grant as a sentence with its time, as
    /// the rule, and with examples of what else it would allow, and confirms it before it is made. To approve once needs one
    /// key, as without grants. The grant is by the name of [`answered_by`](Self::answered_by).
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign_terminal::TerminalHandler;
    ///
    /// let ledger = Ledger::new(MemoryStore::new()).session("2026-11-20 09:00");
    /// let handler = TerminalHandler::new().answered_by("ann").grants(ledger.clone());
    /// # let _ = handler;
    /// ```
    #[must_use]
    pub fn grants(mut self, ledger: Ledger) -> Self {
        self.grants = Some(ledger);
        self
    }

    /// Returns `true` if the terminal can show, and the person wants, a full screen.
    fn has_full_screen(&self) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let dumb = dumb && cfg!(unix);
        !self.line_by_line && !set(LINES) && !dumb && io::stdout().is_terminal()
    }

    /// Denies all calls that need an approval, because there is no terminal to ask at.
    ///
    /// It is a denial and not an error, since the model can continue without the call. And it is a loud one, on stderr
    /// and in the log: otherwise a service that was started without its terminal would look like a person who denies
    /// everything.
    fn deny_unasked(
        requests: &DeferredToolRequests,
        why: &str,
    ) -> Result<DeferredToolResults, AnswerError> {
        let calls = requests.approvals.len();
        tracing::warn!(calls, why, "no person can be asked, the calls are denied");
        // An error is ignored, as stderr may be closed.
        let _ = writeln!(
            io::stderr(),
            "No person can be asked about {}: denied, as {why}.",
            counted(calls, "tool call")
        );
        let mut answers = deny_blocked(requests);
        for call in askable(requests) {
            let denied = ToolDenied::new(format!("Denied: no person can be asked, as {why}."));
            answers = answers.approval(call.id(), denied);
        }
        answers.answered_by_policy("no terminal").leave_rest().build()
    }

    /// Runs the whole dialogue, with these grants, as a review where it has a head. Blocks the thread until the person has answered.
    fn dialogue<'a>(
        &self,
        agent: &str,
        requests: &'a DeferredToolRequests,
        asking: (CallOffers, Option<ReviewHead>),
        abandoned: Arc<AtomicBool>,
    ) -> io::Result<Result<(CallAnswers<'a>, Chosen), Gone>> {
        let signals = Signals::new();
        let decided = if self.has_full_screen() {
            full::ask(requests, agent, asking, self.arming, abandoned)
        } else {
            Terminal::open(self.arming, abandoned).map(|mut terminal| {
                let (offers, head) = asking;
                let dialogue = Dialogue::new(&mut terminal, requests).offering(offers);
                dialogue.reviewing(head).run(agent)
            })
        };
        drop(signals);
        decided
    }

    /// Asks about a batch of a run. Blocks the thread until the person has answered.
    fn ask(
        &self,
        agent: &str,
        requests: &DeferredToolRequests,
        offers: CallOffers,
        abandoned: Arc<AtomicBool>,
    ) -> Result<(DeferredToolResults, Chosen), BoxError> {
        let (decided, granted) = match self.dialogue(agent, requests, (offers, None), abandoned) {
            Ok(decided) => decided.map_err(|_| Stopped)?,
            Err(error) => {
                let why = format!("the terminal cannot be used ({error})");
                return Ok((Self::deny_unasked(requests, &why)?, Chosen::new()));
            }
        };
        let mut answers = deny_blocked(requests);
        for (id, answer) in decided {
            answers = answers.approval(id, answer);
        }
        Ok((answers.answered_by(&self.answered_by).leave_rest().build()?, granted))
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
            return Ok(Self::deny_unasked(requests, why)?);
        }
        let runtime = Handle::try_current()?;
        let turn = TERMINAL.lock().await;
        let waiting = NoLongerNeeded(Arc::default());
        let abandoned = Arc::clone(&waiting.0);
        let offers = match &self.grants {
            Some(ledger) => granting::offers(ledger, cx.run_id(), requests).await?,
            None => CallOffers::new(),
        };
        let (this, agent, asked) = (self.clone(), cx.agent_path(), requests.clone());
        let asked = runtime.spawn_blocking(move || {
            let _turn = turn;
            this.ask(&agent, &asked, offers, abandoned)
        });
        let (answers, granted) = asked.await??;
        if let Some(ledger) = &self.grants {
            let batch = (cx.run_id(), requests);
            for line in granting::make(ledger, batch, granted, &self.answered_by).await? {
                // An error is ignored: the terminal may be gone, and the calls are decided.
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
        Ok(answers)
    }
}

/// Tells the blocking thread, when dropped, that the answers are no longer needed.
///
/// To drop its future does not cancel the blocking thread. So we tell the thread by this flag, and it looks at the
/// flag at every tick.
struct NoLongerNeeded(Arc<AtomicBool>);

impl Drop for NoLongerNeeded {
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
