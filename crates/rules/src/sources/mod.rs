//! The files that rules come from, and the loading of all of them together.
//!
//! We keep the places of the files, so that a reload reads the same ones again. A project's file is tested as if a person
//! had approved it, since its author has to see whether it works. Only then we look whether a person has approved what it
//! allows.

pub(crate) mod accepted;
pub(crate) mod difference;
pub(crate) mod looked;
pub(crate) mod private_file;
pub(crate) mod project;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::accepted::AcceptedRules;
use self::project::ProjectApprovals;
use super::error::RulesError;
use super::evaluation::evaluate;
use super::preset::{edits_text, preset_text};
use super::ruling::Layer;
use crate::calls::engine::Engine;
use crate::format::rule_file::RuleFile;
use crate::format::rule_set::RuleSet;
use crate::format::source::{Source, read};
use countersign_shell::Preset;

/// One place that rules come from.
#[derive(Debug, Clone)]
pub(super) enum RulesOrigin {
    Preset(Preset),
    /// The rules by which edits in the workspace run unasked.
    Edits,
    File(PathBuf),
    Text(String, String),
    Project(PathBuf),
}

/// The sources of rules, to load them again.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub(super) origins: Vec<RulesOrigin>,
    pub(super) approvals: Option<ProjectApprovals>,
    pub(super) accepted: Option<AcceptedRules>,
    /// The engine that the tests in files are run with.
    pub(super) tests: Engine,
    /// The groups that rules may name, with their members.
    pub(super) groups: BTreeMap<String, Vec<String>>,
}

impl Sources {
    /// Loads every file, or none.
    pub(super) fn load(&self, engine: &Engine) -> Result<RuleSet, RulesError> {
        let files = self.origins.iter().filter_map(|origin| self.file(origin, engine).transpose());
        Ok(RuleSet::new(self.with_presets(files.collect::<Result<_, _>>()?)?))
    }

    /// These files, with the presets that they and the origins name, each once.
    fn with_presets(&self, mut files: Vec<RuleFile>) -> Result<Vec<RuleFile>, RulesError> {
        files.retain(|file| file.layer != Layer::Preset);
        let is_chosen = |origin: &RulesOrigin| matches!(origin, RulesOrigin::Edits);
        let has_edits = self.origins.iter().any(is_chosen) || files.iter().any(|file| file.edits);
        let of_origins = self.origins.iter().filter_map(|origin| match origin {
            RulesOrigin::Preset(preset) => Some(*preset),
            RulesOrigin::File(_)
            | RulesOrigin::Text(..)
            | RulesOrigin::Project(_)
            | RulesOrigin::Edits => None,
        });
        let named: Vec<_> = of_origins.chain(files.iter().filter_map(|it| it.preset)).collect();
        for (at, preset) in named.iter().enumerate() {
            if !named.iter().take(at).any(|earlier| earlier == preset) {
                files.push(self.preset(preset_text(*preset))?);
            }
        }
        if has_edits {
            files.push(self.preset(edits_text())?);
        }
        Ok(files)
    }

    /// A text of this crate. Its tests are run where the crate is tested, and not in each process that loads it.
    fn preset(&self, (name, text): (&str, &str)) -> Result<RuleFile, RulesError> {
        RuleFile::read(name, text, Layer::Preset, &self.tests).map(|(file, _)| file)
    }

    /// The rules before a change that may allow more, and that no person has accepted.
    pub(super) fn before(&self, latest: &RuleSet) -> Result<Option<RuleSet>, RulesError> {
        let Some(accepted) = &self.accepted else { return Ok(None) };
        let (mut files, mut is_wider) = (latest.files().to_vec(), false);
        for file in files.iter_mut().filter(|file| file.layer == Layer::User) {
            let Some(path) = file.path.clone() else { continue };
            if let Some(text) = accepted.before(&path, &file.text)? {
                let name = format!("{} as it was accepted", file.name);
                let (before, _) = RuleFile::read(&name, &text, Layer::User, &self.tests)?;
                (*file, is_wider) = (before.at(&path), true);
            }
        }
        if !is_wider {
            return Ok(None);
        }
        Ok(Some(RuleSet::new(self.with_presets(files)?)))
    }

    /// Records the files of a set as those that a person has accepted.
    pub(super) fn accept(&self, set: &RuleSet) {
        let Some(accepted) = &self.accepted else { return };
        for file in set.files().iter().filter(|file| file.layer == Layer::User) {
            let Some(path) = &file.path else { continue };
            if let Err(error) = accepted.accept(path, Some(&file.text)) {
                tracing::error!(file = %path.display(), %error, "accepted rules were not recorded: the next process asks again");
            }
        }
    }

    /// The file of an origin, if it has one: `with_presets` adds what origins and files only name.
    fn file(&self, origin: &RulesOrigin, engine: &Engine) -> Result<Option<RuleFile>, RulesError> {
        let named = |path: &Path| path.display().to_string();
        let (mut file, mut source) = match origin {
            RulesOrigin::Preset(_) | RulesOrigin::Edits => return Ok(None),
            RulesOrigin::Text(name, text) => RuleFile::read(name, text, Layer::User, &self.tests)?,
            RulesOrigin::File(path) => {
                let (file, source) =
                    RuleFile::read(&named(path), &read(path)?, Layer::User, &self.tests)?;
                (file.at(path), source)
            }
            RulesOrigin::Project(path) => {
                let (file, source) =
                    RuleFile::read(&named(path), &read(path)?, Layer::Project, &self.tests)?;
                (file.at(path), source)
            }
        };
        for rule in &file.rules {
            rule.people.iter().for_each(|people| people.check(&mut source, &self.groups));
        }
        self.run_tests(&mut file, source)?;
        if file.layer == Layer::Project
            && let Some(approvals) = &self.approvals
        {
            file.widens = approvals.is_approved(engine.places.root(), &file.digest);
        }
        Ok(Some(file))
    }

    /// Runs the tests in a file, against this file alone, with the preset that it names.
    fn run_tests(&self, file: &mut RuleFile, mut source: Source) -> Result<(), RulesError> {
        let mut tested = file.clone();
        // What a project's file allows is tested before it was approved, too.
        tested.widens = true;
        let edits = tested.edits.then(edits_text);
        let beside = tested.preset.map(preset_text).into_iter().chain(edits);
        let beside = beside.map(|text| self.preset(text)).collect::<Result<Vec<_>, _>>()?;
        let set = RuleSet::new([tested].into_iter().chain(beside).collect());
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
