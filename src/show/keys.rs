//! What the name of an argument says about its value.

/// How a value is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// A path or a host: shown whole, as it is.
    Place,
    /// An address: shown whole; in its query, secrets are masked.
    Url,
    /// Something that is executed: shown whole; only what is plainly a credential in it is masked.
    Command,
    /// Anything else: elided when it is long, secrets in it are masked.
    Free,
    /// A secret by its name: masked.
    Secret,
}

impl Rule {
    /// Whether an approver must see all of it.
    pub(super) fn whole(self) -> bool {
        matches!(self, Self::Place | Self::Url | Self::Command)
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
];
const SECRETS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "secret",
    "secrets",
    "token",
    "tokens",
];
/// `…_key` is a secret only behind one of these.
const KEYS: &[&str] = &["access", "api", "encryption", "private", "secret", "signing"];

/// What the name says; `inherited` is what the names around it said. The last word says what a value is:
/// `token_file` is a path, `file_token` a secret. What must be seen wins, so that a command inside something called
/// `secret` is shown.
pub(super) fn rule(name: &str, inherited: Rule) -> Rule {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    if PLACES.contains(&last) {
        Rule::Place
    } else if URLS.contains(&last) {
        Rule::Url
    } else if COMMANDS.contains(&last) {
        Rule::Command
    } else if is_secret(&words) {
        Rule::Secret
    } else {
        inherited
    }
}

/// Whether a value of this name is a secret.
pub(super) fn names_secret(name: &str) -> bool {
    rule(name, Rule::Free) == Rule::Secret
}

fn is_secret(words: &[String]) -> bool {
    words.iter().any(|word| SECRETS.contains(&word.as_str()))
        || words.windows(2).any(|pair| match pair {
            [first, second] => second == "key" && KEYS.contains(&first.as_str()),
            _ => false,
        })
}

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
fn words(name: &str) -> Vec<String> {
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

    /// S1: "secrets are masked but never the command, path or host".
    #[test]
    fn the_name_says_what_a_value_is() {
        for (name, said) in [
            ("password", Rule::Secret),
            ("DB_PASSWORD", Rule::Secret),
            ("api_key", Rule::Secret),
            ("apiKey", Rule::Secret),
            ("APIKey", Rule::Secret),
            ("x-api-key", Rule::Secret),
            ("Authorization", Rule::Secret),
            ("client_secret", Rule::Secret),
            ("awsSecretAccessKey", Rule::Secret),
            ("next_token", Rule::Secret),
            ("token_file", Rule::Place),
            ("secretPath", Rule::Place),
            ("path", Rule::Place),
            ("host", Rule::Place),
            ("password_command", Rule::Command),
            ("token_url", Rule::Url),
            ("cmd", Rule::Command),
            ("key", Rule::Free),
            ("content", Rule::Free),
            ("tokenizer", Rule::Free),
            ("keyboard", Rule::Free),
            ("", Rule::Free),
        ] {
            assert_eq!(rule(name, Rule::Free), said, "{name}");
        }
        assert_eq!(rule("value", Rule::Secret), Rule::Secret);
        assert_eq!(rule("command", Rule::Secret), Rule::Command);
    }
}
