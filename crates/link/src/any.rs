//! Links selected by a text such as `tap:lr0`, `packet:eth0` or `serial:/dev/ttyS0@9600`.

use crate::kernel_interface::{InterfaceError, KernelInterface};
use crate::packet::{PacketConfig, PacketError, PacketLink};
use crate::serial::{self, ParseBaudError, SerialConfig, SerialError, SerialLink};
use crate::tap::{Tap, TapConfig, TapError};
use crate::vlan::Vlan;
use crate::wait::Readiness;
use crate::xdp::{XdpConfig, XdpError, XdpLink};
use linerate_stack::{
    Capabilities, FrameSink, FrameSource, Link, LinkError, Medium, RxFrame, TxFrame,
};
use linerate_units::Instant;
use linerate_wire::VlanTag;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use thiserror::Error;

/// A choice of link: an existing interface or device, and the way to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkSpec {
    /// The TAP device with this name.
    Tap(String),
    /// The TUN device with this name.
    Tun(String),
    /// A packet socket on the interface with this name. The kernel continues to use the interface.
    Packet(String),
    /// AF_XDP: the name of the interface, and the number of its receive queue.
    Xdp(String, u32),
    /// A serial line: the path of its device, and the rate in baud.
    Serial(String, u32),
}

/// The rate of a serial line if none is given, in baud.
const USUAL_BAUD: u32 = 9_600;

impl LinkSpec {
    /// Returns the name of the network interface, or the path of the serial device.
    #[must_use]
    pub fn interface(&self) -> &str {
        match self {
            Self::Tap(name)
            | Self::Tun(name)
            | Self::Packet(name)
            | Self::Xdp(name, _)
            | Self::Serial(name, _) => name,
        }
    }

    /// Parses the part of the text after `serial:`, which is `DEVICE` or `DEVICE@BAUD`.
    fn serial(place: &str) -> Result<Self, ParseLinkError> {
        let (device, baud) = match place.rsplit_once('@') {
            Some((device, baud)) => (device, serial::parse_baud(baud)?),
            None => (place, USUAL_BAUD),
        };
        if device.is_empty() || device.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseLinkError::NoSerialDevice);
        }
        Ok(Self::Serial(device.to_owned(), baud))
    }
}

/// Parses `tap:NAME`, `tun:NAME`, `packet:NAME`, `xdp:NAME`, `xdp:NAME:QUEUE`, `serial:DEVICE` or
/// `serial:DEVICE@BAUD`.
impl FromStr for LinkSpec {
    type Err = ParseLinkError;

    fn from_str(text: &str) -> Result<Self, ParseLinkError> {
        match text.split_once(':') {
            Some(("tap", name)) if !name.is_empty() => Ok(Self::Tap(name.to_owned())),
            Some(("tun", name)) if !name.is_empty() => Ok(Self::Tun(name.to_owned())),
            Some(("packet", name)) if !name.is_empty() => Ok(Self::Packet(name.to_owned())),
            Some(("xdp", place)) if !place.is_empty() => {
                let (name, queue) = place.split_once(':').unwrap_or((place, "0"));
                let queue = queue.parse().map_err(|_| ParseLinkError::NoQueue(queue.to_owned()))?;
                Ok(Self::Xdp(name.to_owned(), queue))
            }
            Some(("serial", place)) => Self::serial(place),
            _ => Err(ParseLinkError::NoLink),
        }
    }
}

/// Formats the selection as text, which parses to the same value.
impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Tun(name) => write!(f, "tun:{name}"),
            Self::Packet(name) => write!(f, "packet:{name}"),
            Self::Xdp(name, queue) => write!(f, "xdp:{name}:{queue}"),
            Self::Serial(device, baud) => write!(f, "serial:{device}@{baud}"),
        }
    }
}

