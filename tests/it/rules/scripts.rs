//! The scripts that commands run, to whose content questions are bound (rule R6).

use std::path::Path;

use countersign_rules::{RuleCall, Rules};
use countersign_shell::SearchPath;
use serde_json::json;
use tempfile::TempDir;

use super::args;

/// A workspace with scripts, data and definitions of builds.
fn workspace() -> (TempDir, Rules) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("sub/pkg")).unwrap();
    for file in [
        "x.py",
        "x.sh",
        "x.js",
        "plain",
        "data.csv",
        "package.json",
        "Makefile",
        "sub/x.py",
        "sub/Makefile",
        "sub/pkg/__init__.py",
        "sub/pkg/tool.py",
    ] {
        std::fs::write(folder.path().join(file), "1\n").unwrap();
    }
    std::fs::write(folder.path().join("tool"), "#!/bin/sh\n").unwrap();
    let text = "version = 1\n";
    let rules = Rules::builder().root(folder.path()).text("mine.toml", text).load().unwrap();
    (folder, rules)
}

/// The files to whose content the questions about a command are bound.
fn bound(rules: &Rules, command: &str) -> Vec<String> {
    let call = args(json!({"command": command}));
    let ruling = rules.decide(&RuleCall::new("shell", &call));
    let pins = ruling.pins().iter().filter_map(|(name, _)| name.strip_prefix("content of "));
    let mut pins: Vec<_> = pins.map(str::to_owned).collect();
    pins.sort_unstable();
    pins
}

/// R6: a question about a command that runs a script is bound to the content of the script.
#[test]
fn a_question_is_bound_to_the_scripts_that_a_command_runs() {
    let (_folder, rules) = workspace();
    for (command, expected) in [
        ("python3 x.py", &["x.py"][..]),
        ("python3 -u x.py data.csv", &["x.py"]),
        ("./x.sh", &["x.sh"]),
        ("bash x.sh", &["x.sh"]),
        ("bash plain data.csv", &["plain"]),
        ("./tool --force", &["tool"]),
        ("node x", &["x.js"]),
        ("bash --rcfile data.csv plain", &["data.csv", "plain"]),
        (". ./x.sh", &["x.sh"]),
        ("exec ./x.sh", &["x.sh"]),
        ("sh < x.sh", &["x.sh"]),
        ("cat x.sh | bash", &["x.sh"]),
        ("node --require=./x.js x.js", &["x.js"]),
        ("env A=b ./x.sh", &["x.sh"]),
        ("timeout 5 python3 x.py", &["x.py"]),
        ("cd sub && python3 x.py", &["sub/x.py"]),
        ("cd sub && python3 -m pkg.tool", &["sub/pkg/__init__.py", "sub/pkg/tool.py"]),
        ("bash -c 'python3 x.py'", &["x.py"]),
        ("frobnicate x.sh data.csv", &["x.sh"]),
    ] {
        let found = bound(&rules, command);
        let scripts: Vec<_> = found.iter().filter(|it| !is_definition(it)).collect();
        assert_eq!(scripts, expected, "{command}");
    }
}

/// R6: "the program that is found now, where tools may put another one in its place".
#[test]
fn a_question_is_bound_to_a_program_that_tools_may_replace() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let rules = |path: &Path| {
        let searched = SearchPath::new([path, Path::new("/usr/bin"), Path::new("/bin")]);
        let text =
            "version = 1\n[[rule]]\nid = 'r'\nallow = 'shell'\nwhere.command.is = 'read-only'\n";
        let rules = Rules::builder().root(folder.path()).search_path(searched);
        rules.text("mine.toml", text).load().unwrap()
    };
    let call = args(json!({"command": "env --version"}));
    let pins = |rules: &Rules| {
        let ruling = rules.decide(&RuleCall::new("shell", &call));
        let of_files = ruling.pins().iter().filter(|(name, _)| name.ends_with("/env"));
        of_files.cloned().collect::<Vec<_>>()
    };
    let installed = pins(&rules(&bin));
    assert_eq!(installed.len(), 1, "{installed:?}");
    let planted = bin.join("env");
    std::fs::write(&planted, "#!/bin/sh\n").unwrap();
    let first = pins(&rules(&bin));
    std::fs::write(&planted, "#!/bin/sh\necho evil\n").unwrap();
    let second = pins(&rules(&bin));
    assert!(installed != first && first != second && second.len() == 1, "{first:?} {second:?}");
    assert_eq!(pins(&rules(Path::new("/usr/bin"))), []);
}

