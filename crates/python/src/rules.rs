//! The classes `Rules` and `Decision`.

use std::path::PathBuf;

use countersign::Decision;
use countersign::decision::ToolDecision;
use countersign_cli::config::{Config, Directories};
use countersign_rules::{RuleCall, Rules, RulesBuilder, Ruling};
use countersign_shell::Preset;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::errors;
use crate::json;

/// Rules that decide about calls: those of a preset, of files, or of a text.
///
/// They are read and judged as everywhere else (`docs/rules-file.md`). The strictest rule wins, in any order of rules and
/// files, and a call that no rule speaks about is asked about. Values can be shared by threads.
///
///     rules = Rules.preset("developer", root="/src/shop")
///     rules.decide("shell", {"command": "git push origin main"}).decision    # "ask"
#[pyclass(frozen, name = "Rules", module = "countersign")]
pub(crate) struct PyRules {
    rules: Rules,
}

/// The decision of rules about one call.
///
/// `decision` is `"allow"`, `"ask"` or `"deny"`. Pass it to `Ledger.park`, and the ask is bound to the rules that asked.
#[pyclass(frozen, name = "Decision", module = "countersign")]
pub(crate) struct PyDecision {
    ruling: Ruling,
    text: String,
}

impl PyDecision {
    /// The decision with its questions, for an ask.
    pub(crate) fn asked(&self) -> Decision {
        self.ruling.clone().into_decision()
    }
}

#[pymethods]
impl PyRules {
    /// The rules of a preset: "developer" (everyday commands and reading inside of `root` are allowed, the rest is asked
    /// about) or "reader" (reading alone is allowed).
    ///
    /// `root` is the folder of the workspace, by default the current directory. Raises ValueError for another name.
    #[staticmethod]
    #[pyo3(signature = (name, *, root=None))]
    fn preset(py: Python<'_>, name: &str, root: Option<PathBuf>) -> PyResult<Self> {
        let preset = preset_of(name)?;
        Self::built(py, Rules::builder().preset(preset), root)
    }

    /// The rules of these files, with a preset below them if one is named.
    ///
    /// Raises RulesRefused with file, line and column of each problem; then no file is in force. The tests in the files
    /// have passed when this returns.
    #[staticmethod]
    #[pyo3(signature = (*paths, preset=None, root=None))]
    fn load(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        preset: Option<&str>,
        root: Option<PathBuf>,
    ) -> PyResult<Self> {
        if paths.is_empty() && preset.is_none() {
            return Err(PyValueError::new_err("name a file of rules, or a preset"));
        }
        let mut builder = Rules::builder();
        if let Some(name) = preset {
            builder = builder.preset(preset_of(name)?);
        }
        Self::built(py, paths.into_iter().fold(builder, RulesBuilder::file), root)
    }

    /// The rules in a text, in the format of files; `name` is the one in errors and explanations.
    #[staticmethod]
    #[pyo3(signature = (text, *, name="rules.toml", root=None))]
    fn text(py: Python<'_>, text: &str, name: &str, root: Option<PathBuf>) -> PyResult<Self> {
        Self::built(py, Rules::builder().text(name, text), root)
    }

    /// Decides about a call: the name of the tool (`"mcp:SERVER/name"` for one of an MCP server), and its arguments, a
    /// mapping or the JSON text of one. Nothing is counted: a rule with `at_most` speaks as if the call were the first.
    ///
    /// `directory` is where relative paths of the arguments start, by default the root. Raises ValueError for arguments that
    /// have no exact form in JSON.
    #[pyo3(signature = (tool, args=None, *, directory=None))]
    fn decide(
        &self,
        tool: &str,
        args: Option<&Bound<'_, PyAny>>,
        directory: Option<PathBuf>,
    ) -> PyResult<PyDecision> {
        let args = args.map(json::args).transpose()?.unwrap_or_default();
        let mut call = RuleCall::named(tool, args.as_map());
        if let Some(directory) = &directory {
            call = call.directory(directory);
        }
        let ruling = self.rules.decide(&call);
        let text = match ruling.decision() {
            ToolDecision::Ask if ruling.spoke().is_empty() => {
                format!("ask: no rule allows `{tool}` (default)")
            }
            _ => ruling.to_string(),
        };
        Ok(PyDecision { ruling, text })
    }

