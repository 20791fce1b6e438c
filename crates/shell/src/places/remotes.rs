//! Tells whether `git fetch` from a remote only brings what is new there.
//!
//! A fetch talks to the host that the repository's settings name, and these may say more: a program that runs in the
//! place of `ssh`, another host for an address, a local branch that is overwritten, sub-modules that are fetched as well.
//! The settings are read as a text. A fetch is plain where they say none of that, and where the remote is reached by `https`
//! or `ssh`. What stands in the user's own configuration is the user's choice.
//!
//! A name that no setting has is one that git fails to fetch from, unless a file or a folder is called so.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::{bounded_text, git_folder};
use super::paths::Workspace;
use super::registries::MAX_CONFIGURATION;
use super::repository::{Setting, common_folder, names_programs, settings};

/// Hooks that run while something is fetched.
const HOOKS: &[&str] = &["reference-transaction", "pre-auto-gc"];

/// The remotes that a command fetches from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Remotes<'a> {
    Named(&'a str),
    /// The one that git takes by itself.
    Default,
    /// Each that the settings have: `git fetch --all`.
    All,
}

/// Why a fetch from these remotes may do more than bring what is new. `None` where it does not, which is not known in a
/// [`lexical`](Workspace::lexical) workspace.
pub(crate) fn fetches_more(
    workspace: &Workspace,
    remote: Remotes<'_>,
    here: &[PathBuf],
) -> Option<&'static str> {
    if !workspace.looks() {
        return Some("the settings of the repository are not looked at");
    }
    for at in workspace.start().ancestors() {
        let dot = at.join(".git");
        if fs::symlink_metadata(&dot).is_ok() {
            return problem(&dot, remote, here);
        }
    }
    Some("there is no repository with settings that could be read")
}

fn problem(dot: &Path, remote: Remotes<'_>, here: &[PathBuf]) -> Option<&'static str> {
    const UNREADABLE: Option<&str> = Some("the settings of the repository cannot be read");
    if names_programs(dot).unwrap_or(true) {
        return Some("the settings of the repository may run programs");
    }
    let Ok(own) = git_folder(dot) else { return UNREADABLE };
    let Ok(common) = common_folder(&own) else { return UNREADABLE };
    if HOOKS.iter().any(|hook| common.join("hooks").join(hook).exists()) {
        return Some("a hook of the repository runs with it");
    }
    let mut all = Vec::new();
    for file in [own.join("config"), own.join("config.worktree"), common.join("config")] {
        match bounded_text(&file, MAX_CONFIGURATION) {
            Ok(None) => {}
            Ok(Some(text)) => match settings(&text) {
                Some(found) => all.extend(found),
                None => return UNREADABLE,
            },
            Err(_) => return UNREADABLE,
        }
    }
    if let Some(why) = all.iter().find_map(changes) {
        return Some(why);
    }
    let named = match remote {
        Remotes::Named(name) => vec![name],
        Remotes::All => {
            let of_remotes = all.iter().filter(|it| it.section == "remote");
            of_remotes.map(|it| it.of.as_str()).collect()
        }
        Remotes::Default => {
            let of_branches = all.iter().filter(|it| it.section == "branch" && it.key == "remote");
            of_branches.map(|it| it.value.as_str()).chain(["origin"]).collect()
        }
    };
    let is_file = |name: &str| {
        let old = ["remotes", "branches"].map(|folder| common.join(folder).join(name));
        old.into_iter().chain(here.iter().map(|at| at.join(name))).any(|it| it.exists())
    };
    let is_unknown = |name: &&str| {
        !is_plain_name(name) || !all.iter().any(|it| it.is_of_remote(name)) && is_file(name)
    };
    let leads = all.iter().find_map(|it| {
        let is_named = named.iter().any(|name| it.is_of_remote(name));
        is_named.then(|| it.leads_elsewhere()).flatten()
    });
    match named.iter().any(is_unknown) {
        true => {
            Some("what it names is no remote of the repository, but may be a folder or an address")
        }
        false => leads,
    }
}

/// The reason why a setting changes every fetch, if it does.
fn changes(it: &Setting) -> Option<&'static str> {
    let is_off = || matches!(it.value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0");
    match (it.section.as_str(), it.key.as_str()) {
        ("url", "insteadof" | "pushinsteadof") => {
            Some("a setting puts another address in its place")
        }
        ("include" | "includeif", _) => Some("the settings of the repository include others"),
        ("core", "gitproxy" | "askpass") | ("credential", "helper") | ("ssh", "variant") => {
            Some("the settings of the repository may run programs")
        }
        ("remote", "uploadpack" | "vcs" | "proxy" | "mirror") | ("remotes" | "protocol", _) => {
            Some("the settings of the repository change what is fetched")
        }
        // These change how much is sent at once, and the header by which a pipeline logs in.
        ("http", "postbuffer" | "lowspeedlimit" | "lowspeedtime" | "version" | "extraheader") => {
            None
        }
        ("http" | "https", _) => Some("the settings of the repository change how it is reached"),
        ("fetch", "bundleuri") | ("bundle", _) => {
            Some("the settings of the repository change what is fetched")
        }
        ("fetch" | "remote", "prunetags") if !is_off() => {
            Some("tags that were not pushed are deleted")
        }
        ("fetch", "recursesubmodules") | ("submodule", "recurse") if !is_off() => {
            Some("sub-modules are fetched as well")
        }
        _ => None,
    }
}

impl Setting {
    fn is_of_remote(&self, name: &str) -> bool {
        self.section == "remote" && self.of == name
    }

    /// Why a setting of a remote leads to another place than a branch of the remote at a host.
    fn leads_elsewhere(&self) -> Option<&'static str> {
        match self.key.as_str() {
            "url" if !is_remote_address(&self.value) => {
                Some("the remote is not reached by `https` or `ssh`")
            }
            "fetch" if !is_of_remote_branches(&self.value) => {
                Some("a setting writes what is fetched into branches of the repository")
            }
            _ => None,
        }
    }
}

fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

/// Returns `true` if an address is one of a host that is reached by `https` or `ssh`: `https://host/path`,
/// `ssh://ann@host/path`, or `ann@host:path`.
fn is_remote_address(address: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/:@+%".contains(c);
    let host = |host: &str| {
        let name = host.rsplit('@').next().unwrap_or_default();
        host.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    if !address.chars().all(plain) || address.contains("::") {
        return false;
    }
    match address.split_once("://") {
        Some(("https" | "ssh", rest)) => rest.split('/').next().is_some_and(host),
        Some(_) => false,
        None => address.split_once(':').is_some_and(|(before, path)| {
            let user = before.starts_with(|c: char| c.is_ascii_alphanumeric());
            user && !before.contains('/') && host(before) && !path.starts_with('-')
        }),
    }
}

/// Returns `true` if a mapping writes branches of the remote below `refs/remotes`, where no local branch is.
fn is_of_remote_branches(mapping: &str) -> bool {
    match mapping.split_once(':') {
        Some((_, to)) => to.starts_with("refs/remotes/") && !to.contains(".."),
        None => true,
    }
}
