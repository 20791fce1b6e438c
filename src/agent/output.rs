//! The outputs that a run may end with.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::call::ToolDefinition;
use crate::deferred::DeferredToolRequests;

/// The default name of the output tool, which the model calls with a structured answer.
const FINAL_RESULT: &str = "final_result";

/// The name of the argument that holds an answer that is no object, as the arguments of a call are always an object.
const WRAPPED: &str = "response";

/// The outputs that a run may end with: see [`text`] and [`structured`].
///
/// ```
/// use countersign::agent::{structured, text};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Report { deleted: Vec<String> }
///
/// let output = text(); // a text, the default
/// let output = text().or_deferred(); // or pending calls
/// let output = structured::<Report>(); // a value that fits the type
/// let output = structured::<Report>().or_text().or_deferred();
/// # let _ = output;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Output {
    pub(super) text: bool,
    pub(super) structured: Option<Structured>,
    pub(super) deferred: bool,
}

/// The run ends with text. This is the default.
///
/// ```
/// use countersign::agent::text;
/// assert_eq!(text().json_schema(), serde_json::json!({"anyOf": [{"type": "string"}]}));
/// ```
pub fn text() -> Output {
    Output { text: true, structured: None, deferred: false }
}

/// The run ends with a value that deserialises as `T`. The model gives it by calling a tool named `final_result` whose
/// arguments have the schema of `T`. A value that does not fit goes back to the model, at the cost of a
/// [retry](crate::Agent::max_retries) of that tool.
///
/// Other calls in the same response run if they need no decision. Those that would be deferred are not executed, say so
/// in their results, and are [named in the report](crate::turn::CallReport::is_skipped). If one of the calls has to be
/// retried, the answer is dropped and has to be given again.
///
/// ```
/// use countersign::agent::structured;
/// use countersign::model::ModelResponse;
/// use countersign::testing::ScriptedModel;
/// use countersign::{Agent, FunctionToolset, ToolCall, schemars};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Report { deleted: u32 }
///
/// let answer = |deleted| ModelResponse::calls([ToolCall::new("c1", "final_result", json!({"deleted": deleted}))]);
/// // The first answer does not fit, goes back to the model, and costs a retry.
/// let model = ScriptedModel::new([answer(json!("two")), answer(json!(2))]);
/// let run = Agent::new(model, FunctionToolset::new()).output(structured::<Report>()).run_sync("Clean up")?;
/// assert_eq!(run.structured::<Report>().map(|report| report.deleted), Some(2));
/// # Ok::<(), countersign::agent::RunError>(())
/// ```
pub fn structured<T: DeserializeOwned + JsonSchema + 'static>() -> Output {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let validate = |value: &Value| serde_path_to_error::deserialize::<_, T>(value).map(drop);
    let structured = Structured::new(schema, move |value| {
        // The message of the deserialiser may quote values (rule S2).
        validate(value).map_err(|error| match error.path().to_string().as_str() {
            "." => "it does not have the right shape".to_owned(),
            path => format!("`{path}` does not fit"),
        })
    });
    Output { text: false, structured: Some(structured), deferred: false }
}

impl Output {
    /// Also allows the run to end with deferred calls that are not answered:
    /// [`RunOutput::Deferred`](crate::agent::RunOutput::Deferred).
    pub fn or_deferred(mut self) -> Self {
        self.deferred = true;
        self
    }

    /// Sets the name of the output tool; `final_result` by default.
    ///
    /// You need another name if a tool of your program is called `final_result`. Without a structured output the
    /// name has no effect.
    pub fn named(mut self, tool: impl Into<Arc<str>>) -> Self {
        if let Some(structured) = &mut self.structured {
            structured.name = tool.into();
        }
        self
    }

    /// Also allows the run to end with text.
    pub fn or_text(mut self) -> Self {
        self.text = true;
        self
    }
}

impl Output {
    /// The JSON Schema of the output: any of the allowed kinds.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        let text = self.text.then(|| json!({"type": "string"}));
        let structured = self.structured.as_ref().map(|it| it.schema.clone());
        let deferred =
            self.deferred.then(|| schemars::schema_for!(DeferredToolRequests).to_value());
        let any: Vec<_> = text.into_iter().chain(structured).chain(deferred).collect();
        json!({"anyOf": any})
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("text", &self.text)
            .field("structured", &self.structured.is_some())
            .field("deferred", &self.deferred)
            .finish()
    }
}

type Fits = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

/// The output tool of a structured answer, and the check of its value.
#[derive(Clone)]
pub(super) struct Structured {
    name: Arc<str>,
    schema: Value,
    wrapped: bool,
    fits: Arc<Fits>,
}

impl Structured {
    fn new(
        schema: Value,
        fits: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let wrapped = schema.get("type").is_none_or(|kind| kind != "object");
        let schema = if wrapped { wrap(schema) } else { schema };
        Self { name: FINAL_RESULT.into(), schema, wrapped, fits: Arc::new(fits) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The definition of the output tool.
    pub(super) fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(Arc::clone(&self.name), self.schema.clone())
            .with_description("Gives the final answer, and ends the conversation.")
    }

    /// The answer in the arguments of a call, checked.
    pub(super) fn read(&self, args: &Args) -> Result<Value, String> {
        let value = match self.wrapped {
            false => args.to_value(),
            true => args.get(WRAPPED).cloned().ok_or(format!("`{WRAPPED}` is missing"))?,
        };
        (self.fits)(&value)?;
        Ok(value)
    }
}

/// The schema of an object with the answer as its only property. `$schema` and `$defs` move to the outer schema, since
/// references are relative to the root.
fn wrap(mut inner: Value) -> Value {
    let mut outer = Map::from_iter([("type".to_owned(), json!("object"))]);
    if let Some(inner) = inner.as_object_mut() {
        for key in ["$schema", "$defs"] {
            outer.extend(inner.remove_entry(key));
        }
    }
    outer.insert("properties".to_owned(), json!({WRAPPED: inner}));
    outer.insert("required".to_owned(), json!([WRAPPED]));
    let mut outer = Value::Object(outer);
    refer_to_wrapped(&mut outer);
    outer
}

/// Redirects `#` references: a recursive type refers to its own schema as the root.
///
/// A schema `{"type": "object", "properties": {"next": {"$ref": "#"}}}` says that a list continues with a list. Wrapped,
/// `#` would be the wrapper, so each such reference is turned to the place of the inner schema.
fn refer_to_wrapped(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(to) if key == "$ref" && to == "#" => {
                        *to = format!("#/properties/{WRAPPED}");
                    }
                    value => refer_to_wrapped(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(refer_to_wrapped),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
