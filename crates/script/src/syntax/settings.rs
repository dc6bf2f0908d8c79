//! Options at the head of a script: `--tolerance_usecs=10000`.

use super::SyntaxError;
use super::cursor::Cursor;
use super::definitions::Definitions;
use linerate_link::serial::LARGEST_MTU;
use linerate_stack::SMALLEST_MTU;
use linerate_units::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Settings that a script makes by the options at its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum difference between the actual time of an event and its time in the script.
    pub tolerance: Duration,
    /// Maximum difference between the actual time of an event and its time in the script, on hosts
    /// with coarse timers. It is given in per mille of the time since the previous event. If
    /// `tolerance` is larger, `tolerance` applies.
    pub tolerance_per_mille: u64,
    /// Size of the largest IP packet on the link, in bytes.
    pub mtu: u16,
    /// The address of the host under test.
    pub local: IpAddr,
    /// The address of the script's peer.
    pub remote: IpAddr,
    /// Whether the script is about IPv4 and cannot run over IPv6 (`--ip_version=ipv4`).
    pub ipv4_only: bool,
    /// The serial line between the host and its peer, if the script uses one.
    pub line: Option<Line>,
    /// The port that `bind(3, ..., ...)` binds to.
    pub bind_port: u16,
    /// Port to which `connect(3, ..., ...)` connects.
    pub connect_port: u16,
    /// Duration of one step of the host's timestamp clock (TSval). `None` means that TSvals are not
    /// compared.
    pub timestamp_tick: Option<Duration>,
    /// Whether comparisons ignore PSH, because stacks differ in the segments to which they give
    /// this flag.
    pub ignore_push: bool,
    /// Whether the host must send each segment of the script as one segment. If false, it may send
    /// several in place of one that exceeds the peer's MSS.
    pub strict_segments: bool,
    /// Names defined by `--define NAME=VALUE`.
    pub definitions: Definitions,
}

/// The protocol that carries packets over a serial line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// SLIP (RFC 1055).
    Slip,
    /// SLIP with header compression (RFC 1144).
    Cslip,
}

/// The addresses of the host and of its peer, for scripts that give none.
const ADDRESSES: (Ipv4Addr, Ipv4Addr) =
    (Ipv4Addr::new(192, 168, 0, 2), Ipv4Addr::new(192, 0, 2, 1));

/// Returns the IPv6 address that stands for an IPv4 address in scripts.
pub(crate) fn embedded(address: Ipv4Addr) -> Ipv6Addr {
    if address.is_unspecified() {
        return Ipv6Addr::UNSPECIFIED;
    }
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(address.to_bits()))
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tolerance: Duration::from_millis(4),
            tolerance_per_mille: 125,
            mtu: 1_500,
            local: ADDRESSES.0.into(),
            remote: ADDRESSES.1.into(),
            ipv4_only: false,
            line: None,
            bind_port: 8_080,
            connect_port: 8_080,
            timestamp_tick: None,
            ignore_push: false,
            strict_segments: false,
            definitions: Definitions::default(),
        }
    }
}

impl Settings {
    /// Parses the options at the head of a script.
    pub(super) fn read_head(&mut self, cursor: &mut Cursor<'_>) -> Result<(), SyntaxError> {
        while cursor.sees("-") {
            self.read(cursor)?;
        }
        Ok(())
    }

    /// Checks that the options do not contradict each other.
    pub(super) fn check(&self, cursor: &Cursor<'_>) -> Result<(), SyntaxError> {
        if self.local.is_ipv4() != self.remote.is_ipv4() {
            return Err(cursor.error(
                "--local_ip and --remote_ip are of different IP versions: give both after \
                 --ip_version",
            ));
        }
        if self.line.is_some() && usize::from(self.mtu) > LARGEST_MTU {
            return Err(cursor.error(format!(
                "--mtu={}: a serial line has an MTU of at most {LARGEST_MTU} bytes",
                self.mtu
            )));
        }
        if self.ipv4_only && self.local.is_ipv6() {
            return Err(cursor.error("--ip_version=ipv4 does not go with addresses of IPv6"));
        }
        Ok(())
    }

