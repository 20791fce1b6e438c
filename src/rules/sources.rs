//! Where rules come from, and how all files are loaded together.

use std::path::{Path, PathBuf};

use super::engine::Engine;
use super::error::RulesError;
use super::evaluation::evaluate;
use super::preset::preset_text;
use super::project::ProjectApprovals;
use super::rule_file::RuleFile;
use super::rule_set::RuleSet;
use super::ruling::Layer;
use super::source::{Source, read};
use crate::shell::Preset;

/// One place that rules come from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    Preset(Preset),
    File(PathBuf),
    Text(String, String),
    Project(PathBuf),
}

/// Where rules come from, to load them again.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub(super) origins: Vec<Origin>,
    pub(super) approvals: Option<ProjectApprovals>,
    /// The engine that the tests in files are run with.
    pub(super) tests: Engine,
}

impl Sources {
    /// Loads every file, or none.
    pub(super) fn load(&self, engine: &Engine) -> Result<RuleSet, RulesError> {
        let files = self.origins.iter().map(|origin| self.file(origin, engine));
        Ok(RuleSet::new(files.collect::<Result<_, _>>()?))
    }

    fn file(&self, origin: &Origin, engine: &Engine) -> Result<RuleFile, RulesError> {
        let named = |path: &Path| path.display().to_string();
        let (mut file, source) = match origin {
            Origin::Preset(preset) => {
                let (name, text) = preset_text(*preset);
                RuleFile::read(name, text, Layer::Preset, &self.tests)?
            }
            Origin::Text(name, text) => RuleFile::read(name, text, Layer::User, &self.tests)?,
            Origin::File(path) => {
                let (file, source) =
                    RuleFile::read(&named(path), &read(path)?, Layer::User, &self.tests)?;
                (file.at(path), source)
            }
            Origin::Project(path) => {
                let (file, source) =
                    RuleFile::read(&named(path), &read(path)?, Layer::Project, &self.tests)?;
                (file.at(path), source)
            }
        };
        self.run_tests(&mut file, source)?;
        if file.layer == Layer::Project
            && let Some(approvals) = &self.approvals
        {
            file.widens = approvals.is_approved(engine.places.root(), &file.digest);
        }
        Ok(file)
    }

    /// Runs the tests in a file, against this file alone.
    fn run_tests(&self, file: &mut RuleFile, mut source: Source) -> Result<(), RulesError> {
        let mut tested = file.clone();
        // What a project's file allows is tested before it was approved, too.
        tested.widens = true;
        let set = RuleSet::new(vec![tested]);
        for example in &file.examples {
            let (ruling, _) = evaluate(&set, &self.tests, &example.call(), false);
            if ruling.decision != example.wanted {
                let (ruling, _) = evaluate(&set, &self.tests, &example.call(), true);
                let wanted = example.wanted.word();
                let text = format!(
                    "the test `{}` wants {wanted}, and the rules decide: {ruling}",
                    example.text
                );
                source.problem(&example.span, text);
            }
        }
        source.checked()
    }
}
