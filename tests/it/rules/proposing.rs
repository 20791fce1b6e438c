//! Rules that are proposed from a journal (rule R7).

use std::fs;
use std::path::Path;

use countersign::decision::ToolDecision;
use countersign_rules::{
    DecisionJournal, JournalEntry, JournaledAnswer, ProposedRules, RuleCall, Rules, RulesError,
    propose, replay,
};
use serde_json::{Value, json};

use super::{args, builder};

const PRESENT: &str = "version = 1\n[[rule]]\nid = 'look'\nallow = 'shell'\nwhere.command.is = 'read-only'\n\
                       [[rule]]\nid = 'push'\nask = 'shell'\nwhere.command.runs = 'git push'\n";

fn with(more: &str) -> Result<Rules, RulesError> {
    builder(PRESENT).text("proposed", more).load()
}

fn entry(tool: &str, value: Value, approved: bool) -> JournalEntry {
    let (rules, args) = (with("version = 1").unwrap(), args(value));
    let call = RuleCall::named(tool, &args);
    rules.journal_entry(&call, &rules.decide(&call)).of_approved(approved)
}

fn commands(list: &[(&str, bool)]) -> Vec<JournalEntry> {
    list.iter()
        .map(|(text, approved)| entry("shell", json!({"command": text}), *approved))
        .collect()
}

fn proposed(entries: &[JournalEntry]) -> ProposedRules {
    propose(entries, 3, with).unwrap()
}

/// R7: "`rules propose` prints the narrowest rules that would have allowed what people have approved again and again."
#[test]
fn a_call_that_was_approved_three_times_gets_a_rule_about_itself() {
    let found = proposed(&commands(&[
        ("npm install left-pad", true),
        ("npm install left-pad", true),
        ("npm install left-pad", true),
        ("npm install evil", false),
        ("ls", true),
    ]));
    assert_eq!(found.rules.len(), 1, "{found}");
    assert!(
        found.rules[0].rule.contains("where.command.equals = \"npm install left-pad\""),
        "{found}"
    );
    assert_eq!((found.rules[0].approvals, found.rules[0].also.len()), (3, 0));
}

/// R7: "No rule is proposed that would allow a call which a person has denied and not approved since."
#[test]
fn no_proposal_allows_what_a_person_has_denied() {
    let install = |name: &str, approved| {
        entry("shell", json!({"command": format!("npm install {name}")}), approved)
    };
    let mut entries = vec![install("a", true), install("b", true), install("c", true)];
    entries.push(install("evil", false).of_answer(JournaledAnswer::Denied));
    let found = proposed(&entries);
    let rule = &found.rules[0].rule;
    assert!(rule.contains("\"npm install c\"") && !rule.contains("evil"), "{found}");
    assert!(found.rules[0].also.is_empty(), "{found}");

    let mut entries = vec![install("a", true), install("a", true), install("a", true)];
    entries.push(install("a", false).of_answer(JournaledAnswer::Denied));
    let found = proposed(&entries);
    assert!(found.rules.is_empty(), "{found}");
    assert!(found.uncovered[0].why.ends_with("which a person has denied"), "{found}");
    entries.push(install("a", true));
    assert_eq!(proposed(&entries).rules.len(), 1, "the later answer counts");
}

/// R7: "The answer of a grant is no approval of a person."
#[test]
fn what_a_grant_has_approved_is_counted_for_no_proposal() {
    let call = || entry("shell", json!({"command": "npm install left-pad"}), true);
    let granted = || call().of_answer(JournaledAnswer::ByGrant);
    let found = proposed(&[call(), granted(), granted()]);
    assert!(found.rules.is_empty() && found.uncovered.is_empty(), "{found}");
}

