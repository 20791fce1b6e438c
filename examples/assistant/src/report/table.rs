//! A table that fits the terminal.

use comfy_table::LineStyle;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};

/// The width in columns if the output is no terminal, or one that does not say its width.
const WIDTH: u16 = 140;

/// Formats a table with underlined headings.
pub(super) fn table(heads: [&str; 5], rows: &[[String; 5]]) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_header(heads)
        .add_rows(rows);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none_or(|columns| columns == 0) {
        table.set_width(WIDTH);
    }
    table.trim_fmt() + "\n"
}
