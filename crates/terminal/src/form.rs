//! The arguments of a call as a form: each argument is a text of its own, with its real line breaks.
//!
//! A person who edits a file of thirteen lines sees thirteen lines, and not one line of JSON with `\n` in it. The person
//! types a text without quotes. Every other value is JSON. To add or remove an argument, or to make a number of a text, the
//! whole form becomes JSON with [`toggle`](ArgsForm::toggle).
//!
//! We put the texts that a person types together as JSON, and [`Args::parse`] reads it as if a model had sent it. So
//! an argument cannot smuggle in another one, and numbers keep their digits.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::area::{AreaStep, TextArea};
use super::editor::in_lines;
use super::frame::{Look, ScreenRow, columns};
use super::screen::Gone;
use countersign::args::Args;
use countersign::show;

/// The arguments while they are edited.
#[derive(Debug)]
pub(super) struct ArgsForm {
    fields: Vec<FormField>,
    at: usize,
    /// All arguments as JSON, in place of the fields.
    whole: Option<TextArea>,
    /// The first row on the screen.
    top: usize,
}

/// One argument.
#[derive(Debug)]
pub(super) struct FormField {
    pub(super) name: String,
    /// `true` if the value is a text, which is typed without quotes.
    pub(super) is_text: bool,
    area: TextArea,
}

/// The effect of a key on the form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormStep {
    Stay,
    /// The person has finished.
    Done,
    /// The form has to be shown in its other way, which can fail.
    Toggle,
    Gone(Gone),
}

impl ArgsForm {
    pub(super) fn new(args: &Args) -> Self {
        let fields: Vec<_> =
            args.as_map().iter().map(|(name, value)| FormField::new(name, value)).collect();
        let whole = fields.is_empty().then(|| TextArea::new("{}"));
        Self { fields, at: 0, whole, top: 0 }
    }

    pub(super) fn fields(&self) -> &[FormField] {
        &self.fields
    }

    pub(super) fn field_mut(&mut self, at: usize) -> Option<&mut FormField> {
        self.fields.get_mut(at)
    }

    /// The arguments, or why they are none.
    pub(super) fn args(&self) -> Result<Args, String> {
        if let Some(whole) = &self.whole {
            return object(&whole.text());
        }
        let members = self.fields.iter().map(|field| {
            let value = field.json()?;
            Ok(format!("{}:{value}", Value::from(field.name.as_str())))
        });
        let members: Vec<_> = members.collect::<Result<_, String>>()?;
        object(&format!("{{{}}}", members.join(",")))
    }

    /// Shows the form as JSON, or the JSON as a form again. An error where what was typed is no value: it then stays as it is.
    pub(super) fn toggle(&mut self) -> Result<(), String> {
        let args = self.args()?;
        *self = match self.whole {
            Some(_) => Self::new(&args),
            None => Self {
                whole: Some(TextArea::new(in_lines(&show::json(&args)).trim_end())),
                ..Self::new(&args)
            },
        };
        Ok(())
    }

    fn area_mut(&mut self) -> Option<&mut TextArea> {
        match &mut self.whole {
            Some(whole) => Some(whole),
            None => self.fields.get_mut(self.at).map(|field| &mut field.area),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(area) = self.area_mut() {
            area.insert(text);
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> FormStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('s') if control => return FormStep::Done,
            KeyCode::Char('t') if control => return FormStep::Toggle,
            KeyCode::Tab => self.go(1, false),
            KeyCode::BackTab => self.go(-1, false),
            _ => match self.area_mut().map_or(AreaStep::Stay, |area| area.key(key)) {
                AreaStep::Stay => {}
                AreaStep::Above => self.go(-1, true),
                AreaStep::Below => self.go(1, false),
                AreaStep::Gone(gone) => return FormStep::Gone(gone),
            },
        }
        FormStep::Stay
    }

    /// Goes to another argument, into its last row or its first.
    fn go(&mut self, by: isize, last: bool) {
        let to = self.at.checked_add_signed(by).filter(|to| *to < self.fields.len());
        if let Some(to) = to.filter(|_| self.whole.is_none()) {
            self.at = to;
            if let Some(area) = self.area_mut() {
                area.enter(last);
            }
        }
    }

    /// The rows that fit, around the cursor, and the place of the cursor.
    pub(super) fn rows(&mut self, width: usize, room: usize) -> (Vec<ScreenRow>, (usize, usize)) {
        let (mut rows, mut cursor) = (Vec::new(), (0, 0));
        let mut area = |rows: &mut Vec<ScreenRow>, area: &TextArea, is_current: bool| {
            for (number, line) in area.rows().iter().enumerate() {
                let (before, after) = line.window(width.saturating_sub(5));
                if is_current && number == area.at() {
                    cursor = (4 + columns(&before), rows.len());
                }
                rows.push(ScreenRow::of(Look::Faint, "  | ").and(Look::Plain, before + &after));
            }
        };
        match &self.whole {
            Some(whole) => area(&mut rows, whole, true),
            None => {
                for (at, field) in self.fields.iter().enumerate() {
                    let look = if at == self.at { Look::Strong } else { Look::Plain };
                    rows.push(ScreenRow::of(look, field.label()));
                    area(&mut rows, &field.area, at == self.at);
                }
            }
        }
        // The row above the cursor is shown with it, as it may be the label.
        let (room, first) = (room.max(2), cursor.1.saturating_sub(1));
        self.top = self.top.clamp((cursor.1 + 1).saturating_sub(room), first);
        let rows = rows.into_iter().skip(self.top).take(room).collect();
        (rows, (cursor.0, cursor.1 - self.top))
    }
}

impl FormField {
    fn new(name: &str, value: &Value) -> Self {
        let (is_text, text) = match value {
            Value::String(text) => (true, text.clone()),
            value => {
                let json = show::json(&Args::new().with("", value.clone()));
                let json = json.strip_prefix("{\"\":").and_then(|json| json.strip_suffix('}'));
                (false, in_lines(json.unwrap_or_default()).trim_end().to_owned())
            }
        };
        Self { name: name.to_owned(), is_text, area: TextArea::new(&text) }
    }

