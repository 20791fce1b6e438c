//! Whether the server gives a connection to one client alone, or a pooler in front of it shares connections.

use std::time::Duration;

use deadpool_postgres::Object;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, SimpleQueryMessage, Socket};

use super::failure::Failure;

/// What to do about a pooler that shares connections.
pub(super) const NEEDS_SESSIONS: &str = "a pooler in front of it, such as PgBouncer, shares connections between clients, \
    and prepared statements, settings and `LISTEN` belong to one: use `pool_mode = session`, or connect to the server \
    itself";

/// How long the second connection may take; where there is none, nothing is known.
const PATIENCE: Duration = Duration::from_secs(2);

/// The name of this session, of which a pooler knows nothing.
const READ: &str = "SELECT current_setting('countersign.session', true)";

/// Names the session of one connection, and begins a transaction on another one: a pooler that shares connections gives
/// it the one that is free, which has the name.
pub(super) async fn check<T>(client: &Object, config: &Config, tls: T) -> Result<(), Failure>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Sync + Send + 'static,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let name = uuid::Uuid::now_v7().to_string();
    client.batch_execute(&format!("SET countersign.session = '{name}'")).await?;
    let Ok(Ok((other, connection))) = tokio::time::timeout(PATIENCE, config.connect(tls)).await
    else {
        return Ok(());
    };
    let connection = tokio::spawn(connection);
    let probed = tokio::time::timeout(PATIENCE, probe(client, &other)).await;
    connection.abort();
    match probed {
        Ok(Ok((ours, theirs)))
            if ours.as_ref() == Some(&name) && theirs.as_ref() != Some(&name) =>
        {
            Ok(())
        }
        // No second session was free.
        Err(_) => Ok(()),
        Ok(Ok(_)) => Err(Failure::Refused(NEEDS_SESSIONS.to_owned())),
        Ok(Err(error)) => {
            // Where statements are shared out one by one, there are no transactions.
            let pooled = error.as_db_error().is_some_and(|it| it.message().contains("pooling"));
            Err(if pooled { Failure::Refused(NEEDS_SESSIONS.to_owned()) } else { error.into() })
        }
    }
}

/// The names of both sessions while the other one is in a transaction.
async fn probe(
    client: &Object,
    other: &Client,
) -> Result<(Option<String>, Option<String>), tokio_postgres::Error> {
    other.batch_execute("BEGIN").await?;
    let theirs = other.simple_query(READ).await?;
    let ours = client.simple_query(READ).await?;
    Ok((first(&ours), first(&theirs)))
}

fn first(messages: &[SimpleQueryMessage]) -> Option<String> {
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}
