//! Errors as exceptions of Python. Each text says what to do.

use countersign::ledger::LedgerError;
use countersign_cli::config::ConfigError;
use countersign_rules::RulesError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;

create_exception!(countersign, CountersignError, PyException, "An error of countersign.");
create_exception!(
    countersign,
    LedgerRefused,
    CountersignError,
    "The ledger cannot do this: a row or a log was changed, the key is another one, a value cannot be stored. Trying again \
     changes nothing."
);
create_exception!(
    countersign,
    StoreUnavailable,
    CountersignError,
    "The store could not be reached, read or written. Nothing has changed: try again."
);
create_exception!(
    countersign,
    ConfigRefused,
    CountersignError,
    "The configuration, or the store that it names, cannot be used."
);
create_exception!(
    countersign,
    RulesRefused,
    CountersignError,
    "Rules could not be loaded: the text has file, line and column of each problem, and nothing of the files is in force."
);
create_exception!(
    countersign,
    CallChanged,
    CountersignError,
    "The call is another one than was asked about under this id: another tool or other arguments. Nothing has run."
);
create_exception!(
    countersign,
    NotAsked,
    CountersignError,
    "No person is asked about the call, and it does not run: the text says why, for the model."
);
create_exception!(
    countersign,
    Forked,
    CountersignError,
    "The ledger was opened by the process before `fork`: open another one in this process."
);

/// Why an operation has failed, before it is an exception.
#[derive(Debug)]
pub(crate) enum OperationError {
    Ledger(LedgerError),
    Config(ConfigError),
    Changed(String),
    NotAsked(String),
    Bug(String),
}

impl From<LedgerError> for OperationError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<ConfigError> for OperationError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<OperationError> for PyErr {
    fn from(failure: OperationError) -> Self {
        match failure {
            OperationError::Ledger(error @ LedgerError::Store(_))
            | OperationError::Config(ConfigError::Refused(error @ LedgerError::Store(_))) => {
                StoreUnavailable::new_err(error.to_string())
            }
            OperationError::Config(ConfigError::Store(error)) => {
                StoreUnavailable::new_err(error.to_string())
            }
            OperationError::Ledger(error) | OperationError::Config(ConfigError::Refused(error)) => {
                LedgerRefused::new_err(error.to_string())
            }
            OperationError::Config(error) => ConfigRefused::new_err(error.to_string()),
            OperationError::Changed(text) => CallChanged::new_err(text),
            OperationError::NotAsked(text) => NotAsked::new_err(text),
            OperationError::Bug(text) => PyRuntimeError::new_err(text),
        }
    }
}

pub(crate) fn of_rules(error: &RulesError) -> PyErr {
    RulesRefused::new_err(error.to_string())
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CountersignError", py.get_type::<CountersignError>())?;
    module.add("LedgerRefused", py.get_type::<LedgerRefused>())?;
    module.add("StoreUnavailable", py.get_type::<StoreUnavailable>())?;
    module.add("ConfigRefused", py.get_type::<ConfigRefused>())?;
    module.add("RulesRefused", py.get_type::<RulesRefused>())?;
    module.add("CallChanged", py.get_type::<CallChanged>())?;
    module.add("NotAsked", py.get_type::<NotAsked>())?;
    module.add("Forked", py.get_type::<Forked>())
}
