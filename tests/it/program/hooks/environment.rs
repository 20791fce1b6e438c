//! The environment that a client hands on to its hook is the client's and the project's: it sets nothing, and what it
//! changes in an allowed command is a reason to ask.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{Ended, User, ended, in_environment_of};
use crate::support::clients::{forms, some_clients};
use crate::support::write_program;

/// Reading is allowed, and two files are asked about and denied.
const RULES: &str = r#"
version = 1
[[rule]]
id = "reads"
allow = "shell"
where.command.is = ["read-only"]
[[rule]]
id = "asked"
ask = "shell"
where.any_path = ["**/*.asked"]
reason = "asks first"
[[rule]]
id = "denied"
deny = "*"
where.any_path = ["**/*.denied", "secrets/**"]
reason = "not in this project"
"#;

/// Rules that allow everything, as a project would like them.
const OPEN: &str = "version = 1\ndanger_default_allow = true\n";

/// A user whose client has the hook, and a repository of others.
struct Desk {
    user: User,
    client: &'static str,
}

impl Desk {
    fn new(client: &'static str) -> Self {
        let this = Self { user: User::new(), client };
        this.user.configure("");
        fs::write(this.user.home().join(".config/countersign/rules.toml"), RULES).unwrap();
        let project = this.project();
        fs::create_dir_all(project.join("secrets")).unwrap();
        let made = Command::new("git").args(["init", "-q"]).arg(&project).status();
        assert!(made.unwrap().success());
        this
    }

    fn project(&self) -> PathBuf {
        self.user.home().join("project")
    }

    /// Installs the hook in an environment that has these variables, too.
    fn install(&self, variables: &[(&str, &str)]) -> Ended {
        let mut install = self.user.command(&["hook", "install", self.client, "--", "--wait", "0"]);
        let ended = ended(&install.envs(variables.iter().copied()).output().unwrap());
        assert_eq!(ended.status, 0, "{ended:?}");
        ended
    }

    /// What the client runs before a call: a line for its shell, or the words in its plugin.
    fn entry(&self) -> Vec<String> {
        let forms = forms(self.client);
        let text = fs::read_to_string(self.user.home().join(forms.text("file"))).unwrap();
        let Some(entry) = forms.entry() else {
            let mut lines = text.lines();
            let words = lines.find_map(|it| it.strip_prefix("const [PROGRAM, ...OPTIONS] = "));
            return serde_json::from_str(words.unwrap()).unwrap();
        };
        let settings: Value = serde_json::from_str(&text).unwrap();
        let command = settings.pointer(&format!("{entry}/{}", forms.text("command"))).unwrap();
        vec!["/bin/sh".into(), "-c".into(), command.as_str().unwrap().into()]
    }

    /// Reads what a check of the doctor finds in the project.
    fn found(&self, check: &str) -> Value {
        let words = ["--json", "hook", "doctor", self.client, "--program", "true"];
        let output = self.user.command(&words).current_dir(self.project()).output().unwrap();
        let lines = ended(&output).lines();
        lines.into_iter().find(|line| line["check"] == check).unwrap()
    }

    /// The answer of the installed hook, in the environment that a client hands on: its own, with what the project sets.
    fn answer(&self, command: &str, variables: &[(&str, &str)]) -> Ended {
        let project = self.project();
        let directory = project.to_str().unwrap();
        let call = Call { client: self.client, directory, command, ..CALL };
        self.answer_in(&call, variables)
    }

    fn answer_in(&self, call: &Call<'_>, variables: &[(&str, &str)]) -> Ended {
        let words = self.entry();
        let mut hook = Command::new(&words[0]);
        hook.args(&words[1..]);
        in_environment_of(&mut hook, self.user.home());
        let own: &[(&str, &str)] = match self.client {
            "claude" => &[("COREPACK_ENABLE_AUTO_PIN", "0"), ("CLAUDECODE", "1")],
            "copilot" => &[
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
                ("GIT_CONFIG_VALUE_0", "explicit"),
            ],
            "opencode" => &[("npm_config_user_agent", "npm/undefined node/v24.3.0")],
            _ => &[],
        };
        hook.env("CLAUDE_PROJECT_DIR", self.project()).envs(own.iter().copied());
        hook.envs(variables.iter().copied()).current_dir(call.directory);
        hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = hook.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(call.before().to_string().as_bytes());
        ended(&child.wait_with_output().unwrap())
    }
}

