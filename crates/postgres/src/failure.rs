//! Failures of the connection and the server, and which of them are tried again.
//!
//! | failure | examples | repeated |
//! |---|---|---|
//! | `Unreachable` | no connection, the server starts or stops (class 57P), class 08, no free connection | yes, pauses up to 500 ms |
//! | `Conflict` | serialization failure, deadlock, writes that came too late, a lost transaction that was not committed | yes, pauses up to 50 ms |
//! | `Unlinked` | a log whose last entry was changed, or made with another key | no |
//! | `Refused` | a missing right, a full disk, a timeout of a statement, a read-only server | no |
//! | `Unsure` | a commit without an answer, that nothing tells about afterwards | no: the caller has to know |
//!
//! To repeat is safe in the first two cases, as nothing was written. We do so for the time that the user gave, and
//! not for a number of attempts: a server that restarts takes as long as it takes.

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use countersign::ledger::{StoreError, Unlinked};

/// The advice in errors about a pooler that shares connections.
pub(super) const NEEDS_SESSIONS: &str = "a pooler in front of it, such as PgBouncer, shares connections between clients, \
    and prepared statements, settings and `LISTEN` belong to one: use `pool_mode = session`, or connect to the server \
    itself";

/// A failure, with a reason that contains no values (rule S2).
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The server cannot be reached, or is not ready. It may come back.
    Unreachable(String),
    /// A serialization failure or a deadlock with another transaction, writes that arrived after the time for which they
    /// were computed, or a transaction that was lost and not committed. It can be repeated.
    Conflict(String),
    /// A failure that a repetition would not change.
    Refused(String),
    /// A log ends with an entry that the ledger does not link to.
    Unlinked(Unlinked),
    /// The connection was lost in a commit, and whether it was committed could not be found out.
    Unsure(String),
}

impl Failure {
    /// Returns `true` if the operation may succeed if it is repeated a little later.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Conflict(_))
    }

    /// The error that the caller of the store gets; `what` could not be done.
    ///
    /// The words of an unsure write differ from the others, because the caller has to do something else. It must not
    /// take the call for undecided: it repeats the operation of the ledger, which finds its own earlier write (rule
    /// L3).
    pub(super) fn into_error(self, what: String) -> StoreError {
        match self {
            Self::Unreachable(why) | Self::Conflict(why) | Self::Refused(why) => {
                StoreError::new(what, why)
            }
            Self::Unlinked(unlinked) => StoreError::new(what, unlinked),
            Self::Unsure(why) => {
                let what = "learn whether its last write was committed (it is safe to repeat it)";
                StoreError::new(what, why)
            }
        }
    }
}

impl From<Unlinked> for Failure {
    fn from(unlinked: Unlinked) -> Self {
        Self::Unlinked(unlinked)
    }
}

/// We go by the code of the server if there is one, as messages are translated. Errors of the driver have no code,
/// so we recognize those of the network by their source.
impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = describe(&error);
        if let Some(code) = error.code() {
            return match code {
                &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
                    Self::Conflict(text)
                }
                // The one division of the statements fails where the writes of a transaction come too late.
                &SqlState::DIVISION_BY_ZERO => {
                    Self::Conflict("the server's clock moved on before the writes arrived".into())
                }
                &SqlState::DUPLICATE_PSTATEMENT | &SqlState::INVALID_SQL_STATEMENT_NAME => {
                    Self::Refused(format!("{text}: {NEEDS_SESSIONS}"))
                }
                &SqlState::TOO_MANY_CONNECTIONS => Self::Unreachable(text),
                // Class 57P: the server shuts down, has crashed, or is starting. Class 08: the connection was lost.
                code if code.code().starts_with("57P") || code.code().starts_with("08") => {
                    Self::Unreachable(text)
                }
                &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Self::Unreachable(text),
                _ => Self::Refused(text),
            };
        }
        let of_io = error.source().is_some_and(|source| source.is::<io::Error>());
        if of_io || error.is_closed() || error.to_string().starts_with("timeout") {
            Self::Unreachable(text)
        } else {
            Self::Refused(text)
        }
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                error.into()
            }
            PoolError::Timeout(TimeoutType::Wait) => Self::Unreachable(
                "all connections of its pool are in use (`PostgresBuilder::pool_size` allows more)"
                    .into(),
            ),
            PoolError::Timeout(_) => Self::Unreachable("it did not answer in time".into()),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// The reason of a failure. The server's details and hints are left out, as they contain values.
///
/// `DETAIL` may say `Key (id)=(…) already exists`, and a hint may quote a statement.
fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let (severity, message, code) = (error.severity(), error.message(), error.code().code());
        return format!("{severity}: {message} (SQLSTATE {code})");
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The attempts of one operation: how many were made, and until when to make more.
#[derive(Debug)]
pub(super) struct Attempts {
    until: Instant,
    count: u32,
}

impl Attempts {
    pub(super) fn new(patience: Duration) -> Self {
        Self { until: Instant::now() + patience, count: 0 }
    }

    /// Waits before the next attempt. Returns the failure if a repetition would not help, or if the time for attempts
    /// is over.
    ///
    /// The pauses double from 10 ms. If all of the pause were random, some of many waiting processes would return at
    /// once, again and again. If none of it were, two transactions that met would meet at each attempt.
    pub(super) async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        let now = Instant::now();
        if !failure.is_passing() || now >= self.until {
            return Err(failure);
        }
        self.count += 1;
        let longest = match failure {
            Failure::Conflict(_) => 50,
            _ => 500,
        };
        // A random part of at least half, so that two transactions that conflicted do not meet again.
        let full = (5_u64 << self.count.min(8)).min(longest);
        let random = u64::from(uuid::Uuid::now_v7().as_bytes()[15]);
        let pause = Duration::from_millis(full / 2 + full * random / 512);
        tokio::time::sleep(pause.min(self.until - now)).await;
        Ok(())
    }
}
