//! Arithmetic of numbers, as in `$((16 * 1024))`.
//!
//! An expression has decimal numbers, `+ - * / %` and parentheses. We compute its value here, so the word is as literal
//! as a written number. We refuse anything else. A shell evaluates the value of a *name* as an expression again, and runs
//! the commands in a subscript within it (`x='a[$(id)]'; echo $((x))`). `=` and `++` set variables. And not all shells
//! read leading zeros, `**` and bases alike.

/// How long an expression may be, and how deeply its parentheses may be nested.
const MAX_LENGTH: usize = 128;
const MAX_DEPTH: usize = 8;

/// The length and the value of the `((…))` that a text begins with.
pub(crate) fn expansion(text: &str) -> Option<(usize, i64)> {
    let bytes = text.strip_prefix("((")?.as_bytes();
    let bytes = bytes.get(..MAX_LENGTH).unwrap_or(bytes);
    let mut reader = Arithmetic { bytes, at: 0 };
    let value = reader.sum(0)?;
    let closed = reader.eats(b')') && reader.eats(b')');
    closed.then_some((reader.at + 2, value))
}

struct Arithmetic<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Arithmetic<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eats(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while self.eats(b' ') {}
    }

    fn sum(&mut self, depth: usize) -> Option<i64> {
        let mut left = self.product(depth)?;
        loop {
            // `--` and `++` are operators of their own in some shells.
            if self.eats(b'+') && self.peek() != Some(b'+') {
                left = left.checked_add(self.product(depth)?)?;
            } else if self.eats(b'-') && self.peek() != Some(b'-') {
                left = left.checked_sub(self.product(depth)?)?;
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<i64> {
        let mut left = self.factor(depth)?;
        loop {
            if self.eats(b'*') {
                left = left.checked_mul(self.factor(depth)?)?;
            } else if self.eats(b'/') {
                left = left.checked_div(self.factor(depth)?)?;
            } else if self.eats(b'%') {
                left = left.checked_rem(self.factor(depth)?)?;
            } else {
                return Some(left);
            }
        }
    }

    /// A number or parentheses, with the blanks around it.
    fn factor(&mut self, depth: usize) -> Option<i64> {
        self.blanks();
        let negative = self.eats(b'-');
        let value = if self.eats(b'(') && depth < MAX_DEPTH {
            let inner = self.sum(depth + 1)?;
            self.eats(b')').then_some(inner)?
        } else {
            self.number()?
        };
        self.blanks();
        if negative { value.checked_neg() } else { Some(value) }
    }

    fn number(&mut self) -> Option<i64> {
        let digits = self.bytes.get(self.at..)?;
        let length = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let digits = digits.get(..length)?;
        let is_octal = digits.len() > 1 && digits.first() == Some(&b'0');
        self.at += length;
        let text = std::str::from_utf8(digits).ok()?;
        if is_octal { None } else { text.parse().ok() }
    }
}
