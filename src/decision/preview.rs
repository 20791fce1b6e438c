//! Previews: what a call would change or is about, shown beside the call (rule S7).
//!
//! # What is stored and what is pinned
//!
//! The digest is of the *full* content, while we store at most 2 000 lines or 64 KiB. So a person is asked again about
//! a change behind the cut, and a stored batch does not grow with the size of a file. We write each part of a digest
//! with its length, and each missing part as such: `diff(None, Some(""))` creates an empty file, `diff(Some(""),
//! Some(""))` changes nothing, and the two must not be equal.
//!
//! If a difference takes longer than 250 ms to compute, the algorithm stops looking for a smaller one. Such a
//! difference is larger than it need be, and still shows every changed line.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use similar::{Algorithm, ChangeTag, TextDiff};

use crate::args::hex;

/// The most lines that the stored form of a preview has.
const MOST_LINES: usize = 2_000;
/// The most bytes of text that the stored form of a preview has.
const MOST_BYTES: usize = 64 * 1024;
/// The unchanged lines before and behind a change.
const CONTEXT: usize = 3;
/// The time after which a difference may be larger than necessary.
const DIFF_TIME: Duration = Duration::from_millis(250);

/// The change that a call would make, or its subject, for the person who decides: a unified diff, a text or a table (rule
/// S7). A layer attaches it with [`Decision::with_preview`](super::Decision::with_preview), a tool with
/// [`Tool::with_preview`](crate::toolset::Tool::with_preview). Every surface shows it with its author.
///
/// A digest of the full content becomes a pin of the question: if the content is another one on the approved pass, the
/// call is asked about again (rule A1). Content that changes by itself, such as a log, is shown
/// [without a pin](Self::without_pin), and surfaces say so.
///
/// At most 2 000 lines and 64 KiB of a preview are stored; the digest is of all of it. A preview that was
/// [cut](Self::lines_cut) cannot be shown in full, so that its call is never approved together with others (rule S4).
///
/// ```
/// use countersign::decision::Preview;
/// use countersign::Decision;
///
/// let change = Preview::diff("notes.md", "one\ntwo\n", "one\n2\n");
/// let ask = Decision::ask("writes a file").with_key("write").with_preview(change);
/// let question = &ask.questions()[0];
/// assert_eq!(question.previews()[0].title(), "notes.md");
/// assert_eq!(question.pins()["preview of notes.md"], question.previews()[0].digest().unwrap());
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "What a call would change, or what it is about.")]
pub struct Preview {
    #[serde(default)]
    pub(crate) author: String,
    title: String,
    content: PreviewContent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    lines_cut: usize,
    /// The arguments that the preview shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
}

/// The content of a preview, as far as it is stored. It is not escaped; [`show`](crate::show) does that.
///
/// ```
/// use countersign::decision::{Preview, PreviewContent};
///
/// match Preview::table("transfers", ["to", "euros"], [["ann", "5"]]).content() {
///     PreviewContent::Table { columns, rows } => assert_eq!((columns.len(), rows.len()), (2, 1)),
///     _ => unreachable!(),
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PreviewContent {
    /// The difference of two texts.
    Diff {
        /// The change of the text by the call.
        change: Change,
        /// The lines of a unified diff, without a header for the file: each begins with `@`, a space, `-`, `+` or `\`.
        lines: Vec<String>,
    },
    /// A text as it is.
    Text {
        /// The text, of any number of lines.
        text: String,
    },
    /// Rows with a cell for each column.
    Table {
        /// The names of the columns.
        columns: Vec<String>,
        /// The cells of each row.
        rows: Vec<Vec<String>>,
    },
}

/// The change of a text by a call.
///
/// Exhaustive on purpose: a surface has to show every change.
///
/// ```
/// use countersign::decision::{Change, Preview, PreviewContent};
///
/// let change = |old: Option<&'static str>, new: Option<&'static str>| match Preview::diff("a", old, new).content() {
///     PreviewContent::Diff { change, .. } => *change,
///     _ => unreachable!(),
/// };
/// assert_eq!(change(None, Some("")), Change::Created);
/// assert_eq!(change(Some("a"), None), Change::Deleted);
/// assert_eq!(change(Some("a"), Some("a")), Change::Unchanged);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// There is no such text before the call.
    Created,
    /// There is no such text after the call.
    Deleted,
    /// The text becomes another one.
    Changed,
    /// The text stays as it is.
    Unchanged,
}

