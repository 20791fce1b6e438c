//! The rules that are in force, and how they are exchanged while they run.
//!
//! # Reloading without widening
//!
//! A reload happens because a file has changed, and a tool may have changed it. So we add the new rules to those in
//! force, and the *stricter* decision of all versions counts, until a person accepts the new ones by their digest (rule
//! R3):
//!
//! | moment | in force | a call that A denies and B allows |
//! |---|---|---|
//! | loaded A | A | denied |
//! | the file becomes B | A and B | denied, saying "by the rules before the change" |
//! | B is accepted | B | allowed |
//! | the file is broken | B, and every ASK says so | allowed |
//!
//! At most sixteen versions wait for being accepted, and a reload beyond them is an error. Otherwise a program that
//! edits the file in a loop would make each decision slower.
//!
//! To accept rules, you name the digest that the person has seen. So an edit between the look and the answer is not
//! accepted along with them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::{Map, json};

use super::counts::{CallCounts, Count};
use super::decision_journal::{DecisionJournal, JournalEntry};
use super::error::RulesError;
use super::evaluation::evaluate;
use super::explanation::Explanation;
use super::ruling::{NearMiss, Ruling, Spoke};
use super::sources::Sources;
use super::sources::looked::LookedAt;
use crate::calls::call::RuleCall;
use crate::calls::engine::Engine;
use crate::format::example::WrittenCall;
use crate::format::rule::Rule;
use crate::format::rule_file::RuleFile;
use crate::format::rule_set::RuleSet;
use crate::matching::condition::FieldPath;
use countersign::call::{RunContext, ToolCall, ToolDefinition};
use countersign::decision::ToolDecision;
use countersign::origin::ReadLabel;
use countersign::show::counted;

/// The number of versions of the rules that can wait for being accepted.
const MAX_VERSIONS: usize = 16;

/// The rules that decide: all versions since the last one that was accepted, so that a new one never widens.
pub(super) struct InForce {
    pub(super) sets: Vec<Arc<RuleSet>>,
    /// The reason why the latest files could not be loaded.
    problem: Option<RulesError>,
}

impl InForce {
    /// Returns `true` if a person has not accepted the latest rules yet.
    fn is_changed(&self) -> bool {
        self.sets.len() > 1
    }
}

/// The sentence of every question while rules wait for being accepted.
const CHANGED: &str =
    "the rules were changed, and the stricter of both decides until they are accepted";
const CHANGED_FILE: &str = "the rules were changed, and the stricter of both decides until you run \
    `countersign rules accept`";

struct Inner {
    engine: Engine,
    sources: Sources,
    in_force: RwLock<Arc<InForce>>,
    /// The files as they were at the last look.
    looked: Mutex<LookedAt>,
    settings: Settings,
}

/// The function that gives the principal of a call.
pub(super) type PrincipalOf = dyn Fn(&RunContext, &ToolCall) -> String + Send + Sync;

/// The settings for counting and recording calls.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) counts: Arc<dyn CallCounts>,
    pub(super) principal: Arc<PrincipalOf>,
    pub(super) journal: Option<DecisionJournal>,
    /// Tells whether the account that runs the agent can answer in the name of anyone.
    pub(super) one_account: bool,
}

