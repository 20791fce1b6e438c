//! The texts of arguments are read (rules R2 and R5) as every consumer may read them, by one reader for all tests.

use countersign::decision::ToolDecision::{Allow, Ask, Deny};
use countersign_rules::{RuleCall, Rules};
use serde_json::{Value, json};

use super::{args, decide, rules, run};

/// A rule that allows paths in the workspace, and one that denies some names, by a field or by any string.
fn by(test: &str) -> Rules {
    let field = |what: &str| match test {
        "any_path" => format!("where.any_path.{what}"),
        _ => format!("where.path.{what}"),
    };
    rules(&format!(
        "version = 1\n[[rule]]\nid = 'in'\nallow = 'look'\n{} = '.'\n\
         [[rule]]\nid = 'all'\nallow = ['take', 'mcp:fs/*']\n[[rule]]\nid = 'no'\ndeny = '*'\n{} = ['**/.env', 'secret/**', '/etc/**']\n",
        field("within"),
        field("path"),
    ))
}

#[test]
fn a_path_outside_is_allowed_in_no_spelling_that_a_tool_may_read() {
    for rules in [by("path"), by("any_path")] {
        assert_eq!(decide(&rules, "look", json!({"path": "src/lib.rs"})), Allow);
        assert_eq!(decide(&rules, "look", json!({"path": "src/@types/a=b.rs"})), Allow);
        for path in [
            "file:///usr/x",
            "FILE:///usr/x",
            " file:///usr/x",
            "fi\tle:///usr/x",
            "file:\\\\\\usr\\x",
            "file:/usr/x",
            "file:usr/x",
            "file://localhost/usr/x",
            "%2e%2e/outside",
            "%252e%252e/outside",
            "..\\outside",
            "C:\\Windows",
            "c:/Windows",
            "http://evil.example/x",
            "x://y",
            "a:/../../outside",
            "[\"/usr/x\"]",
            "{\"path\": \"/usr/x\"}",
            "\u{1}file:///usr/x",
            "x\n/../../outside",
            "a\0b",
            "--out=/usr/x",
            "@/usr/x",
            "%ff",
            "*** Update File: /usr/x\n@@\n",
            "--- a/x\n+++ /usr/x\n",
        ] {
            assert_ne!(decide(&rules, "look", json!({"path": path})), Allow, "{path:?}");
        }
    }
}

/// `where.FIELD` and `any_path` give the same answer for the same string.
#[test]
fn a_denied_name_is_found_in_every_spelling_by_a_field_and_by_any_path() {
    for rules in [by("path"), by("any_path")] {
        for (path, certain) in [
            (".env", true),
            ("a/../.env", true),
            ("file:.env", true),
            ("%2eenv", true),
            ("%252eenv", true),
            ("\\.env", true),
            ("secret%2fa", true),
            ("FILE:///etc/secret", true),
            ("file:etc/secret", true),
            ("file:\\\\\\etc\\secret", true),
            (" file:///etc/secret", true),
            ("fil\ne:///etc/secret", true),
            ("file:///etc/secret?x=1#y", true),
            (".env ", false),
            (".env.", false),
            (".env\n", false),
            ("[\".env\"]", false),
            ("{\"json\": \"{\\\"path\\\": \\\".env\\\"}\"}", false),
            ("--file=.env", false),
            ("-f.env", false),
            ("@.env", false),
            ("HEAD:.env", false),
            (".env:stream", false),
            ("path=.env", false),
            ("README.md .env", false),
            ("a,.env", false),
            ("a:.env", false),
            (".en?", false),
            ("{.env,x}", false),
            ("s?cret/a", false),
            (".env#x", false),
            ("x\0.env", false),
            ("a://x", false),
        ] {
            let decision = decide(&rules, "take", json!({"path": path}));
            match certain {
                true => assert_eq!(decision, Deny, "{path:?}"),
                false => assert_eq!(decision, Ask, "{path:?}"),
            }
        }
        let long = format!("{}x", "a/".repeat(5000));
        assert_eq!(decide(&rules, "take", json!({"path": long})), Ask, "too long to be read");
        for path in
            ["src/lib.rs", "env", "src/[id]/page.tsx", "12:30", "note: later", "16:9", "ü/é.rs"]
        {
            assert_eq!(decide(&rules, "take", json!({"path": path})), Allow, "{path:?}");
        }
    }
}

