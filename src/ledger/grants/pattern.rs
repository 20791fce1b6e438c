//! Closed patterns over arguments: a field that the pattern does not name has to be as in the original call.
//!
//! A field that was absent has to be absent. An open pattern ("these fields match, others are free") would be widened
//! by the tool itself. For example, if its next version has a new optional argument `force`, every grant that was made
//! before would cover it.
//!
//! | original | pattern | call | fits |
//! |---|---|---|---|
//! | `{"to": "bob", "lines": 3}` | `lines` from 0 to 20 | `{"to": "bob", "lines": 7}` | yes |
//! | | | `{"to": "eve", "lines": 7}` | no: `to` is not named |
//! | | | `{"to": "bob", "lines": 7, "cc": "eve"}` | no: `cc` was absent |
//! | | | `{"to": "bob"}` | no: `lines` is absent |
//!
//! Numbers beyond 2^53 fit no range, as a double cannot tell them from their neighbours, and the range is one of
//! doubles.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text::RuleText;
use crate::args::{Args, canonical};
use crate::decision::GrantPattern;
use crate::ledger::scope::GrantError;

/// The largest number whose neighbours a double can tell apart. Larger ones fit no range.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The values that one field of the arguments may have.
///
/// ```
/// use countersign::ledger::FieldPattern;
/// use serde_json::json;
///
/// assert!(FieldPattern::between(1, 10).fits(&json!(10)) && !FieldPattern::between(1, 10).fits(&json!("10")));
/// assert!(FieldPattern::one_of(["dev", "test"]).fits(&json!("dev")));
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldPattern(Shape);

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    OneOf(Vec<Value>),
    Between(f64, f64),
    AnyText,
}

impl FieldPattern {
    /// One of these values.
    ///
    /// ```
    /// use countersign::ledger::FieldPattern;
    /// use serde_json::json;
    /// let environments = FieldPattern::one_of(["staging", "test"]);
    /// assert!(environments.fits(&json!("test")) && !environments.fits(&json!("production")));
    /// ```
    pub fn one_of(values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        Self(Shape::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// A number between these two, which are included. Numbers beyond 2^53 never fit.
    ///
    /// ```
    /// use countersign::ledger::FieldPattern;
    /// use serde_json::json;
    /// let amounts = FieldPattern::between(0, 50);
    /// assert!(amounts.fits(&json!(49.99)) && !amounts.fits(&json!(51)) && !amounts.fits(&json!("49")));
    /// ```
    pub fn between(least: impl Into<f64>, most: impl Into<f64>) -> Self {
        Self(Shape::Between(least.into(), most.into()))
    }

    /// Any text. Only for fields that a tool treats as text: not for paths, hosts, commands or queries.
    ///
    /// ```
    /// use countersign::ledger::FieldPattern;
    /// use serde_json::json;
    ///
    /// assert!(FieldPattern::any_text().fits(&json!("Dear Ann, …")));
    /// assert!(!FieldPattern::any_text().fits(&json!(["Dear Ann, …"])));
    /// ```
    #[must_use]
    pub fn any_text() -> Self {
        Self(Shape::AnyText)
    }

    /// Returns `true` if a value fits the pattern.
    #[must_use]
    pub fn fits(&self, value: &Value) -> bool {
        match &self.0 {
            Shape::OneOf(values) => values.iter().any(|one| canonical(one) == canonical(value)),
            Shape::Between(least, most) => {
                value.as_f64().is_some_and(|it| it.abs() <= EXACT && least <= &it && &it <= most)
            }
            Shape::AnyText => value.is_string(),
        }
    }
}

impl fmt::Display for FieldPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::OneOf(values) => {
                let values: Vec<_> = values.iter().map(canonical).collect();
                let values = values.join(" or ");
                write!(f, "{}", values.escape_debug())
            }
            Shape::Between(least, most) => write!(f, "from {least} to {most}"),
            Shape::AnyText => f.write_str("any text"),
        }
    }
}

impl fmt::Debug for FieldPattern {
    /// The kind, not the values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Shape::OneOf(_) => "OneOf",
            Shape::Between(..) => "Between",
            Shape::AnyText => "AnyText",
        })
    }
}

