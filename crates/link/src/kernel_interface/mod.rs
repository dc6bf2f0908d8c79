//! The kernel's network interfaces: what there is, and setting them up without any program's help.
//!
//! Everything here speaks of the network namespace of the calling thread, and of nothing outside it.

mod netlink;

use crate::sys::ethtool::set_transmit_checksums;
use linerate_stack::LinkError;
use linerate_units::Bytes;
use netlink::{Kind, Request, attributes, number};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use thiserror::Error;

/// `AF_INET`.
const INET: u8 = 2;
/// `IFF_UP`.
const UP: u32 = 1;
/// `IFF_RUNNING`: up, and the line is connected.
const RUNNING: u32 = 0x40;
/// Bytes of `struct ifinfomsg`, the fixed part of a message about an interface.
const LINK_PART: usize = 16;

// Attributes of an interface.
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_PID: u16 = 19;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// One interface of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInterface {
    name: String,
    index: u32,
}

/// What an interface is like at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// Whether it was brought up.
    pub up: bool,
    /// Whether it is up and its line is connected.
    pub running: bool,
    /// The largest IP packet.
    pub mtu: Bytes,
    /// Its Ethernet address, if it has one.
    pub mac: Option<[u8; 6]>,
}

impl KernelInterface {
    /// The interface called `name`.
    ///
    /// # Errors
    /// [`InterfaceError::Missing`] if there is none, or one of the others.
    pub fn named(name: &str) -> Result<Self, InterfaceError> {
        check_name(name)?;
        let reply = Request::new(Kind::GetLink, &link_part(0, 0, 0))
            .name(IFLA_IFNAME, name)
            .perform()
            .map_err(|errno| InterfaceError::of("look up the interface", name, errno))?;
        Ok(Self { name: name.to_owned(), index: reply.get(4..).and_then(number).unwrap_or(0) })
    }

    /// The loopback interface, which is down in a new network namespace.
    ///
    /// # Errors
    /// [`InterfaceError`] if the system answers no questions.
    pub fn loopback() -> Result<Self, InterfaceError> {
        Self::named("lo")
    }

    /// Makes two interfaces that are the ends of one cable.
    ///
    /// # Errors
    /// [`InterfaceError`], among others if a name is taken or the kernel has no virtual Ethernet.
    pub fn create_veth(name: &str, peer: &str) -> Result<(Self, Self), InterfaceError> {
        check_name(name)?;
        check_name(peer)?;
        let part = link_part(0, 0, 0);
        Request::new(Kind::NewLink, &part)
            .name(IFLA_IFNAME, name)
            .nested(IFLA_LINKINFO, &[], |info| {
                info.attribute(IFLA_INFO_KIND, b"veth").nested(IFLA_INFO_DATA, &[], |data| {
                    data.nested(VETH_INFO_PEER, &part, |other| other.name(IFLA_IFNAME, peer))
                })
            })
            .perform()
            .map_err(|errno| InterfaceError::of("make the virtual cable", name, errno))?;
        Ok((Self::named(name)?, Self::named(peer)?))
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel calls it.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// What it is like at the moment.
    ///
    /// # Errors
    /// [`InterfaceError`], among others if it is gone.
    pub fn state(&self) -> Result<InterfaceState, InterfaceError> {
        let reply =
            self.perform("look at", Request::new(Kind::GetLink, &link_part(self.index, 0, 0)))?;
        let flags = reply.get(8..).and_then(number).unwrap_or(0);
        let find = |wanted| {
            attributes(&reply, LINK_PART)
                .find_map(|(kind, value)| (kind == wanted).then_some(value))
        };
        Ok(InterfaceState {
            up: flags & UP != 0,
            running: flags & RUNNING != 0,
            mtu: Bytes::new(find(IFLA_MTU).and_then(number).unwrap_or(0).into()),
            mac: find(IFLA_ADDRESS).and_then(|address| address.try_into().ok()),
        })
    }

    /// The station that it is on its Ethernet.
    ///
    /// # Errors
    /// [`InterfaceError::NoEthernet`] if it is none, or if the system does not answer.
    pub fn station(&self) -> Result<[u8; 6], InterfaceError> {
        self.state()?.mac.ok_or_else(|| InterfaceError::NoEthernet(self.name.clone()))
    }

    /// Brings it up. Its addresses then have their routes.
    ///
    /// # Errors
    /// [`InterfaceError`], among others without permission.
    pub fn set_up(&self) -> Result<(), InterfaceError> {
        self.perform("bring up", self.change(UP, UP)).map(drop)
    }

    /// Takes it down.
    ///
    /// # Errors
    /// As for [`set_up`](Self::set_up).
    pub fn set_down(&self) -> Result<(), InterfaceError> {
        self.perform("take down", self.change(0, UP)).map(drop)
    }

    /// Sets the largest IP packet.
    ///
    /// # Errors
    /// [`InterfaceError`], among others for a size that its driver cannot carry.
    pub fn set_mtu(&self, mtu: Bytes) -> Result<(), InterfaceError> {
        let mtu = u32::try_from(mtu.count()).unwrap_or(u32::MAX);
        self.perform("set the MTU of", self.change(0, 0).attribute(IFLA_MTU, &mtu.to_ne_bytes()))
            .map(drop)
    }

    /// Sets how many frames may wait to go out of it. Those that the kernel sends to a program behind a
    /// TAP device wait there until the program reads them, 500 unless this is set; more are lost.
    ///
    /// # Errors
    /// [`InterfaceError`], among others without permission.
    pub fn set_queue_length(&self, frames: u32) -> Result<(), InterfaceError> {
        let request = self.change(0, 0).attribute(IFLA_TXQLEN, &frames.to_ne_bytes());
        self.perform("set the queue of", request).map(drop)
    }

    /// Gives it another Ethernet address.
    ///
    /// # Errors
    /// [`InterfaceError`], among others for an address that is no station's.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), InterfaceError> {
        self.perform("set the address of", self.change(0, 0).attribute(IFLA_ADDRESS, &mac))
            .map(drop)
    }