/// Permissions from files: a [middleware](countersign::ToolMiddleware) that decides about each call by rules.
///
/// Cheap to clone; clones share the rules that are in force. Apply it with
/// [`into_layer`](countersign::ToolMiddlewareExt::into_layer). The strictest rule wins, in any order of rules and files, and
/// a call that no rule speaks about is asked about (rule R2). `docs/rules-file.md` describes the format.
///
/// ```no_run
/// use countersign_rules::Rules;
/// use countersign::{FunctionToolset, ToolMiddlewareExt, ToolsExt};
///
/// let rules = Rules::load(["countersign.toml"])?;
/// let tools = FunctionToolset::new().layered(rules.into_layer());
/// # let _ = tools;
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
///
/// As a middleware it is called `rules`, asks one question for each rule that asks, with the rule's id as the key, and
/// denies with the reasons of the rules that deny:
///
/// ```
/// use countersign_rules::Rules;
/// use countersign::{FunctionToolset, ToolCall, ToolError, ToolMiddlewareExt, ToolsExt, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Refund { amount: u32 }
/// async fn refund(it: Refund) -> Result<String, ToolError> { Ok(format!("refunded {}", it.amount)) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let rules = Rules::builder().lexical().text("shop.toml", "
///     version = 1
///     [[rule]]
///     id = 'small'
///     allow = 'refund'
///     where.amount = '<= 50'
///     [[rule]]
///     id = 'large'
///     ask = 'refund'
///     where.amount = '> 50'
///     reason = 'a refund of {amount}'
/// ").load()?;
/// let tools = FunctionToolset::new().tool(tool_fn("refund", "Refunds", refund)).layered(rules.into_layer());
/// let call = |id: &str, amount: u32| ToolCall::new(id, "refund", json!({"amount": amount}));
/// let report = Turn::new(tools).run(vec![call("c1", 20), call("c2", 500)]).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "refunded 20");
/// let question = &report.calls()[1].asked()[0];
/// assert_eq!((question.key(), question.reason()), ("large", "a refund of 500"));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Rules {
    shared: Arc<Inner>,
}

/// The changes that a reload has made.
///
/// ```
/// use countersign::decision::ToolDecision;
/// use countersign_rules::{RuleCall, Rules};
/// use serde_json::json;
///
/// let file = std::env::temp_dir().join(format!("countersign-doc-reload-{}.toml", std::process::id()));
/// std::fs::write(&file, "version = 1\n[[rule]]\nid = 'a'\ndeny = 'pay'")?;
/// let rules = Rules::load([&file])?;
/// let args = json!({});
/// let decide = || rules.decide(&RuleCall::new("pay", args.as_object().unwrap())).decision();
///
/// std::fs::write(&file, "version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'")?;
/// let reload = rules.reload()?;
/// assert_eq!((reload.needs_accepting, decide()), (true, ToolDecision::Deny), "no reload widens by itself");
/// assert!(rules.accept(&reload.digest));
/// assert_eq!(decide(), ToolDecision::Allow);
/// std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reload {
    /// `true` if the rules mean something else than before. An edited comment changes nothing.
    pub changed: bool,
    /// The digest of the rules that were loaded, to [accept](Rules::accept) them by.
    pub digest: String,
    /// `true` if the stricter of the rules before and the new ones decides until these are accepted.
    pub needs_accepting: bool,
}

/// One file, or a preset, as it was loaded.
///
/// ```
/// use countersign_rules::Rules;
///
/// let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'\n[test]\nallow = ['pay', 'pay: {euros: 3}']";
/// let rules = Rules::builder().lexical().text("mine.toml", text).load()?;
/// assert_eq!(rules.files()[0].to_string(), "mine.toml: 1 rule, 2 tests passed");
/// # Ok::<(), countersign_rules::RulesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedFile {
    /// The name of the file.
    pub file: String,
    /// The number of its rules.
    pub rules: usize,
    /// The number of its tests. All of them have passed, as the file would not have been loaded otherwise (rule R3).
    pub tests: usize,
}

impl fmt::Display for LoadedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rules, tests) = (counted(self.rules, "rule"), counted(self.tests, "test"));
        write!(f, "{}: {rules}, {tests} passed", self.file)
    }
}

