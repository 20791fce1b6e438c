//! A file of rules that changes between two calls of a hook, each of which is a process of its own (rule R3).

use super::{CALL, Call, assert_allowed, assert_denied};
use crate::program::{Ended, User, ended};

const NARROW: &str =
    "version = 1\n[[rule]]\nid = 'look'\nallow = 'shell'\nwhere.command.is = 'read-only'\n";
const WIDE: &str = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n";

/// A call in the directory that the hook runs in.
fn call<'a>(user: &'a User, command: &'a str) -> Call<'a> {
    Call { command, directory: user.home().to_str().unwrap(), ..CALL }
}

impl User {
    fn rules_toml(&self) -> std::path::PathBuf {
        self.configure("");
        self.home().join(".config/countersign/rules.toml")
    }

    /// Runs the program on a terminal, types a line, and gives what it has shown.
    #[cfg(unix)]
    fn types(&self, words: &[&str], line: &str) -> Ended {
        use std::io::{Read as _, Write as _};
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        let mut command =
            pty_process::blocking::Command::new(crate::support::program("countersign"));
        command = command.args(words).env("HOME", self.home()).current_dir(self.home());
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command = command.env_remove(name);
        }
        let mut child = command.spawn(pts).unwrap();
        pty.write_all(format!("{line}\n").as_bytes()).unwrap();
        // The other end is closed when the program has ended, which is an error on Linux.
        let mut out = Vec::new();
        let _ = pty.read_to_end(&mut out);
        let status = child.wait().unwrap().code().unwrap_or(-1);
        let out = String::from_utf8(out).unwrap().replace("\r\n", "\n");
        Ended { status, out, err: String::new() }
    }
}

/// R3: "one that may widen needs `countersign rules accept` on a terminal".
#[cfg(unix)]
#[test]
fn a_changed_file_widens_nothing_before_a_person_accepts_it() {
    let user = User::new();
    let file = user.rules_toml();
    std::fs::write(&file, NARROW).unwrap();
    assert_allowed(&user.hook(&call(&user, "ls"), "20"));
    std::fs::write(&file, WIDE).unwrap();
    assert_denied("claude", &user.hook(&call(&user, "touch a"), "0"), "waits for approval");
    assert_allowed(&user.hook(&call(&user, "ls"), "20"));
    let asked = user.pending_are(1).remove(0).to_string();
    assert!(asked.contains("the rules were changed") && asked.contains("rules accept"), "{asked}");

    // What explains and checks the file says that it does not decide alone.
    for words in
        [&["rules", "explain", "--text", "shell: touch a"][..], &["rules", "check", "--text"]]
    {
        let told = user.run(words);
        assert!(told.out.contains("until you run `countersign rules accept`"), "{told:?}");
    }
    let without = user.run(&["rules", "accept"]);
    assert!(without.status == 2 && without.err.contains("on a terminal"), "{without:?}");
    for (line, status) in [("", 1), ("y", 1), ("no", 1)] {
        assert_eq!(user.types(&["rules", "accept"], line).status, status, "{line}");
    }
    assert_denied("claude", &user.hook(&call(&user, "touch a"), "0"), "waits for approval");

    let accepted = user.types(&["rules", "accept"], "yes");
    assert_eq!(accepted.status, 0, "{accepted:?}");
    let told = user.run(&["rules", "explain", "--text", "shell: touch a"]);
    assert!(!told.out.contains("rules accept"), "{told:?}");
    for shown in [
        "all (may widen)\n+ [[rule]]\n+ id = \"all\"\n+ allow = \"*\"",
        "look\n- [[rule]]",
        "1 change may allow more than before",
        "rules.toml",
    ] {
        assert!(accepted.out.contains(shown), "{shown}: {}", accepted.out);
    }
    let other = call(&user, "touch b");
    assert_allowed(&user.hook(&other, "20"));
    let again = user.types(&["rules", "accept"], "yes");
    assert!(again.out.contains("as they were accepted"), "{again:?}");
}

/// R3: rules that name a group of the configuration are accepted as others are.
#[cfg(unix)]
#[test]
fn rules_that_name_a_group_are_accepted() {
    let user = User::new();
    user.configure("[groups]\nops = ['bob', 'eve']\n");
    user.own_rules(NARROW);
    assert_allowed(&user.hook(&call(&user, "ls"), "20"));
    let deploys = "[[rule]]\nid = 'deploy'\nask = 'shell'\nwhere.command.runs = 'deploy'\napprovers = ['group:ops']\n\
                   [[rule]]\nid = 'touch'\nallow = 'shell'\nwhere.command.runs = 'touch'\n";
    let narrow = NARROW.replace("version = 1", "version = 2");
    user.own_rules(&format!("{narrow}\n{deploys}"));
    let told = user.run(&["rules", "check", "--text"]);
    assert!(told.out.contains("until you run `countersign rules accept`"), "{told:?}");
    let accepted = user.types(&["rules", "accept"], "yes");
    assert!(accepted.status == 0 && accepted.out.contains("group:ops"), "{accepted:?}");
    assert_allowed(&user.hook(&call(&user, "touch a"), "20"));
    user.configure("");
    let unknown = user.types(&["rules", "accept"], "yes");
    assert!(unknown.out.contains("as they were accepted"), "{unknown:?}");
}

