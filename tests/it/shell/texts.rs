//! Texts for a comparison with real shells, made by a generator of numbers, so that every run has the same ones.
//!
//! Three kinds: the labelled commands, with pieces put in or left out; compound commands; and constructs inside of each
//! other, where a shell may change to another scanner: substitutions, parentheses, comments, here-documents, branches,
//! braces and quotes.

/// Names that a shell would run itself. None of the names that replace them holds another.
pub(super) const BUILTINS: &str = ". : [ alias autoload bg bind break builtin bye caller cd chdir command compctl compgen complete \
    compopt continue coproc declare dirs disable disown echo echotc emulate enable end esac eval exec exit export false fc \
    fg float functions getln getopts hash history integer jobs kill let limit local log logout mapfile nocorrect noglob \
    popd print printf private pushd pushln pwd r read readarray readonly rehash repeat return sched set setopt shift shopt \
    source suspend test time times trap true ttyctl type typeset ulimit umask unalias unfunction unhash unlimit unset \
    unsetopt vared wait whence where which zcompile zformat zle zmodload zparseopts zregexparse zstat zstyle - exit";

/// The text with nothing in it that could do anything but call a program that does not exist.
pub(super) fn harmless(text: &str) -> String {
    let names: Vec<&str> = BUILTINS.split_whitespace().collect();
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\u{3}']) {
        if c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '[' | '-') {
            word.push(c);
            continue;
        }
        match names.iter().position(|name| *name == word) {
            Some(number) => out.push_str(&format!("q{number}")),
            None => out.push_str(&word),
        }
        word.clear();
        out.push(if c == '/' { '_' } else { c });
    }
    out.trim_end_matches('\u{3}').to_owned()
}

/// A generator of numbers that gives the same ones in every run.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

/// The text with one to three pieces put in or characters left out.
pub(super) fn mutated(text: &str, numbers: &mut Numbers) -> String {
    let pieces = [
        "'",
        "\"",
        "\\",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "\t",
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "{}",
        "{",
        "}",
        "@{1}",
        "=",
        "~",
        "A=b ",
        "2>&1",
        ">x",
        "<x",
        "<<E\n",
        "\nE\n",
        "$",
        "(",
        ")",
        "&",
        "\\\n",
        "^",
        "%",
        ",",
        "+",
        "<",
        ">",
        "'x'",
        "\"y\"",
        "''",
        "\\\\",
        "1>",
        " - ",
        "\\'",
        "-I{}",
        "&>x",
        "2>x",
        ">>x",
        "=#",
        "x=",
        ":~",
        "1>&2",
        "<<<x",
        ">|",
        "<>",
        "|&",
        "\t\n",
        "$x",
        "``",
        "{a,b}",
        "{1..3}",
        "{,x}",
        "; do ",
        "; done",
        "if a; then ",
        "; fi",
        "for f in a b; do ",
        "{ ",
        "; }",
        "[[ -f x ]] && ",
        "]]",
        "do ",
        "then ",
        "else ",
        "in",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(chars.len() + 1);
        if numbers.below(4) == 0 && at < chars.len() {
            chars.remove(at);
        } else {
            let piece = pieces[numbers.below(pieces.len())];
            chars.splice(at..at, piece.chars());
        }
    }
    chars.into_iter().collect()
}

/// A text of loops, conditions, groups and braces, whose loops end if every command succeeds.
pub(super) fn compound(numbers: &mut Numbers, depth: usize) -> String {
    let simple = [
        "a b",
        "c 'd e'",
        "f {g,h}i",
        "j x{1..3}y",
        "k |& l",
        "m && n",
        "o; p",
        "! q",
        "s > t",
        "t $((2 * (3 + 4) - 10 / 3)) u$((7 % 4))v \"$((-1 - -2))\"",
    ];
    if depth == 0 {
        return simple[numbers.below(simple.len())].to_owned();
    }
    let (one, two, three) =
        (compound(numbers, depth - 1), compound(numbers, depth - 1), compound(numbers, depth - 1));
    match numbers.below(11) {
        0 => format!("if {one}; then {two}; else {three}; fi"),
        1 => format!("if {one}\nthen\n{two}\nelif z\nthen {three}\nfi"),
        2 => format!("for f in x 'y z' {{v,w}}; do {one}; {two}; done"),
        3 => format!("for f in x\ndo\n {one} # {two}\ndone | a"),
        4 => format!("{{ {one}; {two}; }} && {three}"),
        5 => format!("while ! z; do {one}; done; {two}"),
        6 => format!("until z; do {one}; done\n{two}"),
        8 => format!("case x in y|z*) {one};; 'x y'|[a-w]?) {two} ;; *) {three}; esac"),
        9 => format!("case a in\n  # c\n  b) ;;\n  a)\n    {one}\n    ;;\nesac | {two}"),
        7 => format!("[[ -f x || y == z* && -n b ]] && {one}; {two}"),
        _ => format!("( {one}; {{ {two}; }} ) | a"),
    }
}

