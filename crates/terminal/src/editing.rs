//! Changing the arguments line by line, where nothing can be drawn over.
//!
//! With `$VISUAL` or `$EDITOR` set, the person edits in that editor. Otherwise the arguments are a numbered list: the
//! number of an argument opens it, a text of several lines is a numbered list of its own, and `j` opens all as JSON. We
//! show the call with the new arguments in full before the person approves it, so a slip in a path is seen.

use super::choice::{Choice, Scope};
use super::editor::in_lines;
use super::form::{ArgsForm, object};
use super::screen::{Gone, LinePrompt, LineUse, Screen};
use countersign::args::Args;
use countersign::call::ToolCall;
use countersign::show::{self, CallView, Limits};

/// The arguments of one call while a person changes them.
pub(super) struct LineEdit<'s, 'a, S> {
    screen: &'s mut S,
    call: &'a ToolCall,
}

impl<'s, 'a, S: Screen> LineEdit<'s, 'a, S> {
    pub(super) fn new(screen: &'s mut S, call: &'a ToolCall) -> Self {
        Self { screen, call }
    }

    /// The arguments to approve; `None` to return to the question.
    ///
    /// If a line is no value, the person gets it back to correct it. An edit that changes nothing is not an approval: the
    /// question returns.
    pub(super) fn run(mut self) -> Result<Option<Args>, Gone> {
        let mut args = self.call.args().clone();
        loop {
            let Some(edited) = self.edited(&args)? else {
                self.screen.say("The edit was dropped.")?;
                return Ok(None);
            };
            if edited.equal(self.call.args()) {
                self.screen.say("Nothing was changed.")?;
                return Ok(None);
            }
            match self.confirm(&edited)? {
                Some(Choice::Approve(Scope::This)) => return Ok(Some(edited)),
                Some(Choice::Edit) => args = edited,
                _ => {
                    self.screen.say("The edit was dropped.")?;
                    return Ok(None);
                }
            }
        }
    }

    /// The changed arguments, as the person's editor or the lists have them.
    fn edited(&mut self, args: &Args) -> Result<Option<Args>, Gone> {
        let mut text = in_lines(&show::json(args));
        while let Some(edited) = self.screen.edit(&text)? {
            match edited {
                Err(error) => {
                    let error = show::escape(&error.to_string());
                    self.screen.say(&format!("Nothing was edited: {error}."))?;
                    return Ok(None);
                }
                Ok(typed) => match object(&typed) {
                    Ok(args) => return Ok(Some(args)),
                    Err(error) => {
                        self.refuse(&error)?;
                        let again = LinePrompt::choice("Edit it again? [y,N] ");
                        match self.screen.ask_or_back(&again)? {
                            Some(line) if super::choice::is_yes(&line) => text = typed,
                            _ => return Ok(None),
                        }
                    }
                },
            }
        }
        self.in_the_list(args)
    }

    fn refuse(&mut self, error: &str) -> Result<(), Gone> {
        self.screen.say(&format!("No JSON: {}", show::escape(error)))
    }

    /// Lets the person change one argument after the other.
    fn in_the_list(&mut self, args: &Args) -> Result<Option<Args>, Gone> {
        let mut form = ArgsForm::new(args);
        self.screen.say("Type the number of an argument to change it, j for all of them as JSON, Enter when done, Esc to go back.\n(Secrets are not masked while you change them.)")?;
        loop {
            self.list(&form)?;
            let prompt = LinePrompt::choice("Change which? [number, j; Enter: done] ");
            let Some(line) = self.screen.ask_or_back(&prompt)? else { return Ok(None) };
            match (line.trim(), line.trim().parse::<usize>()) {
                ("", _) => match form.args() {
                    Ok(args) => return Ok(Some(args)),
                    Err(error) => self.refuse(&error)?,
                },
                ("j", _) => {
                    if let Some(args) = self.as_json(&form)? {
                        return Ok(Some(args));
                    }
                }
                (_, Ok(number)) if (1..=form.fields().len()).contains(&number) => {
                    self.change(&mut form, number - 1)?;
                }
                _ => self.screen.say("There is no such argument.")?,
            }
        }
    }

    /// Shows the arguments with their numbers, masked and shortened as in the call.
    fn list(&mut self, form: &ArgsForm) -> Result<(), Gone> {
        let width = self.screen.width();
        let mut rows = Vec::new();
        for (at, field) in form.fields().iter().enumerate() {
            let number = format!("{}. ", at + 1);
            let Ok(args) = field.json().and_then(|json| {
                object(&format!("{{{}:{json}}}", serde_json::Value::from(field.name.as_str())))
            }) else {
                rows.extend(show::wrap(&number, &field.label(), width));
                continue;
            };
            let view =
                CallView::of_call(&ToolCall::new("", "", args.to_value()), Limits::default());
            for (row, shown) in view.args.iter().enumerate() {
                let begins = if row == 0 { number.clone() } else { " ".repeat(number.len()) };
                let value = match shown.lines.as_slice() {
                    [line] if shown.note.is_empty() => line.clone(),
                    _ => shown.note.clone(),
                };
                rows.extend(show::wrap(&begins, &format!("{}: {value}", shown.name), width));
            }
        }
        self.screen.show(&rows.join("\n"))
    }

