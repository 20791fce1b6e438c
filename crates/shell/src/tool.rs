//! A tool that runs commands without a shell.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::execution::{RunLimits, ShellOutput, run, runnable};
use crate::syntax::commands::Commands;
use crate::syntax::dialect::Dialect;
use countersign::toolset::{Tool, tool_fn};

/// The arguments of [`ShellTool`].
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellArgs {
    /// The command to run: programs with literal arguments, joined by `|`, `&&`, `||`, `;`, with `cd` and redirections.
    pub command: String,
}

/// A tool that parses a command as [`Commands::parse`] does and runs exactly the parsed commands, without a shell:
/// programs with literal arguments, in pipelines and lists, with redirections, here-documents and `cd`.
///
/// It refuses anything that a shell would have to expand (globs, parameters, substitutions, `~`) before any program
/// starts. So the judged command is the command that runs. Put a layer with a [`Classifier`](super::Classifier) in
/// front of the tool: the tool itself decides nothing, and it is **not a sandbox**. Programs run with the rights and
/// the environment of the process. The tool runs a `git` that only reads (`status`, `diff`, `log`, …) without the
/// programs that a repository's settings name: no file monitor, no hooks, no external diff, no `textconv`. When the
/// call is cancelled or exceeds its time limit, the tool kills the programs that it started, but not the programs that
/// those started.
///
/// ```
/// use countersign_shell::ShellTool;
/// use countersign::{FunctionToolset, ToolCall, Tools, Turn};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = Tools::from(FunctionToolset::new().tool(ShellTool::new(".").into_tool("shell")));
/// let call = ToolCall::new("call_1", "shell", json!({"command": "printf 'b\\na\\n' | sort"}));
/// let report = Turn::new(tools).run(vec![call]).await?;
/// # if cfg!(unix) {
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), json!({"output": "a\nb\n", "status": 0}));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// Behind a classifier, what was judged is what runs:
///
/// ```
/// use countersign::decision::ToolDecision;
/// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, ShellTool, Workspace};
/// use countersign::{Decision, FunctionToolset, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn};
/// use serde_json::json;
///
/// struct Harmless(Classifier);
///
/// impl ToolMiddleware for Harmless {
///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
///         let judgement = self.0.judge(call.args().str("command").unwrap_or_default(), Dialect::Bash);
///         match judgement.decision() == ToolDecision::Allow {
///             true => Decision::allow(),
///             false => Decision::ask(judgement.to_string()).with_key("shell"),
///         }
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Reader).with_search_path(SearchPath::unchecked());
/// let tools = FunctionToolset::new()
///     .tool(ShellTool::new(".").into_tool("shell"))
///     .layered(Harmless(classifier).into_layer());
/// let report = Turn::new(tools).run(vec![ToolCall::new("c1", "shell", json!({"command": "rm notes.md"}))]).await?;
/// assert!(report.calls()[0].outcome().is_deferred(), "a person is asked before it runs");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct ShellTool {
    directory: PathBuf,
    limits: RunLimits,
}

impl ShellTool {
    /// A tool that starts its commands in this directory, with the default limits.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let limits = RunLimits { time: Duration::from_secs(120), output: 64 * 1024 };
        Self { directory: directory.into(), limits }
    }

    /// Sets how long one call may take, for all of its commands together; two minutes by default.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time = limit;
        self
    }

    /// Sets how many bytes of output are returned, counted from the beginning; 64 KiB by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::FunctionToolset;
    /// use countersign_shell::ShellTool;
    ///
    /// let shell = ShellTool::new(".").time_limit(Duration::from_secs(20)).output_limit(16 * 1024);
    /// let tools = FunctionToolset::new().tool(shell.into_tool("shell"));
    /// # let _ = tools;
    /// ```
    #[must_use]
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.limits.output = bytes;
        self
    }

    /// Makes the tool, under this name.
    #[must_use]
    pub fn into_tool(self, name: impl Into<Arc<str>>) -> Tool {
        let description = "Runs a command and returns its output and exit status. Programs with literal arguments only: \
                           pipes, `&&`, `||`, `;`, `cd`, redirections and here-documents work; globs, variables and \
                           substitutions do not.";
        tool_fn(name, description, move |args: ShellArgs| {
            let tool = self.clone();
            async move { tool.call(&args.command).await }
        })
    }

    async fn call(&self, text: &str) -> Result<ShellOutput, String> {
        let commands = Commands::parse(text, Dialect::Bash)
            .map_err(|refused| format!("not run: {refused}"))?;
        runnable(&commands).map_err(|why| format!("not run: {why}"))?;
        // When the call is dropped, this flag makes the blocking thread kill the programs.
        let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
        let (directory, limits, flag) = (self.directory.clone(), self.limits, Arc::clone(&stop.0));
        let running = tokio::task::spawn_blocking(move || run(&commands, directory, limits, &flag));
        let output = running.await.map_err(|_| "the command could not be watched".to_owned())?;
        output.map_err(|error| format!("the command could not be run: {error}"))
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
