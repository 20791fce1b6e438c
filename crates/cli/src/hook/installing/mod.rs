//! The entries in the configuration of clients that make them call the hook.
//!
//! Entries of other programs stay. Before we change a file, we copy it beside itself. Then we replace it in one step.

mod differences;
mod entry;
mod file;
mod named;
mod others;
mod project_settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::clients::Client;
use super::clients::files::{InstallError, Trust, json_value};
use super::clients::spec::{EntryForm, TrustCheck, WrittenForm};

pub use file::editable_text;
pub use named::HookFiles;
pub use others::OtherHook;
pub use project_settings::ProjectSettings;

/// An installation of the hook in one client, for a user or a project.
///
/// ```
/// use std::time::Duration;
/// use countersign_cli::hook::{Client, Installation};
///
/// # let home = tempfile::tempdir().unwrap();
/// let claude = Installation::of_user(Client::Claude, home.path())
///     .command(["/usr/local/bin/countersign", "hook", "claude"])
///     .limit(Duration::from_secs(300));
/// assert!(!claude.is_installed()?);
/// claude.install()?;
/// assert!(claude.is_installed()?);
/// assert!(std::fs::read_to_string(claude.path())?.contains(r#""onFailure": "block""#));
/// claude.uninstall()?;
/// # Ok::<(), countersign_cli::hook::InstallError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Installation {
    client: Client,
    path: PathBuf,
    command: Vec<String>,
    limit: Duration,
    /// Whether the file is the machine's, which no user and no project can switch off.
    is_managed: bool,
    /// Whether the caller keeps the file as it was.
    without_copy: bool,
}

/// What an installation has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installed {
    /// Whether the file was changed. It was not if it had the same entries already.
    pub changed: bool,
    /// The copy of the file as it was before; `None` if there was none, or nothing was changed.
    pub backup: Option<PathBuf>,
    /// Whether all hooks of the client were switched on, which a person had switched off, or are switched off again.
    pub switched: bool,
}

impl Installation {
    /// The installation for all sessions of a user, whose home directory this is.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Installation};
    /// let gemini = Installation::of_user(Client::Gemini, Path::new("/u/ann"));
    /// assert_eq!(gemini.path(), Path::new("/u/ann/.gemini/settings.json"));
    /// ```
    #[must_use]
    pub fn of_user(client: Client, home: &Path) -> Self {
        let place = &client.spec().place;
        Self::at(client, home.join(place.folder).join(place.file))
    }

    /// The installation for all sessions of the user who runs this process: as [`of_user`](Self::of_user), unless a
    /// variable of the environment tells the client to keep its configuration elsewhere.
    ///
    /// The variables are `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `GEMINI_CLI_HOME`, `COPILOT_HOME` and, for opencode,
    /// `XDG_CONFIG_HOME`. If we wrote the entry into a file that the client does not read, it would decide
    /// nothing, and nothing would say so.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Installation};
    /// let codex = Installation::of_environment(Client::Codex, Path::new("/u/ann"));
    /// assert!(codex.path().ends_with("hooks.json"));
    /// ```
    #[must_use]
    pub fn of_environment(client: Client, home: &Path) -> Self {
        Self::at(client, client.spec().place.of_user(home))
    }

    /// The installation for the sessions in a project, whose directory this is. A program that can write the
    /// project can remove it.
    ///
    /// It also counts for everyone who opens the project, as the file is usually committed.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Installation};
    /// let copilot = Installation::of_project(Client::Copilot, Path::new("/src/site"));
    /// assert_eq!(copilot.path(), Path::new("/src/site/.github/hooks/countersign.json"));
    /// ```
    #[must_use]
    pub fn of_project(client: Client, directory: &Path) -> Self {
        Self::at(client, directory.join(client.spec().place.project))
    }