fn is_definition(file: &str) -> bool {
    ["package.json", "Makefile"].iter().any(|name| file.ends_with(name))
}

/// R6: a command that runs what the workspace defines is bound to the definition.
#[test]
fn a_question_is_bound_to_the_definition_of_the_build_that_a_command_runs() {
    let (_folder, rules) = workspace();
    for command in ["npm run frobnicate", "make x", "frobnicate"] {
        assert_eq!(bound(&rules, command), ["Makefile", "package.json"], "{command}");
    }
    for command in ["make -C sub x", "cd sub && make x", "make --directory=sub x"] {
        let expected = ["Makefile", "package.json", "sub/Makefile"];
        assert_eq!(bound(&rules, command), expected, "{command}");
    }
}

/// R6: a command that is asked about is bound to what its program reads in the folder, whatever that is called there.
#[test]
fn a_question_is_bound_to_what_the_program_of_a_command_reads_there() {
    let (folder, rules) = workspace();
    for (command, file) in [
        ("docker compose up -d", "compose.yml"),
        ("docker compose up -d", "docker-compose.override.yml"),
        ("task deploy", "taskfile.yml"),
        ("just deploy", ".JUSTFILE"),
        ("rake deploy", "rakefile"),
        ("deno task deploy", "deno.jsonc"),
        ("invoke deploy", "tasks.py"),
        ("mage deploy", "magefile.go"),
        ("cargo make deploy", "Makefile.toml"),
        ("pipenv run deploy", "Pipfile"),
        ("pixi run deploy", "pixi.toml"),
        ("ninja deploy", "build.ninja"),
        ("foreman start", "Procfile"),
        ("go run ./cmd", "cmd/main.go"),
        ("terraform apply", "main.tf"),
        ("kubectl apply -k deploy", "deploy/kustomization.yaml"),
        ("npx serverless deploy", "serverless.yml"),
        ("wrangler deploy", ".wranglerrc"),
        ("fastlane release", "fastlane/Fastfile"),
        ("gulp deploy", "gulpfile.babel.js"),
        ("earthly +deploy", "Earthfile"),
        ("make x", "Rules.MK"),
        ("make -Csub x", "sub/GNUmakefile"),
        ("bazel run //sub:x", "sub/BUILD"),
        ("docker compose up", ".env"),
        ("npm publish", "npm-shrinkwrap.json"),
        ("conda run -n e invoke deploy", "tasks.py"),
        ("rbenv exec rake deploy", "rakefile"),
        ("act push", ".github/workflows/ci.yml"),
        ("kamal deploy", "config/deploy.yml"),
        ("sbt publish", "project/plugins.sbt"),
        ("pulumi up", "index.ts"),
        ("gunicorn pkg.app:make", "pkg/app.py"),
        ("git commit -m x", ".pre-commit-config.yaml"),
    ] {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(!bound(&rules, command).contains(&file.to_owned()), "{command}: no {file} yet");
        std::fs::write(&path, "1\n").unwrap();
        assert!(bound(&rules, command).contains(&file.to_owned()), "{command}: {file}");
        std::fs::remove_file(&path).unwrap();
    }
    std::fs::write(folder.path().join(".gitignore"), "1\n").unwrap();
    assert_eq!(bound(&rules, "git commit -m x"), [""; 0], "it is about no such file");
}

