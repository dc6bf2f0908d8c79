//! The addresses of linerate's host and its destination, and the device of a private network.

use super::{On, ToolHostArgs, no_server};
use crate::output::Failure;
use crate::own_host::{is_a_hosts, needs_address};
use linerate_ends::Peer;
use linerate_link::namespace::enter_private_network;
use linerate_link::{LinkSpec, Tap, TapConfig};
use linerate_stack::Medium;
use linerate_wire::IpCidr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the first address of `host`, preferably an address of the same IP version as `own`.
pub(super) fn resolve(host: &str, own: Option<IpCidr>) -> Result<IpAddr, Failure> {
    let unknown = |why: String| {
        Failure::input(format!(
            "`{host}` has no IPv4 address and no IPv6 address ({why}): check its spelling"
        ))
    };
    let peer = Peer { host: host.to_owned(), port: 0 };
    if host.contains('%') {
        // linerate's host has only one interface, so the zone of the address has no effect on
        // routing. The zone is resolved nevertheless, so that a misspelt interface name is reported
        // as an error.
        let found = peer.addresses();
        found.map_err(|error| Failure::input(format!("`{host}` has no zone: {error}")))?;
    }
    let addresses = peer.addresses_without_zone().map_err(|error| unknown(error.to_string()))?;
    let addresses: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
    let prefers_ipv6 = own.is_some_and(|own| own.address().is_ipv6());
    let preferred = addresses.iter().find(|address| address.is_ipv6() == prefers_ipv6);
    let found = preferred.or_else(|| addresses.first());
    found.copied().ok_or_else(|| unknown("the name is known".to_owned()))
}

/// Returns an error if linerate's host cannot take its address from router advertisements with
/// these options.
fn check_autoconf(args: &ToolHostArgs, destination: IpAddr) -> Result<(), Failure> {
    if destination.is_ipv4() {
        return Err(Failure::input(format!(
            "--autoconf gives IPv6 addresses, and {destination} is one of IPv4: give --address"
        )));
    }
    match &args.on {
        On::Link(LinkSpec::Tap(_)) => Ok(()),
        On::Private(_) | On::Line(_) => Err(Failure::input(
            "--autoconf needs a link with a router: name an existing TAP device, --on tap:NAME",
        )),
        On::Link(link @ (LinkSpec::Tun(_) | LinkSpec::Serial(..))) => Err(Failure::input(format!(
            "--autoconf needs a link with Ethernet frames, and {link} has none: name a TAP device, \
             --on tap:NAME"
        ))),
        // On other links (packet sockets and AF_XDP), linerate's host uses the MAC address of the
        // kernel's interface. The host and the kernel would form the same link-local IPv6 address
        // from it, so `--autoconf` is refused.
        On::Link(link) => Err(Failure::input(format!(
            "--autoconf needs a MAC address of its own, and {link} has that of the kernel: name a \
             TAP device, --on tap:NAME"
        ))),
    }
}

/// Returns an error if linerate's host cannot take its address from a DHCP server with these
/// options.
fn check_dhcp(args: &ToolHostArgs, destination: IpAddr) -> Result<(), Failure> {
    if destination.is_ipv6() {
        return Err(Failure::input(format!(
            "--dhcp gives an IPv4 address, which cannot reach {destination}: give --address"
        )));
    }
    match &args.on {
        On::Link(LinkSpec::Tap(_) | LinkSpec::Packet(_)) => Ok(()),
        On::Private(_) | On::Line(_) => Err(no_server()),
        On::Link(LinkSpec::Xdp(..)) => Err(Failure::input(
            "AF_XDP needs the address of the host in advance: use --on packet:NAME with --dhcp",
        )),
        // DHCP servers identify clients by their MAC addresses, so a link without Ethernet frames
        // cannot use DHCP.
        On::Link(link) => Err(Failure::input(format!(
            "--dhcp needs a link with Ethernet frames, and {link} has none: name a TAP device, \
             --on tap:NAME, or give --address"
        ))),
    }
}

