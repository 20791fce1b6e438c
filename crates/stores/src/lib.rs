//! Ledgers by the URLs of their stores, for programs whose users choose the store: a setting, an option, or an argument
//! from another language.
//!
//! | URL | store | feature |
//! |---|---|---|
//! | `memory:` | in the memory of this process, which ends with it | |
//! | `sqlite:PATH`, `sqlite:///absolute/path`, a path that has a `/` or ends in `.db` | an SQLite file | `sqlite` |
//! | `postgres://…`, `postgresql://…` | a PostgreSQL server and database | `postgres` |
//!
//! Every build reads every URL. To open a store whose feature is off is an error that names the feature. No error and no
//! `Display` or `Debug` has a password.
//!
//! ```
//! use countersign::ledger::Ask;
//! use countersign_stores::StoreUrl;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let url: StoreUrl = "memory:".parse()?;
//! let ledger = url.open().await?;
//! ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await.unwrap();
//! # Ok::<(), countersign_stores::StoreUrlError>(()) }).unwrap();
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error;
mod file;
mod url;

pub use error::StoreUrlError;
pub use file::create_private;
pub use url::StoreUrl;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
