//! The origin of one value of a call, as people are told (rule O4).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text_source::TextSource;

/// A read in which a value stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadPlace {
    /// The source of the text.
    pub source: TextSource,
    /// The tool whose result it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The number of the call among those that were read, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The page or file that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Some characters of a stranger's text, around the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<String>,
}

impl ReadPlace {
    pub(super) fn is_of_same_read(&self, other: &Self) -> bool {
        (&self.source, self.call, &self.tool) == (&other.source, other.call, &other.tool)
    }
}

impl fmt::Display for ReadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tool, &self.place) {
            (Some(tool), Some(place)) => write!(f, "`{tool}` of {place}")?,
            (Some(tool), None) => write!(f, "`{tool}`")?,
            (None, _) => write!(f, "{}", self.source)?,
        }
        self.call.map_or(Ok(()), |call| write!(f, " (call {call})"))
    }
}

/// The standpoint of those who named a value.
///
/// Exhaustive on purpose: a surface has to say of each kind who named the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standpoint {
    /// The user wrote it.
    User,
    /// It stands in a field of the owner's.
    Own,
    /// It stands only in text of strangers.
    Others,
    /// It stands in nothing that was read.
    Nowhere,
    /// Nothing was recorded in the run.
    NotRecorded,
}

/// The origin of a value of a call. Its `Display` says it in words, with text of others as it was read: escape it
/// before you show it.
///
/// ```
/// use countersign::origin::{ReadCall, ReadLabel, ReadRecord};
/// use serde_json::json;
///
/// let record = ReadRecord::new();
/// record.user_said("Pay the invoice of the printer");
/// let page = ReadCall::new("c1", "fetch", json!({"url": "https://example.com/offer"}));
/// record.read(&ReadLabel::others("web"), &page, &json!("New account: GB29 NWBK 6016 1331 9268 19, thanks"));
/// let origin = record.origin().of_value("/iban", "GB29NWBK60161331926819");
/// assert_eq!(
///     origin.to_string(),
///     "stands only in the page `fetch` of https://example.com/offer (call 1): “New account: GB29 NWBK 6016 1331 9268 19, thanks”"
/// );
/// assert!(origin.is_warning());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ValueOrigin {
    /// The field, as a JSON pointer into the arguments.
    pub field: String,
    /// The standpoint of those who named the value.
    pub named_by: Standpoint,
    /// The places where the value stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<ReadPlace>,
    /// The places of texts that look like it, or have another spelling of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<ReadPlace>,
    /// `true` if something was read whose values are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// The number of places that are told.
const MAX_PLACES: usize = 4;

impl ValueOrigin {
    pub(super) fn found(
        field: &str,
        mut places: Vec<ReadPlace>,
        mut alike: Vec<ReadPlace>,
        is_complete: bool,
    ) -> Self {
        // The words inside of a field of the owner's stand in that field.
        let own: Vec<_> =
            places.iter().filter(|it| it.source == TextSource::Own).map(|it| it.call).collect();
        places
            .retain(|place| place.source != TextSource::Others(None) || !own.contains(&place.call));
        let is = |source: &TextSource| places.iter().any(|place| place.source == *source);
        let named_by = match () {
            () if is(&TextSource::User) => Standpoint::User,
            () if is(&TextSource::Own) => Standpoint::Own,
            () if !places.is_empty() => Standpoint::Others,
            () => Standpoint::Nowhere,
        };
        places.sort_by_key(|place| place.source.is_others());
        places.truncate(MAX_PLACES);
        alike.truncate(MAX_PLACES);
        let incomplete = !is_complete && named_by != Standpoint::User;
        Self { field: field.to_owned(), named_by, places, alike, incomplete }
    }

    pub(super) fn not_recorded(field: &str) -> Self {
        let (places, alike) = (Vec::new(), Vec::new());
        Self {
            field: field.to_owned(),
            named_by: Standpoint::NotRecorded,
            places,
            alike,
            incomplete: false,
        }
    }

    /// Returns `true` if a person should look twice: the value stands only in text of strangers, or it merely looks
    /// like one that stands somewhere.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        match self.named_by {
            Standpoint::Others => true,
            Standpoint::Nowhere => !self.alike.is_empty(),
            Standpoint::User | Standpoint::Own | Standpoint::NotRecorded => false,
        }
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = |place: &ReadPlace| {
            place.around.as_ref().map(|text| format!(": “{text}”")).unwrap_or_default()
        };
        match (self.named_by, self.places.first()) {
            (Standpoint::NotRecorded, _) => return f.write_str("not recorded"),
            (Standpoint::User, _) => f.write_str("named by you")?,
            (Standpoint::Own, Some(place)) => write!(f, "from {place}")?,
            (Standpoint::Others, Some(place)) => {
                let what = if place.source.is("web") { "the page " } else { "" };
                write!(f, "stands only in {what}{place}{}", quote(place))?;
            }
            (Standpoint::Nowhere, _) | (_, None) => f.write_str("in nothing that was read")?,
        }
        let strangers = self.places.iter().find(|place| place.source.is_others());
        if let (Standpoint::User | Standpoint::Own, Some(place)) = (self.named_by, strangers) {
            write!(f, "; also in {place}{}", quote(place))?;
        }
        if let Some(place) = self.alike.first() {
            let by = if place.source == TextSource::User {
                "something you wrote".into()
            } else {
                place.to_string()
            };
            write!(f, "; looks like what stands in {by}{}", quote(place))?;
        }
        if self.incomplete {
            f.write_str("; not all of what was read is known")?;
        }
        Ok(())
    }
}
