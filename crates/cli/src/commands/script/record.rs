//! The result files of a run of scripts: JSON, and a capture.

use crate::output::{Failure, cannot_write, write_file};
use linerate_link::capture_file::{CaptureWriter, Direction, Record};
use linerate_link::time_of_day;
use linerate_script::{Report, ScriptFile, Verdict};
use linerate_stack::{Capabilities, Medium};
use linerate_units::Duration;
use serde::Serialize;
use std::path::Path;

/// The result of a script, as a line of the JSON file.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    file: &'a str,
    against: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
    seconds: f64,
    packets: usize,
}

impl<'a> Row<'a> {
    /// Creates the row for a script file that cannot be read, and whose script was therefore not
    /// run.
    pub(super) const fn unread(file: &'a str, against: &'a str, verdict: &'a Verdict) -> Self {
        Self { file, against, verdict, seconds: 0.0, packets: 0 }
    }

    pub(super) fn new(named: &'a ScriptFile, against: &'a str, report: &'a Report) -> Self {
        Self {
            file: &named.name,
            against,
            verdict: &report.verdict,
            seconds: report.took.as_secs_f64(),
            packets: report.trace.len(),
        }
    }
}

/// Writes a line of JSON for each script.
pub(super) fn write_json(path: &Path, rows: &[Row<'_>]) -> Result<(), Failure> {
    let mut text = String::new();
    for row in rows {
        let line =
            serde_json::to_string(row).map_err(|error| Failure::running(error.to_string()))?;
        text.push_str(&line);
        text.push('\n');
    }
    write_file(Some(path), || text, cannot_write)
}

/// A capture file with the packets of all scripts, and a separate interface for each script.
#[derive(Debug)]
pub(super) struct Capture {
    writer: CaptureWriter,
    begin: Duration,
}

impl Capture {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let writer = CaptureWriter::create(path).map_err(|error| cannot_write(path, error))?;
        Ok(Self { writer, begin: time_of_day() })
    }

    pub(super) fn add(&mut self, named: &ScriptFile, report: &Report) {
        // The packets of a script for IPv4 that is translated to IPv6 become longer, and can exceed
        // the MTU that the script sets. If so, the capture file states the length of the longest
        // packet as the MTU.
        let longest = report.trace.iter().map(|packet| packet.bytes.len()).max().unwrap_or(0);
        let mtu = usize::from(named.script.settings.mtu).max(longest);
        let capabilities = Capabilities::new(Medium::Ip, mtu);
        let interface = self.writer.add_interface(&named.name, &capabilities);
        for packet in &report.trace {
            self.writer.write(&Record {
                interface,
                time: self.begin + packet.at,
                direction: if packet.sent { Direction::Sent } else { Direction::Received },
                bytes: &packet.bytes,
            });
        }
        // Each script starts at time zero, but times in a capture file should not decrease. The
        // duration of this script is therefore added to the times of the next one.
        self.begin += report.took;
    }

    pub(super) fn finish(self) -> Result<(), Failure> {
        let cannot = |error| {
            format!(
                "the capture cannot be written ({error}): make room for it, or leave --pcap out"
            )
        };
        self.writer.finish().map_err(|error| Failure::input(cannot(error)))
    }
}