/// Returns the address of linerate's host; `None` if a DHCP server or a router will provide it.
pub(super) fn own_address(
    args: &ToolHostArgs,
    destination: IpAddr,
) -> Result<Option<IpCidr>, Failure> {
    if args.autoconf {
        return check_autoconf(args, destination).map(|()| None);
    }
    if args.dhcp {
        return check_dhcp(args, destination).map(|()| None);
    }
    match (args.address, &args.on) {
        (Some(own), _) if own.address().is_ipv4() != destination.is_ipv4() => Err(Failure::input(
            format!("--address {own} and {destination} are of different IP versions: choose one"),
        )),
        (Some(own), _) if own.address() == destination => Err(Failure::input(format!(
            "--address {own} is the address of HOST itself: choose another one"
        ))),
        (Some(own), On::Private(_) | On::Line(_)) if !own.contains(destination) => {
            Err(Failure::input(format!(
                "{destination} is not on the network of --address {own}, the only one of its link"
            )))
        }
        (Some(own), _) => Ok(Some(own)),
        (None, On::Link(link)) => Err(needs_address(link)),
        (None, On::Private(_) | On::Line(_)) => neighbour(destination).map(Some).ok_or_else(|| {
            Failure::input(format!("{destination} cannot be the address of a host: use 10.0.0.1"))
        }),
    }
}

/// Returns an address for linerate's host in the network of `destination`: one of the two adjacent
/// addresses. The network is assumed to be a /24 for IPv4 and a /64 for IPv6. Returns `None` if
/// `destination` is not the address of a host.
fn neighbour(destination: IpAddr) -> Option<IpCidr> {
    if !is_a_hosts(destination) {
        return None;
    }
    match destination {
        IpAddr::V4(destination) => {
            let [a, b, c, d] = destination.octets();
            if !(1..=254).contains(&d) {
                return None;
            }
            let other = if d == 254 { 253 } else { d + 1 };
            IpCidr::new(Ipv4Addr::new(a, b, c, other).into(), 24)
        }
        IpAddr::V6(destination) => {
            let bits = destination.to_bits();
            let other = if bits % 256 == 255 { bits - 1 } else { bits + 1 };
            IpCidr::new(Ipv6Addr::from_bits(other).into(), 64)
        }
    }
}

/// Creates a TAP or TUN device in a private network namespace, and gives the kernel's side of the
/// device the address `destination`.
pub(in crate::commands) fn private_tap(
    medium: Medium,
    destination: IpAddr,
    own: IpCidr,
) -> Result<Tap, Failure> {
    let failure = |error: &dyn std::error::Error| Failure::input(error.to_string());
    enter_private_network().map_err(|error| failure(&error))?;
    let tap = Tap::open(&TapConfig { medium, ..TapConfig::default() })
        .map_err(|error| failure(&error))?;
    let interface = tap.interface();
    let prepared = if destination.is_ipv4() { interface.disable_ipv6() } else { Ok(()) };
    // The interface is set up before the address is added. In the reverse order, the kernel would
    // not install the route of a new IPv6 address at once.
    let set_up = prepared
        .and_then(|()| interface.set_up())
        .and_then(|()| interface.add_address(destination, own.prefix_length()));
    set_up.map_err(|error| failure(&error))?;
    Ok(tap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_another_host_of_the_same_network() {
        let neighbour = |text: &str| neighbour(text.parse().unwrap()).map(|cidr| cidr.to_string());
        assert_eq!(neighbour("10.0.0.1").as_deref(), Some("10.0.0.2/24"));
        assert_eq!(neighbour("10.0.0.254").as_deref(), Some("10.0.0.253/24"));
        assert_eq!(neighbour("2001:db8::1").as_deref(), Some("2001:db8::2/64"));
        for no_host in [
            "10.0.0.0",
            "10.0.0.255",
            "224.0.0.1",
            "127.0.0.1",
            "0.0.0.1",
            "255.255.255.254",
            "::1",
            "ff02::1",
        ] {
            assert_eq!(neighbour(no_host), None, "{no_host}");
        }
    }
}
