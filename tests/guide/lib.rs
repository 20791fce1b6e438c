//! The guide, and the pages that are too long for the documentation of one item.

// In a page, a link by name leads to the file beside it. Here the same names are defined first, so that they lead to the
// modules.
#[doc = include_str!("../../docs/guide/links.txt")]
#[doc = include_str!("../../docs/guide/index.md")]
pub mod guide {
    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/start.md")]
    pub mod start {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/deciding.md")]
    pub mod deciding {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/asking.md")]
    pub mod asking {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/resuming.md")]
    pub mod resuming {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/processes.md")]
    pub mod processes {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/sub-agents.md")]
    pub mod sub_agents {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/rules.md")]
    pub mod rules {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/mcp.md")]
    pub mod mcp {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/coding-agents.md")]
    pub mod coding_agents {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/surfaces.md")]
    pub mod surfaces {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/production.md")]
    pub mod production {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/testing.md")]
    pub mod testing {}

    #[doc = include_str!("../../docs/guide/links.txt")]
    #[doc = include_str!("../../docs/guide/recipes.md")]
    pub mod recipes {}
}

#[doc = include_str!("../../docs/rules.md")]
pub mod rules {}

#[doc = include_str!("../../docs/ordering.md")]
pub mod ordering {}

#[doc = include_str!("../../docs/pydantic.md")]
pub mod pydantic {}

#[doc = include_str!("../../docs/pydantic-ai-middleware.md")]
pub mod pydantic_ai_middleware {}

#[doc = include_str!("../../docs/vercel-ai-adapter.md")]
pub mod vercel_ai_adapter {}

#[doc = include_str!("../../docs/inbox.md")]
pub mod inbox {}

#[doc = include_str!("../../docs/mcp.md")]
pub mod mcp {}

#[doc = include_str!("../../docs/shell.md")]
pub mod shell {}

#[doc = include_str!("../../docs/rules-file.md")]
pub mod rules_file {}

#[doc = include_str!("../../docs/telemetry.md")]
pub mod telemetry {}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod readme {}
