//! `linerate dump`: prints a capture file as text.

mod sequence;

use crate::output::{Failure, Page};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_link::capture_file::{CaptureError, CaptureReader, Direction, LinkType, Packet};
use linerate_units::Duration;
use linerate_wire::{FrameLine, PacketLine, SequenceBases};
use sequence::SequenceNumbers;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  linerate dump night.pcapng | less
  tcpdump -i eth0 -w - -U tcp | linerate dump -

Reads pcapng and pcap of either byte order. Each line has the time in seconds since the first \
packet, the direction if the file contains it (> sent, < received), and the packet. Sequence and \
acknowledgement numbers are relative to those of the SYNs, which are absolute.";

/// The options of `linerate dump`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DumpArgs {
    /// The capture file; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print the sequence and acknowledgement numbers as they are in the packets
    #[arg(long)]
    absolute: bool,
}

/// Prints a line for each packet of the capture file.
pub(crate) fn run(args: &DumpArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let failure = |error: CaptureError| Failure::input(format!("{}: {error}", args.file.display()));
    let numbers = (!args.absolute).then(SequenceNumbers::default);
    if args.file.as_os_str() == "-" {
        // Standard input may be a live capture. Each packet is therefore printed as soon as it is
        // read, and not only when a buffer is full.
        let reader = CaptureReader::new(io::stdin().lock());
        return dump(reader, true, numbers, interrupt, failure);
    }
    let reader = File::open(&args.file).map_err(CaptureError::Open).and_then(CaptureReader::new);
    dump(reader, false, numbers, interrupt, failure)
}

fn dump<R: Read>(
    reader: Result<CaptureReader<R>, CaptureError>,
    at_once: bool,
    mut numbers: Option<SequenceNumbers>,
    interrupt: &Interrupt,
    failure: impl Fn(CaptureError) -> Failure,
) -> Result<(), Failure> {
    let mut reader = reader.map_err(&failure)?;
    let mut page = Page::new();
    let mut first = None;
    while !interrupt.is_raised() {
        let packet = match reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            Err(error) => {
                page.show()?;
                return Err(failure(error));
            }
        };
        if first.is_none() {
            first = packet.time;
        }
        let bases = numbers.as_mut().map(|numbers| numbers.bases(&packet)).unwrap_or_default();
        let read = page.line(format_args!("{}", Line { packet: &packet, first, bases }))?;
        if !read || at_once && !page.show()? {
            return Ok(());
        }
    }
    page.show().map(|_| ())
}

/// A packet that is displayed as a line of text.
struct Line<'a> {
    packet: &'a Packet<'a>,
    first: Option<Duration>,
    bases: SequenceBases,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packet = self.packet;
        write_time(f, packet.time, self.first)?;
        match packet.direction {
            Some(Direction::Sent) => f.write_str(" > ")?,
            Some(Direction::Received) => f.write_str(" < ")?,
            None => f.write_str("   ")?,
        }
        if packet.interface > 0 {
            write!(f, "interface {}: ", packet.interface)?;
        }
        match packet.link_type {
            LinkType::Ethernet => FrameLine(packet.bytes).relative_to(self.bases).fmt(f)?,
            LinkType::Ip => PacketLine(packet.bytes).relative_to(self.bases).fmt(f)?,
            LinkType::Other(number) => {
                write!(f, "link type {number}, length {}", packet.bytes.len())?;
            }
        }
        if packet.bytes.len() as u64 != u64::from(packet.original_length) {
            write!(f, " [{} of {} bytes captured]", packet.bytes.len(), packet.original_length)?;
        }
        Ok(())
    }
}

/// Writes the time of a packet: the seconds since the first packet of the file, to the nanosecond.
/// Packets of several interfaces may not be in the order of their times. If a packet was captured
/// before the first one in the file, its time is negative.
fn write_time(
    f: &mut fmt::Formatter<'_>,
    time: Option<Duration>,
    first: Option<Duration>,
) -> fmt::Result {
    let (Some(time), Some(first)) = (time, first) else {
        return f.write_str("            -");
    };
    let nanos = time.abs_diff(first).as_nanos();
    let sign = if time < first { "-" } else { "" };
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let text = format_args!("{sign}{seconds}.{fraction:09}").to_string();
    write!(f, "{text:>13}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(packet: &Packet<'_>) -> String {
        let bases = SequenceBases::default();
        Line { packet, first: Some(Duration::from_secs(10)), bases }.to_string()
    }

    #[test]
    fn a_line_contains_time_direction_and_packet() {
        let packet = Packet {
            interface: 0,
            link_type: LinkType::Other(147),
            time: Some(Duration::from_secs(10) + Duration::from_nanos(1_500)),
            direction: Some(Direction::Received),
            original_length: 3,
            bytes: &[0; 3],
        };
        assert_eq!(line(&packet), "  0.000001500 < link type 147, length 3");
        let earlier =
            Packet { time: Some(Duration::from_millis(9_999)), direction: None, ..packet };
        assert_eq!(line(&earlier), " -0.001000000   link type 147, length 3");
        let cut = Packet { time: None, original_length: 60, interface: 2, ..packet };
        assert_eq!(
            line(&cut),
            "            - < interface 2: link type 147, length 3 [3 of 60 bytes captured]"
        );
    }
}
