//! The notebook of the project, and the table in it that has a line for each run worth keeping.

use std::fs;

const NUMBERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/numbers.md");
const SECTION: &str = "## Side by side";

/// Adds a row to the table.
///
/// # Errors
/// Why it cannot be added.
pub fn keep(row: &str) -> Result<(), String> {
    let text = fs::read_to_string(NUMBERS)
        .map_err(|error| format!("docs/numbers.md cannot be read: {error}"))?;
    let text = with_row(&text, row)
        .ok_or_else(|| format!("docs/numbers.md has no table under `{SECTION}`"))?;
    fs::write(NUMBERS, text).map_err(|error| format!("docs/numbers.md cannot be written: {error}"))
}

/// The notebook with `row` behind the last one of the section's table.
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
    fn a_row_goes_behind_the_last_one_of_its_own_section() {
        let (before, after) =
            ("| x |\n\n## Side by side\n\nWords.\n\n| a |\n|---|\n| 1 |\n", "\n## Next\n\n| b |\n");
        let expected = format!("{before}| 2 |\n{after}");
        assert_eq!(with_row(&format!("{before}{after}"), "| 2 |\n"), Some(expected));
        assert_eq!(with_row(before, "| 2 |\n"), Some(format!("{before}| 2 |\n")));
        assert_eq!(with_row("| x |\n", "| 2 |\n"), None);
    }
}
