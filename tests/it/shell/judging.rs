//! The judgement of a command, and the files and settings that it depends on.

use std::path::{Path, PathBuf};

use countersign::decision::ToolDecision;
use countersign_shell::{Classifier, Dialect, Effect, Preset, SearchPath, Workspace};

use super::{allows, asks, classifier, developer};

#[test]
fn each_part_reports_its_effects() {
    let judgement = developer("cd src && cat lib.rs | sort > out.txt");
    let effects: Vec<_> = judgement.parts().iter().map(|part| part.effects().to_vec()).collect();
    assert_eq!(
        effects,
        [
            vec![Effect::ChangesDirectory("/src/project/src".into())],
            vec![Effect::Reads("/src/project/src/lib.rs".into())],
            vec![Effect::Writes("/src/project/src/out.txt".into())],
        ]
    );
    let verdicts: Vec<_> = judgement.parts().iter().map(|part| part.decision()).collect();
    assert_eq!(verdicts, [ToolDecision::Allow, ToolDecision::Allow, ToolDecision::Ask]);
    assert_eq!(judgement.to_string(), "ask: writes `out.txt`");
    assert_eq!(judgement.parts()[1].directory(), Path::new("/src/project/src"));
}

#[test]
fn a_cd_is_followed_and_one_that_may_fail_leaves_both_directories() {
    // Behind `;`, `x` may be that of `src` or that of the root.
    let judgement = developer("cd src; cat x");
    let effects = judgement.parts()[1].effects();
    assert!(effects.contains(&Effect::Reads("/src/project/x".into())), "{effects:?}");
    assert!(effects.contains(&Effect::Reads("/src/project/src/x".into())), "{effects:?}");
    // A subshell keeps its directory to itself.
    let judgement = developer("(cd src && ls x); cat ../y");
    assert_eq!(judgement.decision(), ToolDecision::Ask);
    assert_eq!(developer("cd src && cat ../y").decision(), ToolDecision::Allow);
    assert_eq!(developer("cd src; cat ../y").decision(), ToolDecision::Ask);
}

#[test]
fn wrappers_are_parts_of_their_own() {
    let judgement = developer("timeout 5 nice git push");
    let argv: Vec<_> =
        judgement.parts().iter().map(|part| (part.argv()[0].as_str(), part.wrapped_by())).collect();
    assert_eq!(argv, [("timeout", None), ("nice", Some("timeout")), ("git", Some("nice"))]);
    assert_eq!(judgement.to_string(), "ask: `git` talks to a remote");
}

#[test]
fn the_reader_only_reads() {
    let reader = classifier(Preset::Reader);
    for (text, verdict) in [
        ("git log", ToolDecision::Allow),
        ("cat x | sort", ToolDecision::Allow),
        ("cargo test", ToolDecision::Ask),
        ("prettier --write src", ToolDecision::Ask),
        ("docker ps", ToolDecision::Ask),
        ("mkdir x", ToolDecision::Ask),
    ] {
        assert_eq!(reader.judge(text, Dialect::Bash).decision(), verdict, "{text}");
    }
}

#[test]
fn formatters_write_files_but_not_build_definitions() {
    assert_eq!(developer("prettier --write src").decision(), ToolDecision::Allow);
    assert_eq!(developer("prettier --write package.json").decision(), ToolDecision::Ask);
    assert_eq!(developer("prettier --write ../x").decision(), ToolDecision::Ask);
    assert_eq!(developer("prettier --check package.json").decision(), ToolDecision::Allow);
}

/// `cd .git && make` writes what git runs.
#[test]
fn a_program_that_may_write_does_not_work_in_a_protected_folder() {
    for text in [
        "cd .claude && gcc ../src/a.c",
        "cd .git && make",
        "cd .github/workflows && make",
        "make -C .git",
        "cd .claude; cargo test",
        "cd .github && black .",
        "(cd .vscode && tsc)",
        "cd .claude && sqlite3 x.db 'select 1'",
        "sqlite3 .claude/x.db 'select 1'",
    ] {
        let judgement = developer(text);
        assert!(judgement.reasons().iter().any(|one| one.is_every_time()), "{text:?}: {judgement}");
    }
    allows("cd .github/workflows && cat ci.yml | grep on:");
    allows("cd .claude && ls -la && cd ..");
    allows("cd .github && find . -name '*.yml' | head");
}

