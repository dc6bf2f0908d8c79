//! The summary of a run of scripts: results by folder, and the reasons why scripts were refused.

use crate::output::Failure;
use linerate_script::Verdict;
use std::collections::BTreeMap;
use std::path::Path;

/// The name of a script, and its result; `None` if the script was not run.
pub(super) type Outcome<'a> = (&'a str, Option<&'a Verdict>);

/// Returns the lines of the summary: the results of each folder if there are several folders, the
/// reasons of refusals, and a total.
pub(super) fn summary(outcomes: &[Outcome<'_>]) -> Vec<String> {
    let mut folders: BTreeMap<&Path, Vec<Outcome<'_>>> = BTreeMap::new();
    for outcome in outcomes {
        let folder = Path::new(outcome.0).parent().unwrap_or_else(|| Path::new(""));
        folders.entry(folder).or_default().push(*outcome);
    }
    let mut lines = Vec::new();
    for (folder, list) in &folders {
        if folders.len() > 1 {
            lines.push(format!("{}: {}", folder.display(), counts(list)));
        }
        lines.extend(reasons(list));
    }
    lines.push(counts(outcomes));
    lines
}

/// Formats the number of scripts with each result: `4 scripts: 3 passed, 1 refused`.
fn counts(outcomes: &[Outcome<'_>]) -> String {
    let count = |is: fn(&Option<&Verdict>) -> bool| {
        outcomes.iter().filter(|(_, verdict)| is(verdict)).count()
    };
    let passed = count(|verdict| matches!(verdict, Some(Verdict::Passed)));
    let mut parts = vec![format!("{passed} passed")];
    for (count, word) in [
        (count(|verdict| matches!(verdict, Some(Verdict::Failed(_)))), "failed"),
        (count(|verdict| matches!(verdict, Some(Verdict::Refused { .. }))), "refused"),
        (count(|verdict| matches!(verdict, Some(Verdict::Broken { .. }))), "broken off"),
        (count(|verdict| verdict.is_none()), "not run"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    format!("{}: {}", scripts(outcomes.len()), parts.join(", "))
}

/// Formats the reasons of refusals, the most frequent first: `  2 refused: …`.
fn reasons(outcomes: &[Outcome<'_>]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, verdict) in outcomes {
        if let Some(Verdict::Refused { what, .. }) = verdict {
            *reasons.entry(what).or_default() += 1;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    // A reason may quote the script. Control characters in the quotation are replaced, because they
    // must not reach the terminal.
    let shown = |what: &str| what.replace(char::is_control, "\u{fffd}");
    reasons.iter().map(|(what, count)| format!("  {count} refused: {}", shown(what))).collect()
}

/// Formats a number of scripts: `1 script`, `4 scripts`.
pub(super) fn scripts(count: usize) -> String {
    format!("{count} {}", if count == 1 { "script" } else { "scripts" })
}

/// Returns an error if a script did not pass. If some scripts failed and others were refused, it is
/// the error for failed scripts.
pub(super) fn judge(outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    let any = |is: fn(&Verdict) -> bool| outcomes.iter().filter_map(|row| row.1).any(is);
    if any(|verdict| matches!(verdict, Verdict::Failed(_) | Verdict::Broken { .. })) {
        Err(Failure::running("not every script passed"))
    } else if any(|verdict| matches!(verdict, Verdict::Refused { .. })) {
        Err(Failure::input("not every script could be run: see the messages above"))
    } else {
        Ok(())
    }
}
