//! The source of a text, and the label with which a tool says whose text its results are.

use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The source of a text in a run (rule O1).
///
/// Exhaustive on purpose: text of a new source must not count as the user's.
///
/// ```
/// use countersign::origin::TextSource;
///
/// let page = TextSource::others("web");
/// assert_eq!(page.to_string(), "others:web");
/// assert!(page.is("web") && page.is("others") && !page.is("own"));
/// assert_eq!("others:web".parse(), Ok(page));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TextSource {
    /// A person typed it, as an event or a call says that is only for such texts.
    User,
    /// No third party can choose it: the owner's contacts, ids of the owner's accounts, lists that the owner keeps.
    Own,
    /// Everything else, with a label where one was given: pages, mails with their senders and subjects, reviews, names of
    /// uploaded files, whatever the agent itself can write.
    Others(Option<Arc<str>>),
}

impl TextSource {
    /// Text of strangers, with the label by which rules speak about it.
    #[must_use]
    pub fn others(label: impl Into<Arc<str>>) -> Self {
        Self::Others(Some(label.into()))
    }

    /// Returns `true` if this is the source of that name: `user`, `own`, `others`, or a label of others.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        match self {
            Self::User => name == "user",
            Self::Own => name == "own",
            Self::Others(label) => {
                let name = name.strip_prefix("others:").unwrap_or(name);
                name == "others" || label.as_deref() == Some(name)
            }
        }
    }

    /// Returns `true` if a stranger may have written the text.
    pub(crate) fn is_others(&self) -> bool {
        matches!(self, Self::Others(_))
    }
}

impl fmt::Display for TextSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Own => f.write_str("own"),
            Self::Others(None) => f.write_str("others"),
            Self::Others(Some(label)) => write!(f, "others:{label}"),
        }
    }
}

impl std::str::FromStr for TextSource {
    type Err = std::convert::Infallible;

    /// Reads `user`, `own`, `others`, or a label, with `others:` before it or not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "user" => Self::User,
            "own" => Self::Own,
            "others" => Self::Others(None),
            label => Self::others(label.strip_prefix("others:").unwrap_or(label)),
        })
    }
}

impl Serialize for TextSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for TextSource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TextSource".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for TextSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.parse().unwrap_or(Self::Others(None)))
    }
}

/// The label of the results of a tool: the source of the whole, and of fields that are told apart (rule O1).
///
/// A field is a JSON pointer into a structured result, in which `*` stands for any name or number: `/*/id`. A result
/// that is one text has no fields.
///
/// ```
/// use countersign::origin::{ReadLabel, TextSource};
///
/// // Of a mailbox, only the ids are the owner's: a sender chooses everything else.
/// let mailbox = ReadLabel::others("mail").own_fields(["/*/id"]);
/// assert_eq!(mailbox.source_of("/0/id"), TextSource::Own);
/// assert_eq!(mailbox.source_of("/0/subject"), TextSource::others("mail"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLabel(Vec<LabelPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelPart {
    rest: TextSource,
    /// `true` if a result that is one text counts as `own`, too.
    own_text: bool,
    fields: Vec<(TextSource, String)>,
}

impl ReadLabel {
    fn of(rest: TextSource) -> Self {
        Self(vec![LabelPart { rest, own_text: false, fields: Vec::new() }])
    }

    /// Results that strangers may have written, with a label for rules.
    #[must_use]
    pub fn others(label: impl Into<Arc<str>>) -> Self {
        Self::of(TextSource::others(label))
    }

    /// Results that strangers may have written, without a label: as of a tool that says nothing.
    #[must_use]
    pub fn unlabelled() -> Self {
        Self::of(TextSource::Others(None))
    }

    /// Results whose fields no third party can choose. A field counts as a whole: the words inside of it are still those
    /// of others. A result that is one text has no fields, and is not `own` without [`own_text`](Self::own_text).
    #[must_use]
    pub fn own() -> Self {
        Self::of(TextSource::Own)
    }

    /// Counts a result that is one text as one `own` field.
    #[must_use]
    pub fn own_text(mut self) -> Self {
        self.0.iter_mut().for_each(|part| part.own_text = true);
        self
    }

    /// Tells these fields apart as `own`.
    #[must_use]
    pub fn own_fields<'f>(self, fields: impl IntoIterator<Item = &'f str>) -> Self {
        self.fields(&TextSource::Own, fields)
    }

    /// Tells these fields apart as text of others, with a label.
    #[must_use]
    pub fn others_fields<'f>(self, label: &str, fields: impl IntoIterator<Item = &'f str>) -> Self {
        self.fields(&TextSource::others(label), fields)
    }

    fn fields<'f>(
        mut self,
        source: &TextSource,
        fields: impl IntoIterator<Item = &'f str>,
    ) -> Self {
        let fields = fields.into_iter().map(|field| (source.clone(), field.to_owned()));
        if let Some(part) = self.0.first_mut() {
            part.fields.extend(fields);
        }
        self
    }

    /// Both labels on one result: of each field the stricter source counts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The source of a field, by its JSON pointer. The pointer of a result that is one text is empty.
    #[must_use]
    pub fn source_of(&self, field: &str) -> TextSource {
        let sources = self.0.iter().map(|part| part.source_of(field));
        let strictest = sources.max_by_key(|source| match source {
            TextSource::User => 0,
            TextSource::Own => 1,
            TextSource::Others(None) => 2,
            TextSource::Others(Some(_)) => 3,
        });
        strictest.unwrap_or(TextSource::Others(None))
    }

    /// Every source that some field of a result may have.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &TextSource> {
        self.0.iter().flat_map(|part| {
            [&part.rest].into_iter().chain(part.fields.iter().map(|(source, _)| source))
        })
    }
}

impl LabelPart {
    fn source_of(&self, field: &str) -> TextSource {
        let mut named = self.fields.iter().filter(|(_, pattern)| is_field(pattern, field));
        // Of two names for one field the stricter counts.
        if let Some((source, _)) =
            named.clone().find(|(source, _)| source.is_others()).or(named.next())
        {
            return source.clone();
        }
        match (&self.rest, field.is_empty()) {
            (TextSource::Own, true) if !self.own_text => TextSource::Others(None),
            (rest, _) => rest.clone(),
        }
    }
}

fn is_field(pattern: &str, field: &str) -> bool {
    let mut names = field.split('/');
    let all =
        pattern.split('/').all(|name| names.next().is_some_and(|it| name == "*" || name == it));
    all && names.next().is_none()
}

/// Calls `each` with every text and number of a value, and its JSON pointer.
pub(crate) fn each_leaf(value: &Value, path: &mut String, each: &mut dyn FnMut(&str, &str)) {
    let length = path.len();
    match value {
        Value::String(text) => each(path, text),
        Value::Number(number) => each(path, &number.to_string()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&at.to_string());
                each_leaf(item, path, each);
                path.truncate(length);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                each_leaf(item, path, each);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
