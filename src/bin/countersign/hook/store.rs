//! The store of a hook, which is opened for the calls that need it.

use std::path::Path;
use std::sync::Arc;

use countersign::BoxError;
use countersign::config::{Config, Directories, StoreUrl};
use countersign::ledger::{Ledger, Project};
use countersign::rules::{CallCounts, Count};
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

/// A store that is opened once, for an ASK or for a rule that counts calls. Other calls are answered without it.
#[derive(Clone)]
pub(super) struct LazyStore(Arc<Inner>);

struct Inner {
    config: Config,
    directories: Directories,
    url: Option<StoreUrl>,
    /// The project in which grants hold. A home directory is none.
    project: Option<Project>,
    opened: OnceCell<Ledger>,
}

impl LazyStore {
    pub(super) fn new(
        config: Config,
        directories: Directories,
        url: Option<StoreUrl>,
        root: &Path,
    ) -> Self {
        let project = Project::here(root).ok();
        Self(Arc::new(Inner { config, directories, url, project, opened: OnceCell::new() }))
    }

    pub(super) async fn ledger(&self) -> Result<&Ledger, BoxError> {
        let Inner { config, directories, url, project, opened } = &*self.0;
        let open = || async {
            let ledger = config.open_store(directories, url.as_ref()).await?;
            Ok(match project {
                Some(project) => ledger.with_project(project.clone()),
                None => ledger,
            })
        };
        opened.get_or_try_init(open).await
    }
}

impl CallCounts for LazyStore {
    fn count<'a>(&'a self, count: &'a Count) -> BoxFuture<'a, Result<bool, BoxError>> {
        Box::pin(async move { self.ledger().await?.count(count).await })
    }
}
