//! Tower's layers among ours: their order, their limits and their errors.

mod tower_errors;
mod tower_layers;