/// Text that a tool writes into a file, or shows to people, names no file.
#[test]
fn content_and_text_for_people_are_no_paths_for_a_rule_that_allows() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'in'\nallow = ['write_file', 'edit_file', 'spawn_agent']\nwhere.any_path.within = '.'\n\
         [[rule]]\nid = 'no'\ndeny = '*'\nwhere.any_path = '**/.env'\n",
    );
    for value in [
        json!({"path": "src/a.js", "content": "// http://example.com/../x\nimport a from '../../b';\n"}),
        json!({"path": "src/a.c", "content": "/* .env is not read here */"}),
        json!({"path": "install.sh", "content": "#!/bin/sh\ncp hook \"$(dirname $0)/../.git/hooks/pre-commit\"\n"}),
        json!({"path": "a.json", "content": "{\"include\": [\"../x\", \".github/workflows/a.yml\"]}"}),
        json!({"path": "min.js", "content": "x;".repeat(4000)}),
    ] {
        assert_eq!(decide(&rules, "write_file", value.clone()), Allow, "{value}");
    }
    let edit = json!({"path": "src/a.rs", "old_string": "/// see ../x", "new_string": "/// see https://docs.rs/x"});
    assert_eq!(decide(&rules, "edit_file", edit), Allow);
    let outside = json!({"path": "../a", "content": "x"});
    assert_eq!(decide(&rules, "write_file", outside), Ask);
}

/// Rule R5, over the vehicles, places and spellings of a tool's arguments.
#[test]
fn no_spelling_of_a_protected_name_gets_past_the_floor() {
    let rules = rules("version = 1\n[[rule]]\nid = 'all'\nallow = ['*', 'mcp:*/*']\n");
    let places = [
        ".git/config",
        "CLAUDE.md",
        ".envrc",
        ".claude/settings.json",
        "CLAUDE.local.md",
        "AGENTS.override.md",
        ".kiro/hooks/x",
        ".github/workflows/x.yml",
        ".crush.json",
        "a.code-workspace",
        "lefthook.yml",
        "azure-pipelines.yml",
        ".yarnrc.yml",
        ".agents/x",
        ".copilot/hooks/x.json",
        "x/head",
        "~/.config/countersign/rules.toml",
        "~/.local/state/countersign/x.db",
        "~/.config/opencode/plugin/x.js",
        "~/.config/git/config",
        "/etc/claude-code/managed-settings.json",
    ];
    let spell = |place: &str| {
        let below = place.trim_start_matches(['~', '/']);
        let mut all = vec![
            place.to_owned(),
            place.to_uppercase(),
            format!("{place}."),
            format!("{place} "),
            format!(" {place}"),
            format!("{place}\n"),
            format!("[{}]", json!(place)),
            json!({"a": json!({"p": place}).to_string()}).to_string(),
            format!("*** Begin Patch\n*** Update File: {place}\n@@\n+x\n*** End Patch"),
            format!("--- a/x\n+++ b/{below}\n@@ -1 +1 @@\n"),
            format!("--out={place}"),
            format!("@{place}"),
        ];
        if !place.starts_with(['~', '/']) {
            all.extend([
                format!("./{place}"),
                format!("a/../{place}"),
                format!("a//{place}"),
                format!("a://../{place}"),
                format!("https://../{place}"),
                format!("x\n/../{place}"),
                format!("x\n/{place}"),
                format!("file:{place}"),
                format!("FILE:///home/user/project/{place}"),
                place.replace('.', "%2e"),
                place.replace('.', "%252E"),
                place.replace('/', "\\"),
            ]);
        }
        all
    };
    for text in places.iter().flat_map(|place| spell(place)) {
        for value in
            [json!({"path": text}), json!({"edits": [{"file": text}]}), json!({text.clone(): "x"})]
        {
            let given = args(value.clone());
            for call in [RuleCall::new("put", &given), RuleCall::new("put", &given).server("fs")] {
                let ruling = rules.decide(&call);
                assert!(ruling.decision() == Ask && ruling.is_every_time(), "{value}: {ruling}");
            }
        }
    }
}

