//! The network interface through which the kernel reaches an address, and the properties that its
//! driver reports.

use crate::plan::Family;
use linerate_evidence::{Framing, LineRate};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Name of the interface, such as `eth0`.
    pub(crate) name: String,
}

/// Hardware type of Ethernet in `/sys/class/net` (`ARPHRD_ETHER`).
const ETHERNET: u64 = 1;

impl Interface {
    /// Returns the interface through which the main routing table reaches `address`; `None` if
    /// there is no route. Other routing tables, and the rules that select them, are ignored.
    pub(crate) fn towards(address: IpAddr) -> Option<Self> {
        let name = match address {
            IpAddr::V4(address) => ipv4_route(&read("/proc/thread-self/net/route")?, address),
            IpAddr::V6(address) => ipv6_route(&read("/proc/thread-self/net/ipv6_route")?, address),
        };
        name.map(|name| Self { name })
    }

    /// Returns the bit rate that the driver reports; `None` if it reports none. Also returns `None`
    /// for an interface without hardware. Its driver may report a rate, but that rate does not
    /// limit anything.
    pub(crate) fn bits_per_second(&self) -> Option<u64> {
        if !self.has_hardware() {
            return None;
        }
        // Drivers report -1 if the rate is unknown. That text does not parse as an unsigned number.
        self.attribute("speed")?
            .parse::<u64>()
            .ok()
            .filter(|&rate| rate > 0)
            .map(|rate| rate * 1_000_000)
    }

    /// Does the interface have hardware?
    pub(crate) fn has_hardware(&self) -> bool {
        fs::exists(format!("/sys/class/net/{}/device", self.name)).unwrap_or(false)
    }

    /// Does the interface carry Ethernet frames?
    pub(crate) fn is_ethernet(&self) -> bool {
        self.attribute("type").is_some_and(|kind| kind.parse() == Ok(ETHERNET))
    }

    /// Is the interface half-duplex?
    pub(crate) fn is_half_duplex(&self) -> bool {
        self.attribute("duplex").is_some_and(|duplex| duplex == "half")
    }

    /// Returns an attribute of the interface from `/sys/class/net`; `None` if it cannot be read.
    fn attribute(&self, name: &str) -> Option<String> {
        read(&format!("/sys/class/net/{}/{name}", self.name)).map(|text| text.trim().to_owned())
    }
}

fn read(file: &str) -> Option<String> {
    fs::read_to_string(file).ok()
}

/// Returns the interface of the route to `address` with the longest prefix; `None` if there is no
/// route. `table` is the content of `/proc/net/route`. Its columns are name, destination, gateway,
/// flags, two counters, metric and mask. Addresses are hexadecimal, in host byte order.
fn ipv4_route(table: &str, address: Ipv4Addr) -> Option<String> {
    let address = u32::from_ne_bytes(address.octets());
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let destination = u32::from_str_radix(words.next()?, 16).ok()?;
        let mask = u32::from_str_radix(words.nth(5)?, 16).ok()?;
        (address & mask == destination).then(|| (mask.count_ones(), name.to_owned()))
    };
    longest(table, row)
}

/// Returns the interface of the route to `address` with the longest prefix; `None` if there is no
/// route. `table` is the content of `/proc/net/ipv6_route`. Its columns are destination with prefix
/// length, source with prefix length, next hop, metric, two counters, flags and name.
fn ipv6_route(table: &str, address: Ipv6Addr) -> Option<String> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let destination = u128::from_str_radix(words.next()?, 16).ok()?;
        let length = u32::from_str_radix(words.next()?, 16).ok()?;
        let name = words.nth(7)?;
        let shift = 128_u32.checked_sub(length)?;
        let same = (u128::from(address) ^ destination).checked_shr(shift).unwrap_or(0) == 0;
        same.then(|| (length, name.to_owned()))
    };
    longest(table, row)
}

/// Returns the interface of the row with the longest prefix. If several rows have a prefix of that
/// length, the first of them counts. `row` parses a line, and returns the prefix length and the
/// name if the row matches the address.
fn longest(table: &str, row: impl Fn(&str) -> Option<(u32, String)>) -> Option<String> {
    let mut best: Option<(u32, String)> = None;
    for (length, name) in table.lines().filter_map(row) {
        if best.as_ref().is_none_or(|(longest, _)| length > *longest) {
            best = Some((length, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns by how many bytes the headers of each segment are longer than 40 bytes, the IPv4 and TCP
/// headers without options. These are `options` bytes of TCP options, and the 20 additional bytes
/// of an IPv6 header. [`Framing`] counts all of them as options.
pub(crate) fn additional_header_bytes(options: u32, is_ipv6: bool) -> u32 {
    let longer = Family::Ipv6.header_length() - Family::Ipv4.header_length();
    options + if is_ipv6 { u32::from(longer) } else { 0 }
}

/// Returns the framing of packets on `interface`, whose segments have `options` bytes of TCP
/// options. `None` stands for a path inside this machine, which has no interface.
pub(crate) fn framing(interface: Option<&Interface>, options: u32) -> Framing {
    match interface {
        None => Framing::ethernet_in_memory(options),
        Some(interface) if interface.is_ethernet() => {
            Framing { half_duplex: interface.is_half_duplex(), ..Framing::ethernet(options) }
        }
        Some(_) => Framing::ip_in_memory(options),
    }
}

/// Returns the bit rate that the driver of `interface` reports; `None` if it reports none.
pub(crate) fn line_rate(interface: &Interface) -> Option<LineRate> {
    let bits_per_second = interface.bits_per_second()?;
    Some(LineRate { bits_per_second, source: format!("driver of {}", interface.name) })
}

/// Returns a description of the bit rate of the interface `name`, for the settings that a bench
/// records.
pub(crate) fn rate_in_words(name: &str, interface: Option<&Interface>) -> String {
    let Some(interface) = interface else {
        return format!("{name}, inside this machine: it has no bit rate");
    };
    match (line_rate(interface), interface.has_hardware()) {
        (Some(rate), _) => format!("{name}, {} according to its driver", rate.rate()),
        (None, true) => format!("{name}, whose driver reports no bit rate: give --line-rate"),
        (None, false) => {
            format!("{name}, virtual: it has no bit rate; give that of the path with --line-rate")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_row_with_the_longest_prefix_is_chosen() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                     eth0 00000000 0100A8C0 0003 0 0 0 00000000 0 0 0\n\
                     eth0 0000A8C0 00000000 0001 0 0 0 0000FFFF 0 0 0\n\
                     tun0 0007A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        let towards = |address: &str| ipv4_route(table, address.parse().unwrap()).unwrap();
        assert_eq!(towards("192.168.7.9"), "tun0");
        assert_eq!(towards("192.168.8.9"), "eth0");
        assert_eq!(towards("198.51.100.1"), "eth0");
        assert_eq!(ipv4_route("", Ipv4Addr::LOCALHOST), None);
        assert_eq!(ipv4_route("a b c\nd\n", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn the_row_with_the_longest_prefix_is_chosen_for_ipv6() {
        let table = "\
            20010db8000000000000000000000000 20 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth1\n";
        let towards = |address: &str| ipv6_route(table, address.parse().unwrap()).unwrap();
        assert_eq!(towards("2001:db8::9"), "eth0");
        assert_eq!(towards("2001:db9::9"), "eth1");
    }

    #[test]
    fn an_absent_interface_has_no_properties() {
        let none = Interface { name: "no such interface".into() };
        assert_eq!(
            (none.bits_per_second(), none.is_ethernet(), none.is_half_duplex()),
            (None, false, false)
        );
    }
}
