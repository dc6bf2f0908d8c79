//! The options of `linerate ping`.

use crate::amounts::{count, mtu, some_time};
use crate::own_host::{LinkArgs, cidr, line_of_this_command};
use clap::Args;
use linerate_link::serial::parse_baud;
use linerate_link::{LinkOptions, LinkSpec, ParseLinkError};
use linerate_stack::Medium;
use linerate_units::{Bytes, Duration};
use linerate_wire::IpCidr;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

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

    /// The link of linerate's host: a TAP or TUN device in a private network (tap, tun), an
    /// existing one (tap:NAME, tun:NAME), an interface shared with the kernel through a packet
    /// socket (packet:NAME) or AF_XDP (xdp:NAME, or xdp:NAME:QUEUE), a serial line
    /// (serial:DEVICE, or serial:DEVICE@BAUD), or a line to another host of linerate's
    /// (serial:BAUD)
    #[arg(long, value_name = "LINK", default_value = "tap")]
    pub(super) on: On,

    /// The address of linerate's host with the prefix length of its network [default: a neighbour
    /// of HOST, in a private network and on serial:BAUD]
    #[arg(long, value_name = "ADDR/LENGTH", value_parser = cidr)]
    pub(super) address: Option<IpCidr>,

    /// The router to hosts outside the network of --address
    #[arg(long, value_name = "ADDR")]
    pub(super) gateway: Option<IpAddr>,

    /// Get the address of linerate's host and its router from a DHCP server
    #[arg(long, conflicts_with_all = ["address", "gateway"])]
    pub(super) dhcp: bool,

    /// Take IPv6 addresses and the router from the router advertisements of the link, a TAP device
    #[arg(long, conflicts_with_all = ["address", "gateway", "dhcp"])]
    pub(super) autoconf: bool,

    #[command(flatten)]
    pub(super) link: LinkArgs,

    /// Largest IP packet on a serial line, in bytes [default: 296, or 1280 with IPv6]
    #[arg(long, value_name = "BYTES", value_parser = mtu)]
    pub(super) mtu: Option<u16>,

    /// Type characters over a TCP connection instead, on a serial line, and measure their echo:
    /// HOST needs an echo service at port 7. On serial:BAUD with and without header compression,
    /// unless it is chosen
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

/// The link of linerate's host.
#[derive(Clone, Debug)]
pub(super) enum On {
    /// A TAP or TUN device in a private network, with the kernel at its other end.
    Private(Medium),
    /// A serial line of this rate in baud, with another host of linerate's at its other end.
    Line(u32),
    /// An existing interface.
    Link(LinkSpec),
}

impl FromStr for On {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(baud) = line_of_this_command(text) {
            return parse_baud(baud).map(Self::Line).map_err(|error| error.to_string());
        }
        match text {
            "tap" => Ok(Self::Private(Medium::Ethernet)),
            "tun" => Ok(Self::Private(Medium::Ip)),
            _ => text.parse().map(Self::Link).map_err(|error| match error {
                ParseLinkError::NoLink => {
                    "write tap, tun or serial:BAUD, or tap:NAME, tun:NAME, packet:NAME, \
                     xdp:NAME:QUEUE or serial:DEVICE@BAUD for an existing interface"
                        .to_owned()
                }
                error => error.to_string(),
            }),
        }
    }
}

impl PingArgs {
    /// Returns the use of linerate's link.
    pub(super) fn link_options(&self) -> LinkOptions {
        LinkOptions {
            offloads: true,
            vlan: self.link.vlan,
            header_compression: self.link.header_compression.map(bool::from),
            mtu: self.mtu,
        }
    }
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?.count();
    usize::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes <= 65_507)
        .ok_or_else(|| "the maximum is 65507".to_owned())
}
