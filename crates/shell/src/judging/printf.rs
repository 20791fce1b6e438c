//! The judgement of `printf`, whose format decides what its arguments are.
//!
//! | conversion | its argument |
//! |---|---|
//! | `%s`, `%b`, `%q`, `%c` | a text, which is printed |
//! | `%d`, `%5.1f`, `%(%F)T` and the `*` of a width | a number: `zsh` evaluates names in it |
//! | `%n` | the name of a variable, which is set |

use super::simple::Simple;
use crate::table::Matched;

impl Simple<'_> {
    /// Judges the arguments of `printf` by the conversions of its format: `%s` prints a text, `%d` and `*` evaluate a
    /// number, and `%n` sets the variable of this name. A format without arguments does none of these.
    pub(crate) fn printf(&mut self, matched: &Matched<'_, '_>) {
        let Some((format, arguments)) = matched.operands.split_first() else { return };
        if arguments.is_empty() && !format.word.split {
            return;
        }
        let Some(numbers) = format.word.literal().and_then(numbers_of_format) else {
            return self.ask("has a format that may set variables or evaluate what it is given");
        };
        let all_texts = !numbers.contains(&true);
        // Behind a word that may become several, it is not known which conversion takes which argument.
        let certain = arguments.iter().all(|one| !one.word.split || one.word.is_number());
        let takes_number = numbers.into_iter().cycle();
        for (argument, number) in arguments.iter().zip(takes_number) {
            if number || !certain && !all_texts {
                self.number(&argument.word);
            }
        }
    }
}

/// Returns whether each argument that a format of `printf` takes is a number. `None` for a conversion that is not
/// known, one that sets a variable, one that says which argument it takes, and for a `%` that is written as a code
/// (`\045`).
fn numbers_of_format(format: &str) -> Option<Vec<bool>> {
    let mut numbers = Vec::new();
    let mut rest = format;
    while let Some((before, conversion)) = rest.split_once('%') {
        if before.split('\\').skip(1).any(is_code_of_percent) {
            return None;
        }
        let flags = |c: char| c.is_ascii_digit() || "-+ #'.*hlLjzt".contains(c);
        let (sizes, after) = conversion.split_at_checked(conversion.find(|c| !flags(c))?)?;
        numbers.extend(sizes.matches('*').map(|_| true));
        let mut after_kind = after.chars();
        match after_kind.next()? {
            '%' => {}
            's' | 'b' | 'q' | 'c' => numbers.push(false),
            'd' | 'i' | 'o' | 'u' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => {
                numbers.push(true);
            }
            // A time, of which `zsh` knows nothing.
            '(' => {
                let (time, rest) = after_kind.as_str().split_once(")T")?;
                if time.contains('\\') {
                    return None;
                }
                numbers.push(true);
                after_kind = rest.chars();
            }
            _ => return None,
        }
        rest = after_kind.as_str();
    }
    (!rest.split('\\').skip(1).any(is_code_of_percent)).then_some(numbers)
}

/// Returns `true` if what follows a backslash may be the code of `%`, which `zsh` puts into the format before it
/// looks for conversions.
fn is_code_of_percent(after: &str) -> bool {
    let digits = after.trim_start_matches(['x', 'u', 'U', '0']);
    digits.starts_with("25") || digits.starts_with("45")
}
