//! Values of Python as JSON, and back. What has no exact form in JSON is an error and never a text of it: a fingerprint
//! must not depend on `str()`.

use countersign::Args;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyNone, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// How deep values may be nested, as in the arguments of a call (rule T5).
const MAX_DEPTH: usize = 64;

/// The names that `serde_json` reads as something else than an object.
const RESERVED: &str = "$serde_json::private::";

/// The arguments of a call: a mapping, or the JSON text of one, which has to be read in one way only.
pub(crate) fn args(value: &Bound<'_, PyAny>) -> PyResult<Args> {
    let read = match value.cast::<PyString>() {
        Ok(text) => Args::parse(text.to_str()?),
        Err(_) => match self::value(value)? {
            value @ Value::Object(_) => Args::try_from(value),
            _ => {
                let kind = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "the arguments of a call are a mapping or the JSON text of an object, and this is a {kind}"
                )));
            }
        },
    };
    read.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A value of Python as JSON: `None`, `bool`, `int`, `float`, `str`, a list or tuple, a mapping with texts as keys.
pub(crate) fn value(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    read(value, MAX_DEPTH).map_err(|unfit| match unfit {
        Unfit::No(place, problem) => {
            let mut at: Vec<_> = place.into_iter().rev().collect();
            at.insert(0, "value".to_owned());
            PyValueError::new_err(format!("`{}` {problem}", at.join("")))
        }
        Unfit::Error(error) => error,
    })
}

/// Why a value has no form in JSON: the place, from the inside to the outside, and the problem.
enum Unfit {
    No(Vec<String>, String),
    Error(PyErr),
}

impl From<PyErr> for Unfit {
    fn from(error: PyErr) -> Self {
        Self::Error(error)
    }
}

impl Unfit {
    fn here(problem: impl Into<String>) -> Self {
        Self::No(Vec::new(), problem.into())
    }

    fn within(mut self, place: String) -> Self {
        if let Self::No(places, _) = &mut self {
            places.push(place);
        }
        self
    }
}

fn read(value: &Bound<'_, PyAny>, depth: usize) -> Result<Value, Unfit> {
    if value.cast::<PyNone>().is_ok() {
        return Ok(Value::Null);
    }
    // Before integers, as a truth value of Python is one.
    if let Ok(it) = value.cast::<PyBool>() {
        return Ok(it.is_true().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(Unfit::here("has half of a surrogate pair, which is no text")),
        };
    }
    if let Ok(it) = value.cast::<PyInt>() {
        let fits = it.extract::<i64>().map(Value::from);
        return fits
            .or_else(|_| it.extract::<u64>().map(Value::from))
            .map_err(|_| Unfit::here("is an integer of more than 64 bits: pass it as a text"));
    }
    if let Ok(it) = value.cast::<PyFloat>() {
        let number = Number::from_f64(it.value());
        return number
            .map(Value::Number)
            .ok_or_else(|| Unfit::here("is not finite: JSON has no infinity and no NaN"));
    }
    if depth == 0 {
        return Err(Unfit::here(format!("is nested more than {MAX_DEPTH} levels deep")));
    }
    if let Ok(items) = value.cast::<PyList>() {
        return list(items.iter(), depth);
    }
    if let Ok(items) = value.cast::<PyTuple>() {
        return list(items.iter(), depth);
    }
    if let Ok(items) = value.cast::<PyDict>() {
        return object(items.iter(), depth);
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let items = mapping.items()?;
        let pairs: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = items.extract()?;
        return object(pairs.into_iter(), depth);
    }
    let kind = value.get_type().name()?;
    Err(Unfit::here(format!("is a {kind}, which has no form in JSON: convert it first")))
}

fn list<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> Result<Value, Unfit> {
    let items = items.enumerate().map(|(at, item)| {
        read(&item, depth.saturating_sub(1)).map_err(|unfit| unfit.within(format!("[{at}]")))
    });
    items.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn object<'py>(
    items: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    depth: usize,
) -> Result<Value, Unfit> {
    let mut map = Map::new();
    for (key, item) in items {
        let Ok(text) = key.cast::<PyString>() else {
            let kind = key.get_type().name()?;
            return Err(Unfit::here(format!(
                "has a key that is a {kind}, and keys of JSON are texts"
            )));
        };
        let key = match text.to_str() {
            Ok(key) if !key.starts_with(RESERVED) => key.to_owned(),
            _ => return Err(Unfit::here("has a key that JSON cannot have")),
        };
        let place = format!(".{}", key.escape_debug());
        let item = read(&item, depth.saturating_sub(1)).map_err(|unfit| unfit.within(place))?;
        map.insert(key, item);
    }
    Ok(Value::Object(map))
}

/// JSON as a value of Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(it) => PyBool::new(py, *it).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(it), _) => it.into_pyobject(py)?.into_any(),
            (None, Some(it)) => it.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, item) in map {
                dict.set_item(key, to_python(py, item)?)?;
            }
            dict.into_any()
        }
    })
}

/// Whether two values are the same arguments: equal as canonical JSON, as fingerprints compare them.
#[pyfunction]
pub(crate) fn same_json(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(args(one)?.equal(&args(other)?))
}

/// Raises `ValueError` for a value that has no exact form in JSON, as of a number that is not finite.
#[pyfunction]
pub(crate) fn check_json(value: &Bound<'_, PyAny>) -> PyResult<()> {
    self::value(value).map(|_| ())
}
