//! The settings file of Claude Code.
//!
//! Claude Code has rules by its own names of tools, `Read(./.env)` and `Bash(npm run test:*)`. Here they are said in the
//! vocabulary of hooks, so that `countersign hook` and `guard` decide as Claude Code did, or more strictly:
//!
//! | Claude Code | here |
//! |---|---|
//! | `Read(PATH)` is about every tool that reads, and a denial about commands, too | all tools that read; a stricter rule also names the shell |
//! | `Edit(PATH)` is about every tool that writes files, and a denial about commands that do | both tools that write; a stricter rule also names the shell, but for reading |
//! | `Bash(PROGRAM:*)` allows any form of a program | its harmless forms |
//! | a denial of a command holds for each part of a text | the same |

use serde_json::Value;

use super::super::error::RulesError;
use super::pairs::{Pairs, PairsOr};
use super::{Imported, SHELL, Writer, list, plain_words, quoted};
use crate::readings::tools::{CLAUDE, CommonTool};

const WRITES: [CommonTool; 2] = [CommonTool::EditFile, CommonTool::WriteFile];
const READS: [CommonTool; 4] =
    [CommonTool::ReadFile, CommonTool::SearchFiles, CommonTool::FindFiles, CommonTool::ListFiles];

/// Makes a file of rules from a `settings.json` of Claude Code: its `permissions.allow`, `ask` and `deny`.
///
/// ```
/// let settings = r#"{"permissions": {"allow": ["Bash(git diff:*)", "Write(src/**)"], "deny": ["Read(.env)"]}}"#;
/// let imported = countersign_rules::import_claude(settings)?;
/// assert!(imported.text.contains("where.command.runs = \"git diff\""));
/// assert!(imported.left_out[0].dead); // Claude Code asks about `Edit(…)` for every tool that writes
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
///
/// # Errors
/// [`RulesError`] if the text is no JSON object.
pub fn import_claude(text: &str) -> Result<Imported, RulesError> {
    let settings: Pairs<PairsOr> = serde_json::from_str(text).map_err(|error| {
        let mut failed = RulesError::new("settings", error.to_string());
        if let Some(problem) = failed.problems.first_mut() {
            (problem.line, problem.column) = (error.line().max(1), error.column().max(1));
        }
        failed
    })?;
    let mut writer = Writer::new("the settings of Claude Code");
    for (key, value, is_dropped) in settings.each() {
        match (key, value) {
            (_, _) if is_dropped => writer.left_out(key, TWICE, true),
            ("permissions", PairsOr::Object(permissions)) => rules(&mut writer, permissions),
            ("permissions", PairsOr::Other(_)) => {
                writer.left_out(key, "is no object, so that Claude Code does not read it", true);
            }
            _ => other_setting(&mut writer, key),
        }
    }
    Ok(writer.finished())
}

/// The reason why a repeated key is not carried over.
const TWICE: &str =
    "is there again below, and Claude Code reads only the last one: write both in one";

/// Carries over the rules of `permissions`, and names what is no rule.
fn rules(writer: &mut Writer, permissions: &Pairs<Value>) {
    let is_rules = |key: &str| matches!(key, "allow" | "ask" | "deny");
    let all = || permissions.each();
    for effect in ["allow", "ask", "deny"] {
        let lists = all().filter(|(key, _, is_dropped)| *key == effect && !is_dropped);
        for rule in lists.filter_map(|(_, value, _)| value.as_array()).flatten() {
            match rule.as_str() {
                Some(rule) => Original { effect, text: rule.trim() }.write(writer),
                None => writer.left_out(&rule.to_string(), "is no text", true),
            }
        }
    }
    for (key, value, is_dropped) in all() {
        let written = format!("{key}: {value}");
        match key {
            _ if is_dropped => writer.left_out(&written, TWICE, true),
            _ if is_rules(key) && value.is_array() => {}
            _ if is_rules(key) => {
                let why = "is no list, so that Claude Code does not read it: write `[…]` around it";
                writer.left_out(&written, why, true);
            }
            "defaultMode" | "additionalDirectories" | "disableBypassPermissionsMode" => {
                writer.left_out(&written, "is a mode of the agent and no rule", false);
            }
            _ => {
                let why = "is no key of `permissions` that Claude Code reads: its rules are in `allow`, `ask` and `deny`";
                writer.left_out(&written, why, true);
            }
        }
    }
}

/// Names a setting beside `permissions`. Its value may be a secret, and is not shown.
fn other_setting(writer: &mut Writer, key: &str) {
    let is_meant = key.to_lowercase().starts_with("permission")
        || matches!(
            &*key.to_lowercase(),
            "allow" | "allowed" | "ask" | "deny" | "denied" | "rules"
        );
    match is_meant {
        true => writer.left_out(
            key,
            "is not read by Claude Code: its rules are in `allow`, `ask` and `deny` below `permissions`",
            true,
        ),
        false => writer.left_out(key, "is a setting of the agent and no rule", false),
    }
}

