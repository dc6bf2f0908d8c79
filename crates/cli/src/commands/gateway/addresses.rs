//! The addresses of a gateway, of its DNS server and of its client.

use super::args::GatewayArgs;
use crate::output::Failure;
use crate::own_host::is_a_hosts;
use linerate_gateway::GatewayConfig;
use linerate_wire::IpCidr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The smallest MTU of a link with IPv6 (RFC 8200 §5). Below this MTU, the kernel disables IPv6.
const SMALLEST_IPV6_MTU: usize = 1_280;
/// Offset of the DNS server's address from the address of the gateway.
const NAME_SERVER: u32 = 1;
/// Default offset of the client's address from the address of the gateway.
const CLIENT: u32 = 13;

/// The addresses that a gateway uses for one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    /// The address of the gateway, with the prefix length of the clients' network.
    pub(super) gateway: IpCidr,
    /// The address at which clients reach the gateway's DNS server.
    pub(super) name_server: IpAddr,
    /// The address of the client, with the prefix length of the clients' network.
    pub(super) client: IpCidr,
}

/// Returns the addresses of each IP version that the gateway serves on a link with this MTU.
pub(super) fn of(args: &GatewayArgs, mtu: usize) -> Result<Vec<Addresses>, Failure> {
    let mut gateways = args.address.clone();
    let is_small = mtu < SMALLEST_IPV6_MTU;
    if gateways.is_empty() {
        // A kernel without IPv6 cannot configure an IPv6 address. The default addresses then
        // contain only IPv4, so that the gateway works without options. An IPv6 address that
        // `--address` requests still leads to an error.
        let has_ipv6 = !is_small && Path::new("/proc/sys/net/ipv6").exists();
        gateways = GatewayConfig::default().addresses;
        gateways.retain(|gateway| has_ipv6 || gateway.address().is_ipv4());
    }
    if let Some(ipv6) = gateways.iter().find(|gateway| is_small && gateway.address().is_ipv6()) {
        return Err(Failure::input(format!(
            "--mtu {mtu} is too small for --address {ipv6}: IPv6 needs at least \
             {SMALLEST_IPV6_MTU} bytes"
        )));
    }
    check_versions("--address", gateways.iter().map(|gateway| gateway.address()))?;
    check_versions("--client", args.client.iter().copied())?;
    let addresses = gateways.iter().map(|&gateway| of_version(gateway, &args.client));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    for &client in &args.client {
        if !addresses.iter().any(|addresses| addresses.client.address() == client) {
            return Err(Failure::input(format!(
                "--client {client} has the IP version of no --address: add an address of it"
            )));
        }
    }
    Ok(addresses)
}

/// Returns an error if an option gives two addresses of one IP version. `option` is its name, and
/// `given` are the addresses.
fn check_versions(option: &str, given: impl Iterator<Item = IpAddr>) -> Result<(), Failure> {
    let (ipv4, ipv6): (Vec<_>, Vec<_>) = given.partition(IpAddr::is_ipv4);
    for (version, given) in [("IPv4", ipv4), ("IPv6", ipv6)] {
        if let [one, other, ..] = &*given {
            return Err(Failure::input(format!(
                "{option} {one} and {option} {other} are both of {version}: give one of each IP \
                 version"
            )));
        }
    }
    Ok(())
}

/// Returns the addresses of the gateway, its DNS server and its client for one IP version.
fn of_version(gateway: IpCidr, clients: &[IpAddr]) -> Result<Addresses, Failure> {
    let name_server = after(gateway, NAME_SERVER)?;
    let given = clients.iter().find(|client| client.is_ipv4() == gateway.address().is_ipv4());
    let client = match given {
        None => after(gateway, CLIENT)?,
        Some(&client) if client == gateway.address() || client == name_server => {
            return Err(Failure::input(format!(
                "--client {client} is the address of the gateway or of its name server: choose \
                 another one"
            )));
        }
        Some(&client) if !is_room_for(gateway, client) => {
            return Err(Failure::input(format!(
                "--client {client} is not in the network of --address {gateway}: choose one that is"
            )));
        }
        Some(&client) => client,
    };
    let client = IpCidr::new(client, gateway.prefix_length()).unwrap_or(gateway);
    Ok(Addresses { gateway, name_server, client })
}

/// Returns the address `distance` above the gateway's address. Returns an error if no host in the
/// network of the clients can have this address.
fn after(gateway: IpCidr, distance: u32) -> Result<IpAddr, Failure> {
    let next: IpAddr = match gateway.address() {
        IpAddr::V4(own) => Ipv4Addr::from_bits(own.to_bits().wrapping_add(distance)).into(),
        IpAddr::V6(own) => Ipv6Addr::from_bits(own.to_bits().wrapping_add(distance.into())).into(),
    };
    if is_room_for(gateway, next) {
        return Ok(next);
    }
    Err(Failure::input(format!(
        "{gateway} leaves no room for the clients' addresses: choose a larger network, such as \
         10.0.2.2/24 or fd00::2/64"
    )))
}

/// Can a host in the network of the gateway have this address?
fn is_room_for(gateway: IpCidr, address: IpAddr) -> bool {
    gateway.contains(address)
        && is_a_hosts(address)
        && gateway.broadcast().map(IpAddr::from) != Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        args: GatewayArgs,
    }

    fn addresses(words: &str, mtu: usize) -> Result<Vec<Addresses>, String> {
        let words = ["gateway"].into_iter().chain(words.split_whitespace());
        of(&Words::parse_from(words).args, mtu).map_err(|failure| failure.to_string())
    }

    fn all_of(gateway: &str, name_server: &str, client: &str) -> Addresses {
        Addresses {
            gateway: gateway.parse().unwrap(),
            name_server: name_server.parse().unwrap(),
            client: client.parse().unwrap(),
        }
    }

    #[test]
    fn both_versions_are_served_unless_addresses_are_given() {
        let ipv4 = all_of("10.0.2.2/24", "10.0.2.3", "10.0.2.15/24");
        let ipv6 = all_of("fd00::2/64", "fd00::3", "fd00::f/64");
        assert_eq!(addresses("", 1_280), Ok(vec![ipv4, ipv6]));
        assert_eq!(addresses("", 1_279), Ok(vec![ipv4]), "IPv6 needs a larger MTU");
        let own = all_of("2001:db8::fffe/112", "2001:db8::ffff", "2001:db8::9/112");
        let words = "--address 2001:db8::fffe/112 --client 2001:db8::9";
        assert_eq!(addresses(words, 1_500), Ok(vec![own]));
    }

    #[test]
    fn wrong_addresses_are_refused() {
        for (words, expected) in [
            ("--address 10.0.0.1/24 --address 10.9.0.1/24", "are both of IPv4"),
            ("--client fd00::8 --client fd00::9", "are both of IPv6"),
            ("--address 10.0.0.1/24 --client fd00::9", "has the IP version of no --address"),
            ("--client 10.0.2.3", "or of its name server"),
            ("--client 10.0.3.3", "is not in the network of --address 10.0.2.2/24"),
            ("--client 10.0.2.255", "is not in the network"),
            ("--address fd00::2/126", "leaves no room"),
        ] {
            let error = addresses(words, 1_500).unwrap_err();
            assert!(error.contains(expected), "{words}: {error}");
        }
        let error = addresses("--address fd00::2/64", 1_000).unwrap_err();
        assert!(error.contains("--mtu 1000 is too small for --address fd00::2/64"), "{error}");
    }
}
