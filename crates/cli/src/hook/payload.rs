//! The payload that a client writes to the hook's stdin.
//!
//! We read strictly, since the client runs what it reads in the payload. If we read something else (of a key that is
//! there twice, a number with more digits than a float has, a NUL in a path), we could approve one call while the
//! client runs another.
//!
//! We refuse a missing field where it matters: we would judge a call without `cwd` by another directory than it runs
//! in. A session may be missing. Then an approval cannot wait for a later call.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::clients::Client;
use countersign::args::Args;

/// The maximum size of a payload in bytes: 4 MiB.
pub(crate) const MAX_PAYLOAD: usize = 4 << 20;

/// The maximum length of the names of events and tools in bytes. They are a part of reasons, which the client has to
/// read.
const MAX_NAME: usize = 1 << 10;

/// The event that a client reports.
pub(crate) enum Event {
    /// A tool is about to be called.
    Before(HookCall),
    /// A tool call has ended.
    After(HookCall, Ending),
    /// A session is over.
    End { session: String },
}

/// The end of a call, as far as the client reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Returned,
    Failed,
}

impl Ending {
    /// The end of a call, in one word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed => "failed",
        }
    }
}

/// A tool call, in the client's own names.
#[derive(Debug, Clone)]
pub(crate) struct HookCall {
    pub(crate) client: Client,
    /// The event that the call came with.
    pub(crate) event: String,
    /// `None` where the client names no session: then an approval cannot be matched with a later call.
    pub(crate) session: Option<String>,
    /// The sub-agent that calls, if the client says so.
    pub(crate) agent: Option<String>,
    /// The id of the call, in clients that have one.
    pub(crate) id: Option<String>,
    pub(crate) directory: PathBuf,
    pub(crate) tool: String,
    pub(crate) args: Map<String, Value>,
    /// The MCP server and tool, where the client gives them as data.
    pub(crate) server: Option<(String, Option<String>)>,
    /// `true` if the payload says in any way that the tool is one of an MCP server: then it is never the client's own.
    pub(crate) is_of_server: bool,
    /// The payload as it was read.
    pub(crate) payload: String,
}

/// The event of a payload that cannot be used, as far as it is known, and the problem.
pub(crate) struct Unusable {
    pub(crate) event: Option<String>,
    pub(crate) problem: String,
}

/// A payload as [`Hook::read`](super::Hook::read) has read it, once for everything that is asked about it.
///
/// One that cannot be used is a payload, too: its reply is a denial.
pub struct HookPayload(pub(crate) Result<Event, Unusable>);

impl HookPayload {
    /// Returns `true` if the payload only reports that a call or a session has ended: then nothing can be denied any more.
    ///
    /// A program that fails to answer such a payload in time must not say that the call was denied: it has run.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Hook};
    ///
    /// let hook = Hook::new(Client::Gemini);
    /// assert!(hook.read(br#"{"hook_event_name": "SessionEnd", "session_id": "s"}"#).is_report());
    /// // A payload that cannot be read may be about a call that will run.
    /// assert!(!hook.read(br#"{"hook_event_name": "AfterTool""#).is_report());
    /// ```
    #[must_use]
    pub fn is_report(&self) -> bool {
        matches!(self.0, Ok(Event::After(..) | Event::End { .. }))
    }

    /// The directory that the client names for the call; `None` for a payload that is about no call.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.call().map(|call| call.directory.as_path())
    }

    /// The call that the payload is about.
    pub(crate) fn call(&self) -> Option<&HookCall> {
        match &self.0 {
            Ok(Event::Before(call) | Event::After(call, _)) => Some(call),
            Ok(Event::End { .. }) | Err(_) => None,
        }
    }
}

impl fmt::Debug for HookPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookPayload").field("is_report", &self.is_report()).finish_non_exhaustive()
    }
}

