//! One response of a model: its calls run, are denied, are answered, are dropped.

mod basics;
mod cancelling;
mod passes;
mod responses;
