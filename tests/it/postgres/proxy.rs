//! A connection to the server that can be cut at the worst moments.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// When to cut the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// A commit does not arrive.
    BeforeCommit,
    /// A commit is done, and its response is lost.
    AfterCommit,
}

/// The text that every message contains which writes to a log and commits.
const WRITTEN: &[u8] = br#""event":""#;

/// How the server says that it is done, and in no transaction.
const COMMITTED: &[u8] = b"Z\0\0\0\x05I";

pub(super) struct Proxy {
    folder: tempfile::TempDir,
    cut: Arc<Mutex<Option<Cut>>>,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// A line to the server whose socket is in this folder.
    pub(super) fn to(server: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (cut, cuts) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU32::new(0)));
        let (server, cut_too, cuts_too) =
            (format!("{server}/.s.PGSQL.5432"), cut.clone(), cuts.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = UnixStream::connect(&server).await {
                    tokio::spawn(carry(client, server, cut_too.clone(), cuts_too.clone()));
                }
            }
        });
        Self { folder, cut, cuts }
    }

    /// The same URL, through this line.
    pub(super) fn url(&self, url: &str, server: &str) -> String {
        let ours = self.folder.path().to_str().unwrap().replace('/', "%2F");
        url.replace(&server.replace('/', "%2F"), &ours)
    }

    /// Cuts the line of the next commit.
    pub(super) fn cut(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }

    /// How often it was cut.
    pub(super) fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

async fn carry(
    mut client: UnixStream,
    mut server: UnixStream,
    cut: Arc<Mutex<Option<Cut>>>,
    cuts: Arc<AtomicU32>,
) {
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut silent = false;
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                if has(&up[..count], WRITTEN) {
                    match cut.lock().unwrap().take() {
                        Some(Cut::BeforeCommit) => {
                            cuts.fetch_add(1, Ordering::SeqCst);
                            return;
                        }
                        Some(Cut::AfterCommit) => silent = true,
                        None => {}
                    }
                }
                if server.write_all(&up[..count]).await.is_err() { return }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if silent {
                    if has(&down[..count], COMMITTED) {
                        cuts.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                } else if client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
