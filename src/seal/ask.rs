//! Tokens about asks of the ledger.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::keys::still_holds;
use super::{SealError, SealKeys};
use crate::ledger::{Answer, Decided, Ledger, Millis, Record};

/// What tokens about asks are for.
const PURPOSE: &str = "countersign ask";

/// What a token says about an ask: names, and the fingerprint in place of the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AskClaims {
    /// The id of the ask.
    pub ask: String,
    /// The id of the run.
    pub run: String,
    /// The agents that lead to the call, and its id.
    pub call: String,
    /// The tool, by the name that people know.
    pub tool: String,
    /// What was asked: tool, arguments, questions (rule L0).
    pub fingerprint: String,
    /// Who wants the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Who answers with the token.
    pub by: String,
    /// Whether other arguments may be approved with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edits: bool,
}

impl AskClaims {
    fn of(record: &Record, by: &str, edits: bool) -> Self {
        Self {
            ask: record.ask.id().to_owned(),
            run: record.ask.run().to_owned(),
            call: record.ask.path().to_owned(),
            tool: record.ask.tool().to_owned(),
            fingerprint: record.fingerprint.clone(),
            principal: record.ask.get_principal().map(str::to_owned),
            by: by.to_owned(),
            edits,
        }
    }

    /// The first thing in which an ask differs from the one that was sealed.
    fn difference(&self, record: &Record) -> Option<&'static str> {
        let found = Self::of(record, &self.by, self.edits);
        let differs = [
            ("id", self.ask != found.ask),
            ("run", self.run != found.run),
            ("call", self.call != found.call),
            ("tool", self.tool != found.tool),
            ("principal", self.principal != found.principal),
            ("arguments or questions", self.fingerprint != found.fingerprint),
        ];
        differs.into_iter().find_map(|(what, differs)| differs.then_some(what))
    }
}

impl SealKeys {
    /// A token with which this person may decide about an ask, as it stands, until this time: approve it as it is shown,
    /// deny it, or answer it. The ask's own deadline holds as well.
    ///
    /// # Errors
    /// [`SealError::Unsealable`] when its names are too long for a token.
    pub fn seal_ask(
        &self,
        ask: &Record,
        by: &str,
        expires_at: SystemTime,
    ) -> Result<String, SealError> {
        self.seal_own(PURPOSE, &AskClaims::of(ask, by, false), expires_at)
    }

    /// As [`seal_ask`](Self::seal_ask), with which other arguments may be approved as well.
    ///
    /// # Errors
    /// As [`seal_ask`](Self::seal_ask).
    pub fn seal_ask_with_edits(
        &self,
        ask: &Record,
        by: &str,
        expires_at: SystemTime,
    ) -> Result<String, SealError> {
        self.seal_own(PURPOSE, &AskClaims::of(ask, by, true), expires_at)
    }

    /// What a token about an ask says: to find the ask, and to compare who answers with who is logged in.
    ///
    /// # Errors
    /// [`SealError`] says why the token is refused.
    pub fn open_ask(&self, token: &str, now: SystemTime) -> Result<AskClaims, SealError> {
        self.open(PURPOSE, token, now)
    }
}

/// With feature `seal`.
impl Ledger {
    /// Decides with a token of [`SealKeys::seal_ask`], as whom it names, about the ask that was sealed: one that has
    /// changed since is not decided about. The token's time is compared with the store's clock, within the transaction
    /// that decides (rules L4, L6). A token that comes twice counts once, as any decision does.
    ///
    /// # Errors
    /// [`SealError`] says why the token is refused; what waits waits.
    pub async fn decide_sealed(
        &self,
        keys: &SealKeys,
        token: &str,
        answer: Answer,
    ) -> Result<Decided, SealError> {
        let (claims, expires_at) = keys.open_at_any_time::<AskClaims>(PURPOSE, token)?;
        let AskClaims { ask, fingerprint, by, edits, .. } = &claims;
        let edited = match &answer {
            Answer::Approve { args } if !edits => args.clone(),
            _ => None,
        };
        let fits = |record: &Record, now: Millis| {
            still_holds(expires_at, now)?;
            match claims.difference(record) {
                None if edited.as_ref().is_some_and(|args| !args.equal(record.ask.get_args())) => {
                    Err(SealError::NoEdits { ask: ask.clone() })
                }
                None => Ok(()),
                Some(what) => Err(SealError::OtherAsk { ask: ask.clone(), what }),
            }
        };
        self.decide_if(ask, fingerprint, by, answer, fits).await?.unwrap_or(Ok(Decided::UnknownAsk))
    }
}