    /// The installation in this file, for clients that are told to look elsewhere, as by an option.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("hooks.json");
    /// std::fs::write(&path, r#"{"hooks": {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "command": "lint"}]}]}}"#)?;
    /// let codex = Installation::at(Client::Codex, &path);
    /// let installed = codex.install()?;
    /// assert!(installed.changed && installed.backup.is_some());
    /// // Installing again changes nothing, and what others have configured stays.
    /// assert!(!codex.install()?.changed);
    /// codex.uninstall()?;
    /// assert!(std::fs::read_to_string(&path)?.contains("lint"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn at(client: Client, path: impl Into<PathBuf>) -> Self {
        let command = vec!["countersign".to_owned(), "hook".to_owned(), client.name().to_owned()];
        let limit = Duration::from_secs(300);
        Self { client, path: path.into(), command, limit, is_managed: false, without_copy: false }
    }

    /// The installation for all users of a machine, in the file that the client reads for administrators. `root` is `/`,
    /// or the directory of an image that becomes the root of a machine. `None` where no such file is known, which is so
    /// for opencode.
    ///
    /// A project cannot remove it, nor switch it off. It names no directories of a user, so that the hook finds those of
    /// the account that runs it.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Installation};
    /// let copilot = Installation::of_machine(Client::Copilot, Path::new("/")).unwrap();
    /// assert_eq!(copilot.path(), Path::new("/etc/github-copilot/policy.d/countersign.json"));
    /// assert!(Installation::of_machine(Client::Opencode, Path::new("/")).is_none());
    /// ```
    #[must_use]
    pub fn of_machine(client: Client, root: &Path) -> Option<Self> {
        let (file, of_mac) = client.spec().place.machine?;
        let file = if cfg!(target_os = "macos") { of_mac } else { file };
        Some(Self { is_managed: true, ..Self::at(client, root.join(file)) })
    }

    /// Sets the program, by its absolute path, and its arguments: `hook`, the client and options. The limit is added.
    ///
    /// Give words and not a line: each client quotes them as its file needs it. A shell runs them, and makes a denial
    /// of a program that is missing, crashes or is killed. The path has to be absolute, since a client that was
    /// started from a desktop has another search path than a shell.
    #[must_use]
    pub fn command<I: Into<String>>(mut self, words: impl IntoIterator<Item = I>) -> Self {
        self.command = words.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how long the client waits for the hook, and the hook for a person; five minutes by default. It is written in
    /// the client's unit.
    ///
    /// Less than a second is written as one second, as the units of the clients are seconds.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Makes no copy of the file beside it, for a caller that keeps one.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let claude = Installation::at(Client::Claude, home.path().join("settings.json"));
    /// std::fs::write(claude.path(), "{}")?;
    /// assert_eq!(claude.without_copy().install()?.backup, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn without_copy(mut self) -> Self {
        self.without_copy = true;
        self
    }

    /// The copies of the file that lie beside it, which installations have made before they changed it. They are hidden files.
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let claude = Installation::at(Client::Claude, home.path().join("settings.json"));
    /// assert!(claude.copies().is_empty());
    /// std::fs::write(claude.path(), "{}")?;
    /// assert_eq!(claude.install()?.backup, claude.copies().pop());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn copies(&self) -> Vec<PathBuf> {
        file::backups(&self.path).unwrap_or_default()
    }

    /// The file that the client reads.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place that no tool may write unasked, as that would switch the hook off: the folder with the client's settings
    /// and hooks. In a session whose project lies within that folder, it is only the file.
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// let copilot = Installation::at(Client::Copilot, "/u/ann/copilot/hooks/countersign.json");
    /// assert_eq!(copilot.own_place(Path::new("/src")), Path::new("/u/ann/copilot"));
    /// assert_eq!(copilot.own_place(Path::new("/u/ann/copilot/src")), copilot.path());
    /// ```
    #[must_use]
    pub fn own_place(&self, project: &Path) -> PathBuf {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = self.path.ancestors().nth(self.client.spec().place.levels);
        let folder = folder.filter(|folder| !real(project).starts_with(real(folder)));
        folder.unwrap_or(&self.path).to_owned()
    }

    /// Writes the entries. Earlier entries of this program are replaced.
    ///
    /// # Errors
    /// [`InstallError`] when the file is not the JSON that the client reads, or cannot be written.
    pub fn install(&self) -> Result<Installed, InstallError> {
        let (text, switched) = self.new_text()?;
        Ok(Installed { switched, ..self.replace(&text)? })
    }

    /// The text of the file as [`install`](Self::install) writes it, for a person who looks before anything is written.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let claude = Installation::of_user(Client::Claude, home.path());
    /// let planned = claude.planned()?;
    /// assert!(planned.contains("PreToolUse") && !claude.path().exists());
    /// claude.install()?;
    /// assert_eq!(std::fs::read_to_string(claude.path())?, planned);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn planned(&self) -> Result<String, InstallError> {
        Ok(self.new_text()?.0)
    }

    fn new_text(&self) -> Result<(String, bool), InstallError> {
        match self.written() {
            WrittenForm::Plugin(form) => Ok(((form.text)(&self.words(None), self.limit), false)),
            WrittenForm::Entries(form) => self.edited(form, true),
        }
    }

    /// Removes the entries, and keeps everything else.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn uninstall(&self) -> Result<Installed, InstallError> {
        let Some(before) = self.read()? else {
            return Ok(Installed { changed: false, backup: None, switched: false });
        };
        let form = match self.written() {
            WrittenForm::Plugin(form) if (form.is_ours)(&before) => {
                return file::remove(&self.path);
            }
            WrittenForm::Plugin(_) => return Err(self.of_another()),
            WrittenForm::Entries(form) => form,
        };
        let (text, switched) = self.edited(form, false)?;
        if !entry::is_in(&parsed(&self.path, &before)?, self.client) {
            return Ok(Installed { changed: false, backup: None, switched: false });
        }
        if let Some(backup) = self.backup_of(&before, &text)? {
            return Ok(Installed { switched, ..file::restore(&self.path, &backup)? });
        }
        if text == "{}\n" || (form.version.is_some() && entry::is_bare(&text)) {
            return file::remove(&self.path);
        }
        Ok(Installed { switched, ..self.replace(&text)? })
    }

    /// Whether the file has exactly the entries that [`install`](Self::install) would write.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    pub fn is_installed(&self) -> Result<bool, InstallError> {
        let Some(before) = self.read()? else { return Ok(false) };
        Ok(match self.written() {
            WrittenForm::Plugin(form) => before == (form.text)(&self.words(None), self.limit),
            WrittenForm::Entries(form) => {
                parsed(&self.path, &before)? == parsed(&self.path, &self.edited(form, true)?.0)?
            }
        })
    }

    /// Whether the file has an entry of this program, with any options.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let claude = Installation::of_user(Client::Claude, home.path());
    /// claude.install()?;
    /// // Other options: there is an entry, and it is not the one that would be written.
    /// let other = claude.clone().limit(std::time::Duration::from_secs(30));
    /// assert!(other.has_entry()? && !other.is_installed()?);
    /// # Ok::<(), countersign_cli::hook::InstallError>(())
    /// ```
    pub fn has_entry(&self) -> Result<bool, InstallError> {
        let Some(before) = self.read()? else { return Ok(false) };
        Ok(match self.written() {
            WrittenForm::Plugin(form) => (form.is_ours)(&before),
            WrittenForm::Entries(_) => {
                entry::find(&parsed(&self.path, &before)?, self.client).is_some()
            }
        })
    }

    /// The program that the client runs, as the entry names it; `None` without an entry, and where a person has written
    /// it in another way.
    ///
    /// The program may have been moved since: then each call is denied.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let gemini = Installation::of_user(Client::Gemini, home.path());
    /// assert_eq!(gemini.installed_program()?, None);
    /// gemini.clone().command(["/opt/a b/countersign", "hook", "gemini"]).install()?;
    /// assert_eq!(gemini.installed_program()?.as_deref(), Some(Path::new("/opt/a b/countersign")));
    /// # Ok::<(), countersign_cli::hook::InstallError>(())
    /// ```
    pub fn installed_program(&self) -> Result<Option<PathBuf>, InstallError> {
        let words = self.installed_command()?.unwrap_or_default();
        Ok(words.into_iter().next().map(PathBuf::from))
    }

    /// The command that the client runs, from its program on: `…/countersign hook claude`, and the options; `None`
    /// without an entry, and where a person has written it in another way.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let codex = Installation::of_user(Client::Codex, home.path());
    /// codex.clone().command(["/opt/countersign", "hook", "codex", "--rules", "/u/a b.toml"]).install()?;
    /// let words = codex.installed_command()?.unwrap();
    /// assert_eq!(words, ["/opt/countersign", "hook", "codex", "--rules", "/u/a b.toml", "--limit", "300"]);
    /// # Ok::<(), countersign_cli::hook::InstallError>(())
    /// ```
    pub fn installed_command(&self) -> Result<Option<Vec<String>>, InstallError> {
        let Some(before) = self.read()? else { return Ok(None) };
        Ok(match self.written() {
            WrittenForm::Plugin(form) => (form.words)(&before),
            WrittenForm::Entries(_) => {
                let settings = parsed(&self.path, &before)?;
                entry::find(&settings, self.client).and_then(|it| entry::words(it.value))
            }
        })
    }

    /// The differences between the entries that are there and those that [`install`](Self::install) writes with the
    /// options of that command. They are about the limit of the client and that of the hook, the tools and events
    /// that the client asks about, and what it does when the hook is too late. Each is a sentence. There is none
    /// where all is in order.
    ///
    /// # Errors
    /// As [`install`](Self::install).
    ///
    /// ```
    /// use countersign_cli::hook::{Client, Installation};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let claude = Installation::of_user(Client::Claude, home.path());
    /// claude.install()?;
    /// assert!(claude.differences()?.is_empty());
    /// let text = std::fs::read_to_string(claude.path())?;
    /// std::fs::write(claude.path(), text.replace("\"timeout\": 300", "\"timeout\": 5"))?;
    /// assert!(claude.differences()?[0].starts_with("`timeout` of `PreToolUse` is 5 (`install` writes 300)"));
    /// # Ok::<(), countersign_cli::hook::InstallError>(())
    /// ```
    pub fn differences(&self) -> Result<Vec<String>, InstallError> {
        let Some(before) = self.read()? else { return Ok(Vec::new()) };
        Ok(match self.written() {
            WrittenForm::Plugin(form) => differences::of_plugin(self, form, &before),
            WrittenForm::Entries(form) => {
                differences::of_entries(self, form, &parsed(&self.path, &before)?)
            }
        })
    }

    /// The other hooks that the client asks about tool calls, in its files of the user, whose home directory this is,
    /// and of a project: each of them may change a call that this one has allowed.
    ///
    /// We list plugins and extensions that those files name, unless they are known to have no hooks. We do not look at the
    /// files of the whole machine.
    #[must_use]
    pub fn other_hooks(&self, home: &Path, project: &Path) -> Vec<OtherHook> {
        others::of(self, home, project)
    }

    /// Whether the client calls the hook, as far as its own files say: that no switch turns hooks off, and that Codex
    /// trusts the entry. `home` is the user's home directory, and `directory` that of the sessions.
    ///
    /// Changes nothing, as only the user can give trust. What the files do not say, such as an option of the client's
    /// command line, only a call can show.
    ///
    /// # Errors
    /// As [`install`](Self::install), also for the other files of the client.
    pub fn trust(&self, home: &Path, directory: &Path) -> Result<Trust, InstallError> {
        let settings = match (self.written(), self.read()?) {
            (WrittenForm::Entries(_), Some(before)) => parsed(&self.path, &before)?,
            _ => Value::Null,
        };
        let user = Self::of_environment(self.client, home).path;
        let entry = entry::find(&settings, self.client);
        let (path, is_managed) = (self.path.as_path(), self.is_managed);
        let check = TrustCheck { path, is_managed, entry, user: &user, directory };
        (self.client.spec().trust)(&check)
    }

    fn written(&self) -> &'static WrittenForm {
        &self.client.spec().written
    }

    fn of_another(&self) -> InstallError {
        InstallError::new(&self.path, "another program has written this plugin")
    }

    fn read(&self) -> Result<Option<String>, InstallError> {
        editable_text(&self.path)
    }

    /// The file with the entries, or without them, and whether that switches the hooks of the client on or off.
    fn edited(&self, form: &EntryForm, with: bool) -> Result<(String, bool), InstallError> {
        let before = self.read()?.filter(|text| !text.trim().is_empty());
        let mut settings = match before {
            Some(text) => {
                parsed(&self.path, &text).map_err(|error| self.by_hand(form, error, with))?
            }
            None => Value::Object(serde_json::Map::new()),
        };
        let problem = |problem: String| InstallError::new(&self.path, problem);
        let said = entry::SwitchBefore::said(&settings, self.client);
        let found = entry::SwitchBefore::found(&settings, self.client, form);
        entry::remove(&mut settings, self.client).map_err(problem)?;
        let switched = match with {
            true => {
                let is_off = form.switch.is_some_and(|(table, field)| {
                    settings.get(table).and_then(|it| it.get(field)) == Some(&Value::Bool(false))
                });
                let words = |event: &str| self.words(Some(event));
                entry::add(&mut settings, self.client, form, self.limit, found, &words)
                    .map_err(problem)?;
                is_off
            }
            false => {
                entry::switch_back(&mut settings, form, said);
                said == entry::SwitchBefore::Off
            }
        };
        Ok((pretty(&self.path, &settings)?, switched))
    }

    /// The copy that the installation has made, if the file is still what the installation wrote: without the entries, both
    /// say the same.
    fn backup_of(&self, now: &str, without: &str) -> Result<Option<PathBuf>, InstallError> {
        if now != pretty(&self.path, &parsed(&self.path, now)?)? {
            return Ok(None);
        }
        for backup in file::backups(&self.path)? {
            let Ok(Some(text)) = editable_text(&backup) else { continue };
            let Ok(mut settings) = parsed(&self.path, &text) else { continue };
            if entry::is_in(&settings, self.client) {
                continue;
            }
            let is_same = entry::remove(&mut settings, self.client).is_ok()
                && settings == parsed(&self.path, without)?;
            return Ok(is_same.then_some(backup));
        }
        Ok(None)
    }

    /// What a person has to do with a file that cannot be changed without loss.
    fn by_hand(&self, form: &EntryForm, error: InstallError, with: bool) -> InstallError {
        let mut entries = Value::Object(serde_json::Map::new());
        let words = |event: &str| self.words(Some(event));
        let added = entry::add(
            &mut entries,
            self.client,
            form,
            self.limit,
            entry::SwitchBefore::On,
            &words,
        );
        let text = serde_json::to_string_pretty(&entries).unwrap_or_default();
        match added {
            Ok(_) if with => error.and(&format!(
                "repair the file, and run this command again, or add this to it by hand:\n{text}"
            )),
            _ => error.and("remove each hook with `countersign` in its command by hand"),
        }
    }

    /// The words of the command, for an event where the client's payloads do not name it.
    fn words(&self, event: Option<&str>) -> Vec<String> {
        let mut words = self.command.clone();
        words.extend(["--limit".to_owned(), self.limit.as_secs_f64().to_string()]);
        if let Some(event) = event.filter(|_| self.client.spec().payload.unnamed.is_some()) {
            words.extend(["--event".to_owned(), event.to_owned()]);
        }
        words
    }

    fn replace(&self, text: &str) -> Result<Installed, InstallError> {
        if let WrittenForm::Plugin(form) = self.written()
            && let Some(before) = self.read()?
            && !(form.is_ours)(&before)
        {
            return Err(self.of_another());
        }
        file::replace(&self.path, text, !self.without_copy)
    }
}

