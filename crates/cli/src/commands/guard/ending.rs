//! The end of a guard, which is told by signals.

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use crate::signals::told;

/// Completes when the program is told to end, for all that have to know.
pub(super) type EndSignal = Shared<BoxFuture<'static, ()>>;

/// Completes when the program is told to end. When it is told a second time, it ends at once.
pub(super) fn told_to_end() -> EndSignal {
    let first = told();
    let end = async {
        first.await;
        tokio::spawn(async {
            told().await;
            std::process::exit(1);
        });
    };
    end.boxed().shared()
}
