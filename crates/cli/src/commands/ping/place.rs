//! The address of linerate's host, and its device.

use super::args::{On, PingArgs};
use crate::output::Failure;
use crate::own_host::{is_a_hosts, needs_address};
use linerate_link::namespace::enter_private_network;
use linerate_link::{Tap, TapConfig};
use linerate_wire::Ipv4Cidr;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

/// Returns the first IPv4 address of `host`.
pub(super) fn resolve(host: &str) -> Result<Ipv4Addr, Failure> {
    let unknown = |why: String| {
        Failure::input(format!("`{host}` has no IPv4 address ({why}): check its spelling"))
    };
    let addresses = (host, 0).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let mut addresses = addresses.filter_map(|address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    });
    addresses.next().ok_or_else(|| unknown("it has IPv6 addresses only".to_owned()))
}

/// Returns the address of linerate's host.
pub(super) fn own_address(args: &PingArgs, destination: Ipv4Addr) -> Result<Ipv4Cidr, Failure> {
    match (args.address, &args.on) {
        (Some(own), _) if own.address() == destination => Err(Failure::input(format!(
            "--address {own} is the address of HOST itself: choose another one"
        ))),
        (Some(own), On::Private) if !own.contains(destination) => Err(Failure::input(format!(
            "{destination} is not on the network of --address {own}, the only private network"
        ))),
        (Some(own), _) => Ok(own),
        (None, On::Link(link)) => Err(needs_address(link)),
        (None, On::Private) => neighbour(destination).ok_or_else(|| {
            Failure::input(format!("{destination} cannot be the address of a host: use 10.0.0.1"))
        }),
    }
}

/// Returns another address of the same network with a 24-bit prefix.
fn neighbour(destination: Ipv4Addr) -> Option<Ipv4Cidr> {
    let [a, b, c, d] = destination.octets();
    if !is_a_hosts(destination) || !(1..=254).contains(&d) {
        return None;
    }
    let other = if d == 254 { 253 } else { d + 1 };
    Ipv4Cidr::new(Ipv4Addr::new(a, b, c, other), 24)
}

/// Creates a device in a private network, in which the kernel has the address `destination`.
pub(super) fn private_tap(destination: Ipv4Addr, own: Ipv4Cidr) -> Result<Tap, Failure> {
    let failure = |error: &dyn std::error::Error| Failure::input(error.to_string());
    enter_private_network().map_err(|error| failure(&error))?;
    let tap = Tap::open(&TapConfig::default()).map_err(|error| failure(&error))?;
    let interface = tap.interface();
    let set_up = interface
        .disable_ipv6()
        .and_then(|()| interface.add_address(destination, own.prefix_length()))
        .and_then(|()| interface.set_up());
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
        for no_host in
            ["10.0.0.0", "10.0.0.255", "224.0.0.1", "127.0.0.1", "0.0.0.1", "255.255.255.254"]
        {
            assert_eq!(neighbour(no_host), None, "{no_host}");
        }
    }
}
