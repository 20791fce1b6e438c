//! The buffer of one line that is being typed, with the keys that edit it.
//!
//! The line is a list of characters and not of bytes, so the cursor never stands within one. A base letter and its
//! accent are two characters, and the keys pass them one by one: a person edits the arguments as they are stored, and
//! not as they look.
//!
//! Pasted line breaks become spaces. In a line of arguments they mean the same in JSON outside of strings, and in a
//! message they would send the first line of a pasted text, and answer the next question with the second.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::screen::Gone;
use countersign::show;

/// A line and the position of its cursor, in characters.
#[derive(Debug, Default)]
pub(super) struct Line {
    chars: Vec<char>,
    cursor: usize,
}

/// The effect of a key on the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineStep {
    /// The line is not complete.
    More,
    /// The line is complete, as Enter was pressed.
    Done,
    Gone(Gone),
}

impl Line {
    pub(super) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self { cursor: chars.len(), chars }
    }

    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Inserts text at the cursor. Line breaks become spaces, so pasted text cannot complete the line.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", " ").replace(['\r', '\n'], " ");
        let before = self.chars.len();
        self.chars.splice(self.cursor..self.cursor, text.chars());
        self.cursor += self.chars.len() - before;
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> LineStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter => return LineStep::Done,
            KeyCode::Esc => return LineStep::Gone(Gone::Cancelled),
            KeyCode::Char(c) if control && !alt => return self.control(c.to_ascii_lowercase()),
            // Some systems report AltGr as Control and Alt, so both together type a character.
            KeyCode::Char(c) if control == alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.erase(self.cursor.saturating_sub(1)),
            KeyCode::Delete => self.delete(),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = self.chars.len().min(self.cursor + 1),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.chars.len(),
            _ => {}
        }
        LineStep::More
    }

    /// The position of the cursor, in characters.
    pub(super) fn column(&self) -> usize {
        self.cursor
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.cursor == self.chars.len()
    }

    /// Moves the cursor to this character, or to the end.
    pub(super) fn go(&mut self, column: usize) {
        self.cursor = column.min(self.chars.len());
    }

    /// Ends the line at the cursor, and returns the rest as a line whose cursor is at its beginning.
    pub(super) fn split(&mut self) -> Self {
        Self { chars: self.chars.split_off(self.cursor), cursor: 0 }
    }

    /// Handles Control with a letter, as the line editor of a shell does.
    fn control(&mut self, c: char) -> LineStep {
        match c {
            'c' => return LineStep::Gone(Gone::Interrupted),
            'd' if self.chars.is_empty() => return LineStep::Gone(Gone::EndOfInput),
            'd' => self.delete(),
            'j' | 'm' => return LineStep::Done,
            'a' => self.cursor = 0,
            'e' => self.cursor = self.chars.len(),
            'b' => self.cursor = self.cursor.saturating_sub(1),
            'f' => self.cursor = self.chars.len().min(self.cursor + 1),
            'h' => self.erase(self.cursor.saturating_sub(1)),
            'k' => self.chars.truncate(self.cursor),
            'u' => self.erase(0),
            'w' => self.erase(self.word()),
            _ => {}
        }
        LineStep::More
    }

    /// The index at which the word before the cursor begins.
    ///
    /// Spaces before the cursor belong to the word, as in a shell: `git push |` loses `push `.
    fn word(&self) -> usize {
        let before = self.chars.get(..self.cursor).unwrap_or_default();
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |at| at + 1);
        let word = before.get(..end).unwrap_or_default();
        word.iter().rposition(|c| *c == ' ').map_or(0, |at| at + 1)
    }

    fn erase(&mut self, from: usize) {
        self.chars.drain(from..self.cursor);
        self.cursor = from;
    }

    fn delete(&mut self) {
        if self.cursor < self.chars.len() {
            self.chars.remove(self.cursor);
        }
    }

    /// The text before and after the cursor, as far as it fits into `columns`; `<` and `>` stand for the rest.
    ///
    /// The cursor is always inside. The text behind it has at least a quarter of the room if it needs that much, so a
    /// person who edits the middle of a long line sees both sides. We count widths as we show the characters:
    /// `\u{202e}` takes eight columns, and not one that turns the rest of the row around.
    pub(super) fn window(&self, columns: usize) -> (String, String) {
        let room = columns.saturating_sub(2);
        let (before, after) = self.chars.split_at_checked(self.cursor).unwrap_or_default();
        let most = if width(after) <= room / 4 { room - width(after) } else { room - room / 4 };
        let (mut left, cut) = fitting(before.iter().rev(), most);
        left.extend(cut.then(|| "<".to_owned()));
        left.reverse();
        let (mut right, cut) = fitting(after.iter(), room.saturating_sub(width(before).min(most)));
        right.extend(cut.then(|| ">".to_owned()));
        (left.concat(), right.concat())
    }
}

