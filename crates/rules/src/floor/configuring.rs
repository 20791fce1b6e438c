//! Programs that write the configuration of agents, or of what runs by itself, in files that no word names (rule R5).
//!
//! `claude mcp add x -- y` writes `.mcp.json`, `direnv allow` lets a file of the workspace run whenever its folder is
//! entered, and `crontab x` runs commands at a time. What only prints is left out: `claude mcp list`.

use countersign_shell::Part;
use countersign_shell::program_files::program_name;

/// Programs by their names and those of their packages, a sub-command that writes, and the words behind it with which it
/// only prints. Without such words, the sub-command alone writes; where the sub-command is empty, the program does.
type ConfiguringForm = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// The forms. Claude Code 2.1.330, Codex CLI 0.169.0, Gemini CLI 0.61.0, Copilot CLI 1.0.102, opencode 1.18.33, Qwen Code
/// 0.24.4 (2026-11-27).
const FORMS: &[ConfiguringForm] = &[
    (CLAUDE, &["mcp"], &["get", "help", "list", "serve"]),
    (CLAUDE, &["config"], &["get", "help", "list", "ls"]),
    (CLAUDE, &["plugin", "plugins"], &["help", "list", "ls", "validate"]),
    (CLAUDE, &["install", "migrate-installer", "setup-token", "update"], &[]),
    (GEMINI, &["extension", "extensions"], &["help", "list", "validate"]),
    (GEMINI, &["hooks", "mcp", "skill", "skills"], &["help", "list"]),
    (CODEX, &["mcp", "plugin", "plugins"], &["get", "help", "list", "serve"]),
    (CODEX, &["features"], &["help", "list"]),
    (COPILOT, &["mcp", "plugin", "plugins"], &["get", "help", "list"]),
    (OPENCODE, &["agent", "auth", "mcp", "plugin"], &["help", "list", "ls"]),
    (
        OTHERS,
        &["extension", "extensions", "mcp", "plugin", "plugins", "settings", "skill"],
        &["get", "help", "list", "ls"],
    ),
    (OTHERS, &["configure"], &[]),
    (EDITORS, &["--add-mcp", "--install-extension", "--uninstall-extension"], &[]),
    (&["direnv"], &["allow", "deny", "edit", "grant", "permit", "revoke"], &[]),
    (&["mise", "rtx"], &["set", "trust", "unset", "unuse", "use"], &[]),
    (
        &["mise", "rtx"],
        &["alias", "config", "plugins", "settings"],
        &["get", "ls", "list", "ls-remote"],
    ),
    (&["asdf"], &["global", "local", "set"], &[]),
    (&["asdf"], &["plugin"], &["list"]),
    (&["husky", "simple-git-hooks"], &[""], &["--help", "--version"]),
    (
        &["lefthook", "overcommit", "pre-commit"],
        &["--install", "--sign", "add", "init-templatedir", "install", "uninstall"],
        &[],
    ),
    (&["gh"], &["setup-git"], &[]),
    (
        &["gh"],
        &["alias", "config", "extension", "extensions"],
        &["browse", "get", "list", "ls", "search"],
    ),
    (&["npm", "pnpm", "yarn"], &["config", "c"], &["--help", "get", "list", "ls"]),
    (&["npm", "pnpm", "yarn"], &["set", "set-script"], &[]),
    (&["pip", "pip3", "poetry", "bundle"], &["config"], &["--list", "debug", "get", "list"]),
    (&["crontab"], &[""], &["-l"]),
    (&["at", "batch"], &[""], &["-l"]),
    (&["systemctl"], &["edit", "enable", "link", "set-environment"], &[]),
    (&["launchctl"], &["bootstrap", "enable", "load", "setenv", "submit"], &[]),
];

const CLAUDE: &[&str] = &["claude", "claude-code"];
const CODEX: &[&str] = &["codex"];
const COPILOT: &[&str] = &["copilot"];
const GEMINI: &[&str] = &["gemini", "gemini-cli", "qwen", "qwen-code"];
const OPENCODE: &[&str] = &["opencode", "opencode-ai"];
const OTHERS: &[&str] =
    &["amp", "auggie", "cline", "crush", "cursor-agent", "droid", "goose", "kilo", "kiro-cli", "q"];
const EDITORS: &[&str] =
    &["code", "code-insiders", "codium", "cursor", "positron", "vscodium", "windsurf"];

/// Programs that run a program of a package.
const RUNNERS: &[&str] = &["bunx", "npx", "pipx", "pnpm", "uvx", "yarn", "npm", "bun"];

/// Returns `true` if a command writes such a configuration.
pub(super) fn writes(part: &Part) -> bool {
    let words = part.argv();
    let first = part.program_name();
    let is_runner = RUNNERS.contains(&first);
    let names = words.iter().take(if is_runner { words.len() } else { 1 }).enumerate();
    names.into_iter().any(|(at, word)| {
        let name = bare(word);
        let rest = words.get(at + 1..).unwrap_or_default();
        FORMS.iter().any(|(programs, subs, quiet)| {
            programs.contains(&name) && subs.iter().any(|sub| is_written(rest, sub, quiet))
        })
    })
}

/// The name of a program, or of the package that holds it: `@google/gemini-cli@latest`.
fn bare(word: &str) -> &str {
    let name = program_name(word);
    name.split('@').next().unwrap_or(name)
}

fn is_written(words: &[String], sub: &str, quiet: &[&str]) -> bool {
    let is_quiet = |word: &String| quiet.contains(&word.as_str());
    if sub.is_empty() {
        return !words.iter().any(is_quiet);
    }
    // An option may take the word before, so that the sub-command may be any word.
    words.iter().enumerate().filter(|(_, word)| *word == sub).any(|(at, _)| {
        let behind = words.get(at + 1..).unwrap_or_default();
        let next = behind.iter().find(|it| !it.starts_with('-') || is_quiet(it));
        match next {
            Some(next) => !is_quiet(next),
            None => quiet.is_empty(),
        }
    })
}