/// R6: a folder whose files a command sends or applies is bound with what is below it, hidden files as well.
#[test]
fn a_question_is_bound_to_the_files_of_a_folder_that_a_command_sends() {
    let (folder, rules) = workspace();
    let file = folder.path().join("out/deep/.hidden");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for command in [
        "scp -r out host:",
        "rsync -a ./out/ host:out",
        "aws s3 sync out s3://bucket",
        "kubectl apply -R -f out",
        "helm upgrade shop ./out",
        "docker build out",
        "tar c out | ssh host tar x",
        "cd out && scp -r . host:",
        "netlify deploy --dir=out",
        "tar cf x.tar out && curl -T x.tar https://example.com",
    ] {
        let _ = std::fs::remove_file(&file);
        assert!(!bound(&rules, command).contains(&"out/deep/.hidden".to_owned()), "{command}");
        std::fs::write(&file, "1\n").unwrap();
        assert!(bound(&rules, command).contains(&"out/deep/.hidden".to_owned()), "{command}");
    }
    for command in [
        "npm publish",
        "cargo publish",
        "yarn npm publish",
        "npx wrangler deploy",
        "npm run deploy",
        "mvn -B deploy",
        "terraform apply",
        "cd sub && terraform apply",
        "ansible-playbook site.yml",
        "kubectl apply -k sub",
    ] {
        assert!(bound(&rules, command).contains(&"out/deep/.hidden".to_owned()), "{command}");
    }
    // These only delete it, or build what is there.
    for command in ["rm -r out", "make -C out", "docker build ."] {
        assert!(!bound(&rules, command).contains(&"out/deep/.hidden".to_owned()), "{command}");
    }
}

/// R6: "A command that publishes or applies the folder that it works in is bound to each file of the workspace", however many
/// packages are installed there, and to nothing that git changes with each command or that a link leads to.
#[cfg(unix)]
#[test]
fn a_question_about_publishing_is_bound_to_the_last_file_of_a_large_workspace() {
    let (folder, rules) = workspace();
    let at = |name: &str| folder.path().join(name);
    for (below, count) in [("node_modules/p", 1200), (".git/objects/aa", 1200), ("src/gen", 1500)] {
        std::fs::create_dir_all(at(below)).unwrap();
        (0..count).for_each(|n| std::fs::write(at(below).join(format!("f{n}")), "1\n").unwrap());
    }
    std::os::unix::fs::symlink("..", at("up")).unwrap();
    let pins = |command: &str| {
        let call = args(json!({"command": command}));
        rules.decide(&RuleCall::new("shell", &call)).pins().to_vec()
    };
    for command in ["npm publish", "terraform apply", "make deploy"] {
        let changed = format!("changed before {command}\n");
        let before = pins(command);
        for unrelated in [".git/index", "node_modules/p/f7"] {
            std::fs::write(at(unrelated), "2\n").unwrap();
            assert_eq!(pins(command), before, "{command}: {unrelated}");
        }
        for name in ["src/gen/f1499", "src/gen/f0", "sub/x.py"] {
            let before = pins(command);
            std::fs::write(at(name), &changed).unwrap();
            assert_ne!(pins(command), before, "{command}: {name}");
        }
    }
}

/// R6: a command in the text of another one is bound as it is by itself, wherever it stands in there.
#[test]
fn a_question_about_an_inner_text_is_bound_to_the_files_that_it_reads() {
    let (folder, rules) = workspace();
    std::fs::write(folder.path().join("names"), "x.sh\n").unwrap();
    for command in [
        "rm $(cat names)",
        "bash -c 'rm $(cat names)'",
        "timeout 9999 bash -c 'rm $(cat names)' && ls",
        "ls sub && timeout 5 sh -c 'ls && rm $(cat names)'",
        "cd sub && bash -lc \"cd .. && sh -c 'rm \\$(cat names)'\"",
    ] {
        assert!(bound(&rules, command).contains(&"names".to_owned()), "{command}");
    }
}

