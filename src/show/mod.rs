//! The view of a pending call for a person (rule S1): made from the call that will run, safe to print, and plain data.
//!
//! A [`CallView`] is what a terminal, a page or a chat message shows of one request. Its texts are ready to print:
//!
//! - A backslash always begins an escape that this module wrote: `\u{202e}` for a character that cannot be seen or
//!   that moves others, `\{120 spaces}` for a run that could push text out of sight, `\{masked: 40 characters}` for a
//!   secret, `\{900 characters left out}` for elided text. A backslash of the text itself is doubled, so that no text
//!   can pretend to be one of these; in a difference and the text of a preview only where it could, and a tab is `\{1 tab}` there.
//! - The real call comes first. Texts of layers, tools and servers are below the call, each with its author.
//! - Commands, paths, addresses and hosts are neither masked as a whole nor elided.
//! - Masked are only values that look random under a name that ends in a secret's word (`password`, `client_secret`,
//!   `api_key`), tokens in the form of a known service, header or key file, and settings such as `DB_PASSWORD=…`.
//!   Sentences, words, numbers, commands, paths and hosts are shown under any name, and nothing in a script is masked
//!   (rule S4). [`Limits::unmasked`] shows masked values, too.
//! - Words of mixed scripts, or of letters that only look like ASCII ones, have those letters escaped: `g\u{43e}ogle`.
//! - [`CallView::previews`] show what a call would change, with their authors: the lines of a diff or a text, or a
//!   table, as data that each surface draws.
//! - [`CallView::left_out`] says whether a call has to be opened, as with [`Limits::none`], before it is approved.
//!
//! A page still has to put the texts into text nodes, as they are not escaped for HTML.
//!
//! ```
//! use countersign::show::{self, CallView, Limits};
//! use countersign::{DeferredToolRequests, ToolCall};
//! use serde_json::json;
//!
//! let args = json!({"path": "a\u{202e}gol.txt", "api_key": "9f8e7d6c5b4a"});
//! let requests = DeferredToolRequests::new([ToolCall::new("c1", "delete_file", args)], []);
//! let view = CallView::of(&requests, "c1", Limits::default()).unwrap();
//! assert_eq!(view.headline, r#"delete_file(path: "a\u{202e}gol.txt", and 1 more argument)"#);
//! assert_eq!(view.args[1].lines, [r"\{masked: 12 characters}"]);
//! assert_eq!(show::escape("\u{1b}[2J"), r"\u{1b}[2J");
//! ```

mod ask;
mod chars;
mod field;
mod keys;
mod look_alikes;
mod mask;
mod masked_args;
mod origin;
mod piece;
mod preview;
mod random;
mod text;
mod title;
mod tokens;
mod view;

use crate::args::Args;
pub(crate) use ask::short;
pub use ask::{AnswerView, AskView, ClaimView, OutcomeView, ProposalView};
pub use field::{Field, Limits};
pub use masked_args::masked_args;
pub use origin::OriginView;
pub use piece::counted;
pub use preview::{PreviewLine, PreviewSign, PreviewView};
pub use text::wrap;
pub use view::{CallView, NoteView, QuestionView};

use piece::{Style, escaped};

/// The text on one line, with every character made visible that a terminal or a page would hide, move or act on (rule
/// S1).
///
/// Control characters, ANSI and other escapes, bidi controls, zero-width and tag characters and all other invisible
/// ones are written as `\u{..}`; newlines, carriage returns and tabs as `\n`, `\r` and `\t`. Of more than 16 spaces,
/// and of more than 4 of any other of these in a row, the number is written instead.
///
/// ```
/// use countersign::show::escape;
/// assert_eq!(escape("ls\u{200b} -la\n"), r"ls\u{200b} -la\n");
/// assert_eq!(escape(&format!("ls{}; rm -rf ~", " ".repeat(200))), r"ls\{200 spaces}; rm -rf ~");
/// assert_eq!(escape(r"a \u{200b}"), r"a \\u{200b}"); // text that pretends to be an escape
/// ```
#[must_use]
pub fn escape(text: &str) -> String {
    escaped(text, Style::PROSE)
}

/// Like [`escape`], for a name: every character that is not ASCII is written as `\u{..}`, too, as many letters look
/// like other ones.
///
/// ```
/// assert_eq!(countersign::show::escape_name("re\u{0430}d_file"), r"re\u{430}d_file"); // a Cyrillic `a`
/// ```
#[must_use]
pub fn escape_name(text: &str) -> String {
    escaped(text, Style::NAME)
}

/// The lines of a message whose parts were escaped already: an invisible character that is left in it is written as
/// `\u{..}`, and everything else stays as it is, backslashes as well.
///
/// For the place where a message leaves, after [`escape`] has shown each text in it for what it is.
///
/// ```
/// use countersign::show::escape_hidden;
/// assert_eq!(escape_hidden("in `a\u{1b}[2Jb`:\n\\u{200b}"), "in `a\\u{1b}[2Jb`:\n\\u{200b}");
/// ```
#[must_use]
pub fn escape_hidden(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    for c in message.chars() {
        match c {
            '\n' => shown.push(c),
            c if chars::is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The arguments as JSON to edit: the canonical text, with every invisible character written as a JSON escape. Reading
/// it gives the same arguments. Nothing is masked.
///
/// ```
/// use countersign::{Args, show};
/// let args = Args::new().with("path", "a\u{202e}b");
/// assert_eq!(show::json(&args), r#"{"path":"a\u202eb"}"#);
/// assert_eq!(Args::parse(&show::json(&args))?, args);
/// # Ok::<(), countersign::args::ArgsError>(())
/// ```
#[must_use]
pub fn json(args: &Args) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for c in args.to_string().chars() {
        if chars::is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}