#[test]
fn no_command_writes_a_protected_place_by_a_redirection_or_a_word() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = 'shell'\n[[rule]]\nid = 'any'\nallow = 'shell'\nwhere.command.matches = '*'\n",
    );
    for place in [
        ".git/config",
        "CLAUDE.md",
        "~/.config/countersign/rules.toml",
        "~/.claude/settings.json",
        "~/.gitconfig",
        "$HOME/.codex/hooks.json",
        "/etc/claude-code/x.json",
        "sub/.GIT/config",
    ] {
        for command in [
            format!("printf x > {place}"),
            format!("printf x >> {place}"),
            format!("cat a > {place}"),
            format!("tee {place}"),
            format!("cp a {place}"),
            format!("dd if=a of={place}"),
            format!("sed -i s/a/b/ {place}"),
            format!("curl -o {place} u"),
            format!("curl -o{place} u"),
            format!("sort -o {place} a"),
            format!("foo --to={place}"),
            format!("touch {place}"),
            format!("cat > {place} <<'E'\nx\nE"),
            format!("cd sub && echo x > ../{place}"),
        ] {
            if place.starts_with(['~', '$', '/']) && command.starts_with("cd ") {
                continue;
            }
            let given = args(json!({"command": command}));
            let ruling = rules.decide(&RuleCall::new("shell", &given));
            assert!(ruling.decision() == Ask && ruling.is_every_time(), "{command}: {ruling}");
        }
    }
    for command in [
        "cat CLAUDE.md",
        "grep -n x .github/workflows/ci.yml",
        "git diff -- CLAUDE.md",
        "head -5 .git/config",
    ] {
        assert_eq!(run(&rules, command), Allow, "{command}: reading is not asked about");
    }
}

#[test]
fn an_address_of_a_protected_name_is_no_path() {
    let rules = rules("version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n");
    for url in [
        "https://github.com/o/r/blob/main/.github/workflows/ci.yml",
        "https://example.com/CLAUDE.md",
        "http://localhost:3000/.git/HEAD",
    ] {
        assert_eq!(
            decide(&rules, "fetch", json!({"url": url, "prompt": "read .github/x and CLAUDE.md"})),
            Allow,
            "{url}"
        );
    }
}

#[test]
fn a_host_that_clients_read_differently_is_asked_about_by_a_rule_that_denies() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = 'get'\n[[rule]]\nid = 'no'\ndeny = 'get'\n\
         where.url.host = ['evil.com', '169.254.169.254', '*.bad.org']\n",
    );
    let decide = |url: &str| decide(&rules, "get", json!({"url": url}));
    for url in [
        "http://evil.com/",
        "HTTP://EVIL.COM./",
        "http:evil.com",
        "//evil.com/x",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://2852039166/",
        "http://0xa9.0xfe.0xa9.0xfe/",
        "http://0251.0376.0251.0376",
        "http://x.bad.org",
        "http://ok.com@evil.com/",
        "ftp://evil.com",
        "evil.com:80/x",
    ] {
        assert_eq!(decide(url), Deny, "{url}");
    }
    for url in [
        "http://ok.com\\@evil.com",
        "http://evil.com ok.com",
        "http://ev\0il.com/",
        "http://evil.com@ok.com/",
        "ftp://ok.com/",
        "http://ok.com\t@evil.com",
        "http://%zz/",
    ] {
        assert_ne!(decide(url), Allow, "{url:?}");
    }
    assert_eq!(decide("https://ok.com/?next=http://evil.com"), Allow);
}

