//! The report of the causal experiments: a table, then sentences that depend on the figures.

use crate::controls::{
    Control, ControlColumn, ControlOutcome, PACKETS, PLATEAU, WINDOW_UPDATE_RULE,
};
use crate::published::COLUMNS;
use linerate_evidence::notation::percent;
use std::fmt::Write;

/// Indices of two, three and four packets in [`PACKETS`].
const TWO_THREE_FOUR: [usize; 3] = [1, 2, 3];
/// Minimum depth of a dip at three packets that the report calls a notch. It is a fraction of the
/// throughput that the neighbours predict.
const LEAST_NOTCH: f64 = 0.02;
/// Minimum change of the plateau for the conclusion that the removed property limits it. The
/// plateau is the throughput with large buffers; the change is a fraction of the unchanged model's
/// plateau.
const LEAST_CHANGE: f64 = 0.03;
/// Minimum change of the plateau, as a fraction of the unchanged model's plateau, for the
/// conclusion that the removed property limits it more than anything else.
const LARGE_CHANGE: f64 = 0.15;
/// Minimum fraction of time in which the processor was idle, as the message of 1988 reports it: "at
/// least 35 %".
const IDLE_IN_THE_MAIL: f64 = 0.35;
/// Explanation of how the 35 % rule causes a notch if both buffers hold three packets.
const MECHANISM: &str = concat!(
    "  The mechanism: Tahoe announces a larger window when the reader has freed two segments,\n",
    "  or 35 % of the buffer. Of two packets one is 50 % and suffices. Of three one is 33 % and\n",
    "  does not: the update waits for the second packet, while the sender may send one more and\n",
    "  then stops. Of four two are needed as well, but two more are under way in the meantime.\n",
);

/// Returns the report of the causal experiments. Errors of `write!` are ignored, because writing
/// to a string cannot fail.
#[must_use]
pub fn controls_text(outcomes: &[ControlOutcome]) -> String {
    let mut text = String::new();
    for (index, column) in COLUMNS.iter().enumerate() {
        let _ = writeln!(text, "{}, KB/s by packets of both buffers", column.title);
        let _ = write!(text, "  {:<34}", "");
        PACKETS.iter().for_each(|packets| {
            let _ = write!(text, "{packets:>7}");
        });
        text.push_str("   notch at 3   plateau   idle\n");
        for outcome in outcomes {
            row(&mut text, outcome, &outcome.columns[index]);
        }
        text.push('\n');
    }
    if let Some((base, controls)) = outcomes.split_first() {
        for (index, column) in COLUMNS.iter().enumerate() {
            notch_text(&mut text, column.title, index, base, controls);
            plateau_text(&mut text, column.title, index, base, controls);
        }
        documents_text(&mut text, base, controls);
    }
    text
}

fn row(text: &mut String, outcome: &ControlOutcome, column: &ControlColumn) {
    let _ = write!(text, "  {:<34}", outcome.control.title);
    if !column.changed && !outcome.control.changes.is_empty() {
        text.push_str("  (changes nothing here)\n");
        return;
    }
    for kilobytes in &column.kilobytes {
        let _ = write!(text, "{kilobytes:>7.0}");
    }
    let idle = column.sender_idle.last().copied().unwrap_or(0.0);
    let _ = writeln!(
        text,
        "   {:>10} {:>9.0} {:>6}",
        format!("{:+.1} %", column.notch() * 100.0),
        column.plateau(),
        percent(idle)
    );
}

impl ControlColumn {
    /// Returns the depth of the notch at three packets as a negative number. It is the relative
    /// deviation of that throughput from the geometric mean of the throughputs at two and at four
    /// packets.
    fn notch(&self) -> f64 {
        let [two, three, four] = TWO_THREE_FOUR.map(|place| self.kilobytes[place]);
        three / (two * four).sqrt() - 1.0
    }

    /// Returns the mean throughput with large buffers, in KB/s.
    fn plateau(&self) -> f64 {
        let plateau = &self.kilobytes[PLATEAU..];
        plateau.iter().sum::<f64>() / f64::from(u32::try_from(plateau.len()).unwrap_or(1))
    }
}

