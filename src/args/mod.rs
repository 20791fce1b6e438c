//! The arguments of a call: one JSON object, parsed once, and then the same for every layer and the tool (rule T5).
//!
//! ```
//! use countersign::Args;
//! use serde_json::json;
//!
//! let args = Args::new().with("path", "a.log").with("force", true);
//! assert_eq!(args.str("path"), Some("a.log"));
//! assert_eq!(args["force"], json!(true));
//! assert!(args["missing"].is_null());
//! ```

mod canonical;
pub(crate) mod depth;
mod strict;
mod text;
pub(crate) mod unique;

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub(crate) use canonical::{ArrayText, canonical};
pub use canonical::{digest, hex};
pub use text::ArgsError;
pub use unique::object as strict_object;

/// The arguments of a tool call: a JSON object that is cheap to clone, and copied when it is changed.
///
/// `Debug` shows names, types and lengths, never values (rule S2). `Display` writes the canonical text (RFC 8785, with
/// every digit of an integer) that people are shown and from which fingerprints are computed.
///
/// ```
/// use countersign::Args;
/// use serde_json::json;
///
/// let args = Args::parse(r#"{"path": "a.log"}"#)?;
/// let audited = args.clone().with("audit", true);
/// assert_eq!(args["path"], "a.log");
/// assert_eq!(args["nothing"], json!(null));
/// assert_eq!(audited.to_string(), r#"{"audit":true,"path":"a.log"}"#);
/// assert_eq!(format!("{args:?}"), "{path: string(5)}");
/// # Ok::<(), countersign::args::ArgsError>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Args(Arc<Map<String, Value>>);

impl Args {
    /// No arguments: the empty object.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the text of arguments as a model wrote them. Blank text and `null` mean `{}`.
    ///
    /// # Errors
    /// [`ArgsError`] when the text is not a JSON object, repeats a key (two parsers would keep different values), is
    /// nested more than 64 levels deep, or contains a number that would lose digits before the decimal point, become
    /// zero or overflow to infinity.
    ///
    /// ```
    /// use countersign::Args;
    ///
    /// assert_eq!(Args::parse(r#"{"path": "a"}"#)?.str("path"), Some("a"));
    /// assert_eq!(Args::parse("")?, Args::new(), "models send nothing for a tool without arguments");
    /// assert!(Args::parse(r#"{"to": "ann", "to": "eve"}"#).unwrap_err().to_string().contains("twice"));
    /// assert!(Args::parse(r#"{"account": 123456789012345678901}"#).is_err(), "it would lose digits");
    /// assert!(Args::parse("[1]").is_err());
    /// # Ok::<(), countersign::args::ArgsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ArgsError> {
        text::parse(text)
    }

    /// The value of the argument `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of `name`, if it is a string.
    ///
    /// ```
    /// use countersign::Args;
    ///
    /// let args = Args::new().with("path", "a.log").with("count", 3);
    /// assert_eq!((args.str("path"), args.str("count"), args.str("nothing")), (Some("a.log"), None, None));
    /// ```
    #[must_use]
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// The value of `name`, if it is an integer that fits into an `i64`.
    ///
    /// ```
    /// use countersign::Args;
    ///
    /// let args = Args::parse(r#"{"amount": 12.5, "count": 3, "urgent": true}"#)?;
    /// assert_eq!(args.f64("amount"), Some(12.5));
    /// assert_eq!((args.i64("count"), args.u64("count"), args.f64("count")), (Some(3), Some(3), Some(3.0)));
    /// assert_eq!(args.bool("urgent"), Some(true));
    /// assert_eq!((args.i64("amount"), args.bool("count"), args.u64("nothing")), (None, None, None));
    /// # Ok::<(), countersign::args::ArgsError>(())
    /// ```
    #[must_use]
    pub fn i64(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    /// The value of `name`, if it is an integer that fits into a `u64`.
    #[must_use]
    pub fn u64(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(Value::as_u64)
    }

    /// The value of `name`, if it is a number. An integer beyond 2^53 is rounded to the nearest `f64`.
    #[must_use]
    pub fn f64(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(Value::as_f64)
    }

    /// The value of `name`, if it is a boolean.
    #[must_use]
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    /// The arguments with their names, in the order of the underlying map.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The same arguments with `name` set to `value`.
    ///
    /// ```
    /// use countersign::Args;
    ///
    /// let first = Args::new().with("path", "a.log");
    /// let second = first.clone().with("path", "b.log").with("force", true);
    /// assert_eq!(first.str("path"), Some("a.log"), "a clone is copied when it is changed");
    /// assert_eq!(second.without("force").iter().count(), 1);
    /// ```
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.0).insert(name.into(), value.into());
        self
    }

    /// The same arguments without `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        if self.0.contains_key(name) {
            Arc::make_mut(&mut self.0).remove(name);
        }
        self
    }

    /// The arguments as a JSON map.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// A copy of the arguments as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(Map::clone(&self.0))
    }

    /// Deserialises the arguments as `T`.
    ///
    /// # Errors
    /// A text that names the field that does not fit, by its path, and what was expected, without the value (rule S2).
    /// The message of a hand-written `Deserialize` is passed on unchanged.
    ///
    /// ```
    /// use countersign::Args;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Payment { account: Account }
    /// #[derive(serde::Deserialize)]
    /// struct Account { number: u32 }
    ///
    /// let good = Args::parse(r#"{"account": {"number": 7}}"#)?;
    /// assert_eq!(good.deserialize::<Payment>().unwrap().account.number, 7);
    /// let bad = Args::parse(r#"{"account": {"number": "hunter2"}}"#)?;
    /// assert_eq!(bad.deserialize::<Payment>().err().unwrap(), "`account.number`: expected u32");
    /// # Ok::<(), countersign::args::ArgsError>(())
    /// ```
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_path_to_error::deserialize(self.as_map()).map_err(|error| {
            let path = error.path().to_string();
            let problem = without_value(&error.into_inner().to_string());
            match path.as_str() {
                "." => problem,
                path => format!("`{path}`: {problem}"),
            }
        })
    }

    /// Returns `true` if the arguments are nested deeper than those of a call may be (rule T5).
    pub(crate) fn are_too_deep(&self) -> bool {
        self.0.values().any(|value| depth::is_deeper(value, depth::MAX_ARGS - 1))
    }

    /// Returns `true` if both are the same object in memory: a fast positive test. Equal arguments may be different
    /// objects.
    ///
    /// In the common case no layer changes anything: the arguments of a call are one object, from the model's
    /// response to the tool's body. Then we need not compute the canonical text.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns `true` if both have the same canonical text, which makes them the same arguments to every parser. `==`
    /// is stricter: it tells apart numbers that are written alike but stored in different ways.
    ///
    /// ```
    /// use countersign::Args;
    ///
    /// let (one, two) = (Args::parse(r#"{"a":1,"b":2}"#)?, Args::parse(r#"{"b":2,"a":1}"#)?);
    /// assert!(one.equal(&two));
    /// # Ok::<(), countersign::args::ArgsError>(())
    /// ```
    #[must_use]
    pub fn equal(&self, other: &Self) -> bool {
        self.same(other) || self.to_string() == other.to_string()
    }
}