impl Rules {
    /// The last of the sets is that of the files as they are.
    pub(super) fn new(
        settings: Settings,
        engine: Engine,
        sources: Sources,
        sets: Vec<Arc<RuleSet>>,
    ) -> Self {
        // What cannot be read now is an error of the first look.
        let looked = sets.last().and_then(|latest| sources.looked(latest).ok());
        let looked = Mutex::new(looked.unwrap_or_default());
        let in_force = InForce { sets, problem: None };
        let in_force = RwLock::new(Arc::new(in_force));
        Self { shared: Arc::new(Inner { engine, sources, in_force, looked, settings }) }
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.shared.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn latest(&self) -> Option<Arc<RuleSet>> {
        self.in_force().sets.last().cloned()
    }

    /// The engine that the tests in files are run with.
    pub(super) fn test_engine(&self) -> &Engine {
        &self.shared.sources.tests
    }

    /// Reads a call in one line, as the tests of a file have it. These rules say whether its tool is a shell.
    ///
    /// ```
    /// use countersign_rules::Rules;
    /// use countersign::decision::ToolDecision;
    ///
    /// let rules = Rules::builder().text("mine", "version = 1\n[[rule]]\nid = 'a'\ndeny = 'read_file'").load()?;
    /// let call = rules.written_call("read_file: {path: .env}")?;
    /// assert_eq!(rules.decide(&call.call()).decision(), ToolDecision::Deny);
    /// // A command alone is none: it would be the name of a tool.
    /// assert!(rules.written_call("git push").unwrap_err().contains("`shell: git push`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the text is no call: the form in which a call is written.
    pub fn written_call(&self, text: &str) -> Result<WrittenCall, String> {
        WrittenCall::parse(text, &self.shared.engine)
    }

    /// The root of the workspace, which relative paths start in.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.shared.engine.places.root()
    }

    /// Returns `true` if paths are resolved by the file system.
    pub(crate) fn looks_at_files(&self) -> bool {
        self.shared.engine.places.looks()
    }

    /// The rules that mean something else in another root, each with its file and line: those with a path that begins
    /// there, such as `.` or `src/**`, or with a condition on commands. Where the root is not certain to be a project,
    /// such rules may be about the whole disk.
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let text = "version = 1\n[[rule]]\nid = 'mine'\nallow = 'read'\nwhere.path.within = '.'\n\
    ///             [[rule]]\nid = 'keys'\ndeny = '*'\nwhere.any_path = '~/.ssh/**'";
    /// let rules = Rules::builder().text("mine.toml", text).load()?;
    /// assert_eq!(rules.about_root(), ["mine.toml:2: rule `mine`"]);
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn about_root(&self) -> Vec<String> {
        self.those(Rule::is_of_root)
    }

    /// The rules that can never speak about a tool of this MCP server, each with its file and line: those about other
    /// servers and toolsets, and those that allow a tool without naming its server (rule R1). In a file for one guard
    /// they are mistakes.
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let text = "version = 1\n[[rule]]\nid = 'short'\nallow = 'git_status'\n\
    ///             [[rule]]\nid = 'typo'\nask = 'mcp:gti/git_push'\n\
    ///             [[rule]]\nid = 'word'\ndeny = 'git_reset'\n\
    ///             [[rule]]\nid = 'good'\nallow = 'mcp:git/git_status'";
    /// let rules = Rules::builder().text("git.toml", text).load()?;
    /// assert_eq!(rules.never_about_server("git"), ["git.toml:2: rule `short`", "git.toml:5: rule `typo`"]);
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn never_about_server(&self, server: &str) -> Vec<String> {
        self.those(|rule| !rule.may_speak_about(server))
    }

    /// The rules that allow a tool of this MCP server, each with its file and line. They know the server by its name: which
    /// program has the name is decided by the configuration of the client.
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let text = "version = 1\n[[rule]]\nid = 'log'\nallow = 'mcp:git/git_log'\n[[rule]]\nid = 'no'\ndeny = 'mcp:git/*'";
    /// let rules = Rules::builder().text("git.toml", text).load()?;
    /// assert_eq!(rules.allowing_server("git"), ["git.toml:2: rule `log`"]);
    /// assert!(rules.allowing_server("other").is_empty());
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn allowing_server(&self, server: &str) -> Vec<String> {
        self.those(|rule| rule.effect == ToolDecision::Allow && rule.may_speak_about(server))
    }