/// The link is followed by the kernel before `..`, and by a program that shortens the path after it.
#[cfg(unix)]
#[test]
fn a_path_is_where_a_program_leads_that_shortens_it_first() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::create_dir_all(folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("out"), root.join("link")).unwrap();
    std::os::unix::fs::symlink(root.join("a/b"), root.join("deep")).unwrap();
    let text = "version = 1\n[[rule]]\nid = 'look'\nallow = 'read_file'\nwhere.path.within = '.'";
    let rules = Rules::builder().root(&root).text("mine.toml", text).load().unwrap();
    let decide = |value: Value| decide(&rules, "read_file", value);
    assert_eq!(decide(json!({"path": "a/x"})), Allow);
    assert_eq!(decide(json!({"path": "deep/../link/x"})), Ask, "shortened, it is `link/x`");
    assert_eq!(decide(json!({"path": "link/../project/a"})), Allow, "both lead inside");
}

/// X2: the words of a command are what its program takes them for.
#[test]
fn a_denied_name_is_found_within_the_words_of_a_command() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n[[rule]]\nid = 'r'\ndeny = '*'\nwhere.any_path = '**/payroll.csv'\n",
    );
    for command in [
        "cat payroll.csv",
        "git log -p -- ':(top)payroll.csv'",
        "git log -p -- :/payroll.csv",
        "git show HEAD:payroll.csv",
        "git log -L1,5:payroll.csv",
    ] {
        assert_eq!(run(&rules, command), Deny, "{command}");
    }
}

/// R5, by a command: names that a pattern, a pipe, a script or a packed file stands for.
#[test]
fn no_command_writes_a_protected_place_that_it_does_not_name_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let git =
        std::process::Command::new("git").args(["init", "-q"]).current_dir(folder.path()).status();
    assert!(git.unwrap().success());
    for name in ["CLAUDE.md", ".claude/settings.json", "a.txt", "src/a.c"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n";
    let rules = Rules::builder().root(folder.path()).text("mine.toml", text).load().unwrap();
    let decided = |command: &str| {
        let given = args(json!({"command": command}));
        rules.decide(&RuleCall::new("shell", &given)).decision()
    };
    for command in [
        "sed -i s/a/b/ C*",
        "cp a.txt .gi*/config",
        "cd .gi? && cp ../a.txt config",
        "for f in C*; do cp a.txt $f; done",
        "git config core.pager ./x",
        "git -c a.b=c remote add x y",
        "git -C . -C /tmp status",
        "git init",
        "sort -uoCLAUDE.md a.txt",
        "tar -czfCLAUDE.md a.txt",
        "sed -n wCLAUDE.md a.txt",
        "sed s/hello/b/wCLAUDE.md a.txt",
        "bash <<< 'echo x > CLAUDE.md'",
        "echo 'echo x > CLAUDE.md' | sh",
        "python3 <<'E'\nopen('CLAUDE.md', 'w')\nE",
        "echo CLAUDE.md | xargs rm",
        "find . -name CLAUDE.md -exec rm {} +",
        "cd .claude && gcc ../src/a.c",
        "cd .git && ls config | xargs rm",
        "gzip -df CLAUDE.md.gz",
        "echo x > \"$OUT\"",
        "echo \"a",
    ] {
        assert_eq!(decided(command), Ask, "{command}");
    }
    for command in [
        "cat C*",
        "git config --list",
        "git remote -v",
        "cp a.txt b.txt",
        "rm *.txt",
        "git push origin HEAD",
        "git commit -m 'update CLAUDE.md and .claude'",
        "tar -czf a.tgz src",
        "sed -i s/w/x/ a.txt",
        "ls *.txt | xargs rm",
        "python3 x.py",
    ] {
        assert_eq!(decided(command), Allow, "{command}");
    }
}

