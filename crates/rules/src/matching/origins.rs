//! Conditions about where the values of a call come from (rule O3).
//!
//! | test | in | holds | nothing recorded |
//! |---|---|---|---|
//! | `named_by` | rules that allow | every item stands in one read of a source | unknown: silent |
//! | `not_named_by` | rules that ask or deny | some item does not | unknown: asks |
//! | `carries` | rules that ask or deny | an address, URL or account inside of the text is only a stranger's | unknown: asks |
//! | `has_read` | rules that ask or deny | the run has read such text | unknown: asks |
//! | `has_not_read` | rules that allow | it has not | unknown: silent |
//!
//! A field that is not there names nothing. It has to be one that the tool has, though, as a misspelt name is never there:
//! without the tool's schema a missing field is unknown, as for every other test.

use serde_json::Value;

use super::examined_call::ExaminedCall;
use crate::calls::truth::Truth;

/// The reason why a condition has no answer.
const NOT_RECORDED: &str = "is not recorded by what the run has read and the user has said";

/// A test of where values come from, or of what the run has read, each with the sources that it names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OriginTest {
    NamedBy(Vec<String>),
    NotNamedBy(Vec<String>),
    Carries(Vec<String>),
    HasRead(Vec<String>),
    HasNotRead(Vec<String>),
}

impl OriginTest {
    /// The test of this name; `None` where there is none.
    pub(crate) fn of(name: &str, sources: Vec<String>) -> Option<Self> {
        Some(match name {
            "named_by" => Self::NamedBy(sources),
            "not_named_by" => Self::NotNamedBy(sources),
            "carries" => Self::Carries(sources),
            "has_read" => Self::HasRead(sources),
            "has_not_read" => Self::HasNotRead(sources),
            _ => return None,
        })
    }

    /// Decides whether the test holds for a field of the call; tests of what was read are about no field.
    pub(super) fn holds(&self, field: &[String], examined: &ExaminedCall<'_>) -> Truth {
        let origin = examined.call.origin.as_ref().filter(|it| it.is_recorded());
        let is_of_run = matches!(self, Self::HasRead(_) | Self::HasNotRead(_));
        let value = examined.field(field).filter(|value| !value.is_null());
        if value.is_none() && !is_of_run {
            let is_known = field.first().is_some_and(|name| examined.call.has_optional(name));
            return match is_known {
                true => Truth::of(matches!(self, Self::NamedBy(_))),
                false => Truth::Unknown("is missing"),
            };
        }
        let Some(origin) = origin else { return Truth::Unknown(NOT_RECORDED) };
        let value = value.unwrap_or(&Value::Null);
        let names = |sources: &[String]| {
            let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
            origin.named_by(&sources, value)
        };
        let any = |sources: &[String], is: &dyn Fn(&str) -> bool| sources.iter().any(|it| is(it));
        Truth::of(match self {
            Self::NamedBy(sources) => names(sources),
            Self::NotNamedBy(sources) => !names(sources),
            Self::Carries(sources) => any(sources, &|it| origin.carries(it, value)),
            Self::HasRead(sources) => any(sources, &|it| origin.has_read(it)),
            Self::HasNotRead(sources) => !any(sources, &|it| origin.has_read(it)),
        })
    }

    /// The reason why a rule with this test speaks, in words for people; `None` for a test of a rule that allows.
    pub(crate) fn why(&self, field: &[String], examined: &ExaminedCall<'_>) -> Option<String> {
        let origin = examined.call.origin.as_ref()?;
        let name = field.join(".");
        match self {
            Self::NotNamedBy(sources) => {
                let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
                Some(origin.why(&name, &sources, examined.field(field).unwrap_or(&Value::Null)))
            }
            Self::Carries(_) => {
                Some(format!("`{name}` passes on what stands only in text of strangers"))
            }
            Self::HasRead(sources) => {
                Some(format!("this run has read text of {}", sources.join(" or ")))
            }
            Self::NamedBy(_) | Self::HasNotRead(_) => None,
        }
    }
}
