//! Rules for showing a value, found by the name of the argument.
//!
//! A rule that masks too little shows a password to the room. A rule that masks too much lets a model hide what it does
//! under a name such as `secret`. The second is worse here, as the person answers for the call, so in doubt we show a
//! value (rule S4):
//!
//! | name | rule |
//! |---|---|
//! | `path`, `to`, `host`, `url` | shown whole |
//! | `command`, `sql`, `argv` | shown whole; only plain credentials in it are masked |
//! | `secret.command` | the same: what is executed is shown under any object's name |
//! | `password`, `api_key` | masked where the value looks like one |
//! | `sort_key`, `auth_mode`, `token_file` | not secrets |

/// The way in which a value is shown: whether it may be elided, and which parts of it are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShowRule {
    /// A path or a host: shown whole, nothing in it is masked.
    Place,
    /// An address: shown whole; in its query, secrets are masked.
    Url,
    /// Something that is executed: shown whole; only plain credentials in it are masked.
    Command,
    /// Content of something that is executed: elided when it is long, never masked.
    Script,
    /// Anything else: elided when it is long, secrets in it are masked.
    Free,
    /// A password by its name: masked when it looks like one.
    Password,
    /// A token or a key by its name: masked when it looks random.
    Token,
}

impl ShowRule {
    /// Returns `true` if an approver must see the whole value, so that it is never elided.
    pub(super) fn whole(self) -> bool {
        matches!(self, Self::Place | Self::Url | Self::Command)
    }

    /// Returns `true` if a value that looks random is masked as a secret.
    pub(super) fn is_secret(self) -> bool {
        matches!(self, Self::Password | Self::Token)
    }
}

const PLACES: &[&str] = &[
    "cwd",
    "dest",
    "destination",
    "dir",
    "directory",
    "domain",
    "dst",
    "file",
    "filename",
    "filepath",
    "files",
    "folder",
    "from",
    "host",
    "hostname",
    "hosts",
    "ip",
    "path",
    "paths",
    "port",
    "recipient",
    "recipients",
    "server",
    "source",
    "src",
    "target",
    "to",
];
const URLS: &[&str] = &["endpoint", "href", "link", "origin", "uri", "url", "urls"];
const COMMANDS: &[&str] = &[
    "arguments",
    "args",
    "argv",
    "bash",
    "cmd",
    "cmds",
    "code",
    "command",
    "commands",
    "exec",
    "executable",
    "expression",
    "program",
    "query",
    "script",
    "shell",
    "sql",
    "statement",
    "stdin",
];
const PASSWORDS: &[&str] = &["passphrase", "passwd", "password", "passwords"];
const TOKENS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "secret",
    "secrets",
    "token",
    "tokens",
];
/// The words that make a following `key` a secret: `api_key`, but not `sort_key`.
const KEYS: &[&str] = &["access", "api", "encryption", "private", "secret", "signing"];

