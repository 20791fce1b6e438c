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

#[doc = include_str!("../docs/shell.md")]
pub mod shell {}

#[doc = include_str!("../docs/telemetry.md")]
pub mod telemetry {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
