//! The IP version over which a script runs. A script that is written for IPv4 can also run over
//! IPv6. Each of its addresses is then replaced by the IPv6 address that contains it, and each ICMP
//! error by the ICMPv6 error with the same meaning. Its MTUs grow by 20 bytes, the difference
//! between the header lengths.

use crate::syntax::{Settings, embedded};
use std::net::{IpAddr, SocketAddr};

/// Difference between the lengths of an IPv6 header (40 bytes) and an IPv4 header without options
/// (20 bytes).
pub(crate) const LONGER: u16 = 20;

/// The IP version over which a script runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// The IP version of the script: IPv4, unless it has `--ip_version=ipv6`.
    #[default]
    Own,
    /// IPv6. A script with `--ip_version=ipv4` is refused.
    Ipv6,
}

impl Family {
    /// Returns the settings of a script for this IP version.
    ///
    /// # Errors
    /// The reason why the script cannot run over this IP version.
    pub(crate) fn settings(self, settings: &Settings) -> Result<Settings, String> {
        if self == Self::Own || settings.local.is_ipv6() {
            return Ok(settings.clone());
        }
        if settings.ipv4_only {
            return Err("the script is about IPv4 (--ip_version=ipv4)".to_owned());
        }
        Ok(Settings {
            local: to_ipv6(settings.local),
            remote: to_ipv6(settings.remote),
            mtu: settings.mtu.saturating_add(LONGER),
            ..settings.clone()
        })
    }
}

/// Returns the number of bytes by which IP headers on the wire are longer than those that the
/// script assumes. The script assumes headers of the IP version in `script`; the packets have the
/// IP version in `settings`.
pub(crate) const fn longer(script: &Settings, settings: &Settings) -> u16 {
    if script.local.is_ipv4() && settings.local.is_ipv6() { LONGER } else { 0 }
}

/// Returns an address of a script in the IP version of the address `like`. An IPv4 address becomes
/// the IPv6 address that contains it, if `like` is an IPv6 address.
pub(crate) fn address_like(like: IpAddr, address: IpAddr) -> IpAddr {
    if like.is_ipv6() { to_ipv6(address) } else { address }
}

/// Returns the address and port of an endpoint in a script, with the address in the IP version of
/// `like`.
pub(crate) fn end_like(like: IpAddr, end: SocketAddr) -> SocketAddr {
    SocketAddr::new(address_like(like, end.ip()), end.port())
}

fn to_ipv6(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => embedded(address).into(),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_translated_unless_the_script_has_its_version() {
        let v4 = Settings::default();
        assert_eq!(Family::Own.settings(&v4).unwrap(), v4);
        let v6 = Family::Ipv6.settings(&v4).unwrap();
        assert_eq!((v6.local, v6.mtu), ("2001:db8::c0a8:2".parse::<IpAddr>().unwrap(), 1_520));
        assert_eq!(longer(&v4, &v6), 20);
        assert_eq!(Family::Ipv6.settings(&v6).unwrap(), v6);
        let only = Settings { ipv4_only: true, ..v4 };
        assert!(Family::Ipv6.settings(&only).is_err());
    }
}