/// R6: a command of git is bound to the settings of the repository, which say where it sends, and to its hooks.
#[test]
fn a_question_about_git_is_bound_to_the_settings_and_hooks_of_the_repository() {
    let (folder, rules) = workspace();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at(".git/hooks")).unwrap();
    let settings = |text: &str| std::fs::write(at(".git/config"), text).unwrap();
    let pins = |command: &str| {
        let call = args(json!({"command": command}));
        rules.decide(&RuleCall::new("shell", &call)).pins().to_vec()
    };
    let origin = "[remote \"origin\"]\nurl = https://git.example/shop\n";
    let commands = [
        "git push origin main",
        "cd sub && git push origin main",
        "gh pr create --fill",
        "git commit -m x",
    ];
    for command in commands {
        settings(origin);
        let before = pins(command);
        settings("[remote \"origin\"]\nurl = https://evil.example/shop\n");
        assert_ne!(pins(command), before, "{command}: another address");
        settings(&format!(
            "{origin}[url \"https://evil.example/\"]\ninsteadOf = https://git.example/\n"
        ));
        assert_ne!(pins(command), before, "{command}: another address in its place");
        settings(&format!("{origin}[core]\nhooksPath = tools\n"));
        assert_ne!(pins(command), before, "{command}: other hooks");
        settings(origin);
        assert_eq!(pins(command), before, "{command}: as before");
        std::fs::write(at(".git/hooks/pre-push"), "#!/bin/sh\n").unwrap();
        assert!(bound(&rules, command).contains(&".git/hooks/pre-push".to_owned()), "{command}");
        std::fs::remove_file(at(".git/hooks/pre-push")).unwrap();
    }
    // The notes of git about a branch, with the first push, change nothing about the second one.
    settings(origin);
    let (named, unnamed) = (pins("git push -u origin topic"), pins("git push"));
    let (option, remote) = (pins("git push -o ci.skip"), pins("git push origin"));
    settings(&format!("{origin}[branch \"topic\"]\nremote = origin\nmerge = refs/heads/topic\n"));
    assert_eq!(pins("git push -u origin topic"), named);
    for (command, before) in
        [("git push", &unnamed), ("git push -o ci.skip", &option), ("git push origin", &remote)]
    {
        assert_ne!(&pins(command), before, "{command}: it goes where the branch says");
    }
    // Settings that included ones include count as well.
    settings("[include]\npath = one\n");
    std::fs::write(at(".git/one"), "[include]\npath = two\n").unwrap();
    let before = pins("git push origin main");
    std::fs::write(at(".git/two"), "[remote \"origin\"]\nurl = https://evil.example/x\n").unwrap();
    assert_ne!(pins("git push origin main"), before);
    // Older versions of git kept the address of a remote in a file of its own, and this one reads it.
    std::fs::create_dir_all(at(".git/remotes")).unwrap();
    std::fs::write(at(".git/remotes/other"), "URL: https://git.example/x\n").unwrap();
    let before = pins("git push other main");
    std::fs::write(at(".git/remotes/other"), "URL: https://evil.example/x\n").unwrap();
    assert_ne!(pins("git push other main"), before);
    // A setting of one run names what it runs as well.
    std::fs::create_dir_all(at("tools")).unwrap();
    std::fs::write(at("tools/pre-commit"), "#!/bin/sh\n").unwrap();
    for command in [
        "git -c core.hooksPath=tools commit -m x",
        "cd sub && git -c core.hooksPath=../tools commit -m x",
    ] {
        let found = bound(&rules, command);
        assert!(found.iter().any(|it| it.ends_with("tools/pre-commit")), "{command}: {found:?}");
    }
    assert!(
        bound(&rules, "git -c core.sshCommand=./x.sh push origin main")
            .contains(&"x.sh".to_owned())
    );
    // Of more settings than are looked at there is no answer in advance.
    let grantable = || {
        let call = args(json!({"command": "git push origin main"}));
        rules.decide(&RuleCall::new("shell", &call)).is_grantable()
    };
    assert!(grantable());
    let included = (0..20).map(|number| {
        std::fs::write(at(&format!(".git/part{number}")), "[core]\nbare = false\n").unwrap();
        format!("[include]\npath = part{number}\n")
    });
    settings(&included.collect::<String>());
    assert!(!grantable());
}

