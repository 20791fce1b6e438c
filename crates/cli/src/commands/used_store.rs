//! The store that a command has used, and the commands that its texts give.
//!
//! A client starts the guard with an environment of its own, and a person reads the guard's log in a shell with another one.
//! So a command in a text names its store: without the name, the same words may look into another store. A command that a
//! person runs in a shell leaves the name out, if the store is the usual one of this user.

use std::path::{Path, PathBuf};

use countersign_cli::config::{Config, Directories, StoreUrl};

use crate::Context;
use crate::paths::{absolute, sqlite_url};

/// The store that a command has used, by a name that is the same in every environment.
pub(crate) struct UsedStore {
    url: StoreUrl,
    name: String,
    config: Option<PathBuf>,
    /// `true` if the same words without the store find it in any shell of this user.
    is_usual: bool,
}

/// The store of this user where no option and no variable names one.
fn usual(config: Option<&Path>) -> Option<StoreUrl> {
    if std::env::var_os("COUNTERSIGN_STORE").is_some() {
        return None;
    }
    let directories = Directories::of_user().ok()?;
    let config = Config::load(&directories, config).ok()?;
    Some(config.store_url(&directories, None))
}

impl UsedStore {
    pub(crate) fn new(context: &Context, given: Option<&StoreUrl>) -> Self {
        let url = context.config.store_url(&context.directories, given);
        let name = match &url {
            StoreUrl::Sqlite(path) => sqlite_url(path).unwrap_or_else(|_| url.to_string()),
            other => other.to_string(),
        };
        Self { url, name, config: context.config_file.clone(), is_usual: false }
    }

    /// The store of a command that a person runs in a shell.
    pub(crate) fn here(context: &Context, given: Option<&StoreUrl>) -> Self {
        let used = Self::new(context, given);
        let is_usual = usual(used.config.as_deref()).is_some_and(|url| url == used.url);
        Self { is_usual, ..used }
    }

    /// The URL, without a password.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if no other process can open it.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.url, StoreUrl::Memory)
    }

    /// Tells whether other accounts write to it, so that a name that is only given says nothing about who decides.
    pub(crate) fn is_shared(&self) -> bool {
        self.url.is_shared()
    }

    /// The part that has to be added to the URL in a command; nothing for most stores.
    pub(crate) fn note(&self) -> &'static str {
        match &self.url {
            StoreUrl::Postgres(url) if *url != self.name => {
                " (add the user, the password and the parameters of its URL)"
            }
            _ => "",
        }
    }

    /// A command of this program for this store, from any directory. The words are those of a shell already.
    pub(crate) fn command(&self, words: &str) -> String {
        let mut command = format!("countersign {words}");
        if let Some(file) = &self.config {
            let file = absolute(file).unwrap_or_else(|_| file.display().to_string());
            command += &format!(" --config {}", quoted(&file));
        }
        match self.is_usual {
            true => command,
            false => command + &format!(" --store {}", quoted(&self.name)),
        }
    }
}

/// A word of a shell's command line.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(url: &str) -> UsedStore {
        let url: StoreUrl = url.parse().unwrap_or(StoreUrl::Memory);
        UsedStore { name: url.to_string(), url, config: None, is_usual: false }
    }

    #[test]
    fn a_command_has_the_store_and_no_password() {
        let store = used("postgres://ann:hunter2@db.example/asks?sslpassword=hunter2");
        let command = store.command("pins show git");
        assert_eq!(command, "countersign pins show git --store postgres://db.example/asks");
        assert!(store.note().contains("the password") && !store.is_in_memory());
        assert_eq!(used("postgres://db.example/asks").note(), "");
        let command = used("sqlite:/srv/my asks.db").command("pins list");
        assert_eq!(command, "countersign pins list --store 'sqlite:/srv/my asks.db'");
        assert!(used("memory:").is_in_memory());
    }
}