/// The reason why a text selects no link.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseLinkError {
    /// The text has no known prefix such as `tap:`.
    #[error(
        "write tap:NAME, tun:NAME, packet:NAME or xdp:NAME:QUEUE for an interface that exists, or \
         serial:DEVICE@BAUD"
    )]
    NoLink,
    /// The number of the AF_XDP queue is not a number.
    #[error("`{0}` is not a queue: write xdp:NAME:0")]
    NoQueue(String),
    /// The path of the serial device is missing.
    #[error("a serial line needs a device here: write serial:DEVICE@BAUD")]
    NoSerialDevice,
    /// The baud rate is not one of those that serial lines support.
    #[error(transparent)]
    Baud(#[from] ParseBaudError),
}

/// Options for opening a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// Whether the link may carry GSO and GRO frames and leave checksums to the interface.
    pub offloads: bool,
    /// The VLAN in which the host is; `None` for untagged frames. Only TAP devices and packet
    /// sockets support VLANs.
    pub vlan: Option<VlanTag>,
    /// Whether a serial line compresses TCP/IP headers (RFC 1144). `None` means that it does. Other
    /// links do not support the option.
    pub header_compression: Option<bool>,
    /// The length of the largest packet on a serial line, in bytes. `None` means 296 bytes, or
    /// 1,280 bytes if the host has an IPv6 address. Other links use the MTU of their interface, so
    /// they do not support the option.
    pub mtu: Option<u16>,
}

/// An open link, of any kind that a [`LinkSpec`] can select.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a program has only one")]
#[non_exhaustive]
pub enum AnyLink {
    /// A TAP or TUN device, see [`LinkSpec::Tap`] and [`LinkSpec::Tun`].
    Tap(Tap),
    /// A host in a VLAN, over a TAP device (see [`LinkOptions::vlan`]).
    TapVlan(Vlan<Tap>),
    /// A packet socket, see [`LinkSpec::Packet`].
    Packet(PacketLink),
    /// A host in a VLAN, over a packet socket (see [`LinkOptions::vlan`]).
    PacketVlan(Vlan<PacketLink>),
    /// A queue of AF_XDP, see [`LinkSpec::Xdp`].
    Xdp(XdpLink),
    /// A serial line, see [`LinkSpec::Serial`].
    Serial(SerialLink),
}

impl AnyLink {
    /// Opens the link that `spec` selects, for a host with the IP address `address`.
    ///
    /// # Errors
    /// [`OpenError`], which names what is missing and the remedy.
    pub fn open(
        spec: &LinkSpec,
        address: impl Into<IpAddr>,
        options: &LinkOptions,
    ) -> Result<Self, OpenError> {
        let address = address.into();
        options.check(spec)?;
        Ok(match (spec, options.vlan) {
            (LinkSpec::Tap(name), None) => {
                Self::Tap(existing_tap(name, Medium::Ethernet, options.offloads)?)
            }
            (LinkSpec::Tap(name), Some(tag)) => {
                let tap = existing_tap(name, Medium::Ethernet, options.offloads)?;
                Self::TapVlan(Vlan::new(tap, tag))
            }
            (LinkSpec::Tun(name), _) => {
                Self::Tap(existing_tap(name, Medium::Ip, options.offloads)?)
            }
            (LinkSpec::Packet(name), vlan) => {
                let config = PacketConfig { offloads: options.offloads, ..PacketConfig::new(name) };
                match vlan {
                    None => Self::Packet(PacketLink::open(&config)?),
                    Some(tag) => Self::PacketVlan(PacketLink::open_vlan(&config, tag)?),
                }
            }
            (LinkSpec::Xdp(name, queue), _) => {
                let address = match address {
                    IpAddr::V4(address) => address,
                    address @ IpAddr::V6(_) => return Err(OpenError::XdpAddress(address)),
                };
                let config = XdpConfig { queue: *queue, ..XdpConfig::new(name, address) };
                Self::Xdp(XdpLink::open(&config)?)
            }
            (LinkSpec::Serial(device, baud), _) => {
                let config = options.serial(*baud, address)?;
                Self::Serial(SerialLink::open(device, &config)?)
            }
        })
    }