    fn those(&self, is_one: impl Fn(&Rule) -> bool) -> Vec<String> {
        let set = self.latest();
        let files = set.iter().flat_map(|set| set.files());
        let of_file = |file: &RuleFile| {
            let rules = file.rules.iter().filter(|rule| is_one(rule));
            let named =
                rules.map(|rule| format!("{}:{}: rule `{}`", file.name, rule.line, rule.id));
            named.collect::<Vec<_>>()
        };
        files.flat_map(of_file).collect()
    }

    /// The rules that say which people have to approve a call (`people`, `not_the_requester`, `approvers`), each with its
    /// file and line. Where one account can answer in any name, they protect from mistakes, and not from that account
    /// ([`RulesBuilder::one_account`](super::RulesBuilder::one_account)).
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let text = "version = 2\n[[rule]]\nid = 'large'\nask = 'pay'\nwhere.amount = '> 1000'\npeople = 2";
    /// let rules = Rules::builder().lexical().text("mine.toml", text).load()?;
    /// assert_eq!(rules.of_people(), ["mine.toml:2: rule `large`"]);
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn of_people(&self) -> Vec<String> {
        self.those(|rule| rule.people.is_some())
    }

    /// The files as they were last loaded.
    #[must_use]
    pub fn files(&self) -> Vec<LoadedFile> {
        let set = self.latest();
        let files = set.iter().flat_map(|set| set.files());
        let loaded = |file: &RuleFile| LoadedFile {
            file: file.name.to_string(),
            rules: file.rules.len(),
            tests: file.examples.len(),
        };
        files.map(loaded).collect()
    }

    /// The digest of what the latest rules mean, which changes with no comment.
    #[must_use]
    pub fn digest(&self) -> String {
        self.latest().map(|set| set.digest()).unwrap_or_default()
    }

    /// Returns `true` if there is a rule that allows anything, or `danger_default_allow`. Without one every call is
    /// denied or asked about.
    ///
    /// ```
    /// use countersign_rules::Rules;
    ///
    /// let load = |text: &str| Rules::builder().lexical().text("mine.toml", text).load();
    /// assert!(!load("version = 1\n[[rule]]\nid = 'a'\ndeny = 'pay'")?.can_allow());
    /// assert!(load("version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'")?.can_allow());
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn can_allow(&self) -> bool {
        let allows = |rule: &Rule| rule.effect == ToolDecision::Allow;
        self.latest().is_some_and(|set| {
            set.files().iter().any(|file| file.default_allow || file.rules.iter().any(allows))
        })
    }

    /// The reason why the files as they are now could not be loaded, so that the last good rules are still in force.
    #[must_use]
    pub fn problem(&self) -> Option<RulesError> {
        self.in_force().problem.clone()
    }

    /// Returns `true` if the rules were changed, and the stricter of them and those before decides until a person
    /// [accepts](Self::accept) them (rule R3).
    #[must_use]
    pub fn needs_accepting(&self) -> bool {
        self.in_force().is_changed()
    }

    /// The label that the files (`[[source]]`) give to the results of this call's tool; `None` where they say nothing.
    /// Pass it to a turn or an agent that records what is read:
    ///
    /// ```
    /// use countersign::origin::ReadRecord;
    /// use countersign::{FunctionToolset, ToolMiddlewareExt, ToolsExt, Turn};
    /// use countersign_rules::Rules;
    ///
    /// let text = "version = 2\n[[source]]\ntool = 'fetch'\nothers = 'web'";
    /// let rules = Rules::builder().lexical().text("mine.toml", text).load()?;
    /// let tools = FunctionToolset::new().layered(rules.clone().into_layer());
    /// let turn = Turn::new(tools).origins(&ReadRecord::new()).labelled(move |tool| rules.label_of_tool(tool));
    /// # let _ = turn;
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn label_of(&self, call: &RuleCall<'_>) -> Option<ReadLabel> {
        let in_force = self.in_force();
        let labels = in_force.sets.iter().filter_map(|set| set.label_of(call));
        labels.reduce(ReadLabel::and)
    }

