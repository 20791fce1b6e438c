//! The rules of a running guard, whose files are looked at before each call.
//!
//! A guard runs for as long as its client does. Meanwhile a file of rules may be changed by the person, who expects that
//! the change counts, or by a tool, which must not gain by it. So the guard decides each call by the files as they are at
//! that moment, and by what a person has accepted of them (rule R3).

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use countersign::error::with_causes;
use countersign::ledger::Project;
use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
use countersign_rules::{AcceptedRules, Rules, RulesBuilder, RulesError};

use crate::output::CommandError;
use crate::project;

/// Rules that decide by their files as they are.
#[derive(Clone)]
pub(super) struct CurrentRules {
    rules: Rules,
    to_come: Option<RulesToCome>,
    server: String,
    /// The working directory, and why it is no project, where no project was given. We resolve it once, like the root of
    /// the rules.
    no_project: Option<(PathBuf, &'static str)>,
    /// `true` if one account can answer in the name of anyone.
    one_account: bool,
}

/// The usual file of a guard that has begun without rules, which a person may write while it runs.
#[derive(Clone)]
pub(super) struct RulesToCome {
    file: PathBuf,
    accepted: AcceptedRules,
    /// The rules without the file.
    builder: Box<RulesBuilder>,
    found: Arc<OnceLock<Rules>>,
}

impl RulesToCome {
    pub(super) fn new(file: PathBuf, accepted: AcceptedRules, builder: RulesBuilder) -> Self {
        Self { file, accepted, builder: Box::new(builder), found: Arc::default() }
    }

    /// The rules with the file, once it is there, and whether it was not there before. We have recorded that there was
    /// none, so a file that allows something is a change that a person has to accept.
    fn rules(&self) -> Result<Option<(&Rules, bool)>, RulesError> {
        if let Some(found) = self.found.get() {
            return Ok(Some((found, false)));
        }
        if !self.accepted.is_there(&self.file)? {
            return Ok(None);
        }
        let rules = RulesBuilder::clone(&self.builder).file(&self.file).load()?;
        Ok(Some((self.found.get_or_init(|| rules), true)))
    }
}

impl CurrentRules {
    /// # Errors
    /// [`CommandError`] where the rules are about a project, and there is none.
    pub(super) fn new(
        (rules, to_come): (Rules, Option<RulesToCome>),
        server: String,
        undecided_root: Option<&Path>,
        one_account: bool,
    ) -> Result<Self, CommandError> {
        let no_project =
            undecided_root.and_then(|root| Some((root.to_owned(), Project::too_wide(root)?)));
        let current = Self { rules, to_come, server, no_project, one_account };
        current.check(&current.rules)?;
        current.tell(&current.rules);
        Ok(current)
    }

    /// The rules, if they ask about the origins of values. Then the guard has to record what the model
    /// reads.
    pub(super) fn asking_for_origins(&self) -> Option<Rules> {
        Some(self.rules.clone()).filter(Rules::asks_for_origins)
    }

    fn check(&self, rules: &Rules) -> Result<(), CommandError> {
        let Some((root, why)) = &self.no_project else { return Ok(()) };
        project::check(rules, root, why)
    }

    /// Says in the log which rules can never be about this server, and what demands for certain people are worth on a store
    /// of one account.
    fn tell(&self, rules: &Rules) {
        let server = &*self.server;
        let silent = rules.never_about_server(server);
        if !silent.is_empty() {
            let silent = silent.join(", ");
            tracing::warn!(target: "countersign::rules", server, rules = silent, "some rules can never be about this server: a rule that allows names its tools as `mcp:SERVER/TOOL`");
        }
        let of_people = rules.of_people();
        if self.one_account && !of_people.is_empty() {
            let named = of_people.join(", ");
            tracing::warn!(target: "countersign::rules", rules = named, "the store belongs to one account, which can answer in any name: `people`, `not_the_requester` and `approvers` protect from mistakes, not from this account");
        }
    }

    /// The rules with what has changed in the files; otherwise why nothing can be allowed.
    fn look(&self) -> Result<&Rules, String> {
        let problem = |error: RulesError| with_causes(&error);
        let found = match &self.to_come {
            Some(to_come) => to_come.rules().map_err(problem)?,
            None => None,
        };
        let (rules, is_new) = found.unwrap_or((&self.rules, false));
        if rules.look().map_err(problem)? || is_new {
            let server = &*self.server;
            match rules.needs_accepting() {
                true => {
                    tracing::warn!(target: "countersign::rules", server, "the rules were changed: the stricter of both decides until `countersign rules accept` is run on a terminal");
                }
                false => {
                    tracing::info!(target: "countersign::rules", server, "the rules were changed, and count from now on");
                }
            }
            if is_new && rules.asks_for_origins() {
                tracing::warn!(target: "countersign::rules", server, "the rules are about the origins of values, which are not recorded yet: start the client again");
            }
            self.tell(rules);
        }
        self.check(rules).map_err(|error| match error {
            CommandError::Usage(problem) | CommandError::Store(problem) => problem,
        })?;
        Ok(rules)
    }
}

impl ToolMiddleware for CurrentRules {
    fn name(&self) -> Cow<'static, str> {
        self.rules.name()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match self.look() {
            Ok(rules) => rules.before_tool_call(cx, call).await,
            Err(problem) => {
                tracing::error!(target: "countersign::rules", server = &*self.server, problem, "no call is allowed, as the rules cannot be used");
                Decision::deny(format!(
                    "The rules cannot be used, so nothing is allowed: {problem}."
                ))
                .with_key("rules")
            }
        }
    }
}
