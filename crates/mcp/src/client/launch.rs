//! The way to reach an MCP server: a command to start, or a URL.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use countersign::args::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The way to reach an MCP server: the command that starts it (stdio), or its URL (streamable HTTP).
///
/// ```
/// use countersign_mcp::Launch;
///
/// let files = Launch::command("mcp-server-git").args(["--repository", "."]);
/// let remote = Launch::url("https://mcp.example.com/mcp").header("authorization", "Bearer …");
/// assert_ne!(files.digest(), remote.digest());
/// ```
#[derive(Clone)]
pub struct Launch {
    pub(crate) way: Transport,
    pub(crate) timeout: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) idempotent: Vec<String>,
}

#[derive(Clone)]
pub(crate) enum Transport {
    Command {
        program: OsString,
        args: Vec<OsString>,
        env: BTreeMap<OsString, OsString>,
        directory: Option<PathBuf>,
    },
    Url {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl Launch {
    /// A server that is started as a child process and speaks MCP on its stdin and stdout. Its stderr is inherited;
    /// on a terminal, each of its lines begins with the name of the server, and control characters are written out.
    ///
    /// No shell reads the words, so an argument may hold spaces and quotes as they are. The process ends with the
    /// connection.
    #[must_use]
    pub fn command(program: impl Into<OsString>) -> Self {
        let (args, env, directory) = (Vec::new(), BTreeMap::new(), None);
        Self::of(Transport::Command { program: program.into(), args, env, directory })
    }

    /// A server that is reached by streamable HTTP at this URL.
    ///
    /// The URL is read when the server is first used. Then another scheme than `http` or `https` is
    /// an [`McpError::Config`](crate::McpError).
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::of(Transport::Url { url: url.into(), headers: BTreeMap::new() })
    }

    fn of(way: Transport) -> Self {
        let (timeout, start_timeout) = (Duration::from_secs(300), Duration::from_secs(30));
        Self { way, timeout, start_timeout, idempotent: Vec::new() }
    }

    /// Adds arguments of the command; no effect on a URL.
    ///
    /// If you call it twice, the command has both. The arguments are part of the [digest](Self::digest).
    ///
    /// ```
    /// use countersign_mcp::Launch;
    ///
    /// let one = Launch::command("mcp-server-git").args(["--repository"]).args(["."]);
    /// assert_eq!(one.digest(), Launch::command("mcp-server-git").args(["--repository", "."]).digest());
    /// ```
    #[must_use]
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        if let Transport::Command { args, .. } = &mut self.way {
            args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Sets an environment variable of the command, beside the inherited ones; no effect on a URL.
    ///
    /// Use it for secrets: variables are in no digest, no error and no `Debug`, and, unlike arguments, not in the
    /// list of processes.
    ///
    /// ```
    /// use countersign_mcp::Launch;
    ///
    /// let launch = Launch::command("mcp-server-github").env("GITHUB_TOKEN", "ghp_secret");
    /// assert!(!format!("{launch:?}").contains("ghp_secret"));
    /// assert_eq!(launch.digest(), Launch::command("mcp-server-github").digest());
    /// ```
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Transport::Command { env, .. } = &mut self.way {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the directory in which the command is started; no effect on a URL.
    ///
    /// The directory is part of the digest: the same command in another directory works on other
    /// files.
    #[must_use]
    pub fn current_dir(mut self, path: impl Into<PathBuf>) -> Self {
        if let Transport::Command { directory, .. } = &mut self.way {
            *directory = Some(path.into());
        }
        self
    }

    /// Sets a header of every request to the URL, such as `authorization`; no effect on a command.
    ///
    /// The header is read when the server is first used. Then a name or value that is not one of HTTP is an error. It
    /// is not in the digest.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Url { headers, .. } = &mut self.way {
            headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sets how long one call may go without progress or result; 5 minutes by default. A call that takes longer is
    /// cancelled at the server and reported as one that may have run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_mcp::Launch;
    ///
    /// // A build may be silent for a long time, and its approvals and pins stay valid.
    /// let build = Launch::command("mcp-server-build").call_timeout(Duration::from_secs(3600));
    /// assert_eq!(build.digest(), Launch::command("mcp-server-build").digest());
    /// ```
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long the server may take to start and to list its tools; 30 seconds by default.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Declares that running a call of this tool twice has the same effect as running it once. A server's own
    /// `idempotentHint` is never believed.
    ///
    /// The declaration has one effect: after an unknown outcome, an equal call may run without being asked about as one
    /// that may have run already (rule L2). Name the tool as the server names it.
    #[must_use]
    pub fn idempotent(mut self, tool: impl Into<String>) -> Self {
        self.idempotent.push(tool.into());
        self
    }

    /// The digest of the program with its arguments and directory, or of the URL: the identity of a server, which does
    /// not depend on its own claims. Environment and headers are left out, because they hold secrets that rotate.
    ///
    /// It is SHA-256 in hexadecimal, over JSON with sorted keys, the same in every build. Pins and the keys of asks
    /// contain it: another program under the same name has to be accepted and approved anew.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = |os: &OsString| os.to_string_lossy().into_owned();
        let who = match &self.way {
            Transport::Command { program, args, directory, .. } => {
                let args: Vec<_> = args.iter().map(text).collect();
                json!([
                    "stdio",
                    text(program),
                    args,
                    directory.as_ref().map(|it| it.to_string_lossy())
                ])
            }
            Transport::Url { url, .. } => json!(["http", url]),
        };
        digest(&who)
    }
}

impl fmt::Debug for Launch {
    /// The program or the host, never arguments or headers, which may hold secrets (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            Transport::Command { program, args, .. } => {
                write!(f, "Launch({program:?} with {} arguments)", args.len())
            }
            Transport::Url { url, .. } => {
                let host = url::Url::parse(url).ok();
                write!(f, "Launch({})", host.as_ref().and_then(url::Url::host_str).unwrap_or("url"))
            }
        }
    }
}

/// SHA-256 over the JSON text, whose keys are sorted, in hexadecimal.
pub(crate) fn digest(value: &Value) -> String {
    hex(&Sha256::digest(sorted(value).to_string()))
}

/// The same value with its keys sorted, also where another crate has switched on the order of insertion.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<_, _> =
                map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            Value::Object(map.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