    /// Returns the kernel's interface that the link uses, or `None` for a serial line.
    #[must_use]
    pub const fn interface(&self) -> Option<&KernelInterface> {
        match self {
            Self::Tap(link) => Some(link.interface()),
            Self::TapVlan(vlan) => Some(vlan.link().interface()),
            Self::Packet(link) => Some(link.interface()),
            Self::PacketVlan(vlan) => Some(vlan.link().interface()),
            Self::Xdp(link) => Some(link.interface()),
            Self::Serial(_) => None,
        }
    }

    /// Returns the MAC address that the host must use. Returns `None` if the host can choose its
    /// MAC address, or if the link has no MAC addresses.
    #[must_use]
    pub const fn mac(&self) -> Option<[u8; 6]> {
        match self {
            Self::Tap(_) | Self::TapVlan(_) | Self::Serial(_) => None,
            Self::Packet(link) => Some(link.mac()),
            Self::PacketVlan(vlan) => Some(vlan.link().mac()),
            Self::Xdp(link) => Some(link.mac()),
        }
    }

    /// Returns whether the link compresses headers (RFC 1144). Compression is effective only if few
    /// header fields change from packet to packet. So the host should then increment the IP
    /// identification by one for each packet, and send no TCP timestamps.
    #[must_use]
    pub const fn compresses_headers(&self) -> bool {
        match self {
            Self::Serial(link) => link.config().header_compression,
            _ => false,
        }
    }

    /// Returns a short text for users, which names the mechanism that carries the frames, such as
    /// `a TUN device`.
    #[must_use]
    pub fn description(&self) -> &'static str {
        match self {
            Self::Tap(link) if link.capabilities().medium == Medium::Ip => "a TUN device",
            Self::Tap(_) => "a TAP device",
            Self::TapVlan(_) => "a VLAN of a TAP device",
            Self::Packet(_) => "a packet socket",
            Self::PacketVlan(_) => "a packet socket for a VLAN",
            Self::Xdp(link) if link.is_zero_copy() => "AF_XDP with zero-copy",
            Self::Xdp(_) => "AF_XDP with copies",
            Self::Serial(_) if self.compresses_headers() => "SLIP with header compression",
            Self::Serial(_) => "SLIP",
        }
    }
}

impl LinkOptions {
    /// Returns an error if an option is set that the kind of link in `spec` does not support.
    fn check(&self, spec: &LinkSpec) -> Result<(), OpenError> {
        let is_serial = matches!(spec, LinkSpec::Serial(..));
        if self.vlan.is_some() && !matches!(spec, LinkSpec::Tap(_) | LinkSpec::Packet(_)) {
            return Err(OpenError::NoVlan(spec.clone()));
        }
        if self.header_compression.is_some() && !is_serial {
            return Err(OpenError::NoHeaderCompression(spec.clone()));
        }
        if self.mtu.is_some() && !is_serial {
            return Err(OpenError::OwnMtu(spec.clone()));
        }
        Ok(())
    }

    /// Combines these options, the rate `baud` and the default values to the configuration of a
    /// serial line. `address` is the address of the host.
    ///
    /// # Errors
    /// [`OpenError::SerialIpv6`] if the MTU is too small for IPv6.
    pub fn serial(&self, baud: u32, address: IpAddr) -> Result<SerialConfig, OpenError> {
        let least = if address.is_ipv6() { SerialConfig::MTU_IPV6 } else { 0 };
        let mtu = self.mtu.map_or_else(|| SerialConfig::MTU.max(least), usize::from);
        if mtu < least {
            return Err(OpenError::SerialIpv6(mtu));
        }
        let header_compression = self.header_compression.unwrap_or(true);
        Ok(SerialConfig { header_compression, mtu, queue: mtu, ..SerialConfig::new(baud) })
    }
}

