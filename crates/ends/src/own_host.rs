//! The configuration of a linerate host on an interface of this machine: its link and its
//! addresses.

use crate::serde_text;
use linerate_link::{AnyLink, LinkOptions, LinkSpec, OpenError};
use linerate_wire::{IpCidr, VlanTag};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The configuration of a linerate host: its link, its address, its gateway and its options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnHost {
    /// The interface, and the kind of link that the host uses on it.
    #[serde(with = "serde_text")]
    pub link: LinkSpec,
    /// The address of the host, with the prefix length of its network.
    #[serde(with = "serde_text")]
    pub address: IpCidr,
    /// Address of the router for destinations outside the host's network; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The VLAN of the host's frames; `None` for untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "serde_text::optional")]
    pub vlan: Option<VlanTag>,
    /// Are TCP/IP headers compressed on a serial line (RFC 1144)? `None` means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<bool>,
    /// The MTU of a serial line in bytes; `None` selects 296, or 1,280 with an IPv6 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
}

/// The addresses of a linerate host on a link that is already open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address of the host, with the prefix length of its network.
    pub address: IpCidr,
    /// Address of the router for destinations outside the host's network; `None` if there is none.
    pub gateway: Option<IpAddr>,
    /// Does the link compress TCP/IP headers (RFC 1144)? If so, the host sends no TCP timestamps
    /// and numbers its IPv4 packets consecutively in the identification field. Both make the
    /// compressed headers shorter.
    pub compresses_headers: bool,
}

impl OwnHost {
    /// Creates the configuration of a host at `address` on `link`, without a gateway and with
    /// default options.
    #[must_use]
    pub const fn new(link: LinkSpec, address: IpCidr) -> Self {
        Self { link, address, gateway: None, vlan: None, header_compression: None, mtu: None }
    }

    /// Returns the address and the gateway of the host, and whether its link compresses headers.
    #[must_use]
    pub const fn location(&self) -> Location {
        Location {
            address: self.address,
            gateway: self.gateway,
            compresses_headers: self.compresses_headers(),
        }
    }

    /// Opens the link of the host, with offloads of checksums and segmentation if `offloads` is
    /// true and the link supports them.
    ///
    /// # Errors
    /// [`OpenError`], which names the missing permission or device and the remedy.
    pub fn open(&self, offloads: bool) -> Result<AnyLink, OpenError> {
        let Self { vlan, header_compression, mtu, .. } = *self;
        let options = LinkOptions { offloads, vlan, header_compression, mtu };
        AnyLink::open(&self.link, self.address.address(), &options)
    }

    /// Does the link compress TCP/IP headers (RFC 1144)? If so, the host sends no TCP timestamps
    /// and numbers its IPv4 packets consecutively in the identification field. Both make the
    /// compressed headers shorter.
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
