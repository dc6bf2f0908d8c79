//! Queries and configures the kernel's network interfaces without external programs.
//!
//! All functions refer to the network namespace of the calling thread.

mod netlink;

use crate::sys::ethtool::{driver_counters, set_transmit_checksums};
use linerate_stack::LinkError;
use linerate_units::Bytes;
use netlink::{Kind, Request, RouteAnnouncements, attributes, number};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use thiserror::Error;

/// Address family `AF_INET`.
const INET: u8 = 2;
/// Address family `AF_INET6`.
const INET6: u8 = 10;
/// Interface flag `IFF_UP`.
const UP: u32 = 1;
/// Interface flag `IFF_RUNNING`: the interface is up and has a carrier.
const RUNNING: u32 = 0x40;
/// Length of `struct ifinfomsg`, the fixed part of a message about an interface, in bytes.
const LINK_PART: usize = 16;

// Numbers of netlink attributes that describe an interface.
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_PID: u16 = 19;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// Length of `struct rtmsg`, the fixed part of a message about a route, in bytes.
const ROUTE_PART: usize = 12;
const RTA_DST: u16 = 1;
/// `RTN_LOCAL`: the route of an address of this machine.
const LOCAL: u8 = 2;

/// Length of `struct tcmsg`, the fixed part of a message about a queue discipline, in bytes.
const QUEUE_PART: usize = 20;
/// Handle `TC_H_ROOT`: the queue discipline at the root of an interface.
const ROOT: u32 = u32::MAX;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;

/// A network interface of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInterface {
    name: String,
    index: u32,
}

/// The state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// Whether the interface is up.
    pub up: bool,
    /// Whether the interface is up and has a carrier: an Ethernet cable is connected, or the peer
    /// of a veth interface is up.
    pub running: bool,
    /// The MTU: the length of the largest IP packet.
    pub mtu: Bytes,
    /// The MAC address, if the interface has one.
    pub mac: Option<[u8; 6]>,
}

impl KernelInterface {
    /// Returns the interface called `name`.
    ///
    /// # Errors
    /// [`InterfaceError::Missing`] if it does not exist, or another error.
    pub fn named(name: &str) -> Result<Self, InterfaceError> {
        check_name(name)?;
        let reply = Request::new(Kind::GetLink, &link_part(0, 0, 0))
            .name(IFLA_IFNAME, name)
            .perform()
            .map_err(|errno| InterfaceError::of("look up the interface", name, errno))?;
        Ok(Self { name: name.to_owned(), index: reply.get(4..).and_then(number).unwrap_or(0) })
    }

    /// Returns the interface called `name`, even if this network namespace has none of that name.
    /// The interface is then in another namespace, and its index here is zero.
    pub(crate) fn elsewhere(name: &str) -> Self {
        let index = Self::named(name).map_or(0, |interface| interface.index);
        Self { name: name.to_owned(), index }
    }

    /// Returns the loopback interface, which is down in a new network namespace.
    ///
    /// # Errors
    /// [`InterfaceError`] if the system reports an error.
    pub fn loopback() -> Result<Self, InterfaceError> {
        Self::named("lo")
    }

