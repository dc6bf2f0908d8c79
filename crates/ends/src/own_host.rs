//! The address of a linerate host on an interface of this machine, and its link.

use crate::serde_text;
use linerate_link::{AnyLink, LinkSpec, OpenError};
use linerate_wire::IpCidr;
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
}

/// The addresses of a linerate host on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address of the host with the prefix length of its network.
    pub address: IpCidr,
    /// The router to other networks.
    pub gateway: Option<IpAddr>,
}

impl OwnHost {
    /// Returns the addresses of the host.
    #[must_use]
    pub const fn location(&self) -> Location {
        Location { address: self.address, gateway: self.gateway }
    }

    /// Opens the link.
    ///
    /// # Errors
    /// [`OpenError`], which names the missing permission or device and the remedy.
    pub fn open(&self, offloads: bool) -> Result<AnyLink, OpenError> {
        AnyLink::open(&self.link, self.address.address(), offloads)
    }
}

impl fmt::Display for OwnHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.address, self.link)
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
        let text = r#"{"link":"tap:lr0","address":"2001:db8::7/64","gateway":"fe80::1"}"#;
        let host: OwnHost = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&host).unwrap(), text);
    }
}