/// A text of constructs inside of each other.
pub(super) fn nested(numbers: &mut Numbers) -> String {
    let mut out = String::new();
    list(numbers, 3, &mut out);
    // Behind the text, a quote that was opened by mistake would hide or show this command.
    out.push_str([" 'x'", "\nd 'y\nz'\n", " \"u\"", "; d '", ""][numbers.below(5)]);
    if out.ends_with("; d '") {
        rubbish(numbers, "'", &mut out);
        out.push('\'');
    }
    out
}

fn one<'p>(numbers: &mut Numbers, of: &[&'p str]) -> &'p str {
    of[numbers.below(of.len())]
}

/// Pieces that mean something to a scanner, without those that hold one of these characters.
fn rubbish(numbers: &mut Numbers, without: &str, out: &mut String) {
    let pieces = [
        ")",
        "(",
        "'",
        "\"",
        "`",
        "\\",
        "$(",
        "#",
        " #",
        "case x in",
        "esac",
        "x)",
        "{",
        "}",
        "a",
        " ",
        "<<E",
        ";;",
        "((",
        "))",
        "${",
        "$'",
        "\\'",
        "\\\"",
        ";",
        "|",
        "b c",
        "<(",
    ];
    for _ in 0..numbers.below(5) {
        let piece = pieces[numbers.below(pieces.len())];
        if !piece.contains(|c| without.contains(c)) {
            out.push_str(piece);
        }
    }
}

fn list(numbers: &mut Numbers, depth: usize, out: &mut String) {
    for number in 0..=numbers.below(3) {
        if number > 0 {
            let joins = ["; ", "\n", " && ", " | ", ";", "\n\n", " &&\\\n", "|\\\n ", " \\\n; "];
            if !out.ends_with('\n') {
                out.push_str(one(numbers, &joins));
            }
        }
        command(numbers, depth, out);
    }
}

fn between(numbers: &mut Numbers, depth: usize, start: &str, end: &str, out: &mut String) {
    out.push_str(start);
    list(numbers, depth, out);
    out.push_str(end);
}

fn command(numbers: &mut Numbers, depth: usize, out: &mut String) {
    if depth == 0 {
        return simple(numbers, depth, out);
    }
    let inner = depth - 1;
    match numbers.below(16) {
        0 | 1 => {
            out.push('(');
            out.push_str(one(numbers, &["", "", " ", "\n", "\\\n", "# a\n"]));
            list(numbers, inner, out);
            out.push_str(one(numbers, &[")", " )", "\n)"]));
        }
        2 => between(numbers, inner, "{ ", "\n}", out),
        3 => {
            out.push_str(one(numbers, &["case a in ", "case 'a' in\n", "case a in # )\n"]));
            for pattern in ["a)", "'b')", "[c])", "d|e)", "*)"] {
                if numbers.below(2) == 0 {
                    out.push_str(pattern);
                    between(numbers, inner, " ", "\n;; ", out);
                }
            }
            out.push_str("esac");
        }
        4 => {
            between(numbers, inner, "if ", "\nthen ", out);
            list(numbers, inner, out);
            out.push_str("\nfi");
        }
        5 => between(numbers, inner, "for f in x 'y )'; do ", "\ndone", out),
        6 | 7 => {
            simple(numbers, inner, out);
            out.push_str(one(numbers, &[" # ", "; #", " #", "\n# ", "#"]));
            rubbish(numbers, "\n", out);
            out.push('\n');
        }
        8 | 9 => {
            simple(numbers, inner, out);
            out.push_str(one(numbers, &[" <<E", " <<'E'", " <<\"E\"", " <<E | b", " << E"]));
            out.push('\n');
            rubbish(numbers, "$`\\", out);
            out.push('\n');
            if numbers.below(2) == 0 {
                rubbish(numbers, "", out);
                out.push('\n');
            }
            out.push_str("E\n");
        }
        _ => simple(numbers, depth, out),
    }
}

