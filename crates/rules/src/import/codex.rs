//! The `.rules` files of Codex.

use super::super::error::RulesError;
use super::{Imported, SHELL, Writer, plain_words};

/// A literal of the file.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Text(String),
    List(Vec<Literal>),
    Name(String),
}

/// Makes a file of rules from a `.rules` file of Codex: its calls of `prefix_rule`.
///
/// ```
/// let rules = r#"prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "prompt", justification = "talks")"#;
/// let imported = countersign_rules::import_codex(rules)?;
/// assert!(imported.text.contains(r#"where.command.runs = ["git push", "git fetch"]"#));
/// assert!(imported.text.contains(r#"reason = "talks""#));
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
///
/// # Errors
/// [`RulesError`] with the line of what is no call with literal arguments: then nothing is imported, as a part of the
/// file may be the part that forbids.
pub fn import_codex(text: &str) -> Result<Imported, RulesError> {
    let mut reader = CallReader { text, at: 0 };
    let mut writer = Writer::new("the rules of Codex");
    while let Some((name, arguments, written)) = reader.call()? {
        match name.as_str() {
            "prefix_rule" => prefix(&mut writer, &arguments, written),
            _ => writer.left_out(
                written,
                "is no rule about commands: write it as a rule about a tool",
                false,
            ),
        }
    }
    Ok(writer.finished())
}

fn prefix(writer: &mut Writer, arguments: &[(String, Literal)], written: &str) {
    let get = |name: &str| arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let effect = match get("decision") {
        None => "allow",
        Some(Literal::Text(text)) => match text.as_str() {
            "allow" => "allow",
            "prompt" => "ask",
            "forbidden" => "deny",
            _ => return writer.left_out(written, "has a decision that does not exist", true),
        },
        Some(_) => return writer.left_out(written, "has a decision that is no text", true),
    };
    let Some(Literal::List(pattern)) = get("pattern") else {
        return writer.left_out(written, "has no pattern", true);
    };
    for (name, value) in arguments {
        let known =
            matches!(&**name, "decision" | "pattern" | "justification" | "match" | "not_match");
        if !known || name == "justification" && !matches!(value, Literal::Text(_)) {
            let rule = format!("{name} of {}", words_of(written));
            writer.left_out(&rule, "is an argument that these rules do not have", false);
        }
    }
    let unnamed = names_within(pattern);
    if !unnamed.is_empty() {
        let rule = format!("{} of {}", unnamed.join(", "), words_of(written));
        let why = "is no text: the rule is carried over for the other words, so write one for what it stands for";
        writer.left_out(&rule, why, false);
    }
    let Some(all) = combinations(pattern) else {
        return writer.left_out(written, "has more than 256 combinations", false);
    };
    if all.is_empty() || !all.iter().all(|words| plain_words(words)) {
        return writer.left_out(written, "has words that these rules cannot name", false);
    }
    if effect == "allow" {
        // Each in a rule of its own, as their harmless forms are of other classes.
        for words in &all {
            if let Err(why) = writer.allow_program(words) {
                let rule = format!("prefix_rule(pattern = {})", super::list(words));
                writer.left_out(&rule, &why, false);
            }
        }
        return examples(writer, arguments, effect, &all);
    }
    let reason = match get("justification") {
        Some(Literal::Text(text)) => text.clone(),
        _ => format!("the rules of Codex say so: {}", words_of(written)),
    };
    let runs: Vec<String> = all.iter().map(|words| words.join(" ")).collect();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    writer.rule(
        effect,
        &[SHELL],
        &[format!("where.command.runs = {}", super::list(&runs))],
        &reason,
    );
    examples(writer, arguments, effect, &all);
}

/// Looks whether the rule holds for the examples of the owner as they say, and names those that it does not hold for.
fn examples(writer: &mut Writer, arguments: &[(String, Literal)], effect: &str, all: &[Vec<&str>]) {
    for (name, value) in arguments.iter().filter(|(name, _)| name.ends_with("match")) {
        let (Literal::List(items), is_meant) = (value, name == "match") else {
            writer.left_out(name, "is no list of examples", true);
            continue;
        };
        for item in items {
            let Some(command) = command_of(item) else {
                writer.left_out(name, "has an example that is no command", true);
                continue;
            };
            let begins = |words: &Vec<&str>| {
                let own: Vec<&str> = command.split_whitespace().collect();
                own.get(..words.len()).is_some_and(|start| start == words.as_slice())
            };
            let why = match (all.iter().any(begins), is_meant) {
                (true, true) | (false, false) => continue,
                (false, true) => {
                    "is an example that does not begin with the words of its pattern, so that the rule does not hold for it, in Codex neither: write a rule of its own"
                }
                (true, false) => {
                    "is an example that the rule holds for, although it says that it does not: write `except`"
                }
            };
            writer.left_out(
                &format!("{name} = [{}] ({effect})", super::quoted(&command)),
                why,
                true,
            );
        }
    }
}

