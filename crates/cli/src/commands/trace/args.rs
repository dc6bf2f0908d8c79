//! The options of `linerate trace`.

use crate::amounts::some_time;
use crate::commands::tool_host::{ToolHostArgs, size};
use clap::Args;
use linerate_units::Duration;

const EXAMPLES: &str = "\
Examples:
  linerate trace 192.0.2.1 --on tap:tap0 --address 198.51.100.9/24 --gateway 198.51.100.1
                                             from a host on an existing interface
  linerate trace 2001:db8::1 --on tap:tap0 --address 2001:db8:1::9/64 --gateway 2001:db8:1::1
  linerate trace 192.0.2.1 --on packet:eth0 --dhcp --icmp
                                             with echo requests, from a host that a DHCP server
                                             configures

Each line is a router, with the times of its answers; `*` is a probe without an answer in time. \
Marks behind a time: !N no route, !H the host does not answer, !X prohibited, !P unknown protocol, \
!F-MTU the probe is too big.

The exit code is 0 if the destination has answered, and 1 otherwise.";

/// The options of `linerate trace`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// The destination
    #[arg(value_name = "HOST")]
    pub(super) host: String,

    #[command(flatten)]
    pub(super) own: ToolHostArgs,

    /// Send echo requests instead of datagrams
    #[arg(long)]
    pub(super) icmp: bool,

    /// The first TTL or hop limit
    #[arg(long, value_name = "HOPS", default_value = "1",
          value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) first_hop: u8,

    /// The last TTL or hop limit
    #[arg(long, value_name = "HOPS", default_value = "30",
          value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) max_hops: u8,

    /// Number of probes for each hop
    #[arg(long, value_name = "COUNT", default_value = "3",
          value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(super) probes: u8,

    /// Seconds to wait for the answers of a hop
    #[arg(long, value_name = "SECONDS", value_parser = some_time, default_value = "2")]
    pub(super) timeout: Duration,

    /// Bytes of data in each probe
    #[arg(long, value_name = "SIZE", default_value = "32B", value_parser = size)]
    pub(super) size: usize,

    /// The port of the first datagram; each further one goes to the next port
    #[arg(long, value_name = "PORT", default_value = "33434", conflicts_with = "icmp",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) port: u16,

    /// Print the hops as JSON
    #[arg(long)]
    pub(super) json: bool,
}