/// Opens the existing TAP or TUN device `name` without changing its MTU.
fn existing_tap(name: &str, medium: Medium, offloads: bool) -> Result<Tap, OpenError> {
    let state = KernelInterface::named(name).and_then(|interface| interface.state());
    let mode = if medium == Medium::Ethernet { "tap" } else { "tun" };
    let state = state.map_err(|source| OpenError::NoTap { mode, name: name.to_owned(), source })?;
    let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX);
    let config = TapConfig { name: name.to_owned(), medium, mtu, offloads };
    Ok(Tap::open(&config)?)
}

/// The reason why a link cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The TAP or TUN device does not exist.
    #[error(
        "{source}: make it with `ip tuntap add mode {mode} name {name}` and `ip link set {name} up`"
    )]
    NoTap {
        /// The kind of the device: `tap` or `tun`.
        mode: &'static str,
        /// The name of the device.
        name: String,
        /// The error of the system.
        source: InterfaceError,
    },
    /// The TAP device cannot be opened.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The packet socket cannot be opened.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The link is to use AF_XDP, but the host has an IPv6 address. The XDP program selects the
    /// host's frames by IPv4 address only.
    #[error(
        "AF_XDP selects frames by IPv4 address, and {0} is none: give an IPv4 address, or use \
         packet:NAME"
    )]
    XdpAddress(IpAddr),
    /// The AF_XDP socket cannot be opened, or the XDP program cannot be attached.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The serial line cannot be opened.
    #[error(transparent)]
    Serial(#[from] SerialError),
    /// The MTU of a serial line is too small for IPv6.
    #[error(
        "IPv6 needs an MTU of 1280 bytes, and the line has {0}: give a larger one, or use IPv4"
    )]
    SerialIpv6(usize),
    /// The VLAN option does not apply to this link.
    #[error("{0} carries no VLAN tags: use tap:NAME or packet:NAME")]
    NoVlan(LinkSpec),
    /// The option for header compression does not apply to this link.
    #[error("{0} does not compress headers: leave --header-compression out, or use serial:DEVICE")]
    NoHeaderCompression(LinkSpec),
    /// The MTU option does not apply to this link, which has an MTU of its own.
    #[error("{0} has an MTU of its own: change that (`ip link set … mtu …`), or use serial:DEVICE")]
    OwnMtu(LinkSpec),
}

/// Evaluates the expression `$call` for any variant of an `AnyLink`. In the expression, `$link` is
/// the link that the variant contains.
macro_rules! each {
    ($any:expr, $link:ident => $call:expr) => {
        match $any {
            AnyLink::Tap($link) => $call,
            AnyLink::TapVlan($link) => $call,
            AnyLink::Packet($link) => $call,
            AnyLink::PacketVlan($link) => $call,
            AnyLink::Xdp($link) => $call,
            AnyLink::Serial($link) => $call,
        }
    };
}

impl Link for AnyLink {
    fn receive(
        &mut self,
        budget: usize,
        on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        each!(self, link => link.receive(budget, on_frame))
    }

    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        each!(self, link => link.receive_into(budget, sink))
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        each!(self, link => link.transmit(budget, fill))
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        each!(self, link => link.transmit_from(budget, source))
    }

    fn capabilities(&self) -> Capabilities {
        each!(self, link => link.capabilities())
    }
}

