//! The command line.

use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt as _};

/// The options of the user. [`HELP`] says what each of them does.
#[derive(Debug, Default)]
pub(crate) struct Cli {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) rules: Option<PathBuf>,
    pub(crate) answers: Option<PathBuf>,
    pub(crate) approve_all: bool,
    pub(crate) deny_all: bool,
    pub(crate) suspend: Option<PathBuf>,
    pub(crate) resume: Option<PathBuf>,
    pub(crate) read_only: bool,
    pub(crate) model: Option<String>,
    pub(crate) mcp: Option<String>,
    pub(crate) explain: bool,
}

/// The text of `--help`.
pub(crate) const HELP: &str = r#"An assistant tidies a folder, and every call it makes goes through a permission stack.

The model is offline and deterministic, unless --model names a real one; the tools are real. Without DIRECTORY it works
on a copy of a small messy workspace, in a temporary directory that it prints and leaves for you to look at.

Reads are allowed. Writes, moves and deletes are asked about. Secrets and anything outside of the directory are denied.
The rules are in examples/assistant/rules.toml. Questions are put in the terminal, unless one of the options below
answers them; with neither, they are answered with no. In the terminal, `g` also answers later calls of that kind, until
the program ends (not with --suspend or --resume).

Usage: assistant [OPTIONS] [DIRECTORY]

Arguments:
  [DIRECTORY]       The directory to tidy, in place

Options:
      --rules <FILE>    Decide by this file of rules; with --resume, name it again
      --answers <FILE>  Answer from a file; see below
      --approve-all     Approve everything that is asked
      --deny-all        Deny everything that is asked
      --suspend <FILE>  Ask no person: when calls are pending, write the run to FILE and exit
      --resume <FILE>   Answer the pending calls in FILE, and resume that run
      --read-only       Put the optional ReadOnly layer into the stack: it denies every change
      --model <NAME>    Ask this model instead of the one without a network: gpt-4o-mini, claude-sonnet-4-5,
                        gemini-2.5-flash, ollama::qwen3, …; see below
      --mcp <COMMAND>   Add the tools of the MCP server that this command starts; each of their calls is asked about
      --explain         Show the decision of every layer about every call, which rules made it and which nearly did,
                        and the error message of a model's provider
  -h, --help            Print this help

Answers:
  One JSON object a line (or one array of them). The first one that fits a call answers it:

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
           if it has to be asked about again, the later ones answer.

  Calls that none fits are denied. With --suspend they wait instead.

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

/// Sets an option that has a value. A second value is refused, as it would replace the first without a word.
fn once<T>(option: &str, slot: &mut Option<T>, value: T) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{option} cannot be given twice")),
    }
}

/// A command line without errors.
pub(crate) enum Command {
    Run(Cli),
    Help,
}

impl Cli {
    /// Reads the command line of this process.
    pub(crate) fn read() -> Result<Command, String> {
        Self::from_args(Parser::from_env()).map_err(|problem| {
            let problem = problem.to_string();
            format!("{problem}\n\nFor more information, try '--help'.")
        })
    }

    fn from_args(mut args: Parser) -> Result<Command, lexopt::Error> {
        let mut cli = Self::default();
        while let Some(arg) = args.next()? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
                Arg::Long("rules") => once("--rules", &mut cli.rules, args.value()?.into())?,
                Arg::Long("answers") => once("--answers", &mut cli.answers, args.value()?.into())?,
                Arg::Long("approve-all") => cli.approve_all = true,
                Arg::Long("deny-all") => cli.deny_all = true,
                Arg::Long("suspend") => once("--suspend", &mut cli.suspend, args.value()?.into())?,
                Arg::Long("resume") => once("--resume", &mut cli.resume, args.value()?.into())?,
                Arg::Long("read-only") => cli.read_only = true,
                Arg::Long("model") => once("--model", &mut cli.model, args.value()?.string()?)?,
                Arg::Long("mcp") => once("--mcp", &mut cli.mcp, args.value()?.string()?)?,
                Arg::Long("explain") => cli.explain = true,
                Arg::Value(directory) if cli.directory.is_none() => {
                    cli.directory = Some(directory.into());
                }
                other => return Err(other.unexpected()),
            }
        }
        cli.check()?;
        Ok(Command::Run(cli))
    }

    /// Refuses options of which one would silently win over another.
    fn check(&self) -> Result<(), String> {
        let given = [
            ("--answers", self.answers.is_some()),
            ("--approve-all", self.approve_all),
            ("--deny-all", self.deny_all),
        ];
        let mut answers = given.iter().filter(|(_, given)| *given).map(|(option, _)| option);
        if let (Some(one), Some(other)) = (answers.next(), answers.next()) {
            return Err(format!(
                "{one} cannot be used with {other}: each of them answers every call"
            ));
        }
        if self.directory.is_some() && self.resume.is_some() {
            return Err(
                "a DIRECTORY cannot be used with --resume: the run continues in its own".into()
            );
        }
        let answered = self.approve_all || self.deny_all;
        match answered && self.suspend.is_some() && self.resume.is_none() {
            true => Err("with --approve-all or --deny-all nothing is left to --suspend".into()),
            false => Ok(()),
        }
    }
}