    /// Gives it one more IP address, in a network of `prefix` bits.
    ///
    /// # Errors
    /// [`InterfaceError`], among others if it has the address already.
    pub fn add_address(&self, address: Ipv4Addr, prefix: u8) -> Result<(), InterfaceError> {
        const IFA_ADDRESS: u16 = 1;
        const IFA_LOCAL: u16 = 2;
        // struct ifaddrmsg: family, prefix, flags, scope, and the index of the interface.
        let mut part = [INET, prefix, 0, 0, 0, 0, 0, 0];
        part[4..].copy_from_slice(&self.index.to_ne_bytes());
        let request = Request::new(Kind::NewAddress, &part)
            .attribute(IFA_LOCAL, &address.octets())
            .attribute(IFA_ADDRESS, &address.octets());
        self.perform("give an address to", request).map(drop)
    }

    /// Sends what is for `destination`/`prefix` out here, to `gateway` or to the neighbour itself. The
    /// default route is `0.0.0.0`/0.
    ///
    /// # Errors
    /// [`InterfaceError`], among others if the gateway is no neighbour, or the interface is down.
    pub fn add_route(
        &self,
        destination: Ipv4Addr,
        prefix: u8,
        gateway: Option<Ipv4Addr>,
    ) -> Result<(), InterfaceError> {
        const RTA_DST: u16 = 1;
        const RTA_OIF: u16 = 4;
        const RTA_GATEWAY: u16 = 5;
        // struct rtmsg: family, destination and source prefix, TOS, RT_TABLE_MAIN, RTPROT_STATIC, scope
        // (RT_SCOPE_LINK without a gateway), RTN_UNICAST, flags.
        let scope = if gateway.is_some() { 0 } else { 253 };
        let part = [INET, prefix, 0, 0, 254, 4, scope, 1, 0, 0, 0, 0];
        let mut request = Request::new(Kind::NewRoute, &part)
            .attribute(RTA_DST, &destination.octets())
            .attribute(RTA_OIF, &self.index.to_ne_bytes());
        if let Some(gateway) = gateway {
            request = request.attribute(RTA_GATEWAY, &gateway.octets());
        }
        self.perform("route over", request).map(drop)
    }

    /// Moves it into the network namespace of process (or thread) `pid`. It arrives there down and
    /// without addresses, and is no longer found here.
    ///
    /// # Errors
    /// [`InterfaceError`], among others if there is no such process.
    pub fn move_to_process(self, pid: u32) -> Result<(), InterfaceError> {
        self.perform("move", self.change(0, 0).attribute(IFLA_NET_NS_PID, &pid.to_ne_bytes()))
            .map(drop)
    }

