//! Gives the terminal back when the program panics, or is told to end, while a question is open.

use std::io;
use std::panic;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Bits of [`TAKEN`]: bracketed paste, raw mode, the full screen.
const PASTE: u8 = 1;
const RAW: u8 = 2;
const FULL: u8 = 4;

/// The parts of the terminal that are taken. A process has one terminal.
static TAKEN: AtomicU8 = AtomicU8::new(0);
/// The parts that a panic has given back while a question was open.
static LOST: AtomicU8 = AtomicU8::new(0);
/// The time of the report of a panic; `None` while it is reported.
static REPORTED: Mutex<Option<Instant>> = Mutex::new(None);
/// The time from the report of a panic until the terminal is taken again. A program that ends because of the panic has ended
/// by then, and a person has seen the report.
const PAUSE: Duration = Duration::from_secs(1);

/// Modes of the terminal, until this value is dropped.
pub(super) struct TerminalMode(u8);

impl TerminalMode {
    /// Keys as they are pressed, and pasted text as such. `raw` is false where the raw mode was on before: it stays on then.
    pub(super) fn keys(raw: bool) -> io::Result<Self> {
        before_panics();
        Self::take(if raw { PASTE | RAW } else { PASTE })
    }

    /// The full screen.
    pub(super) fn full() -> io::Result<Self> {
        Self::take(FULL)
    }

    fn take(bits: u8) -> io::Result<Self> {
        // Counts as taken at once, so that a part that was taken halfway is given back.
        TAKEN.fetch_or(bits, Ordering::SeqCst);
        let part = Self(bits);
        enter(bits)?;
        Ok(part)
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        LOST.fetch_and(!self.0, Ordering::SeqCst);
        leave(TAKEN.fetch_and(!self.0, Ordering::SeqCst) & self.0);
    }
}

fn enter(bits: u8) -> io::Result<()> {
    if bits & RAW != 0 {
        enable_raw_mode()?;
    }
    if bits & PASTE != 0 {
        execute!(io::stderr(), EnableBracketedPaste)?;
    }
    if bits & FULL != 0 {
        execute!(io::stderr(), EnterAlternateScreen)?;
    }
    Ok(())
}

/// Errors are ignored: the terminal may be gone.
fn leave(bits: u8) {
    if bits & FULL != 0 {
        let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
    }
    if bits & PASTE != 0 {
        let _ = execute!(io::stderr(), DisableBracketedPaste);
    }
    if bits & RAW != 0 {
        let _ = disable_raw_mode();
    }
}

/// `None` unless a panic has given the terminal back; then `true` if it can be taken again.
pub(super) fn lost() -> Option<bool> {
    let reported = *REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    (LOST.load(Ordering::SeqCst) != 0).then(|| reported.is_some_and(|at| at.elapsed() >= PAUSE))
}

/// If a panic has given the terminal back, takes it again. Returns whether it has. A tool of another run may have
/// panicked, which ends only its call.
pub(super) fn take_again() -> io::Result<bool> {
    if lost() != Some(true) {
        return Ok(false);
    }
    let lost = LOST.swap(0, Ordering::SeqCst);
    TAKEN.fetch_or(lost, Ordering::SeqCst);
    enter(lost)?;
    Ok(lost != 0)
}

/// Makes every panic from here on give the terminal back before its report. So a person can read the report, and a
/// program that aborts leaves the terminal as it was.
fn before_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let taken = TAKEN.swap(0, Ordering::SeqCst);
            leave(taken);
            *REPORTED.lock().unwrap_or_else(PoisonError::into_inner) = None;
            LOST.fetch_or(taken, Ordering::SeqCst);
            report(info);
            *REPORTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }));
    });
}

/// The signals by which a program is told to end.
#[cfg(unix)]
mod signals {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, LazyLock};

    use signal_hook::consts::{SIGHUP, SIGTERM};
    use signal_hook::{flag, low_level};

    /// Those signals that the program leaves to us, with whether each has come.
    static LEFT: LazyLock<Vec<(i32, Arc<AtomicBool>)>> = LazyLock::new(|| {
        let left = [SIGTERM, SIGHUP].into_iter().filter(|signal| is_caught(*signal) == Some(false));
        left.filter_map(|signal| {
            let came = Arc::new(AtomicBool::new(false));
            // Without a question the signal does what it would do without us.
            flag::register_conditional_default(signal, Arc::clone(&IDLE)).ok()?;
            flag::register(signal, Arc::clone(&came)).ok()?;
            Some((signal, came))
        })
        .collect()
    });

    /// `true` while no question is open.
    static IDLE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

    pub(super) fn listen(open: bool) {
        if open {
            LazyLock::force(&LEFT);
        }
        IDLE.store(!open, Ordering::SeqCst);
    }

    pub(super) fn came() -> bool {
        LEFT.iter().any(|(_, came)| came.load(Ordering::SeqCst))
    }

    pub(super) fn obey() {
        for (signal, came) in LEFT.iter() {
            if came.load(Ordering::SeqCst) {
                let _ = low_level::emulate_default_handler(*signal);
            }
        }
    }

    /// Returns `true` if the program handles the signal itself; `None` where the system does not say.
    fn is_caught(signal: i32) -> Option<bool> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let mask = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
        let bits = |name| u64::from_str_radix(mask(name)?.trim(), 16).ok();
        let bit = 1 << (signal - 1);
        Some((bits("SigCgt:")? | bits("SigIgn:")?) & bit != 0)
    }
}

/// Until this value is dropped, a signal that ends the program gives the terminal back before. If the program handles
/// such a signal itself, or ignores it, we leave it to that.
pub(super) struct Signals(());

impl Signals {
    pub(super) fn new() -> Self {
        #[cfg(unix)]
        signals::listen(true);
        Self(())
    }

    /// Returns `true` if a signal has come that ends the program.
    pub(super) fn came() -> bool {
        #[cfg(unix)]
        return signals::came();
        #[cfg(not(unix))]
        false
    }
}

impl Drop for Signals {
    /// Runs once the terminal is given back: what the signal would have done happens now.
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            signals::obey();
            signals::listen(false);
        }
    }
}