    /// Why a call is decided as it is: a dictionary with `decision`, `by` (the rules that spoke) and `near` (the rules that
    /// name the tool and did not speak, each with the first condition that failed).
    ///
    /// For people who write rules. Give no model the near misses: they say which call to try next.
    #[pyo3(signature = (tool, args=None, *, directory=None))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        tool: &str,
        args: Option<&Bound<'py, PyAny>>,
        directory: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = args.map(json::args).transpose()?.unwrap_or_default();
        let mut call = RuleCall::named(tool, args.as_map());
        if let Some(directory) = &directory {
            call = call.directory(directory);
        }
        let explanation = self.rules.explain(&call);
        let value = serde_json::to_value(&explanation);
        json::to_python(py, &value.map_err(|error| PyValueError::new_err(error.to_string()))?)
    }

    /// Loads the files again. Where they mean something else, the stricter of the rules before and the new ones decides,
    /// until `accept` is called with the digest that a person has seen. Returns a dictionary with `changed`, `digest` and
    /// `needs_accepting`. Raises RulesRefused, and then the last good rules stay in force.
    fn reload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reload = py.detach(|| self.rules.reload()).map_err(|error| errors::of_rules(&error))?;
        let dict = PyDict::new(py);
        dict.set_item("changed", reload.changed)?;
        dict.set_item("digest", reload.digest)?;
        dict.set_item("needs_accepting", reload.needs_accepting)?;
        Ok(dict)
    }

    /// Puts the latest rules into force alone. A person decides that, having seen the difference. False if other rules
    /// than those of this digest were loaded since.
    fn accept(&self, digest: &str) -> bool {
        self.rules.accept(digest)
    }

    /// The digest of what the rules mean, which an edited comment does not change.
    #[getter]
    fn digest(&self) -> String {
        self.rules.digest()
    }

    /// What was loaded, file by file: (name, number of rules, number of tests).
    #[getter]
    fn files(&self) -> Vec<(String, usize, usize)> {
        let files = self.rules.files().into_iter();
        files.map(|it| (it.file, it.rules, it.tests)).collect()
    }

    fn __repr__(&self) -> String {
        let files = self.rules.files();
        let files: Vec<_> = files.iter().map(ToString::to_string).collect();
        format!("<Rules {}>", files.join("; "))
    }
}

impl PyRules {
    /// Loads rules with what no tool may write unasked: the program's own places on this machine (rule R5).
    fn built(py: Python<'_>, builder: RulesBuilder, root: Option<PathBuf>) -> PyResult<Self> {
        let loaded = py.detach(|| {
            let builder = match root {
                Some(root) => builder.root(root),
                None => builder,
            };
            let Ok(directories) = Directories::of_user() else { return builder.load() };
            let config = Config::load(&directories, None).unwrap_or_default();
            let places = config.own_places(&directories, None, None);
            let builder = places.iter().fold(builder, |builder, place| builder.protect(place));
            config.for_rules(builder, &directories, None).load()
        });
        let rules = loaded.map_err(|error| errors::of_rules(&error))?;
        Ok(Self { rules })
    }
}

#[pymethods]
impl PyDecision {
    /// `"allow"`, `"ask"` or `"deny"`.
    #[getter]
    fn decision(&self) -> &'static str {
        self.ruling.decision().word()
    }

    /// The reasons of the rules that made the decision, the strictest first; none for a call that no rule speaks about.
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.ruling.winners().map(|spoke| spoke.reason.clone()).collect()
    }

    /// The ids of the rules that made the decision.
    #[getter]
    fn rules(&self) -> Vec<String> {
        self.ruling.winners().map(|spoke| spoke.rule.to_string()).collect()
    }

    /// What a person may allow in advance beside exactly this call, from the narrowest to the widest: dictionaries with
    /// `name` (of a test), `says` (for people), `fields` and `examples`.
    #[getter]
    fn offers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let offers = self.ruling.grant_patterns().iter().map(|pattern| {
            json!({
                "name": pattern.name(),
                "says": pattern.says(),
                "fields": pattern.fields(),
                "examples": pattern.examples(),
            })
        });
        json::to_python(py, &offers.collect::<Vec<_>>().into())
    }

    /// Whether a person has to be asked every time, so that no answer in advance applies.
    #[getter]
    fn every_time(&self) -> bool {
        self.ruling.is_every_time()
    }

    /// Whether every question may be answered in advance.
    #[getter]
    fn grantable(&self) -> bool {
        self.ruling.is_grantable()
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Decision {}>", self.text)
    }
}

fn preset_of(name: &str) -> PyResult<Preset> {
    match name {
        "developer" => Ok(Preset::Developer),
        "reader" => Ok(Preset::Reader),
        _ => Err(PyValueError::new_err(format!(
            "there is no preset `{}`: there are developer and reader",
            name.escape_debug()
        ))),
    }
}