impl Preview {
    /// The change of a text, usually of a file, as a unified diff. `None` in place of the old content means that the
    /// call creates the file, in place of the new content that it deletes the file.
    ///
    /// ```
    /// use countersign::decision::{Change, Preview, PreviewContent};
    /// let created = Preview::diff("new.txt", None, "hello\n");
    /// let PreviewContent::Diff { change, lines } = created.content() else { unreachable!() };
    /// assert_eq!((*change, lines.as_slice()), (Change::Created, &["@@ -0,0 +1 @@".to_owned(), "+hello".to_owned()][..]));
    /// ```
    #[must_use]
    pub fn diff<'a>(
        path: impl Into<String>,
        old: impl Into<Option<&'a str>>,
        new: impl Into<Option<&'a str>>,
    ) -> Self {
        let (old, new) = (old.into(), new.into());
        let change = match (old, new) {
            (None, Some(_)) => Change::Created,
            (Some(_), None) => Change::Deleted,
            (old, new) if old == new => Change::Unchanged,
            _ => Change::Changed,
        };
        let mut room = Room::new();
        let mut lines = Vec::new();
        if change != Change::Unchanged {
            unified(old.unwrap_or(""), new.unwrap_or(""), |line| room.keep(&mut lines, line));
        }
        let digest = digest("diff", [old, new].map(|text| text.map(str::as_bytes)));
        Self::new(path, PreviewContent::Diff { change, lines }, digest, &room)
    }

    /// A text that the call is about.
    ///
    /// ```
    /// use countersign::decision::Preview;
    /// let preview = Preview::text("mail to ann", "Dear Ann,\n…");
    /// assert!(preview.digest().is_some());
    /// ```
    #[must_use]
    pub fn text(title: impl Into<String>, text: &str) -> Self {
        let mut room = Room::new();
        let mut lines = Vec::new();
        text.split('\n').for_each(|line| room.keep(&mut lines, line.to_owned()));
        let digest = digest("text", [Some(text.as_bytes())]);
        Self::new(title, PreviewContent::Text { text: lines.join("\n") }, digest, &room)
    }

    /// The first lines of a text, with the number of the others. For a text of which the rest need not be seen, such as
    /// a file that is deleted. The digest is of the whole text.
    ///
    /// ```
    /// use countersign::decision::{Preview, PreviewContent};
    /// let preview = Preview::first_lines("old.log", "one\ntwo\nthree\n", 2);
    /// let PreviewContent::Text { text } = preview.content() else { unreachable!() };
    /// assert_eq!(text, "one\ntwo\n(1 more line)");
    /// ```
    #[must_use]
    pub fn first_lines(title: impl Into<String>, text: &str, lines: usize) -> Self {
        let rest = text.lines().count().saturating_sub(lines);
        if rest == 0 {
            return Self::text(title, text);
        }
        let mut first: Vec<_> = text.lines().take(lines).collect();
        let more = format!("({rest} more line{})", if rest == 1 { "" } else { "s" });
        first.push(&more);
        let digest = digest("text", [Some(text.as_bytes())]);
        Self { digest: Some(digest), ..Self::text(title, &first.join("\n")) }
    }

    /// Rows with a cell for each of these columns: the recipients of a mail, the rows that a statement changes.
    ///
    /// ```
    /// use countersign::decision::Preview;
    /// let preview = Preview::table("transfers", ["to", "euros"], [["ann", "5"], ["bob", "7"]]);
    /// assert_eq!(preview.title(), "transfers");
    /// ```
    #[must_use]
    pub fn table<C, R>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self
    where
        C: Into<String>,
        R: IntoIterator<Item: Into<String>>,
    {
        let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
        let mut room = Room::new();
        let mut kept = Vec::new();
        let mut hash = Sha256::new();
        part(&mut hash, Some(b"table"));
        let mut row_of = |cells: &[String]| {
            part(&mut hash, Some(&(cells.len() as u64).to_be_bytes()));
            cells.iter().for_each(|cell| part(&mut hash, Some(cell.as_bytes())));
        };
        row_of(&columns);
        for row in rows {
            let row: Vec<String> = row.into_iter().map(Into::into).collect();
            row_of(&row);
            if room.takes(row.iter().map(String::len).sum()) {
                kept.push(row);
            }
        }
        let content = PreviewContent::Table { columns, rows: kept };
        Self::new(title, content, hex(&hash.finalize()), &room)
    }

    fn new(title: impl Into<String>, content: PreviewContent, digest: String, room: &Room) -> Self {
        Self {
            author: String::new(),
            title: title.into(),
            content,
            digest: Some(digest),
            lines_cut: room.cut,
            replaced: Vec::new(),
        }
    }

    /// Says that the preview shows all that these arguments say, such as the content of a file that is written: surfaces
    /// then show them on demand only. It counts as long as all of the preview is stored.
    ///
    /// ```
    /// use countersign::decision::Preview;
    ///
    /// let change = Preview::diff("notes.md", "one\n", "one\ntwo\n").in_place_of(["content"]);
    /// assert_eq!(change.replaced(), ["content"]);
    /// ```
    #[must_use]
    pub fn in_place_of<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.replaced = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Adds content to the digest that is not shown, such as the bytes of an image of which only the size is.
    ///
    /// ```
    /// use countersign::decision::Preview;
    /// let of = |bytes: &[u8]| Preview::text("logo.png", "an image of 2 bytes").covering(bytes);
    /// assert_ne!(of(&[0, 1]).digest(), of(&[0, 2]).digest());
    /// ```
    #[must_use]
    pub fn covering(mut self, content: impl AsRef<[u8]>) -> Self {
        let shown = self.digest.take();
        self.digest =
            shown.map(|shown| digest("covering", [Some(shown.as_bytes()), Some(content.as_ref())]));
        self
    }

    /// Shows content that changes by itself: no pin is set, the call is not asked about again when the content changes,
    /// and surfaces say so.
    ///
    /// ```
    /// use countersign::decision::Preview;
    /// use countersign::Decision;
    /// let ask = Decision::ask("rotate the log?").with_preview(Preview::text("app.log", "…").without_pin());
    /// assert!(ask.questions()[0].pins().is_empty());
    /// ```
    #[must_use]
    pub fn without_pin(mut self) -> Self {
        self.digest = None;
        self
    }

    /// The layer or the tool that made the preview; empty until the preview is attached to a question.
    #[must_use]
    pub fn author(&self) -> &str {
        &self.author
    }

    /// The name of the shown text: the path of a file, for example.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The content of the preview, as far as it is stored.
    #[must_use]
    pub fn content(&self) -> &PreviewContent {
        &self.content
    }

    /// The digest of the full content; `None` for a preview without a pin.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The names of the arguments that the preview shows in their place.
    #[must_use]
    pub fn replaced(&self) -> &[String] {
        &self.replaced
    }

    /// The number of lines or rows that are not stored in full, as the preview is too long.
    #[must_use]
    pub fn lines_cut(&self) -> usize {
        self.lines_cut
    }
}

