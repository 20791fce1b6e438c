//! Tokens with which one person may decide about one ask of the ledger.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::keys::still_holds;
use super::{SealError, SealKeys};
use crate::deferred::{Answer, Extent};
use crate::ledger::{AskRecord, Decided, Ledger, Millis, Surface};

/// The purpose of these tokens, which is part of the sealed bytes (see `token`).
const PURPOSE: &str = "countersign ask";

/// The claims of a token about an ask: names and ids, and the fingerprint instead of the arguments.
///
/// A token ends in mails and logs, so it has no arguments: the fingerprint stands for them.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
/// use countersign::seal::SealKeys;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let secret: Vec<u8> = (0..32).collect(); // 32 random bytes
/// let keys = SealKeys::new("2026-11", &secret)?;
/// let ledger = Ledger::new(MemoryStore::new());
/// let parked = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
/// let token = keys.seal_ask(&parked, "ann", SystemTime::now() + Duration::from_secs(3600))?;
///
/// // The page that the link leads to shows who may decide, and about what.
/// let claims = keys.open_ask(&token, SystemTime::now())?;
/// assert_eq!((claims.by.as_str(), claims.tool.as_str()), ("ann", "delete_file"));
/// let decided = ledger.decide_sealed(&keys, &token, Answer::Approve { args: None }).await?;
/// assert_eq!(decided, Decided::Won { again: false });
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AskClaims {
    /// The id of the ask in the ledger.
    pub ask: String,
    /// The id of the run that the call belongs to.
    pub run: String,
    /// The path of the call: the agents that lead to it, and the call's id, such as `root/c1`.
    pub call: String,
    /// The name of the tool, as people are shown it.
    pub tool: String,
    /// The fingerprint of tool, arguments and questions (rule L0), in hexadecimal.
    pub fingerprint: String,
    /// The principal that the run acts for, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The person who decides with the token.
    pub by: String,
    /// `true` if the token may also approve edited arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edits: bool,
}

impl AskClaims {
    fn of(record: &AskRecord, by: &str, edits: bool) -> Self {
        Self {
            ask: record.ask.id().to_owned(),
            run: record.ask.run().to_owned(),
            call: record.ask.path().to_owned(),
            tool: record.ask.tool().to_owned(),
            fingerprint: record.fingerprint.clone(),
            principal: record.ask.principal().map(str::to_owned),
            by: by.to_owned(),
            edits,
        }
    }

    /// The first part of an ask that differs from the sealed one, as error messages name it.
    fn difference(&self, record: &AskRecord) -> Option<&'static str> {
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
    /// A token with which the person `by` may decide about an ask until `expires_at`: approve it as it is shown, deny
    /// it, or answer it. It is bound to the ask as it is in `ask`; the ask's own deadline applies as well.
    ///
    /// # Errors
    /// [`SealError::Unsealable`] when the ask's names are too long for a token.
    pub fn seal_ask(
        &self,
        ask: &AskRecord,
        by: &str,
        expires_at: SystemTime,
    ) -> Result<String, SealError> {
        self.seal_own(PURPOSE, &AskClaims::of(ask, by, false), expires_at)
    }

    /// As [`seal_ask`](Self::seal_ask), with a token that may also approve edited arguments.
    ///
    /// # Errors
    /// As [`seal_ask`](Self::seal_ask).
    ///
    /// Without edits a token approves what its mail showed. With edits, anyone who gets hold of the link can choose the
    /// arguments.
    pub fn seal_ask_with_edits(
        &self,
        ask: &AskRecord,
        by: &str,
        expires_at: SystemTime,
    ) -> Result<String, SealError> {
        self.seal_own(PURPOSE, &AskClaims::of(ask, by, true), expires_at)
    }

    /// Verifies a token and gives its claims, to find the ask, and to compare [`AskClaims::by`] with the person who is
    /// logged in.
    ///
    /// # Errors
    /// [`SealError`] says why the token is refused.
    pub fn open_ask(&self, token: &str, now: SystemTime) -> Result<AskClaims, SealError> {
        self.open(PURPOSE, token, now)
    }
}

/// Deciding with sealed tokens (feature `seal`).
impl Surface {
    /// Decides about the sealed ask as the person whom the token names, with the checks of [`decide`](Surface::decide) but for
    /// those of an [`Approver`](crate::ledger::Approver): what this person may see and decide. An ask whose call, arguments,
    /// questions or principal differ from the sealed ones is not decided. The token's expiry is compared with the store's clock,
    /// within the transaction that decides (rules L4, L6). A token that is used twice counts once, as any decision does.
    ///
    /// # Errors
    /// [`SealError`] says why the token is refused, or that the ledger failed; nothing was decided then.
    ///
    /// We do not know here who is logged in. Compare [`AskClaims::by`] with the session, or take the possession of
    /// the link for the proof, as a link in a mail does.
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
        let fits = |record: &AskRecord, now: Millis| {
            still_holds(expires_at, now)?;
            match claims.difference(record) {
                None if edited.as_ref().is_some_and(|args| !args.equal(record.ask.args())) => {
                    Err(SealError::NoEdits { ask: ask.clone() })
                }
                None => Ok(()),
                Some(what) => Err(SealError::OtherAsk { ask: ask.clone(), what }),
            }
        };
        let ledger = &self.ledger;
        if let Some(record) = ledger.get(ask).await? {
            fits(&record, ledger.now().await?)?;
            if let Err(why) = self.check_answer(&record, Extent::Whole, &answer) {
                return Ok(Decided::Unapprovable(why));
            }
        }
        ledger
            .decide_if(ask, fingerprint, by, answer, fits)
            .await?
            .unwrap_or(Ok(Decided::UnknownAsk))
    }
}

/// Deciding with sealed tokens (feature `seal`).
impl Ledger {
    /// As [`Surface::decide_sealed`], where no tool checks edited arguments.
    ///
    /// # Errors
    /// As [`Surface::decide_sealed`].
    pub async fn decide_sealed(
        &self,
        keys: &SealKeys,
        token: &str,
        answer: Answer,
    ) -> Result<Decided, SealError> {
        Surface::new(self.clone()).decide_sealed(keys, token, answer).await
    }
}
