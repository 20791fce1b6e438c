//! The origins of the values of a call, as people are shown them (rule O4).

use serde::Serialize;

use super::field::Limits;
use super::keys::ShowRule;
use super::mask::masked;
use super::piece::{Style, elide, join};
use super::title::ticked;
use crate::origin::{ReadPlace, TextSource, ValueOrigin};

/// The origin of one value of a call, in words. The texts are safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OriginView {
    /// The name of the argument: `to[0]`.
    pub field: String,
    /// The origin: `named by you`, ``from `contacts` (call 2)``, `stands only in …`. Names of tools are between
    /// backticks, and no other part has one.
    pub text: String,
    /// `true` if you should look twice: the value stands only in text of strangers, or merely looks like a known one.
    pub warning: bool,
}

impl OriginView {
    pub(super) fn all(origins: &[ValueOrigin], limits: Limits) -> Vec<Self> {
        let mut views: Vec<_> = origins.iter().map(|origin| Self::of(origin, limits)).collect();
        // A warning comes first.
        views.sort_by_key(|view| !view.warning);
        views
    }

    /// The names, places and quotations are made safe one by one, so that the backticks of the text are those around names.
    fn of(origin: &ValueOrigin, limits: Limits) -> Self {
        let shown = |text: &str| {
            let shown = masked(text, limits.treat(ShowRule::Free), Style::PROSE);
            join(&elide(shown, limits.chars.max(80)))
        };
        let mut said = origin.clone();
        for place in said.places.iter_mut().chain(&mut said.alike) {
            if let TextSource::Others(Some(label)) = &place.source {
                place.source = TextSource::others(ticked(&shown(label)));
            }
            let ReadPlace { tool, place, around, .. } = place;
            for text in [tool, place, around].into_iter().flatten() {
                *text = ticked(&shown(text));
            }
        }
        Self {
            field: shown(&dotted(&origin.field)),
            text: said.to_string(),
            warning: origin.is_warning(),
        }
    }
}

/// A JSON pointer as the name of an argument is written.
fn dotted(pointer: &str) -> String {
    let mut name = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() {
            true => name.push_str(&format!("[{part}]")),
            false if name.is_empty() => name = part,
            false => name.extend([".", &part]),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::origin::{ReadCall, ReadLabel, ReadRecord};

    #[test]
    fn only_the_names_of_tools_stand_between_backticks() {
        let record = ReadRecord::new();
        let page = ReadCall::new("c1", "fetch", json!({"url": "https://example.com/`a`"}));
        let text = json!("Pay to `GB29NWBK60161331926819` now");
        record.read(&ReadLabel::others("web"), &page, &text);
        let origin = record.origin().of_value("/iban", "GB29NWBK60161331926819");
        let view = OriginView::of(&origin, Limits::default());
        let code: Vec<_> = view.text.split('`').skip(1).step_by(2).collect();
        assert_eq!(code, ["fetch"], "{}", view.text);
        assert!(view.text.contains(r"“Pay to \u{60}GB29"), "{}", view.text);
    }
}