/// The message of a serde error about a value that does not fit, without the value, which may be a secret (rule S2).
///
/// ```
/// use countersign::args::without_value;
///
/// let error = serde_json::from_str::<u8>("\"hunter2\"").unwrap_err();
/// assert!(!without_value(&error.to_string()).contains("hunter2"));
/// ```
#[must_use]
pub fn without_value(message: &str) -> String {
    let quotes = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant "];
    match message.split_once(", expected ") {
        Some((found, expected)) if quotes.iter().any(|quote| found.starts_with(quote)) => {
            format!("expected {expected}")
        }
        _ => message.to_owned(),
    }
}

impl Index<&str> for Args {
    type Output = Value;

    /// The value of `name`, or `null` when there is none; never panics.
    fn index(&self, name: &str) -> &Value {
        const NULL: &Value = &Value::Null;
        self.0.get(name).unwrap_or(NULL)
    }
}

impl From<Map<String, Value>> for Args {
    fn from(map: Map<String, Value>) -> Self {
        Self(Arc::new(map))
    }
}

/// The types that [`ToolCall::with_args`](crate::ToolCall::with_args) and similar functions accept: [`Args`], or a JSON
/// object as a `Map`.
///
/// [`Value`] does not implement the trait, as it may be something other than an object. [`Args::try_from`] converts
/// one, and [`Args::with`] builds or changes arguments without a failure to handle:
///
/// ```
/// use countersign::{Args, Decision};
/// use serde_json::json;
///
/// let built = Decision::allow().with_args(Args::new().with("amount", 5));
/// let read = Decision::allow().with_args(Args::try_from(json!({"amount": 5}))?);
/// assert_eq!(built, read);
/// # Ok::<(), countersign::args::ArgsError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a call",
    note = "a JSON value may be something else than an object: write `Args::try_from(value)?`, or build the arguments with `Args::new().with(\"amount\", 5)`",
    note = "to change some of a call's arguments: `call.args().clone().with(\"amount\", 5)`"
)]
pub trait IntoArgs {
    /// Converts the value into arguments.
    fn into_args(self) -> Args;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Args>> IntoArgs for T {
    fn into_args(self) -> Args {
        self.into()
    }
}

impl TryFrom<Value> for Args {
    type Error = ArgsError;

    /// Accepts an object of at most 64 levels, `null` as `{}`, and a string that contains the text of an object.
    fn try_from(value: Value) -> Result<Self, ArgsError> {
        match value {
            Value::Object(_) if depth::is_deeper(&value, depth::MAX_ARGS) => {
                Err(ArgsError::too_deep())
            }
            Value::Object(map) => Ok(map.into()),
            Value::Null => Ok(Self::new()),
            Value::String(text) => Self::parse(&text),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(ArgsError::not_an_object(&value))
            }
        }
    }
}

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        canonical::write_object(&mut text, &self.0);
        f.write_str(&text)
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct ValueShape<'a>(&'a Value);
        impl fmt::Debug for ValueShape<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    Value::Null => f.write_str("null"),
                    Value::Bool(_) => f.write_str("bool"),
                    Value::Number(_) => f.write_str("number"),
                    Value::String(text) => write!(f, "string({})", text.len()),
                    Value::Array(items) => write!(f, "array({})", items.len()),
                    Value::Object(map) => write!(f, "object({})", map.len()),
                }
            }
        }
        struct Name<'a>(&'a str);
        impl fmt::Debug for Name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.escape_debug())
            }
        }
        f.debug_map()
            .entries(self.iter().map(|(name, value)| (Name(name), ValueShape(value))))
            .finish()
    }
}

impl Serialize for Args {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match unique::value(deserializer)? {
            // No depth limit here: earlier versions stored deeper arguments, which have to load. They are refused where
            // they enter a call.
            Value::Object(map) => Ok(map.into()),
            other => Self::try_from(other).map_err(D::Error::custom),
        }
    }
}
