//! The store in PostgreSQL, on a server of the tests' own.

mod clock;
mod connecting;
mod deciding;
mod failing;
mod proxy;
mod shell;
mod storing;
mod waiting;