/// Settings as an installation writes them.
fn pretty(path: &Path, settings: &Value) -> Result<String, InstallError> {
    let text = serde_json::to_string_pretty(settings);
    text.map(|text| text + "\n").map_err(|error| InstallError::new(path, error))
}

/// Some clients allow comments in a settings file. They would be lost if we wrote it anew, so we refuse such a
/// file.
fn parsed(path: &Path, text: &str) -> Result<Value, InstallError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let problem = match json_value(text) {
            Some(_) => {
                "it has comments or commas that would be lost, as it is not plain JSON".to_owned()
            }
            None => format!("it is not JSON ({error})"),
        };
        InstallError::new(path, problem)
    })?;
    let problem = match value.is_object() {
        true if tokens(text) == tokens(&value.to_string()) => return Ok(value),
        true => "it has a key twice, of which one would be lost",
        false => "it is not a JSON object",
    };
    Err(InstallError::new(path, problem))
}

/// The names, texts, numbers and marks of a JSON text, sorted, with the texts and numbers as they are read.
fn tokens(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => {
                let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                if let Some(Ok(value)) = texts.next() {
                    found.push(format!("{value:?}"));
                }
                texts.byte_offset()
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || "{}[],:\"".contains(c);
                let end = rest
                    .char_indices()
                    .skip(1)
                    .find(|(at, c)| *at > 0 && (ends(*c) || ends(first)));
                let end = end.map_or(rest.len(), |(at, _)| at);
                let token = rest.get(..end).unwrap_or_default();
                // To a client, `1e2` and `100` are one number.
                let number = token.parse::<f64>().map(|number| number.to_string());
                found.push(number.unwrap_or_else(|_| token.to_owned()));
                end
            }
        };
        rest = rest.get(end.max(first.len_utf8())..).unwrap_or_default().trim_start();
    }
    found.sort_unstable();
    found
}
