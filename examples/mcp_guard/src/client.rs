//! A client as others are: it lists and calls tools, and shows the forms that it is sent.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::DuplexStream;

/// A scripted person at the client, who gives the next answer to a form.
#[derive(Clone, Default)]
struct Person {
    answer: Arc<Mutex<&'static str>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("mcp_guard", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = *self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            let lines = message.lines().filter(|line| !line.trim().is_empty());
            lines.for_each(|line| println!("  ? {line}"));
            println!("  ? the person at the client: {answer}");
        }
        let content = json!({"decision": answer});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

/// A connected client.
pub(crate) struct Client {
    service: RunningService<RoleClient, Person>,
}

impl Client {
    pub(crate) async fn connect(
        stream: DuplexStream,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let service = Person::default().serve(tokio::io::split(stream)).await?;
        Ok(Self { service })
    }

    /// Calls a tool, and prints the result. A form is answered with `answer`.
    pub(crate) async fn call(
        &self,
        tool: &'static str,
        arguments: Value,
        answer: &'static str,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        *self.service.service().answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        println!("{tool} {arguments}");
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.service.peer().call_tool(params).await?;
        let result = json!(result);
        let text = result["content"][0]["text"].as_str().unwrap_or_default().trim_end();
        let word = if result["isError"] == true { "error" } else { "result" };
        println!("  {word}: {text}\n");
        Ok(())
    }

    pub(crate) async fn end(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.service.cancel().await?;
        Ok(())
    }
}
