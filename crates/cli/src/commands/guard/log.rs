//! The log of a guard, and what it says to people.

use crate::used_store::{UsedStore, quoted};

/// The commands by which a person sees the server's tools, and then accepts them.
pub(super) fn accepting(server: &str, store: &UsedStore) -> String {
    match store.is_in_memory() {
        true => "its store is in memory, where no other program can accept them".to_owned(),
        false => {
            let show = store.command(&format!("pins show {}", quoted(server)));
            format!("run {show}{}", store.note())
        }
    }
}

/// Writes the library's log to stderr: names and decisions, never arguments (rule S2).
pub(super) fn log() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let own = Targets::new().with_target("countersign", LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // Only a program that has a log already refuses another.
    let _ = tracing_subscriber::registry().with(lines).with(own).try_init();
}
