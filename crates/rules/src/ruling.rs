//! The result of evaluating rules: the decision, and which rules made it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use countersign::decision::{GrantPattern, People, ToolDecision};

/// The origin of a rule. The layer of a rule never makes it stronger or weaker.
///
/// ```
/// use countersign_rules::{Layer, RuleCall, Rules};
/// use serde_json::json;
///
/// let rules = Rules::builder().lexical().text("mine.toml", "version = 1\n[[rule]]\nid = 'all'\nallow = '*'").load()?;
/// let args = json!({"path": ".git/config"});
/// let ruling = rules.decide(&RuleCall::new("write_file", args.as_object().unwrap()));
/// assert_eq!(ruling.winners().next().unwrap().layer, Layer::Floor, "no file switches it off");
/// assert!(ruling.is_every_time());
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Layer {
    /// Built in, and not to be switched off (rule R5).
    Floor,
    /// A preset that comes with this crate.
    Preset,
    /// A file of the user.
    User,
    /// A file of the project, which widens only after an approval (rule R4).
    Project,
    /// Nothing spoke, so the default applies.
    Default,
}

/// One rule that spoke about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Spoke {
    /// The id of the rule; `default` where no rule speaks.
    pub rule: Arc<str>,
    /// The file of the rule; `None` for what is built in.
    pub file: Option<Arc<str>>,
    /// The line of the rule in its file.
    pub line: Option<usize>,
    /// The origin of the rule.
    pub layer: Layer,
    /// The decision of the rule about the call.
    #[serde(serialize_with = "lower")]
    pub decision: ToolDecision,
    /// Why, for a person or the model.
    pub reason: String,
    /// The command of a shell text that the rule speaks about; `None` for the whole call.
    pub part: Option<String>,
    /// `true` if a person has to be asked every time, so that no answer in advance applies.
    pub every_time: bool,
    /// `true` if an answer in advance may answer the question: not if it is to be asked every time, and not if a denial
    /// could not be evaluated.
    pub grantable: bool,
    /// The people who have to answer the question, where the rule says who.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<People>,
    /// The template of the title of the call for the person who is asked, where the rule has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The digest of what the rule means, to which an approval is bound (rule R6).
    pub digest: Arc<str>,
}

/// A rule that names the tool and did not speak.
///
/// The model never gets one, as it would learn which call to try next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NearMiss {
    /// The id of the rule.
    pub rule: Arc<str>,
    /// The file of the rule.
    pub file: Option<Arc<str>>,
    /// The line of the rule in its file.
    pub line: Option<usize>,
    /// The decision that the rule would have made.
    #[serde(serialize_with = "lower")]
    pub decision: ToolDecision,
    /// The first condition that failed, and why.
    pub reason: String,
    /// The command of a shell text that the condition failed for.
    pub part: Option<String>,
}

/// Writes a decision as its word, in lower case.
pub(super) fn lower<S: serde::Serializer>(
    decision: &ToolDecision,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(decision.word())
}

/// The decision of rules about one call.
///
/// ```
/// use countersign_rules::{RuleCall, Rules};
/// use countersign::decision::ToolDecision;
/// use serde_json::json;
///
/// let rules = Rules::builder().text("mine.toml", r#"
///     version = 1
///     [[rule]]
///     id = "secrets"
///     deny = "*"
///     where.any_path = "**/.env"
///     reason = "{path} stays out of reach"
/// "#).load()?;
/// let args = json!({"path": "config/.env"});
/// let ruling = rules.decide(&RuleCall::new("read_file", args.as_object().unwrap()));
/// assert_eq!(ruling.decision(), ToolDecision::Deny);
/// assert_eq!(ruling.to_string(), "deny: config/.env stays out of reach (secrets)");
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub(super) decision: ToolDecision,
    pub(super) spoke: Vec<Spoke>,
    pub(super) pins: Vec<(String, String)>,
    pub(super) patterns: Vec<GrantPattern>,
    pub(super) charges: Vec<Charge>,
}

/// A call that a rule with `at_most` counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) rule: Arc<str>,
    pub(super) calls: u32,
    pub(super) within: Duration,
    pub(super) beyond: Spoke,
}

impl Ruling {
    /// The decision: the strictest of all rules.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        self.decision
    }

    /// Every rule that spoke, the strictest first; never empty for ASK and DENY, except that a plain default has no
    /// entry until the ruling is [explained](super::Rules::explain).
    #[must_use]
    pub fn spoke(&self) -> &[Spoke] {
        &self.spoke
    }

    /// The rules that made the decision, without those that were overruled.
    pub fn winners(&self) -> impl Iterator<Item = &Spoke> {
        self.spoke.iter().filter(|spoke| spoke.decision == self.decision)
    }

    /// Returns `true` if a person has to be asked every time.
    #[must_use]
    pub fn is_every_time(&self) -> bool {
        self.spoke.iter().any(|spoke| spoke.decision == ToolDecision::Ask && spoke.every_time)
    }

    /// Returns `true` if every question may be answered in advance.
    #[must_use]
    pub fn is_grantable(&self) -> bool {
        self.decision == ToolDecision::Ask && self.winners().all(|spoke| spoke.grantable)
    }

    /// The pins of the questions besides the rules: resolved paths, and what is known about commands (rule R6).
    #[must_use]
    pub fn pins(&self) -> &[(String, String)] {
        &self.pins
    }

    /// The classes of calls for which the questions may be answered in advance, from the narrowest to the widest
    /// (rule G3). Empty where only exactly the same call may be.
    #[must_use]
    pub fn grant_patterns(&self) -> &[GrantPattern] {
        &self.patterns
    }

    pub(super) fn sort(&mut self) {
        self.spoke.sort_by(|one, other| {
            (other.decision.cmp(&one.decision))
                .then_with(|| one.layer.cmp(&other.layer))
                .then_with(|| one.file.cmp(&other.file))
                .then_with(|| one.line.cmp(&other.line))
                .then_with(|| one.rule.cmp(&other.rule))
                .then_with(|| one.part.cmp(&other.part))
        });
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.decision.word())?;
        for (number, spoke) in self.winners().enumerate() {
            write!(f, "{} {} ({})", if number == 0 { ":" } else { ";" }, spoke.reason, spoke.rule)?;
        }
        Ok(())
    }
}
