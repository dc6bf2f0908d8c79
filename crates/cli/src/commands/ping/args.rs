//! The options of `linerate ping`.

use crate::amounts::{count, some_time};
use crate::commands::tool_host::{ToolHostArgs, size};
use clap::Args;
use linerate_units::Duration;
use std::num::NonZeroU32;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  linerate ping 10.0.0.1                     the kernel gets that address in a private network
  linerate ping 10.0.0.1 --interval 0 --count 10000 --quiet
  linerate ping 2001:db8::1
  linerate ping 192.0.2.1 --on tap:tap0 --address 192.0.2.9/24
                                             from a host on an existing interface, created with
                                             `ip tuntap add mode tap user NAME name tap0`
  linerate ping 192.0.2.1 --on tap:tap0 --dhcp
                                             from a host that a DHCP server configures
  linerate ping 2001:db8::1 --on tap:tap0 --autoconf
                                             takes an address from the routers of the link
  linerate ping 192.0.2.1 --on packet:eth0 --address 192.0.2.9/24
                                             from a host that shares eth0 with the kernel, as root
  linerate ping 192.0.2.1 --on xdp:eth0:1 --address 192.0.2.9/24
                                             bypasses the kernel at the driver's second queue
  linerate ping 10.0.0.1 --on serial:2400    both hosts at the ends of a line of 2400 baud
  linerate ping 10.0.0.1 --on serial:2400 --typed
                                             characters and their echo over TCP, with and without
                                             header compression: RFC 1144 section 1 counts 41 bytes
                                             each way without, and aims at 5 with
  linerate ping 10.0.0.1 --on serial:/dev/ttyS0@9600 --address 10.0.0.2/24

The exit code is 0 if at least one request was answered, and 1 otherwise.";

/// The options of `linerate ping`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PingArgs {
    /// The destination
    #[arg(value_name = "HOST")]
    pub(super) host: String,

    #[command(flatten)]
    pub(super) own: ToolHostArgs,

    /// Instead of sending echo requests, type characters over a TCP connection on a serial line,
    /// and measure the time of their echo. HOST needs an echo service at port 7. On serial:BAUD,
    /// measure with and without header compression, unless --header-compression is given
    #[arg(long, conflicts_with_all = ["size", "pcap"])]
    pub(super) typed: bool,

    /// Number of requests [default: until Ctrl-C], or of characters [default: 20]
    #[arg(long, value_name = "COUNT", value_parser = count)]
    pub(super) count: Option<NonZeroU32>,

    /// Seconds between requests; 0 sends the next request after each reply [default: 1, or 0 with
    /// --typed]
    #[arg(long, value_name = "SECONDS")]
    pub(super) interval: Option<Duration>,

    /// Seconds to wait for a reply
    #[arg(long, value_name = "SECONDS", value_parser = some_time, default_value = "2")]
    pub(super) timeout: Duration,

    /// Bytes of data in each request
    #[arg(long, value_name = "SIZE", default_value = "56B", value_parser = size)]
    pub(super) size: usize,

    /// Write every frame to this pcapng file
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,

    /// Print only the statistics at the end
    #[arg(long)]
    pub(super) quiet: bool,
}