    /// The label that the files give to the results of a tool.
    #[must_use]
    pub fn label_of_tool(&self, tool: &ToolDefinition) -> Option<ReadLabel> {
        let args = Map::new();
        let mut call = RuleCall::new(tool.name(), &args);
        call.source = tool.source();
        self.label_of(&call)
    }

    /// Returns `true` if a rule or a source of the files is about where values come from, so that what is read has to
    /// be recorded.
    #[must_use]
    pub fn asks_for_origins(&self) -> bool {
        let of_rule = |rule: &Rule| {
            rule.whole.iter().any(|it| it.test.is_of_origin() || it.field == FieldPath::Run)
        };
        let of_file = |file: &RuleFile| !file.sources.is_empty() || file.rules.iter().any(of_rule);
        self.in_force().sets.iter().any(|set| set.files().iter().any(of_file))
    }

    /// Decides about a call. Nothing is counted: a rule with `at_most` speaks as if the call were the first.
    #[must_use]
    pub fn decide(&self, call: &RuleCall<'_>) -> Ruling {
        self.ruled(call, false).0
    }

    /// Decides about a call by the same code, and says which rules nearly spoke. Nothing is counted.
    #[must_use]
    pub fn explain(&self, call: &RuleCall<'_>) -> Explanation {
        let (ruling, near) = self.ruled(call, true);
        Explanation::new(call, ruling, near)
    }

    fn ruled(&self, call: &RuleCall<'_>, explains: bool) -> (Ruling, Vec<NearMiss>) {
        let in_force = self.in_force();
        let mut sets = in_force.sets.iter().rev();
        let Some(latest) = sets.next() else {
            let empty = RuleSet::default();
            return evaluate(&empty, &self.shared.engine, call, explains);
        };
        let is_changed = in_force.is_changed();
        // A warning is told with a reason, so the default has to name one, too.
        let warns = is_changed || in_force.problem.is_some();
        let (mut ruling, near) = evaluate(latest, &self.shared.engine, call, explains || warns);
        for earlier in sets {
            let (before, _) = evaluate(earlier, &self.shared.engine, call, true);
            ruling = stricter(ruling, before);
        }
        if is_changed {
            let accepting = self.shared.sources.accepted.is_some();
            warn(&mut ruling, if accepting { CHANGED_FILE } else { CHANGED });
        }
        tell_people(&mut ruling, self.shared.settings.one_account);
        if let Some(problem) = in_force.problem.as_ref().and_then(|it| it.problems().first()) {
            warn(&mut ruling, &format!("the rules were changed and cannot be loaded: {problem}"));
        }
        (ruling, near)
    }

    /// Decides about a call and counts it where a rule has `at_most`: once for each call, principal and rule.
    ///
    /// `id` is the same for each pass of a call and in each process; the layer takes the call's
    /// [idempotency key](countersign::RunContext::idempotency_key).
    pub async fn decide_and_count(
        &self,
        call: &RuleCall<'_>,
        principal: &str,
        id: &str,
        is_repeat: bool,
    ) -> Ruling {
        let mut ruling = self.decide(call);
        self.count(&mut ruling, principal, id, is_repeat).await;
        ruling
    }

    async fn count(&self, ruling: &mut Ruling, principal: &str, id: &str, is_repeat: bool) {
        for charge in std::mem::take(&mut ruling.charges) {
            let count = Count {
                rule: charge.rule.to_string(),
                principal: principal.to_owned(),
                call: id.to_owned(),
                is_repeat,
                calls: charge.calls,
                within: charge.within,
            };
            let counted = self.shared.settings.counts.count(&count).await;
            let beyond = match counted {
                Ok(true) => continue,
                Ok(false) => charge.beyond,
                Err(error) => {
                    tracing::error!(rule = %charge.rule, %error, "calls could not be counted");
                    Spoke {
                        reason: format!("{}: the calls could not be counted", charge.beyond.reason),
                        ..charge.beyond
                    }
                }
            };
            ruling.decision = ruling.decision.max(beyond.decision);
            ruling.spoke.push(beyond);
            ruling.sort();
        }
    }

