//! The linerate host that a tool such as `linerate ping` uses: its options, address and link.

mod place;

pub(super) use place::private_tap;

use crate::amounts::mtu;
use crate::output::{Failure, print};
use crate::own_host::{LinkArgs, check_gateway, cidr, line_of_this_command};
use clap::Args;
use linerate_ends::Interrupt;
use linerate_link::serial::parse_baud;
use linerate_link::{AnyLink, LinkOptions, LinkSpec, ParseLinkError, Readiness};
use linerate_stack::{
    Autoconfiguration, DhcpConfig, DhcpLease, Error as Refusal, Host, Link, Medium, Route,
    StackConfig,
};
use linerate_tools::ToolError;
use linerate_tools::dhcp::{LeaseError, wait_for_lease};
use linerate_tools::ping::wait_for_addresses;
use linerate_units::{Bytes, Duration, Instant};
use linerate_wire::{IpCidr, MacAddress};
use place::{own_address, resolve};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Maximum time to wait for an address from a router advertisement. The host needs up to nine
/// seconds to send three router solicitations (RFC 4861 §6.3.7).
const ROUTER_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time to wait for an address from a DHCP server.
const DHCP_TIMEOUT: Duration = Duration::from_secs(60);

/// The options of the linerate host that a tool uses.
#[derive(Clone, Debug, Args)]
pub(super) struct ToolHostArgs {
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
}

impl ToolHostArgs {
    /// Returns the address of the destination `host` and the address of linerate's host. The
    /// address of linerate's host is `None` if a DHCP server or a router will provide it.
    pub(super) fn addresses(&self, host: &str) -> Result<(IpAddr, Option<IpCidr>), Failure> {
        let destination = resolve(host, self.address)?;
        let own = own_address(self, destination)?;
        if let Some(own) = own {
            check_gateway(own, self.gateway)?;
        }
        Ok((destination, own))
    }

    /// Opens an existing interface for a linerate host with the address `own`. `own` is `None` if a
    /// DHCP server or a router will provide the address later.
    pub(super) fn open(&self, spec: &LinkSpec, own: Option<IpCidr>) -> Result<AnyLink, Failure> {
        let address = own.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |own| own.address());
        let link = AnyLink::open(spec, address, &self.link_options());
        link.map_err(|error| Failure::input(error.to_string()))
    }

    /// Returns the options with which linerate opens its link.
    pub(super) fn link_options(&self) -> LinkOptions {
        LinkOptions {
            offloads: true,
            vlan: self.link.vlan,
            header_compression: self.link.header_compression.map(bool::from),
            mtu: self.mtu,
        }
    }

    /// Returns an error if an option is given that only applies to an existing interface or a
    /// serial line, and not to a private network.
    pub(super) fn refuse_link_options(&self) -> Result<(), Failure> {
        let given = [
            ("--vlan", self.link.vlan.is_some()),
            ("--header-compression", self.link.header_compression.is_some()),
            ("--mtu", self.mtu.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::input(format!(
                "{flag} has no meaning in a private network: leave it out, or name another link \
                 --on"
            ))),
        }
    }

    /// Returns the configuration of linerate's host. Its address is `own`; if `own` is `None`, the
    /// host gets an address from a router (`--autoconf`) or a DHCP server. Its MAC address is
    /// `mac`, or a random address if `mac` is `None`.
    pub(super) fn stack_config(
        &self,
        own: Option<IpCidr>,
        mac: Option<[u8; 6]>,
        seed: &[u8; 32],
    ) -> StackConfig {
        // The first byte has the locally administered bit, which no address of a manufacturer has.
        // The other bytes are random, so two hosts on a shared network are unlikely to get the same
        // address.
        let random = [0x02, seed[2], seed[3], seed[4], seed[5], seed[6]];
        let mac = MacAddress::new(mac.unwrap_or(random));
        let mut config = match own {
            Some(own) => StackConfig::new(mac, own),
            None if self.autoconf => StackConfig {
                ipv6_autoconfiguration: Some(Autoconfiguration::STABLE),
                ..StackConfig::unconfigured(mac).shared_network()
            },
            None => StackConfig::unconfigured(mac).dhcp(DhcpConfig::new()),
        };
        config.routes.extend(self.gateway.map(Route::default_via));
        config
    }

    /// Returns the source address for packets to the destination. With `--dhcp`, the function first
    /// waits for a lease and prints it, unless `is_quiet` is true. With `--autoconf`, it first
    /// waits for a router advertisement.
    pub(super) fn own_address_of<L: Link + Readiness>(
        &self,
        host: &mut Host<L>,
        destination: IpAddr,
        is_quiet: bool,
        interrupt: &Interrupt,
    ) -> Result<IpAddr, Failure> {
        if self.autoconf {
            await_address(host, interrupt)?;
            return host.stack().source_towards(destination).ok_or_else(|| {
                Failure::running(format!("no router on the link leads to {destination}"))
            });
        }
        if self.dhcp {
            let lease = await_lease(host, interrupt)?;
            if !is_quiet {
                print(&lease_line(&lease))?;
            }
            return Ok(lease.address.address());
        }
        let first = host.stack().addresses().first().map(|own| own.cidr.address());
        first.ok_or_else(no_server)
    }
}

