//! The table of recorded benchmark runs in docs/notebook/bench-runs.md.

use std::fs;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/notebook/bench-runs.md");
const SECTION: &str = "## Runs";

/// Appends `row` to the table of recorded runs.
///
/// # Errors
/// A message that says why the row cannot be added.
pub fn keep(row: &str) -> Result<(), String> {
    let text = fs::read_to_string(RUNS)
        .map_err(|error| format!("docs/notebook/bench-runs.md cannot be read: {error}"))?;
    let text = with_row(&text, row)
        .ok_or_else(|| format!("docs/notebook/bench-runs.md has no table under `{SECTION}`"))?;
    fs::write(RUNS, text)
        .map_err(|error| format!("docs/notebook/bench-runs.md cannot be written: {error}"))
}

/// Inserts `row` after the last row of the table of recorded runs in `text`. Returns `None` if
/// there is no such table.
fn with_row(text: &str, row: &str) -> Option<String> {
    let section = text.find(SECTION)?;
    let table = section + text[section..].find("\n|")? + 1;
    let end = text[table..].find("\n\n").map_or(text.len(), |length| table + length + 1);
    Some(format!("{}{row}{}", &text[..end], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_inserted_after_the_last_one_of_its_section() {
        let (before, after) =
            ("| x |\n\n## Runs\n\nWords.\n\n| a |\n|---|\n| 1 |\n", "\n## Next\n\n| b |\n");
        let expected = format!("{before}| 2 |\n{after}");
        assert_eq!(with_row(&format!("{before}{after}"), "| 2 |\n"), Some(expected));
        assert_eq!(with_row(before, "| 2 |\n"), Some(format!("{before}| 2 |\n")));
        assert_eq!(with_row("| x |\n", "| 2 |\n"), None);
    }
}
