//! The text output of `linerate why`.

use linerate_evidence::{Change, RunEvidence};
use linerate_units::Rate;
use linerate_verdict::diagnosis::{End, Limit, Verdict, contention};
use std::fmt::Write;

/// Formats the progress line for a completed run: the intervention of the run, and its rate.
pub(super) fn progress(change: Option<Change>, run: Option<&RunEvidence>) -> String {
    let what = change.map_or_else(|| "plain transfer".to_owned(), |change| change.to_string());
    let Some(run) = run else { return format!("{what}: not possible here") };
    let rate = rate(run.bytes_per_second);
    match contention(run) {
        None => format!("{what}: {rate}"),
        Some((end, _, share)) => {
            format!(
                "{what}: {rate}, contended: the {} lost {:.0} % to other work",
                name(end),
                share * 100.0
            )
        }
    }
}

/// Formats the verdict as one line: the limit, the rate and the confidence.
pub(super) fn headline(verdict: &Verdict) -> String {
    let rate = rate(verdict.bytes_per_second);
    match verdict.limit {
        Limit::Contended => {
            format!("contended: other work held the threads; {rate} is not a result\n")
        }
        Limit::NotIdentified => format!("not-identified: {rate}, and no limit is proved\n"),
        limit => {
            format!("{limit}: {rate}, confidence {:.0} %\n", verdict.confidence * 100.0)
        }
    }
}

/// Formats the report: the verdict first, then its evidence, then the advice.
pub(super) fn report(path: &str, verdict: &Verdict) -> String {
    let mut text = headline(verdict);
    // Writing to a string cannot fail.
    let _ = write!(text, "{path}\n\nEvidence:\n");
    for line in &verdict.evidence {
        let threshold = match (&line.threshold, line.reason) {
            (Some(threshold), Some(reason)) => format!("  ({threshold}: {reason})"),
            (Some(threshold), None) => format!("  ({threshold})"),
            _ => String::new(),
        };
        let (end, counter) = (name(line.end), line.counter);
        let _ = writeln!(text, "  {end:<8}  {counter:<32} {:>10.4}{threshold}", line.value);
    }
    if !verdict.interventions.is_empty() {
        text.push_str("Interventions, as multiples of the plain rate:\n");
    }
    for line in &verdict.interventions {
        let [low, high] = line.interval;
        let interval = if line.is_lower_bound {
            format!("at least {low:.2}")
        } else {
            format!("{low:.2} to {high:.2}")
        };
        let losses =
            line.loss_effect.map_or_else(String::new, |ratio| format!(", losses × {ratio:.2}"));
        let queue =
            line.queue_effect.map_or_else(String::new, |ratio| format!(", queue × {ratio:.2}"));
        let change = line.change.to_string();
        let _ = writeln!(text, "  {change:<40} {:>6.2}  ({interval}){losses}{queue}", line.effect);
    }
    if !verdict.skipped.is_empty() {
        let names: Vec<String> = verdict.skipped.iter().map(Change::to_string).collect();
        let _ = writeln!(text, "Not possible on this path: {}.", names.join("; "));
    }
    let _ = writeln!(text, "Advice: {}", verdict.advice);
    text
}

fn name(end: End) -> &'static str {
    match end {
        End::Sender => "sender",
        End::Receiver => "receiver",
        End::Both => "both",
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion from f64 saturates"
)]
fn rate(bytes_per_second: f64) -> String {
    Rate::from_bits_per_second((bytes_per_second * 8.0) as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_verdict::diagnosis::{EvidenceLine, InterventionLine};

    #[test]
    fn the_first_line_is_the_verdict() {
        let mut verdict = Verdict {
            limit: Limit::SendBuffer,
            confidence: 0.9,
            bytes_per_second: 1e6,
            evidence: vec![EvidenceLine {
                counter: "send_buffer_full_share",
                end: End::Sender,
                value: 0.97,
                threshold: Some("at least 0.6".to_owned()),
                reason: Some("a limit is one that holds most of the time"),
            }],
            interventions: vec![InterventionLine {
                change: Change::SendBufferLarger,
                effect: 1.98,
                interval: [1.9, 2.06],
                is_lower_bound: false,
                loss_effect: None,
                queue_effect: Some(0.1),
            }],
            skipped: vec![Change::Discard, Change::OtherCpu],
            advice: Limit::SendBuffer.advice(),
        };
        let text = report("a path", &verdict);
        assert!(text.starts_with("send-buffer: 8.00 Mb/s, confidence 90 %\n"), "{text}");
        assert!(
            text.contains("send buffer at least four times larger")
                && text.contains("1.98  (1.90 to 2.06), queue × 0.10")
        );
        assert!(text.contains("Advice: Enlarge the send buffer"), "{text}");
        let skipped = "Not possible on this path: reader discards, without copy or pauses; \
                       writer on another CPU.";
        assert!(text.contains(skipped), "{text}");
        verdict.limit = Limit::Contended;
        assert!(report("a path", &verdict).starts_with("contended: other work held the threads"));
    }
}