/// Writes the effect of each experiment on the notch at three packets.
fn notch_text(
    text: &mut String,
    title: &str,
    index: usize,
    base: &ControlOutcome,
    controls: &[ControlOutcome],
) {
    let notch = base.columns[index].notch();
    if notch > -LEAST_NOTCH {
        let _ = writeln!(
            text,
            "{title}: the model has no notch at 3 packets ({:+.1} %).",
            notch * 100.0
        );
        return;
    }
    let _ =
        writeln!(text, "{title}: the model has a notch of {:+.1} % at 3 packets.", notch * 100.0);
    for outcome in controls.iter().filter(|outcome| outcome.columns[index].changed) {
        let left = outcome.columns[index].notch();
        let (effect, conclusion) = match left / notch {
            share if share < 1.0 / 3.0 => ("is gone", "it is caused by"),
            share if share < 3.0 / 4.0 => ("is shallower", "it is partly caused by"),
            share if share < 4.0 / 3.0 => ("stays", "it is not caused by"),
            _ => ("is deeper", "it is partly hidden by"),
        };
        let effect = format!("the notch {effect} ({:+.1} %)", left * 100.0);
        text.push_str(&sentence(&outcome.control, &effect, conclusion));
        if outcome.control.cause == Some(WINDOW_UPDATE_RULE) && left / notch < 1.0 / 3.0 {
            text.push_str(MECHANISM);
        }
    }
}

/// Writes the effect of each experiment on the plateau, the throughput with large buffers.
fn plateau_text(
    text: &mut String,
    title: &str,
    index: usize,
    base: &ControlOutcome,
    controls: &[ControlOutcome],
) {
    let plateau = base.columns[index].plateau();
    let _ = writeln!(text, "{title}: with large buffers it carries {plateau:.0} KB/s.");
    for outcome in controls.iter().filter(|outcome| outcome.columns[index].changed) {
        let change = outcome.columns[index].plateau() / plateau - 1.0;
        let conclusion = match change.abs() {
            change if change < LEAST_CHANGE => "it is not limited by",
            change if change < LARGE_CHANGE => "it is partly limited by",
            _ => "it is limited above all by",
        };
        let effect =
            format!("it carries {:.0} KB/s ({:+.1} %)", plateau * (1.0 + change), change * 100.0);
        text.push_str(&sentence(&outcome.control, &effect, conclusion));
    }
    text.push('\n');
}

/// Returns the sentence about the effect of an experiment. If the experiment removes a possible
/// cause, the sentence ends with `conclusion` about this cause, such as "so it is not caused by
/// collisions".
fn sentence(control: &Control, effect: &str, conclusion: &str) -> String {
    let conclusion =
        control.cause.map_or_else(String::new, |cause| format!(", so {conclusion} {cause}"));
    format!("  {} {effect}{conclusion}.\n", control.condition)
}

