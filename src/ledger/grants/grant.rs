//! A grant: a person's answer in advance, and which calls it answers (rules G1, G2).
//!
//! # What a grant compares
//!
//! A grant is made from one ask, and a later call is answered only if it is *like* that one, in every part:
//!
//! | part | must be |
//! |---|---|
//! | tool | the same set, name and schema |
//! | arguments | equal, or within the pattern of a named field; no field more or less. Texts for people do not count, where a layer says which ones these are |
//! | questions | among the original's, with the same pins (previews' only unless for any content) |
//! | requester | the same person, by the canonical name, or none in both |
//! | agent | the same path, or below it where that was chosen |
//! | scope | the same run, session or project |
//! | state | not expired, not revoked, uses left |
//!
//! Nothing is inherited from the text of the original question: a grant never says "this kind of call" in words.
//!
//! # What is never granted
//!
//! [`refusal`] lists it: calls that a layer blocks or wants to be asked about every time, that a layer asks about which
//! has not agreed to answers in advance, that a person has denied in this run, and that are asked about a second time.
//! The last two are about *this* call: a person has looked at it, or it has changed since they did. A standing answer
//! must not outvote that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::pattern::{ArgsPattern, FieldPattern};
use super::text::{RuleText, place, time};
use crate::call::{DeniedBefore, ToolCall};
use crate::decision::{GrantPattern, Question};
use crate::deferred::metadata::{APPROVAL_POLICY, BLOCKED, EVERY_TIME, FOR_PEOPLE, GRANTABLE};
use crate::ledger::asks::ask::{Ask, Millis};
use crate::ledger::asks::names::Names;
use crate::ledger::scope::GrantError;
use crate::ledger::scope::GrantScope;
use crate::outcome::DeferralKind;
use crate::show::{CallView, Limits};

/// The time for which a grant is valid by default: 12 hours.
const VALID_FOR: Millis = 12 * 3600 * 1000;

/// The beginning of the names of pins that hold the digests of previews.
const PREVIEW: &str = "preview of ";

/// The beginning of the names of pins that hold the digests of files, such as a script that the call runs.
const CONTENT: &str = "content of ";

/// The beginning of the names of pins that hold where the paths of arguments lead to.
const PATH: &str = "path of ";

/// The number of files that the sentence of a grant names.
const MAX_NAMED: usize = 3;

/// A question that a grant answers.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Covered {
    layer: String,
    key: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pins: BTreeMap<String, String>,
}

/// A person's answer in advance: it approves later calls that are like the one it was made for (rule G1).
///
/// It holds for one tool with one schema, for the questions of the original call, for the same requester and agent, and
/// for arguments that its pattern allows. By default the pattern is exact: all arguments are equal to the original's.
/// A field that the pattern does not name has to be as in the original, absent where it was absent.
///
/// ```
/// use std::time::Duration;
/// use countersign::deferred::metadata::GRANTABLE;
/// use countersign::ledger::{Ask, FieldPattern, Grant, GrantScope};
/// use countersign::{Args, Decision};
///
/// let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
/// let ask = Ask::new("run-1", "root/c1", "send_mail")
///     .with_args(Args::new().with("to", "bob").with("lines", 3))
///     .with_questions(asked.questions().to_vec());
/// let grant = Grant::of(&ask, GrantScope::Session("s1".into()))?
///     .with_field("lines", FieldPattern::between(0, 20))?
///     .with_valid_for(Duration::from_secs(3600))
///     .with_uses(5);
/// assert_eq!(grant.sentence(), "`send_mail` with lines from 0 to 20, and the rest as it was, in this session");
/// # Ok::<(), countersign::ledger::GrantError>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    tool: String,
    /// The toolset, name and schema of the tool at its gate, as a digest.
    identity: String,
    pattern: ArgsPattern,
    questions: Vec<Covered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requester: Option<String>,
    agent: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    below: bool,
    scope: GrantScope,
    valid_for: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uses: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_content: bool,
    /// Digests of files that the call names, by their paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// The ask that the grant was made from.
    from: String,
}

