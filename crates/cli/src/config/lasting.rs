//! The program that an entry of a client can name: one that stays, and that no project can exchange.
//!
//! The program may run from a place that is not meant to last: `uvx` runs it from a cache that is cleaned, `pip` installs it
//! into a virtual environment of one project, and a build leaves it in a folder of the project. An entry with such a path
//! breaks with the next clean-up, and then every call is denied. Or a project puts another program there.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ConfigError, private};

/// The program for the entry of a client: the one that runs, or a copy of it in the user's own directory.
///
/// ```
/// use countersign_cli::config::LastingProgram;
///
/// # let home = tempfile::tempdir().unwrap();
/// let (venv, state) = (home.path().join("venv"), home.path().join("state"));
/// std::fs::create_dir_all(venv.join("bin")).unwrap();
/// std::fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin").unwrap();
/// std::fs::write(venv.join("bin/countersign"), "a program").unwrap();
///
/// let program = LastingProgram::of(&venv.join("bin/countersign"), home.path(), &state);
/// assert!(program.path().starts_with(state.join("bin")) && program.why_copied().is_some());
/// program.write()?;
/// assert_eq!(std::fs::read_to_string(program.path()).unwrap(), "a program");
/// # Ok::<(), countersign_cli::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastingProgram {
    running: PathBuf,
    copy: Option<(PathBuf, &'static str)>,
}

impl LastingProgram {
    /// The program for entries where this one runs, for the user with this home directory and this state directory.
    #[must_use]
    pub fn of(running: &Path, home: &Path, state: &Path) -> Self {
        let own = Self::in_state(state);
        let is_own = running == own || own.canonicalize().is_ok_and(|own| running == own);
        let why = passing(running, home).filter(|_| !is_own);
        Self { running: running.to_owned(), copy: why.map(|why| (own, why)) }
    }

    /// The place of the copy in a state directory.
    fn in_state(state: &Path) -> PathBuf {
        state.join("bin").join(format!("countersign{}", env::consts::EXE_SUFFIX))
    }

    /// The path for the entry.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.copy.as_ref().map_or(&self.running, |(path, _)| path)
    }

    /// The place of the running program, if it is one that needs a copy; `None` if entries may start it where it is.
    #[must_use]
    pub fn why_copied(&self) -> Option<&'static str> {
        self.copy.as_ref().map(|(_, why)| *why)
    }

    /// Returns `true` if the copy is there, and is the running program. `true` where none is needed.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.copy.as_ref().is_none_or(|(copy, _)| have_equal_bytes(&self.running, copy))
    }

    /// Makes the copy, where one is needed and is not there. A program that runs from an earlier copy is not disturbed.
    ///
    /// # Errors
    /// [`ConfigError`] where the copy cannot be written, or another user could change it.
    pub fn write(&self) -> Result<(), ConfigError> {
        let Some((copy, _)) = &self.copy else { return Ok(()) };
        if let Some(folder) = copy.parent() {
            private::directory(folder)?;
        }
        if self.is_current() {
            return private::check_unchangeable(copy);
        }
        let error = |problem: io::Error| ConfigError::file(copy, problem);
        remove_unfinished(copy);
        let unfinished = copy.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
        let written = fs::copy(&self.running, &unfinished)
            .and_then(|_| own_alone(&unfinished))
            .and_then(|()| fs::rename(&unfinished, copy));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written.map_err(error)
    }
}

/// We take a copy for unfinished if it was written last this long ago: no process is still writing
/// it.
const GIVEN_UP: Duration = Duration::from_secs(600);

/// Removes what a process that was killed has left of a copy: some hundred megabytes.
fn remove_unfinished(copy: &Path) {
    let Some((folder, name)) = copy.parent().zip(copy.file_stem()) else { return };
    let begins = format!("{}.", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().into_owned();
        let written = entry.metadata().and_then(|it| it.modified()).ok();
        let is_old = written.and_then(|at| at.elapsed().ok()).is_some_and(|it| it > GIVEN_UP);
        if named.starts_with(&begins) && named.ends_with(".new") && is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Lets this user alone change and run a program.
fn own_alone(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// The kind of place that a program is in, if it is none to stay in.
fn passing(program: &Path, home: &Path) -> Option<&'static str> {
    let temporary = [env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    for folder in program.ancestors().skip(1).take_while(|it| it.parent().is_some()) {
        let is_named = |name: &str| folder.file_name() == Some(OsStr::new(name));
        if folder.join("pyvenv.cfg").is_file() {
            return Some("a virtual environment");
        }
        if is_named(".cache") || is_named("Caches") || folder.join("CACHEDIR.TAG").is_file() {
            return Some("a cache");
        }
        if temporary.iter().any(|it| it.canonicalize().is_ok_and(|it| it == folder)) {
            return Some("a temporary directory");
        }
        // A home directory may be a repository of the user's own settings.
        if folder != home && !home.starts_with(folder) && folder.join(".git").exists() {
            return Some("a project");
        }
    }
    None
}

fn have_equal_bytes(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| fs::metadata(path).map(|it| it.len());
    let (Ok(first), Ok(second)) = (length(one), length(other)) else { return false };
    if first != second {
        return false;
    }
    let (Ok(mut one), Ok(mut other)) = (fs::File::open(one), fs::File::open(other)) else {
        return false;
    };
    let (mut first, mut second) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let Ok(read) = one.read(&mut first) else { return false };
        let (Some(first), Some(second)) = (first.get(..read), second.get_mut(..read)) else {
            return false;
        };
        if read == 0 {
            return true;
        }
        if other.read_exact(second).is_err() || first != second {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home directory that lies in no temporary one.
    fn place(path: &str) -> Option<&'static str> {
        passing(Path::new(path), Path::new("/users/ann"))
    }

    #[test]
    fn what_a_killed_process_has_left_of_a_copy_is_removed_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let old = std::time::SystemTime::now() - GIVEN_UP * 2;
        for (name, is_old) in
            [("countersign.1.new", true), ("countersign.2.new", false), ("other.1.new", true)]
        {
            let file = fs::File::create(at(name)).unwrap();
            if is_old {
                file.set_modified(old).unwrap();
            }
        }
        remove_unfinished(&at("countersign"));
        let left =
            ["countersign.1.new", "countersign.2.new", "other.1.new"].map(|name| at(name).exists());
        assert_eq!(
            left,
            [false, true, true],
            "one that is being written stays, and so does what is not ours"
        );
    }

    #[test]
    fn a_program_that_may_go_away_is_known_by_its_place() {
        assert_eq!(place("/users/ann/.cache/uv/archive-v0/x/bin/countersign"), Some("a cache"));
        assert_eq!(place("/users/ann/Library/Caches/uv/bin/countersign"), Some("a cache"));
        assert_eq!(place("/tmp/pip-1/bin/countersign"), Some("a temporary directory"));
        for stays in ["/usr/bin/countersign", "/users/ann/.cargo/bin/countersign"] {
            assert_eq!(place(stays), None, "{stays}");
        }
    }
}
