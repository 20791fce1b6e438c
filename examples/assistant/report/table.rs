//! A table with wrapped cells.

/// The most characters of each column.
const WIDTHS: [usize; 5] = [40, 32, 22, 7, 40];

/// A table with its heads underlined.
pub(super) fn table(heads: [&str; 5], rows: &[[String; 5]]) -> String {
    let heads = heads.map(str::to_owned);
    let widths: [usize; 5] = std::array::from_fn(|column| {
        let cells =
            rows.iter().chain([&heads]).flat_map(|row| wrapped(&row[column], WIDTHS[column]));
        cells.map(|line| line.chars().count()).max().unwrap_or_default()
    });
    let rule = widths.map(|width| "─".repeat(width));
    let lines = [&heads, &rule].into_iter().chain(rows);
    lines.map(|row| line(row, &widths)).collect()
}

/// One row, on as many lines as its highest cell has.
fn line(row: &[String; 5], widths: &[usize; 5]) -> String {
    let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let mut text = String::new();
    for at in 0..height {
        let parts = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{:<width$}", cell.get(at).map_or("", String::as_str)));
        text += parts.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A text in lines of at most `width` characters, broken between words where that is possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            for c in word.chars() {
                if line.chars().count() == width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        lines.push(line);
    }
    lines
}