/// Writes the statements of documents of 1988 and later about the causes, each with whether the
/// model agrees.
fn documents_text(text: &mut String, base: &ControlOutcome, controls: &[ControlOutcome]) {
    text.push_str("Statements of the documents, and whether the model agrees:\n");
    let named =
        |name: &str| controls.iter().find(|outcome| outcome.control.title.starts_with(name));
    let second = &base.columns[1];
    if let Some(quiet) = named("no collisions") {
        let (with, without) = (second.notch(), quiet.columns[1].notch());
        let verdict = if with > -LEAST_NOTCH {
            "the model has no notch to explain"
        } else if without / with < 1.0 / 3.0 {
            "the model supports it"
        } else if without / with < 3.0 / 4.0 {
            "the model supports it in part"
        } else {
            "the model does not support it"
        };
        let _ = writeln!(
            text,
            "  The notch comes from collisions of the third packet with the acknowledgement of the \
             first two: {verdict} ({:+.1} % with collisions, {:+.1} % without).",
            with * 100.0,
            without * 100.0
        );
    }
    let idle = second.sender_idle.last().copied().unwrap_or(0.0);
    let verdict =
        if idle >= IDLE_IN_THE_MAIL { "the model agrees" } else { "the model does not agree" };
    let _ = writeln!(
        text,
        "  On the plateau of the 82586 the processor was at least {} idle, and the chip just \
         stopped asking for data: {verdict} about the processor ({} idle).",
        percent(IDLE_IN_THE_MAIL),
        percent(idle)
    );
    if let Some(quick) = named("a LANCE with a FIFO for each half") {
        let falls = |column: &ControlColumn| {
            let steps = column.kilobytes.windows(2).map(|pair| pair[1] / pair[0] - 1.0);
            steps.fold(0.0_f64, f64::min)
        };
        let (with, without) = (falls(&base.columns[0]), falls(&quick.columns[0]));
        let largest =
            |outcome: &ControlOutcome| outcome.columns[0].kilobytes.last().copied().unwrap_or(1.0);
        let cost = largest(quick) / largest(base) - 1.0;
        let verdict = if without < with - 0.01 {
            "the model agrees"
        } else if cost < -LEAST_CHANGE {
            "the model agrees in part"
        } else {
            "the model does not need it"
        };
        let _ = writeln!(
            text,
            "  A LANCE without turnaround would starve acknowledgements, and the column would \
             fall: {verdict} (largest fall from one buffer to the next {:+.1} % with the \
             turnaround after receiving, {:+.1} % without; {:+.1} % with the largest buffers).",
            with * 100.0,
            without * 100.0,
            cost * 100.0
        );
    }
    if let Some(free) = named("NICs take nothing") {
        let at_four = free.columns[0].kilobytes[3] / base.columns[0].kilobytes[3] - 1.0;
        let verdict =
            if at_four > LEAST_CHANGE { "the model agrees" } else { "the model does not agree" };
        let _ = writeln!(
            text,
            "  Without contention on the 3/60's bus a model saturates far too early: {verdict} \
             ({:+.1} % at 4 packets without it).",
            at_four * 100.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::CONTROLS;

    fn column(kilobytes: [f64; 9]) -> ControlColumn {
        ControlColumn {
            kilobytes: kilobytes.to_vec(),
            sender_idle: vec![0.35; 9],
            collisions: vec![0.0; 9],
            changed: true,
        }
    }

    const DIPS: [f64; 9] = [100.0, 200.0, 210.0, 300.0, 300.0, 300.0, 300.0, 300.0, 300.0];
    const RISES: [f64; 9] = [100.0, 200.0, 245.0, 300.0, 300.0, 300.0, 300.0, 300.0, 300.0];

    /// Returns made-up results of all experiments. The unchanged model has a notch. Only the
    /// experiment whose title begins with `heals` removes it.
    fn outcomes(heals: &str) -> Vec<ControlOutcome> {
        let outcome = |control: Control| {
            let kilobytes = if control.title.starts_with(heals) { RISES } else { DIPS };
            ControlOutcome { control, columns: vec![column(kilobytes), column(kilobytes)] }
        };
        CONTROLS.into_iter().map(outcome).collect()
    }

    #[test]
    fn a_notch_that_is_gone_without_a_property_is_caused_by_it() {
        let text = controls_text(&outcomes("no collisions"));
        let says = |text: &str, sentence: &str| assert!(text.contains(sentence), "{text}");
        says(
            &text,
            "without collisions the notch is gone (+0.0 %), so it is caused by collisions.",
        );
        says(&text, "the model supports it (-14.3 % with collisions, +0.0 % without)");
        assert!(!text.contains("The mechanism"), "{text}");

        let text = controls_text(&outcomes("window update at 33"));
        says(
            &text,
            "without collisions the notch stays (-14.3 %), so it is not caused by collisions.",
        );
        says(
            &text,
            "the notch is gone (+0.0 %), so it is caused by the 35 % rule.\n  The mechanism",
        );
        says(&text, "with window updates at 50 %, as in Reno, the notch stays (-14.3 %).\n");
        says(&text, "the model does not support it");
    }

    #[test]
    fn column_titles_end_where_their_columns_end() {
        let text = controls_text(&outcomes("no collisions"));
        let mut lines = text.lines().skip(1);
        let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(head.chars().count(), row.chars().count(), "{text}");
        let notch_ends = head.find("notch at 3").unwrap() + "notch at 3".len();
        assert_eq!(row.as_bytes()[notch_ends - 1], b'%', "{text}");
    }

    #[test]
    fn a_processor_that_is_more_than_35_per_cent_idle_agrees_with_the_mail() {
        let mut outcomes = outcomes("");
        let mut with_idle = |share: f64| {
            outcomes[0].columns[1].sender_idle = vec![share; 9];
            controls_text(&outcomes)
        };
        let agrees =
            "at least 35 % idle, and the chip just stopped asking for data: the model agrees";
        for share in [0.35, 0.71] {
            let text = with_idle(share);
            assert!(text.contains(agrees), "{text}");
        }
        assert!(!with_idle(0.2).contains(agrees));
    }
}
