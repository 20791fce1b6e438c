//! Where the values of a call come from, as people are shown it (rule O4).

use serde::Serialize;

use super::field::Limits;
use super::keys::ShowRule;
use super::mask::masked;
use super::piece::{Omitted, Style, elide};
use crate::origin::ValueOrigin;

/// Where one value of a call comes from, in words. The texts are safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OriginView {
    /// The name of the argument: `to[0]`.
    pub field: String,
    /// Where it comes from: `named by you`, `from `contacts` (call 2)`, `stands only in …`.
    pub text: String,
    /// Whether to look twice: the value stands only in text of strangers, or merely looks like a known one.
    pub warning: bool,
}

impl OriginView {
    pub(super) fn all(origins: &[ValueOrigin], limits: Limits) -> Vec<Self> {
        let mut views: Vec<_> = origins.iter().map(|origin| Self::of(origin, limits)).collect();
        // A warning comes first.
        views.sort_by_key(|view| !view.warning);
        views
    }

    fn of(origin: &ValueOrigin, limits: Limits) -> Self {
        let mut omitted = Omitted::default();
        let mut words = |text: &str| {
            let shown = masked(text, limits.treat(ShowRule::Free), Style::PROSE);
            omitted.join(&elide(shown, limits.chars.max(80)))
        };
        Self {
            field: words(&dotted(&origin.field)),
            text: words(&origin.to_string()),
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
