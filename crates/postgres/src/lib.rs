//! A store of the ledger in PostgreSQL, for more than one machine.
//!
//! ```no_run
//! use countersign::deferred::Answer;
//! use countersign::ledger::{Ask, Ledger};
//! use countersign_postgres::PostgresStore;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let store = PostgresStore::connect("postgres://ann:secret@db.example/approvals").await?;
//! let ledger = Ledger::new(store);
//! let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
//! ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! - **Tables** are named `countersign_…`, in the schema of the connection, and are created on connecting;
//!   `?options=-csearch_path%3Dname` in the URL names another schema. Any number of processes may connect at once.
//!   PostgreSQL 13 or later.
//! - **A transaction** locks the ends of logs, in order, and then the rows. So of two transactions over the same ask the
//!   later one reads what the earlier one wrote. Time is the server's (rule L4).
//! - **When the server goes away**, reads and uncommitted transactions are repeated for as long as
//!   [`patience`](PostgresBuilder::patience) lasts. If it goes away in a commit, the store finds out, once the server is
//!   back, whether the transaction was committed. If the server stays away, the error says that this is unknown; every
//!   operation of a ledger may be repeated.
//! - **Waiting** ([`Ledger::wait_for_change`](countersign::ledger::Ledger::wait_for_change)) uses `LISTEN` on the channel
//!   `countersign_changes`; every writer notifies the channel with the id of the run, right behind its commit and not
//!   within it, as PostgreSQL lets commits that notify wait for each other.
//! - **A pooler in front of the server**, such as PgBouncer, has to pool sessions (`pool_mode = session`). A pooler
//!   that shares connections by transaction or statement is refused on connecting: prepared statements, settings and
//!   `LISTEN` belong to one connection. The store has a pool of its own, so a pooler is not needed.
//! - **A read-only default** of the server, the role or the URL (`default_transaction_read_only`) is respected: reading
//!   works, and every change is an error.
//! - **TLS** is up to you: [`PostgresBuilder::connect_tls`] takes a connector. Without one nothing is encrypted.
//!
//! With `tokio_postgres=debug`, the driver logs statements with their values, which include the arguments of calls.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod columns;
mod connection;
mod failure;
mod listen;
mod pooling;
mod rows;
mod schema;
mod transaction;

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Socket};

use connection::{Address, ServerPool};
use countersign::ledger::{Entry, Filter, Found, Linker, Lookup, Store, StoreError, Work};
use failure::Failure;
use listen::Listener;

/// The pause after which a waiting task polls the log again, in case a notification is lost.
///
/// A lost notification therefore costs at most this time, and never the answer.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A store of the ledger in PostgreSQL, with a connection pool of its own.
///
/// Dropping it closes its connections, and a task that waits in [`Ledger::wait_for_change`](countersign::ledger::Ledger::wait_for_change) on
/// another store of the same database continues. `Debug` and the errors name the database and the host, and never the
/// password (rule S2).
///
/// ```
/// use countersign_postgres::PostgresStore;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// // A URL that cannot be read is an error which does not repeat it, as the wrong part may be the password.
/// let failed = PostgresStore::connect("postgres://ann:p@ss:word@db/approvals").await;
/// let Err(error) = failed else { panic!() };
/// assert!(!error.to_string().contains("p@ss"));
/// # });
/// ```
pub struct PostgresStore {
    server: ServerPool,
    address: Address,
    listener: Listener,
}

/// The settings of a [`PostgresStore`]: the URL, the size of the pool, and how long to retry.
///
/// ```no_run
/// use countersign_postgres::PostgresStore;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let store = PostgresStore::builder("postgres://ann@%2Frun%2Fpostgresql/approvals")
///     .pool_size(4)
///     .patience(std::time::Duration::from_secs(30))
///     .connect()
///     .await?;
/// # Ok::<(), countersign::ledger::StoreError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct PostgresBuilder {
    url: String,
    pool_size: usize,
    patience: Duration,
    existing: bool,
}

