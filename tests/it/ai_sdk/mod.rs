//! Chats for AI SDK front ends: the chunks for clients, and the limits of what a client can do.

mod approving;
mod bad_input;
pub(crate) mod client;
mod crashing;
mod elsewhere;
mod endings;
mod granting;
mod order;
mod play;
mod repeating;
mod sealed;
mod secrecy;
mod trust;
mod wire;
mod world;
