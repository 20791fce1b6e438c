//! Runs parsed commands without a shell.
//!
//! We have judged a tree. If a shell ran its text, it would parse that again, by another parser. So we run the
//! tree itself: we start programs with the words as they are, joined by pipes that this process makes. If
//! something needs a shell (expansion, subshells), we refuse it before the first program starts.
//!
//! # One pipe for all output
//!
//! Standard output and error of all programs go into one pipe, in the order in which they are written, as a terminal
//! shows them. A thread of its own reads the pipe, since a program that writes more than the pipe holds waits until
//! it is read. Beyond the limit we count the bytes and drop them.
//!
//! A program may leave another one in the background, which keeps the pipe open. We wait for half a second after the
//! last program has ended. What it writes later is lost, and we do not kill it.
//!
//! # Stopping
//!
//! We poll every five milliseconds for the end of the programs, the time limit, and the flag that a dropped call sets.
//! Polling is not elegant, but needs neither signals nor `unsafe` code. We kill only the programs that we have
//! started, and not those that they have started: a process group would need `unsafe` too.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::places::repository::without_programs;
use crate::syntax::commands::{
    Commands, Join, Pipeline, Redirection, RedirectionTarget, SimpleCommand, Stage, Word,
};

/// The output and the exit status of a command.
///
/// ```
/// use countersign_shell::ShellOutput;
///
/// let output = ShellOutput { output: "a\n".into(), status: 0, left_out: 0, timed_out: false };
/// assert_eq!(serde_json::to_value(&output)?, serde_json::json!({"output": "a\n", "status": 0}), "what says nothing is left out");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ShellOutput {
    /// Standard output and standard error, interleaved as they were written. Bytes that are not UTF-8 are replaced.
    pub output: String,
    /// The exit status of the last program: 127 if there is no such program, 126 if it could not be started, 124 if it
    /// was stopped, and 128 plus the number of the signal if a signal ended it.
    pub status: i32,
    /// The number of bytes beyond the output limit, which are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// `true` if the command was stopped at its time limit.
    #[serde(skip_serializing_if = "is_false")]
    pub timed_out: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RunLimits {
    pub(super) time: Duration,
    pub(super) output: usize,
}

