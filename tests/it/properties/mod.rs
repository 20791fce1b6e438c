//! Rules of the form "never", over random stacks, batches and answers.

mod foreign;
mod model;
mod never;
