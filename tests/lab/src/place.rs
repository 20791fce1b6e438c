//! The place that one form runs in: namespaces without a network, an overlay over the image and the workspace, a user
//! without privileges, and a trace. Its upper layer is the list of what was written.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde::{Deserialize, Serialize};

/// The workspace, as programs in the place see it.
pub const PROJECT: &str = "/home/dev/project";
/// What a program that was started without a `PATH` of its own finds.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/games";

/// A form to run, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// The folder of the image.
    pub image: PathBuf,
    /// The folder that lies over the image: the workspace and the home.
    pub layer: PathBuf,
    /// An empty folder for the mounts.
    pub scratch: PathBuf,
    /// The text that a shell runs.
    pub form: String,
    /// When it is ended.
    pub seconds: u32,
}

/// What a form was seen to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// The exit status; 124 where it was ended.
    pub status: i32,
    /// The traps that ran.
    pub fired: BTreeSet<String>,
    /// Files that were made, changed or removed, as the programs see them.
    pub written: BTreeSet<String>,
    /// Files that were there before, and were changed or removed.
    pub changed: BTreeSet<String>,
    /// Programs of the workspace that were started.
    pub started: BTreeSet<String>,
    /// Names that were looked up, and addresses that were connected to.
    pub sent: BTreeSet<String>,
    /// Secrets that stand in the output.
    pub shown: BTreeSet<String>,
}

impl Run {
    /// Runs the form in namespaces of its own.
    pub fn start(&self) -> io::Result<Effects> {
        let text = serde_json::to_string(self)?;
        // A test is a program of its own, and says where the lab's is.
        let program = match std::env::var_os("LAB_PROGRAM") {
            Some(path) => PathBuf::from(path),
            None => std::env::current_exe()?,
        };
        let output = Command::new("unshare")
            .args(["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"])
            .arg(program)
            .args(["inside", &text])
            .stdin(Stdio::null())
            .output()?;
        serde_json::from_slice(&output.stdout).map_err(|error| {
            let said = String::from_utf8_lossy(&output.stderr);
            io::Error::other(format!("`{}` had no place: {error}: {said}", self.form))
        })
    }

    /// Makes the place and runs the form: the process is the first one of its namespaces.
    pub fn inside(&self) -> io::Result<Effects> {
        let at = |name: &str| self.scratch.join(name);
        let root = at("root");
        mount(&["-t", "tmpfs", "tmpfs"], &self.scratch)?;
        for name in ["root", "upper", "work"] {
            fs::create_dir(at(name))?;
        }
        let shown = |path: &Path| path.display().to_string();
        let layers = format!(
            "lowerdir={}:{},upperdir={},workdir={}",
            shown(&self.layer),
            shown(&self.image),
            shown(&at("upper")),
            shown(&at("work"))
        );
        mount(&["-t", "overlay", "overlay", "-o", &layers], &root)?;
        mount(&["-t", "proc", "proc"], &root.join("proc"))?;
        mount(&["--rbind", "/dev"], &root.join("dev"))?;
        mount(&["--bind", "-o", "ro", "/sys"], &root.join("sys"))?;
        if let Some(toolchains) = toolchains() {
            mount(&["--bind", "-o", "ro", &shown(&toolchains)], &root.join("opt/rustup"))?;
        }
        ran(Command::new("hostname").arg("lab"))?;
        ran(Command::new("ip").args(["link", "set", "lo", "up"]))?;
        let asked = sink();
        let status = self.traced(&root, &at("trace"), &at("out"))?;
        let upper = at("upper");
        let mut effects = Effects { status, ..Effects::default() };
        self.written(&upper, &mut effects)?;
        read_trace(&fs::read(at("trace")).unwrap_or_default(), &mut effects);
        effects.sent.extend(asked.lock().unwrap().iter().cloned());
        let output = String::from_utf8_lossy(&fs::read(at("out"))?).into_owned();
        effects.shown = secrets(&output);
        if std::env::var_os("LAB_SHOW").is_some() {
            eprintln!("{output}");
        }
        Ok(effects)
    }

    fn traced(&self, root: &Path, trace: &Path, out: &Path) -> io::Result<i32> {
        let output = fs::File::create(out)?;
        let seconds = self.seconds.to_string();
        let status = Command::new("timeout")
            .args(["-k", "1", &seconds, "setsid", "-w", "prlimit", "--fsize=200000000", "--core=0"])
            .args(["strace", "-f", "-qq", "--seccomp-bpf", "-s", "300", "-e", "signal=none"])
            .args(["-e", "trace=execve,execveat,connect", "-o"])
            .arg(trace)
            .arg("chroot")
            .arg(root)
            .args([
                "/usr/bin/setpriv",
                "--reuid=1000",
                "--regid=1000",
                "--clear-groups",
                "--no-new-privs",
            ])
            .args([
                "/usr/bin/env",
                "-i",
                "-C",
                PROJECT,
                "HOME=/home/dev",
                "USER=dev",
                "LOGNAME=dev",
            ])
            .args(["LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/bash", "RUSTUP_HOME=/opt/rustup"])
            .arg(format!("PATH={PATH}"))
            .args(["/bin/bash", "--norc", "--noprofile", "-c", &self.form])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()?;
        Ok(status.code().unwrap_or(137))
    }

