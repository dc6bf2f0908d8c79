//! The address of a linerate host on an interface of this machine, and its link.

use crate::serde_text;
use linerate_link::{AnyLink, LinkOptions, LinkSpec, OpenError};
use linerate_wire::{IpCidr, VlanTag};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The location of a linerate host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnHost {
    /// The interface, and the type of link to it.
    #[serde(with = "serde_text")]
    pub link: LinkSpec,
    /// The address of the host with the prefix length of its network.
    #[serde(with = "serde_text")]
    pub address: IpCidr,
    /// The router to other networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The VLAN of the host.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "serde_text::optional")]
    pub vlan: Option<VlanTag>,
    /// Are headers compressed on a serial line? The default is yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<bool>,
    /// The MTU of a serial line in bytes. The default depends on the IP version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
}

/// The addresses of a linerate host on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address of the host with the prefix length of its network.
    pub address: IpCidr,
    /// The router to other networks.
    pub gateway: Option<IpAddr>,
    /// Does the link compress headers? Then segments have no timestamps, and packets are counted.
    pub compresses_headers: bool,
}

impl OwnHost {
    /// Creates a host at `address` on `link`, with defaults otherwise.
    #[must_use]
    pub const fn new(link: LinkSpec, address: IpCidr) -> Self {
        Self { link, address, gateway: None, vlan: None, header_compression: None, mtu: None }
    }

    /// Returns the addresses of the host.
    #[must_use]
    pub const fn location(&self) -> Location {
        Location {
            address: self.address,
            gateway: self.gateway,
            compresses_headers: self.compresses_headers(),
        }
    }

    /// Opens the link.
    ///
    /// # Errors
    /// [`OpenError`], which names the missing permission or device and the remedy.
    pub fn open(&self, offloads: bool) -> Result<AnyLink, OpenError> {
        let Self { vlan, header_compression, mtu, .. } = *self;
        let options = LinkOptions { offloads, vlan, header_compression, mtu };
        AnyLink::open(&self.link, self.address.address(), &options)
    }

    /// Does the link compress headers? Then segments have no timestamps, and packets are counted.
    #[must_use]
    pub const fn compresses_headers(&self) -> bool {
        matches!(self.link, LinkSpec::Serial(..)) && !matches!(self.header_compression, Some(false))
    }
}

impl fmt::Display for OwnHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.address, self.link)?;
        self.vlan.map_or(Ok(()), |vlan| write!(f, ", VLAN {vlan}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_survives_a_round_trip_through_text() {
        let text = r#"{"link":"xdp:eth1:2","address":"10.0.0.7/24","gateway":"10.0.0.1"}"#;
        let host: OwnHost = serde_json::from_str(text).unwrap();
        assert_eq!(host.to_string(), "10.0.0.7/24 on xdp:eth1:2");
        assert_eq!(serde_json::to_string(&host).unwrap(), text);
        serde_json::from_str::<OwnHost>(&text.replace("10.0.0.7/24", "10.0.0.7/33")).unwrap_err();
        for text in [
            r#"{"link":"tap:lr0","address":"2001:db8::7/64","gateway":"fe80::1"}"#,
            r#"{"link":"packet:eth1","address":"10.0.0.7/24","vlan":"100:5"}"#,
            r#"{"link":"serial:/x@50","address":"10.0.0.7/24","header_compression":false}"#,
        ] {
            let host: OwnHost = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&host).unwrap(), text);
        }
    }
}
