//! Programs that must not compile, as examples: `cargo test --doc` compiles each of them with the crates that are built already. The
//! test beside them compares what the compiler says.
//!
//! They fail for what they do, as this one finds the same crates:
//!
//! ```
//! use countersign::{Agent, FunctionToolset, Model, ToolError, ToolsExt, schemars, tool_fn};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Pay {
//!     amount: u32,
//! }
//!
//! async fn pay(args: Pay) -> Result<u32, ToolError> {
//!     Ok(args.amount)
//! }
//!
//! fn agent(model: impl Model) {
//!     let _ = Agent::new(model, FunctionToolset::new());
//! }
//!
//! fn main() {
//!     let tools = FunctionToolset::new().tool(tool_fn("pay", "Pays", pay));
//!     let _ = tools.layered(tower::layer::util::Identity::new());
//!     let _ = serde_json::json!({"amount": 5});
//! }
//! ```

macro_rules! refused {
    ($($name:ident),+ $(,)?) => {
        $(
            #[doc = "A program that must not compile:\n\n```compile_fail"]
            #[doc = include_str!(concat!(stringify!($name), ".rs"))]
            #[doc = "```"]
            pub mod $name {}
        )+
    };
}

refused! {
    agent_of_a_name,
    another_call,
    args_of_a_value,
    arguments_without_a_schema,
    async_decide_fn,
    forged_deferral,
    layered_middleware,
    no_error,
    no_result,
    not_async,
    permit_twice,
    rate_limit_without_buffer,
    run_without_a_permit,
}
