//! The judgement of `printf`, whose format decides what its arguments are.
//!
//! | conversion | its argument |
//! |---|---|
//! | `%s`, `%b`, `%q`, `%c` | a text, which is printed |
//! | `%d`, `%5.1f`, `%(%F)T` and the `*` of a width | a number: `zsh` evaluates names in it |
//! | `%n` | the name of a variable, which is set |

/// Returns whether each argument that a format of `printf` takes is a number. `None` for a conversion that is not
/// known, one that sets a variable, one that says which argument it takes, and for a `%` that is written as a code
/// (`\045`).
pub(super) fn numbers_of_format(format: &str) -> Option<Vec<bool>> {
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