    /// Removes it from the machine, and with a virtual cable its other end.
    ///
    /// # Errors
    /// [`InterfaceError`], among others for an interface that is a device.
    pub fn delete(self) -> Result<(), InterfaceError> {
        self.perform("remove", Request::new(Kind::DeleteLink, &link_part(self.index, 0, 0)))
            .map(drop)
    }

    /// Makes the kernel silent about IPv6 here: without this it announces itself on every new interface,
    /// at times of its own choosing. No error where the kernel has no IPv6.
    ///
    /// # Errors
    /// [`InterfaceError::NotPermitted`], or that `/proc` is not what it should be.
    pub fn disable_ipv6(&self) -> Result<(), InterfaceError> {
        match fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name), "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Err(InterfaceError::of("switch IPv6 off on", &self.name, errno))
            }
            _ => Ok(()),
        }
    }

    /// Says whether the kernel leaves the checksums of what it sends here to the card, as it does on a virtual
    /// cable, whose other end then gets segments without.
    ///
    /// # Errors
    /// [`InterfaceError`], among others without permission.
    pub fn set_checksum_offload(&self, on: bool) -> Result<(), InterfaceError> {
        let mut name = [0; 16];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        set_transmit_checksums(name, on)
            .map_err(|errno| InterfaceError::of("set the checksums of", &self.name, errno))
    }

    fn change(&self, flags: u32, mask: u32) -> Request {
        Request::new(Kind::SetLink, &link_part(self.index, flags, mask))
    }

    fn perform(&self, what: &'static str, request: Request) -> Result<Vec<u8>, InterfaceError> {
        request.perform().map_err(|errno| InterfaceError::of(what, &self.name, errno))
    }
}

/// `struct ifinfomsg`: family, type, index, flags, and which flags change.
fn link_part(index: u32, flags: u32, mask: u32) -> [u8; LINK_PART] {
    let mut part = [0; LINK_PART];
    part[4..8].copy_from_slice(&index.to_ne_bytes());
    part[8..12].copy_from_slice(&flags.to_ne_bytes());
    part[12..16].copy_from_slice(&mask.to_ne_bytes());
    part
}

/// What it means that the kernel refuses to carry frames of an interface that it has as well.
pub(crate) fn explain(what: &'static str, errno: i32) -> LinkError {
    match errno {
        libc::ENETDOWN | libc::ENXIO | libc::ENODEV => LinkError::Down,
        errno => LinkError::Io { errno, what },
    }
}

/// Refuses what the kernel refuses, with a sentence instead of a number.
pub(crate) fn check_name(name: &str) -> Result<(), InterfaceError> {
    let sound = (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
    if sound { Ok(()) } else { Err(InterfaceError::Name(name.to_owned())) }
}

/// Why the kernel did not do as it was told with an interface.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InterfaceError {
    /// The caller chose a name that no interface can have.
    #[error(
        "`{0}` cannot be the name of an interface: 1 to 15 letters, digits and signs, without `/`, `:`, `%`"
    )]
    Name(String),
    /// There is no such interface in this network namespace.
    #[error("there is no interface `{0}` here: look at /proc/net/dev for those that exist")]
    Missing(String),
    /// It has no stations.
    #[error("the interface `{0}` is no Ethernet: choose one with a station's address")]
    NoEthernet(String),
    /// What should be made exists already.
    #[error("could not {what} `{name}`: it exists already")]
    Exists {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
    },
    /// The process may not.
    #[error(
        "no permission to {what} `{name}`: run as root, or in a user and network namespace of your own"
    )]
    NotPermitted {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
    },
    /// The kernel was built without it, or the interface cannot do it.
    #[error("this kernel cannot {what} `{name}`: it, or the interface, lacks the feature")]
    Unsupported {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
    },
    /// The system refused for another reason.
    #[error("the system could not {what} `{name}` (error {errno}: {})", io::Error::from_raw_os_error(*errno))]
    System {
        /// What was to be done.
        what: &'static str,
        /// The interface.
        name: String,
        /// The error number of the system.
        errno: i32,
    },
}

impl InterfaceError {
    fn of(what: &'static str, name: &str, errno: Errno) -> Self {
        let name = name.to_owned();
        match errno {
            Errno::NODEV => Self::Missing(name),
            Errno::EXIST => Self::Exists { what, name },
            Errno::PERM | Errno::ACCESS => Self::NotPermitted { what, name },
            Errno::OPNOTSUPP => Self::Unsupported { what, name },
            _ => Self::System { what, name, errno: errno.raw_os_error() },
        }
    }
}

#[cfg(test)]
mod tests;