/// R3: "Every key that changes the digest of a rule is in the text that a person accepts".
#[cfg(unix)]
#[test]
fn what_is_accepted_is_what_was_shown() {
    let user = User::new();
    let file = user.rules_toml();
    std::fs::write(&file, NARROW).unwrap();
    assert_allowed(&user.hook(&call(&user, "ls"), "20"));
    let hidden =
        "[[rule]]\nid = 'notes'\nreason = \"\"\"\n[see the handbook]\n\"\"\"\nallow = '*'\n";
    std::fs::write(&file, format!("{NARROW}\n{hidden}")).unwrap();
    let refused = user.types(&["rules", "accept"], "no");
    assert!(
        refused.out.contains("+ allow = \"*\"") && refused.out.contains("handbook"),
        "{refused:?}"
    );
    let before = user.home().join("before.toml");
    std::fs::write(&before, NARROW).unwrap();
    let differs = user.run(&["rules", "diff", before.to_str().unwrap(), file.to_str().unwrap()]);
    assert!(
        differs.out.contains("allow = \"*\"") || differs.out.contains("allow = \\\"*"),
        "{differs:?}"
    );
}

/// R3: "a folder on the way to the rules that leads elsewhere": dotfiles are kept so.
#[cfg(unix)]
#[test]
fn a_folder_on_the_way_to_the_rules_that_leads_elsewhere_widens_nothing() {
    let user = User::new();
    let at = |name: &str| user.home().join(name);
    for (folder, text) in [("a", NARROW), ("b", WIDE)] {
        std::fs::create_dir(at(folder)).unwrap();
        std::fs::write(at(folder).join("rules.toml"), text).unwrap();
    }
    let link = at("team");
    std::os::unix::fs::symlink(at("a"), &link).unwrap();
    let rules = link.join("rules.toml").display().to_string();
    let hook = |command: &str, wait: &str| {
        let call = call(&user, command);
        let payload = call.before().to_string();
        let hook = user.start_hook("claude", wait, &["--rules", &rules], payload.as_bytes());
        ended(&hook.wait_with_output().unwrap())
    };
    assert_allowed(&hook("ls", "20"));
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(at("b"), &link).unwrap();
    assert_denied("claude", &hook("touch fresh", "0"), "the rules were changed");
    // It is accepted by either of its paths.
    let real = at("b").join("rules.toml").display().to_string();
    let accepted = user.types(&["rules", "accept", "--rules", &real], "yes");
    assert_eq!(accepted.status, 0, "{accepted:?}");
    let accepted = user.types(&["rules", "accept", "--rules", &rules], "yes");
    assert_eq!(accepted.status, 0, "{accepted:?}");
    assert_allowed(&hook("touch fresh", "20"));
    // The same text behind another link is no change.
    std::fs::create_dir(at("c")).unwrap();
    std::fs::write(at("c").join("rules.toml"), WIDE).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(at("c"), &link).unwrap();
    assert_allowed(&hook("touch fresh", "20"));
}

/// R3: "a change that only narrows is recorded there by itself".
#[test]
fn an_edit_that_only_narrows_needs_nothing() {
    let user = User::new();
    let file = user.rules_toml();
    std::fs::write(&file, WIDE).unwrap();
    assert_allowed(&user.hook(&call(&user, "touch a"), "20"));
    let denies = "[[rule]]\nid = 'a'\ndeny = 'shell'\nwhere.any_path = 'a'\nreason = 'keep a'\n";
    std::fs::write(&file, format!("{WIDE}{denies}")).unwrap();
    assert_denied("claude", &user.hook(&call(&user, "touch a"), "20"), "keep a");
    let other = call(&user, "touch fresh");
    assert_allowed(&user.hook(&other, "20"));
    assert!(user.asks().is_empty(), "nothing is asked");
}