impl Grant {
    /// A grant for calls that equal the call of this ask, in a scope. It is valid for 12 hours unless
    /// [`with_valid_for`](Self::with_valid_for) says otherwise, and not limited in its uses.
    ///
    /// # Errors
    /// [`GrantError`] where no grant may answer such a call: a layer blocks it, wants to be asked every time, or has
    /// not agreed to answers in advance, or it waits for a result and not for an approval.
    ///
    /// ```
    /// use countersign::deferred::metadata::{EVERY_TIME, GRANTABLE};
    /// use countersign::ledger::{Ask, Grant, GrantScope};
    /// use countersign::Decision;
    ///
    /// let grant = |asked: Decision| {
    ///     let ask = Ask::new("run-1", "root/c1", "push").with_questions(asked.questions().to_vec());
    ///     Grant::of(&ask, GrantScope::Session("s1".into())).map_err(|error| error.to_string())
    /// };
    /// assert!(grant(Decision::ask("pushes").with_metadata(GRANTABLE, true)).is_ok());
    /// assert!(grant(Decision::ask("pushes")).unwrap_err().contains("has not agreed"));
    /// assert!(grant(Decision::ask("pushes").with_metadata(EVERY_TIME, true)).unwrap_err().contains("every time"));
    /// ```
    pub fn of(ask: &Ask, scope: GrantScope) -> Result<Self, GrantError> {
        if let Some(problem) = refusal(ask) {
            return Err(GrantError::new(problem));
        }
        let covered = |question: &Question| Covered {
            layer: question.layer().to_owned(),
            key: question.key().to_owned(),
            pins: question.pins().clone(),
        };
        Ok(Self {
            tool: ask.tool().to_owned(),
            identity: ask.identity.clone(),
            pattern: ArgsPattern::exact(ask.args()),
            questions: ask.questions().iter().map(covered).collect(),
            requester: ask.principal().map(str::to_owned),
            agent: agent_of(ask).to_owned(),
            below: false,
            scope,
            valid_for: VALID_FOR,
            uses: None,
            any_content: false,
            files: BTreeMap::new(),
            from: ask.id().to_owned(),
        })
    }

