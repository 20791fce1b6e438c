//! The start of this process, from which the client counts the time limit of the hook.

use std::time::{Duration, Instant};

/// The time when this process was started: on a busy machine that is long before `main` is reached. It is the time of
/// this call where the system does not say, and where the age is beyond the limit, so that no answer could be in time.
/// `shell` is the id of the shell around the hook, which the installed command names.
pub(super) fn start(limit: Duration, shell: Option<u32>) -> Instant {
    let now = Instant::now();
    age(shell).filter(|age| *age < limit).and_then(|age| now.checked_sub(age)).unwrap_or(now)
}

/// The unit of times in `/proc`, in ticks per second (`USER_HZ`): the same on all architectures that Rust has for Linux.
#[cfg(target_os = "linux")]
const TICKS: u64 = 100;

/// The time since this process was forked, or the shell around it.
#[cfg(target_os = "linux")]
fn age(shell: Option<u32>) -> Option<Duration> {
    let shell = shell.filter(|id| *id == std::os::unix::process::parent_id());
    shell.and_then(|id| age_of(&id.to_string())).max(age_of("self"))
}

/// The time since a process was forked. Linux keeps that time when the process becomes another program, so that a shell
/// that was replaced by another program counts, too.
#[cfg(target_os = "linux")]
fn age_of(process: &str) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    // The 22nd field. The second one is the name of the program, which may have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let started = Duration::from_millis(ticks.checked_mul(1_000 / TICKS)?);
    Duration::try_from_secs_f64(uptime).ok()?.checked_sub(started)
}

#[cfg(not(target_os = "linux"))]
fn age(_: Option<u32>) -> Option<Duration> {
    None
}
