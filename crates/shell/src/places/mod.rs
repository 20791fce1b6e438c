//! Places on disk that commands lead to: paths, links, repositories and programs.

pub(super) mod committed;
pub(super) mod definitions;
pub(super) mod files;
pub(super) mod git_settings;
pub(super) mod index;
pub(super) mod lexical;
pub(super) mod links;
pub(super) mod objects;
pub(super) mod own_repository;
pub(super) mod paths;
pub(super) mod registries;
pub(super) mod remotes;
pub(super) mod repository;
pub(super) mod script_files;
pub(super) mod search_path;
pub mod secrets;
pub(super) mod shims;
pub(super) mod worktrees;
