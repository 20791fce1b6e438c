//! Rules that a person has accepted, over processes that load the file anew each time (rule R3).

use std::path::{Path, PathBuf};

use countersign::decision::ToolDecision::{self, Allow, Ask, Deny};
use countersign_rules::{AcceptedRules, RuleCall, Rules, RulesError, Ruling, difference};
use serde_json::json;

use super::args;

/// A file of rules, and what was accepted of it.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new(text: &str) -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        this.write(text);
        this
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("rules.toml")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.file(), format!("version = 1\n{text}")).unwrap();
    }

    fn accepted(&self) -> AcceptedRules {
        AcceptedRules::at(self.folder.path().join("state/rules"))
    }

    /// The rules as another process loads them.
    fn load(&self) -> Result<Rules, RulesError> {
        Rules::builder().root("/src").file(self.file()).accepted(self.accepted()).load()
    }

    fn ruling(&self, tool: &str) -> Ruling {
        let rules = self.load().unwrap_or_else(|error| panic!("{error}"));
        rules.decide(&RuleCall::new(tool, &args(json!({}))))
    }

    fn decides(&self, tool: &str) -> ToolDecision {
        self.ruling(tool).decision()
    }

    fn accept(&self) {
        let text = std::fs::read_to_string(self.file()).unwrap();
        self.accepted().accept(&self.file(), Some(&text)).unwrap();
    }
}

fn rule(id: &str, effect: &str) -> String {
    format!("[[rule]]\nid = '{id}'\n{effect}\n")
}

/// R3: "until a person accepts the new rules, the stricter of them and those before decides", over processes.
#[test]
fn a_change_that_may_allow_more_decides_together_with_the_rules_before() {
    let desk = Desk::new(&rule("pay", "deny = 'pay'\nreason = 'no'"));
    assert_eq!((desk.decides("pay"), desk.decides("mail")), (Deny, Ask));
    desk.write(&(rule("pay", "allow = 'pay'") + &rule("mail", "allow = 'mail'")));
    let (pay, mail) = (desk.ruling("pay"), desk.ruling("mail"));
    assert_eq!((pay.decision(), mail.decision()), (Deny, Ask));
    assert!(pay.to_string().contains("no (by the rules before the change)"), "{pay}");
    assert!(mail.to_string().contains("`countersign rules accept`"), "{mail}");
    assert!(desk.load().unwrap().needs_accepting());
    desk.accept();
    assert_eq!((desk.decides("pay"), desk.decides("mail")), (Allow, Allow));
    assert!(!desk.load().unwrap().needs_accepting());
}

#[test]
fn a_change_that_only_narrows_counts_at_once_and_is_not_lost() {
    let all = rule("all", "allow = '*'");
    let desk = Desk::new(&all);
    assert_eq!(desk.decides("pay"), Allow);
    let narrow = format!("# careful\n{all}{}", rule("pay", "deny = 'pay'\nreason = 'no'"));
    desk.write(&narrow);
    assert_eq!(desk.decides("pay"), Deny);
    assert!(!desk.load().unwrap().needs_accepting(), "it counts as accepted");
    // Back to what a person has accepted first: the denial was not taken back by a person.
    desk.write(&all);
    assert_eq!(desk.decides("pay"), Deny);
    desk.accept();
    assert_eq!(desk.decides("pay"), Allow);
}

/// R3: "every question of both is asked": no answer in advance goes past a question that was to be asked every time.
#[test]
fn the_questions_of_both_are_asked() {
    let desk = Desk::new(&rule("pay", "ask = 'pay'\nevery_time = true"));
    assert!(desk.ruling("pay").is_every_time());
    desk.write("");
    let ruling = desk.ruling("pay");
    assert!(ruling.decision() == Ask && ruling.is_every_time() && !ruling.is_grantable());
    let rules: Vec<_> = ruling.winners().map(|spoke| spoke.rule.to_string()).collect();
    assert_eq!(rules, ["pay", "default"]);
    // In one process, too.
    let rules = Rules::builder().root("/src").file(desk.file());
    desk.write(&rule("pay", "ask = 'pay'\nevery_time = true"));
    let rules = rules.load().unwrap();
    desk.write("");
    assert!(rules.reload().unwrap().needs_accepting);
    assert!(rules.decide(&RuleCall::new("pay", &args(json!({})))).is_every_time());
}

#[test]
fn tools_that_are_said_to_only_read_and_limits_that_are_gone_are_changes_that_may_widen() {
    for (before, after) in [
        (
            rule("a", "allow = '*'"),
            format!("read_only_tools = ['*']\n{}", rule("a", "allow = '*'")),
        ),
        (
            rule("a", "allow = '*'")
                + &rule("b", "allow = 'pay'\nat_most = {calls = 1, within = '1h', else = 'deny'}"),
            rule("a", "allow = '*'"),
        ),
        (String::new(), "danger_default_allow = true\n".to_owned()),
    ] {
        let desk = Desk::new(&before);
        desk.decides("pay");
        desk.write(&after);
        assert!(desk.load().unwrap().needs_accepting(), "{after}");
    }
}

/// R3: "a file that was there and is gone denies", as the rules do not load.
#[test]
fn a_file_that_is_gone_or_cannot_be_read_is_an_error() {
    let desk = Desk::new("");
    let there = || desk.accepted().is_there(&desk.file());
    desk.decides("pay");
    desk.write("allow = ");
    assert!(desk.load().is_err());
    std::fs::remove_file(desk.file()).unwrap();
    assert!(desk.load().is_err());
    assert!(there().unwrap_err().to_string().contains("was there and is gone"));
    desk.accepted().accept(&desk.file(), None).unwrap();
    assert_eq!(there(), Ok(false));
    // One that appears is a change, and not a first file.
    desk.write(&rule("all", "allow = '*'"));
    assert_eq!((there(), desk.decides("pay")), (Ok(true), Ask));
}