/// The value of `--on`: the kind of link of linerate's host.
#[derive(Clone, Debug)]
pub(super) enum On {
    /// A new TAP or TUN device in a private network namespace; the kernel is at the other end.
    Private(Medium),
    /// A pseudo-terminal at this baud rate, with a second linerate host at its other end.
    Line(u32),
    /// An existing interface or serial device.
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

/// Parses the payload size of a request in bytes. The maximum is the payload that fits into the
/// largest IPv4 packet next to the headers of IP and of UDP or ICMP.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?.count();
    usize::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes <= 65_507)
        .ok_or_else(|| "the maximum is 65507".to_owned())
}

/// Waits until a router advertisement has given the host an address.
fn await_address<L: Link + Readiness>(
    host: &mut Host<L>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match wait_for_addresses(host, ROUTER_TIMEOUT, interrupt) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::running(format!(
            "no router has given this host an address within {ROUTER_TIMEOUT}: give --address and \
             --gateway instead"
        ))),
        Err(error) => Err(Failure::running(error.to_string())),
    }
}

/// Waits until a DHCP server has given the host an address.
fn await_lease<L: Link + Readiness>(
    host: &mut Host<L>,
    interrupt: &Interrupt,
) -> Result<DhcpLease, Failure> {
    wait_for_lease(host, DHCP_TIMEOUT, interrupt).map_err(|error| match error {
        LeaseError::Silence(_) => Failure::running(format!(
            "{error}: check that a server is on the link, or give --address ADDR/LENGTH"
        )),
        error => Failure::running(error.to_string()),
    })
}

/// Converts an error of the tool (ping or trace) to a failure of the command. `what` names the kind
/// of packet that could not be sent, and `host` is the destination.
pub(super) fn failure_of(error: &ToolError, what: &str, host: &str) -> Failure {
    match error {
        ToolError::Refused(Refusal::NoRoute(address)) => Failure::input(format!(
            "no route leads to {address}: name the router with --gateway ADDR"
        )),
        ToolError::Refused(_) => {
            Failure::input(format!("no {what} can be sent to {host}: {error}"))
        }
        ToolError::Link(_) | ToolError::Wait(_) => Failure::running(error.to_string()),
    }
}

/// Returns the error for `--dhcp` on a link that has no DHCP server.
pub(super) fn no_server() -> Failure {
    Failure::input("--dhcp needs an interface with a DHCP server: name it, --on tap:NAME")
}

/// Formats the output line about a DHCP lease.
fn lease_line(lease: &DhcpLease) -> String {
    let mut line = format!("DHCP: {} from {}", lease.address, lease.server);
    // Writing to a string cannot fail.
    let _ = if lease.expires_at == Instant::NEVER {
        write!(line, " without an end")
    } else {
        let seconds = lease.expires_at.since(lease.since).as_millis() / 1_000;
        write!(line, " for {seconds} s")
    };
    if let Some(router) = lease.routers.first() {
        let _ = write!(line, ", router {router}");
    }
    for server in &lease.dns_servers {
        let _ = write!(line, ", DNS {server}");
    }
    line + "\n"
}