    /// Creates a veth pair, and returns its two interfaces.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for a name in use, or a kernel without virtual Ethernet.
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
            .map_err(|errno| InterfaceError::of("create the veth pair", name, errno))?;
        Ok((Self::named(name)?, Self::named(peer)?))
    }

    /// Returns the name of the interface, such as `eth0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the index of the interface.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Returns the current state of the interface.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for an interface that has been deleted.
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

    /// Returns the MAC address of the interface.
    ///
    /// # Errors
    /// [`InterfaceError::NoEthernet`] if it has none, or another error of the system.
    pub fn mac_address(&self) -> Result<[u8; 6], InterfaceError> {
        self.state()?.mac.ok_or_else(|| InterfaceError::NoEthernet(self.name.clone()))
    }

    /// Brings the interface up, which adds the routes of its addresses.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for lack of permission.
    pub fn set_up(&self) -> Result<(), InterfaceError> {
        self.perform("bring up", self.change(UP, UP)).map(drop)
    }

    /// Takes the interface down.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for lack of permission.
    pub fn set_down(&self) -> Result<(), InterfaceError> {
        self.perform("take down", self.change(0, UP)).map(drop)
    }

    /// Sets the MTU.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for a size that the driver does not support.
    pub fn set_mtu(&self, mtu: Bytes) -> Result<(), InterfaceError> {
        let mtu = u32::try_from(mtu.count()).unwrap_or(u32::MAX);
        self.perform("set the MTU of", self.change(0, 0).attribute(IFLA_MTU, &mtu.to_ne_bytes()))
            .map(drop)
    }

    /// Sets the maximum number of frames that the kernel queues for transmission on the interface.
    /// It drops frames that exceed the number. The queue of a TAP device contains the frames that
    /// the program has not read yet. The default maximum is 500.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for lack of permission.
    pub fn set_queue_length(&self, frames: u32) -> Result<(), InterfaceError> {
        let request = self.change(0, 0).attribute(IFLA_TXQLEN, &frames.to_ne_bytes());
        self.perform("set the queue of", request).map(drop)
    }

    /// Sets the MAC address.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for a group address.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), InterfaceError> {
        self.perform("set the address of", self.change(0, 0).attribute(IFLA_ADDRESS, &mac))
            .map(drop)
    }

    /// Adds an IP address with a prefix of `prefix` bits, without duplicate address detection. If
    /// the interface is up, the kernel already accepts packets to the address when this call
    /// returns.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for an address that the interface already has.
    pub fn add_address(
        &self,
        address: impl Into<IpAddr>,
        prefix: u8,
    ) -> Result<(), InterfaceError> {
        /// Address flag `IFA_F_NODAD`: no duplicate address detection.
        const NO_SEARCH: u8 = 2;
        const IFA_ADDRESS: u16 = 1;
        const IFA_LOCAL: u16 = 2;
        // The fields of `struct ifaddrmsg`: family, prefix length, flags, scope, and interface
        // index.
        let (family, octets) = family_and_octets(address.into());
        let flags = if family == INET { 0 } else { NO_SEARCH };
        let mut part = [family, prefix, flags, 0, 0, 0, 0, 0];
        part[4..].copy_from_slice(&self.index.to_ne_bytes());
        let request = Request::new(Kind::NewAddress, &part)
            .attribute(IFA_LOCAL, &octets)
            .attribute(IFA_ADDRESS, &octets);
        if family == INET || !self.state()?.running {
            return self.perform("give an address to", request).map(drop);
        }
        self.add_ipv6_address(request, &octets)
            .map_err(|errno| InterfaceError::of("give an address to", &self.name, errno))
    }

    /// Performs `request`, which adds an IPv6 address to an interface that is up. The kernel
    /// accepts packets to the address only once it has added a local route, some time after the
    /// request. So this method returns when the route exists.
    fn add_ipv6_address(&self, request: Request, address: &[u8]) -> Result<(), Errno> {
        let announcements = RouteAnnouncements::subscribe()?;
        request.perform()?;
        announcements.wait_for(|route| is_route_of_own_address(route, address))?;
        // The kernel announces the local route of the new address slightly before lookups find it.
        // In between, the kernel holds the lock of the network configuration (RTNL). The next
        // request changes nothing, but waits for this lock. So when it returns, lookups find the
        // route.
        self.change(0, 0).perform().map(drop)
    }

    /// Adds a route to `destination`/`prefix` over this interface, through `gateway` if there is
    /// one. The default routes are `0.0.0.0`/0 and `::`/0.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for an unreachable gateway, or an interface that is down.
    pub fn add_route(
        &self,
        destination: impl Into<IpAddr>,
        prefix: u8,
        gateway: Option<IpAddr>,
    ) -> Result<(), InterfaceError> {
        const RTA_OIF: u16 = 4;
        const RTA_GATEWAY: u16 = 5;
        // The fields of `struct rtmsg`: family, destination and source prefix length, TOS,
        // RT_TABLE_MAIN, RTPROT_STATIC, scope (RT_SCOPE_LINK without a gateway), RTN_UNICAST,
        // flags.
        let scope = if gateway.is_some() { 0 } else { 253 };
        let (family, octets) = family_and_octets(destination.into());
        let part = [family, prefix, 0, 0, 254, 4, scope, 1, 0, 0, 0, 0];
        let mut request = Request::new(Kind::NewRoute, &part)
            .attribute(RTA_DST, &octets)
            .attribute(RTA_OIF, &self.index.to_ne_bytes());
        if let Some(gateway) = gateway {
            request = request.attribute(RTA_GATEWAY, &family_and_octets(gateway).1);
        }
        self.perform("route over", request).map(drop)
    }

    /// Moves the interface into the network namespace of process (or thread) `pid`, where it
    /// arrives down and without addresses.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for a process that does not exist.
    pub fn move_to_process(self, pid: u32) -> Result<(), InterfaceError> {
        self.perform("move", self.change(0, 0).attribute(IFLA_NET_NS_PID, &pid.to_ne_bytes()))
            .map(drop)
    }

    /// Deletes the interface. Deleting one interface of a veth pair also deletes the other.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for a physical interface.
    pub fn delete(self) -> Result<(), InterfaceError> {
        self.perform("remove", Request::new(Kind::DeleteLink, &link_part(self.index, 0, 0)))
            .map(drop)
    }

    /// Disables IPv6 on the interface. Otherwise the kernel itself sends packets on a new interface
    /// at unpredictable times. If the kernel has no IPv6, the call changes nothing and succeeds.
    ///
    /// # Errors
    /// [`InterfaceError::NotPermitted`], or another error of writing to `/proc`.
    pub fn disable_ipv6(&self) -> Result<(), InterfaceError> {
        self.switch_ipv6("disable IPv6 on", "1")
    }

    /// Enables IPv6 on the interface. This is necessary in network namespaces where IPv6 is
    /// disabled on new interfaces. If the kernel has no IPv6, the call changes nothing and
    /// succeeds.
    ///
    /// # Errors
    /// [`InterfaceError::NotPermitted`], or another error of writing to `/proc`.
    pub fn enable_ipv6(&self) -> Result<(), InterfaceError> {
        self.switch_ipv6("enable IPv6 on", "0")
    }

    fn switch_ipv6(&self, what: &'static str, disable: &str) -> Result<(), InterfaceError> {
        match fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name), disable) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Err(InterfaceError::of(what, &self.name, errno))
            }
            _ => Ok(()),
        }
    }

    /// Sets whether the kernel leaves the checksums of sent packets to the NIC. For a veth pair,
    /// this is on by default. As a veth pair has no NIC that would compute them, segments reach the
    /// peer interface with incomplete checksums.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for lack of permission.
    pub fn set_checksum_offload(&self, on: bool) -> Result<(), InterfaceError> {
        set_transmit_checksums(self.padded_name(), on)
            .map_err(|errno| InterfaceError::of("set the checksums of", &self.name, errno))
    }

    /// Returns the driver's counters by name, as `ethtool -S` prints them. Empty if the driver has
    /// none.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for an interface that no longer exists.
    pub fn driver_counters(&self) -> Result<BTreeMap<String, u64>, InterfaceError> {
        let counters = driver_counters(self.padded_name())
            .map_err(|errno| InterfaceError::of("read the counters of", &self.name, errno))?;
        Ok(counters.into_iter().map(|counter| (counter.name, counter.value)).collect())
    }

    /// Returns the counters of the queue discipline at the root of the interface. They include the
    /// counters of the disciplines below it. Returns `None` if the discipline does not count, such
    /// as `noqueue`.
    ///
    /// # Errors
    /// [`InterfaceError`], such as for an interface that no longer exists.
    pub fn queue_counters(&self) -> Result<Option<QueueCounters>, InterfaceError> {
        let mut part = [0; QUEUE_PART];
        part[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let replies = Request::new(Kind::GetQueue, &part)
            .dump()
            .map_err(|errno| InterfaceError::of("read the queue of", &self.name, errno))?;
        Ok(replies.iter().find_map(|reply| queue_counters(reply, self.index)))
    }

    /// Returns the interface name, padded with zeros to the 16 bytes that the kernel expects.
    fn padded_name(&self) -> [u8; 16] {
        let mut name = [0; 16];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        name
    }

    fn change(&self, flags: u32, mask: u32) -> Request {
        Request::new(Kind::SetLink, &link_part(self.index, flags, mask))
    }

    fn perform(&self, what: &'static str, request: Request) -> Result<Vec<u8>, InterfaceError> {
        request.perform().map_err(|errno| InterfaceError::of(what, &self.name, errno))
    }
}