    pub(super) fn principal(&self, cx: &RunContext, call: &ToolCall) -> String {
        (self.shared.settings.principal)(cx, call)
    }

    pub(super) fn journal(&self) -> Option<&DecisionJournal> {
        self.shared.settings.journal.as_ref()
    }

    /// The entry of the decision journal for a decision about a call, made now.
    #[must_use]
    pub fn journal_entry(&self, call: &RuleCall<'_>, ruling: &Ruling) -> JournalEntry {
        JournalEntry::new(call, ruling, self.root(), self.digest())
    }

    /// Loads the files again. If they mean something else, the stricter of the rules before and the new ones decides,
    /// until the new ones are [accepted](Self::accept): no reload widens by itself (rule R3).
    ///
    /// # Errors
    /// [`RulesError`] if a file cannot be loaded. The last good rules stay in force, and every ASK says so.
    pub fn reload(&self) -> Result<Reload, RulesError> {
        let loaded = self.shared.sources.load(&self.shared.engine);
        let mut place = self.shared.in_force.write().unwrap_or_else(PoisonError::into_inner);
        let mut sets = place.sets.clone();
        let set = match loaded {
            Ok(set) => set,
            Err(problem) => {
                tracing::error!(%problem, "the rules cannot be loaded: the last good ones stay in force");
                *place = Arc::new(InForce { sets, problem: Some(problem.clone()) });
                return Err(problem);
            }
        };
        let digest = set.digest();
        let changed = sets.last().is_none_or(|last| last.digest() != digest);
        if changed {
            if sets.len() >= MAX_VERSIONS {
                let text = "too many versions of the rules wait for being accepted: accept one, or restart";
                return Err(RulesError::new("rules", text));
            }
            sets.push(Arc::new(set));
        }
        let needs_accepting = sets.len() > 1;
        *place = Arc::new(InForce { sets, problem: None });
        Ok(Reload { changed, digest, needs_accepting })
    }

    /// Looks at the files again, and decides from now on as a process that begins now would: by the files as they are, or,
    /// where a change may allow more, by the stricter of them and what was [accepted](super::RulesBuilder::accepted)
    /// (rule R3). `true` where something has changed since the last look. For a program that runs for hours, before each
    /// call: the files are small, and nothing but their texts is compared.
    ///
    /// # Errors
    /// [`RulesError`] where a file is gone, cannot be read or does not load, or the record of what was accepted of it cannot
    /// be read. Then nothing may be allowed, until a later look finds a file that loads.
    ///
    /// ```
    /// use countersign::decision::ToolDecision;
    /// use countersign_rules::{AcceptedRules, RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let folder = std::env::temp_dir().join(format!("countersign-doc-look-{}", std::process::id()));
    /// let (file, accepted) = (folder.join("rules.toml"), AcceptedRules::at(folder.join("accepted")));
    /// std::fs::create_dir_all(&folder)?;
    /// std::fs::write(&file, "version = 1\n[[rule]]\nid = 'a'\nask = 'pay'")?;
    /// let rules = Rules::builder().file(&file).accepted(accepted.clone()).load()?;
    /// let args = json!({});
    /// let decide = || rules.decide(&RuleCall::new("pay", args.as_object().unwrap())).decision();
    ///
    /// let wider = "version = 1\n[[rule]]\nid = 'a'\nallow = 'pay'";
    /// std::fs::write(&file, wider)?;
    /// assert_eq!((rules.look()?, decide()), (true, ToolDecision::Ask), "the stricter of both");
    /// accepted.accept(&file, Some(wider))?;
    /// assert_eq!((rules.look()?, decide()), (true, ToolDecision::Allow));
    /// assert!(!rules.look()?);
    /// std::fs::remove_file(&file)?;
    /// assert!(rules.look().is_err());
    /// std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn look(&self) -> Result<bool, RulesError> {
        let sources = &self.shared.sources;
        let mut looked = self.shared.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = sources.look(&looked)?;
        if now == *looked {
            return Ok(false);
        }
        if sources.accepted.is_none() {
            *looked = now;
            return self.reload().map(|it| it.changed).or(Ok(true));
        }
        let latest = sources.load(&self.shared.engine)?;
        let before = sources.before(&latest)?;
        *looked = sources.looked(&latest)?;
        let sets = before.into_iter().chain([latest]).map(Arc::new).collect();
        let mut place = self.shared.in_force.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(InForce { sets, problem: None });
        Ok(true)
    }

    /// Puts the latest rules into force alone. A person decides that, having seen the difference.
    /// `digest` is that of the rules that the person has seen; `false` if others were loaded since. With
    /// [`AcceptedRules`](super::AcceptedRules) their files are recorded as accepted.
    pub fn accept(&self, digest: &str) -> bool {
        let mut place = self.shared.in_force.write().unwrap_or_else(PoisonError::into_inner);
        let Some(latest) = place.sets.last().filter(|set| set.digest() == digest).cloned() else {
            return false;
        };
        self.shared.sources.accept(&latest);
        *place = Arc::new(InForce { sets: vec![latest], problem: place.problem.clone() });
        true
    }
}

