//! Protected places, and the ways of writing their names.

use super::List;
use super::desk::Desk;

/// In a project: what says what runs in it, or what an agent may do.
pub(super) const IN_A_PROJECT: &[&str] = &[
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/hooks/post-checkout",
    ".git/info/attributes",
    ".git/HEAD",
    "lib/x/.git/config",
    ".gitattributes",
    ".gitmodules",
    ".envrc",
    "CLAUDE.md",
    "docs/CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "GEMINI.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/agents/x.md",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".copilot/hooks/a.json",
    ".github/copilot-instructions.md",
    ".cursor/mcp.json",
    ".cursor/rules/a.mdc",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".github/workflows/ci.yml",
    ".mcp.json",
    ".kiro/hooks/a.kiro.hook",
    ".crush.json",
    ".agents/skills/a/SKILL.md",
    ".goose/config.yaml",
    ".amazonq/cli-agents/a.json",
    ".augment/settings.json",
    ".trae/rules/a.md",
    ".junie/guidelines.md",
    ".openhands/setup.sh",
    ".pi/settings.json",
    ".roomodes",
    "shop.code-workspace",
    "lefthook.yml",
    "azure-pipelines.yml",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "countersign.toml",
    ".antigravity/rules.md",
    ".opencode/plugin/a.js",
    ".tool-versions",
    ".npmrc",
];

/// In the user's own directory: our own rules and store, and what other programs run.
pub(super) const OF_THE_USER: &[&str] = &[
    ".config/countersign/rules.toml",
    ".config/countersign/config.toml",
    ".local/state/countersign/countersign.db",
    ".local/state/countersign/seal.key",
    ".claude/settings.json",
    ".claude.json",
    ".claude/CLAUDE.md",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".copilot/hooks/countersign.json",
    ".config/opencode/plugin/countersign.js",
    ".gitconfig",
    ".config/git/config",
    ".cursor/mcp.json",
    ".config/Cursor/User/settings.json",
    ".config/Code/User/settings.json",
    ".config/VSCodium/User/settings.json",
    "AppData/Roaming/Code/User/settings.json",
    ".local/bin/countersign",
    ".cargo/bin/countersign",
    ".local/share/opencode/auth.json",
];

/// Of the machine.
pub(super) const OF_THE_MACHINE: &[&str] =
    &["/etc/claude-code/managed-settings.json", "/etc/gitconfig"];