/// The directory is known until a `cd` may have changed it.
#[test]
fn the_variable_of_the_directory_is_judged_by_its_value() {
    allows("cat \"$PWD/a.txt\"");
    allows("ls \"$PWD\" && wc -l < \"${PWD}/a.txt\"");
    allows("git -C \"$PWD\" status");
    for text in [
        "cat \"$PWD/.env\"",
        "cat \"$PWD/../x\"",
        "cd src && cat \"$PWD/../../x\"",
        "cd src; cat \"$PWD/a.txt\"",
        "c=cd; $c src; cat \"$PWD/a.txt\"",
        "PWD=/etc; cat \"$PWD/passwd\"",
        "cat \"$OLDPWD/a.txt\"",
    ] {
        asks(text);
    }
}

/// A host says where else tools may write: no program there is allowed, and no folder on the way to another one.
#[cfg(unix)]
#[test]
fn a_place_that_tools_may_write_has_no_program_that_is_allowed() {
    let judge = |workspace: Workspace| {
        Classifier::new(workspace, Preset::Developer)
            .with_search_path(SearchPath::new(["/usr/bin"]))
            .judge("ls src", Dialect::Bash)
            .to_string()
    };
    assert_eq!(judge(Workspace::lexical("/src/project")), "allow");
    let judged = judge(Workspace::lexical("/src/project").with_writable("/usr/bin"));
    assert!(judged.contains("is searched for programs"), "{judged}");
}

/// Symbolic links are followed, and a program that tools may write is never allowed.
#[cfg(unix)]
#[test]
fn paths_and_programs_are_resolved() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::write(folder.path().join("other"), "x").unwrap();
    symlink(folder.path().join("other"), root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    for name in ["cat", "head"] {
        let file = root.join("bin").join(name);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let judge = |path: &[PathBuf], text: &str| {
        Classifier::new(Workspace::new(&root), Preset::Developer)
            .with_search_path(SearchPath::new(path))
            .judge(text, Dialect::Bash)
    };
    // Folders that tools cannot write, wherever this test runs: a temporary directory is none.
    let only = ["/usr/bin".into(), "/bin".into()];
    assert!(judge(&only, "ls bin").decision().is_allow());
    // Not installed: nothing runs.
    assert!(judge(&["/nonexistent/bin".into()], "cat bin/cat").decision().is_allow());
    assert_eq!(judge(&only, "cat link").to_string(), "ask: reads `link`, outside of the workspace");
    assert_eq!(
        judge(&only, "cat dangling").to_string(),
        "ask: `dangling` leads to a place that cannot be resolved"
    );
    // A pattern stands for what it matches.
    assert!(judge(&only, "cat bin/*").decision().is_allow());
    assert!(!judge(&only, "cat l*").decision().is_allow());
    assert!(!judge(&only, "cat ./*").decision().is_allow());
    assert!(!judge(&only, "cat **/l*").decision().is_allow());
    // The folder does not look like one that tools may write, and the file that is found in it does.
    #[cfg(target_os = "linux")]
    {
        let through = format!("/proc/self/root{}", root.join("bin").display());
        for folder in [&*through, "/proc/self/cwd", "/dev/fd/3", "/usr/../proc/self/cwd"] {
            let judged = judge(&[folder.into(), "/usr/bin".into()], "cd sub && head x").to_string();
            assert!(judged.contains("another folder for each program"), "{judged}");
        }
        // A later folder does not matter.
        assert!(
            judge(&["/usr/bin".into(), "/proc/self/cwd".into()], "head bin/cat")
                .decision()
                .is_allow()
        );
        let link =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("link-{}", std::process::id()));
        symlink(root.join("bin"), &link).unwrap();
        let judged = judge(&[link.clone(), "/usr/bin".into()], "head x").to_string();
        std::fs::remove_file(link).unwrap();
        assert!(judged.contains("is searched for programs"), "{judged}");
    }
    let before = [root.join("bin"), "/usr/bin".into()];
    assert!(judge(&before, "ls").to_string().contains("is searched for programs"));
    assert!(judge(&[PathBuf::from("bin")], "ls").to_string().contains("is searched for programs"));
    // A folder with a repository of its own may run programs of its own.
    std::fs::create_dir_all(root.join("vendor/.git")).unwrap();
    std::fs::create_dir_all(root.join("sub")).unwrap();
    assert!(judge(&only, "cd sub && git status").decision().is_allow());
    assert!(!judge(&only, "cd vendor && git status").decision().is_allow());
}