/// R6: a question about a command that runs what a file holds, or takes it elsewhere, is bound to the content of the file.
#[test]
fn a_question_is_bound_to_the_files_whose_content_a_command_runs_or_sends() {
    let (_folder, rules) = workspace();
    for (command, expected) in [
        ("psql -f plain", &["plain"][..]),
        ("psql -fplain", &["plain"]),
        ("psql --file=plain", &["plain"]),
        ("sqlite3 x.db < plain", &["plain"]),
        ("ssh host < plain", &["plain"]),
        ("vim -S plain", &["plain"]),
        ("xargs -a plain rm", &["plain"]),
        ("git apply plain", &["plain"]),
        ("git commit -F plain", &["plain"]),
        ("kubectl apply -f plain", &["plain"]),
        ("curl -T plain https://example.com", &["plain"]),
        ("curl -d @plain https://example.com", &["plain"]),
        ("curl --form 'a=@plain' https://example.com", &["plain"]),
        ("scp plain data.csv host:", &["data.csv", "plain"]),
        ("cp plain /opt/elsewhere", &["plain"]),
        ("cd sub && psql -f x.py", &["sub/x.py"]),
        ("cd sub && ssh host < x.py", &["sub/x.py"]),
        ("frobnicate data.csv", &["data.csv"]),
        ("eval ./x.sh", &["x.sh"]),
        ("env -C sub ./x.py", &["sub/x.py", "x.py"]),
        ("PATH=sub:$PATH x.py", &["sub/x.py", "x.py"]),
        ("pushd sub && python3 x.py", &["sub/x.py", "x.py"]),
        ("$(pwd)/x.sh", &["x.sh"]),
        ("bash -c \"$(<x.sh)\"", &["x.sh"]),
        ("./x.s*", &["x.sh"]),
        ("./{x,tool}.sh", &["tool", "x.sh"]),
        ("BASH_ENV=x.sh bash -c ls", &["x.sh"]),
        ("git -c alias.x=!./x.sh x", &["x.sh"]),
        ("git rebase -x ./x.sh main", &["x.sh"]),
        ("ruby -r./x.py -e 1", &["x.py"]),
        ("vim -c 'so x.py'", &["x.py"]),
        ("su -c ./x.sh ann", &["x.sh"]),
    ] {
        let found = bound(&rules, command);
        let files: Vec<_> = found.iter().filter(|it| !is_definition(it)).collect();
        assert_eq!(files, expected, "{command}");
    }
}

/// R6: where a command gets what it runs, sends or deletes from another piece of the text, the question is bound to each file
/// that the text mentions: the producer of a pipe, the source of a variable, the input of a loop.
#[test]
fn a_question_is_bound_to_the_files_that_another_piece_of_the_text_reads() {
    let (folder, rules) = workspace();
    let runs = ["sh", "sh -s", "ssh host sh", "xargs rm", "curl -d @- https://example.com"];
    let more =
        ["curl -T - https://example.com", "nc host 1", "psql", "python3 -", "xargs -n1 frob"];
    let consumers = runs.iter().chain(&more);
    for consumer in consumers {
        for text in [
            format!("cat plain | {consumer}"),
            format!("jq -r .a plain | {consumer}"),
            format!("gzip -c plain | {consumer}"),
            format!("head -c 9 plain | sort | {consumer}"),
            format!("printf %s \"$(<plain)\" | {consumer}"),
            format!("echo \"$(cat plain)\" | {consumer}"),
            format!("cat plain | {{ {consumer}; }}"),
            format!("cat plain |& {consumer}"),
            format!("cat plain |\n  {consumer}"),
            format!("cat plain | \\\n  {consumer}"),
            format!("cat plain | # it\n  {consumer}"),
            format!("cat plain | while true; do {consumer}; done"),
            format!("{{ {consumer}; }} < plain"),
            format!("({consumer}) < plain"),
            format!("if true; then {consumer}; fi < plain"),
            format!("for x in 1; do {consumer}; done <<< \"$(<plain)\""),
        ] {
            assert!(bound(&rules, &text).contains(&"plain".to_owned()), "{text}");
        }
    }
    let name = "name with blanks";
    std::fs::write(folder.path().join(name), "1\n").unwrap();
    for text in [
        "cat 'name with blanks' | sh",
        "psql -f 'name with blanks'",
        "psql '-fname with blanks'",
        "curl -d '@name with blanks' https://example.com",
        "sh < 'name with blanks'",
        "python3 -c \"exec(open('name with blanks').read())\"",
        "eval \"$(cat 'name with blanks')\"",
    ] {
        assert!(bound(&rules, text).contains(&name.to_owned()), "{text}");
    }
    for text in [
        "while read l; do $l; done < plain",
        "while IFS= read -r l; do sh -c \"$l\"; done < plain",
        "cat plain | while read l; do eval \"$l\"; done",
        "x=$(<plain); eval \"$x\"",
        "x=$(cat plain); curl -d \"$x\" https://example.com",
        "for l in $(<plain); do $l; done",
        "xargs rm < plain",
        "rm -rf $(cat plain)",
        "aws lambda invoke --payload file://plain x",
        "run() { curl -d @- https://example.com; }; cat plain | run",
        "cat plain | { echo 'a|b'; curl -d @- https://example.com; }",
        "cat pl''ain | sh",
        "f=pla; cat ${f}in | sh",
        "for end in in; do cat pla$end | sh; done",
        "cat pla$END | sh",
        "git rm -rf --pathspec-from-file=plain",
        "git checkout --pathspec-from-file plain",
        "chmod --reference=plain data.csv",
        "docker run -v $PWD:/w image sh /w/plain",
        "docker exec web sh /app/plain",
    ] {
        assert!(bound(&rules, text).contains(&"plain".to_owned()), "{text}");
    }
}

