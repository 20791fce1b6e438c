//! The rules that decide about the calls of a hook.
//!
//! A hook takes the rules of the user and none of the project, since an agent can write files in
//! the project.

use std::path::{Path, PathBuf};

use countersign::error::with_causes;
use countersign_cli::config::{Config, Directories, StoreUrl};
use countersign_rules::{CallCounts, Rules, RulesError};

use crate::accepted::accepted_rules;
use crate::preset_name::PresetName;

/// The sources of the rules of a hook.
#[derive(Clone, Copy)]
pub(super) struct RuleSources<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) preset: Option<PresetName>,
    /// `true` if they are compared with what this user has accepted, and recorded.
    pub(super) are_recorded: bool,
    /// `true` if edits in the project run unasked.
    pub(super) edits: bool,
    /// Files outside of the project that commands may read.
    pub(super) own_files: &'a [PathBuf],
}

/// The rules in these files, or else in `rules.toml` of the user's configuration directory, with those of the preset. `None` when there are none:
/// then every call is asked about. A file that was there at an earlier call and is gone is an error. `own` are the places
/// that no tool may write unasked.
pub(super) fn load(
    sources: RuleSources<'_>,
    (config, url): (&Config, Option<&StoreUrl>),
    directories: &Directories,
    root: &Path,
    own: &[PathBuf],
    counts: impl CallCounts,
) -> Result<Option<Rules>, String> {
    let of_user = directories.config().join("rules.toml");
    let problem = |error: RulesError| with_causes(&error);
    let accepted = accepted_rules(directories);
    let files = match sources.files {
        [] if accepted.is_there(&of_user).map_err(problem)? => vec![of_user],
        [] if sources.preset.is_none() && !sources.edits => return Ok(None),
        files => files.to_vec(),
    };
    let rules = Rules::builder().root(root).counts(counts).home(directories.home());
    let rules = rules.own_files(sources.own_files);
    let mut rules = config.for_rules(rules, directories, url);
    if sources.are_recorded {
        rules = rules.accepted(accepted);
    }
    if let Some(preset) = sources.preset {
        rules = rules.preset(preset.preset());
    }
    if sources.edits {
        rules = rules.edits_in_workspace();
    }
    for place in own {
        rules = rules.protect(place);
    }
    for file in files {
        rules = rules.file(file);
    }
    rules.load().map(Some).map_err(problem)
}
