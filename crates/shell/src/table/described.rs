//! Entries written out again, for tools that try the forms that they describe.

use super::ProgramArguments;
use super::entry::{Does, Kind, OperandSlot, OptionForm, ProgramEntry, Script, ValuePlace};

impl ProgramEntry {
    /// Adds what this entry and those of its sub-commands take, but for those that are only asked about.
    pub(super) fn collect_arguments(&self, name: &str, found: &mut Vec<ProgramArguments>) {
        if !matches!(self.does(), Does::Asks(_)) && self.described {
            let known = self.options.iter().filter_map(|(name, form)| option(name, form));
            let mut options: Vec<_> = known.collect();
            options.sort_unstable();
            let operands = self.operands.iter().map(operand).collect();
            found.push(ProgramArguments { program: name.to_owned(), options, operands });
        }
        for (sub, entry) in &self.subs {
            entry.collect_arguments(&format!("{name} {sub}"), found);
        }
    }
}

fn operand(slot: &OperandSlot) -> String {
    let repeats = if slot.repeats { "..." } else { "" };
    let required = if slot.required { "!" } else { "" };
    format!("{}{repeats}{required}", word(&slot.kind))
}

fn option(name: &str, form: &OptionForm) -> Option<String> {
    Some(match form {
        OptionForm::Flag | OptionForm::Formats => name.to_owned(),
        OptionForm::Value(kind, ValuePlace::Own) => format!("{name}={}", word(kind)),
        OptionForm::Value(kind, ValuePlace::FirstOperand) => format!("{name}={}^", word(kind)),
        OptionForm::Value(kind, ValuePlace::BehindOperand) => format!("{name}={}>", word(kind)),
        OptionForm::Optional(kind) => format!("{name}?={}", word(kind)),
        OptionForm::Last(kind) => format!("{name}$={}", word(kind)),
        OptionForm::Pair(_) | OptionForm::Refused => return None,
    })
}

/// The word of the table for a kind.
fn word(kind: &Kind) -> String {
    let script = |script: &Script| match script {
        Script::Sed => "sed",
        Script::Awk => "awk",
        Script::Jq => "jq",
        Script::Yq => "yq",
        Script::Test => "test",
        Script::Name => "name",
        Script::Template => "template",
        Script::Fields => "fields",
        Script::Sql => "sql",
        Script::Graphql => "graphql",
        Script::Argument => "argument",
        Script::Branch => "branch",
    };
    let word = match kind {
        Kind::OneOf(words) => return format!("{{{}}}", words.join("|")),
        Kind::Script(language) => script(language),
        Kind::Text => "text",
        Kind::Read => "read",
        Kind::Local => "local",
        Kind::Unquoted => "unquoted",
        Kind::Packed => "packed",
        Kind::List => "list",
        Kind::Write => "write",
        Kind::Output => "output",
        Kind::FromTo => "from-to",
        Kind::Report => "report",
        Kind::Make => "make",
        Kind::Revision => "revision",
        Kind::Directory => "directory",
        Kind::Run => "run",
        Kind::RunAppended => "run-appended",
        Kind::RunEach => "run-each",
        Kind::Replaced => "replaced",
        Kind::Shell => "shell",
        Kind::Assignment => "assignment",
        Kind::Variable => "variable",
        Kind::Database => "database",
        Kind::Number => "number",
        Kind::Host => "host",
        Kind::Slug => "slug",
        Kind::Package => "package",
        Kind::Remote => "remote",
        Kind::Here => "here",
        Kind::Code => "code",
    };
    word.to_owned()
}