/// R5 and X2, by a tool: patches as programs read them, texts that are cut, names in maps, and directories that are not
/// certain.
#[test]
fn a_call_is_asked_about_where_its_texts_are_read_in_part() {
    let all = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n";
    let floor = rules(all);
    let denying =
        rules(&format!("{all}[[rule]]\nid = 'no'\ndeny = '*'\nwhere.any_path = '**/.env'\n"));
    let inside = rules(
        "version = 1\n[[rule]]\nid = 'in'\nallow = ['read_file', 'write_files', 'glob']\nwhere.any_path.within = '.'\n",
    );
    let many: String = (0..400).map(|n| format!("--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n")).collect();
    let names: Vec<String> = (0..2000).map(|n| format!("f{n}")).collect();
    let deep = format!("{}\"CLAUDE.md\"{}", "[".repeat(20), "]".repeat(20));
    for given in [
        json!({"patch": format!("{many}--- a/x\n+++ b/CLAUDE.md\n")}),
        json!({"patch": "--- a/x\r\n+++ b/CLAUDE.md\r\n@@ -1 +1 @@\r\n"}),
        json!({"patch": "--- x\n+++ \"b/CLAUD\\105.md\"\n"}),
        json!({"patch": "*** CLAUDE.md\tMon\n--- CLAUDE.md\tTue\n***************\n"}),
        json!({"ops": format!("[\"{}\",\"CLAUDE.md\"]", names.join("\",\""))}),
        json!({"ops": deep}),
        json!({"ops": "{\"CLAUDE.md\": \"x\"}"}),
        json!({"ops": "{\"path\": \"a\"}\n{\"path\": \"CLAUDE.md\"}\n"}),
        json!({"path": format!("{}CLAUDE.md", "a%2f..%2f".repeat(600))}),
    ] {
        let shown: String = given.to_string().chars().take(100).collect();
        assert_eq!(decide(&floor, "apply", given), Ask, "{shown}");
    }
    for given in [
        json!({"files": {"file:.env": "x"}}),
        json!({"files": {"%2eenv": "x"}}),
        json!({"path": "a/{b,c}/{.env,d}"}),
        json!({"path": format!("{}.env", "a ".repeat(40))}),
        json!({"path": "<URL:file:.env>"}),
        json!({"path": "jar:file:.env!/x"}),
    ] {
        assert_ne!(decide(&denying, "take", given.clone()), Allow, "{given}");
    }
    for (tool, given) in [
        ("write_files", json!({"base": ".", "files": {"../../x": "y"}})),
        ("read_file", json!({"path": "~ann"})),
        ("read_file", json!({"path": "a", "cwd": "file:///etc"})),
        ("read_file", json!({"path": "a", "cwd": "b/.."})),
        ("glob", json!({"pattern": "src/{..,a}/{..,b}/*"})),
        ("read_file", json!({"path": "$HOME/x"})),
        ("read_file", json!({"path": "\u{feff}../x"})),
    ] {
        assert_eq!(decide(&inside, tool, given.clone()), Ask, "{tool} {given}");
    }
    for given in [
        json!({"path": "src/a.py", "old_string": "self.key", "new_string": ".env"}),
        json!({"path": ".gitignore", "old_string": "target\n", "new_string": "target\n.env\n"}),
    ] {
        assert_eq!(
            decide(&denying, "edit_file", given.clone()),
            Allow,
            "{given}: content is no path"
        );
    }
    let search = json!({"path": "src", "pattern": "*.rs", "excludePatterns": [".git", "**/.env"]});
    assert_eq!(decide(&denying, "search_files", search), Allow, "what is left out is not read");
}

/// X2: a pattern that may match asks, in each way that a shell reads a set.
#[test]
fn a_set_in_a_pattern_is_one_character_that_is_not_known() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
         [[rule]]\nid = 'no'\ndeny = '*'\nwhere.any_path = ['**/payroll.csv', 'finance/**']\n",
    );
    for pattern in [
        "[o-q]ayroll.csv",
        "pay[q-s]oll.csv",
        "p[!b]yroll.csv",
        "pay[[:alpha:]]oll.csv",
        "payroll.[b-d]sv",
        "[e-g]inance/q3.csv",
        "p[[:a]yroll.csv",
    ] {
        for command in [
            format!("cat {pattern}"),
            format!("sort < {pattern}"),
            format!("for f in {pattern}; do cat $f; done"),
            format!("git show HEAD:{pattern}"),
        ] {
            // Where a text has no one meaning, it is asked about as such.
            assert_ne!(run(&rules, &command), Allow, "{command}");
        }
        for (tool, field) in [("read_file", "path"), ("search_files", "glob")] {
            assert_ne!(
                decide(&rules, tool, json!({field: pattern, "pattern": "x"})),
                Allow,
                "{tool} {pattern}"
            );
        }
    }
    for pattern in ["[a-b].txt", "[o-q]ayroll.tsv", "src/[a-z].rs", "[[:alpha:]].csv"] {
        assert_eq!(run(&rules, &format!("cat {pattern}")), Allow, "{pattern}");
        assert_eq!(decide(&rules, "read_file", json!({"path": pattern})), Allow, "{pattern}");
    }
}