/// The stricter of two rulings. Where both ask, every question of both has to be answered: one of the rules before may
/// be asked every time.
fn stricter(latest: Ruling, before: Ruling) -> Ruling {
    let decision = latest.decision.max(before.decision);
    let (asks, asked) =
        (latest.decision == ToolDecision::Ask, before.decision == ToolDecision::Ask);
    let mut both = latest;
    both.patterns = match (asks, asked) {
        (true, true) => {
            both.patterns.into_iter().filter(|it| before.patterns.contains(it)).collect()
        }
        (_, true) => before.patterns,
        (_, false) => both.patterns,
    };
    if before.decision == decision && decision != ToolDecision::Allow {
        let is_known = |spoke: &Spoke, known: &[Spoke]| {
            known.iter().any(|it| {
                it.decision == spoke.decision
                    && (&it.rule, &it.digest, &it.part) == (&spoke.rule, &spoke.digest, &spoke.part)
            })
        };
        for mut spoke in before.spoke.into_iter().filter(|spoke| spoke.decision == decision) {
            if !is_known(&spoke, &both.spoke) {
                spoke.reason = format!("{} (by the rules before the change)", spoke.reason);
                both.spoke.push(spoke);
            }
        }
        let pins = before.pins.into_iter().filter(|pin| !both.pins.contains(pin));
        let pins: Vec<_> = pins.collect();
        both.pins.extend(pins);
    }
    both.charges.extend(before.charges.into_iter().filter(|_| decision != ToolDecision::Deny));
    both.charges.dedup();
    both.decision = decision;
    both.sort();
    both
}

/// Says in each question who has to answer it, and what that is worth.
fn tell_people(ruling: &mut Ruling, one_account: bool) {
    let worth =
        if one_account { "; this protects from mistakes, not from this account" } else { "" };
    for spoke in &mut ruling.spoke {
        if let Some(people) = spoke.people.as_ref().filter(|_| spoke.decision == ToolDecision::Ask)
        {
            spoke.reason = format!("{} ({people}{worth})", spoke.reason);
        }
    }
}

/// Says something about the rules in every ASK.
fn warn(ruling: &mut Ruling, what: &str) {
    for spoke in ruling.spoke.iter_mut().filter(|spoke| spoke.decision == ToolDecision::Ask) {
        spoke.reason = format!("{} ({what})", spoke.reason);
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_force = self.in_force();
        let files: Vec<_> = in_force
            .sets
            .last()
            .map(|set| {
                set.files().iter().map(|file| json!([file.name, file.rules.len()])).collect()
            })
            .unwrap_or_default();
        f.debug_struct("Rules").field("files", &files).finish_non_exhaustive()
    }
}
