//! Guides that are too long for the documentation of one item.

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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
