//! The classes of calls for which a layer agrees to wider answers in advance.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Decision;

/// A class of calls that a layer proposes beside exactly the call that it asks about, so that a person can grant the
/// whole class (rule G3).
///
/// Only the layer knows what a call does, so the layer says, with each of its questions, to which classes the call
/// belongs. A grant for a class answers a later call only if the layer puts that call into the class, too. So the
/// ledger guesses nothing about arguments, and a grant does not cover a call that looks alike, but leads elsewhere.
///
/// ```
/// use countersign::Decision;
/// use countersign::decision::GrantPattern;
/// use countersign::deferred::metadata::GRANTABLE;
///
/// let small = GrantPattern::new("refunds of at most 50 euros", "refunds of at most 50 euros")
///     .with_field("euros")
///     .with_example("refund(euros: 20)");
/// let ask = Decision::ask("refunds money").with_metadata(GRANTABLE, true).with_grant_patterns([small.clone()]);
/// assert_eq!(ask.questions()[0].grant_patterns(), [small]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantPattern {
    name: String,
    says: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pins: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    never: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_args: bool,
}

impl GrantPattern {
    /// The key of the metadata of a question that holds its patterns, from the narrowest to the widest.
    pub(crate) const KEY: &'static str = "grant_patterns";

    /// A class of calls with a name, by which the layer recognises it, and its description for people. The description
    /// follows the name of the tool in a sentence: "`shell`: `git add` of files of the project".
    pub fn new(name: impl Into<String>, says: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            says: says.into(),
            fields: Vec::new(),
            pins: Vec::new(),
            also: Vec::new(),
            never: Vec::new(),
            any_args: false,
        }
    }

    /// Lets the calls of the class differ in all arguments, those that the original call did not have among them, and so
    /// in the places that they lead to. The grant is for the tool, as its schema is now.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::GrantPattern;
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, Grant, GrantScope};
    ///
    /// let tool = GrantPattern::new("tool", "any arguments").with_any_args();
    /// let asked = Decision::ask("looks").with_metadata(GRANTABLE, true).with_grant_patterns([tool]);
    /// let ask = Ask::new("run-1", "root/c1", "look").with_questions(asked.questions().to_vec());
    /// let grant = Grant::of_class(&ask, GrantScope::Session("s1".into()), "tool")?;
    /// assert_eq!(grant.sentence(), "`look` with any arguments, in this session");
    /// # Ok::<(), countersign::ledger::GrantError>(())
    /// ```
    #[must_use]
    pub fn with_any_args(mut self) -> Self {
        self.any_args = true;
        self
    }

    /// Tells whether the calls of the class may have any arguments.
    pub(crate) fn has_any_args(&self) -> bool {
        self.any_args
    }

    /// Adds an argument in which the calls of the class differ, and which they may lack. All others have to be as in the
    /// original call.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.fields.push(field.into());
        self
    }

    /// Adds the name of a pin of the question in which the calls of the class differ, with those within it: `path of files`
    /// is `path of files/0`, too. A name that ends in a space stands for all pins that begin so: `content of ` is
    /// `content of Makefile`. All others have to be equal.
    #[must_use]
    pub fn with_pin(mut self, pin: impl Into<String>) -> Self {
        self.pins.push(pin.into());
        self
    }

    /// Adds an example of another call of the class, for people.
    #[must_use]
    pub fn with_example(mut self, example: impl Into<String>) -> Self {
        self.also.push(example.into());
        self
    }

    /// Adds an example of a call that the class does not cover, for people: one that looks alike.
    ///
    /// ```
    /// use countersign::decision::GrantPattern;
    ///
    /// let class = GrantPattern::new("add", "any `git add`").with_example("git add docs").with_never("git add ../x");
    /// assert_eq!(class.never(), ["git add ../x"]);
    /// ```
    #[must_use]
    pub fn with_never(mut self, example: impl Into<String>) -> Self {
        self.never.push(example.into());
        self
    }

    /// The name by which the layer recognises the class.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description for people, which follows the name of the tool.
    #[must_use]
    pub fn says(&self) -> &str {
        &self.says
    }

    /// The arguments in which the calls of the class differ.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// The names of the pins in which the questions about calls of the class differ.
    #[must_use]
    pub fn pins(&self) -> &[String] {
        &self.pins
    }

    /// Examples of other calls of the class.
    #[must_use]
    pub fn examples(&self) -> &[String] {
        &self.also
    }

    /// Examples of calls that look alike, and that the class does not cover.
    #[must_use]
    pub fn never(&self) -> &[String] {
        &self.never
    }

    /// Returns `true` if the calls of the class differ in a pin of this name.
    pub(crate) fn frees(&self, pin: &str) -> bool {
        let is_within = |free: &String, rest: &str| {
            rest.is_empty() || rest.starts_with('/') || free.ends_with(' ')
        };
        self.pins
            .iter()
            .any(|free| pin.strip_prefix(free.as_str()).is_some_and(|rest| is_within(free, rest)))
    }
}

impl Decision {
    /// Sets the classes of calls for which a person may answer the questions of this ASK in advance, from the narrowest
    /// to the widest; surfaces offer at most the first three. They count only where the layer agrees to answers in advance
    /// ([`GRANTABLE`](crate::deferred::metadata::GRANTABLE)), and replace those that were set before.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::GrantPattern;
    ///
    /// let ask = Decision::ask("pays").with_grant_patterns([GrantPattern::new("small", "at most 50 euros")]);
    /// assert_eq!(ask.questions()[0].grant_patterns()[0].says(), "at most 50 euros");
    /// ```
    pub fn with_grant_patterns(self, patterns: impl IntoIterator<Item = GrantPattern>) -> Self {
        let patterns: Vec<_> = patterns.into_iter().collect();
        self.with_metadata(GrantPattern::KEY, json!(patterns))
    }
}
