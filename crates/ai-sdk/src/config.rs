//! The settings of chats that a response is made with.

use std::sync::Arc;

use super::grant;
use super::principal::Principal;
use super::storage::ChatStore;
use super::version::ClientVersion;
use countersign::agent::{Agent, Run, RunError};

/// The settings of [`Chats`](super::Chats) that a response is made with.
#[derive(Clone)]
pub(super) struct ChatConfig {
    pub(super) agent: Agent,
    pub(super) store: ChatStore,
    pub(super) client: ClientVersion,
    /// `true` if the chat asks for approvals and accepts them; `false` where another surface over the ledger does.
    pub(super) approvals: bool,
    pub(super) error_text: Arc<ErrorText>,
    pub(super) each_run: Arc<EachRun>,
}

impl ChatConfig {
    /// The settings for the responses of one chat, whose calls are made in a session of their own (rule G1).
    pub(super) fn in_chat(&self, principal: &Principal, chat: &str) -> Self {
        let mut config = self.clone();
        if let Some(ledger) = config.agent.configured_ledger().cloned() {
            let ledger = ledger.session(grant::session(principal, chat));
            config.agent = config.agent.ledger(ledger);
        }
        config
    }
}

/// Prepares a run for a principal and a chat id, for example with dependencies.
type EachRun = dyn for<'a> Fn(Run<'a>, &Principal, &str) -> Run<'a> + Send + Sync;

/// The text that the client is sent for the error of a run.
type ErrorText = dyn Fn(&RunError) -> String + Send + Sync;