/// The rule for a value of this name; `around` is the rule of the object that the value is in. The last word of a name
/// decides: `token_file` is a path, `file_token` a secret, and `auth_mode` and `auth.iban` are neither (rule S4).
/// Values that must be seen are tried first, so that a command in an object called `secret` is shown.
pub(super) fn rule(name: &str, around: ShowRule) -> ShowRule {
    let words = words(name);
    let last = words.last().map_or("", |word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    if PLACES.contains(&last) {
        ShowRule::Place
    } else if URLS.contains(&last) {
        ShowRule::Url
    } else if COMMANDS.contains(&last) {
        ShowRule::Command
    } else if PASSWORDS.contains(&last) {
        ShowRule::Password
    } else if TOKENS.contains(&last) || last == "key" && follows_key_word(&words) {
        ShowRule::Token
    } else if around.is_secret() && !matches!(last, "value" | "values") {
        ShowRule::Free
    } else {
        around
    }
}

/// Returns `true` if the name is that of a secret, such as a password or a token.
pub(super) fn names_secret(name: &str) -> bool {
    rule(name, ShowRule::Free).is_secret()
}

fn follows_key_word(words: &[String]) -> bool {
    words.iter().rev().nth(1).is_some_and(|word| KEYS.contains(&word.as_str()))
}

/// The ends of the names of files that are executed line by line.
const SCRIPT_ENDS: &[&str] = &[
    "awk",
    "bash",
    "bashrc",
    "bat",
    "bats",
    "cjs",
    "cmd",
    "csh",
    "dockerfile",
    "envrc",
    "fish",
    "gradle",
    "groovy",
    "js",
    "ksh",
    "lua",
    "mjs",
    "mk",
    "mts",
    "php",
    "pl",
    "pm",
    "profile",
    "ps1",
    "psm1",
    "py",
    "pyw",
    "rb",
    "sed",
    "sh",
    "sql",
    "tcl",
    "ts",
    "vbs",
    "zsh",
    "zshenv",
    "zshrc",
];
/// The whole names of files that are executed line by line.
const SCRIPT_NAMES: &[&str] = &[
    ".bash_profile",
    "containerfile",
    "crontab",
    "dockerfile",
    "gnumakefile",
    "jenkinsfile",
    "justfile",
    "makefile",
    "procfile",
    "rakefile",
    "vagrantfile",
];
/// Folders whose files are executed line by line.
const SCRIPT_FOLDERS: &[&str] =
    &[".git/hooks/", ".husky/", ".github/workflows/", "cron.d/", "init.d/"];

/// Returns `true` if a text is the path or the name of a script.
pub(super) fn names_script(text: &str) -> bool {
    let path = text.trim_end().to_lowercase().replace('\\', "/");
    let file = path.rsplit('/').next().unwrap_or_default();
    let end = file.rsplit_once('.').map_or("", |(_, end)| end);
    SCRIPT_ENDS.contains(&end)
        || SCRIPT_NAMES.contains(&file)
        || SCRIPT_FOLDERS.iter().any(|folder| path.contains(folder))
}

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
///
/// `APIKey` is `api key`, `apiKey2` is `api key2`, `X-Auth-Token` is `x auth token`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let hump = c.is_uppercase() && (!before.is_uppercase() || next_is_lower);
        if !c.is_alphanumeric() || hump {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4: "under a name that ends in a secret's word".
    #[test]
    fn the_end_of_the_name_says_what_a_value_is() {
        for (name, said) in [
            ("password", ShowRule::Password),
            ("DB_PASSWORD", ShowRule::Password),
            ("password2", ShowRule::Password),
            ("api_key", ShowRule::Token),
            ("apiKey", ShowRule::Token),
            ("APIKey", ShowRule::Token),
            ("x-api-key", ShowRule::Token),
            ("Authorization", ShowRule::Token),
            ("client_secret", ShowRule::Token),
            ("awsSecretAccessKey", ShowRule::Token),
            ("next_token", ShowRule::Token),
            ("token_file", ShowRule::Place),
            ("secretPath", ShowRule::Place),
            ("path", ShowRule::Place),
            ("host", ShowRule::Place),
            ("password_command", ShowRule::Command),
            ("token_url", ShowRule::Url),
            ("cmd", ShowRule::Command),
            ("auth_mode", ShowRule::Free),
            ("cookie_policy", ShowRule::Free),
            ("password_reset_user", ShowRule::Free),
            ("secret_name", ShowRule::Free),
            ("key", ShowRule::Free),
            ("sort_key", ShowRule::Free),
            ("content", ShowRule::Free),
            ("tokenizer", ShowRule::Free),
            ("keyboard", ShowRule::Free),
            ("", ShowRule::Free),
        ] {
            assert_eq!(rule(name, ShowRule::Free), said, "{name}");
        }
        assert_eq!(rule("value", ShowRule::Token), ShowRule::Token);
        assert_eq!(rule("iban", ShowRule::Token), ShowRule::Free);
        assert_eq!(rule("command", ShowRule::Token), ShowRule::Command);
        assert_eq!(rule("extra", ShowRule::Command), ShowRule::Command);
    }

    #[test]
    fn scripts_are_known_by_their_names() {
        for name in [
            "run.sh",
            "/a/b/Deploy.PS1",
            "C:\\x\\y.bat",
            "Makefile",
            "x/Dockerfile",
            ".bashrc",
            ".git/hooks/pre-push",
        ] {
            assert!(names_script(name), "{name}");
        }
        for name in ["", "sh", "notes.txt", "id_rsa", "key.pem", ".env", "a.sh.txt"] {
            assert!(!names_script(name), "{name}");
        }
    }
}