/// Checks that every command can run without a shell; the error says which cannot.
pub(super) fn runnable(commands: &Commands) -> Result<(), String> {
    for pipeline in &commands.pipelines {
        for stage in &pipeline.stages {
            let Stage::Simple(command) = stage else {
                return Err(match stage {
                    Stage::Subshell { .. } => "a subshell needs a shell".into(),
                    _ => "a loop, a condition or a group needs a shell".into(),
                });
            };
            let values = command.assignments.iter().map(|assignment| &assignment.value);
            let targets =
                command.redirections.iter().filter_map(|redirection| redirection.target.word());
            for word in command.words.iter().chain(values).chain(targets) {
                if word.literal().is_none() {
                    return Err(format!("`{}` needs a shell: write what it stands for", word.text));
                }
            }
            match command.words.first() {
                None => return Err("a command without a program needs a shell".into()),
                Some(word)
                    if word.text == "cd"
                        && (pipeline.stages.len() > 1 || command.words.len() != 2) =>
                {
                    return Err("`cd` needs one directory, and stands alone".into());
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// Runs commands that passed [`runnable`], and blocks until they end or are stopped.
pub(super) fn run(
    commands: &Commands,
    directory: PathBuf,
    limits: RunLimits,
    stop: &AtomicBool,
) -> io::Result<ShellOutput> {
    let (reader, writer) = pipe()?;
    let collected = collect(reader, limits.output);
    let mut running = RunningPipeline {
        directory,
        writer,
        until: Instant::now() + limits.time,
        stop,
        stopped: false,
    };
    let mut status = 0;
    for pipeline in &commands.pipelines {
        let runs = match pipeline.join {
            Join::Then => true,
            Join::And => status == 0,
            Join::Or => status != 0,
        };
        if runs && !running.stopped {
            status = running.pipeline(pipeline)?;
        }
    }
    let timed_out = running.stopped;
    // Closes the last writer of this process, so that the pipe ends when the programs have ended.
    drop(running);
    let CapturedOutput { bytes, left_out } = collected.take();
    Ok(ShellOutput {
        output: String::from_utf8_lossy(&bytes).into_owned(),
        status,
        left_out,
        timed_out,
    })
}

/// The output that has been read so far, while a thread continues to read.
struct Collected {
    output: Arc<Mutex<CapturedOutput>>,
    /// Disconnected when the reading is over.
    reading: Receiver<()>,
}

#[derive(Default)]
struct CapturedOutput {
    bytes: Vec<u8>,
    left_out: usize,
}

/// Reads to the end in a thread of its own, so no program waits for its output to be read. We count output beyond the
/// limit and do not keep it.
fn collect(mut reader: PipeReader, limit: usize) -> Collected {
    let output = Arc::new(Mutex::new(CapturedOutput::default()));
    let (still_reading, reading) = channel();
    let shared = Arc::clone(&output);
    std::thread::spawn(move || {
        let _still_reading: Sender<()> = still_reading;
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(length) = reader.read(&mut buffer) {
            if length == 0 {
                break;
            }
            let mut output = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = length.min(limit.saturating_sub(output.bytes.len()));
            output.bytes.extend_from_slice(buffer.get(..kept).unwrap_or_default());
            output.left_out = output.left_out.saturating_add(length - kept);
        }
    });
    Collected { output, reading }
}

impl Collected {
    /// The output so far. A program that continues in the background keeps the pipe open, so this waits only briefly.
    fn take(&self) -> CapturedOutput {
        // There is nothing to receive: this ends with the reading, or with the time.
        let _ = self.reading.recv_timeout(Duration::from_millis(500));
        std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The target of a program's standard output or error.
enum OutputTarget {
    Pipe(PipeWriter),
    File(File),
}

impl OutputTarget {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Pipe(writer) => Self::Pipe(writer.try_clone()?),
            Self::File(file) => Self::File(file.try_clone()?),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Pipe(writer) => writer.write_all(bytes),
            Self::File(file) => file.write_all(bytes),
        }
    }

    fn into_stdio(self) -> Stdio {
        match self {
            Self::Pipe(writer) => writer.into(),
            Self::File(file) => file.into(),
        }
    }
}

struct RunningPipeline<'a> {
    directory: PathBuf,
    writer: PipeWriter,
    until: Instant,
    stop: &'a AtomicBool,
    stopped: bool,
}

impl RunningPipeline<'_> {
    fn pipeline(&mut self, pipeline: &Pipeline) -> io::Result<i32> {
        let mut input = Stdio::null();
        let mut children: Vec<Result<Child, i32>> = Vec::new();
        let last = pipeline.stages.len().saturating_sub(1);
        for (number, stage) in pipeline.stages.iter().enumerate() {
            let Stage::Simple(command) = stage else { continue };
            if command.words.first().is_some_and(|word| word.text == "cd") {
                return self.change_directory(command, pipeline.negated);
            }
            let (output, next) = match number == last {
                true => (self.output()?, Stdio::null()),
                false => {
                    let (reader, writer) = pipe()?;
                    (OutputTarget::Pipe(writer), reader.into())
                }
            };
            children.push(self.start(command, std::mem::replace(&mut input, next), output));
        }
        let status = self.wait(&mut children);
        Ok(if pipeline.negated { i32::from(status == 0) } else { status })
    }

    /// Changes the directory. Its redirections are opened, as a shell opens them, and one that fails keeps the directory.
    ///
    /// `cd` is the only builtin, as no program could do it. It changes the directory of the programs after it. It does
    /// not change that of this process, in which other calls run.
    fn change_directory(&mut self, command: &SimpleCommand, negated: bool) -> io::Result<i32> {
        let there =
            command.words.get(1).map(|word| self.directory.join(&word.text)).unwrap_or_default();
        let mut input = Stdio::null();
        let mut outputs = [self.output()?, self.output()?];
        let opened = command
            .redirections
            .iter()
            .try_for_each(|redirection| self.redirect(redirection, &mut input, &mut outputs));
        let [_, errors] = &mut outputs;
        let changed = match opened {
            Err(error) => {
                writeln!(self.writer, "cd: {error}")?;
                false
            }
            Ok(()) if there.is_dir() => {
                self.directory = there;
                true
            }
            Ok(()) => {
                errors
                    .write_all(format!("cd: {}: not a directory\n", there.display()).as_bytes())?;
                false
            }
        };
        Ok(i32::from(changed == negated))
    }

    /// The output of the whole call.
    fn output(&self) -> io::Result<OutputTarget> {
        self.writer.try_clone().map(OutputTarget::Pipe)
    }

    /// Starts a program. The error is the exit status that counts in its place.
    fn start(
        &mut self,
        command: &SimpleCommand,
        input: Stdio,
        output: OutputTarget,
    ) -> Result<Child, i32> {
        let name = command.words.first().map(|word| word.text.clone()).unwrap_or_default();
        let started = self.try_start(command, &name, input, output);
        started.map_err(|error| {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let _ = writeln!(self.writer, "{name}: {error}");
            if missing { 127 } else { 126 }
        })
    }

    fn try_start(
        &self,
        command: &SimpleCommand,
        name: &str,
        input: Stdio,
        output: OutputTarget,
    ) -> io::Result<Child> {
        let mut process = Command::new(name);
        let args: Vec<&str> = command.words.iter().skip(1).map(Word::text).collect();
        process.args(without_programs(name, &args)).current_dir(&self.directory);
        process.envs(
            command.assignments.iter().map(|one| (one.name.as_str(), one.value.text.as_str())),
        );
        let mut input = input;
        let mut outputs = [output, self.output()?];
        for redirection in &command.redirections {
            self.redirect(redirection, &mut input, &mut outputs)?;
        }
        let [output, errors] = outputs;
        process.stdin(input).stdout(output.into_stdio()).stderr(errors.into_stdio()).spawn()
    }

    fn redirect(
        &self,
        redirection: &Redirection,
        input: &mut Stdio,
        outputs: &mut [OutputTarget; 2],
    ) -> io::Result<()> {
        let [out, errors] = outputs;
        let path = |word: &Word| self.directory.join(&word.text);
        let append = |path: PathBuf| {
            OpenOptions::new().append(true).create(true).open(path).map(OutputTarget::File)
        };
        let text = |text: &str| text_input(text).map(Stdio::from);
        match &redirection.target {
            RedirectionTarget::Read(word) => *input = File::open(path(word))?.into(),
            RedirectionTarget::HereDocument(body) => *input = text(body)?,
            RedirectionTarget::HereString(word) => *input = text(&format!("{}\n", word.text))?,
            RedirectionTarget::WriteAll(word) => {
                *out = OutputTarget::File(created(&path(word))?);
                *errors = out.try_clone()?;
            }
            RedirectionTarget::Write(word) | RedirectionTarget::Append(word) => {
                let target = match redirection.target {
                    RedirectionTarget::Append(_) => append(path(word))?,
                    _ => OutputTarget::File(created(&path(word))?),
                };
                *(if redirection.fd == Some(2) { errors } else { out }) = target;
            }
            RedirectionTarget::Duplicate(to) => {
                let copy = if *to == 2 { errors.try_clone()? } else { out.try_clone()? };
                *(if redirection.fd == Some(2) { errors } else { out }) = copy;
            }
        }
        Ok(())
    }

    /// Waits for all programs of a pipeline, and returns the exit status of the last. Kills them at the time limit or
    /// when the call was dropped.
    fn wait(&mut self, children: &mut [Result<Child, i32>]) -> i32 {
        loop {
            let mut running = false;
            let mut status = 0;
            for child in children.iter_mut() {
                status = match child {
                    Err(status) => *status,
                    Ok(child) => match child.try_wait() {
                        Ok(Some(ended)) => status_of(ended),
                        Ok(None) => {
                            running = true;
                            0
                        }
                        Err(_) => 126,
                    },
                };
            }
            if !running {
                return status;
            }
            if Instant::now() >= self.until || self.stop.load(Ordering::Relaxed) {
                self.stopped = true;
                for child in children.iter_mut().flatten() {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                return 124;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn created(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// A pipe from which a text is read. A thread writes the text, as it may exceed the capacity of the pipe.
fn text_input(text: &str) -> io::Result<PipeReader> {
    let (reader, mut writer) = pipe()?;
    let text = text.to_owned();
    std::thread::spawn(move || {
        let _ = writer.write_all(text.as_bytes());
    });
    Ok(reader)
}

fn status_of(ended: std::process::ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&ended) {
        return 128 + signal;
    }
    ended.code().unwrap_or(126)
}
