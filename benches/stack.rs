//! Placeholder until the benches are written.
fn main() {}
