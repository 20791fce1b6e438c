//! The decision of a stack about a call, for tests of policies.

use std::fmt;

use crate::args::Args;
use crate::call::{Said, ToolCall};
use crate::decision::{Decision, Question, ToolDecision};
use crate::layer::ToolMiddlewareExt as _;
use crate::middleware::decide_fn;
use crate::outcome::Outcome;
use crate::tools::{Tools, ToolsExt as _};
use crate::turn::{CallReport, Turn};

/// The name of the outermost layer. Its ASK keeps the tool from running and lets every layer inside decide, which a DENY
/// would not.
const HOLDS: &str = "countersign::testing::decide";

/// The decision of a stack about one call, and the layers that decided so: the result of [`decide`].
///
/// `Display` is one line, for `assert_eq!`: `ALLOW`, `ASK by Changes: deletes a file`, `DENY by Secrets: not .env`.
///
/// Test a policy by a table, one line for each call, with the whole text of the decision: if a rule asks for another
/// reason than before, a person should see that.
#[derive(Debug, Clone)]
pub struct StackDecision {
    decision: ToolDecision,
    by: Vec<(String, String)>,
    args: Args,
    questions: Vec<Question>,
    said: Vec<Said>,
}

impl StackDecision {
    /// The strictest decision of all layers, and of the tool's own definition.
    #[must_use]
    pub fn decision(&self) -> ToolDecision {
        self.decision
    }

    /// The names of the layers that ask or deny, outermost first; empty for an ALLOW. A tool that requires an approval
    /// by its definition is named `tool`.
    #[must_use]
    pub fn by(&self) -> Vec<&str> {
        self.by.iter().map(|(layer, _)| layer.as_str()).collect()
    }

    /// The reasons of these layers, joined by `; `.
    #[must_use]
    pub fn reason(&self) -> String {
        let reasons = self.by.iter().map(|(_, reason)| reason.as_str());
        reasons.filter(|reason| !reason.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// The arguments that the call would run with, after all layers have changed them.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// The questions that a person would be asked, with their keys, pins and metadata.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The decision of each layer, in order, with those that allow.
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    fn of(call: &CallReport) -> Result<Self, String> {
        let is_own = |layer: &str| layer == HOLDS;
        let questions = call.asked().iter().filter(|question| !is_own(question.layer()));
        let questions: Vec<_> = questions.cloned().collect();
        let (decision, by) = match (call.outcome(), call.denied_by()) {
            (Outcome::Denied(denied), Some(layer)) => {
                (ToolDecision::Deny, vec![(layer.to_owned(), denied.message.clone())])
            }
            (Outcome::Deferred(_), _) if questions.is_empty() => (ToolDecision::Allow, Vec::new()),
            (Outcome::Deferred(_), _) => {
                let layers = questions.iter();
                let layers = layers.map(|it| (it.layer().to_owned(), it.reason().to_owned()));
                (ToolDecision::Ask, layers.collect())
            }
            (outcome, _) => {
                let text = outcome.text().unwrap_or_default();
                return Err(format!(
                    "the stack did not decide about `{}`: {} ({text})",
                    call.call().name(),
                    outcome.word()
                ));
            }
        };
        let said = call.said().iter().filter(|said| !is_own(&said.layer)).cloned().collect();
        Ok(Self { decision, by, args: call.args().clone(), questions, said })
    }
}

impl fmt::Display for StackDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.decision {
            ToolDecision::Allow => "ALLOW",
            ToolDecision::Ask => "ASK",
            ToolDecision::Deny => "DENY",
        })?;
        if !self.by.is_empty() {
            write!(f, " by {}", self.by().join(", "))?;
        }
        match self.reason() {
            reason if reason.is_empty() => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

/// Returns the decision of this stack about this call, and the layers that decide so. The tool never runs, also where
/// the call is allowed, so that a test can name any call.
///
/// The call passes the whole stack, as it would in a run. Layers with an effect of their own, such as a rate limit or a
/// count, have it here, too.
///
/// ```
/// use countersign::testing::decide;
/// use countersign::{Decision, FunctionToolset, ToolCall, ToolError, ToolsExt, decide_fn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
///
/// async fn delete_file(file: File) -> Result<String, ToolError> {
///     panic!("a test of the policy does not delete {}", file.path)
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let policy = decide_fn(|_, call: &ToolCall| match call.args().str("path") {
///     Some(path) if path.ends_with(".tmp") => Decision::allow(),
///     Some(".env") => Decision::deny("secrets stay"),
///     _ => Decision::ask("deletes a file"),
/// });
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("delete_file", "Deletes a file", delete_file))
///     .layered(policy.named("deletions"));
///
/// let delete = |path: &str| ToolCall::new("c1", "delete_file", json!({"path": path}));
/// assert_eq!(decide(&tools, delete("a.tmp")).await?.to_string(), "ALLOW");
/// assert_eq!(decide(&tools, delete("a.md")).await?.to_string(), "ASK by deletions: deletes a file");
/// assert_eq!(decide(&tools, delete(".env")).await?.by(), ["deletions"]);
/// # Ok::<(), String>(()) }).unwrap();
/// ```
///
/// # Errors
/// Says why no layer was asked: the tool does not exist, its arguments do not fit, the stack is set up wrongly, or a
/// layer answered the call itself.
pub async fn decide(tools: &Tools, call: ToolCall) -> Result<StackDecision, String> {
    decide_in(tools, call, |turn| turn).await
}

/// As [`decide`], in a turn with settings of its own: the dependencies that layers read, the name of the agent, the run.
///
/// ```
/// use countersign::testing::decide_in;
/// use countersign::{Decision, FunctionToolset, ToolCall, ToolError, ToolsExt, decide_fn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct NoArgs {}
///
/// struct User(&'static str);
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("deploy", "Deploys", async |_: NoArgs| Ok::<_, ToolError>("deployed")))
///     .layered(decide_fn(|_, call: &ToolCall| match call.context().deps::<User>() {
///         Ok(User("ann")) => Decision::allow(),
///         _ => Decision::deny("only ann deploys"),
///     }));
/// let deploy = || ToolCall::new("c1", "deploy", json!({}));
/// assert_eq!(decide_in(&tools, deploy(), |turn| turn.deps(User("ann"))).await?.to_string(), "ALLOW");
/// assert_eq!(decide_in(&tools, deploy(), |turn| turn.deps(User("bob"))).await?.reason(), "only ann deploys");
/// # Ok::<(), String>(()) }).unwrap();
/// ```
///
/// # Errors
/// As those of [`decide`].
pub async fn decide_in(
    tools: &Tools,
    call: ToolCall,
    set: impl FnOnce(Turn) -> Turn,
) -> Result<StackDecision, String> {
    // An ASK does not end a pass, so that every layer inside decides; the gate then defers the call.
    let holds = decide_fn(|_, _| Decision::ask("")).named(HOLDS);
    let turn = set(Turn::new(tools.clone().layered(holds.into_layer()))).explain();
    let report = match turn.run(vec![call]).await {
        Ok(report) => report,
        Err(error) => return Err(error.to_string()),
    };
    let call = report.calls().first().ok_or("the turn has no call")?;
    StackDecision::of(call)
}
