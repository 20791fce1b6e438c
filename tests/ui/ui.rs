//! Programs that must not compile, and what the compiler says about them.

/// The permit is the proof that a call was allowed: private constructor, not `Clone`. A call's id, name and pass have no
/// public setter.
#[test]
fn tools_cannot_be_reached_around_the_gate() {
    let cases = trybuild::TestCases::new();
    for case in ["another_call", "forged_deferral", "permit_twice", "run_without_a_permit"] {
        cases.compile_fail(format!("{case}.rs"));
    }
}

/// Errors say what went wrong, and what to do: the compiler names the way out of the common mistakes.
#[test]
fn the_compiler_says_how_to_make_a_function_a_tool() {
    let cases = trybuild::TestCases::new();
    for case in ["arguments_without_a_schema", "no_error", "no_result", "not_async"] {
        cases.compile_fail(format!("{case}.rs"));
    }
}

/// The common mistakes with layers and arguments.
#[test]
fn the_compiler_says_how_to_write_a_layer() {
    let cases = trybuild::TestCases::new();
    for case in
        ["args_of_a_value", "async_decide_fn", "layered_middleware", "rate_limit_without_buffer"]
    {
        cases.compile_fail(format!("{case}.rs"));
    }
}

/// An agent takes a model, and the compiler names the crates and types that are some.
#[test]
fn the_compiler_says_where_models_come_from() {
    trybuild::TestCases::new().compile_fail("agent_of_a_name.rs");
}