/// R6: where a command is handed files that another one finds, the question is bound to each that it may find.
#[test]
fn a_question_is_bound_to_the_files_that_a_command_of_the_text_finds() {
    let (folder, rules) = workspace();
    for text in [
        "find . -name tool.py -exec python3 {} \\;",
        "find . -name 'tool.*' -exec python3 {} +",
        "find . -iname TOOL.PY | xargs python3",
        "find . -name '[t]ool.py' -exec python3 {} \\;",
        "find . ! -name x.py -exec python3 {} \\;",
        "find sub -type f -exec curl -T {} https://example.com \\;",
        "python3 $(find . -name tool.py)",
        "python3 $(git ls-files -o | grep tool)",
        "ls sub/pkg | xargs -I{} python3 sub/pkg/{}",
        "cd s*b && rg -l 1 | xargs python3",
        "for f in $(ls sub/pkg); do python3 sub/pkg/$f; done",
        "cat $(find . -name tool.py) | curl -d @- https://example.com",
        "git diff --name-only | xargs sh",
        "cat data.csv | xargs -n1 sh",
        "x=$(find . -name tool.py); python3 $x",
        "cd \"$(cat data.csv)\" && python3 tool.py",
        "cd $(dirname sub/pkg/x.txt) && python3 tool.py",
        "docker run -v ./sub:/t image python3 /t/pkg/tool.py",
        "python3 -c 'import sub.pkg.tool'",
    ] {
        assert!(bound(&rules, text).contains(&"sub/pkg/tool.py".to_owned()), "{text}");
    }
    // More than are looked at: there is no answer in advance.
    let many = folder.path().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..1100 {
        std::fs::write(many.join(format!("{number}.py")), "1\n").unwrap();
    }
    let call = args(json!({"command": "find . -name '*.py' -exec python3 {} +"}));
    assert!(!rules.decide(&RuleCall::new("shell", &call)).is_grantable());
}

/// R6: a name may be relative to a folder that the text works in, also if it is written as a pattern.
#[test]
fn a_question_is_bound_to_files_in_each_folder_that_the_text_names() {
    let (folder, rules) = workspace();
    for text in ["cd s*b && cat x.py | sh", "cd s?b && psql -f x.py", "pushd su[b] && sh x.py"] {
        assert!(bound(&rules, text).contains(&"sub/x.py".to_owned()), "{text}");
    }
    // In more folders than are looked at there is no answer in advance.
    for number in 0..40 {
        std::fs::create_dir(folder.path().join(format!("folder{number}"))).unwrap();
    }
    let call = args(json!({"command": "psql -f x.py # folder*"}));
    assert!(!rules.decide(&RuleCall::new("shell", &call)).is_grantable());
}

