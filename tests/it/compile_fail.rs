//! What must not compile.

/// The permit is the proof that a call was allowed: private constructor, not `Clone`. A call's id, name and pass have no
/// public setter.
#[test]
fn tools_cannot_be_reached_around_the_gate() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