/// The arguments of the original call, and the fields in which later calls may differ.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ArgsPattern {
    original: Args,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, FieldPattern>,
    /// The class of calls that the grant is for, in place of exactly the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<GrantPattern>,
}

impl ArgsPattern {
    pub(in crate::ledger) fn exact(args: &Args) -> Self {
        Self { original: args.clone(), fields: BTreeMap::new(), class: None }
    }

    /// The arguments of the calls of a class: those of the original, but for the fields that the class names.
    pub(super) fn class(args: &Args, class: GrantPattern) -> Self {
        Self { class: Some(class), ..Self::exact(args) }
    }

    /// The arguments of the call that the grant was made for.
    pub(super) fn original(&self) -> &Args {
        &self.original
    }

    /// The class of calls, if the pattern is one of a class.
    pub(super) fn class_of(&self) -> Option<&GrantPattern> {
        self.class.as_ref()
    }

    /// The arguments as the end of a rule: the class, the arguments that are free, and the values of the others.
    pub(in crate::ledger) fn write(&self, table: &mut RuleText) {
        let free = self.class.as_ref().map_or(&[][..], GrantPattern::fields);
        if let Some(class) = &self.class {
            table.text("for", class.says());
            if class.has_any_args() {
                table.text("any_args", "all");
                return;
            }
            table.list("any_args", free.to_vec());
        }
        table.heading("args");
        // In one order under every feature of serde_json.
        let sorted: BTreeMap<_, _> = self.original.as_map().iter().collect();
        for (name, value) in sorted.into_iter().filter(|(name, _)| !free.contains(name)) {
            match self.fields.get(name) {
                Some(pattern) => table.text(name, &pattern.to_string()),
                None => table.line(name, value),
            }
        }
    }

    /// Returns `true` if the pattern leaves no field free.
    pub(super) fn is_exact(&self) -> bool {
        self.class.is_none() && self.fields.is_empty()
    }

    pub(in crate::ledger) fn name(
        &mut self,
        field: String,
        pattern: FieldPattern,
    ) -> Result<(), GrantError> {
        if !self.original.as_map().get(&field).is_some_and(|value| pattern.fits(value)) {
            let problem =
                format!("the original call's `{}` is not {pattern}", field.escape_debug());
            return Err(GrantError::new(problem));
        }
        self.fields.insert(field, pattern);
        Ok(())
    }

    /// Returns `true` if these arguments have exactly the original's fields, each equal to the original's or fitting
    /// its pattern. Texts for people in these fields do not count, unless the pattern names them, and neither do the
    /// fields in which the calls of the class differ: the layer has looked at them.
    pub(in crate::ledger) fn fits(&self, args: &Args, for_people: &[String]) -> bool {
        if self.class.as_ref().is_some_and(GrantPattern::has_any_args) {
            return true;
        }
        let free = |field: &String| {
            self.class.as_ref().is_some_and(|class| class.fields().contains(field))
        };
        let counts = |field: &(&String, &Value)| {
            let (name, value) = *field;
            let is_words = for_people.contains(name) && value.is_string();
            !free(name) && (!is_words || self.fields.contains_key(name))
        };
        let own = || self.original.as_map().iter().filter(counts);
        let other = |field: &String| args.as_map().get_key_value(field).filter(counts);
        let fits = |(field, value): (&String, &Value)| match (other(field), self.fields.get(field))
        {
            (Some((_, other)), Some(pattern)) => pattern.fits(other),
            (Some((_, other)), None) => canonical(value) == canonical(other),
            (None, _) => false,
        };
        own().count() == args.as_map().iter().filter(counts).count() && own().all(fits)
    }
}

impl fmt::Display for ArgsPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(class) = &self.class {
            if class.has_any_args() {
                return write!(f, "with {}", class.says().escape_debug());
            }
            return write!(f, "for {}, and the rest as it was", class.says().escape_debug());
        }
        if self.fields.is_empty() {
            return f.write_str("with exactly these arguments");
        }
        let fields = self.fields.iter();
        let fields: Vec<_> =
            fields.map(|(field, pattern)| format!("{} {pattern}", field.escape_debug())).collect();
        write!(f, "with {}, and the rest as it was", fields.join(", "))
    }
}