/// Reads a payload. `expected` is the event that the command line names, for clients that leave it out.
pub(crate) fn read(
    client: Client,
    payload: &[u8],
    expected: Option<&str>,
) -> Result<Event, Unusable> {
    let unusable = |problem: &str| Unusable {
        event: expected.map(str::to_owned),
        problem: format!("the hook's payload cannot be used: {problem}"),
    };
    if payload.len() > MAX_PAYLOAD {
        return Err(unusable(&format!("it has more than {MAX_PAYLOAD} bytes")));
    }
    let text = std::str::from_utf8(payload).map_err(|_| unusable("it is not UTF-8"))?;
    // Strict: the client may read a repeated key, or a number that loses digits, in another way than we
    // do.
    let payload = Args::parse(text).map_err(|error| {
        unusable(error.to_string().trim_start_matches("the arguments are not valid JSON: "))
    })?;
    let fields = payload.as_map();
    let event = event(client, fields, expected).map_err(|problem| unusable(&problem))?;
    let kind = &client.spec().payload;
    let problem = |problem: String| Unusable { event: Some(event.clone()), problem };
    let refused = |what: String| problem(format!("the hook's payload cannot be used: {what}"));
    if event == kind.end {
        let session = text_of(fields, kind.session).map_err(refused)?;
        let session = session.ok_or_else(|| refused(format!("`{}` is missing", kind.session)))?;
        return Ok(Event::End { session });
    }
    let after = kind.after.contains(&event.as_str());
    if event != kind.before && !after {
        return Err(refused(format!(
            "the event `{}` is not one that countersign answers for {client}; configure it for `{}`",
            event.escape_debug(),
            kind.before
        )));
    }
    let call = call(client, &event, fields, text).map_err(refused)?;
    Ok(match after {
        true => {
            let failed =
                event.ends_with("Failure") || fields.get("error").is_some_and(|it| !it.is_null());
            Event::After(call, if failed { Ending::Failed } else { Ending::Returned })
        }
        false => Event::Before(call),
    })
}

/// The name of the event. Where a client leaves it out, the shape of the payload has to say it.
///
/// The command line counts only where the payload is silent; where both speak, they have to agree.
fn event(
    client: Client,
    fields: &Map<String, Value>,
    expected: Option<&str>,
) -> Result<String, String> {
    let kind = &client.spec().payload;
    for name in kind.event {
        if let Some(event) = text_of(fields, name)? {
            let event = short(name, event)?;
            return match expected {
                Some(expected) if expected != event => {
                    Err(format!("it is a `{}`, and not a `{expected}`", event.escape_debug()))
                }
                _ => Ok(event),
            };
        }
    }
    if let Some(expected) = expected {
        return Ok(expected.to_owned());
    }
    match kind.unnamed {
        Some(of_shape) => Ok(of_shape(fields).to_owned()),
        None => Err(format!("`{}` is missing", kind.event.first().unwrap_or(&"event"))),
    }
}

fn call(
    client: Client,
    event: &str,
    fields: &Map<String, Value>,
    payload: &str,
) -> Result<HookCall, String> {
    let kind = &client.spec().payload;
    let needed =
        |name: &str| text_of(fields, name)?.ok_or_else(|| format!("`{name}` is missing or empty"));
    let directory = PathBuf::from(needed("cwd")?);
    if !directory.is_absolute() {
        return Err("`cwd` is not an absolute path".to_owned());
    }
    let args = match fields.get(kind.args) {
        Some(Value::Object(args)) => args.clone(),
        Some(Value::String(text)) if kind.args_as_text => {
            Args::parse(text).map_err(|error| format!("`{}`: {error}", kind.args))?.as_map().clone()
        }
        Some(_) => return Err(format!("`{}` is not an object", kind.args)),
        None => return Err(format!("`{}` is missing", kind.args)),
    };
    Ok(HookCall {
        client,
        event: event.to_owned(),
        session: text_of(fields, kind.session)?,
        agent: text_of(fields, "agent_id")?,
        id: kind.call.map(|name| text_of(fields, name)).transpose()?.flatten(),
        directory,
        tool: short(kind.tool, needed(kind.tool)?)?,
        args,
        server: server(fields)?,
        is_of_server: fields.iter().any(|(name, value)| is_of_server(name, value)),
        payload: payload.to_owned(),
    })
}

/// The MCP server that a tool belongs to: some clients name the server, others the server and the tool.
fn server(fields: &Map<String, Value>) -> Result<Option<(String, Option<String>)>, String> {
    let object = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("`{name}` is not an object")),
    };
    if let Some(context) = object("mcp_context")? {
        let server = text_of(context, "server_name")?.ok_or("`mcp_context` names no server")?;
        return Ok(Some((server, text_of(context, "tool_name")?)));
    }
    match object("mcp_server")? {
        Some(server) => Ok(text_of(server, "name")?.map(|name| (name, None))),
        None => Ok(None),
    }
}

/// Tells whether a field of a payload is about an MCP server, also one of a name that this version does not know.
fn is_of_server(name: &str, value: &Value) -> bool {
    let begins = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("mcp"));
    begins && !matches!(value, Value::Null | Value::Bool(false))
}

/// A name, unless it is too long.
fn short(name: &str, text: String) -> Result<String, String> {
    match text.len() {
        0..=MAX_NAME => Ok(text),
        _ => Err(format!("`{name}` has more than {MAX_NAME} bytes")),
    }
}

/// A text that is not empty. Another type is an error: the client means something that this version does not know.
fn text_of(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.contains('\0') => Err(format!("`{name}` has a NUL")),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is not a text")),
    }
}