/// The command of an example: a text, or its words.
fn command_of(item: &Literal) -> Option<String> {
    match item {
        Literal::Text(text) => Some(text.clone()),
        Literal::List(words) => {
            let word = |it: &Literal| match it {
                Literal::Text(text) => Some(text.clone()),
                Literal::List(_) | Literal::Name(_) => None,
            };
            Some(words.iter().map(word).collect::<Option<Vec<_>>>()?.join(" "))
        }
        Literal::Name(_) => None,
    }
}

/// The choices for a word that are no text.
fn names_within(pattern: &[Literal]) -> Vec<String> {
    let choices = pattern.iter().filter_map(|word| match word {
        Literal::List(items) => Some(items),
        Literal::Text(_) | Literal::Name(_) => None,
    });
    let unnamed = choices.flatten().filter_map(|item| match item {
        Literal::Text(_) => None,
        Literal::Name(name) => Some(format!("`{name}`")),
        Literal::List(_) => Some("a list within a list".to_owned()),
    });
    unnamed.collect()
}

/// The commands that a pattern stands for, of which each word may be one of several. `None` if there are too many.
fn combinations(pattern: &[Literal]) -> Option<Vec<Vec<&str>>> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    for word in pattern {
        let choices: Vec<&str> = match word {
            Literal::Text(text) => vec![text],
            Literal::List(items) => items
                .iter()
                .filter_map(
                    |it| if let Literal::Text(text) = it { Some(text.as_str()) } else { None },
                )
                .collect(),
            Literal::Name(_) => Vec::new(),
        };
        all = all
            .iter()
            .flat_map(|words| choices.iter().map(|choice| [words.as_slice(), &[*choice]].concat()))
            .collect();
        if all.len() > 256 {
            return None;
        }
    }
    Some(all)
}

/// A text on one line.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads calls with literal arguments.
struct CallReader<'t> {
    text: &'t str,
    at: usize,
}

type Call<'t> = (String, Vec<(String, Literal)>, &'t str);

impl<'t> CallReader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn problem(&self, text: &str) -> RulesError {
        let before = self.text.get(..self.at).unwrap_or_default();
        let mut error = RulesError::new("rules", text);
        if let Some(problem) = error.problems.first_mut() {
            problem.line = before.matches('\n').count() + 1;
            problem.column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        }
        error
    }

    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            match trimmed.strip_prefix('#') {
                Some(comment) => self.at += 1 + comment.find('\n').unwrap_or(comment.len()),
                None => return,
            }
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn name(&mut self) -> Option<String> {
        self.space();
        let rest = self.rest();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = rest.get(..end).filter(|name| !name.is_empty())?;
        self.at += end;
        Some(name.to_owned())
    }

    fn call(&mut self) -> Result<Option<Call<'t>>, RulesError> {
        self.space();
        let start = self.at;
        if self.rest().is_empty() {
            return Ok(None);
        }
        let name = self.name().ok_or_else(|| self.problem("a call is expected here"))?;
        if !self.eat('(') {
            return Err(self.problem("only calls with literal arguments can be imported"));
        }
        let mut arguments = Vec::new();
        while !self.eat(')') {
            let key = self.name().ok_or_else(|| self.problem("an argument needs a name"))?;
            if !self.eat('=') {
                return Err(self.problem("an argument needs a name"));
            }
            arguments.push((key, self.literal(0)?));
            if !self.eat(',') && !self.rest().trim_start().starts_with(')') {
                return Err(self.problem("`,` or `)` is expected here"));
            }
        }
        Ok(Some((name, arguments, self.text.get(start..self.at).unwrap_or_default())))
    }

    fn literal(&mut self, depth: usize) -> Result<Literal, RulesError> {
        self.space();
        if depth > 8 {
            return Err(self.problem("lists are nested too deeply"));
        }
        if self.eat('[') {
            let mut items = Vec::new();
            while !self.eat(']') {
                items.push(self.literal(depth + 1)?);
                if !self.eat(',') && !self.rest().trim_start().starts_with(']') {
                    return Err(self.problem("`,` or `]` is expected here"));
                }
            }
            return Ok(Literal::List(items));
        }
        match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.text(quote),
            _ => self
                .name()
                .map(Literal::Name)
                .ok_or_else(|| self.problem("a text, a list or a name is expected here")),
        }
    }

    fn text(&mut self, quote: char) -> Result<Literal, RulesError> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(Literal::Text(text));
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\'' | '\\'))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    _ => return Err(self.problem("this escape cannot be imported")),
                },
                '\n' => break,
                c => text.push(c),
            }
        }
        Err(self.problem("the text does not end"))
    }
}