    /// A grant for the class of calls with this name, which the layers that ask have proposed for the call
    /// ([`Decision::with_grant_patterns`](crate::Decision::with_grant_patterns)). It answers a later call only if each
    /// of its questions names the class, too. Contents of previews may differ.
    ///
    /// # Errors
    /// [`GrantError`] where [`of`](Self::of) is one, or where a question of the call does not name the class.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::GrantPattern;
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, Grant, GrantScope};
    ///
    /// let small = GrantPattern::new("small", "at most 50 euros").with_field("euros");
    /// let asked = Decision::ask("pays").with_metadata(GRANTABLE, true).with_grant_patterns([small]);
    /// let ask = Ask::new("run-1", "root/c1", "pay").with_questions(asked.questions().to_vec());
    /// let grant = |class| Grant::of_class(&ask, GrantScope::Session("s1".into()), class);
    /// assert_eq!(grant("small")?.sentence(), "`pay` for at most 50 euros, and the rest as it was, in this session");
    /// assert!(grant("large").is_err());
    /// # Ok::<(), countersign::ledger::GrantError>(())
    /// ```
    pub fn of_class(ask: &Ask, scope: GrantScope, class: &str) -> Result<Self, GrantError> {
        let grant = Self::of(ask, scope)?;
        let found = classes(ask).into_iter().find(|found| found.name() == class);
        let found = found.ok_or_else(|| {
            GrantError::new(format!("the call is not in the class `{}`", class.escape_debug()))
        })?;
        Ok(grant.for_class(ask, found))
    }

    /// This grant of exactly the call, for a class that the questions of the call name.
    pub(super) fn for_class(self, ask: &Ask, class: GrantPattern) -> Self {
        Self { pattern: ArgsPattern::class(ask.args(), class), any_content: true, ..self }
    }

    /// Sets what one field of the arguments may be, in place of the original value.
    ///
    /// # Errors
    /// [`GrantError`] if the original call does not fit the pattern: a grant covers the call that it was made from.
    ///
    /// ```
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, FieldPattern, Grant, GrantScope};
    /// use countersign::{Args, Decision};
    ///
    /// let asked = Decision::ask("pays").with_metadata(GRANTABLE, true);
    /// let ask = Ask::new("run-1", "root/c1", "pay")
    ///     .with_args(Args::new().with("euros", 5).with("to", "bob"))
    ///     .with_questions(asked.questions().to_vec());
    /// let grant = || Grant::of(&ask, GrantScope::Session("s1".into())).unwrap();
    /// assert!(grant().with_field("euros", FieldPattern::between(0, 10)).is_ok());
    /// assert!(grant().with_field("euros", FieldPattern::between(10, 20)).is_err(), "it would not cover the call it came from");
    /// assert!(grant().with_field("cents", FieldPattern::between(0, 99)).is_err(), "there is no such field");
    /// ```
    pub fn with_field(
        mut self,
        field: impl Into<String>,
        pattern: FieldPattern,
    ) -> Result<Self, GrantError> {
        self.pattern.name(field.into(), pattern)?;
        Ok(self)
    }

    /// Sets how long the grant is valid from when it is made, at least one millisecond.
    #[must_use]
    pub fn with_valid_for(mut self, time: std::time::Duration) -> Self {
        self.valid_for = crate::ledger::handle::millis(time).max(1);
        self
    }

    /// Sets how many calls the grant answers, at least one.
    ///
    /// We take a use with the decision, in one transaction: if two workers want the last use, one is answered. A use
    /// that was taken stays taken, also if the call is denied on its approved pass, as the person has limited the
    /// number of answers.
    #[must_use]
    pub fn with_uses(mut self, uses: u32) -> Self {
        self.uses = Some(uses.max(1));
        self
    }

    /// Lets the grant hold also for the agents behind the tools of its agent.
    #[must_use]
    pub fn with_agents_below(mut self) -> Self {
        self.below = true;
        self
    }

    /// Lets the grant answer calls with any content in their previews. Without this, a call whose preview differs from
    /// the original's is shown to a person.
    #[must_use]
    pub fn with_any_content(mut self) -> Self {
        self.any_content = true;
        self
    }

    /// Binds the grant to the present content of a file that the call names, such as a script: after a change of the
    /// file a person is asked again.
    ///
    /// # Errors
    /// [`GrantError`] when the file cannot be read, or is larger than 64 MiB.
    pub fn with_pinned_file(mut self, path: impl AsRef<Path>) -> Result<Self, GrantError> {
        let path = std::path::absolute(path.as_ref())
            .map_err(|error| GrantError::new(format!("{}: {error}", path.as_ref().display())))?;
        let name = path.to_str().ok_or_else(|| {
            GrantError::new(format!("the path `{}` is not Unicode", path.display()))
        })?;
        let digest = crate::ledger::scope::digest_of(&path)
            .ok_or_else(|| GrantError::new(format!("the file `{name}` cannot be read")))?;
        self.files.insert(name.to_owned(), digest);
        Ok(self)
    }

    /// The name of the tool that people are shown.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The scope of the grant: a run, a session or a project.
    #[must_use]
    pub fn scope(&self) -> &GrantScope {
        &self.scope
    }

    /// The largest number of calls that it answers; `None` means no limit.
    #[must_use]
    pub fn uses(&self) -> Option<u32> {
        self.uses
    }

    /// The person that calls have to be made for; `None` means calls without a requester.
    #[must_use]
    pub fn requester(&self) -> Option<&str> {
        self.requester.as_deref()
    }

    /// The path of the agent that has to make the calls: `root/cleaner`.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The time for which the grant is valid, in milliseconds from when it is made.
    #[must_use]
    pub fn valid_for(&self) -> Millis {
        self.valid_for
    }

    /// The grant as one sentence for people, without the values of arguments that it does not name. Fields are shown
    /// as Rust's debug format escapes them.
    #[must_use]
    pub fn sentence(&self) -> String {
        let scope = match &self.scope {
            GrantScope::Run(_) => "in this run".to_owned(),
            GrantScope::Session(_) => "in this session".to_owned(),
            GrantScope::Project(project) => format!("in the project {project}"),
        };
        let tool = self.tool.escape_debug();
        format!("`{tool}` {}, {scope}{}", self.pattern, self.condition())
    }

    /// The call that the grant was made for, in one line for people ([`CallView::headline`]): other calls that it answers
    /// differ from it as the [sentence](Self::sentence) says.
    ///
    /// ```
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, Grant, GrantScope};
    /// use countersign::show::Limits;
    /// use countersign::{Args, Decision};
    ///
    /// let asked = Decision::ask("sends mail").with_key("mail").with_metadata(GRANTABLE, true);
    /// let ask = Ask::new("run-1", "root/c1", "send_mail").with_args(Args::new().with("to", "bob"));
    /// let ask = ask.with_questions(asked.questions().to_vec());
    /// let grant = Grant::of(&ask, GrantScope::Session("s1".into()))?;
    /// assert_eq!(grant.made_for(Limits::default()), "send_mail(to: \"bob\")");
    /// assert_eq!(grant.answers_to().collect::<Vec<_>>(), ["mail"]);
    /// # Ok::<(), countersign::ledger::GrantError>(())
    /// ```
    #[must_use]
    pub fn made_for(&self, limits: Limits) -> String {
        let args = self.pattern.original().to_value();
        CallView::of_call(&ToolCall::new("", self.tool.as_str(), args), limits).headline
    }

    /// The questions that the grant answers: the layer of each, such as `rules`, and its key, such as the id of a rule. They
    /// are not escaped.
    pub fn answers_to(&self) -> impl Iterator<Item = String> {
        self.questions.iter().map(|it| match it.layer.as_str() {
            "" => it.key.clone(),
            layer => format!("{layer}: {}", it.key),
        })
    }

    /// The files that the grant is bound to, as the end of its sentence.
    fn condition(&self) -> String {
        let class = self.pattern.class_of();
        let pins = self.questions.iter().flat_map(|question| question.pins.keys());
        let counts = |pin: &&String| class.is_none_or(|class| !class.frees(pin));
        let pinned = pins.filter(counts).filter_map(|pin| pin.strip_prefix(CONTENT));
        let files: BTreeSet<_> = pinned.chain(self.files.keys().map(String::as_str)).collect();
        let mut named: Vec<_> =
            files.iter().take(MAX_NAMED).map(|file| format!("`{}`", file.escape_debug())).collect();
        if files.len() > MAX_NAMED {
            named.push(format!("{} other files", files.len() - MAX_NAMED));
        }
        match files.len() {
            0 => String::new(),
            1 => format!(", while {} stays the same", named.join("")),
            _ => format!(", while {} stay the same", named.join(" and ")),
        }
    }

    /// The grant as the rule that is compared with each call, as JSON: every part that counts, with all values. For
    /// people there is [`to_toml`](Self::to_toml).
    #[must_use]
    pub fn rule(&self) -> Value {
        json!(self)
    }

    /// The grant as a rule in TOML, for people: all that is compared with a call, with the values of the arguments. A
    /// file or a pin is named, without its digest.
    ///
    /// ```
    /// use countersign::deferred::metadata::GRANTABLE;
    /// use countersign::ledger::{Ask, Grant, GrantScope};
    /// use countersign::{Args, Decision};
    ///
    /// let asked = Decision::ask("sends mail").with_key("mail").with_metadata(GRANTABLE, true);
    /// let ask = Ask::new("run-1", "root/c1", "send_mail")
    ///     .with_args(Args::new().with("to", "bob").with("lines", 3))
    ///     .with_questions(asked.questions().to_vec());
    /// let grant = Grant::of(&ask, GrantScope::Session("s1".into()))?;
    /// let rule = "tool = \"send_mail\"\nin = \"session s1\"\nvalid_for = \"12h\"\nagent = \"root\"\nanswers = [\"mail\"]\n";
    /// assert_eq!(grant.to_toml(), format!("{rule}\n[args]\nlines = 3\nto = \"bob\"\n"));
    /// # Ok::<(), countersign::ledger::GrantError>(())
    /// ```
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut table = RuleText::default();
        table.text("tool", &self.tool);
        table.text("in", &place(&self.scope));
        table.text("valid_for", &time(self.valid_for));
        if let Some(uses) = self.uses {
            table.line("uses", &uses.into());
        }
        if let Some(requester) = &self.requester {
            table.text("requester", requester);
        }
        table.text("agent", &self.agent);
        if self.below {
            table.line("agents_below", &true.into());
        }
        table.list("answers", self.answers_to().collect());
        let class = self.pattern.class_of();
        let is_free = |pin: &str| class.is_some_and(|class| class.frees(pin));
        let any_args = class.is_some_and(GrantPattern::has_any_args);
        let pins = self.questions.iter().flat_map(|it| it.pins.keys());
        let pins = pins
            .filter(|pin| !(is_free(pin) || self.any_content && pin.starts_with(PREVIEW)))
            .filter(|pin| !(any_args && pin.starts_with(PATH)));
        let pins: BTreeSet<_> = pins.cloned().collect();
        table.list("while_same", pins.into_iter().collect());
        table.list("while_same_content", self.files.keys().cloned().collect());
        if self.any_content {
            table.line("any_content", &true.into());
        }
        self.pattern.write(&mut table);
        table.ended()
    }

    pub(in crate::ledger) fn key(&self) -> String {
        key(&self.identity, &self.scope)
    }

    pub(super) fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Returns `true` if the grant answers this call of an agent, apart from its scope, age and uses (rules G1, G2).
    pub(in crate::ledger) fn covers(&self, ask: &Ask, agent: &str, names: &Names) -> bool {
        let below = || agent.strip_prefix(&*self.agent).is_some_and(|rest| rest.starts_with('/'));
        let requester = match (&self.requester, ask.principal()) {
            (None, None) => true,
            (Some(own), Some(other)) => !names.is_no_person(own) && names.are_one(own, other),
            _ => false,
        };
        let for_people = for_people(ask);
        refusal(ask).is_none()
            && self.identity == ask.identity
            && requester
            && (self.agent == agent || (self.below && below()))
            && ask.questions().iter().all(|question| self.answers(question, &for_people))
            && self.pattern.fits(ask.args(), &for_people)
    }

    /// Returns `true` if the grant answers only calls with the arguments of the original, and with its previews.
    pub(super) fn is_exact(&self) -> bool {
        !self.any_content && self.pattern.is_exact()
    }

    fn answers(&self, question: &Question, for_people: &[String]) -> bool {
        // The layer has to put this call into the class, as it did with the original.
        let in_class = self.pattern.class_of().is_none_or(|class| {
            question.is_of_previews()
                || question.grant_patterns().iter().any(|found| found.name() == class.name())
        });
        in_class
            && self.questions.iter().any(|covered| {
                covered.layer == question.layer()
                    && covered.key == question.key()
                    && self.same_pins(&covered.pins, question.pins(), for_people)
            })
    }

    fn same_pins(
        &self,
        own: &BTreeMap<String, String>,
        other: &BTreeMap<String, String>,
        for_people: &[String],
    ) -> bool {
        let class = self.pattern.class_of();
        let any_args = class.is_some_and(GrantPattern::has_any_args);
        // Grants of earlier versions are bound to the path that a text for people would be.
        let is_of_words = |pin: &str| {
            pin.strip_prefix(PATH)
                .is_some_and(|it| any_args || for_people.iter().any(|name| name == it))
        };
        let is_free = |pin: &str| class.is_some_and(|class| class.frees(pin));
        let counts = |pin: &(&String, &String)| {
            !(is_of_words(pin.0)
                || is_free(pin.0)
                || self.any_content && pin.0.starts_with(PREVIEW))
        };
        own.iter().filter(counts).eq(other.iter().filter(counts))
    }
}

