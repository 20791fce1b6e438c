//! What the table claims about a form, and where it did something else.

use std::path::Path;

use countersign_shell::{Classifier, Dialect, Effect, Preset, Programs, SearchPath, Workspace};

use crate::place::{Effects, PROJECT};

/// What the table claims about a form that it allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// `true` if the preset `reader` allows it, too.
    pub reader: bool,
    /// It runs code of the workspace.
    pub builds: bool,
    /// It talks to a service or a host.
    pub sends: bool,
    /// The files that it may write, as programs in the place see them.
    pub writes: Vec<String>,
    /// The files and folders whose content it may read.
    pub reads: Vec<String>,
}

/// The table that is measured, over a workspace.
pub struct Table {
    reader: Classifier,
    developer: Classifier,
    layer: String,
}

impl Table {
    /// The table, in the workspace of a layer.
    pub fn new(programs: &Programs, layer: &Path) -> Self {
        let classifier = |preset| {
            let project = layer.join(PROJECT.trim_start_matches('/'));
            let workspace = Workspace::new(project).with_home(layer.join("home/dev"));
            Classifier::new(workspace, preset)
                .with_programs(programs.clone())
                .with_search_path(SearchPath::unchecked())
        };
        let layer = layer.display().to_string();
        Self { reader: classifier(Preset::Reader), developer: classifier(Preset::Developer), layer }
    }

    /// The table of the project's programs, in a workspace without files.
    pub fn lexical(programs: &Programs) -> Self {
        let classifier = |preset| {
            Classifier::new(Workspace::lexical(PROJECT).with_home("/home/dev"), preset)
                .with_programs(programs.clone())
                .with_search_path(SearchPath::unchecked())
        };
        let (reader, developer) = (classifier(Preset::Reader), classifier(Preset::Developer));
        Self { reader, developer, layer: String::new() }
    }

    /// What is claimed about a form; `None` if a developer is asked about it.
    pub fn claim(&self, form: &str) -> Option<Claim> {
        let judgement = self.developer.judge(form, Dialect::Bash);
        if !judgement.decision().is_allow() {
            return None;
        }
        let reader = self.reader.judge(form, Dialect::Bash).decision().is_allow();
        let mut claim =
            Claim { reader, builds: false, sends: false, writes: Vec::new(), reads: Vec::new() };
        let seen = |path: &Path| path.display().to_string().replacen(&self.layer, "", 1);
        for effect in judgement.parts().iter().flat_map(|part| part.effects()) {
            match effect {
                Effect::RunsWorkspace => claim.builds = true,
                Effect::Sends(_) | Effect::Queries(_) => claim.sends = true,
                Effect::Writes(path) => claim.writes.push(seen(path)),
                Effect::Reads(path) => claim.reads.push(seen(path)),
                _ => {}
            }
        }
        Some(claim)
    }
}

impl Claim {
    /// In the words of the table.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if self.builds {
            words.push("builds");
        }
        if !self.writes.is_empty() {
            words.push("writes");
        }
        if self.sends {
            words.push("queries");
        }
        if words.is_empty() {
            words.push("reads");
        }
        words.join(" ")
    }

    /// Where the effects are not within the claim, in words, one a difference.
    pub fn differences(&self, effects: &Effects) -> Vec<String> {
        let mut found = Vec::new();
        if !self.builds {
            found.extend(effects.fired.iter().map(|trap| format!("ran code: {trap}")));
            found.extend(effects.started.iter().map(|path| format!("started {path}")));
        }
        for path in &effects.written {
            if !self.may_write(path, effects) {
                found.push(format!("wrote {path}"));
            }
        }
        // The code of a project may talk to any host, so that a build is not held to fewer.
        if !self.sends && !self.builds {
            found.extend(effects.sent.iter().map(|host| format!("sent to {host}")));
        }
        if !self.builds {
            let shown = effects.shown.iter().filter(|path| !self.may_show(path));
            found.extend(shown.map(|path| format!("showed {path}")));
        }
        found
    }

    fn may_write(&self, path: &str, effects: &Effects) -> bool {
        let covers = |place: &String| {
            let place = place.trim_end_matches('/');
            path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                || place.strip_prefix(path).is_some_and(|_| path.ends_with('/'))
        };
        if self.writes.iter().any(covers) {
            return true;
        }
        match path.strip_prefix(PROJECT).and_then(|rest| rest.strip_prefix('/')) {
            // Version control refreshes what it knows about the files.
            Some(".git/index" | ".hg/dirstate") => true,
            Some(below)
                if [".hg/cache/", ".hg/wcache/"].iter().any(|place| below.starts_with(place)) =>
            {
                true
            }
            Some(below) => self.builds && !is_protected(below),
            // A program's own cache in the home, temporary files, and what the code of a project did there.
            None => !effects.changed.contains(path) || !effects.fired.is_empty(),
        }
    }

    /// A search through a folder shows what is in it, which the page says; a link leads out of it.
    fn may_show(&self, path: &str) -> bool {
        let below =
            |place: &String| path.strip_prefix(&**place).is_some_and(|rest| rest.starts_with('/'));
        path.starts_with(PROJECT) && self.reads.iter().any(below)
    }
}

fn is_protected(below: &str) -> bool {
    [".git/", ".hg/", ".svn/", ".claude/", ".vscode/"].iter().any(|place| below.starts_with(place))
        || matches!(below, ".env" | "CLAUDE.md" | "AGENTS.md" | ".gitattributes")
}
