//! Words whose letters could be taken for other ones: of mixed scripts, as in `gооgle` with two Cyrillic letters, or
//! all of letters that look like ASCII ones (Unicode Technical Standard 39).
//!
//! Most text in other scripts is no attack, and no one could read a Russian sentence full of escapes. So we judge
//! a word by what a reader would take it for:
//!
//! | word | judged | shown |
//! |---|---|---|
//! | `gооgle` (two Cyrillic letters) | mixed | escaped, everywhere |
//! | `café`, `файл` | plain | as it is |
//! | `сосо` (Cyrillic, all like Latin) in a path | like | escaped |
//! | `сосо` in a Russian sentence with `файл` | like, and the text has plainly Cyrillic words | as it is |

use std::ops::Range;

use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::{MixedScript as _, skeleton};

use super::chars::is_mark;

/// The strictness with which the words of a text are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameReading {
    /// Each word by itself, and also signs that look like ASCII ones: the text is a path or a host.
    Alone,
    /// A word of one script is doubtful only where the text has no other word that is plainly of that script.
    InText,
}

/// The byte ranges of words that could be taken for other ones, in order.
pub(super) fn look_alikes(text: &str, names: NameReading) -> Vec<Range<usize>> {
    if text.is_ascii() {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut plain = Vec::new();
    for range in words(text) {
        let Some(word) = text.get(range.clone()).filter(|word| !word.is_ascii()) else { continue };
        match judge(word) {
            Judged::Other => {}
            Judged::Plain => plain.push(word.resolve_script_set()),
            Judged::Like
                if names == NameReading::InText
                    && word.chars().count() == 1
                    && !is_part_of_a_name(text, &range) => {}
            Judged::Sign if names == NameReading::InText => {}
            judged => out.push((judged, word.resolve_script_set(), range)),
        }
    }
    // Only words of the same script count: one `café` does not make a Cyrillic host an ordinary word.
    let shares = |scripts: AugmentedScriptSet| {
        plain.iter().filter(|plain| !plain.is_all()).any(|plain| {
            let mut both = *plain;
            both.intersect_with(scripts);
            !both.is_empty()
        })
    };
    out.into_iter()
        .filter(|(judged, scripts, _)| {
            names == NameReading::Alone || *judged == Judged::Mixed || !shares(*scripts)
        })
        .map(|(_, _, range)| range)
        .collect()
}

/// Returns `true` if a letter is a part of a host, a path or an address, rather than a word of a sentence.
fn is_part_of_a_name(text: &str, range: &Range<usize>) -> bool {
    let joins = |c: char| matches!(c, '.' | '/' | ':' | '@');
    let before = text.get(..range.start).and_then(|before| before.chars().next_back());
    let after = text.get(range.end..).map(|after| after.chars());
    let after = after.and_then(|mut after| {
        let first = after.next().filter(|c| joins(*c))?;
        // A full stop with no letter or digit after it ends a sentence.
        (first != '.' || after.next().is_some_and(char::is_alphanumeric)).then_some(first)
    });
    before.is_some_and(joins) || after.is_some()
}

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    /// A word that does not look like another one.
    Plain,
    /// A word of several scripts, with letters that look like ASCII ones.
    Mixed,
    /// A word of one script, all of whose letters look like ASCII ones.
    Like,
    /// A sign, such as a slash, that looks like an ASCII one.
    Sign,
    /// A sign that looks like no ASCII one.
    Other,
}

fn judge(word: &str) -> Judged {
    let like_ascii = || skeleton(word).all(|c| c.is_ascii());
    if !word.contains(char::is_alphanumeric) {
        return if like_ascii() { Judged::Sign } else { Judged::Other };
    }
    let letter_like_ascii =
        |c: char| !c.is_ascii() && skeleton(c.encode_utf8(&mut [0; 4])).all(|c| c.is_ascii());
    if !word.is_single_script() && word.chars().any(letter_like_ascii) {
        Judged::Mixed
    } else if like_ascii() {
        Judged::Like
    } else {
        Judged::Plain
    }
}

/// The byte ranges of the words of a text. Each other character that is not ASCII is a range of its own.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut continues = false;
    for (at, c) in text.char_indices() {
        let letter = c.is_alphanumeric() || is_mark(c);
        let end = at + c.len_utf8();
        match out.last_mut() {
            Some(word) if continues && letter => word.end = end,
            _ if letter || !c.is_ascii() => out.push(at..end),
            _ => {}
        }
        continues = letter;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, names: NameReading) -> Vec<&str> {
        look_alikes(text, names).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn mixed_and_confusable_words_are_found() {
        for (text, word) in [
            ("g\u{43e}\u{43e}gle.com", "g\u{43e}\u{43e}gle"),
            ("/etc/p\u{430}sswd", "p\u{430}sswd"),
            ("curl https://\u{430}pple.com/x", "\u{430}pple"),
            ("\u{440}\u{430}\u{443}\u{440}\u{430}", "\u{440}\u{430}\u{443}\u{440}\u{430}"),
            ("\u{ff41}\u{ff42}.txt", "\u{ff41}\u{ff42}"),
            ("\u{3bf}\u{3c1}en.sh", "\u{3bf}\u{3c1}en"),
        ] {
            assert_eq!(found(text, NameReading::InText), [word]);
            assert_eq!(found(text, NameReading::Alone), [word]);
        }
        // A plain word of another script vouches for nothing, and a letter that is a host is no word.
        let host = "\u{430}\u{440}\u{440}\u{4cf}\u{435}";
        assert_eq!(
            found(&format!("curl https://{host}.com | sh # caf\u{e9}"), NameReading::InText),
            [host]
        );
        assert_eq!(found("curl https://\u{445}.com", NameReading::InText), ["\u{445}"]);
        assert!(found("\u{430} \u{442}\u{44b}", NameReading::InText).is_empty());
        for sign in ["\u{2215}", "\u{2024}", "\u{2010}"] {
            let text = format!("a{sign}b");
            assert_eq!(found(&text, NameReading::Alone), [sign]);
            assert!(found(&text, NameReading::InText).is_empty());
        }
        // Where the rest is plainly Russian, a word is what it seems; in a path each is judged by itself.
        let russian = "\u{43c}\u{43e}\u{44f} \u{43e}\u{441}\u{430}";
        assert!(found(russian, NameReading::InText).is_empty());
        assert_eq!(found(russian, NameReading::Alone), ["\u{43e}\u{441}\u{430}"]);
    }

    #[test]
    fn ordinary_words_are_not_found() {
        for text in [
            "naïve café, Straße, Ångström, façade",
            "Документы/отчёт за год.txt",
            "日本語 한국어 Webサイト",
            "Δt = 5 µm, αβγ",
            "עברית العربية ไทย हिन्दी",
            "→ ✓ 😀",
            "Việt Nam",
            "Größe2.txt",
        ] {
            assert!(
                found(text, NameReading::InText).is_empty(),
                "{text}: {:?}",
                found(text, NameReading::InText)
            );
            assert!(
                found(text, NameReading::Alone).is_empty(),
                "{text}: {:?}",
                found(text, NameReading::Alone)
            );
        }
    }
}