/// R6: a question is bound to no content where the command names no file, only changes it, or is harmless whatever it holds.
#[test]
fn other_commands_are_bound_to_no_content() {
    let (_folder, rules) = workspace();
    for command in [
        "git commit -m x",
        "git push",
        "git add x.py",
        "git -C . rm x.py",
        "git checkout -- x.py",
        "rm x.py",
        "chmod +x x.py",
        "ls",
        "cat x.py",
        "cat x.py && git push",
        "cat x.py | head -3; git push",
        "rg 'a|b' x.py && git commit -m x",
        "git commit -m \"$(printf x)\"",
    ] {
        assert_eq!(bound(&rules, command), [""; 0], "{command}");
    }
    // A message, and what is ended or removed by a number, is no file.
    for command in [
        "git add x.py && git commit -m \"$(cat <<'EOF'\nfix\nEOF\n)\" && git status",
        "lsof -ti:3000 | xargs kill -9",
        "docker ps -q | grep web | xargs docker rm",
        "git branch --merged | xargs git branch -d",
        "git push 2>&1 | tail -5",
    ] {
        let found = bound(&rules, command);
        assert!(
            found.iter().all(|file| is_definition(file) || file == "x.py"),
            "{command} {found:?}"
        );
    }
    // Neither a value nor a body that looks like braces of a shell names each file.
    let sends = "ls && curl -H \"$TOKEN\" -d '{\"a\": 1}' https://example.com";
    let found = bound(&rules, sends);
    assert!(found.iter().all(|file| is_definition(file)), "{found:?}");
}

/// G2: a script whose content cannot be bound to is asked about each time.
#[test]
fn a_script_that_is_too_large_or_unknown_is_asked_about_each_time() {
    let (folder, rules) = workspace();
    let grantable = |command: &str| {
        let call = args(json!({"command": command}));
        rules.decide(&RuleCall::new("shell", &call)).is_grantable()
    };
    let large = |path: &Path| std::fs::write(path, vec![b'1'; (8 << 20) + 1]).unwrap();
    large(&folder.path().join("large.py"));
    large(&folder.path().join("large.csv"));
    assert!(grantable("python3 x.py large.csv"));
    assert!(!grantable("python3 large.py"));
    // It is known by its size and the time of its last change, so that another one is another question.
    let state = || {
        let call = args(json!({"command": "python3 large.py"}));
        let ruling = rules.decide(&RuleCall::new("shell", &call));
        let found = ruling.pins().iter().find(|(name, _)| name.as_str() == "state of large.py");
        found.unwrap().1.clone()
    };
    let before = state();
    assert_eq!(state(), before);
    std::fs::write(folder.path().join("large.py"), vec![b'2'; (8 << 20) + 2]).unwrap();
    assert_ne!(state(), before);
    // The text that is run is not looked at.
    assert!(!grantable("eval 'python3 x.py'"));
    // Which file is sent is known only when it runs.
    for sends in
        ["-d \"@$(cat data.csv)\"", "-T sub/$x", "-d \"@sub/$x\"", "-H \"@$x\"", "-H \"$x\""]
    {
        assert!(!grantable(&format!("curl {sends} https://example.com")), "{sends}");
    }
    assert!(grantable("curl -H \"Authorization: $TOKEN\" -d a \"https://example.com/$x\""));
    // The output of git changes with each commit.
    assert!(!grantable("git log -p | curl -d @- https://example.com"));
    assert!(!grantable("git archive HEAD | ssh host tar x"));
    assert!(!grantable("git log -p > o.txt; curl -T o.txt https://example.com"));
    assert!(!grantable("curl \"https://example.com/?q=$(git log -p | base64)\""));
}

/// R6: a changed script is another question, and another script beside it is not.
#[test]
fn a_changed_script_is_another_question() {
    let (folder, rules) = workspace();
    let pins = || {
        let call = args(json!({"command": "python3 x.py"}));
        rules.decide(&RuleCall::new("shell", &call)).pins().to_vec()
    };
    let before = pins();
    std::fs::write(folder.path().join("x.js"), "2").unwrap();
    assert_eq!(pins(), before);
    std::fs::write(folder.path().join("x.py"), "2").unwrap();
    assert_ne!(pins(), before);
}
