//! Chats for AI SDK front ends: what clients are told, and what no client can do.

mod approving;
mod bad_input;
mod client;
mod crashing;
mod elsewhere;
mod endings;
mod order;
mod play;
mod repeating;
mod sealed;
mod secrecy;
mod trust;
mod wire;
mod world;