    /// Reads the upper layer: each file in it was made, changed or removed.
    fn written(&self, upper: &Path, effects: &mut Effects) -> io::Result<()> {
        let mut open = vec![upper.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let below = path.strip_prefix(upper).map_err(io::Error::other)?;
                let name = format!("/{}", below.display());
                let about = path.symlink_metadata()?;
                let before = [&self.layer, &self.image].map(|lower| lower.join(below));
                let before = before.iter().find(|it| it.symlink_metadata().is_ok());
                if let Some(trap) = name.strip_prefix("/tmp/TRAP-") {
                    effects.fired.insert(trap.to_owned());
                    continue;
                }
                if about.is_dir() {
                    if before.is_none() {
                        effects.written.insert(format!("{name}/"));
                    }
                    open.push(path);
                    continue;
                }
                let removed = about.file_type().is_char_device() && about.rdev() == 0;
                match before {
                    None if removed => continue,
                    // Copied up by a change of its times, or opened for writing and left as it was.
                    Some(before) if !removed && same(before, &path) => continue,
                    Some(_) => effects.changed.insert(name.clone()),
                    None => false,
                };
                effects.written.insert(name);
            }
        }
        Ok(())
    }
}

fn same(one: &Path, other: &Path) -> bool {
    let mode = |path: &Path| path.symlink_metadata().map(|about| about.mode()).ok();
    mode(one) == mode(other) && fs::read(one).ok() == fs::read(other).ok()
}

/// The toolchains of the machine, which `rustup` in the image finds.
pub fn toolchains() -> Option<PathBuf> {
    let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")))?;
    home.join("toolchains").is_dir().then_some(home)
}

pub fn mount(what: &[&str], place: &Path) -> io::Result<()> {
    ran(Command::new("mount").args(what).arg(place))
}

/// Runs a command that has to succeed.
pub fn ran(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Answers every name with this machine, and takes connections on the ports of the web, so that no program waits for a
/// network. Returns the names that are looked up.
fn sink() -> Arc<Mutex<BTreeSet<String>>> {
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    if let Ok(socket) = UdpSocket::bind("127.0.0.1:53") {
        let names = Arc::clone(&asked);
        thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                if let Some((name, answer)) = answered(&packet[..length]) {
                    names.lock().unwrap().insert(name);
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
    }
    for port in [80, 443] {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    thread::spawn(move || {
                        let mut stream = stream;
                        let _ = stream.read(&mut [0; 2048]);
                        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    });
                }
            });
        }
    }
    asked
}

/// The name of a query, and an answer to it: the address of this machine for `A`, and none for other types.
fn answered(query: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).into_owned());
        at += length;
    }
    let end = at + 4;
    let is_a = query.get(at..at + 2)? == [0, 1];
    let mut answer = query.get(..2)?.to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(query.get(12..end)?);
    if is_a {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    }
    Some((labels.join("."), answer))
}

/// Finds the programs of the workspace that were started, and the addresses that were connected to.
fn read_trace(trace: &[u8], effects: &mut Effects) {
    for line in String::from_utf8_lossy(trace).lines() {
        if line.contains("execve(\"") && !line.contains(" = -1") {
            let path = line.split('"').nth(1).unwrap_or_default();
            // A path that is not absolute was looked up in the directory, which lies in the workspace.
            if !path.starts_with('/') || path.starts_with(PROJECT) {
                effects.started.insert(path.to_owned());
            }
        } else if line.contains("connect(") && line.contains("AF_INET") {
            let part = |before: &str| {
                let (_, rest) = line.split_once(before)?;
                Some(rest.split([')', '"']).next()?.to_owned())
            };
            let port = part("htons(").unwrap_or_default();
            let host =
                part("inet_addr(\"").or_else(|| part("inet_pton(AF_INET6, \"")).unwrap_or_default();
            let host = host.trim_start_matches("::ffff:");
            // Names stand in the list of the resolver, resolvers try addresses with port 0, and a program may talk to a
            // part of itself, which listens where it has found a free port.
            let is_here = host.starts_with("127.") || host == "::1";
            let is_own = port.parse().is_ok_and(|port: u16| port >= 32_768);
            if !host.is_empty()
                && !(is_here && (is_own || matches!(&*port, "0" | "53" | "80" | "443")))
            {
                effects.sent.insert(format!("{host}:{port}"));
            }
        }
    }
}

/// The secrets whose marks stand in an output.
fn secrets(output: &str) -> BTreeSet<String> {
    let marks = output.split("MARK<").skip(1).filter_map(|rest| rest.split_once('>'));
    marks.map(|(name, _)| name.to_owned()).filter(|name| name.starts_with('/')).collect()
}
