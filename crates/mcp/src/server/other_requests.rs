//! Requests that have no result for the model: completions, subscriptions to resources, and the level of log messages.
//!
//! | request | is judged | without an approval |
//! |---|---|---|
//! | `completion/complete` | as a call of that name | there are no completions |
//! | `resources/subscribe` | as a call of that name | an error |
//! | `resources/unsubscribe`, `logging/setLevel` | no: they take away, or change what the server writes | |
//!
//! We ask no person, as a client completes with every key. If a layer asks about such a request, we refuse
//! it (rule M1).

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ClientRequest, CompleteRequestMethod, CompleteRequestParams, CompleteResult, ProtocolVersion,
    Request, ResultType, SetLevelRequestMethod, SubscribeRequestMethod, SubscribeRequestParams,
    UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::requests::Requests;
use crate::client::toolset::{COMPLETE, SUBSCRIBE};
use crate::downstream::{Downstream, Raw, lock};
use countersign::call::ToolCall;
use countersign::outcome::Outcome;

impl Requests {
    /// Judges a request as a call, and runs it if no layer asks or denies; `None` where one does.
    async fn unasked(&self, tool: &str, args: Value) -> Result<Option<Value>, ErrorData> {
        let shared = &self.shared;
        let _in_flight = Arc::clone(&shared.in_flight);
        if shared.stopping.is_cancelled() {
            return Ok(None);
        }
        let downstream = Downstream::new(None, None);
        let turn = shared.turn().deps(Arc::clone(&downstream));
        let report = match turn.run(vec![ToolCall::new("beside", tool, args)]).await {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(target: "countersign::mcp", server = &*shared.name, error = %error.error(), "a request has failed");
                return Ok(None);
            }
        };
        let Some(call) = report.calls().first() else { return Ok(None) };
        match (call.outcome(), downstream.take()) {
            (outcome @ Outcome::Returned(_), _) => Ok(outcome.content()),
            (Outcome::Failed(_), Some(Raw::Error(error))) => Err(error),
            _ => Ok(None),
        }
    }

    pub(crate) async fn completed(
        &self,
        params: CompleteRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let none = ErrorData::method_not_found::<CompleteRequestMethod>();
        self.upstream_with(cx, |it| it.completions.is_some(), none).await?;
        let mut args = json!(params);
        if let Some(args) = args.as_object_mut() {
            args.remove("_meta");
        }
        let completed = self.unasked(COMPLETE, args).await?;
        let mut result: CompleteResult =
            completed.and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default();
        result.result_type = Some(ResultType::COMPLETE);
        Ok(result)
    }

    pub(crate) async fn subscribed(
        &self,
        params: SubscribeRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let none = ErrorData::method_not_found::<SubscribeRequestMethod>();
        let upstream = self.upstream_with(cx, subscribes, none).await?;
        let subscriber = self.subscriber(&upstream.toolset.connection);
        if !subscriber.has_room() {
            return Err(ErrorData::invalid_params("too many resources are subscribed to", None));
        }
        match self.unasked(SUBSCRIBE, json!({"uri": params.uri})).await? {
            Some(_) => subscriber.join(params.uri),
            None => {
                let text = "This subscription is not allowed, and no one is asked about one.";
                return Err(ErrorData::invalid_request(text, None));
            }
        }
        Ok(())
    }

    pub(crate) async fn unsubscribed(
        &self,
        params: UnsubscribeRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let none = ErrorData::method_not_found::<UnsubscribeRequestMethod>();
        let upstream = self.upstream_with(cx, subscribes, none).await?;
        self.subscriber(&upstream.toolset.connection).leave(&params.uri).await;
        Ok(())
    }

    /// Sets which log messages this client gets. Those of a call reach the client of that call, where it is certain which
    /// one it is.
    #[expect(deprecated, reason = "clients of earlier revisions send it")]
    pub(crate) async fn level_set(
        &self,
        params: rmcp::model::SetLevelRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let none = ErrorData::method_not_found::<SetLevelRequestMethod>();
        let newest = cx.protocol_version().is_some_and(|it| it >= ProtocolVersion::V_2026_07_28);
        let upstream = self.upstream_with(cx, |it| it.logging.is_some() && !newest, none).await?;
        let severity = params.level as usize;
        *lock(&self.level) = Some(severity);
        let params = rmcp::model::SetLevelRequestParams::new(params.level);
        let request = ClientRequest::SetLevelRequest(Request::new(params));
        upstream.toolset.connection.write_logs(severity, request).await;
        Ok(())
    }
}

fn subscribes(offered: &rmcp::model::ServerCapabilities) -> bool {
    offered.resources.as_ref().and_then(|it| it.subscribe) == Some(true)
}