impl PostgresBuilder {
    /// Sets the largest number of connections, besides one that listens; 16 by default. They are opened as they are
    /// needed. An operation that finds all of them in use waits for one, for as long as the
    /// [`patience`](Self::patience) lasts but at least five seconds, and then fails with an error that says so.
    ///
    /// A pool larger than the server's `max_connections` gains nothing: a connection that is refused is tried again
    /// while the patience lasts. A write holds a connection for two round trips.
    ///
    /// ```
    /// use countersign_postgres::PostgresStore;
    ///
    /// let builder = PostgresStore::builder("postgres://ann:secret@db.example/approvals").pool_size(0);
    /// // At least one, and `Debug` leaves the URL out.
    /// assert!(format!("{builder:?}").starts_with("PostgresBuilder { pool_size: 1"));
    /// ```
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections.max(1);
        self
    }

    /// Sets how long operations are retried while the server cannot be reached; 10 seconds by default. The first
    /// connection is tried only once. A `statement_timeout` or `lock_timeout`, of the server or in the URL's `options`,
    /// is not retried: it is an error at once, and nothing was written.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_postgres::PostgresStore;
    ///
    /// let builder = PostgresStore::builder("postgres://db.example/approvals").patience(Duration::from_secs(30));
    /// assert!(format!("{builder:?}").contains("patience: 30s"));
    /// ```
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Has connecting fail where the database has no tables of a ledger, in place of creating them.
    ///
    /// ```
    /// use countersign_postgres::PostgresStore;
    ///
    /// let builder = PostgresStore::builder("postgres://db.example/approvals").existing();
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn existing(mut self) -> Self {
        self.existing = true;
        self
    }

    /// Connects without encryption, and creates or migrates the tables where that is needed.
    ///
    /// # Errors
    /// [`StoreError`] when the URL cannot be read, the server cannot be reached or refuses, or a newer version of this
    /// crate has written the tables. The error does not show the password.
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        self.connect_tls(NoTls).await
    }

    /// Connects through a TLS connector, such as the ones of `postgres-native-tls` and `tokio-postgres-rustls`.
    ///
    /// ```no_run
    /// use countersign::ledger::{Ledger, StoreError};
    /// use countersign_postgres::PostgresStore;
    /// use tokio_postgres::NoTls;
    ///
    /// # async fn example() -> Result<(), StoreError> {
    /// // The connector of your TLS crate stands in the place of `NoTls`, which encrypts nothing.
    /// let builder = PostgresStore::builder("postgres://db.example/approvals");
    /// let ledger = Ledger::new(builder.connect_tls(NoTls).await?);
    /// # let _ = ledger;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_tls<T>(self, tls: T) -> Result<PostgresStore, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (address, config) = connection::read(&self.url)?;
        let failed = |failure: Failure| failure.into_error(format!("connect to {address}"));
        let pool = connection::pool(config.clone(), tls.clone(), self.pool_size, self.patience)
            .map_err(failed)?;
        let client = connection::checked_out(&pool).await.map_err(failed)?;
        pooling::check(&client, &config, tls.clone()).await.map_err(failed)?;
        schema::migrate(client, !self.existing).await.map_err(failed)?;
        let listener = Listener::new(config, tls);
        Ok(PostgresStore {
            server: ServerPool { pool, patience: self.patience },
            listener,
            address,
        })
    }
}

impl PostgresStore {
    /// Connects without encryption, and creates or migrates the tables where that is needed. The URL has the form of
    /// `libpq`: `postgres://user:password@host:port/database`, with `%2F…` as the host for a directory with a socket.
    ///
    /// # Errors
    /// As [`PostgresBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder(url).connect().await
    }

    /// A builder with further settings for the connection to this URL.
    #[must_use]
    pub fn builder(url: &str) -> PostgresBuilder {
        let url = url.to_owned();
        PostgresBuilder { url, pool_size: 16, patience: Duration::from_secs(10), existing: false }
    }

    async fn read_once(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let client = self.server.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, params).await?)
    }

    /// Runs a statement that only reads, and so may be repeated when the connection is lost.
    async fn read(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        let mut attempts = self.server.attempts();
        loop {
            let failure = match self.read_once(sql, params).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            let told = |failure: Failure| failure.into_error(format!("read {}", self.address));
            attempts.again(failure).await.map_err(told)?;
        }
    }

    fn decoded<T>(&self, read: Result<T, Failure>) -> Result<T, StoreError> {
        read.map_err(|failure| failure.into_error(format!("read {}", self.address)))
    }

    /// Runs a transaction, and again where that helps.
    ///
    /// Each attempt runs the work anew on what is true then, so `work` may be called several times, and only its last
    /// writes are made: it must decide from its arguments alone.
    async fn write(
        &self,
        ids: &[String],
        linker: &Linker,
        work: &mut Work<'_>,
    ) -> Result<(), StoreError> {
        let mut attempts = self.server.attempts();
        loop {
            let written = transaction::write_once(&self.server, ids, linker, work).await;
            let Err(failure) = written else { return Ok(()) };
            let told = |failure: Failure| failure.into_error(format!("write to {}", self.address));
            attempts.again(failure).await.map_err(told)?;
        }
    }

    /// The place of the last entry of a run's log.
    async fn head(&self, run: &str) -> Result<i64, Failure> {
        let run = rows::encode(run);
        let found = self.read_once(schema::HEAD, &[&run]).await?;
        found.first().map_or(Ok(0), |row| Ok(row.try_get(0)?))
    }

    /// An error on the first read reaches the caller once the patience is over, since a wrong password would otherwise
    /// look like a run in which nothing happens. After one successful read the wait outlasts any restart of the server.
    async fn wait(&self, run: &str, after: i64) -> Result<i64, StoreError> {
        let told = |failure: Failure| failure.into_error(format!("read {}", self.address));
        let mut attempts = self.server.attempts();
        // Subscribed before the log is read, so that no notification between reading and waiting is missed.
        let mut waker = self.listener.waker(run);
        let mut seen = false;
        loop {
            match self.head(run).await {
                Ok(last) if last > after => return Ok(last),
                Ok(_) => seen = true,
                // A caller may wait for longer than the server is away: the listener wakes it once the server is back.
                Err(failure) if seen && failure.is_passing() => {}
                Err(failure) => {
                    attempts.again(failure).await.map_err(told)?;
                    continue;
                }
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, waker.woken()).await;
        }
    }
}