/// Counters of a queue discipline, since it was installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCounters {
    /// Packets that the queue discipline dropped.
    pub dropped: u64,
    /// Packets that were queued once more, because the device had refused them.
    pub requeued: u64,
    /// Number of times that a packet had to wait because of the configured rate.
    pub overlimits: u64,
}

/// Parses `reply`, a `struct tcmsg` with its attributes. Returns the counters in it if it describes
/// the root queue discipline of interface `index`.
fn queue_counters(reply: &[u8], index: u32) -> Option<QueueCounters> {
    let is_root = number(reply.get(4..)?)? == index && number(reply.get(12..)?)? == ROOT;
    let (_, statistics) =
        attributes(reply, QUEUE_PART).find(|&(kind, _)| kind == TCA_STATS2).filter(|_| is_root)?;
    let (_, queue) = attributes(statistics, 0).find(|&(kind, _)| kind == TCA_STATS_QUEUE)?;
    // The fields of `struct gnet_stats_queue`: length, backlog, drops, requeues, overlimits.
    let field = |at: usize| number(queue.get(4 * at..)?).map(u64::from);
    Some(QueueCounters { dropped: field(2)?, requeued: field(3)?, overlimits: field(4)? })
}

/// Is `route`, a `struct rtmsg` with its attributes, the local route by which the kernel accepts
/// packets to its IPv6 address `address`?
fn is_route_of_own_address(route: &[u8], address: &[u8]) -> bool {
    let is_local = route.get(1) == Some(&128) && route.get(7) == Some(&LOCAL);
    is_local && attributes(route, ROUTE_PART).any(|attribute| attribute == (RTA_DST, address))
}