    /// All arguments on one line of JSON, until they can be read; `None` to go back.
    fn as_json(&mut self, form: &ArgsForm) -> Result<Option<Args>, Gone> {
        let mut text = match form.args() {
            Ok(args) => show::json(&args),
            Err(error) => {
                self.refuse(&error)?;
                return Ok(None);
            }
        };
        loop {
            let prompt = LinePrompt { label: "args: ", initial: &text, kind: LineUse::Args };
            let Some(typed) = self.screen.ask_or_back(&prompt)? else { return Ok(None) };
            match object(&typed) {
                Ok(args) => return Ok(Some(args)),
                Err(error) => self.refuse(&error)?,
            }
            text = typed;
        }
    }

    /// Changes one argument: on its line, or line by line where it has several.
    fn change(&mut self, form: &mut ArgsForm, at: usize) -> Result<(), Gone> {
        let Some(field) = form.field_mut(at) else { return Ok(()) };
        if field.text().contains('\n') {
            let text = self.change_lines(&field.text())?;
            field.set(&text);
            return Ok(());
        }
        let before = field.text();
        let label = format!("{} ", field.label());
        loop {
            let text = field.text();
            let prompt = LinePrompt { label: &label, initial: &text, kind: LineUse::Args };
            let Some(typed) = self.screen.ask_or_back(&prompt)? else {
                field.set(&before);
                return Ok(());
            };
            field.set(&typed);
            match field.json() {
                Ok(_) => return Ok(()),
                Err(error) => self.refuse(&error)?,
            }
        }
    }

    /// Changes a text of several lines, and returns it.
    fn change_lines(&mut self, text: &str) -> Result<String, Gone> {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        self.show_lines(&lines, 0, usize::MAX)?;
        self.screen.say("Type the number of a line to change it, +N to add one after it, -N to delete it, l to list all, Enter when done.")?;
        loop {
            let prompt = LinePrompt::choice("Which line? [N, +N, -N, l; Enter: done] ");
            let line = self.screen.ask_or_back(&prompt)?.unwrap_or_default();
            let line = line.trim();
            let number = line.trim_start_matches(['+', '-']).parse::<usize>().ok();
            let at = number.and_then(|it| it.checked_sub(1)).filter(|at| *at < lines.len());
            match (line, at) {
                ("", _) => return Ok(lines.join("\n")),
                ("l", _) => self.show_lines(&lines, 0, usize::MAX)?,
                ("+0", _) => self.add(&mut lines, 0)?,
                (line, Some(at)) if line.starts_with('+') => self.add(&mut lines, at + 1)?,
                (line, Some(at)) if line.starts_with('-') => {
                    lines.remove(at);
                    if lines.is_empty() {
                        lines.push(String::new());
                    }
                    self.show_lines(&lines, at.saturating_sub(1), 3)?;
                }
                (_, Some(at)) => {
                    let before = lines.get(at).cloned().unwrap_or_default();
                    if let (Some(typed), Some(line)) = (self.line(at, &before)?, lines.get_mut(at))
                    {
                        *line = typed;
                    }
                    self.show_lines(&lines, at.saturating_sub(1), 3)?;
                }
                (_, None) => self.screen.say("There is no such line.")?,
            }
        }
    }

    fn add(&mut self, lines: &mut Vec<String>, at: usize) -> Result<(), Gone> {
        if let Some(typed) = self.line(at, "")? {
            lines.insert(at, typed);
        }
        self.show_lines(lines, at.saturating_sub(1), 3)
    }

    /// Reads one line of a text; `None` to leave it as it was.
    fn line(&mut self, at: usize, before: &str) -> Result<Option<String>, Gone> {
        let label = format!("{} | ", at + 1);
        let prompt = LinePrompt { label: &label, initial: before, kind: LineUse::Args };
        self.screen.ask_or_back(&prompt)
    }

    /// Shows so many lines of a text, with their numbers.
    fn show_lines(&mut self, lines: &[String], from: usize, count: usize) -> Result<(), Gone> {
        let width = self.screen.width();
        let shown = lines.iter().enumerate().skip(from).take(count);
        let rows = shown.flat_map(|(at, line)| {
            show::wrap(&format!("{:>4} | ", at + 1), &show::escape(line), width)
        });
        let rows: Vec<_> = rows.collect();
        self.screen.show(&rows.join("\n"))
    }

    /// Shows the changed call as it would run, and asks whether to approve it.
    fn confirm(&mut self, args: &Args) -> Result<Option<Choice>, Gone> {
        let edited = self.call.clone().with_args(args.clone());
        let view = CallView::of_call(&edited, Limits::none());
        let text = view.text(self.screen.width());
        self.screen.show(&text)?;
        let prompt = LinePrompt::choice("Approve with these arguments? [a,e; Enter goes back] ");
        Ok(self.screen.ask_or_back(&prompt)?.and_then(|line| Choice::parse(&line)))
    }
}
