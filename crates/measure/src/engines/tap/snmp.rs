//! The kernel's counters of invalid packets. A run must not increase them, because linerate sends
//! valid packets only, unless its frames are impaired.

use crate::bench_error::BenchError;
use linerate_evidence::{EndCounters, names};
use std::fs;

/// Values of the counters, in the order of [`WORDS`].
pub(crate) type Numbers = [u64; WORDS.len()];

/// The counters: the group and the name in `/proc/net/snmp`, and the name that all benches use.
const WORDS: [(&str, &str, &str); 4] = [
    ("Ip", "InHdrErrors", "bad_packets"),
    ("Ip", "InDiscards", "discarded_packets"),
    ("Tcp", "InErrs", "bad_segments"),
    ("Tcp", "InCsumErrors", names::BAD_CHECKSUMS),
];

/// Reads the counters of the current network namespace. A counter that the kernel does not have is
/// zero.
pub(crate) fn read() -> Result<Numbers, BenchError> {
    let text = fs::read_to_string("/proc/self/net/snmp");
    let text = text.map_err(|error| BenchError::io("reading /proc/self/net/snmp", error))?;
    Ok(WORDS.map(|(group, word, _)| number(&text, group, word).unwrap_or(0)))
}

/// Adds the increase of each counter from `before` to `after` to the counters of the kernel's end.
pub(crate) fn note_difference(before: Numbers, after: Numbers, into: &mut EndCounters) {
    for ((_, _, name), (before, after)) in WORDS.iter().zip(before.iter().zip(after)) {
        into.set(name, after.saturating_sub(*before));
    }
}

/// Returns the counter `word` of `group` from the content of `/proc/net/snmp`, which has a line of
/// names and a line of values for each group. Returns `None` if there is no such counter.
fn number(text: &str, group: &str, word: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (words, numbers) = (lines.next()?, lines.next()?);
    let mut pairs = words.split_whitespace().zip(numbers.split_whitespace());
    pairs.find(|(name, _)| *name == word)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_group_and_name() {
        let text = "Ip: Forwarding InErrs\nIp: 1 2\nTcp: MaxConn InErrs\nTcp: -1 44\n";
        assert_eq!(number(text, "Tcp", "InErrs"), Some(44));
        assert_eq!(number(text, "Ip", "InErrs"), Some(2));
        assert_eq!(number(text, "Udp", "InErrs"), None);
    }
}