/// R7: "with a test that makes it speak": the rule and its test are a file in which `rules check` finds nothing.
#[test]
fn a_proposal_brings_its_test() {
    let pay = || entry("mcp:bank/pay", json!({"amount": 900, "to": "landlord"}), true);
    let command = || ("npm install left-pad", true);
    let mut entries = commands(&[command(), command(), command()]);
    entries.extend([pay(), pay(), pay()]);
    let found = proposed(&entries);
    assert_eq!(found.rules.len(), 2, "{found}");
    for it in &found.rules {
        let test = it.test.as_deref().unwrap();
        assert!(found.to_string().contains(&format!("for `[test]`: allow = {test}")), "{found}");
        let file = format!("version = 2\n{}\n[test]\nallow = {test}\n", it.rule);
        let rules = Rules::builder().lexical().text("mine.toml", file).load().unwrap();
        let found = countersign_rules::lint(&rules, None);
        assert!(found.iter().all(|it| it.kind != "untested"), "{found:?}");
    }
}

/// R7: "the narrowest rules": a rule about approved calls allows none with one argument more, and says that a command is allowed
/// in each folder.
#[test]
fn a_proposal_allows_no_further_argument() {
    let merge = |value: Value| entry("mcp:hub/merge", value, true);
    let mut entries =
        vec![merge(json!({"pr": 5})), merge(json!({"pr": 5})), merge(json!({"pr": 5}))];
    entries.extend(commands(&[("npm install left-pad", true); 3]));
    let found = proposed(&entries);
    let text = found.to_string();
    assert!(text.contains("in each folder that an agent works in"), "{text}");
    let rules = with(&text).unwrap();
    let decided = |value: Value| {
        let args = args(value);
        rules.decide(&RuleCall::named("mcp:hub/merge", &args)).decision()
    };
    assert_eq!(decided(json!({"pr": 5})), ToolDecision::Allow);
    assert_eq!(decided(json!({"pr": 5, "admin": true})), ToolDecision::Ask);
    assert_eq!(decided(json!({"pr": 6})), ToolDecision::Ask);
    // What no person would see is written out.
    let hidden = || entry("mcp:hub/say", json!({"text": "a\u{202e}b\u{200b}"}), true);
    let found = proposed(&[hidden(), hidden(), hidden()]).to_string();
    assert!(found.contains(r#"["a\U0000202Eb\U0000200B"]"#), "{found}");
    assert!(with(&found).is_ok(), "{found}");
}

/// Calls of one kind that no rule covers are one line, with their number.
#[test]
fn calls_of_one_kind_without_a_rule_are_said_once() {
    let found = proposed(&commands(&[
        ("git push origin a", true),
        ("git push origin b", true),
        ("git push origin c", true),
    ]));
    assert!(found.rules.is_empty() && found.uncovered.len() == 1, "{found}");
    assert_eq!((found.uncovered[0].others, found.uncovered[0].approvals), (2, 3));
    assert!(found.to_string().contains("a and 2 other calls of its kind (3 times)"), "{found}");
}

/// R7: "… and every other call of the journal that they would have allowed".
#[test]
fn calls_of_one_kind_get_the_fewest_classes_and_what_they_would_also_have_allowed() {
    let found = proposed(&commands(&[
        ("mkdir a", true),
        ("mkdir -p b/c", true),
        ("mkdir d", true),
        ("mkdir e", false),
        ("touch f", false),
    ]));
    let [one] = &found.rules[..] else { panic!("{found}") };
    assert!(one.rule.contains("where.command.runs = \"mkdir\""), "{found}");
    assert!(one.rule.contains("where.command.is = [\"writes\"]"), "{found}");
    assert_eq!((one.approvals, &one.also[..]), (3, &["shell: mkdir e".to_owned()][..]));
    let adds = commands(&[
        ("git add a.txt", true),
        ("git add b.txt", true),
        ("git add -u", true),
        ("git commit", true),
    ]);
    let found = proposed(&adds);
    let exactly = "where.command.equals = [\"git add -u\", \"git add a.txt\", \"git add b.txt\"]";
    assert!(found.rules[0].rule.contains(exactly), "{found}");
    let text = proposed(&commands(&[
        ("mkdir a", true),
        ("mkdir b", true),
        ("mkdir c", true),
        ("mkdir d", false),
    ]));
    let text = text.to_string();
    assert!(text.contains("It would ALSO have allowed 1 call of the journal"), "{text}");
    with(&text).expect("what is printed is a file of rules");
}

/// R7: "the narrowest rules": all the words that the commands have in common, and not only those of the program's command.
#[test]
fn a_rule_about_commands_names_all_the_words_that_they_begin_with() {
    let found = proposed(&commands(&[
        ("docker compose logs web", true),
        ("docker compose logs api", true),
        ("docker compose logs --tail 9 db", true),
        ("docker compose ps", false),
    ]));
    let [one] = &found.rules[..] else { panic!("{found}") };
    assert!(one.rule.contains("where.command.runs = \"docker compose logs\""), "{found}");
    assert!(one.also.is_empty(), "{found}");
}

/// R7: "the narrowest rules": the first words of a command whose effects are in no class say too little about it.
#[test]
fn a_command_in_no_class_is_proposed_exactly_as_it_was_approved() {
    let branches = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let tags = branches.map(|name| (format!("git tag v-{name}"), true));
    let tags: Vec<_> = tags.iter().map(|(text, approved)| (text.as_str(), *approved)).collect();
    let found = proposed(&commands(&tags[..3]));
    let [one] = &found.rules[..] else { panic!("{found}") };
    assert!(!one.rule.contains("runs"), "{found}");
    let rules = with(&found.to_string()).unwrap();
    let decides = |command: &str| {
        let args = json!({"command": command});
        rules.decide(&RuleCall::named("shell", args.as_object().unwrap())).decision()
    };
    assert_eq!(decides("git tag v-b"), ToolDecision::Allow);
    for other in ["git tag -d v-a", "git tag --force v-b", "git tag v-x"] {
        assert_eq!(decides(other), ToolDecision::Ask, "{other}");
    }
    let found = proposed(&commands(&tags));
    assert!(found.rules.is_empty() && found.to_string().contains("too many commands"), "{found}");
}

/// The reason why there is no rule names no place: the text that was tried is no file of the person.
#[test]
fn a_program_that_runs_its_arguments_gets_no_rule_about_its_first_words() {
    let run = |day| (format!("python3 scripts/report.py --day {day}"), true);
    let all = [run(1), run(2), run(3)];
    let all: Vec<_> = all.iter().map(|(text, approved)| (text.as_str(), *approved)).collect();
    let found = proposed(&commands(&all));
    assert!(found.rules.is_empty(), "{found}");
    let why = &found.uncovered[0].why;
    assert!(why.starts_with("`python3` runs the program in its arguments"), "{why}");
}

/// R2: a rule that allows is no help against one that asks, which is said.
#[test]
fn what_a_stricter_rule_asks_about_is_not_covered() {
    let found = proposed(&commands(&[("git push", true), ("git push", true), ("git push", true)]));
    assert!(found.rules.is_empty(), "{found}");
    assert!(found.uncovered[0].why.contains("the rule `push` says ask"), "{found}");
}

/// R5: no rule is proposed that the floor would overrule.
#[test]
fn what_the_floor_asks_about_is_not_covered() {
    let write = || entry("write_file", json!({"path": ".git/config", "content": "x"}), true);
    let found = proposed(&[write(), write(), write()]);
    assert!(found.rules.is_empty() && found.uncovered.len() == 1, "{found}");
}

#[test]
fn a_tool_of_a_server_gets_its_arguments_and_no_other_one() {
    let pay = |value: Value, approved| entry("mcp:bank/pay", value, approved);
    let rent = || pay(json!({"amount": 900, "to": "landlord"}), true);
    let found = proposed(&[
        rent(),
        rent(),
        rent(),
        pay(json!({"amount": 900, "to": "eve", "urgent": true}), false),
    ]);
    let [one] = &found.rules[..] else { panic!("{found}") };
    assert!(one.rule.contains("allow = \"mcp:bank/pay\""), "{found}");
    let rules = with(&format!("version = 2\n{}", one.rule)).unwrap();
    let decide =
        |value: Value| rules.decide(&RuleCall::named("mcp:bank/pay", &args(value))).decision();
    assert_eq!(decide(json!({"amount": 900, "to": "landlord"})), ToolDecision::Allow);
    for other in [
        json!({"amount": 901, "to": "landlord"}),
        json!({"amount": 900, "to": "landlord", "urgent": true}),
    ] {
        assert_eq!(decide(other), ToolDecision::Ask);
    }
}

/// R7: "Nothing that was denied or not approved is in a proposal's calls": a month of work, proposed and replayed.
#[test]
fn a_proposal_replayed_over_its_journal_widens_nothing_that_it_does_not_name() {
    let mut entries =
        commands(&[("git push", false), ("rm -rf x", false), ("git add z.txt", false)]);
    for _ in 0..3 {
        entries.extend(commands(&[
            ("git add a.txt", true),
            ("make release", true),
            ("git push", true),
        ]));
    }
    let found = proposed(&entries);
    let rules = with(&found.to_string()).unwrap();
    let named: Vec<String> =
        found.rules.iter().flat_map(|it| it.calls.iter().chain(&it.also)).cloned().collect();
    for change in replay(&entries, &rules).changes.iter().filter(|it| it.widens()) {
        let call = format!("{}: {}", change.tool, change.args["command"].as_str().unwrap());
        assert!(named.contains(&call), "{call} is in no proposal: {found}");
    }
}

/// A decision about a call in a directory.
fn entry_in(directory: &str, tool: &str, value: Value, approved: bool) -> JournalEntry {
    let (rules, args) = (with("version = 1").unwrap(), args(value));
    let call = RuleCall::named(tool, &args).directory(Path::new(directory));
    rules.journal_entry(&call, &rules.decide(&call)).of_approved(approved)
}

/// Proposes for the same approval three times.
fn thrice(entry: &JournalEntry) -> ProposedRules {
    proposed(&[entry.clone(), entry.clone(), entry.clone()])
}

/// R7: "A replay shows what changes under other rules, and whether anything widens."
#[test]
fn a_tool_that_is_not_known_stays_so_in_the_journal() {
    let asked = entry("claude:Skill", json!({"skill": "review"}), false);
    let folder = tempfile::tempdir().unwrap();
    let journal = DecisionJournal::at(folder.path().join("journal.jsonl"));
    journal.append(&asked).unwrap();
    let (read, _) = journal.entries().unwrap();
    assert_eq!((&read[..], read[0].call().to_string()), (&[asked][..], "claude:Skill".to_owned()));
    let widened = |allow: &str| {
        let rules = with(&format!("version = 1\n[[rule]]\nid = 'r'\nallow = '{allow}'")).unwrap();
        replay(&read, &rules).changes.iter().any(|it| it.widens())
    };
    assert!(widened("claude:Skill"));
    assert!(
        !widened("*") && !widened("set:claude/Skill"),
        "they are not about a tool that is not known"
    );

    let found = thrice(&read[0].clone().of_approved(true));
    let [one] = &found.rules[..] else { panic!("{found}") };
    assert!(one.rule.contains("allow = \"claude:Skill\""), "{found}");
    let rules = with(&found.to_string()).unwrap();
    assert!(rules.decide(&read[0].call()).decision().is_allow());
}

/// R7: "A rule is proposed only if it covers exactly what it says".
#[test]
fn no_condition_is_left_out_of_a_proposal() {
    let pay = |to: String| entry("mcp:bank/pay", json!({"to": to, "why": "rent"}), true);
    let read = |path: String| entry("read_file", json!({"path": path}), true);
    for (entries, why) in [
        (vec![entry("mcp:db/query", json!({"sql": "SELECT 1\n-- x"}), true); 3], "several lines"),
        (vec![entry("mcp:mail/send", json!({"body": "y".repeat(201)}), true); 3], "too long"),
        ((0..9).map(|at| pay(format!("a{at}@example.com"))).collect(), "more than 8 values"),
        (["/a/b", "/c/d", "/e/f"].map(|it| read(it.into())).to_vec(), "no folder in common"),
        (["a", "b", "c"].map(|it| read(format!("/home/ann/{it}"))).to_vec(), "no folder in common"),
        (["a", "b", "c"].map(|it| read(format!("/home/{it}/x"))).to_vec(), "no folder in common"),
        (["a", "b", "c"].map(|it| read(format!("/opt/../{it}"))).to_vec(), "another path"),
        (vec![entry("mcp:s/deploy", json!({}), true); 3], "about every call"),
        (
            [("ann", 5), ("ann", 6), ("bob", 5000)]
                .map(|(to, amount)| {
                    entry("mcp:bank/pay", json!({"to": to, "amount": amount}), true)
                })
                .to_vec(),
            "several arguments differ",
        ),
        (
            (0..9)
                .map(|it| {
                    entry("shell", json!({"command": format!("curl https://a.example/{it}")}), true)
                })
                .collect(),
            "too wide",
        ),
    ] {
        let found = proposed(&entries);
        assert!(found.rules.is_empty(), "{found}");
        assert!(found.uncovered.iter().all(|it| it.why.contains(why)), "{why}: {found}");
        assert_eq!(found.uncovered.iter().map(|it| it.approvals).sum::<usize>(), entries.len());
    }
    let found = proposed(&["a", "b", "c"].map(|it| read(format!("/opt/docs/{it}"))));
    assert!(found.rules[0].rule.contains("\nwhere.path.path = \"/opt/docs/**/*\"\n"), "{found}");
    // An argument that only some calls have is none of a rule about all of them.
    let mail = |value: Value| entry("mcp:mail/send", value, true);
    let (bare, copied) = (json!({"to": "ann"}), json!({"to": "ann", "cc": "bob"}));
    let found = proposed(&[mail(bare.clone()), mail(bare), mail(copied)]);
    assert!(found.rules.is_empty(), "{found}");
}

/// R7: "… other by its directory or any argument, too".
#[test]
fn the_same_command_elsewhere_or_otherwise_is_another_call() {
    let make =
        |directory: &str, value: Value, approved| entry_in(directory, "shell", value, approved);
    let deploy = || json!({"command": "make deploy", "description": "Deploys"});
    let here = || make("/src/shop", deploy(), true);
    let found = proposed(&[
        here(),
        here(),
        here(),
        make(
            "/src/shop",
            json!({"command": "make deploy", "description": "in other words"}),
            false,
        ),
        make("/srv/prod", deploy(), false),
        make("/src/shop", json!({"command": "make deploy", "timeout": 7}), false),
    ]);
    let [one] = &found.rules[..] else { panic!("{found}") };
    assert_eq!(
        one.also,
        [
            "shell: make deploy (in /src/shop, timeout = 7)".to_owned(),
            "shell: make deploy (in /srv/prod)".to_owned(),
        ],
        "{found}"
    );
}

/// R7: "the name of a tool or a server has a wildcard".
#[test]
fn a_name_with_a_wildcard_is_never_a_pattern() {
    for (tool, server) in [
        ("get*", "docs"),
        ("ge?", "docs"),
        ("[gs]et", "docs"),
        ("get", "*"),
        ("get", "b?nk"),
        ("c", "a/b"),
    ] {
        let (rules, args) = (with("version = 1").unwrap(), args(json!({"id": "1"})));
        let call = RuleCall::new(tool, &args).server(server);
        let found = thrice(&rules.journal_entry(&call, &rules.decide(&call)).of_approved(true));
        assert!(found.rules.is_empty() && found.uncovered.len() == 1, "{found}");
        let why = &found.uncovered[0].why;
        assert!(why.contains("has a wildcard") || why.contains("as another tool"), "{found}");
    }
}

/// S1: secrets are masked in the journal, which is readable for its user alone and forgets.
#[test]
fn a_journal_masks_secrets_and_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let journal = DecisionJournal::at(folder.path().join("journal.jsonl")).keep_days(1);
    let secret = "sk-proj-Zx81mQp0aLw93kdTb27Hf6";
    let entry = entry(
        "send",
        json!({"api_key": secret, "deep": [{"password": "hunter2hunter2"}], "to": "ann"}),
        false,
    );
    assert!(entry.masked && entry.args["to"] == "ann");
    journal.append(&entry).unwrap();
    let text = fs::read_to_string(journal.path()).unwrap();
    assert!(!text.contains(secret) && !text.contains("hunter2hunter2"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(journal.path()).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(journal.prune_daily().unwrap(), 0);
    fs::write(journal.path(), text.replacen("\"at\":", "\"at\":1,\"was\":", 1)).unwrap();
    assert_eq!(journal.prune_daily().unwrap(), 1, "older than a day");
}
