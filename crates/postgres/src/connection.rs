//! Reading the URL, making connections, and the connection pool.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use super::failure::{Attempts, Failure};
use countersign::ledger::StoreError;

/// The default time limit for making a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The settings of each connection. The timeout frees the locks of a client that has vanished within a transaction.
/// The server plans statements once for each connection, and always by the indexes: a table that is small when its
/// statements are planned may be large later.
const SESSION: &str =
    "SET idle_in_transaction_session_timeout = '10s'; SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off";

/// The parts of a URL that may be shown: the database, the host and the port.
///
/// We make it once, from the parsed URL and never from its text. It is the only form of the URL that reaches errors,
/// `Debug` and logs (rule S2).
#[derive(Debug, Clone)]
pub(super) struct Address(String);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a URL. The error does not quote the wrong part, which may be a piece of the password.
///
/// The defaults that are set here limit how long a dead network can hold an operation: without `tcp_user_timeout` a
/// commit that was sent into a cut cable would wait for the kernel, about fifteen minutes.
pub(super) fn read(url: &str) -> Result<(Address, Config), StoreError> {
    let Ok(mut config) = url.parse::<Config>() else {
        let why = "it is not of the form postgres://user:password@host:port/database \
                   (characters like @ : / % in its parts are written as %40 %3A %2F %25)";
        return Err(StoreError::new("read the URL of a PostgreSQL server", why));
    };
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    if config.get_application_name().is_none() {
        config.application_name("countersign");
    }
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => format!("{host}:{port}"),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => format!("{} (port {port})", folder.display()),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let address = format!("PostgreSQL database `{}` at {host}", database.escape_debug());
    Ok((Address(address), config))
}

/// Recycling is fast, without a query before each use: the operation itself finds a dead connection, and is repeated
/// anyway. We wait for a free connection for at least five seconds, so a patience of zero does not turn a busy pool
/// into errors.
pub(super) fn pool<T>(
    config: Config,
    tls: T,
    size: usize,
    patience: Duration,
) -> Result<Pool, Failure>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let prepare = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move { client.batch_execute(SESSION).await.map_err(HookError::Backend) })
    });
    Pool::builder(Manager::from_config(config, tls, recycling))
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .create_timeout(Some(2 * CONNECT))
        .wait_timeout(Some(patience.max(CONNECT)))
        .post_create(prepare)
        .build()
        .map_err(|error| Failure::Refused(error.to_string()))
}

/// Takes a connection from the pool, which gets it back when it is dropped.
pub(super) async fn checked_out(pool: &Pool) -> Result<Object, Failure> {
    Ok(pool.get().await?)
}

/// The pool of connections to one server, and for how long operations are retried.
pub(super) struct ServerPool {
    pub(super) pool: Pool,
    pub(super) patience: Duration,
}

impl ServerPool {
    pub(super) async fn client(&self) -> Result<Object, Failure> {
        checked_out(&self.pool).await
    }

    pub(super) fn attempts(&self) -> Attempts {
        Attempts::new(self.patience)
    }
}

/// A connection with an open transaction. If this value is dropped before it is [finished](Self::finished), we close
/// the connection instead of returning it to the pool: its next user must not be inside of this transaction.
///
/// The reason is cancellation. A future that is dropped between `BEGIN` and `COMMIT` cannot send a `ROLLBACK`, because
/// sending needs an `await`. If the connection went back to the pool, the next user would get a transaction with locks.
/// If we close it, the server rolls back.
#[derive(Debug)]
pub(super) struct Open(Option<Object>);

impl Open {
    pub(super) fn new(client: Object) -> Self {
        Self(Some(client))
    }

    /// The connection, which is there until the transaction is finished.
    pub(super) fn client(&self) -> Result<&Object, Failure> {
        self.0.as_ref().ok_or_else(|| Failure::Refused("its transaction is over".into()))
    }

    /// Returns the connection to the pool, after its transaction was committed or rolled back.
    pub(super) fn finished(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}
