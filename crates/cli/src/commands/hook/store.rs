//! The store of a hook, which is opened for the calls that need it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign::BoxError;
use countersign::ledger::Ledger;
use countersign_cli::config::{Config, Directories, StoreUrl};
use countersign_rules::{CallCounts, Count};
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::project::in_project;

/// A store that we open once, for an ASK or for a rule that counts calls. We answer other calls without it.
#[derive(Clone)]
pub(super) struct LazyStore(Arc<Inner>);

struct Inner {
    config: Config,
    directories: Directories,
    url: Option<StoreUrl>,
    /// The directory of the project in which grants hold.
    root: PathBuf,
    opened: OnceCell<Ledger>,
}

impl LazyStore {
    pub(super) fn new(
        config: Config,
        directories: Directories,
        url: Option<StoreUrl>,
        root: &Path,
    ) -> Self {
        let root = root.to_owned();
        Self(Arc::new(Inner { config, directories, url, root, opened: OnceCell::new() }))
    }

    pub(super) async fn ledger(&self) -> Result<&Ledger, BoxError> {
        let Inner { config, directories, url, root, opened } = &*self.0;
        let open = || async {
            let ledger = config.open_store(directories, url.as_ref()).await?;
            // The account's home, whatever `HOME` is.
            let home = directories.home();
            let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
            let is_wide = root.canonicalize().is_ok_and(|root| home.starts_with(root));
            Ok(if is_wide { ledger } else { in_project(ledger, root) })
        };
        opened.get_or_try_init(open).await
    }
}

impl CallCounts for LazyStore {
    fn count<'a>(&'a self, count: &'a Count) -> BoxFuture<'a, Result<bool, BoxError>> {
        Box::pin(async move { self.ledger().await?.count(count).await })
    }
}
