//! The text output of `linerate ping`, in the format of iputils.

use linerate_tools::ping::{Answer, Tally};
use std::fmt::Write;

/// Formats the output line for a reply or an ICMP error.
pub(super) fn line(answer: &Answer) -> String {
    match answer {
        Answer::Reply { source, number, length, ttl, round_trip, again, wrong_at } => {
            let time = milliseconds(round_trip.as_secs_f64());
            let mut line =
                format!("{length} bytes from {source}: icmp_seq={number} ttl={ttl} time={time} ms");
            line.push_str(if *again { " (DUP!)" } else { "" });
            if let Some(at) = wrong_at {
                // Writing to a string cannot fail.
                let _ = write!(line, " (byte {at} is wrong)");
            }
            line + "\n"
        }
        Answer::Problem(problem) => {
            format!("From {}: icmp_seq={} {}\n", problem.reporter, problem.sequence, problem.error)
        }
    }
}

/// Formats the statistics that the command prints at its end.
pub(super) fn sum(host: &str, tally: &Tally) -> String {
    let mut text = format!(
        "\n--- {host} ping statistics ---\n{} packets transmitted, {} received, ",
        tally.sent, tally.received
    );
    for (count, what) in [(tally.duplicates, "duplicates"), (tally.problems, "errors")] {
        if count > 0 {
            let _ = write!(text, "+{count} {what}, ");
        }
    }
    let loss = format!("{:.4}", tally.loss_percent());
    let loss = loss.trim_end_matches('0').trim_end_matches('.');
    let _ = writeln!(text, "{loss}% packet loss, time {}ms", tally.time().as_millis());
    if let Some(times) = tally.round_trips.summary() {
        let [least, mean, most, deviation] = times.map(milliseconds);
        let _ = writeln!(text, "rtt min/avg/max/mdev = {least}/{mean}/{most}/{deviation} ms");
    }
    text
}

/// Formats a time in milliseconds: three decimals, or four below 1 ms.
fn milliseconds(seconds: f64) -> String {
    let millis = seconds * 1_000.0;
    if millis < 1.0 { format!("{millis:.4}") } else { format!("{millis:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Duration;
    use std::net::Ipv4Addr;

    #[test]
    fn replies_have_the_usual_format() {
        let reply = Answer::Reply {
            source: Ipv4Addr::new(10, 0, 0, 1).into(),
            number: 3,
            length: 64,
            ttl: 64,
            round_trip: Duration::from_nanos(45_678),
            again: true,
            wrong_at: Some(9),
        };
        assert_eq!(
            line(&reply),
            "64 bytes from 10.0.0.1: icmp_seq=3 ttl=64 time=0.0457 ms (DUP!) (byte 9 is wrong)\n"
        );
    }
}
