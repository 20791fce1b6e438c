//! The store and the directories of a running guard. The guard takes them from its options and from the
//! account (rule P1).

use std::path::{Path, PathBuf};

use countersign_cli::config::StoreUrl;

use crate::Context;
use crate::account_settings::AccountSettings;
use crate::output::CommandError;
use crate::paths;

/// The file of the rules for a server, unless another one is named.
pub(super) fn usual_rules(context: &Context, server: &str) -> PathBuf {
    context.directories.config().join("guard").join(format!("{server}.toml"))
}

/// Says in the log which variables are settings of other commands and count for nothing here.
pub(super) fn warn_of_variables(settings: &AccountSettings, context: &Context) {
    let file = context.config_file.as_deref();
    for (name, option) in settings.without_effect(&context.directories, file) {
        tracing::warn!(
            target: "countersign::guard",
            "the variable `{name}` counts for nothing in a guard, as a project can set it: use the option `{option}`"
        );
    }
}

/// An error where the store, the configuration or the state lies in the project, whose tools could write it.
pub(super) fn refuse_in_project(
    context: &Context,
    url: Option<&StoreUrl>,
    project: &Path,
) -> Result<(), CommandError> {
    match in_project(context, url, project).first() {
        None => Ok(()),
        Some((what, place, option)) => Err(CommandError::Usage(format!(
            "{what} `{}` lies in the project `{}`, whose tools could change it: name another place by `{option}`",
            place.display(),
            project.display()
        ))),
    }
}

/// The places of this user that lie in a project, each with its name and its option.
pub(super) fn in_project(
    context: &Context,
    url: Option<&StoreUrl>,
    project: &Path,
) -> Vec<(&'static str, PathBuf, &'static str)> {
    let directories = &context.directories;
    let is_in_project = paths::in_project(project, directories.home());
    let mut places = vec![
        ("the configuration", directories.config().to_owned(), "--config-dir"),
        ("the state", directories.state().to_owned(), "--state-dir"),
    ];
    if let StoreUrl::Sqlite(file) = context.config.store_url(directories, url) {
        places.push(("the store", std::path::absolute(&file).unwrap_or(file), "--store"));
    }
    if let Some(file) = &context.config_file {
        places.push(("the configuration file", file.clone(), "--config"));
    }
    places.retain(|(_, place, _)| is_in_project(place));
    places
}