/// The characters that fit into `most` columns, as they are shown, and whether there are more.
fn fitting<'a>(chars: impl Iterator<Item = &'a char>, most: usize) -> (Vec<String>, bool) {
    let mut room = most;
    let mut out = Vec::new();
    for c in chars {
        let needs = width(&[*c]);
        if needs > room {
            return (out, true);
        }
        room -= needs;
        out.push(shown(*c));
    }
    (out, false)
}

/// An escape stands for one character: we draw a line break as `\n`, and one key deletes it.
fn shown(c: char) -> String {
    // A backslash is not doubled here: the person edits the text itself, not its escaped form.
    if c == '\\' { c.into() } else { show::escape(c.encode_utf8(&mut [0; 4])) }
}

/// The most columns that these characters can take.
fn width(chars: &[char]) -> usize {
    let columns = |c: &char| match shown(*c) {
        text if text.len() == 1 => 1,
        // A character as it is counts as two columns, the widest it can be; an escape is ASCII.
        text => {
            if text.chars().count() == 1 {
                2
            } else {
                text.len()
            }
        }
    };
    chars.iter().map(columns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut Line, keys: &str) -> Vec<LineStep> {
        let steps = keys.chars().map(|c| {
            let key = match c {
                '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
                '\u{1b}' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
                '\u{7f}' => KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE),
                '\u{1}'..='\u{1a}' => {
                    let letter = char::from(b'a' - 1 + c as u8);
                    KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
                }
                c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
            };
            line.key(key)
        });
        steps.collect()
    }

    #[test]
    fn a_line_is_edited_as_in_a_shell() {
        for (start, keys, text) in [
            ("", "abc", "abc"),
            ("abc", "\u{7f}\u{7f}\u{7f}\u{7f}x", "x"),
            ("abc", "\u{1}x", "xabc"),
            ("abc", "\u{1}\u{6}\u{4}", "ac"),
            ("abc", "\u{2}\u{b}", "ab"),
            ("abc", "\u{2}\u{15}", "c"),
            ("one two  ", "\u{17}", "one "),
            ("äö", "\u{2}\u{8}", "ö"),
            ("abc", "\u{5}\u{6}\u{6}\u{4}d", "abcd"),
        ] {
            let mut line = Line::new(start);
            assert!(press(&mut line, keys).iter().all(|step| *step == LineStep::More));
            assert_eq!(line.text(), text);
        }
    }

    #[test]
    fn a_line_ends_in_four_ways() {
        for (start, key, end) in [
            ("x", "\n", LineStep::Done),
            ("x", "\u{a}", LineStep::Done),
            ("x", "\u{1b}", LineStep::Gone(Gone::Cancelled)),
            ("x", "\u{3}", LineStep::Gone(Gone::Interrupted)),
            ("", "\u{4}", LineStep::Gone(Gone::EndOfInput)),
        ] {
            assert_eq!(press(&mut Line::new(start), key), [end]);
        }
    }

    #[test]
    fn pasted_line_breaks_do_not_end_the_line() {
        let mut line = Line::new("ab");
        line.key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE));
        line.insert("1\r\n2\n3");
        assert_eq!(line.text(), "a1 2 3b");
    }

    #[test]
    fn a_long_line_is_shown_around_the_cursor() {
        let mut line = Line::new("0123456789abcdefghij");
        assert_eq!(line.window(40), ("0123456789abcdefghij".into(), String::new()));
        assert_eq!(line.window(10), ("<cdefghij".into(), String::new()));
        line.cursor = 0;
        assert_eq!(line.window(10), (String::new(), "01234567>".into()));
        line.cursor = 10;
        assert_eq!(line.window(10), ("<456789".into(), "ab>".into()));
        assert_eq!(line.window(0), ("<".into(), ">".into()));
        assert_eq!(Line::new("a\\\u{202e}ä").window(40).0, "a\\\\u{202e}ä");
        assert_eq!(Line::new("日本語").window(6).0, "<本語");
    }
}