    /// Parses one option: `--mtu=1500`, `-D NAME=VALUE`.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), SyntaxError> {
        let is_long = cursor.take("--");
        if !is_long {
            cursor.want("-")?;
        }
        let name = match cursor.word("an option")? {
            "D" if !is_long => "define",
            name => name,
        };
        let value = if cursor.take("=") || name == "define" { value(cursor)? } else { "" };
        let number = |most: u64| {
            let number = value.parse::<u64>().ok().filter(|&number| number <= most);
            number.ok_or_else(|| {
                cursor.error(format!("--{name}={value}: a number up to {most} is expected"))
            })
        };
        let port = || number(65_535).map(|port| u16::try_from(port).unwrap_or(u16::MAX));
        let address = || {
            let address = value.split('/').next().and_then(|address| address.parse().ok());
            address
                .ok_or_else(|| cursor.error(format!("--{name}={value}: an IP address is expected")))
        };
        match name {
            "ip_version" if value == "ipv4" => self.ipv4_only = true,
            "ip_version" if value == "ipv6" => {
                (self.local, self.remote) =
                    (embedded(ADDRESSES.0).into(), embedded(ADDRESSES.1).into());
            }
            "ip_version" => {
                return Err(cursor.error(format!("--ip_version={value}: write ipv4 or ipv6")));
            }
            "line" => {
                self.line = Some(match value {
                    "slip" => Line::Slip,
                    "cslip" => Line::Cslip,
                    _ => {
                        return Err(cursor.error(format!("--line={value}: write slip or cslip")));
                    }
                });
            }
            "tolerance_usecs" => self.tolerance = Duration::from_micros(number(60_000_000)?),
            "tolerance_percent" => self.tolerance_per_mille = number(100)? * 10,
            "mtu" => {
                self.mtu = u16::try_from(number(65_535)?).unwrap_or(u16::MAX);
                if usize::from(self.mtu) < SMALLEST_MTU {
                    return Err(cursor.error(format!(
                        "--mtu={value}: the smallest supported MTU is {SMALLEST_MTU} bytes"
                    )));
                }
            }
            "local_ip" => self.local = address()?,
            "remote_ip" => self.remote = address()?,
            "bind_port" => self.bind_port = port()?.max(1),
            "connect_port" => self.connect_port = port()?.max(1),
            "tcp_ts_tick_usecs" => {
                let micros = number(1_000_000)?;
                self.timestamp_tick = (micros > 0).then(|| Duration::from_micros(micros));
            }
            "ignore_push" => self.ignore_push = true,
            "strict_segments" => self.strict_segments = true,
            "define" => {
                self.definitions.add(value).map_err(|what| cursor.error(what))?;
            }
            // These options of packetdrill are accepted, but have no effect. `gateway_ip` and
            // `netmask_ip` describe a gateway, which the simulated link does not need.
            // `tcp_ts_ecr_scaled` selects how packetdrill translates a TSecr of the script that
            // equals no TSval that the host has sent. This program always keeps the difference
            // between such a TSecr and the host's first TSval, so there is nothing to select.
            "gateway_ip" | "netmask_ip" | "tcp_ts_ecr_scaled" => {}
            _ => {
                return Err(cursor.error(format!(
                    "the option --{name} is not supported: ip_version, tolerance_usecs, \
                     tolerance_percent, mtu, local_ip, remote_ip, bind_port, connect_port, \
                     tcp_ts_tick_usecs, line, ignore_push, strict_segments, define"
                )));
            }
        }
        Ok(())
    }
}

fn value<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, SyntaxError> {
    let value = cursor.take_while(|next| !next.is_whitespace());
    if value.is_empty() { cursor.expected("a value") } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_unknown_ones_refused() {
        let read = |text: &str| {
            let mut settings = Settings::default();
            settings.read(&mut Cursor::new(&format!("--{text}"), 1)).map(|()| settings)
        };
        assert_eq!(read("tolerance_usecs=10000").unwrap().tolerance, Duration::from_millis(10));
        assert_eq!(
            read("remote_ip=198.51.100.1/24").unwrap().remote,
            IpAddr::from([198, 51, 100, 1])
        );
        assert_eq!(
            read("remote_ip=2001:db8::1/64").unwrap().remote,
            "2001:db8::1".parse::<IpAddr>().unwrap()
        );
        assert!(read("ip_version=ipv6").unwrap().local.is_ipv6());
        assert_eq!(read("line=cslip").unwrap().line, Some(Line::Cslip));
        assert_eq!(read("mtu=88").unwrap().mtu, 88);
        for text in
            ["ip_version=ipv5", "line=ppp", "mtu=zero", "mtu=87", "wire_server", "local_ip=here"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