/// R3: "what was accepted is a private file".
#[cfg(unix)]
#[test]
fn what_was_accepted_is_a_private_file_and_one_that_is_not_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new("");
    desk.decides("pay");
    let folder = desk.folder.path().join("state/rules");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let records: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((mode(&folder), mode(record)), (0o700, 0o600));
    let whole = std::fs::read_to_string(record).unwrap();
    for broken in ["", "{}", &whole.replace("version = 1", "version = 1 ")] {
        std::fs::write(record, broken).unwrap();
        assert!(desk.load().is_err(), "{broken}");
    }
    std::fs::write(record, whole).unwrap();
    assert!(desk.load().is_ok());
    std::fs::set_permissions(record, std::fs::Permissions::from_mode(0o622)).unwrap();
    assert!(desk.load().unwrap_err().to_string().contains("other users"));
}

/// `accept` of rules that are loaded records their files, so that one mechanism serves both.
#[test]
fn rules_that_a_program_accepts_are_accepted_for_the_next_process() {
    let desk = Desk::new(&rule("pay", "ask = 'pay'"));
    let rules = desk.load().unwrap();
    desk.write(&rule("pay", "allow = 'pay'"));
    let reload = rules.reload().unwrap();
    assert_eq!(desk.decides("pay"), Ask);
    assert!(rules.accept(&reload.digest));
    assert_eq!(desk.decides("pay"), Allow);
}

/// R3: a preset that a changed file names decides only once a person has accepted it, and so does one that is gone.
#[test]
fn a_preset_that_a_changed_file_names_has_to_be_accepted() {
    let desk = Desk::new("");
    std::fs::write(desk.file(), "version = 2\n").unwrap();
    let reads = || {
        let rules = desk.load().unwrap();
        let call = args(json!({"command": "ls"}));
        (rules.decide(&RuleCall::new("shell", &call)).decision(), rules.needs_accepting())
    };
    assert_eq!(reads(), (Ask, false));
    std::fs::write(desk.file(), "version = 2\npreset = 'reader'\n").unwrap();
    assert_eq!(reads(), (Ask, true));
    desk.accept();
    assert_eq!(reads(), (Allow, false));
    std::fs::write(desk.file(), "version = 2\n").unwrap();
    assert_eq!(reads(), (Ask, true), "the preset also denies");
    std::fs::write(desk.file(), "version = 2\npreset = 'reader'\n").unwrap();
    assert_eq!(reads(), (Allow, false));
}

/// Keys of a rule that change what it means, each in a form that lines would hide.
const KEYS: &[&str] = &[
    "where.command.is = ['read-only']",
    "where.path.within = '.'",
    "where.any_path = [\"**/\\u007f*\", '**/\\[x]']",
    "where.amount.at_most = 5",
    "where.\"odd key\".is = \"a\\nb\"",
    "at_most = { calls = 3, within = '1d', else = 'deny' }",
    "except.user.is = 'ann'",
    "except.path = { within = 'docs' }",
    "every_time = true",
    "title = 'Pay'",
    "reason = \"\"\"\n[[rule]]\n[see the handbook]\nid = 'other'\n\"\"\"",
];

/// R3: "Every key that changes the digest of a rule is in the text that a person accepts": the text that is shown, read
/// again, is the same rule.
#[test]
fn the_text_of_a_difference_is_the_whole_rule() {
    let mut seen = 0;
    for effect in ["allow = '*'", "ask = ['pay', 'send']", "deny = \"mcp:x/*\""] {
        let few = |set: &usize| set.count_ones() <= 3;
        for set in (0..1_usize << KEYS.len()).filter(few) {
            let keys = KEYS.iter().enumerate().filter(|(n, _)| set & (1 << n) != 0);
            let keys: Vec<_> = keys.map(|(_, key)| *key).collect();
            let text = format!("version = 2\n[[rule]]\nid = 'a'\n{effect}\n{}\n", keys.join("\n"));
            let Ok(found) = difference("version = 2\n", &text) else { continue };
            seen += 1;
            let shown = found[0].after.clone().unwrap();
            let again = format!("version = 2\n{shown}\n");
            assert!(difference(&text, &again).unwrap().is_empty(), "{text}\n{again}");
            // Each key that is left out of it is a difference.
            for line in shown
                .lines()
                .skip(2)
                .filter(|it| !it.starts_with("reason") && !it.starts_with("title"))
            {
                let without = again.replace(&format!("{line}\n"), "");
                let differs = difference(&text, &without);
                assert!(differs.is_err() || !differs.unwrap().is_empty(), "{line}: {text}");
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

/// R3: a label for what is read changes what allowances say, and is shown.
#[test]
fn another_label_for_what_is_read_may_widen() {
    let one = "version = 2\n[[source]]\ntool = 'mail'\n";
    let other = "version = 2\n[[source]]\ntool = 'mail'\nown = true\n";
    let found = difference(one, other).unwrap();
    assert_eq!((found.len(), found[0].may_widen), (1, true));
    assert!(found[0].after.as_deref().unwrap().contains("own = true"), "{found:?}");
    assert!(
        difference(one, &one.replace("version = 2\n", "version = 2\n# a remark\n"))
            .unwrap()
            .is_empty()
    );
    let desk = Desk::new("");
    std::fs::write(desk.file(), one).unwrap();
    desk.load().unwrap();
    std::fs::write(desk.file(), other).unwrap();
    assert!(desk.load().unwrap().needs_accepting());
}