/// The classes of calls that every question of a call names, apart from those about previews, from the narrowest to the
/// widest.
pub(super) fn classes(ask: &Ask) -> Vec<GrantPattern> {
    let questions = ask.questions().iter().filter(|question| !question.is_of_previews());
    let mut named = questions.map(Question::grant_patterns);
    let Some(mut classes) = named.next() else { return Vec::new() };
    for others in named {
        classes.retain(|class| others.contains(class));
    }
    classes
}

/// The arguments of a call whose texts are for people only, as the layers that ask say.
fn for_people(ask: &Ask) -> Vec<String> {
    let lists = ask.questions().iter().filter_map(|it| it.metadata().get(FOR_PEOPLE)?.as_array());
    lists.flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The key of the grants for a tool in a scope, by which a store finds them.
pub(in crate::ledger) fn key(identity: &str, scope: &GrantScope) -> String {
    let mut key = crate::args::digest(&json!(["grants", 1, identity, scope]));
    key.truncate(32);
    key
}

/// The path of the agent that makes the call of an ask.
pub(in crate::ledger) fn agent_of(ask: &Ask) -> &str {
    ask.path().rsplit_once('/').map_or("", |(agent, _)| agent)
}

/// The reason why no grant answers such a call; `None` if one may (rule G2).
fn refusal(ask: &Ask) -> Option<&'static str> {
    let is = |metadata: &Map<String, Value>, key: &str| {
        metadata.get(key).is_some_and(|value| *value != Value::Bool(false) && !value.is_null())
    };
    let all = || ask.questions().iter().map(Question::metadata).chain([&ask.metadata]);
    let agreed = |question: &Question| {
        question.metadata().get(GRANTABLE) == Some(&Value::Bool(true)) || question.is_of_previews()
    };
    if ask.kind != DeferralKind::Approval {
        return Some("it waits for a result and not for an approval");
    }
    if all().any(|metadata| metadata.get(APPROVAL_POLICY).is_some_and(|it| it == BLOCKED)) {
        return Some("a layer blocks it");
    }
    if all().any(|metadata| is(metadata, EVERY_TIME)) {
        return Some("a layer wants a person to be asked every time");
    }
    if ask.questions().iter().all(Question::is_of_previews) {
        return Some("it has no question that a layer has agreed to");
    }
    if !ask.questions().iter().all(agreed) {
        return Some("a layer that asks has not agreed to answers in advance");
    }
    if ask.denied_before().is_some_and(DeniedBefore::is_of_run) {
        return Some("a person has denied the same call in this run");
    }
    if ask.changed.is_some() {
        return Some("it is asked about again after an approval");
    }
    None
}

impl fmt::Debug for Grant {
    /// Names, not values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("tool", &self.tool)
            .field("agent", &self.agent)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
