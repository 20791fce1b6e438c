//! A guard on the stdin and stdout that it is given.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

use super::process::Desk;

/// The ends that a guard is given, and those of its client.
struct Connected {
    stdin: OwnedFd,
    stdout: OwnedFd,
    reads: Box<dyn AsyncRead + Unpin>,
    writes: Box<dyn AsyncWrite + Unpin>,
}

/// As a client in Python connects a server.
fn pipes() -> Connected {
    let ((stdin, writes), (reads, stdout)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    Connected {
        stdin: stdin.into(),
        stdout: stdout.into(),
        reads: Box::new(pipe::Receiver::from_owned_fd(reads.into()).unwrap()),
        writes: Box::new(pipe::Sender::from_owned_fd(writes.into()).unwrap()),
    }
}

/// As a client in Node does.
fn sockets() -> Connected {
    let [(stdin, writes), (reads, stdout)] =
        [UnixStream::pair().unwrap(), UnixStream::pair().unwrap()];
    let ours = |socket: UnixStream| {
        socket.set_nonblocking(true).unwrap();
        tokio::net::UnixStream::from_std(socket).unwrap()
    };
    Connected {
        stdin: stdin.into(),
        stdout: stdout.into(),
        reads: Box::new(ours(reads)),
        writes: Box::new(ours(writes)),
    }
}

/// Returns `true` if reading from this, or writing to it, does not block: for all processes that share it.
fn is_nonblocking(shared: &OwnedFd) -> bool {
    let info = format!("/proc/self/fdinfo/{}", shared.as_raw_fd());
    let info = std::fs::read_to_string(info).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    u32::from_str_radix(flags.trim(), 8).unwrap() & 0o4000 != 0
}

// Pipes are waited for without a thread. The flag for it would be one of all processes that have the same pipe, among them
// the client's other children, and a stderr that is the same one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_guard_answers_over_pipes_and_sockets_and_leaves_them_as_they_were() {
    for Connected { stdin, stdout, reads, mut writes } in [pipes(), sockets()] {
        let desk = Desk::new();
        let given = |end: &OwnedFd| Stdio::from(end.as_fd().try_clone_to_owned().unwrap());
        let mut command = desk.guard(&desk.told());
        command.stdin(given(&stdin)).stdout(given(&stdout));
        let mut guard = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(reads).lines();
        // Longer than what a pipe or a socket takes at once, in both directions.
        let id = "i".repeat(300_000);
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        for request in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": id, "method": "ping"}),
        ] {
            writes.write_all(format!("{request}\n").as_bytes()).await.unwrap();
            if let Some(id) = request.get("id") {
                let answer = lines.next_line().await.unwrap().unwrap();
                let answer: Value = serde_json::from_str(&answer).unwrap();
                assert!(answer["id"] == *id && answer.get("result").is_some(), "{answer}");
            }
            assert!(!is_nonblocking(&stdin) && !is_nonblocking(&stdout));
        }
        // The end of stdin is seen, although this process has the other end of the pair, too.
        drop((writes, stdin));
        assert!(guard.wait().await.unwrap().success());
    }
}