impl Store for PostgresStore {
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.write(ids, linker, work))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            let found = self.read(schema::GET, &[&rows::encode(id), &rows::about(id)]).await?;
            let lookup = |row| self.decoded(rows::lookup(row, id));
            found.first().map_or(Ok(Lookup::Nothing), lookup)
        })
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> BoxFuture<'a, Result<Vec<Found>, StoreError>> {
        Box::pin(async move {
            let (kinds, limit) = (rows::kinds(filter), filter.limit.map(i64::from));
            let states = rows::states(filter);
            let found = if let Some(run) = &filter.run {
                let (run, states) = (rows::encode(run), (!states.is_empty()).then_some(&states));
                self.read(schema::LIST_RUN, &[&kinds, &run, &states, &limit]).await?
            } else if states.is_empty() {
                self.read(schema::LIST_ALL, &[&kinds, &limit]).await?
            } else {
                self.read(schema::LIST_STATES, &[&kinds, &states, &limit]).await?
            };
            found.iter().map(|row| self.decoded(rows::found(row))).collect()
        })
    }

    fn hidden_asks(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let found = self.read(schema::HIDDEN_ASKS, &[&i64::from(limit)]).await?;
            found.iter().map(|row| self.decoded(rows::text(row, 0))).collect()
        })
    }

    fn due(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let found = self.read(schema::DUE, &[&i64::from(limit)]).await?;
            found.iter().map(|row| self.decoded(rows::text(row, 0))).collect()
        })
    }

    fn requesters(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, StoreError>> {
        Box::pin(async move {
            let count = |row: &tokio_postgres::Row| {
                let count: i64 = row.try_get(1)?;
                Ok((rows::text(row, 0)?, u64::try_from(count).unwrap_or_default()))
            };
            let found = self.read(schema::REQUESTED, &[]).await?;
            found.iter().map(|row| self.decoded(count(row))).collect()
        })
    }

    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(async move {
            let key = rows::encode(run);
            let found = self.read(schema::LOG, &[&key, &after, &i64::from(limit)]).await?;
            found.iter().filter_map(|row| self.decoded(rows::entry(row, 0)).transpose()).collect()
        })
    }

    fn logs<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let after = rows::encode(after);
            let found = self.read(schema::LOGS, &[&after, &i64::from(limit)]).await?;
            found.iter().map(|row| self.decoded(rows::text(row, 0))).collect()
        })
    }

    fn heads<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(async move {
            let after = rows::encode(after);
            let found = self.read(schema::LAST_ENTRIES, &[&after, &i64::from(limit)]).await?;
            found.iter().filter_map(|row| self.decoded(rows::entry(row, 0)).transpose()).collect()
        })
    }

    fn wait_for_change<'a>(
        &'a self,
        run: &'a str,
        after: i64,
    ) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(self.wait(run, after))
    }
}

impl fmt::Debug for PostgresStore {
    /// The database and the host, without the password (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({})", self.address)
    }
}

impl fmt::Debug for PostgresBuilder {
    /// Without the URL, which may hold a password (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBuilder")
            .field("pool_size", &self.pool_size)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