impl Readiness for AnyLink {
    fn fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.fd())
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        each!(self, link => link.wakeup_fd())
    }

    fn wants_room(&self) -> bool {
        each!(self, link => link.wants_room())
    }

    fn is_ready(&mut self) -> bool {
        each!(self, link => link.is_ready())
    }

    fn prepare_to_sleep(&mut self) -> bool {
        each!(self, link => link.prepare_to_sleep())
    }

    fn awake(&mut self, signalled: bool) {
        each!(self, link => link.awake(signalled));
    }

    fn next_deadline(&self) -> Instant {
        each!(self, link => link.next_deadline())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_parsed_as_it_is_printed() {
        for text in ["tap:lr0", "tun:lr0", "packet:eth0", "xdp:eth0:1", "serial:/dev/ttyS0@115200"]
        {
            assert_eq!(text.parse::<LinkSpec>().unwrap().to_string(), text);
        }
        assert_eq!("xdp:eth0".parse(), Ok(LinkSpec::Xdp("eth0".to_owned(), 0)), "the first queue");
        let usual = LinkSpec::Serial("/dev/pts/3".to_owned(), 9_600);
        assert_eq!("serial:/dev/pts/3".parse(), Ok(usual));
    }

    #[test]
    fn malformed_links_are_refused() {
        for text in ["", "tap", "tap:", "tun:", "packet:", "xdp:", "eth0", "slip:eth0"] {
            assert_eq!(text.parse::<LinkSpec>(), Err(ParseLinkError::NoLink), "{text}");
        }
        for text in ["xdp:eth0:", "xdp:eth0:first", "xdp:eth0:-1"] {
            assert!(matches!(text.parse::<LinkSpec>(), Err(ParseLinkError::NoQueue(_))), "{text}");
        }
    }

    #[test]
    fn malformed_serial_lines_are_refused() {
        for text in ["serial:", "serial:2400", "serial:@2400"] {
            assert_eq!(text.parse::<LinkSpec>(), Err(ParseLinkError::NoSerialDevice), "{text}");
        }
        for text in ["serial:/dev/ttyS0@", "serial:/dev/ttyS0@fast", "serial:/dev/ttyS0@49"] {
            assert!(matches!(text.parse::<LinkSpec>(), Err(ParseLinkError::Baud(_))), "{text}");
        }
    }

    #[test]
    fn options_that_a_link_does_not_have_are_refused() {
        let refused = |text: &str, options: LinkOptions| {
            let spec: LinkSpec = text.parse().unwrap();
            AnyLink::open(&spec, [10, 0, 0, 1], &options).unwrap_err().to_string()
        };
        let usual = LinkOptions::default();
        let vlan = LinkOptions { vlan: VlanTag::new(0, 5), ..usual };
        for text in ["tun:lr0", "xdp:eth0", "serial:/dev/null"] {
            assert!(refused(text, vlan).contains("carries no VLAN tags"), "{text}");
        }
        let compressed = LinkOptions { header_compression: Some(true), ..usual };
        assert!(refused("tap:lr0", compressed).contains("does not compress headers"));
        let long = LinkOptions { mtu: Some(576), ..usual };
        assert!(refused("packet:eth0", long).contains("an MTU of its own"));
        assert!(refused("serial:/dev/null", long).contains("is no terminal"));
    }

    #[test]
    fn a_serial_line_has_the_mtu_of_its_ip_version() {
        let ipv6 = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        let line =
            |mtu, address| LinkOptions { mtu, ..LinkOptions::default() }.serial(9_600, address);
        assert_eq!(line(None, [10, 0, 0, 1].into()).unwrap().mtu, 296);
        assert_eq!(line(None, ipv6).unwrap().mtu, 1_280);
        assert_eq!(line(Some(576), [10, 0, 0, 1].into()).unwrap().mtu, 576);
        assert_eq!(line(Some(576), ipv6), Err(OpenError::SerialIpv6(576)));
    }

    #[test]
    fn a_missing_device_is_explained() {
        let spec = LinkSpec::Tap("no-such-device".to_owned());
        let error = AnyLink::open(&spec, [10, 0, 0, 1], &LinkOptions::default()).unwrap_err();
        assert!(
            error.to_string().contains("ip tuntap add mode tap name no-such-device"),
            "{error}"
        );
        let spec = LinkSpec::Tun("no-such-device".to_owned());
        let error = AnyLink::open(&spec, [10, 0, 0, 1], &LinkOptions::default()).unwrap_err();
        assert!(error.to_string().contains("mode tun name no-such-device"), "{error}");
    }
}
