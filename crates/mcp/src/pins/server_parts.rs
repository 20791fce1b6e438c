//! The parts of a server as they are now, for a person who accepts or denies its tools one by one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::accepted::PartStanding;
use super::parts::{self, Difference, PinKind};
use super::{Pins, layer};
use crate::McpError;
use crate::client::toolset::{ListedTools, McpToolset};
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Decided, Ledger, LedgerError};

/// A server that was started to be looked at, with all that a person decides about: see
/// [`Guard::look`](crate::Guard::look).
///
/// A [`Proposal`](super::Proposal) is accepted or denied as a whole. Here a person chooses among the tools. The chosen
/// ones are one proposal in the ledger, which is shown, decided and kept like any other.
pub struct ServerParts {
    pins: Arc<Pins>,
    tools: Arc<ListedTools>,
    offered: Vec<OfferedTool>,
}

/// A tool as its server offers it now.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    name: String,
    definition: Value,
    standing: ToolStanding,
}

/// The standing of a tool: what a person has decided about it as it is now.
///
/// Exhaustive on purpose: a person has to be shown every standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStanding {
    /// It is as it was accepted.
    Accepted,
    /// It was denied as it is now.
    Denied,
    /// It was accepted, and has changed since.
    Changed,
    /// It was never accepted.
    New,
}

impl OfferedTool {
    /// Its name at the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its whole definition, which is what is accepted.
    #[must_use]
    pub fn definition(&self) -> &Value {
        &self.definition
    }

    /// The server's words about it; empty where there are none.
    #[must_use]
    pub fn description(&self) -> &str {
        self.definition.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// The standing of the tool: what a person has decided about it as it is now.
    #[must_use]
    pub fn standing(&self) -> ToolStanding {
        self.standing
    }

    /// Tells whether the server calls it reading (`readOnlyHint: true`). The server's word allows nothing (rule M4).
    #[must_use]
    pub fn is_called_reading(&self) -> bool {
        self.definition.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true))
    }
}

impl ServerParts {
    /// Starts the server, and reads what it offers and what was accepted of it.
    pub(crate) async fn of(pins: Arc<Pins>, toolset: &McpToolset) -> Result<Self, McpError> {
        let tools = toolset.list(true).await?;
        let mut parts = Self { pins, tools, offered: Vec::new() };
        parts.read().await.map_err(|error| McpError::Config { problem: error.to_string() })?;
        Ok(parts)
    }

    async fn read(&mut self) -> Result<(), LedgerError> {
        let mut state = self.pins.state.lock().await;
        self.pins.read(&mut state).await?;
        let offered = self.tools.offered().filter_map(|tool| {
            let definition = self.tools.pinned.tools.get(&*tool.name)?;
            let standing = match state.accepted.standing(PinKind::Tool, &tool.name, definition) {
                PartStanding::Accepted => ToolStanding::Accepted,
                PartStanding::Denied(_) => ToolStanding::Denied,
                PartStanding::Changed | PartStanding::Bare => ToolStanding::Changed,
                PartStanding::New => ToolStanding::New,
            };
            let (name, definition) = (tool.name.to_string(), definition.clone());
            Some(OfferedTool { name, definition, standing })
        });
        self.offered = offered.collect();
        Ok(())
    }

    /// The tools, in the server's order.
    #[must_use]
    pub fn tools(&self) -> &[OfferedTool] {
        &self.offered
    }

    /// The server's words about itself, and the files and packages that it is started by, as far as they are not
    /// accepted: each with its name and `{"was": …, "now": …}`, without `was` where nothing was accepted before. They are
    /// accepted with the tools.
    pub async fn itself(&self) -> Vec<(String, Value)> {
        let state = self.pins.state.lock().await;
        let differences = state.accepted.differences(&self.tools.pinned);
        let itself = differences.iter().filter(|it| it.kind != PinKind::Tool);
        let told = itself.map(|it| {
            let told = match it.was {
                Some(was) => json!({"was": was, "now": it.now}),
                None => json!({"now": it.now}),
            };
            (it.name.to_owned(), told)
        });
        told.collect()
    }

    /// Accepts these tools as this person, exactly as they are here, with what the server says about itself and is started
    /// by. `None` where all of it was accepted before.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was accepted.
    pub async fn accept(
        &mut self,
        tools: &[&str],
        who: &str,
    ) -> Result<Option<Decided>, LedgerError> {
        let chosen: BTreeSet<&str> = tools.iter().copied().collect();
        let is_chosen = |it: &Difference<'_>| it.kind != PinKind::Tool || chosen.contains(it.name);
        self.decide(&is_chosen, Answer::Approve { args: None }, who).await
    }

    /// Denies these tools as this person, as they are here. They are not listed to clients, their calls are denied, and they
    /// are not proposed again. `None` where none of them is open.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was denied.
    pub async fn deny(
        &mut self,
        tools: &[&str],
        who: &str,
    ) -> Result<Option<Decided>, LedgerError> {
        let chosen: BTreeSet<&str> = tools.iter().copied().collect();
        let is_chosen = |it: &Difference<'_>| it.kind == PinKind::Tool && chosen.contains(it.name);
        let message = "denied when the server was looked at".to_owned();
        self.decide(&is_chosen, Answer::Deny { message }, who).await
    }

    /// Proposes the parts that were chosen, and decides about them at once. Another proposal that is open is cancelled, as
    /// it has other parts.
    async fn decide(
        &mut self,
        is_chosen: &(dyn Fn(&Difference<'_>) -> bool + Sync),
        answer: Answer,
        who: &str,
    ) -> Result<Option<Decided>, LedgerError> {
        let Some(record) = self.proposed(is_chosen).await? else { return Ok(None) };
        let ledger = &self.pins.ledger;
        let decided = ledger.decide(record.ask.id(), &record.fingerprint, who, answer).await?;
        if matches!(decided, Decided::Won { .. }) {
            layer::close_asks(ledger, &self.pins.proposals.set).await;
        }
        self.read().await?;
        Ok(Some(decided))
    }

    /// The proposal of the parts that were chosen, as far as they are open.
    async fn proposed(
        &self,
        is_chosen: &(dyn Fn(&Difference<'_>) -> bool + Sync),
    ) -> Result<Option<AskRecord>, LedgerError> {
        let ledger: &Ledger = &self.pins.ledger;
        let mut state = self.pins.state.lock().await;
        loop {
            self.pins.read(&mut state).await?;
            let mut open = state.accepted.differences(&self.tools.pinned);
            open.retain(is_chosen);
            if open.is_empty() {
                return Ok(None);
            }
            let args = parts::args(&self.pins.server, &open);
            let record = self.pins.proposals.park(ledger, state.read, &args).await?;
            match record.state {
                AskState::Pending if *record.ask.args() == args => return Ok(Some(record)),
                AskState::Pending => {
                    let why = "countersign: a person has chosen among the tools of the server";
                    ledger.cancel(record.ask.id(), why).await?;
                }
                // Decided meanwhile, and read next.
                _ => {}
            }
        }
    }

    /// Ends the server that was started to be looked at.
    pub async fn close(self) {
        self.pins.toolset.connection.close().await;
    }
}

impl fmt::Debug for ServerParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerParts").field("server", &self.pins.server).finish_non_exhaustive()
    }
}
