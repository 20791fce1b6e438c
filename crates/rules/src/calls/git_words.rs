//! The words of a command of git: what stands in front of the sub-command, and the sub-command.
//!
//! We read the options up to the first word that is none, as git does. For example, `git -C x status` works in `x`, and in
//! `git log -C` the option is one of `log`.

use countersign_shell::{GIT_VALUES, Part};

/// The options in front of the sub-command of git, and the sub-command.
#[derive(Debug, Default)]
pub(crate) struct GitWords<'p> {
    /// The values of the options that move git to another place.
    pub(crate) moves: Vec<&'p str>,
    /// The settings that it is given for this run, `core.pager=cat`.
    pub(crate) settings: Vec<&'p str>,
    pub(crate) sub: Option<&'p str>,
    /// The words behind the sub-command.
    pub(crate) rest: &'p [String],
}

impl<'p> GitWords<'p> {
    /// The words of a part. Empty for another program.
    pub(crate) fn of(part: &'p Part) -> Self {
        let mut found = Self::default();
        if !part.program_name().eq_ignore_ascii_case("git") {
            return found;
        }
        let mut words = part.argv().get(1..).unwrap_or_default().iter();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                (found.sub, found.rest) = (Some(word.as_str()), words.as_slice());
                break;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if GIT_VALUES.contains(&&**word) => (&**word, words.next().map(|it| &**it)),
                None => (&**word, None),
            };
            match name {
                "-C" | "--git-dir" | "--work-tree" | "--exec-path" => found.moves.extend(value),
                "-c" | "--config-env" => found.settings.extend(value),
                _ => {}
            }
        }
        if found.sub == Some("clone") {
            found.clones();
        }
        found
    }

    /// A clone takes settings behind its name, too.
    fn clones(&mut self) {
        let rest = self.rest;
        for (at, word) in rest.iter().enumerate() {
            let attached = word.strip_prefix("--config=");
            let next = matches!(&**word, "-c" | "--config").then(|| rest.get(at + 1)).flatten();
            self.settings.extend(attached.or(next.map(String::as_str)));
        }
    }
}