/// Returns the address family and the octets of an address.
fn family_and_octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (INET, address.octets().to_vec()),
        IpAddr::V6(address) => (INET6, address.octets().to_vec()),
    }
}

/// Returns a `struct ifinfomsg`: family, type, index, flags, and the mask of the flags to change.
fn link_part(index: u32, flags: u32, mask: u32) -> [u8; LINK_PART] {
    let mut part = [0; LINK_PART];
    part[4..8].copy_from_slice(&index.to_ne_bytes());
    part[8..12].copy_from_slice(&flags.to_ne_bytes());
    part[12..16].copy_from_slice(&mask.to_ne_bytes());
    part
}

/// Converts the system's error number `errno` to a link error. `what` names the operation that
/// failed, such as `send a frame`.
pub(crate) fn explain(what: &'static str, errno: i32) -> LinkError {
    match errno {
        libc::ENETDOWN | libc::ENXIO | libc::ENODEV => LinkError::Down,
        errno => LinkError::Io { errno, what },
    }
}

/// Checks an interface name by the kernel's rules. The kernel would reject an invalid name as well,
/// but would not say why.
pub(crate) fn check_name(name: &str) -> Result<(), InterfaceError> {
    let sound = (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
    if sound { Ok(()) } else { Err(InterfaceError::Name(name.to_owned())) }
}

/// The reason why an interface cannot be queried or configured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// The name is not valid for an interface.
    #[error(
        "`{0}` cannot be the name of an interface: 1 to 15 letters, digits and signs, without \
         `/`, `:`, `%`"
    )]
    Name(String),
    /// The interface does not exist in this network namespace.
    #[error("there is no interface `{0}` here: look at /proc/net/dev for those that exist")]
    Missing(String),
    /// The interface has no MAC address.
    #[error("the interface `{0}` is not Ethernet: choose one with a MAC address")]
    NoEthernet(String),
    /// The interface, address or route exists already.
    #[error("could not {what} `{name}`: it exists already")]
    Exists {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
        name: String,
    },
    /// The process lacks the permission.
    #[error(
        "no permission to {what} `{name}`: run as root, or in a user and network namespace of \
         your own"
    )]
    NotPermitted {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
        name: String,
    },
    /// The kernel or the interface does not support the operation.
    #[error("this kernel cannot {what} `{name}`: it, or the interface, lacks the feature")]
    Unsupported {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
        name: String,
    },
    /// Another error of the system.
    #[error(
        "the system could not {what} `{name}` (error {errno}: {})",
        io::Error::from_raw_os_error(*errno)
    )]
    System {
        /// The failed operation.
        what: &'static str,
        /// The name of the interface.
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
