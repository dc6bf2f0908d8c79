//! `linerate ping --typed`: characters typed over a TCP connection on a serial line.

use super::Series;
use super::line::{ECHO, configuration, for_line, own, with_neighbour};
use crate::commands::tool_host::On;
use crate::output::{Failure, print};
use crate::own_host::random_seed;
use linerate_link::serial::DirectionCounters;
use linerate_link::{LinkSpec, SerialConfig, SerialLink};
use linerate_stack::{Host, Stack};
use linerate_tools::typed::{TypedError, TypedParameters, TypedTally, type_characters};
use linerate_units::Duration;
use std::fmt::Write;
use std::net::SocketAddr;

/// Default number of characters to type.
const COUNT: u64 = 20;

/// Types the characters one by one, and prints a table of the bytes and the time that each
/// character took until its echo.
pub(super) fn run(series: &Series<'_>) -> Result<(), Failure> {
    match &series.args.own.on {
        On::Line(baud) => on_own_line(series, *baud),
        On::Link(LinkSpec::Serial(device, baud)) => on_device(series, device, *baud),
        _ => Err(Failure::input(
            "--typed measures a serial line: add --on serial:2400, or --on serial:DEVICE@BAUD",
        )),
    }
}

/// Types to a second linerate host in this process, over a serial line. If `--header-compression`
/// is absent, all characters are typed twice, with header compression and without it, so that the
/// user can compare them.
fn on_own_line(series: &Series<'_>, baud: u32) -> Result<(), Failure> {
    let usual = configuration(series, baud)?;
    let configs = match series.args.own.link.header_compression {
        Some(_) => vec![usual],
        None => {
            let with = usual.clone();
            vec![with, SerialConfig { header_compression: false, ..usual }]
        }
    };
    print(&heading(series, &format!("serial:{baud}, a pseudo-terminal"))?)?;
    for config in configs {
        if !series.interrupt.is_raised() {
            let tally = with_neighbour(series, &config, |near| measured(series, near))?;
            print(&row(config.header_compression, &tally))?;
        }
    }
    Ok(())
}

fn on_device(series: &Series<'_>, device: &str, baud: u32) -> Result<(), Failure> {
    let config = configuration(series, baud)?;
    let link = SerialLink::open(device, &config);
    let link = link.map_err(|error| Failure::input(error.to_string()))?;
    let tally = measured(series, link)?;
    print(&heading(series, &format!("serial:{device}@{baud}"))?)?;
    print(&row(config.header_compression, &tally))
}

fn measured(series: &Series<'_>, link: SerialLink) -> Result<TypedTally, Failure> {
    let seed = random_seed()?;
    let compresses = link.config().header_compression;
    let config = for_line(series.args.own.stack_config(series.own, None, &seed), compresses);
    let mut host = Host::new(Stack::new(config, seed), link);
    let parameters = TypedParameters {
        destination: SocketAddr::new(series.destination, ECHO),
        count: count(series),
        interval: series.args.interval.unwrap_or(Duration::ZERO),
        timeout: series.args.timeout,
    };
    type_characters(&mut host, &parameters, series.interrupt).map_err(|error| match error {
        TypedError::Refused(_) => Failure::input(error.to_string()),
        _ => Failure::running(error.to_string()),
    })
}

fn count(series: &Series<'_>) -> u64 {
    series.args.count.map_or(COUNT, |count| count.get().into())
}

fn heading(series: &Series<'_>, line: &str) -> Result<String, Failure> {
    Ok(format!(
        "{} characters typed at {}, from {} on {line}\n\n\
         header         bytes of packets     bytes on the line         echo time in ms\n\
         compression     there      back       there      back     least     mean     most\n",
        count(series),
        series.destination,
        own(series)?.address(),
    ))
}

/// Formats a row of the table. `header_compression` says whether the characters were typed with
/// header compression. For each echoed character, the row contains the bytes of the packets in both
/// directions. The bytes on the line follow, which include framing, and then the echo times in
/// milliseconds.
fn row(header_compression: bool, tally: &TypedTally) -> String {
    let mut row = format!("{:<11}", if header_compression { "on" } else { "off" });
    let counts = |direction: &DirectionCounters| [direction.compressed_bytes, direction.line_bytes];
    let ([sent, sent_on_line], [received, received_on_line]) =
        (counts(&tally.sent), counts(&tally.received));
    for bytes in [sent, received, sent_on_line, received_on_line] {
        #[allow(clippy::cast_precision_loss, reason = "the figure is rounded")]
        let each = bytes as f64 / tally.echoed.max(1) as f64;
        // Writing to a string cannot fail.
        let _ = write!(row, "{each:>10.1}");
    }
    for seconds in
        tally.echo_times.summary().iter().flat_map(|[least, mean, most, _]| [least, mean, most])
    {
        let _ = write!(row, "{:>9.1}", seconds * 1_000.0);
    }
    row + "\n"
}
