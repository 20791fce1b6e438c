//! A PostgreSQL of the tests' own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use countersign_postgres::{PostgresBuilder, PostgresStore};

/// A server in a folder of its own, reached through a socket in it. It goes when this is dropped, and when the test's
/// process ends, however it does.
pub(crate) struct Server {
    folder: String,
    script: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _child: Child,
}

/// A number for each schema of this process.
static SCHEMAS: AtomicU32 = AtomicU32::new(0);

impl Server {
    pub(crate) fn start() -> Self {
        // Nothing here outlives the machine.
        Self::start_with("-c fsync=off")
    }

    pub(crate) fn start_with(options: &str) -> Self {
        let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = if root {
            // PostgreSQL does not run as root.
            let known = Command::new("id").arg("postgres").output().unwrap().status.success();
            let mut command = Command::new("runuser");
            command.args(["-u", if known { "postgres" } else { "nobody" }, "--", "sh", "-c"]);
            command
        } else {
            let mut command = Command::new("sh");
            command.arg("-c");
            command
        };
        let mut child = command
            .arg(include_str!("postgres.sh"))
            .env("PG_OPTIONS", options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let folder = line(&mut stdout);
        let server = Self { folder, script: Mutex::new((stdin, stdout)), _child: child };
        server.tell("start");
        server
    }

    /// The server that most tests share.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    /// Kills the server, with all of its processes, as if the power had failed.
    pub(crate) fn kill(&self) {
        self.tell("kill");
    }

    pub(crate) fn start_again(&self) {
        self.tell("start");
    }

    /// PgBouncer in front of the server, in each mode, and with one connection for all: a URL of it.
    pub(crate) fn pooled(&self) -> [(&'static str, String); 4] {
        self.tell("pool");
        let url = |port| {
            let host = self.folder.replace('/', "%2F");
            format!("postgres://postgres@{host}:{port}/postgres")
        };
        [
            ("transaction", url(6432)),
            ("statement", url(6433)),
            ("session", url(6434)),
            ("transaction with one connection", url(6435)),
        ]
    }

    fn tell(&self, word: &str) {
        let mut script = self.script.lock().unwrap();
        writeln!(script.0, "{word}").expect("the server's script runs");
        assert_eq!(line(&mut script.1), "done");
    }

    /// The folder with the socket.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// A URL of this server, with a schema of its own.
    pub(crate) async fn url(&self) -> String {
        let schema = format!("test_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
        let sql = format!("CREATE SCHEMA {schema}");
        self.sql("", &sql).await;
        self.url_of(&schema)
    }

    fn url_of(&self, schema: &str) -> String {
        let host = self.folder.replace('/', "%2F");
        format!("postgres://postgres@{host}/postgres?options=-csearch_path%3D{schema}")
    }

    /// Runs SQL at a URL of this server.
    pub(crate) async fn sql(&self, url: &str, sql: &str) {
        let url = if url.is_empty() { self.url_of("public") } else { url.to_owned() };
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("the test's server");
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }

    /// An empty store.
    pub(crate) async fn store(&self) -> PostgresStore {
        self.builder().await.connect().await.unwrap()
    }

    /// An empty store, to be connected.
    pub(crate) async fn builder(&self) -> PostgresBuilder {
        PostgresStore::builder(&self.url().await)
    }
}

fn line(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "PostgreSQL could not be started: see above");
    line.trim_end().to_owned()
}
