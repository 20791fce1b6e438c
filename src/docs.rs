//! Pages that are longer than an item's documentation.

#[doc = include_str!("../docs/rules.md")]
pub mod rules {}

#[doc = include_str!("../docs/ordering.md")]
pub mod ordering {}

#[doc = include_str!("../docs/pydantic.md")]
pub mod pydantic {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