fn simple(numbers: &mut Numbers, depth: usize, out: &mut String) {
    if numbers.below(8) == 0 {
        out.push_str("v=");
        word(numbers, depth, out);
        out.push(' ');
    }
    out.push_str(one(numbers, &["a", "b", "cc", "'d'", "\"k\"", "$(b)", "l"]));
    for _ in 0..numbers.below(4) {
        out.push_str(one(numbers, &[" ", " ", " ", " ", "  ", " \\\n", "\t"]));
        word(numbers, depth, out);
    }
    if numbers.below(10) == 0 {
        out.push_str(one(numbers, &[" 2>&1", " <<<x", " >y", " 2>y", " < <(b)", " <y"]));
    }
}

/// One to three pieces without a blank between them, or a process substitution.
fn word(numbers: &mut Numbers, depth: usize, out: &mut String) {
    if depth > 0 && numbers.below(5) == 0 {
        return substitution(numbers, depth - 1, "<(", out);
    }
    for _ in 0..=numbers.below(2) + numbers.below(2) {
        piece_of_word(numbers, depth, out);
    }
}

fn piece_of_word(numbers: &mut Numbers, depth: usize, out: &mut String) {
    let usual = [
        "e",
        "-f",
        "g.h",
        "x=",
        ":",
        "a#b",
        "{i,j}",
        "{1..3}",
        "''",
        "\"\"",
        "$w",
        "\"$w\"",
        "${w}",
        "\\ ",
        "\\#",
        "\\'",
        "\\)",
        "$((1 + 2))",
        "esac",
        "in",
        "!",
        "%",
        "^",
        "+",
        "*",
        "[a]",
        "\"a~1\"",
    ];
    // Mostly refused.
    let odd = [
        "=", "~", "~root", "#", "{}", "@{1}", "case", "{,i}", "$", "`l`", "$'a'", "(c)", "a{1,2}{",
        "==",
    ];
    match numbers.below(24) {
        0..4 if depth > 0 => substitution(numbers, depth - 1, "$(", out),
        4 if depth > 0 => {
            let opening = one(numbers, &["<(", ">(", "=(", "$((", "${"]);
            substitution(numbers, depth - 1, opening, out);
        }
        5..7 if depth > 0 => {
            out.push('"');
            rubbish(numbers, "\"$`\\", out);
            substitution(numbers, depth - 1, "$(", out);
            rubbish(numbers, "\"$`\\", out);
            out.push('"');
        }
        7 | 8 => {
            out.push('\'');
            rubbish(numbers, "'", out);
            out.push('\'');
        }
        9 | 10 => {
            out.push('"');
            rubbish(numbers, "\"$`\\", out);
            out.push('"');
        }
        11 => out.push_str(one(numbers, &odd)),
        12..16 => out.push_str(one(numbers, &usual)),
        _ => out.push_str(one(numbers, &["m", "n o", "p-q", "1"])),
    }
}

fn substitution(numbers: &mut Numbers, depth: usize, opening: &str, out: &mut String) {
    out.push_str(opening);
    match numbers.below(12) {
        0 => out.push_str(one(numbers, &["\\\n", " # b )\n", "# 'c\n"])),
        1 => out.push_str(one(numbers, &["# a\n", " # b\n"])),
        2 => out.push('\n'),
        3 => out.push(' '),
        _ => {}
    }
    // A subshell right behind the parenthesis, as in `<((`.
    match numbers.below(5) {
        0 => {
            between(numbers, depth, "(", ")", out);
            out.push_str(one(numbers, &["", " ", "\n", " # )\n", "\n# ' (\n", "; b", " | a"]));
        }
        1 => {
            simple(numbers, 0, out);
            out.push_str(one(numbers, &[" <<E\n", " <<'E'\n", " <<'E' | b\n"]));
            rubbish(numbers, "$`\\", out);
            out.push_str("\nE\n");
        }
        _ => list(numbers, depth, out),
    }
    out.push(')');
}