/// One rule as the settings have it.
#[derive(Clone, Copy)]
struct Original<'a> {
    effect: &'a str,
    text: &'a str,
}

impl Original<'_> {
    fn allows(self) -> bool {
        self.effect == "allow"
    }

    fn rule(self, writer: &mut Writer, tools: &[&str], lines: &[String]) {
        let reason = format!("the settings of Claude Code say so: {}", self.text);
        writer.rule(self.effect, tools, lines, &reason);
    }

    fn left_out(self, writer: &mut Writer, why: &str) {
        writer.left_out(self.text, why, false);
    }

    /// Says that the rule has no effect in Claude Code either.
    fn dead(self, writer: &mut Writer, why: &str) {
        writer.left_out(self.text, why, true);
    }

    fn write(self, writer: &mut Writer) {
        let (tool, inner) = match self.text.split_once('(') {
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(inner) => (tool, Some(inner)),
                None => return self.dead(writer, "has no closing parenthesis"),
            },
            None => (self.text, None),
        };
        match (tool, inner) {
            ("Bash", None | Some("*" | ":*")) if self.allows() => self.left_out(
                writer,
                "allows every command: write rules with `where.command.is` or `runs`",
            ),
            ("Bash", None | Some("*" | ":*")) => self.rule(writer, &[SHELL], &[]),
            ("Bash", Some(command)) => self.bash(writer, command),
            ("Read", Some(path)) => self.paths(writer, &READS, path),
            ("Edit", Some(path)) => self.paths(writer, &WRITES, path),
            ("Write" | "MultiEdit" | "NotebookEdit" | "Glob" | "Grep", Some(_)) => self
                .dead(writer, "is never consulted: paths are matched by `Edit(…)` and `Read(…)`"),
            ("WebFetch", Some(domain)) => self.fetch(writer, domain),
            ("Agent" | "Task", Some(agent)) => {
                let line = format!("where.agent.equals = {}", quoted(agent));
                self.rule(writer, &[CommonTool::SpawnAgent.name()], &[line]);
            }
            (name, None) if name.starts_with("mcp__") => self.mcp(writer, name),
            (_, Some(_)) => self.left_out(
                writer,
                "has a condition on a parameter of another tool: write it as `where`",
            ),
            ("*", None) if !self.allows() => self.rule(writer, &["*"], &[]),
            (name, None) if name.is_empty() || name.contains(['*', ':', ')']) => {
                self.dead(writer, "names no tool");
            }
            (name, None) => self.tool(writer, name),
        }
    }

    /// A rule about all calls of a tool.
    fn tool(self, writer: &mut Writer, name: &str) {
        let names = |kinds: &[CommonTool]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
        match (name, CLAUDE.get(name)) {
            ("Read", _) => self.rule(writer, &names(&READS), &[]),
            ("Edit", _) if !self.allows() => self.rule(writer, &names(&WRITES), &[]),
            (_, None) if self.allows() => {
                self.left_out(writer, "is a tool that hooks do not know, and always ask about");
            }
            (name, None) => self.rule(writer, &[name], &[]),
            (_, Some((kind, _))) => {
                let is_other =
                    |other: &&str| *other != name && !matches!(name, "Edit" | "Agent" | "Task");
                let other = CLAUDE.of_kind(kind).find(is_other);
                match other.filter(|_| self.allows()) {
                    Some(other) => {
                        let name = kind.name();
                        let why = format!(
                            "is `{name}` in hooks, as `{other}` is: to allow both, write `allow = \"{name}\"`"
                        );
                        self.left_out(writer, &why);
                    }
                    None => self.rule(writer, &[kind.name()], &[]),
                }
            }
        }
    }

    fn bash(self, writer: &mut Writer, command: &str) {
        if command.starts_with("command:") {
            return self
                .dead(writer, "is never consulted: the command itself goes into the parentheses");
        }
        let prefix = command.strip_suffix(":*").or_else(|| command.strip_suffix(" *"));
        // A rule compares the words of a command without the variables in front of it. A stricter rule may match more.
        let bare = without_variables(command);
        if bare.is_empty() || bare.len() < command.len() && self.allows() && prefix.is_some() {
            return self.left_out(writer, "begins with a variable, which rules do not compare");
        }
        if bare.len() < command.len() && !self.allows() {
            return self.bash(writer, bare);
        }
        let words: Vec<&str> = prefix.unwrap_or(command).split_whitespace().collect();
        let is_plain = plain_words(&words);
        let has_pattern = prefix.unwrap_or(command).contains('*');
        match (self.allows(), prefix) {
            (true, Some(_)) if is_plain => {
                if let Err(why) = writer.allow_program(&words) {
                    self.left_out(writer, &why);
                }
            }
            (true, None) if !has_pattern => {
                let line = format!("where.command.equals = {}", quoted(command));
                self.rule(writer, &[SHELL], &[line]);
            }
            (true, _) => self.left_out(
                writer,
                "is a pattern over the text of a command, which lets through more than it says",
            ),
            // A stricter rule may match more than the original: the command with any further arguments.
            (false, _) if is_plain && !has_pattern => {
                let line = format!("where.command.runs = {}", quoted(&words.join(" ")));
                self.rule(writer, &[SHELL], &[line]);
            }
            (false, _) => {
                let patterns = parts_like(&command.replace(":*", "*"));
                let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
                let line = format!("where.command.matches = {}", list(&patterns));
                self.rule(writer, &[SHELL], &[line]);
            }
        }
    }

    fn paths(self, writer: &mut Writer, kinds: &[CommonTool], path: &str) {
        let pattern = if let Some(absolute) = path.strip_prefix("//") {
            format!("/{absolute}")
        } else if path.starts_with("~/") {
            path.to_owned()
        } else if let Some(rooted) = path.strip_prefix('/') {
            rooted.to_owned()
        } else {
            let path = path.strip_prefix("./").unwrap_or(path);
            // Relative patterns are relative to the directory in an allow, and match at any depth elsewhere.
            match self.allows() || path.starts_with("**/") {
                true => path.to_owned(),
                false => format!("**/{path}"),
            }
        };
        let pattern = pattern.trim_end_matches('/');
        if pattern.is_empty() || pattern.contains("..") || pattern.contains(['[', '{', '!']) {
            return self.left_out(writer, "is a pattern that these rules do not have");
        }
        let folder = pattern.strip_suffix("/**").unwrap_or(pattern);
        let mut tools: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        if self.allows() {
            // A search in the folder names the folder.
            let patterns = if folder == pattern { vec![pattern] } else { vec![pattern, folder] };
            let line = format!("where.path.path = {}", list(&patterns));
            return self.rule(writer, &tools, &[line]);
        }
        // The name may be that of a folder.
        let inside = format!("{folder}/**");
        let patterns = if inside == pattern { vec![pattern] } else { vec![pattern, &*inside] };
        let line = format!("where.any_path = {}", list(&patterns));
        if kinds == READS {
            tools.push(SHELL);
            return self.rule(writer, &tools, &[line]);
        }
        self.rule(writer, &tools, std::slice::from_ref(&line));
        let reads = format!("except.command.is = {}", list(&["read-only", "queries"]));
        self.rule(writer, &[SHELL], &[line, reads]);
    }

    fn fetch(self, writer: &mut Writer, domain: &str) {
        match domain.strip_prefix("domain:") {
            Some(host) if crate::matching::host::HostPattern::parse(host).is_ok() => {
                let line = format!("where.url.host = {}", quoted(host));
                self.rule(writer, &[CommonTool::Fetch.name()], &[line]);
            }
            _ => self.dead(writer, "has no `domain:`, without which it matches nothing"),
        }
    }

    fn mcp(self, writer: &mut Writer, name: &str) {
        let rest = name.strip_prefix("mcp__").unwrap_or(name);
        // The name of a server or of a tool may have two of these itself.
        let splits = rest.match_indices("__").map(|(at, _)| {
            (rest.get(..at).unwrap_or_default(), rest.get(at + 2..).unwrap_or_default())
        });
        let mut all: Vec<_> =
            splits.filter(|(server, tool)| !server.is_empty() && !tool.is_empty()).collect();
        if all.is_empty() && !rest.contains("__") && !rest.is_empty() {
            all.push((rest, "*"));
        }
        match all.as_slice() {
            [] => return self.dead(writer, "names no MCP server"),
            [(server, _)] if self.allows() && server.contains('*') => {
                return self.dead(writer, "names no MCP server");
            }
            [_, _, ..] if self.allows() => {
                return self.left_out(
                    writer,
                    "does not say where the name of the server ends: write `mcp:SERVER/tool`",
                );
            }
            _ => {}
        }
        let tools: Vec<String> =
            all.iter().map(|(server, tool)| format!("mcp:{server}/{tool}")).collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        self.rule(writer, &tools, &[]);
    }
}

/// Patterns over a whole text of which a command is like this one, with anything behind it. A stricter rule may match
/// more.
fn parts_like(pattern: &str) -> Vec<String> {
    let pattern = format!("{}*", pattern.trim_end_matches('*'));
    let before = [" ", ";", "&", "|", "(", "\n", "`"];
    let inside = before.iter().map(|before| format!("*{before}{pattern}"));
    std::iter::once(pattern.clone()).chain(inside).collect()
}

/// A command without the variables in front of it: `git commit` of `HUSKY=0 git commit`.
fn without_variables(command: &str) -> &str {
    let command = command.trim_start();
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let is_name = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(plain)
    };
    match word.split_once('=') {
        Some((name, _)) if is_name(name) => without_variables(rest),
        _ => command,
    }
}
