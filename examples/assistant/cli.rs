//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// An assistant tidies a folder, and every call it makes goes through a permission stack.
///
/// The model is offline and deterministic, unless --model names a real one; the tools are real. Without DIRECTORY it works on a copy of a small messy
/// workspace, in a temporary directory that it prints and leaves for you to look at.
///
/// Reads are allowed. Writes, moves and deletes are asked about. Secrets and anything outside of the directory are
/// denied. Questions are put in the terminal, unless one of the options below answers them; with neither, they are
/// answered with no.
#[derive(Debug, Parser)]
#[command(name = "assistant", bin_name = "assistant", after_help = HELP)]
pub(crate) struct Cli {
    /// The directory to tidy, in place
    #[arg(conflicts_with = "resume")]
    pub(crate) directory: Option<PathBuf>,

    /// Answer from a file of rules; see below
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,

    /// Approve everything that is asked
    #[arg(long, conflicts_with_all = ["answers", "deny_all"])]
    pub(crate) approve_all: bool,

    /// Deny everything that is asked
    #[arg(long, conflicts_with = "answers")]
    pub(crate) deny_all: bool,

    /// Ask no person: when calls are pending, write the run to FILE and exit
    #[arg(long, value_name = "FILE")]
    pub(crate) suspend: Option<PathBuf>,

    /// Answer the pending calls in FILE, and resume that run
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,

    /// Put the optional ReadOnly layer into the stack: it denies every change
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Ask this model instead of the one without a network: gpt-4o-mini, claude-sonnet-4-5, gemini-2.5-flash,
    /// ollama::qwen3, …; see below
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Add the tools of the MCP server that this command starts; each of their calls is asked about
    #[arg(long, value_name = "COMMAND")]
    pub(crate) mcp: Option<String>,

    /// Show the decision of every layer about every call, and the error message of a model's provider
    #[arg(long)]
    pub(crate) explain: bool,
}

const HELP: &str = r#"Rules for --answers:
  One JSON object a line (or one array of them). The first rule that fits a call answers it:

    {"tool": "delete_file", "path": "*.tmp", "answer": "approve"}
    {"path": "logs/*", "answer": "deny", "message": "keep the logs"}
    {"tool": "write_file", "answer": "edit", "args": {"path": "notes/SUMMARY.md"}}
    {"call": 3, "answer": "approve"}

  tool     the name of the tool; any tool without it
  path     the path, or what a move moves; `*` stands for any text; any path without it
  call     the number of the call among those asked about, from 1; any call without it
  answer   approve | deny | edit
  message  what the model is told of a denial
  args     what an edit changes; the other arguments stay. An edit answers a call once:
           if it has to be asked about again, the later rules answer.

  Calls that no rule fits are denied. With --suspend they wait instead.

Suspending:
  assistant --suspend run.json                  the calls wait in run.json, nothing is changed
  assistant --resume run.json --approve-all     another process answers them and continues

  With --resume and --suspend, the pending calls of the first file are answered, and the next ones go to the second.
  Anyone who can write such a file chooses what runs: keep it where only you can write.

Models:
  The provider goes by the name. Its key comes from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY
  and so on; Ollama needs none. What the tools return is sent to the provider. With --resume, name the model again.

Servers:
  assistant --mcp "mcp-server-memory"           the server's tools are called mcp_…, and stand behind the same stack
  The words of the command are separated by spaces. The model without a network calls the first tool that needs no
  arguments, once. With --resume, name the server again.

Exit status:
  0    the run came to its end, or was suspended as you asked
  1    the run failed
  2    the command line, the directory, the model, or a file that was named cannot be used; nothing has run
  130  you stopped the run with Ctrl-C: the calls that were asked about have not run"#;

impl Cli {
    /// Checks combinations of options that clap cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        let answered = self.approve_all || self.deny_all;
        match answered && self.suspend.is_some() && self.resume.is_none() {
            true => Err("with --approve-all or --deny-all nothing is left to --suspend".into()),
            false => Ok(()),
        }
    }
}
