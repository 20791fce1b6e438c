//! The tool that runs commands without a shell.

use std::time::{Duration, Instant};

use countersign::{FunctionToolset, ToolCall, Tools, Turn};
use countersign_shell::ShellTool;
use serde_json::{Value, json};

async fn run(tool: ShellTool, command: &str) -> Value {
    let tools = Tools::from(FunctionToolset::new().tool(tool.into_tool("shell")));
    let call = ToolCall::new("call_1", "shell", json!({"command": command}));
    let report = Turn::new(tools).run(vec![call]).await.unwrap();
    let outcome = report.calls()[0].outcome();
    outcome.content().or_else(|| outcome.text().map(Value::from)).unwrap_or_default()
}

#[tokio::test]
async fn pipelines_lists_and_redirections_run_as_a_shell_runs_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for (command, output, status) in [
        ("printf 'b\\na\\n' | sort", "a\nb\n", 0),
        ("echo a; echo b", "a\nb\n", 0),
        ("false && echo a || echo b", "b\n", 0),
        ("! false && echo a", "a\n", 0),
        ("true | false", "", 1),
        ("echo 'a  $HOME * b'", "a  $HOME * b\n", 0),
        ("echo x > f && cat < f && echo y >> f && cat f", "x\nx\ny\n", 0),
        ("ls nowhere 2> /dev/null || echo none", "none\n", 0),
        ("cat nowhere 2>&1 | wc -l", "1\n", 0),
        ("cat nowhere > /dev/null 2>&1", "", 1),
        ("cat <<'E' | tr a-z A-Z\nabc\nE\n", "ABC\n", 0),
        ("cat <<< x", "x\n", 0),
        ("cd sub && echo y > g; cat g", "y\n", 0),
        ("A=1 env | grep -x A=1", "A=1\n", 0),
        // A shell opens the redirections of `cd` too.
        ("cd sub > made && pwd | tail -c 4; cd .. ; cat made", "sub\n", 0),
        ("cd nowhere 2> /dev/null || echo none", "none\n", 0),
        (
            "cd sub > no/such/file 2> /dev/null; pwd | grep -c 'sub$'",
            "cd: No such file or directory (os error 2)\n0\n",
            1,
        ),
    ] {
        let told = run(ShellTool::new(folder.path()), command).await;
        assert_eq!(told, json!({"output": output, "status": status}), "{command}");
    }
    let told = run(ShellTool::new(folder.path()), "no-such-program-here").await;
    assert_eq!(told["status"], 127, "{told}");
}

#[tokio::test]
async fn commands_that_need_a_shell_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        "touch x; ls *.rs",
        "touch x; echo $HOME",
        "touch x; echo $(id)",
        "touch x; (ls)",
        "touch x; ls ~",
        "touch x; while true; do ls; done",
        "touch x; for f in a b; do ls; done",
        "touch x; if ls; then ls; fi",
        "touch x; [[ -f x ]]",
        "touch x; { ls; }",
        "touch x; A=1",
    ] {
        let told = run(ShellTool::new(folder.path()), command).await;
        assert!(told.to_string().contains("not run"), "{command}: {told}");
        assert!(!folder.path().join("x").exists(), "{command}");
    }
}

#[tokio::test]
async fn output_and_time_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let told = run(ShellTool::new(folder.path()).output_limit(10), "seq 1 100000").await;
    assert_eq!(
        (told["output"].as_str().unwrap().len(), told["status"].as_i64()),
        (10, Some(0)),
        "{told}"
    );
    assert!(told["left_out"].as_u64().unwrap() > 100_000);
    let told = run(
        ShellTool::new(folder.path()).time_limit(Duration::from_millis(100)),
        "sleep 600; echo x",
    )
    .await;
    assert_eq!((&told["timed_out"], &told["output"]), (&json!(true), &json!("")), "{told}");
}

/// When the call is given up, the program that it started is killed.
#[tokio::test]
async fn a_cancelled_call_kills_its_programs() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("alive");
    let command = "sh -c 'echo $$ > begun; mv begun alive; exec sleep 600'";
    let running = tokio::spawn({
        let tool = ShellTool::new(folder.path());
        async move { run(tool, command).await }
    });
    let begun = Instant::now();
    while !fifo.exists() && begun.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let shell = std::fs::read_to_string(&fifo).expect("the program has begun");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let process = std::path::Path::new("/proc").join(shell.trim());
    let aborted = Instant::now();
    while cfg!(target_os = "linux") && process.exists() {
        assert!(aborted.elapsed() < Duration::from_secs(30), "{process:?} runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Blocking work that is left would keep the runtime from ending, and so this test.
}

/// A repository may name programs that git runs while it only reads. Nothing that was judged as reading runs them.
#[tokio::test]
async fn git_that_only_reads_runs_no_program_of_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(args).current_dir(folder.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(git.output().unwrap().status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    std::fs::write(folder.path().join("a.txt"), "a\n").unwrap();
    git(&["add", "."]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "a"]);
    std::fs::write(folder.path().join("a.txt"), "b\n").unwrap();
    let mark = folder.path().join("ran");
    let program = format!("touch '{}'; false", mark.display());
    git(&["config", "core.fsmonitor", &program]);
    git(&["config", "diff.external", &program]);
    for command in [
        "git status --short",
        "git -C . --no-pager diff --stat",
        "git diff",
        "git log -p -1",
        "git show",
        "git grep b",
        "git ls-files -m",
        "git blame a.txt",
    ] {
        let told = run(ShellTool::new(folder.path()), command).await;
        assert_eq!(told["status"], 0, "{command}: {told}");
        assert!(!mark.exists(), "{command}");
    }
    // An option that asks for it still counts, as a person has approved it.
    run(ShellTool::new(folder.path()), "git diff --ext-diff").await;
    assert!(mark.exists());
}
