//! What must not compile.

/// DESIGN §2: the permit is the proof: private constructor, not `Clone`. §1: id, name and pass have no public setter.
#[test]
fn tools_cannot_be_reached_around_the_gate() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
