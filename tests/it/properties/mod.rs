//! Rules of the form "never", over random stacks, batches and answers.

mod agents;
mod answers;
mod asking;
pub(crate) mod helpers;
mod model;
mod never;
mod storing;
