//! The engine that evaluates rules: directories, the table of programs, and the tools that are shells.
//!
//! We know a shell by the name of the tool, as rules have to hold for programs that never heard of this crate. A
//! name that is not in the list is no shell until the user says so. The text of such a tool is only compared as a
//! text: conditions about commands are unknown, and a rule that allows by commands is silent.

use std::path::{Path, PathBuf};

use super::call::RuleCall;
use super::paths::Places;
use super::tool_pattern::ToolPattern;
use crate::preset;
use crate::readings::shells::SHELLS;
use countersign_shell::{Classifier, Dialect, Preset, Programs, SearchPath};

/// The directories, the table of programs, and the tools that are shells, for the evaluation of rules.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) places: Places,
    pub(crate) classifier: Classifier,
    pub(crate) dialect: Dialect,
    pub(crate) shells: Vec<ShellField>,
    /// Files and folders that the floor protects, besides those with known names.
    pub(crate) protected: Vec<PathBuf>,
}

/// A field that holds a shell text.
#[derive(Debug, Clone)]
pub(crate) struct ShellField {
    pub(crate) tool: ToolPattern,
    pub(crate) field: String,
}

impl Engine {
    pub(crate) fn known_shells() -> Vec<ShellField> {
        let known = SHELLS.iter().filter_map(|(tool, field)| {
            Some(ShellField { tool: ToolPattern::parse(tool).ok()?, field: (*field).to_owned() })
        });
        known.collect()
    }

    /// The field with a shell text, if the tool of a call is a shell.
    pub(crate) fn shell_field(&self, call: &RuleCall<'_>) -> Option<&str> {
        let found = self.shells.iter().find(|shell| shell.tool.matches(call, false));
        found.map(|shell| shell.field.as_str())
    }

    pub(super) fn is_installed(&self, program: &str) -> bool {
        !self.places.looks() || self.classifier.is_installed(program)
    }
}

/// The engine that tests in files run with: a workspace that is the same on every machine.
pub(crate) fn test_engine(shells: &[ShellField], programs: Option<&Programs>) -> Engine {
    let mut places = Places::lexical(Path::new(preset::TEST_ROOT));
    places.set_home(PathBuf::from(preset::TEST_HOME));
    let classifier = Classifier::new(places.workspace(), Preset::Developer)
        .with_search_path(SearchPath::unchecked());
    Engine {
        classifier: match programs {
            Some(programs) => classifier.with_programs(programs.clone()),
            None => classifier,
        },
        places,
        dialect: Dialect::Bash,
        shells: shells.to_vec(),
        protected: Vec::new(),
    }
}
