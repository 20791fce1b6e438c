//! Pages that are longer than an item's documentation.

#[doc = include_str!("../docs/rules.md")]
pub mod rules {}

#[doc = include_str!("../docs/ordering.md")]
pub mod ordering {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
