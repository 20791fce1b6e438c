//! The settings file of Claude Code.

use serde_json::Value;

use super::super::condition_format::RUNNERS;
use super::super::error::RulesError;
use super::{Imported, Writer, plain_words, quoted};

const SHELL: &[&str] = &["Bash", "shell"];
const EDITS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];
const READS: &[&str] = &["Read", "Grep", "Glob"];

/// Makes a file of rules from a `settings.json` of Claude Code: its `permissions.allow`, `ask` and `deny`.
///
/// ```
/// let settings = r#"{"permissions": {"allow": ["Bash(git diff:*)", "Write(src/**)"], "deny": ["Read(.env)"]}}"#;
/// let imported = countersign::rules::import_claude(settings)?;
/// assert!(imported.text.contains("where.command.runs = \"git diff\""));
/// assert!(imported.left_out[0].dead); // Claude Code asks about `Edit(…)` for every tool that writes
/// # Ok::<(), countersign::rules::RulesError>(())
/// ```
///
/// # Errors
/// [`RulesError`] if the text is no JSON object.
pub fn import_claude(text: &str) -> Result<Imported, RulesError> {
    let settings: Value = serde_json::from_str(text).map_err(|error| {
        let mut failed = RulesError::new("settings", error.to_string());
        if let Some(problem) = failed.problems.first_mut() {
            (problem.line, problem.column) = (error.line().max(1), error.column().max(1));
        }
        failed
    })?;
    let mut writer = Writer::new();
    for effect in ["allow", "ask", "deny"] {
        let rules =
            settings.get("permissions").and_then(|it| it.get(effect)).and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            match rule.as_str() {
                Some(rule) => one(&mut writer, effect, rule.trim()),
                None => writer.left_out(&rule.to_string(), "is no text", true),
            }
        }
    }
    for key in ["defaultMode", "additionalDirectories"] {
        if let Some(value) = settings.get("permissions").and_then(|it| it.get(key)) {
            writer.left_out(
                &format!("{key}: {value}"),
                "is a mode of the agent and no rule",
                false,
            );
        }
    }
    Ok(writer.imported)
}

fn one(writer: &mut Writer, effect: &str, rule: &str) {
    let (tool, inner) = match rule.split_once('(') {
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(inner) => (tool, Some(inner)),
            None => return writer.left_out(rule, "has no closing parenthesis", true),
        },
        None => (rule, None),
    };
    match (tool, inner) {
        ("Bash", Some(command)) => bash(writer, effect, rule, command),
        ("Bash", None) if effect == "allow" => {
            writer.left_out(
                rule,
                "allows every command: write rules with `where.command.is` or `runs`",
                false,
            );
        }
        ("Bash", None) => writer.rule(effect, SHELL, &[], None),
        ("Read", Some(path)) => paths(writer, effect, rule, READS, path),
        ("Edit", Some(path)) => paths(writer, effect, rule, EDITS, path),
        ("Write" | "MultiEdit" | "NotebookEdit" | "Glob" | "Grep", Some(_)) => {
            writer.left_out(
                rule,
                "is never consulted: paths are matched by `Edit(…)` and `Read(…)`",
                true,
            );
        }
        ("WebFetch", Some(domain)) => match domain.strip_prefix("domain:") {
            Some(host) if super::super::host::HostPattern::parse(host).is_ok() => {
                writer.rule(
                    effect,
                    &["WebFetch"],
                    &[format!("where.url.host = {}", quoted(host))],
                    None,
                );
            }
            _ => writer.left_out(rule, "has no `domain:`, without which it matches nothing", true),
        },
        (name, None) if name.starts_with("mcp__") => mcp(writer, effect, rule, name),
        (_, Some(_)) => writer.left_out(
            rule,
            "has a condition on a parameter of another tool: write it as `where`",
            false,
        ),
        (name, None) if name.is_empty() || name.contains(['*', ':', ')']) => {
            writer.left_out(rule, "names no tool", true);
        }
        (name, None) => writer.rule(effect, &[name], &[], None),
    }
}

fn bash(writer: &mut Writer, effect: &str, rule: &str, command: &str) {
    if command.starts_with("command:") {
        return writer.left_out(
            rule,
            "is never consulted: the command itself goes into the parentheses",
            true,
        );
    }
    let prefix = command.strip_suffix(":*").or_else(|| command.strip_suffix(" *"));
    let words: Vec<&str> = prefix.unwrap_or(command).split_whitespace().collect();
    match prefix {
        Some(_)
            if effect == "allow"
                && words.len() == 1
                && words.first().is_some_and(|it| RUNNERS.contains(it)) =>
        {
            writer.left_out(rule, "allows a program that runs any program in its arguments", false);
        }
        Some(_) if plain_words(&words) => {
            writer.rule(
                effect,
                SHELL,
                &[format!("where.command.runs = {}", quoted(&words.join(" ")))],
                None,
            );
        }
        None if !command.contains('*') && effect == "allow" => {
            writer.rule(
                effect,
                SHELL,
                &[format!("where.command.equals = {}", quoted(command))],
                None,
            );
        }
        // A stricter rule may match more than the original: the command with any further arguments.
        None if !command.contains('*') && plain_words(&words) => {
            writer.rule(
                effect,
                SHELL,
                &[format!("where.command.runs = {}", quoted(&words.join(" ")))],
                None,
            );
        }
        _ if effect == "allow" => {
            writer.left_out(
                rule,
                "is a pattern over the text of a command, which lets through more than it says",
                false,
            );
        }
        _ => {
            let pattern = command.replace(":*", "*");
            writer.rule(effect, SHELL, &[format!("where.command = {}", quoted(&pattern))], None);
        }
    }
}

fn paths(writer: &mut Writer, effect: &str, rule: &str, tools: &[&str], path: &str) {
    let allows = effect == "allow";
    let pattern = if let Some(absolute) = path.strip_prefix("//") {
        format!("/{absolute}")
    } else if path.starts_with("~/") {
        path.to_owned()
    } else if let Some(rooted) = path.strip_prefix('/') {
        rooted.to_owned()
    } else {
        let path = path.strip_prefix("./").unwrap_or(path);
        // Relative patterns are relative to the directory in an allow, and match at any depth elsewhere.
        if allows || path.starts_with("**/") { path.to_owned() } else { format!("**/{path}") }
    };
    if pattern.is_empty() || pattern.contains("..") || pattern.contains(['[', '{', '!']) {
        return writer.left_out(rule, "is a pattern that these rules do not have", false);
    }
    let line = match allows {
        true => format!("where.file_path.path = {}", quoted(&pattern)),
        false => format!(
            "where.any_path = [{}, {}]",
            quoted(&pattern),
            quoted(&format!("{}/**", pattern.trim_end_matches("/**")))
        ),
    };
    writer.rule(effect, tools, &[line], None);
}

fn mcp(writer: &mut Writer, effect: &str, rule: &str, name: &str) {
    let rest = name.strip_prefix("mcp__").unwrap_or(name);
    let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
    if server.is_empty() || tool.is_empty() || server.contains('*') {
        return writer.left_out(rule, "names no MCP server", true);
    }
    if effect == "allow" && tool.contains("__") {
        return writer.left_out(
            rule,
            "does not say where the name of the server ends: write `mcp:SERVER/tool`",
            false,
        );
    }
    writer.rule(effect, &[&format!("mcp:{server}/{tool}")], &[], None);
}
