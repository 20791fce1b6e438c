//! Middlewares: their decisions, their names, and the rate limit.

mod after;
mod deciding;
mod names;
mod rate_limit;
