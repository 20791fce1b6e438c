//! What can go wrong between us and the server, and whether to try again.

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use super::pooling::NEEDS_SESSIONS;
use crate::ledger::StoreError;

/// Something went wrong, in words without values (rule S2).
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The server is not there, or not ready. It may come back.
    Unreachable(String),
    /// Two transactions were in each other's way.
    Conflict(String),
    /// It would fail again.
    Refused(String),
    /// The server went away in a commit, and stayed away.
    Unsure(String),
}

impl Failure {
    /// Whether it may be otherwise a little later.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Conflict(_))
    }

    /// For the caller of the store.
    pub(super) fn into_error(self, what: String) -> StoreError {
        match self {
            Self::Unreachable(why) | Self::Conflict(why) | Self::Refused(why) => {
                StoreError::new(what, why)
            }
            Self::Unsure(why) => {
                let what = "learn whether its last write was committed (it is safe to repeat it)";
                StoreError::new(what, why)
            }
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = describe(&error);
        if let Some(code) = error.code() {
            return match code {
                &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
                    Self::Conflict(text)
                }
                &SqlState::DUPLICATE_PSTATEMENT | &SqlState::INVALID_SQL_STATEMENT_NAME => {
                    Self::Refused(format!("{text}: {NEEDS_SESSIONS}"))
                }
                &SqlState::TOO_MANY_CONNECTIONS => Self::Unreachable(text),
                // A shutdown, a crash, a server that starts; a lost connection.
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

/// What happened. Details and hints of the server are left out: they show values.
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

/// How often something was tried, and for how much longer to try.
#[derive(Debug)]
pub(super) struct Attempts {
    until: Instant,
    count: u32,
}

impl Attempts {
    pub(super) fn new(patience: Duration) -> Self {
        Self { until: Instant::now() + patience, count: 0 }
    }

    /// Waits a little, or gives the failure back when it would stay or the patience is over.
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
        // Somewhere between half and all of it, so that those who were in each other's way part.
        let full = (5_u64 << self.count.min(8)).min(longest);
        let random = u64::from(uuid::Uuid::now_v7().as_bytes()[15]);
        let pause = Duration::from_millis(full / 2 + full * random / 512);
        tokio::time::sleep(pause.min(self.until - now)).await;
        Ok(())
    }
}
