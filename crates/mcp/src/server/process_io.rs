//! The stdin and stdout of this process, for a server on stdio.
//!
//! Tokio reads stdin and writes stdout on threads of a pool, as either may be a file or a terminal, for which nothing can
//! wait but a thread. Each message then wakes two threads. A pipe can be waited for without one.
//!
//! A flag of the open file says whether a descriptor blocks, and other processes may share that file: the
//! shell that started this one, or a stderr that is the same pipe. So we never set the flag on what we were given. We open a pipe again,
//! through `/proc`, and set the flag on that end only. A socket, which Node gives its children, cannot be opened
//! again. We read and write it on tokio's threads, as anything else.

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
    #[cfg(target_os = "linux")]
    if let Some(input) = pipe::input() {
        return Box::new(input);
    }
    Box::new(tokio::io::stdin())
}

pub(super) fn stdout() -> Box<dyn AsyncWrite + Send + Unpin> {
    #[cfg(target_os = "linux")]
    if let Some(output) = pipe::output() {
        return Box::new(output);
    }
    Box::new(tokio::io::stdout())
}

/// Where a pipe cannot be opened again (`/proc` is not mounted, another user has made the pipe, its reader is gone), tokio's
/// threads remain.
#[cfg(target_os = "linux")]
mod pipe {
    use std::io;
    use std::os::fd::AsFd;

    use rustix::fs::{FileType, fstat};
    use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

    pub(super) fn input() -> Option<Receiver> {
        let opened = || OpenOptions::new().open_receiver("/proc/self/fd/0").ok();
        is_pipe(io::stdin()).then(opened)?
    }

    pub(super) fn output() -> Option<Sender> {
        let opened = || OpenOptions::new().open_sender("/proc/self/fd/1").ok();
        is_pipe(io::stdout()).then(opened)?
    }

    /// We ask this first, as opening a terminal or a device may do more than open it.
    fn is_pipe(given: impl AsFd) -> bool {
        fstat(given).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
    }
}
