//! Programs of the search path that are shims of a version manager: which program they start, a file of the workspace says.
//!
//! `jq` in `~/.local/share/mise/shims` is mise, and with `jq path:./tools` in `.tool-versions` it starts `./tools/bin/jq`. So a shim
//! runs code of the workspace, unless such files name nothing but versions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::files::bounded_text;
use super::lexical::is_in;

/// The files of version managers. mise reads further ones that its environment names.
const FILES: &[&str] = &[
    ".config/mise.toml",
    ".config/mise/config.toml",
    ".go-version",
    ".java-version",
    ".lua-version",
    ".mise.local.toml",
    ".mise.toml",
    ".mise/config.toml",
    ".node-version",
    ".nvmrc",
    ".perl-version",
    ".php-version",
    ".prototools",
    ".python-version",
    ".rtx.toml",
    ".ruby-version",
    ".terraform-version",
    ".tool-versions",
    "aqua.yaml",
    "aqua.yml",
    ".aqua.yaml",
    ".aqua.yml",
    "mise.local.toml",
    "mise.toml",
    "mise/config.toml",
];

/// Programs that links of other names lead to.
const MANAGERS: &[&str] = &["aqua-proxy", "asdf", "mise", "proto-shim", "rtx", "volta-shim"];

/// The longest such file, in bytes.
const MAX_SIZE: u64 = 64 << 10;

/// Returns `true` if a program is a shim, by the path under which it was found and the file that this leads to.
pub(super) fn is_shim(found: &Path, file: &Path) -> bool {
    let is_manager = |name: &OsStr| MANAGERS.iter().any(|manager| name == *manager);
    let leads_to_manager =
        found.file_name() != file.file_name() && file.file_name().is_some_and(is_manager);
    leads_to_manager || found.parent().is_some_and(|folder| folder.ends_with("shims"))
}

/// Returns `true` if a shim of this name may start a program of the workspace in one of these directories: by a file in there or
/// above, or as an installed package that volta prefers.
pub(crate) fn may_start_other(name: &str, here: &[PathBuf], root: &Path) -> bool {
    let mut folders = here.iter().flat_map(|it| it.ancestors().take_while(|it| is_in(it, root)));
    folders.any(|folder| {
        folder.join("node_modules/.bin").join(name).exists()
            || FILES.iter().any(|file| !names_versions(&folder.join(file)))
    })
}

/// Returns `true` if a file is not there, or names nothing but tools and their versions.
fn names_versions(file: &Path) -> bool {
    let text = match bounded_text(file, MAX_SIZE) {
        Ok(Some(text)) if !text.contains("..") => text,
        Ok(None) => return true,
        _ => return false,
    };
    let is_of_version = |c: char| c.is_ascii_alphanumeric() || " \t\r.-_+@*=\"'".contains(c);
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    match file.extension().and_then(|it| it.to_str()) {
        Some("yaml" | "yml") => false,
        // Other parts set variables and run commands, once the user trusts the file.
        Some("toml") => {
            let mut lines = lines.filter(|line| !line.is_empty());
            lines.next().is_none_or(|first| first == "[tools]")
                && lines.all(|line| line.chars().all(is_of_version))
        }
        _ => lines.all(|line| line.chars().all(is_of_version)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// P5: "A program of the search path that is a shim of a version manager".
    #[test]
    fn a_shim_is_known_by_its_folder_or_by_where_it_leads() {
        let of = |found: &str, file: &str| is_shim(Path::new(found), Path::new(file));
        assert!(of("/u/.asdf/shims/node", "/u/.asdf/shims/node"));
        assert!(of("/u/bin/node", "/u/.volta/bin/volta-shim") && of("/u/bin/jq", "/usr/bin/mise"));
        assert!(!of("/usr/bin/mise", "/usr/bin/mise") && !of("/usr/bin/vi", "/usr/bin/vim.basic"));
    }

    #[test]
    fn a_file_that_names_more_than_versions_may_start_another_program() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("docs")).unwrap();
        let may = |file: &str, text: &str| {
            fs::write(root.join(file), text).unwrap();
            let found = may_start_other("jq", &[root.join("docs")], &root);
            fs::remove_file(root.join(file)).unwrap();
            found
        };
        for (file, text) in [
            (".tool-versions", "node 22.1.0 # the usual one\njq 1.7\n"),
            (".ruby-version", "3.3.0\n"),
            ("mise.toml", "# tools\n[tools]\nnode = \"22\"\n"),
            (".prototools", "node = \"22\"\n"),
        ] {
            assert!(!may(file, text), "{file}: {text}");
        }
        for (file, text) in [
            (".tool-versions", "jq path:./tools\n"),
            (".ruby-version", "../../shop/tools\n"),
            ("mise.toml", "[tools]\njq = \"path:./tools\"\n"),
            ("mise.toml", "[env]\nX = \"1\"\n"),
            ("aqua.yaml", "packages: []\n"),
        ] {
            assert!(may(file, text), "{file}: {text}");
        }
    }
}