/// X2: "Trimmed", decoded and turned also where a line break stands in the text.
#[test]
fn a_line_break_beside_a_blank_hides_no_path() {
    let text = "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
                [[rule]]\nid = 'no'\ndeny = '*'\nwhere.any_path = '**/.env'\n";
    let denies = rules(text);
    for path in [".env\n ", " \n.env", ".env\n\t", "\u{a0}\n.env", "x\n/..%2f.env", "x\n\\..\\.env"]
    {
        assert_ne!(decide(&denies, "read_doc", json!({"path": path})), Allow, "{path:?}");
    }
    let within = rules("version = 1\n[[rule]]\nid = 'in'\nallow = '*'\nwhere.path.within = '.'\n");
    for path in [" \n/etc/passwd", "\n /etc/passwd", "\u{a0}\n/etc/passwd"] {
        assert_eq!(decide(&within, "read_doc", json!({"path": path})), Ask, "{path:?}");
    }
    assert_eq!(decide(&within, "read_doc", json!({"path": "a.txt\n"})), Allow);
}

/// X2: "Each line of a path is a possible path".
#[test]
fn each_line_of_a_path_is_a_possible_path() {
    for rules in [by("path"), by("any_path")] {
        for path in ["src/a\n/etc/passwd", "src/a\r\n../outside", "src/a\n\nsrc/b\n ~/.netrc"] {
            assert_eq!(decide(&rules, "look", json!({"path": path})), Ask, "{path:?}");
        }
        assert_eq!(decide(&rules, "look", json!({"path": "src/a\nsrc/b\n"})), Allow);
        let many = "src/a\n".repeat(10_000) + "/etc/passwd";
        assert_eq!(decide(&rules, "look", json!({"path": many})), Ask);
    }
}

/// X2: the patterns of a search may name a file by a set, a `?`, or in a folder.
#[test]
fn a_pattern_of_a_search_names_files_also_by_its_wildcards() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
         [[rule]]\nid = 'no'\ndeny = '*'\nwhere.any_path = ['**/.env', 'secrets/**']\n",
    );
    let search = |glob: &str| decide(&rules, "search_files", json!({"pattern": "K", "glob": glob}));
    for glob in [".[e]nv", "?env", "[.]env", ".e*", "secre[t]s/a", "s*s/credentials.json"] {
        assert_ne!(search(glob), Allow, "{glob}");
    }
    for glob in ["*.rs", "**/*.{ts,tsx}", "*.json", "[a-c]*.md", "src/*/mod.rs"] {
        assert_eq!(search(glob), Allow, "{glob}");
    }
}

/// `outside` denies what is in no folder that it names, by the exact name.
#[test]
fn outside_denies_a_folder_that_differs_in_case() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
         [[rule]]\nid = 'no'\ndeny = '*'\nwhere.path.outside = '.'\n",
    );
    let root = "/home/user/project";
    let read = |path: String| decide(&rules, "read_doc", json!({"path": path}));
    assert_eq!(read("/HOME/USER/PROJECT/x".to_owned()), Deny);
    assert_eq!(read(format!("{root}/src/x")), Allow);
    assert_eq!(read("src/x".to_owned()), Allow);
}

/// Two versions of a standard make different hosts of a few letters.
#[test]
fn a_host_with_a_letter_that_standards_read_differently_is_not_certain() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n\
         [[rule]]\nid = 'no'\ndeny = '*'\nwhere.url.host = 'fass.example'\n",
    );
    let fetch = |url: &str| decide(&rules, "fetch", json!({"url": url}));
    assert_eq!(fetch("https://fa\u{df}.example"), Ask);
    assert_eq!(fetch("https://fass.example"), Deny);
    assert_eq!(fetch("https://corp.example/stra\u{df}e"), Allow);
    assert_eq!(fetch("https://m\u{fc}ller.example"), Allow);
}