/// What a project's environment has installed is code of the workspace: it may do what a build does, and nothing else.
#[test]
fn programs_of_the_project_do_what_a_build_does() {
    for text in [
        "./gradlew test",
        "./gradlew --version",
        "./mvnw -q verify",
        ".venv/bin/pytest -q",
        ".venv/bin/python -m pytest",
        "node_modules/.bin/tsc --noEmit",
        "./node_modules/.bin/jest --coverage",
        "node_modules/.bin/jest --help",
        "cd app && ./gradlew build",
        "PYTHONPATH=src:lib pytest",
        "RUSTFLAGS='-D warnings -C opt-level=1' cargo check",
    ] {
        assert_eq!(developer(text).to_string(), "allow", "{text}");
        let reader = classifier(Preset::Reader).judge(text, Dialect::Bash);
        assert_eq!(reader.decision(), ToolDecision::Ask, "{text}");
    }
    for text in [
        "./gradlew publish",
        "../gradlew test",
        "/tmp/gradlew test",
        "cd /tmp && ./gradlew test",
        ".venv/bin/python x.py",
        ".venv/bin/cat README.md",
        ".venv/bin/cat --version",
        "node_modules/.bin/../x",
        "PYTHONPATH=/tmp pytest",
        "PYTHONPATH=../x pytest",
        "PYTHONPATH=src ls",
        "RUSTFLAGS='-C linker=./x' cargo check",
    ] {
        assert_eq!(developer(text).decision(), ToolDecision::Ask, "{text}");
    }
}

/// What the workspace has installed may do what a build does; `npx` fetches everything else.
#[test]
fn npx_runs_unasked_what_the_workspace_has_installed() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    std::fs::create_dir_all(root.join("node_modules/.bin")).unwrap();
    std::fs::create_dir(root.join("web")).unwrap();
    let judge = |text: &str| {
        let classifier = Classifier::new(Workspace::new(&root), Preset::Developer);
        let classifier = classifier.with_search_path(SearchPath::unchecked());
        classifier.judge(text, Dialect::Bash).decision()
    };
    assert_eq!(judge("npx eslint src"), ToolDecision::Ask);
    for name in ["eslint", "rm"] {
        std::fs::write(root.join("node_modules/.bin").join(name), "").unwrap();
    }
    for text in ["npx eslint src", "cd web && npx eslint .", "bunx eslint src"] {
        assert_eq!(judge(text), ToolDecision::Allow, "{text}");
    }
    for text in [
        "npx prettier --check .",
        "npx eslint@8 src",
        "npx -y eslint src",
        "npx ../eslint",
        "npx rm -r src",
        "pnpx eslint src",
        "npx -p evil eslint src",
        "cd .. && npx eslint .",
    ] {
        assert_eq!(judge(text), ToolDecision::Ask, "{text}");
    }
}

/// A reason says what the command does, and not what another one would.
#[test]
fn a_reason_is_about_the_command() {
    for (text, reason) in [
        ("docker run alpine", "runs a program in a container"),
        ("kubectl delete pod x", "changes the cluster"),
        ("kubectl apply -f a.yaml", "changes the cluster"),
        ("gh pr merge 12", "changes something on the code host"),
        ("gh auth token", "prints a token"),
        ("git add src", "changes the index"),
        ("strace ls", "which is not looked at here"),
        ("watch ls", "later, again, or in the background"),
        ("kubectl get configmap", "what `configmap` does here is not known"),
        ("git fetch origin pull/12/head:pr-12", "it is not the plain name of a branch"),
        ("curl -d x http://localhost/", "may send data or settings to where it asks"),
    ] {
        let judged = developer(text).to_string();
        assert!(judged.contains(reason), "{text}: {judged}");
        assert!(
            !judged.contains("other rights") && !judged.contains("the script"),
            "{text}: {judged}"
        );
    }
}