impl From<Preview> for Vec<Preview> {
    fn from(preview: Preview) -> Self {
        vec![preview]
    }
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preview")
            .field("author", &self.author)
            .field("title", &self.title.len())
            .field("content", &self.content)
            .field("pinned", &self.digest.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PreviewContent {
    /// The kind and the lengths, without the text (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diff { change, lines } => {
                write!(f, "Diff({change:?}, {} lines)", lines.len())
            }
            Self::Text { text } => write!(f, "Text({} bytes)", text.len()),
            Self::Table { rows, .. } => write!(f, "Table({} rows)", rows.len()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(lines: &usize) -> bool {
    *lines == 0
}

/// The space that a preview has in its stored form.
struct Room {
    lines: usize,
    bytes: usize,
    cut: usize,
}

impl Room {
    fn new() -> Self {
        Self { lines: MOST_LINES, bytes: MOST_BYTES, cut: 0 }
    }

    /// Reserves the space of a line; `false` if there is none left, for this line and all later ones.
    ///
    /// Once a line has not fitted, we keep no later one, even a shorter one: people would read a text with a hole as a
    /// whole one.
    fn takes(&mut self, bytes: usize) -> bool {
        if self.cut > 0 || self.lines == 0 || bytes > self.bytes {
            self.cut += 1;
            return false;
        }
        self.lines -= 1;
        self.bytes -= bytes;
        true
    }

    /// Adds the line if there is space for it, and the beginning of the first line for which there is none.
    fn keep(&mut self, lines: &mut Vec<String>, line: String) {
        let (cut, room, left) = (self.cut, self.bytes, self.lines);
        if self.takes(line.len()) {
            lines.push(line);
        } else if cut == 0 && left > 0 {
            let end = (0..=room).rev().find(|at| line.is_char_boundary(*at));
            let beginning = end.and_then(|end| line.get(..end));
            lines.extend(beginning.filter(|it| !it.is_empty()).map(str::to_owned));
        }
    }
}

/// The lines of a unified diff, in order.
fn unified(old: &str, new: &str, mut line: impl FnMut(String)) {
    let diff =
        TextDiff::configure().algorithm(Algorithm::Myers).timeout(DIFF_TIME).diff_lines(old, new);
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        line(format!("@@ -{} +{} @@", range(&old), range(&new)));
        for op in &group {
            for change in diff.iter_changes(op) {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let text = change.value();
                line(format!("{sign}{}", text.strip_suffix('\n').unwrap_or(text)));
                if change.missing_newline() {
                    line("\\ No newline at end of file".to_owned());
                }
            }
        }
    }
}

/// A range of lines as a unified diff writes it: the first line, from 1 on, and the count unless it is 1.
fn range(lines: &std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn digest<const N: usize>(kind: &str, parts: [Option<&[u8]>; N]) -> String {
    let mut hash = Sha256::new();
    part(&mut hash, Some(kind.as_bytes()));
    parts.into_iter().for_each(|it| part(&mut hash, it));
    hex(&hash.finalize())
}

/// Adds a part to a digest, with its length, so that no two lists of parts have the same bytes.
fn part(hash: &mut Sha256, content: Option<&[u8]>) {
    match content {
        None => hash.update([0]),
        Some(content) => {
            hash.update([1]);
            hash.update((content.len() as u64).to_be_bytes());
            hash.update(content);
        }
    }
}