/// A place that is protected.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Project(&'static str),
    User(&'static str),
    Machine(&'static str),
}

impl Place {
    pub(super) fn all() -> Vec<Self> {
        let project = IN_A_PROJECT.iter().copied().map(Self::Project);
        let user = OF_THE_USER.iter().copied().map(Self::User);
        project.chain(user).chain(OF_THE_MACHINE.iter().copied().map(Self::Machine)).collect()
    }

    pub(super) fn absolute(self, desk: &Desk) -> String {
        match self {
            Self::Project(name) => format!("{}/{name}", desk.root.display()),
            Self::User(name) => format!("{}/{name}", desk.home.display()),
            Self::Machine(name) => name.to_owned(),
        }
    }

    /// The path from the project.
    pub(super) fn relative(self) -> String {
        match self {
            Self::Project(name) => name.to_owned(),
            Self::User(name) => format!("../{name}"),
            Self::Machine(name) => format!("../../../../../../../../..{name}"),
        }
    }
}

pub(super) fn any_place(list: &mut List) -> Place {
    // Three of four are in the project, where rules allow most.
    let all = Place::all();
    let half = list.dice.roll(4) == 0;
    let some: Vec<&Place> =
        all.iter().filter(|it| half != matches!(it, Place::Project(_))).collect();
    *list.one(&some)
}

/// The command's words for a place: what stands in front of the command, and the word.
pub(super) fn as_a_word(list: &mut List, place: Place, desk: &Desk) -> (String, String) {
    let (near, far) = (place.relative(), place.absolute(desk));
    let (folder, name) = near.rsplit_once('/').unwrap_or((".", &near));
    let quoted = |at: usize, text: &str| format!("{}{text}{}", &near[..at], &near[at..]);
    let plain = String::new();
    let home = match place {
        Place::User(name) => Some(name),
        _ => None,
    };
    let word = match list.dice.roll(if home.is_some() { 23 } else { 19 }) {
        0 => near.clone(),
        1 => format!("./{near}"),
        2 => format!("src/../{near}"),
        3 => format!(".//{near}"),
        4 => format!("'{near}'"),
        5 => format!("\"{near}\""),
        6 => match place {
            Place::Project(_) => near.to_uppercase(),
            _ => far,
        },
        7 => format!("\"$PWD\"/{near}"),
        8 => far,
        9 => format!("'{far}'"),
        10 => quoted(1, "''"),
        11 => quoted(2, "\"\""),
        12 => quoted(1, "\\"),
        13 => format!("src/./.././{near}"),
        14 => format!("$'\\x{:02x}{}'", near.as_bytes()[0], &near[1..]),
        15 => return (format!("cd {folder} && "), name.to_owned()),
        16 => return (format!("f={near}; "), "\"$f\"".to_owned()),
        17 => format!("\"${{x:-{near}}}\""),
        18 => format!("docs/guide/../../{near}"),
        at => {
            let name = home.unwrap_or_default();
            match at {
                19 => format!("~/{name}"),
                20 => format!("$HOME/{name}"),
                21 => format!("\"${{HOME}}/{name}\""),
                _ => format!("~/shop/../{name}"),
            }
        }
    };
    (plain, word)
}

/// The spellings of a place that every tool of files may read as that place: how many there are.
pub(super) const COMMON: u64 = 20;

/// The text of an argument for a place.
pub(super) fn as_an_argument(at: u64, place: Place, desk: &Desk) -> String {
    let (near, far) = (place.relative(), place.absolute(desk));
    let home = match place {
        Place::User(name) => format!("~/{name}"),
        _ => near.clone(),
    };
    match at {
        0 => near,
        1 => format!("./{near}"),
        2 => format!("a/../{near}"),
        3 => format!(".//{near}"),
        4 => match place {
            Place::Project(_) => near.to_uppercase(),
            _ => home,
        },
        5 => far,
        6 => format!("{near} "),
        7 => format!("{near}."),
        8 => format!(" {near}"),
        9 => format!("a://../{near}"),
        10 => format!("x\n/../{near}"),
        11 => format!("file://{far}"),
        12 => format!("FILE://{far}"),
        13 => format!("file:{far}"),
        14 => format!("%{:02x}{}", near.as_bytes()[0], &near[1..]),
        15 => format!("%25{:02x}{}", near.as_bytes()[0], &near[1..]),
        16 => format!("a\\..\\{}", near.replace('/', "\\")),
        17 => home.replace("~/", "$HOME/"),
        18 => serde_json::json!([near]).to_string(),
        _ => serde_json::json!({"path": near}).to_string(),
    }
}

/// Spellings that some systems and readers take for the place: how many there are.
pub(super) const ODD: u64 = 10;

pub(super) fn as_an_odd_argument(at: u64, place: Place, desk: &Desk) -> String {
    let (near, far) = (place.relative(), place.absolute(desk));
    let first = near.split('/').next().unwrap_or_default().to_owned();
    let rest = near[first.len()..].to_owned();
    match at {
        0 => format!("{first}::$INDEX_ALLOCATION{rest}"),
        1 => format!("{near}::$DATA"),
        2 => format!("\t{near}\n"),
        3 => format!("file://localhost{far}"),
        4 => format!("fi\nle://{far}"),
        5 => format!("file:\\\\{}", far.replace('/', "\\")),
        6 => far
            .chars()
            .map(|it| if it == '.' { "%2E".to_owned() } else { it.to_string() })
            .collect(),
        7 => format!("\u{feff}{near}"),
        8 => format!("  {}  ", serde_json::json!({"a": [{"b": near}]})),
        _ => format!("{first}.{rest}"),
    }
}
