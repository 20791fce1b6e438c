//! Guides that are too long for the documentation of one item.

// In a page, a link by name leads to the file beside it. Here the same names are defined first, so that they lead to the
// modules. A page whose programs need features is left out of the doctests of builds without these.
#[doc = include_str!("../docs/guide/links.txt")]
#[doc = include_str!("../docs/guide/index.md")]
pub mod guide {
    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/start.md")]
    pub mod start {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/deciding.md")]
    pub mod deciding {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/asking.md")]
    pub mod asking {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/resuming.md")]
    pub mod resuming {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/processes.md")]
    pub mod processes {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/sub-agents.md")]
    pub mod sub_agents {}

    #[cfg(any(not(doctest), feature = "rules"))]
    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/rules.md")]
    pub mod rules {}

    #[cfg(any(not(doctest), feature = "mcp"))]
    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/mcp.md")]
    pub mod mcp {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/coding-agents.md")]
    pub mod coding_agents {}

    #[cfg(any(not(doctest), feature = "inbox"))]
    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/surfaces.md")]
    pub mod surfaces {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/production.md")]
    pub mod production {}

    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/testing.md")]
    pub mod testing {}

    #[cfg(any(not(doctest), all(feature = "inbox", feature = "genai")))]
    #[doc = include_str!("../docs/guide/links.txt")]
    #[doc = include_str!("../docs/guide/recipes.md")]
    pub mod recipes {}
}

#[doc = include_str!("../docs/rules.md")]
pub mod rules {}

#[doc = include_str!("../docs/ordering.md")]
pub mod ordering {}

#[doc = include_str!("../docs/pydantic.md")]
pub mod pydantic {}

#[doc = include_str!("../docs/pydantic-ai-middleware.md")]
pub mod pydantic_ai_middleware {}

/// Available with the feature `ai-sdk`.
#[cfg(feature = "ai-sdk")]
#[doc = ""]
#[doc = include_str!("../docs/vercel-ai-adapter.md")]
pub mod vercel_ai_adapter {}

/// Available with the feature `inbox`.
#[cfg(feature = "inbox")]
#[doc = ""]
#[doc = include_str!("../docs/inbox.md")]
pub mod inbox {}

/// Available with the feature `mcp`.
#[cfg(feature = "mcp")]
#[doc = ""]
#[doc = include_str!("../docs/mcp.md")]
pub mod mcp {}

#[doc = include_str!("../docs/shell.md")]
pub mod shell {}

/// Available with the feature `rules`.
#[cfg(feature = "rules")]
#[doc = ""]
#[doc = include_str!("../docs/rules-file.md")]
pub mod rules_file {}

#[doc = include_str!("../docs/telemetry.md")]
pub mod telemetry {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
