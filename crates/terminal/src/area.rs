//! A text of several lines that is being typed, with the keys that edit it.
//!
//! Each row is a [`Line`], so the keys within a row are the same as at a prompt. Enter breaks a row instead of ending it,
//! and pasted line breaks stay: no key sends the text. The form around it says when the text is complete.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::line::{Line, LineStep};
use super::screen::Gone;

/// A text of several lines, and the row of its cursor.
#[derive(Debug)]
pub(super) struct TextArea {
    rows: Vec<Line>,
    at: usize,
}

/// The effect of a key on the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AreaStep {
    Stay,
    /// The cursor would leave the text at its first row.
    Above,
    /// The cursor would leave the text at its last row.
    Below,
    Gone(Gone),
}

impl TextArea {
    /// In a text of one line the cursor is at the end. In a longer one it is at the beginning, as you read a
    /// long text first.
    pub(super) fn new(text: &str) -> Self {
        let mut rows: Vec<_> = text.split('\n').map(Line::new).collect();
        if rows.len() > 1 {
            rows.iter_mut().for_each(|row| row.go(0));
        }
        Self { rows, at: 0 }
    }

    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(Line::text).collect();
        rows.join("\n")
    }

    pub(super) fn rows(&self) -> &[Line] {
        &self.rows
    }

    /// The index of the row with the cursor.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves the cursor into the first or the last row, as it comes from above or from below.
    pub(super) fn enter(&mut self, last: bool) {
        self.at = if last { self.rows.len().saturating_sub(1) } else { 0 };
    }

    /// Inserts text at the cursor, with its line breaks.
    pub(super) fn insert(&mut self, text: &str) {
        for (number, part) in text.replace("\r\n", "\n").replace('\r', "\n").split('\n').enumerate()
        {
            if number > 0 {
                self.split();
            }
            if let Some(row) = self.rows.get_mut(self.at) {
                row.insert(part);
            }
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> AreaStep {
        let Some(row) = self.rows.get(self.at) else { return AreaStep::Stay };
        let (starts, ends) = (row.column() == 0, row.is_at_end());
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => self.split(),
            KeyCode::Char('j' | 'm') if control => self.split(),
            KeyCode::Up => return self.step(-1, row.column()),
            KeyCode::Down => return self.step(1, row.column()),
            KeyCode::PageUp => return self.step(-10, row.column()),
            KeyCode::PageDown => return self.step(10, row.column()),
            KeyCode::Left if starts && self.at > 0 => return self.step(-1, usize::MAX),
            KeyCode::Right if ends && self.at + 1 < self.rows.len() => return self.step(1, 0),
            KeyCode::Backspace if starts => self.join(self.at.checked_sub(1)),
            KeyCode::Char('h') if control && starts => self.join(self.at.checked_sub(1)),
            KeyCode::Delete if ends => self.join(Some(self.at)),
            KeyCode::Char('d') if control && ends => self.join(Some(self.at)),
            _ => {
                let step = self.rows.get_mut(self.at).map(|row| row.key(key));
                if let Some(LineStep::Gone(gone)) = step {
                    return AreaStep::Gone(gone);
                }
            }
        }
        AreaStep::Stay
    }

    /// Moves the cursor by so many rows, into this column.
    fn step(&mut self, rows: isize, column: usize) -> AreaStep {
        let last = self.rows.len().saturating_sub(1);
        match rows {
            ..0 if self.at == 0 => return AreaStep::Above,
            0.. if self.at == last => return AreaStep::Below,
            _ => self.at = self.at.saturating_add_signed(rows).min(last),
        }
        if let Some(row) = self.rows.get_mut(self.at) {
            row.go(column);
        }
        AreaStep::Stay
    }

    /// Breaks the row at the cursor, which then begins the second part.
    fn split(&mut self) {
        if let Some(row) = self.rows.get_mut(self.at) {
            let rest = row.split();
            self.at += 1;
            self.rows.insert(self.at, rest);
        }
    }

    /// Appends the row after this one to it, with the cursor between the two.
    fn join(&mut self, first: Option<usize>) {
        let Some(first) = first.filter(|at| at + 1 < self.rows.len()) else { return };
        let rest = self.rows.remove(first + 1).text();
        self.at = first;
        if let Some(row) = self.rows.get_mut(first) {
            let column = row.text().chars().count();
            row.go(column);
            row.insert(&rest);
            row.go(column);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(area: &mut TextArea, keys: &[KeyCode]) {
        for key in keys {
            assert_eq!(area.key(KeyEvent::new(*key, KeyModifiers::NONE)), AreaStep::Stay);
        }
    }

    #[test]
    fn rows_are_broken_joined_and_passed_with_the_keys_of_any_editor() {
        use KeyCode::{Backspace, Char, Delete, Down, End, Enter, Home, Left, Right};
        let cases: [(&str, &[KeyCode], &str); 8] = [
            ("one\ntwo", &[Down, Char('x')], "one\nxtwo"),
            ("one", &[Enter, Char('x')], "one\nx"),
            ("one\ntwo", &[End, Enter], "one\n\ntwo"),
            ("one\ntwo", &[Down, Backspace, Char('-')], "one-two"),
            ("one\ntwo", &[End, Delete], "onetwo"),
            ("one\ntwo", &[End, Right, Char('x')], "one\nxtwo"),
            ("one\ntwo", &[Down, Home, Left, Char('x')], "onex\ntwo"),
            ("a\n", &[Down, Char('b')], "a\nb"),
        ];
        for (start, keys, text) in cases {
            let mut area = TextArea::new(start);
            press(&mut area, keys);
            assert_eq!(area.text(), text, "{start:?} {keys:?}");
        }
    }

    #[test]
    fn pasted_line_breaks_stay() {
        let mut area = TextArea::new("ab");
        press(&mut area, &[KeyCode::Left]);
        area.insert("1\r\n2\n3");
        assert_eq!(area.text(), "a1\n2\n3b");
    }

    #[test]
    fn the_cursor_leaves_the_text_above_and_below() {
        let mut area = TextArea::new("one\ntwo");
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(area.key(key(KeyCode::Up)), AreaStep::Above);
        assert_eq!(area.key(key(KeyCode::Down)), AreaStep::Stay);
        assert_eq!(area.key(key(KeyCode::Down)), AreaStep::Below);
        assert_eq!(area.key(key(KeyCode::Esc)), AreaStep::Gone(Gone::Cancelled));
    }
}
