//! Prints the tables of requirements: first a line for each RFC, then each table by section.

use super::level::LEVELS;
use super::table::{Requirement, Status, Table};
use crate::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints the tables of requirements.
pub(crate) fn print(tables: &[Table]) -> Result<(), Error> {
    write(tables, &mut io::stdout().lock()).map_err(Error::Output)
}

/// Prints the number of normative sentences of each RFC, and how many of them do not apply to TCP.
pub(crate) fn print_counts(tables: &[Table]) -> Result<(), Error> {
    write_counts(tables, &mut io::stdout().lock()).map_err(Error::Output)
}

fn write(tables: &[Table], out: &mut impl Write) -> io::Result<()> {
    for table in tables {
        let (rows, required) = (table.requirement.len(), table.required());
        let counts = counts(&table.requirement.iter().collect::<Vec<_>>());
        let accounted = format!("{rows} of {required} accounted for");
        writeln!(out, "RFC {:<5} {accounted:>26}: {counts}", table.rfc)?;
    }
    let all: Vec<_> = tables.iter().flat_map(|table| &table.requirement).collect();
    let required: usize = tables.iter().map(Table::required).sum();
    let accounted = format!("{} of {required} accounted for", all.len());
    writeln!(out, "{:<9} {accounted:>26}: {}", "together", counts(&all))?;
    tables.iter().try_for_each(|table| write_table(table, out))
}

fn write_table(table: &Table, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nRFC {}: {}", table.rfc, table.title)?;
    let mut rows: Vec<_> = table.requirement.iter().collect();
    rows.sort_by_key(|row| (section_key(&row.section), row.level, number(&row.id)));
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or_default().max(8);
    let mut section = "";
    for row in rows {
        if row.section != section {
            section = &row.section;
            writeln!(out, "\n§{section}")?;
        }
        let level = if row.id.starts_with(char::is_numeric) {
            format!("{:<4} ", row.level)
        } else {
            String::new()
        };
        writeln!(out, "  {:<width$} {level}{:<15} {}", row.id, standing(row), row.says)?;
        let indent = width + level.len() + 16;
        for remark in row.reason.iter().chain(&row.note) {
            writeln!(out, "  {:indent$} ({remark})", "")?;
        }
    }
    let (rows, required) = (table.requirement.len(), table.required());
    writeln!(out, "\n{rows} of {required} accounted for")?;
    for level in LEVELS {
        let rows: Vec<_> = table.requirement.iter().filter(|row| row.level == level).collect();
        match table.required_of(level) {
            0 => {}
            count => writeln!(out, "{level:<4} {count:>3}: {}", counts(&rows))?,
        }
    }
    Ok(())
}

fn write_counts(tables: &[Table], out: &mut impl Write) -> io::Result<()> {
    for table in tables {
        let Some(sentences) = &table.sentences else {
            writeln!(
                out,
                "RFC {:<5} {:>3} requirements by its own summary",
                table.rfc,
                table.required()
            )?;
            continue;
        };
        let mut line = String::new();
        for level in LEVELS {
            match sentences.of(level) {
                0 => {}
                count => _ = write!(line, ", {count} {level}"),
            }
        }
        let elsewhere = table.elsewhere.as_ref().map_or(0, |elsewhere| elsewhere.all());
        let count = sentences.all();
        writeln!(
            out,
            "RFC {:<5} {count:>3} sentences{line}; {elsewhere} of them do not apply to a TCP",
            table.rfc
        )?;
    }
    Ok(())
}

/// Formats the state of a requirement: the number of its tests, or its status.
fn standing(row: &Requirement) -> String {
    match (row.status, row.tests.len()) {
        (Some(status), _) => status.to_string(),
        (None, 1) => "1 test".to_owned(),
        (None, count) => format!("{count} tests"),
    }
}

fn counts(rows: &[&Requirement]) -> String {
    let count = |status: Option<Status>| rows.iter().filter(|row| row.status == status).count();
    let mut words = vec![format!("{} proven", count(None))];
    for status in [Status::Declined, Status::NotDone, Status::NotApplicable] {
        match count(Some(status)) {
            0 => {}
            some => words.push(format!("{some} {status}")),
        }
    }
    words.join(", ")
}

/// Returns a sort key for a section number. With it, 3.10 follows 3.9, and appendices follow all
/// numbered sections.
fn section_key(section: &str) -> Vec<u32> {
    section.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// Returns a sort key for the last part of an identifier, a number or letters. With it, 10 follows
/// 9, and letters are in alphabetical order.
fn number(id: &str) -> (usize, &str) {
    let last = id.rsplit_once('-').map_or(id, |(_, last)| last);
    (last.parse().unwrap_or(last.len()), last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, level: &str, section: &str, rest: &str) -> String {
        format!(
            "[[requirement]]\nid='{id}'\nlevel='{level}'\nsection='{section}'\nsays='Says.'\n\
             {rest}\n"
        )
    }

    #[test]
    fn prints_a_summary_and_then_rows_by_section_and_counts_by_level() {
        let summary = "rfc=9293\ntitle='TCP'\nsummary={MUST=69,SHLD=31,MAY=18,REC=1}\n".to_owned()
            + &row("MAY-2", "MAY", "3.10", "tests = ['a', 'b']")
            + &row("MUST-10", "MUST", "3.9", "tests = ['a']")
            + &row("MUST-9", "MUST", "3.9", "status = 'declined'\nreason = 'Because.'");
        let sentences =
            "rfc=99\ntitle='Rest'\nsentences={SHLD=2}\nelsewhere={SHLD=1}\nelsewhere_is='x'\n"
                .to_owned()
                + &row("99-2-a", "SHLD", "2", "status = 'not-done'\nreason = 'Later.'");
        let tables = [sentences, summary].map(|text| Table::parse(&text).unwrap());
        let mut out = Vec::new();
        write(&tables, &mut out).unwrap();
        let expected = "\
RFC 99          1 of 1 accounted for: 0 proven, 1 not done
RFC 9293      3 of 119 accounted for: 2 proven, 1 declined
together      4 of 120 accounted for: 2 proven, 1 declined, 1 not done

RFC 99: Rest

§2
  99-2-a   SHLD not done        Says.
                                (Later.)

1 of 1 accounted for
SHLD   1: 0 proven, 1 not done

RFC 9293: TCP

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
        let mut out = Vec::new();
        write_counts(&tables, &mut out).unwrap();
        let expected = "\
RFC 99      2 sentences, 2 SHLD; 1 of them do not apply to a TCP
RFC 9293  119 requirements by its own summary
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