    /// The name, and the kind of what is typed, safe to print.
    pub(super) fn label(&self) -> String {
        let kind = if self.is_text { "" } else { " (JSON)" };
        format!("{}{kind}:", show::escape(&self.name))
    }

    pub(super) fn text(&self) -> String {
        self.area.text()
    }

    pub(super) fn set(&mut self, text: &str) {
        self.area = TextArea::new(text);
    }

    /// The value as JSON; an error where it is none.
    ///
    /// We read the value alone first: otherwise `1, "path": "x"` would bring an argument of its
    /// own.
    pub(super) fn json(&self) -> Result<String, String> {
        let text = self.area.text();
        if self.is_text {
            return Ok(Value::from(text).to_string());
        }
        let alone = Args::parse(&format!("{{\"\":{text}\n}}"));
        let alone = alone.map_err(|error| error.to_string());
        match alone {
            Ok(args) if args.as_map().len() == 1 => Ok(text),
            Ok(_) => Err(format!("{} it has to be one value", self.label())),
            Err(error) => Err(format!("{} {error}", self.label())),
        }
    }
}

/// Arguments that were typed as JSON.
///
/// An empty text is an error and not `{}`. A person who clears the line wants to start again, and most tools would
/// accept arguments that are all missing.
pub(super) fn object(text: &str) -> Result<Args, String> {
    match text.trim() {
        "" => Err("nothing was typed; {} means no arguments".to_owned()),
        text if !text.starts_with('{') => Err("it has to begin with {".to_owned()),
        text => Args::parse(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(value: Value) -> ArgsForm {
        ArgsForm::new(&Args::try_from(value).unwrap())
    }

    fn typed(form: &mut ArgsForm, text: &str) {
        for c in text.chars() {
            form.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
    }

    fn press(form: &mut ArgsForm, code: KeyCode) -> FormStep {
        form.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn a_form_that_is_not_touched_has_the_same_arguments() {
        let all = json!({
            "content": "one\n\ttwo \"x\"\\n\u{202e}\r\nthree\n", "empty": "", "n": 12_345_678_901_234_567_u64,
            "f": 1.50, "list": [1, {"a": [], "b": null}], "a name": true,
        });
        let args = Args::try_from(all).unwrap();
        let mut form = ArgsForm::new(&args);
        assert!(form.args().unwrap().equal(&args));
        form.toggle().unwrap();
        assert!(form.args().unwrap().equal(&args), "as JSON");
        form.toggle().unwrap();
        assert!(form.args().unwrap().equal(&args), "and back");
    }

    #[test]
    fn a_text_of_several_lines_is_edited_as_such() {
        let mut form = form(json!({"content": "one\ntwo\n", "path": "a.txt"}));
        press(&mut form, KeyCode::Down);
        typed(&mut form, "\"1\\n");
        press(&mut form, KeyCode::Tab);
        typed(&mut form, "~");
        let args = form.args().unwrap().to_value();
        assert_eq!(args, json!({"content": "one\n\"1\\ntwo\n", "path": "a.txt~"}));
    }

    #[test]
    fn an_argument_in_json_is_one_value() {
        for (text, why) in [
            ("1, \"path\": \"x\"", "one value"),
            ("1}, {\"a\": 2", "n (JSON):"),
            ("", "n (JSON):"),
            ("[1", "n (JSON):"),
            ("1 // x", "n (JSON):"),
        ] {
            let mut form = form(json!({"n": 7}));
            form.field_mut(0).unwrap().set(text);
            let error = form.args().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
            assert!(form.toggle().is_err(), "it stays as it was typed");
        }
        let mut form = form(json!({"n": 7}));
        form.field_mut(0).unwrap().set("[1,\n2]");
        assert_eq!(form.args().unwrap().to_value(), json!({"n": [1, 2]}));
    }

    #[test]
    fn arguments_are_added_as_json() {
        let mut form = form(json!({}));
        press(&mut form, KeyCode::Left);
        typed(&mut form, "\"a\": 1");
        assert_eq!(form.args().unwrap().to_value(), json!({"a": 1}));
    }

    #[test]
    fn the_cursor_stays_on_the_screen() {
        let text: Vec<_> = (0..40).map(|n| format!("line {n}")).collect();
        let mut form = form(json!({"content": text.join("\n"), "path": "a"}));
        let (rows, cursor) = form.rows(40, 6);
        assert_eq!((rows.len(), cursor), (6, (4, 1)));
        assert_eq!(rows[0].0[0].1, "content:");
        for _ in 0..39 {
            press(&mut form, KeyCode::Down);
        }
        let (rows, cursor) = form.rows(40, 6);
        assert_eq!((rows[5].0[1].1.as_str(), cursor.1), ("line 39", 5));
        press(&mut form, KeyCode::Down);
        assert_eq!(form.rows(40, 6).0[5].0[1].1, "a");
        for _ in 0..40 {
            press(&mut form, KeyCode::Up);
        }
        assert_eq!(form.rows(40, 6).0[0].0[0].1, "content:");
    }
}
