//! The client's side: the connection to a server of other people, and its tools as a toolset.

pub(crate) mod announcements;
pub(crate) mod child;
pub(crate) mod connection;
mod handshakes;
pub(crate) mod hello;
pub(crate) mod hints;
pub(crate) mod launch;
pub(crate) mod packages;
pub(crate) mod programs;
pub(crate) mod progress;
pub(crate) mod subscriber;
pub(crate) mod toolset;
