//! Detecting a pooler in front of the server that shares one session between clients.
//!
//! A pooler by transaction works until it does not: a prepared statement is missing when the next transaction gets
//! another connection, `SET` reaches another client, `LISTEN` hears nothing. The last fails silently, as a wait that
//! never ends. So we look for a pooler when we open the store.
//!
//! | the second connection | means |
//! |---|---|
//! | sees the name of the first | the session is shared: refused |
//! | sees no name, and the first still sees its own | two sessions: accepted |
//! | sees no name, the first does not answer or has lost the name | its session was given away: refused |
//! | cannot be made in time | unknown, perhaps the last free one: accepted |

use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, SimpleQueryMessage, Socket};

use super::failure::{Failure, NEEDS_SESSIONS};

/// The time limit for the second connection. Without one the check is skipped.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the name that [`check`] gives to a session, in a setting that poolers do not track.
const READ: &str = "SELECT current_setting('countersign.session', true)";

/// Names the session of one connection, and begins a transaction on another connection: a pooler that shares sessions
/// gives it the free session, which then has the name.
pub(super) async fn check<T>(client: &Object, config: &Config, tls: T) -> Result<(), Failure>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Sync + Send + 'static,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let name = uuid::Uuid::now_v7().to_string();
    client.batch_execute(&format!("SET countersign.session = '{name}'")).await?;
    let Ok(Ok((other, connection))) = timeout(PATIENCE, config.connect(tls)).await else {
        return Ok(());
    };
    let connection = tokio::spawn(connection);
    let shared = is_shared(client, &other, &name).await;
    connection.abort();
    match shared {
        Ok(false) => Ok(()),
        Ok(true) => Err(Failure::Refused(NEEDS_SESSIONS.to_owned())),
        Err(error) => {
            // A pooler that shares sessions by statement refuses transactions.
            let pooled = error.as_db_error().is_some_and(|it| it.message().contains("pooling"));
            Err(if pooled { Failure::Refused(NEEDS_SESSIONS.to_owned()) } else { error.into() })
        }
    }
}

/// Returns whether both connections share a session, seen while the other connection is in a transaction.
async fn is_shared(
    client: &Object,
    other: &Client,
    name: &str,
) -> Result<bool, tokio_postgres::Error> {
    let theirs = async {
        other.batch_execute("BEGIN").await?;
        other.simple_query(READ).await
    };
    // No second session was free, so the check has no result.
    let Ok(theirs) = timeout(PATIENCE, theirs).await else { return Ok(false) };
    if first(&theirs?).as_deref() == Some(name) {
        return Ok(true);
    }
    // An unshared session answers at once. One that does not is in use by the transaction of another client.
    let Ok(ours) = timeout(PATIENCE, client.simple_query(READ)).await else { return Ok(true) };
    Ok(first(&ours?).as_deref() != Some(name))
}

fn first(messages: &[SimpleQueryMessage]) -> Option<String> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}
