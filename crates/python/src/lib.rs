//! The Python package `countersign`: the ledger and the rules for programs in Python.
//!
//! Everything here is public API of the other crates, for another language. Python's own classes (`python/countersign`)
//! are around the two of this module, `Ledger` and `Rules`: they read the JSON that these return, and have the texts for
//! users.
//!
//! | module | contents |
//! |---|---|
//! | `bridge` | the runtime of a process, and how a result reaches a thread or an event loop of Python |
//! | `errors` | errors as exceptions |
//! | `json` | values of Python as JSON, and back |
//! | `ledger` | the class `Ledger` |
//! | `parking` | the ask of a call, found or parked |
//! | `rules` | the classes `Rules` and `Decision` |
//! | `shown` | asks and outcomes as JSON |

use pyo3::prelude::*;

mod bridge;
mod errors;
mod json;
mod ledger;
mod parking;
mod rules;
mod shown;

/// The module `countersign._countersign`.
#[pymodule(gil_used = false)]
fn _countersign(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ledger::PyLedger>()?;
    module.add_class::<ledger::ClaimKeeper>()?;
    module.add_class::<rules::PyRules>()?;
    module.add_class::<rules::PyDecision>()?;
    module.add_function(wrap_pyfunction!(json::same_json, module)?)?;
    module.add_function(wrap_pyfunction!(json::check_json, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add(module)
}
