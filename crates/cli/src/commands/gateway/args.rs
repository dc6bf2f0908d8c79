//! The options of `linerate gateway`.

use crate::amounts::some_time;
use crate::own_host::cidr;
use clap::{Args, ValueEnum};
use linerate_units::Duration;
use linerate_wire::IpCidr;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  linerate gateway -- curl http://example.org/   runs curl in a network of its own, as any user
  linerate gateway --into 4711                   gives the network of process 4711 a way out
  linerate gateway --unix net.sock               serves a virtual machine of QEMU, started with
                               `-netdev stream,id=net,addr.type=unix,addr.path=net.sock`
  linerate gateway --metrics 127.0.0.1:9100 -- ./server

Clients see the gateway at each --address, and its name server at the next address. IPv4 and IPv6 \
are relayed alike, as far as this machine has them. A connection is accepted when its far end has \
accepted, so a client sees the true reason of a failure. Ctrl-C lets connections finish; a second \
one ends them. The exit code is that of COMMAND, or 0.";

/// How the gateway responds to echo requests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Echo {
    /// No reply
    Drop,
    /// A reply in the name of the destination, without asking the destination
    Answer,
    /// An error: communication is prohibited
    Reject,
}

/// The options of `linerate gateway`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatewayArgs {
    /// The link of the clients: a TUN device in the network namespace of this process
    #[arg(long, value_name = "PID", conflicts_with_all = ["tun", "fd", "unix", "command"])]
    pub(super) into: Option<u32>,

    /// The link of the clients: an existing TUN device of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fd", "unix", "command"])]
    pub(super) tun: Option<String>,

    /// The link of the clients: a TUN device that the parent process has opened, as descriptor N
    #[arg(long, value_name = "N", conflicts_with_all = ["unix", "command"])]
    pub(super) fd: Option<i32>,

    /// The link of the clients: Ethernet frames in QEMU's stream format, from the first program
    /// that connects to a new Unix socket at PATH
    #[arg(long, value_name = "PATH", conflicts_with_all = ["command"])]
    pub(super) unix: Option<PathBuf>,

    /// The largest IP packet in bytes, 88 to 65535 [default: 65520 for a device that the command
    /// creates, 1500 otherwise]
    #[arg(long, value_name = "BYTES")]
    pub(super) mtu: Option<usize>,

    /// The address of the gateway, with the prefix length of the network of its clients; twice, for
    /// IPv4 and IPv6. If given, IP versions without an address are not relayed
    /// [default: 10.0.2.2/24 and fd00::2/64]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = cidr)]
    pub(super) address: Vec<IpCidr>,

    /// The address of the client, if the command configures it; once for each --address
    /// [default: the 13th after --address]
    #[arg(long, value_name = "ADDR")]
    pub(super) client: Vec<IpAddr>,

    /// The resolver to which queries to the gateway's name server are relayed [default: the first
    /// of /etc/resolv.conf]
    #[arg(long, value_name = "ADDR")]
    pub(super) dns: Option<IpAddr>,

    /// Relay flows to the addresses of the gateway to the loopback address of this machine
    #[arg(long)]
    pub(super) host_loopback: bool,

    /// Refuse flows to a prefix of either IP version, such as 169.254.0.0/16; can be repeated
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = prefix)]
    pub(super) deny: Vec<IpCidr>,

    /// The answer to echo requests
    #[arg(long, value_name = "POLICY", value_enum, default_value = "drop")]
    pub(super) echo: Echo,

    /// Serve metrics in the text format of Prometheus over HTTP at this address, path /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) metrics: Option<SocketAddr>,

    /// Maximum number of flows at a time
    #[arg(long, value_name = "COUNT", default_value_t = 65_536)]
    pub(super) flows: usize,

    /// Seconds that connections have to finish after Ctrl-C
    #[arg(long, value_name = "SECONDS", value_parser = some_time, default_value = "10")]
    pub(super) drain: Duration,

    /// The program to run in a network of its own, whose only way out is the gateway
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// The arguments of `gateway-inside`, the process that opens the device inside a namespace.
#[derive(Debug, Args)]
pub(crate) struct InsideArgs {
    /// The descriptor of a Unix socket, on which the process passes the device to the gateway
    pub(super) socket: i32,
    /// The process whose network namespace is joined; 0 stays in the present one
    pub(super) into: u32,
    /// The MTU of the device, in bytes
    pub(super) mtu: usize,
    /// Pairs of the client's and the gateway's address, with prefix lengths; one pair for each IP
    /// version
    #[arg(value_delimiter = ',', num_args = 1)]
    pub(super) addresses: Vec<IpCidr>,
    /// The program to run in the namespace, with its arguments
    #[arg(last = true)]
    pub(super) command: Vec<OsString>,
}

/// Parses a prefix of either IP version, such as `169.254.0.0/16`.
fn prefix(text: &str) -> Result<IpCidr, String> {
    let parsed = Some(text).filter(|text| text.contains('/')).and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        "write a prefix with its length, such as 169.254.0.0/16 or fd00:ec2::/32".to_owned()
    })
}