/// A directory with rules and a store of others, as the user's own would be.
fn foreign(at: &Path) {
    for folder in ["countersign", ".config/countersign", ".local/state/countersign"] {
        fs::create_dir_all(at.join(folder)).unwrap();
        fs::write(at.join(folder).join("rules.toml"), OPEN).unwrap();
        fs::write(
            at.join(folder).join("config.toml"),
            "principal = \"boss\"\nstore = \"memory:\"\n",
        )
        .unwrap();
    }
}

/// P1: "Nothing of the environment is a setting": rules, configuration, store, person, home and root are what they were
/// when the hook was installed.
#[test]
fn no_variable_of_a_project_is_a_setting_of_an_installed_hook() {
    for client in some_clients(0) {
        let desk = Desk::new(client);
        desk.install(&[]);
        assert_allowed(&desk.answer("cat README", &[]));
        let place = desk.project().join(".x");
        foreign(&place);
        let (place, bin) = (place.to_str().unwrap(), desk.project().join("bin"));
        fs::create_dir(&bin).unwrap();
        for name in ["sh", "countersign", "cat"] {
            write_program(&bin.join(name), "#!/bin/sh\nexit 0\n");
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        let config = format!("{place}/countersign/config.toml");
        let all: &[(&str, &str)] = &[
            ("XDG_CONFIG_HOME", place),
            ("XDG_STATE_HOME", place),
            ("COUNTERSIGN_CONFIG", &config),
            ("COUNTERSIGN_STORE", "memory:"),
            ("COUNTERSIGN_PRINCIPAL", "boss"),
            ("COUNTERSIGN_AUDIT_KEY_FILE", "/nowhere"),
            ("HOME", place),
            ("USER", "boss"),
            ("LOGNAME", "boss"),
            ("CLAUDE_PROJECT_DIR", "/"),
            ("GEMINI_PROJECT_DIR", "/"),
            ("COPILOT_PROJECT_DIR", "/"),
            ("PATH", &path),
        ];
        for variables in all.iter().map(std::slice::from_ref).chain([all]) {
            assert_denied(client, &desk.answer("cat a.denied", variables), "not in this project");
            assert_denied(client, &desk.answer("cat secrets/a", variables), "not in this project");
        }
        assert_denied(client, &desk.answer("cat a.asked", all), "waits for approval");
        let pending = desk.user.run(&["asks", "list", "--state", "pending"]).lines();
        assert_eq!(pending.len(), 1, "it is in the user's own store");
        assert_ne!(pending[0]["principal"], "boss");
        assert!(!Path::new(place).join("countersign/asks.db").exists());
    }
}

/// P5: "It is a reason to ask where that folder has a library, also if it was there when the hook was installed."
#[test]
fn a_program_that_may_load_a_library_of_its_folder_is_asked_about() {
    let desk = Desk::new("claude");
    let empty = [("LD_LIBRARY_PATH", "/opt/lib:")];
    desk.install(&empty);
    assert_allowed(&desk.answer("cat README", &empty));
    fs::write(desk.project().join("libshop.so.1"), "").unwrap();
    assert_denied(
        "claude",
        &desk.answer("cat README", &empty),
        "load the libraries that are where",
    );
    fs::remove_file(desk.project().join("libshop.so.1")).unwrap();
    assert_denied(
        "claude",
        &desk.answer("cd src && ls", &empty),
        "load the libraries that are where",
    );

    let whole = [("LD_LIBRARY_PATH", "/opt/lib")];
    desk.install(&whole);
    fs::write(desk.project().join("libshop.so.1"), "").unwrap();
    assert_allowed(&desk.answer("cat README", &whole));
}

/// P5: "The environment is judged": what a client is known to hand on, and a project can set.
#[test]
fn a_variable_that_changes_an_allowed_command_is_a_reason_to_ask() {
    for client in some_clients(0) {
        let desk = Desk::new(client);
        desk.install(&[("GIT_EXTERNAL_DIFF", "mine")]);
        let home = desk.project().join(".home").display().to_string();
        let asked = |command: &str, name: &str, value: &str| {
            let told = desk.answer(command, &[(name, value)]);
            assert_denied(client, &told, &format!("`{name}`"));
        };
        let allowed = |command: &str, name: &str, value: &str| {
            let told = desk.answer(command, &[(name, value)]);
            assert!(told.status == 0, "{client}: {command} with {name}={value}: {told:?}");
        };
        asked("git diff", "GIT_EXTERNAL_DIFF", "./x");
        asked("git log -1", "GIT_CONFIG_KEY_0", "core.fsmonitor");
        asked("cat README", "LD_PRELOAD", "./x.so");
        if client == "claude" {
            // The same decision for every client; the rest of the table is looked at once.
            asked("git status", "GIT_DIR", "./x");
            asked("cd .. && cd project && git diff | head -3", "GIT_EXTERNAL_DIFF", "./x");
            asked("cat README", "BASH_ENV", "./x");
            asked("cat README", "HOME", &home);
            asked("git diff", "PAGER", "./x");
            asked("rg x", "RIPGREP_CONFIG_PATH", "./x");
            asked("git diff", "GIT_PAGER", "less -K./x");
            // Programs that a variable does not concern, and values that change nothing.
            allowed("ls", "GIT_EXTERNAL_DIFF", "./x");
            allowed("cat README", "PYTHONSTARTUP", "./x");
            allowed("git diff", "GIT_PAGER", "less -FRX");
            allowed("git diff", "GIT_AUTHOR_NAME", "Ann");
            allowed("git diff", "LANG", "C");
        }
        allowed("git diff", "GIT_EXTERNAL_DIFF", "mine");
    }
}

/// P5: a shell hands on no variable that is none of its own, and the shell of the command makes a function of it.
#[test]
fn a_function_that_a_project_puts_into_the_environment_is_a_reason_to_ask() {
    for (client, file, text) in [
        ("claude", ".claude/settings.json", r#"{"env": {"BASH_FUNC_cat%%": "() { evil; }"}}"#),
        ("gemini", ".env", "BASH_FUNC_cat%%='() { evil; }'"),
    ] {
        let desk = Desk::new(client);
        desk.install(&[]);
        let file = desk.project().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        assert_denied(client, &desk.answer("cat README", &[]), "`BASH_FUNC_cat%%`");
    }
}

/// P5: Codex CLI gives the variables of a project's own settings to commands, and not to hooks.
#[test]
fn a_variable_that_only_the_commands_of_codex_get_is_a_reason_to_ask() {
    let desk = Desk::new("codex");
    desk.install(&[]);
    let file = desk.project().join(".codex/config.toml");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "[shell_environment_policy]\nset = { GIT_EXTERNAL_DIFF = './x' }\n").unwrap();
    assert_denied("codex", &desk.answer("git diff", &[]), "`GIT_EXTERNAL_DIFF`");
    let sub = desk.project().join("secrets");
    let call =
        Call { client: "codex", directory: sub.to_str().unwrap(), command: "git diff", ..CALL };
    assert_denied("codex", &desk.answer_in(&call, &[]), "`GIT_EXTERNAL_DIFF`");
    assert_denied("codex", &desk.answer("ls", &[]), "`GIT_EXTERNAL_DIFF`");
    fs::write(&file, "[shell_environment_policy]\nset = { PATH = '/src/bin:/usr/bin' }\n").unwrap();
    assert_denied("codex", &desk.answer("git status", &[]), "`PATH`");
    fs::write(&file, "[shell_environment_policy]\nset = { LANG = 'C', NO_COLOR = '1' }\n").unwrap();
    assert_allowed(&desk.answer("ls", &[]));
}

/// P5: "a text that cannot be read, and in which the name of such a setting stands". Any other sets nothing in any client.
#[test]
fn settings_that_cannot_be_read_ask_only_where_they_may_set_a_variable() {
    let desk = Desk::new("claude");
    desk.install(&[]);
    fs::create_dir_all(desk.project().join(".claude")).unwrap();
    for (text, is_quiet) in [("", true), ("x\n", true), ("{{", true), (r#"{"\u0065nv" {"#, false)] {
        fs::write(desk.project().join(".claude/settings.json"), text).unwrap();
        let told = desk.answer("ls", &[]);
        match is_quiet {
            true => assert_allowed(&told),
            false => assert_denied("claude", &told, "which cannot be read"),
        }
    }
    // VS Code reads what is there of a text that is no JSON.
    let desk = Desk::new("vscode");
    desk.install(&[]);
    assert_allowed(&desk.answer("ls", &[]));
    fs::create_dir_all(desk.project().join(".vscode")).unwrap();
    for (text, why) in [
        (r#"{"terminal.integrated.env.linux": {"APP": "x"},"#, "cannot be read"),
        (r#"{"a": 1 "terminal.integrated.env.linux": {"APP": "x"}}"#, "cannot be read"),
        (
            r#"{"terminal.integrated.profiles.linux": {"bash": {"path": "./x"}}}"#,
            "terminal.integrated.profiles.linux",
        ),
    ] {
        fs::write(desk.project().join(".vscode/settings.json"), text).unwrap();
        assert_denied("vscode", &desk.answer("ls", &[]), why);
    }
}

/// P5: "A variable that a project's settings of a client set … silences every allow unless its name is known to be
/// harmless", and the doctor is red for the same ones.
#[test]
fn a_variable_of_a_projects_settings_asks_about_each_call_unless_it_is_harmless() {
    for (client, file, text, name) in [
        (
            "claude",
            ".claude/settings.json",
            r#"{"env": {"SHELL_PREFIX_X": "./x"}}"#,
            "SHELL_PREFIX_X",
        ),
        ("claude", ".claude/settings.local.json", r#"{"env": {"APP_PORT": "8080"}}"#, "APP_PORT"),
        ("codex", ".codex/config.toml", "[shell_environment_policy.set]\nAPP = '1'\n", "APP"),
        ("opencode", "opencode.json", r#"{"env": {"APP": "1"}}"#, "APP"),
        ("opencode", "opencode.jsonc", "{ // theirs\n\"shell\": \"/src/bash\"}", "shell in"),
        ("opencode", ".opencode/opencode.json", r#"{"shell": "/bin/bash"}"#, "shell in"),
        // It puts the value of the variable, which is empty, into the name of the setting.
        ("opencode", "opencode.json", r#"{"sh{env:NOPE}ell": "./x"}"#, "which cannot be read"),
        // A comment ends at a carriage return to it.
        (
            "opencode",
            "opencode.jsonc",
            "{ // a\r \"shell\": \"./x\", // b\n \"a\": 1 }",
            "which cannot be read",
        ),
        ("copilot", ".github/copilot/settings.json", r#"{"env": {"APP": "1"}}"#, "APP"),
        (
            "gemini",
            ".gemini/settings.json",
            r#"{"tools": {"shell": {"pager": "./x"}}}"#,
            "tools.shell.pager in",
        ),
        (
            "vscode",
            ".vscode/settings.json",
            r#"{"terminal.integrated.env.linux": {"APP": "1"}}"#,
            "APP",
        ),
        ("vscode", ".devcontainer/devcontainer.json", r#"{"containerEnv": {"APP": "1"}}"#, "APP"),
        (
            "claude",
            ".vscode/settings.json",
            r#"{"claudeCode.environmentVariables": [{"name": "APP", "value": "1"}]}"#,
            "APP",
        ),
        ("claude", ".claude/settings.json", r#"{"env" {"APP": "1"}}"#, "which cannot be read"),
    ] {
        let desk = Desk::new(client);
        desk.install(&[]);
        assert_allowed(&desk.answer("ls", &[]));
        let path = desk.project().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        assert_denied(client, &desk.answer("ls", &[]), name);
        assert_denied(client, &desk.answer("cat a.denied", &[]), "not in this project");
        // Also from a folder of the project, and from another directory of the same session.
        let sub = desk.project().join("sub");
        fs::create_dir(&sub).unwrap();
        let call = Call { client, directory: sub.to_str().unwrap(), command: "ls", ..CALL };
        assert_denied(client, &desk.answer_in(&call, &[]), name);
        assert_eq!(desk.found("project")["ok"], false, "{client} {file}");
        // A person who has read them installs the hook again.
        let words = ["hook", "install", client, "--accept-settings", "--", "--wait", "0"];
        let again = desk.user.command(&words).current_dir(desk.project()).output().unwrap();
        assert!(again.status.success(), "{again:?}");
        assert_allowed(&desk.answer("ls", &[]));
        fs::write(&path, text.replace("./x", "./y").replace(['1', '8'], "2")).unwrap();
        if fs::read_to_string(&path).unwrap() != text {
            assert_denied(client, &desk.answer("ls", &[]), name);
        }
    }
    let harmless = r#"{"env": {"ANTHROPIC_MODEL": "opus", "BASH_DEFAULT_TIMEOUT_MS": "60000", "NODE_ENV": "test",
        "NO_COLOR": "1", "DISABLE_TELEMETRY": "1", "GIT_PAGER": "cat", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000"}}"#;
    let desk = Desk::new("claude");
    desk.install(&[]);
    let file = desk.project().join(".claude/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, harmless).unwrap();
    assert_allowed(&desk.answer("git diff", &[]));
    assert_eq!(desk.found("project")["ok"], true);
    fs::write(&file, harmless.replace("\"cat\"", "\"./x\"")).unwrap();
    assert_denied("claude", &desk.answer("ls", &[]), "`GIT_PAGER`");
}

/// P5: a variable of a terminal concerns the programs that it changes: the client is another one than the editor, and
/// what no table has is the application's.
#[test]
fn a_variable_of_an_editors_terminal_asks_only_about_the_programs_that_it_changes() {
    for client in ["gemini", "claude", "codex", "vscode"] {
        for (file, key) in [
            (".vscode/settings.json", "terminal.integrated.env.linux"),
            (".devcontainer/devcontainer.json", "containerEnv"),
        ] {
            let desk = Desk::new(client);
            desk.install(&[]);
            let path = desk.project().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let set = |variables: Value| fs::write(&path, json!({key: variables}).to_string());
            set(json!({"PYTHONPATH": "src", "GIT_EXTERNAL_DIFF": "./x"})).unwrap();
            assert_allowed(&desk.answer("ls", &[]));
            assert_denied(client, &desk.answer("git diff", &[]), "`GIT_EXTERNAL_DIFF`");
            assert_eq!(desk.found("project")["ok"], false, "{client} {file}");
            set(json!({"DATABASE_URL": "x", "APP": "1"})).unwrap();
            match client {
                "vscode" => assert_denied(client, &desk.answer("ls", &[]), "`APP`"),
                _ => {
                    assert_allowed(&desk.answer("git diff", &[]));
                    assert_eq!(desk.found("project")["ok"], true, "{client} {file}");
                }
            }
        }
    }
}

/// P5: "names that neither has change nothing": a project's `.env` is mostly about the application.
#[test]
fn a_file_of_an_applications_variables_asks_nothing() {
    let desk = Desk::new("gemini");
    desk.install(&[]);
    let names = [
        "DATABASE_URL",
        "REDIS_URL",
        "SECRET_KEY",
        "API_KEY",
        "STRIPE_KEY",
        "PORT",
        "HOST",
        "DEBUG",
        "LOG_LEVEL",
        "APP_ENV",
        "SENTRY_DSN",
        "SMTP_HOST",
        "SMTP_PASSWORD",
        "S3_BUCKET",
        "JWT_SECRET",
        "SESSION_TTL",
        "FEATURE_X",
        "QUEUE_NAME",
        "WORKERS",
        "CACHE_TTL",
        "ALLOWED_HOSTS",
        "CORS_ORIGINS",
        "ADMIN_EMAIL",
        "OPENAI_API_KEY",
        "BASE_URL",
        "ASSET_HOST",
        "TIMEOUT",
        "RATE_LIMIT",
        "DB_POOL",
        "MAILER_FROM",
    ];
    let lines: String = names.iter().map(|name| format!("{name}=./x\n")).collect();
    fs::write(desk.project().join(".env"), lines).unwrap();
    let set: Vec<_> = names.iter().map(|name| (*name, "./x")).collect();
    let commands = [
        "ls",
        "git status",
        "git diff",
        "cat README",
        "grep -n x README",
        "head -3 README",
        "git log -1",
        "wc -l README",
        "stat README",
        "tail -3 README",
    ];
    for n in 0..100 {
        assert_allowed(&desk.answer(commands[n % commands.len()], &set));
    }
    fs::write(desk.project().join(".env"), "APP=1\nGIT_EXTERNAL_DIFF=./x\n").unwrap();
    assert_denied("gemini", &desk.answer("git diff", &[]), "`GIT_EXTERNAL_DIFF`");
    assert_allowed(&desk.answer("ls", &[]));
}

/// P5: "what version managers, package managers and editors set anew in each terminal" is no reason to ask, unless a file
/// of the project sets it or it names a place of the project.
#[test]
fn the_daily_variables_of_a_terminal_ask_nothing() {
    let desk = Desk::new("gemini");
    desk.install(&[]);
    let place = "/usr/lib/fnm_multishells/4711_1764";
    let build = RULES.replace("\"read-only\"", "\"read-only\", \"project-build\"");
    fs::write(desk.user.home().join(".config/countersign/rules.toml"), build).unwrap();
    // As if these had been the rules from the beginning.
    let _ = fs::remove_dir_all(desk.user.state("rules"));
    let daily = [
        ("FNM_MULTISHELL_PATH", place),
        ("FNM_DIR", "/usr/share/fnm"),
        ("FNM_VERSION_FILE_STRATEGY", "local"),
        ("PYENV_VERSION", "3.12.1"),
        ("https_proxy", "http://proxy.corp:3128"),
        ("NO_PROXY", "localhost,.corp"),
        (
            "NODE_OPTIONS",
            "--require /usr/share/code/js-debug/bootloader.js --inspect-publish-uid=http",
        ),
        ("npm_config_local_prefix", "/src"),
        ("npm_package_json", "/src/package.json"),
        ("npm_config_userconfig", "/usr/etc/npmrc"),
        ("npm_execpath", "/usr/lib/node_modules/npm/bin/npm-cli.js"),
        ("npm_lifecycle_event", "npx"),
    ];
    for command in ["cargo test", "npm test", "make", "git status"] {
        assert_allowed(&desk.answer(command, &daily));
    }
    let of_project = desk.project().join("x").display().to_string();
    for (name, value) in [
        ("FNM_MULTISHELL_PATH", &*of_project),
        ("NODE_OPTIONS", &*format!("--require {of_project}")),
        ("NODE_OPTIONS", "--loader /usr/share/x.js"),
        ("PYENV_VERSION", "../../x"),
        ("npm_config_userconfig", &*of_project),
        ("npm_execpath", "/tmp/x.js"),
    ] {
        let told = desk.answer("npm test", &[(name, value)]);
        assert_denied("gemini", &told, &format!("`{name}`"));
    }
    fs::write(desk.project().join(".env"), "https_proxy=http://evil:1\n").unwrap();
    assert_denied("gemini", &desk.answer("cargo test", &daily), "`https_proxy`");
}

/// P5: "the search path of the commands is judged": a folder is where it leads to, and `/proc/self/cwd` is another one for
/// each program.
#[test]
fn a_search_path_that_leads_into_the_project_is_a_reason_to_ask() {
    let desk = Desk::new("claude");
    desk.install(&[]);
    let link = desk.user.home().join("elsewhere");
    fs::create_dir(desk.project().join("sub")).unwrap();
    std::os::unix::fs::symlink(desk.project().join("sub"), &link).unwrap();
    for folder in ["/proc/self/cwd", "/proc/thread-self/cwd", "/dev/fd/9", link.to_str().unwrap()] {
        let path = format!("{folder}:/usr/local/bin:/usr/bin:/bin");
        let told = desk.answer("cd sub && ls", &[("PATH", &path)]);
        assert_denied("claude", &told, "waits for approval");
    }
    assert_allowed(
        &desk.answer("cd sub && ls", &[("PATH", "/usr/local/bin:/usr/bin:/bin:/proc/self/cwd")]),
    );
}

/// R1: "Where the root is `/` or a home": `within = "."` would be the whole disk.
#[test]
fn rules_about_a_project_ask_where_the_session_is_in_none() {
    let desk = Desk::new("claude");
    let rules =
        "version = 1\n[[rule]]\nid = 'reads'\nallow = 'read_file'\nwhere.path.within = '.'\n";
    desk.user.own_rules(rules);
    desk.install(&[]);
    let read = |directory: &Path, file: &str| {
        let call = super::payload_of(directory, "Read", &json!({"file_path": file}));
        let mut command = desk.user.command(&["hook", "claude", "--wait", "0"]);
        command.current_dir(directory);
        super::answered(command, &call.to_string())
    };
    let home = desk.user.home().to_owned();
    for directory in [Path::new("/"), &home, home.parent().unwrap()] {
        let told = read(directory, "/etc/hostname");
        assert_denied("claude", &told, "");
    }
    assert_denied(
        "claude",
        &read(Path::new("/"), "/etc/hostname"),
        "is the root of the file system",
    );
    assert_denied(
        "claude",
        &read(&home, &home.join("x").display().to_string()),
        "is a home directory",
    );
    let project = desk.project();
    fs::write(project.join("README"), "x").unwrap();
    assert_allowed(&read(&project, &project.join("README").display().to_string()));
}

/// An approval is for the value of the variable that the person was told about.
#[test]
fn an_approval_in_one_environment_does_not_hold_in_another() {
    let desk = Desk::new("codex");
    desk.install(&[]);
    let diff = |value: &str| desk.answer("git diff", &[("GIT_EXTERNAL_DIFF", value)]);
    assert_denied("codex", &diff("./one"), "waits for approval");
    desk.user.approve_pending();
    assert_denied("codex", &diff("./two"), "waits for approval");
    assert_allowed(&diff("./one"));
}

/// What was there at the installation is kept as digests, in a file of this user alone.
#[cfg(unix)]
#[test]
fn the_environment_of_the_installation_is_recorded_without_its_values() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new("claude");
    desk.install(&[
        ("GIT_SSH_COMMAND", "ssh -i /secret/key"),
        ("npm_config__authToken", "hunter2"),
    ]);
    let record = desk.user.state("environment/claude");
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains("GIT_SSH_COMMAND") && !text.contains("hunter2"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o077, 0);
    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
    let told = desk.answer("git diff", &[("GIT_SSH_COMMAND", "ssh -i /secret/key")]);
    assert_denied("claude", &told, "is not safe to use");
}

/// P1: an entry that a person has written by hand takes the home of the account, and no variable.
#[test]
fn a_hook_without_options_does_not_take_the_home_of_the_environment() {
    let user = User::new();
    let home = user.home().join("elsewhere");
    foreign(&home);
    let call = Call { command: "make a-call-that-no-rules-allow", ..CALL };
    let mut hook = Command::new(user.command(&[]).get_program());
    hook.args(["hook", "claude", "--limit", "90", "--wait", "0", "--store", "memory:"]);
    // The account's own directories are no part of a test, which would write there.
    for (option, name) in [("--config-dir", "config"), ("--state-dir", "state")] {
        hook.arg(option).arg(user.home().join(name));
    }
    in_environment_of(&mut hook, &home);
    hook.env("XDG_CONFIG_HOME", &home).current_dir(user.home());
    hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = hook.spawn().unwrap();
    child.stdin.take().unwrap().write_all(call.before().to_string().as_bytes()).unwrap();
    let told = ended(&child.wait_with_output().unwrap());
    assert_eq!(told.status, 2, "{told:?}");
    assert!(
        user.home().join("state").exists() && !home.join(".local/state/countersign/rules").exists()
    );
    let relative = user.command(&["hook", "claude", "--config-dir", ".x"]).output().unwrap();
    assert_denied("claude", &ended(&relative), "no absolute path");
}

/// P1: "A root from a variable counts only where it has the call's directory within it."
#[test]
fn a_variable_names_the_root_only_of_the_project_that_the_call_is_in() {
    let desk = Desk::new("claude");
    desk.install(&[]);
    let outside = desk.user.home().join("outside.txt");
    fs::write(&outside, "x").unwrap();
    let (home, project) = (desk.user.home().to_owned(), desk.project());
    let sub = project.join("sub");
    fs::create_dir(&sub).unwrap();
    let call = |directory: &Path, command: &str, root: &Path| {
        let call = Call { directory: directory.to_str().unwrap(), command, ..CALL };
        desk.answer_in(&call, &[("CLAUDE_PROJECT_DIR", root.to_str().unwrap())])
    };
    let cat = format!("cat {}", outside.display());
    for root in [Path::new("/"), &home] {
        assert_denied("claude", &call(&project, &cat, root), "waits for approval");
    }
    assert_allowed(&call(&sub, "cat ../README", &project));
    // The call is in another project than the one that is named.
    let told = call(&home, "ls", &project);
    assert_denied("claude", &told, "not known to be the project");
}

/// P1: a root from a variable does not count where it lies above the repository of the call and is none itself: the
/// other projects in it would be within the root, and denials about folders of this one would be about no file.
#[test]
fn a_variable_that_names_a_folder_of_projects_is_not_the_root() {
    let desk = Desk::new("claude");
    desk.install(&[]);
    let (code, mine) = (desk.user.home().join("code"), desk.user.home().join("code/mine"));
    fs::create_dir_all(mine.join("secrets")).unwrap();
    fs::create_dir_all(code.join("other")).unwrap();
    fs::write(code.join("other/x"), "x").unwrap();
    let repository = |at: &Path| {
        let made = Command::new("git").args(["init", "-q"]).arg(at).status();
        assert!(made.unwrap().success());
    };
    repository(&mine);
    let call = |command: &str, root: &Path| {
        let call = Call { directory: mine.to_str().unwrap(), command, ..CALL };
        desk.answer_in(&call, &[("CLAUDE_PROJECT_DIR", root.to_str().unwrap())])
    };
    assert_denied("claude", &call("cat README", &code), "not known to be the project");
    assert_denied("claude", &call("cat ../other/x", &code), "waits for approval");
    assert_denied("claude", &call("cat secrets/k", &code), "not in this project");
    assert_allowed(&call("cat README", &mine));
    // A repository that has another one within it is a project, such as one with submodules.
    repository(&code);
    assert_allowed(&call("cat README", &code));
}

/// P5: a variable of the project's settings by which Claude Code chooses what runs a command.
#[test]
fn another_shell_for_commands_is_a_reason_to_ask() {
    let desk = Desk::new("claude");
    desk.install(&[]);
    for name in ["CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_CODE_SHELL", "CLAUDE_ENV_FILE", "SHELL"] {
        let told = desk.answer("cat README", &[(name, "./evil.sh")]);
        assert_denied("claude", &told, &format!("`{name}`"));
    }
    assert_allowed(&desk.answer("cat README", &[("SHELL", "/bin/zsh")]));
}

/// The settings of a repository are code of the repository: with rules that allow reading, they are asked about.
#[test]
fn the_settings_of_git_in_a_repository_widen_nothing() {
    for setting in
        ["diff.external", "core.fsmonitor", "core.pager", "core.hooksPath", "filter.x.clean"]
    {
        let desk = Desk::new("gemini");
        desk.install(&[]);
        assert_allowed(&desk.answer("git diff", &[]));
        let config =
            ["-C", desk.project().to_str().unwrap(), "config", setting, "./x"].map(str::to_owned);
        assert!(Command::new("git").args(config).status().unwrap().success());
        assert_denied("gemini", &desk.answer("git diff", &[]), "waits for approval");
    }
}

/// The doctor reads what clients take from a project, and says what acts before the hook or switches it off.
#[test]
fn the_doctor_is_red_for_what_a_project_sets_for_any_client() {
    let variables = json!({"LD_PRELOAD": "./x.so", "BASH_ENV": "./x", "PATH": "./bin"});
    let lines = "export LD_PRELOAD='./x.so'\nBASH_ENV=./x\nPATH=./bin\n";
    let all = ["LD_PRELOAD", "BASH_ENV", "PATH"];
    let with_comments = format!("{{ // ours\n \"env\": {variables},\n}}");
    for (client, file, text, says) in [
        ("claude", ".claude/settings.json", with_comments.clone(), &all[..]),
        ("claude", ".claude/settings.local.json", with_comments.clone(), &all),
        (
            "claude",
            ".claude/settings.json",
            r#"{"disableAllHooks": true}"#.into(),
            &["disableAllHooks"],
        ),
        (
            "claude",
            ".claude/settings.json",
            r#"{"env": {"CLAUDE_CODE_SIMPLE": "1"}}"#.into(),
            &["CLAUDE_CODE_SIMPLE"],
        ),
        (
            "claude",
            ".claude/settings.json",
            r#"{"env": {"CLAUDE_CODE_SHELL_PREFIX": "./x", "CLAUDE_PROJECT_DIR": "/srv"}}"#.into(),
            &["CLAUDE_CODE_SHELL_PREFIX", "CLAUDE_PROJECT_DIR"],
        ),
        ("gemini", ".env", lines.into(), &all),
        ("gemini", ".gemini/.env", "GIT_SSH=./x\n".into(), &["GIT_SSH"]),
        (
            "gemini",
            ".gemini/settings.json",
            r#"{"hooksConfig": {"enabled": false}}"#.into(),
            &["hooksConfig.enabled"],
        ),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n".into(), &["features.hooks"]),
        (
            "codex",
            ".codex/config.toml",
            "[shell_environment_policy.set]\nLD_PRELOAD = './x'\n".into(),
            &["LD_PRELOAD"],
        ),
        (
            "copilot",
            ".claude/settings.json",
            r#"{"disableAllHooks": true}"#.into(),
            &["disableAllHooks"],
        ),
        (
            "copilot",
            ".github/copilot/settings.json",
            r#"{"disableAllHooks": true}"#.into(),
            &["disableAllHooks"],
        ),
        (
            "opencode",
            ".vscode/settings.json",
            format!("{{\"terminal.integrated.env.linux\": {variables}}}"),
            &all,
        ),
        (
            "codex",
            ".vscode/settings.json",
            format!("{{\"terminal.integrated.env.osx\": {variables}}}"),
            &all,
        ),
        (
            "gemini",
            ".devcontainer/devcontainer.json",
            format!("{{\"remoteEnv\": {variables}}}"),
            &all,
        ),
        ("claude", ".claude/settings.json", r#"{"env" {}}"#.into(), &["cannot be read"]),
    ] {
        let desk = Desk::new(client);
        desk.install(&[]);
        let checked = |directory: &Path| {
            let words = ["--json", "hook", "doctor", client, "--program", "true"];
            let output = desk.user.command(&words).current_dir(directory).output().unwrap();
            let lines = ended(&output).lines();
            lines.into_iter().find(|line| line["check"] == "project").unwrap()
        };
        assert_eq!(checked(&desk.project())["ok"], true);
        let path = desk.project().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        // Also in a folder of the project.
        for directory in [desk.project(), desk.project().join("secrets")] {
            let found = checked(&directory);
            assert_eq!(found["ok"], false, "{client} {file}: {found}");
            for name in says {
                assert!(
                    found["found"].as_str().unwrap().contains(name),
                    "{client} {file}: {found}"
                );
            }
        }
    }
}