/// R3: "a file that was there and is gone denies", and P2: every problem is a denial.
#[cfg(unix)]
#[test]
fn a_file_of_rules_that_is_gone_denies_and_one_that_appears_allows_nothing() {
    let user = User::new();
    let file = user.rules_toml();
    // There are no rules: every call is asked about, and that is what was accepted.
    assert_denied("claude", &user.hook(&call(&user, "ls"), "0"), "waits for approval");
    std::fs::write(&file, WIDE).unwrap();
    let appeared = call(&user, "ls src");
    assert_denied("claude", &user.hook(&appeared, "0"), "waits for approval");
    assert_eq!(user.types(&["rules", "accept"], "yes").status, 0);
    assert_allowed(&user.hook(&appeared, "20"));

    std::fs::remove_file(&file).unwrap();
    for call in [call(&user, "ls"), appeared] {
        assert_denied("claude", &user.hook(&call, "20"), "was there and is gone");
    }
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    assert_denied("claude", &user.hook(&appeared, "20"), "was there and is gone");
    std::fs::remove_file(&file).unwrap();
    let gone = user.types(&["rules", "accept"], "yes");
    assert!(gone.out.contains("without rules every call is asked about"), "{gone:?}");
    let asked = call(&user, "ls lib");
    assert_denied("claude", &user.hook(&asked, "0"), "waits for approval");
}

/// The rules that `hook install` finds are accepted, and so is what a person has accepted before.
#[cfg(unix)]
#[test]
fn the_rules_that_are_installed_are_accepted() {
    let user = User::new();
    let team = user.home().join("team.toml");
    std::fs::write(&team, NARROW).unwrap();
    let settings = user.home().join("settings.json");
    let place = ["hook", "install", "claude", "--file", settings.to_str().unwrap()];
    let install = [&place[..], &["--", "--rules", "team.toml"]].concat();
    let installed = user.run(&install);
    assert_eq!(installed.status, 0, "{installed:?}");
    std::fs::write(&team, WIDE).unwrap();
    let options = ["--rules", team.to_str().unwrap()];
    let payload = call(&user, "touch a").before().to_string();
    let hook = || {
        let child = user.start_hook("claude", "0", &options, payload.as_bytes());
        ended(&child.wait_with_output().unwrap())
    };
    assert_denied("claude", &hook(), "waits for approval");
    let installed = user.run(&install);
    assert!(installed.out.contains("countersign rules accept"), "{installed:?}");
    assert_denied("claude", &hook(), "waits for approval");
    assert_eq!(user.types(&["rules", "accept", "--rules", "team.toml"], "yes").status, 0);
    assert_allowed(&hook());
}

/// R5: the records of what was accepted are the program's own files.
#[test]
fn no_tool_writes_what_was_accepted_unasked() {
    let user = User::new();
    std::fs::write(user.rules_toml(), WIDE).unwrap();
    let folder = user.state("rules");
    for command in [
        format!("rm -r {}", folder.display()),
        format!("echo x > {}/a.json", folder.display()),
        "countersign rules accept".to_owned(),
    ] {
        let call = call(&user, &command);
        assert_denied("claude", &user.hook(&call, "0"), "waits for approval");
    }
    assert_allowed(&user.hook(&call(&user, "countersign rules schema"), "20"));
}

/// R3: "a file of the machine, which the user cannot change, decides as it is". Needs root, who makes such a file.
#[cfg(target_os = "linux")]
#[test]
fn a_file_of_the_machine_decides_as_it_is() {
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    use std::process::Stdio;

    const OTHER_USER: u32 = 65_534;
    let user = User::new();
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let machine = tempfile::tempdir_in("/opt").unwrap();
    let readable = |mode: u32| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(machine.path(), readable(0o755)).unwrap();
    std::fs::set_permissions(user.home(), readable(0o755)).unwrap();
    chown(user.home(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let file = machine.path().join("rules.toml");
    // A copy, as the folder of the build may be closed to other users.
    let program = machine.path().join("countersign");
    let built = std::fs::read(crate::support::program("countersign")).unwrap();
    crate::support::write_program(&program, built);
    let answer = |command: &str| {
        let call = call(&user, command).before().to_string();
        let (home, rules) = (user.home().to_str().unwrap(), file.to_str().unwrap());
        let words = [
            "hook", "claude", "--limit", "90", "--wait", "0", "--home", home, "--root", home,
            "--rules", rules,
        ];
        let mut child = std::process::Command::new(&program);
        crate::program::in_environment_of(&mut child, user.home());
        child.args(words).current_dir(home).uid(OTHER_USER).gid(OTHER_USER);
        let pipes = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        child.stdin.take().unwrap().write_all(call.as_bytes()).unwrap();
        ended(&child.wait_with_output().unwrap())
    };
    std::fs::write(&file, NARROW).unwrap();
    assert_allowed(&answer("ls"));
    std::fs::write(&file, WIDE).unwrap();
    assert_allowed(&answer("touch a"));

    // One that the user may write is no file of the machine.
    std::fs::write(&file, NARROW).unwrap();
    std::fs::set_permissions(&file, readable(0o666)).unwrap();
    assert_allowed(&answer("ls"));
    std::fs::write(&file, WIDE).unwrap();
    assert_denied("claude", &answer("touch fresh"), "waits for approval");
}
