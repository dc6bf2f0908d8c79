//! The table on standard output: by section, and then the counts.

use super::table::{LEVELS, Level, Requirement, Status, Table};
use crate::error::Error;
use std::io::{self, Write};

/// Prints the table.
pub(crate) fn print(table: &Table) -> Result<(), Error> {
    write(table, &mut io::stdout().lock()).map_err(Error::Write)
}

fn write(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let mut rows: Vec<_> = table.requirement.iter().collect();
    rows.sort_by_key(|row| (section_key(&row.section), row.level, number(&row.id)));
    let mut section = "";
    for row in rows {
        if row.section != section {
            section = &row.section;
            writeln!(out, "\n§{section}")?;
        }
        writeln!(out, "  {:<8} {:<15} {}", row.id, standing(row), row.says)?;
        for remark in row.reason.iter().chain(&row.note) {
            writeln!(out, "  {:24} ({remark})", "")?;
        }
    }
    let all: u32 = LEVELS.iter().map(|(_, count)| count).sum();
    writeln!(out, "\n{} of {all} accounted for", table.requirement.len())?;
    for (level, count) in LEVELS {
        writeln!(out, "{level:<4} {count:>3}: {}", counts(table, level))?;
    }
    Ok(())
}

/// How a requirement stands, in a word and a number.
fn standing(row: &Requirement) -> String {
    match (row.status, row.tests.len()) {
        (Some(status), _) => status.to_string(),
        (None, 1) => "1 test".to_owned(),
        (None, count) => format!("{count} tests"),
    }
}

fn counts(table: &Table, level: Level) -> String {
    let count = |status: Option<Status>| {
        table.requirement.iter().filter(|row| row.level == level && row.status == status).count()
    };
    let mut words = vec![format!("{} proven", count(None))];
    for status in [Status::NotDone, Status::Declined, Status::NotApplicable] {
        match count(Some(status)) {
            0 => {}
            some => words.push(format!("{some} {status}")),
        }
    }
    words.join(", ")
}

/// 3.10 comes after 3.9.
fn section_key(section: &str) -> Vec<u32> {
    section.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

fn number(id: &str) -> u32 {
    id.split_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_by_section_and_are_counted_by_level() {
        let row = |id: &str, level: &str, section: &str, rest: &str| {
            format!(
                "[[requirement]]\nid='{id}'\nlevel='{level}'\nsection='{section}'\nsays='Says.'\n{rest}\n"
            )
        };
        let text = row("MAY-2", "MAY", "3.10", "tests = ['a', 'b']")
            + &row("MUST-10", "MUST", "3.9", "tests = ['a']")
            + &row("MUST-9", "MUST", "3.9", "status = 'declined'\nreason = 'Because.'");
        let mut out = Vec::new();
        write(&Table::parse(&text).unwrap(), &mut out).unwrap();
        let expected = "
§3.9
  MUST-9   declined        Says.
                           (Because.)
  MUST-10  1 test          Says.

§3.10
  MAY-2    2 tests         Says.

3 of 119 accounted for
MUST  69: 1 proven, 1 declined
SHLD  31: 0 proven
MAY   18: 1 proven
REC    1: 0 proven
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
