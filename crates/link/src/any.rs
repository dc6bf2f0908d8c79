//! Links selected by a text such as `tap:lr0`, `packet:eth0` or `xdp:eth0:1`.

use crate::kernel_interface::{InterfaceError, KernelInterface};
use crate::packet::{PacketConfig, PacketError, PacketLink};
use crate::tap::{Tap, TapConfig, TapError};
use crate::wait::Readiness;
use crate::xdp::{XdpConfig, XdpError, XdpLink};
use linerate_stack::{Capabilities, FrameSink, FrameSource, Link, LinkError, RxFrame, TxFrame};
use linerate_units::Instant;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use thiserror::Error;

/// An existing interface, and the method by which a host uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkSpec {
    /// The TAP device of this name.
    Tap(String),
    /// A packet socket on the interface of this name, which the kernel uses as well.
    Packet(String),
    /// AF_XDP at the driver: the name of the interface, and the queue.
    Xdp(String, u32),
}

impl LinkSpec {
    /// Returns the name of the interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        match self {
            Self::Tap(name) | Self::Packet(name) | Self::Xdp(name, _) => name,
        }
    }
}

/// Parses `tap:NAME`, `packet:NAME`, `xdp:NAME` or `xdp:NAME:QUEUE`.
impl FromStr for LinkSpec {
    type Err = ParseLinkError;

    fn from_str(text: &str) -> Result<Self, ParseLinkError> {
        match text.split_once(':') {
            Some(("tap", name)) if !name.is_empty() => Ok(Self::Tap(name.to_owned())),
            Some(("packet", name)) if !name.is_empty() => Ok(Self::Packet(name.to_owned())),
            Some(("xdp", place)) if !place.is_empty() => {
                let (name, queue) = place.split_once(':').unwrap_or((place, "0"));
                let queue = queue.parse().map_err(|_| ParseLinkError::NoQueue(queue.to_owned()))?;
                Ok(Self::Xdp(name.to_owned(), queue))
            }
            _ => Err(ParseLinkError::NoLink),
        }
    }
}

/// Formats the text that parses to this value.
impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Packet(name) => write!(f, "packet:{name}"),
            Self::Xdp(name, queue) => write!(f, "xdp:{name}:{queue}"),
        }
    }
}

/// The reason why a text does not specify a link.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseLinkError {
    /// The text begins with none of the known methods.
    #[error("write tap:NAME, packet:NAME or xdp:NAME:QUEUE for an interface that exists")]
    NoLink,
    /// The queue is not a number.
    #[error("`{0}` is not a queue: write xdp:NAME:0")]
    NoQueue(String),
}

/// A link to an interface that was selected by a text.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a program has only one")]
pub enum AnyLink {
    /// See [`LinkSpec::Tap`].
    Tap(Tap),
    /// See [`LinkSpec::Packet`].
    Packet(PacketLink),
    /// See [`LinkSpec::Xdp`].
    Xdp(XdpLink),
}

impl AnyLink {
    /// Opens the interface for a host at `address`. With `offloads` the link carries GSO and GRO
    /// frames and leaves checksums to the interface, if it can.
    ///
    /// # Errors
    /// [`OpenError`], which names what is missing and the remedy.
    pub fn open(
        spec: &LinkSpec,
        address: impl Into<IpAddr>,
        offloads: bool,
    ) -> Result<Self, OpenError> {
        Ok(match spec {
            LinkSpec::Tap(name) => Self::Tap(existing_tap(name, offloads)?),
            LinkSpec::Packet(name) => Self::Packet(PacketLink::open(&PacketConfig {
                offloads,
                ..PacketConfig::new(name)
            })?),
            LinkSpec::Xdp(name, queue) => {
                let address = match address.into() {
                    IpAddr::V4(address) => address,
                    address @ IpAddr::V6(_) => return Err(OpenError::XdpAddress(address)),
                };
                let config = XdpConfig { queue: *queue, ..XdpConfig::new(name, address) };
                Self::Xdp(XdpLink::open(&config)?)
            }
        })
    }

    /// Returns the interface.
    #[must_use]
    pub const fn interface(&self) -> &KernelInterface {
        match self {
            Self::Tap(link) => link.interface(),
            Self::Packet(link) => link.interface(),
            Self::Xdp(link) => link.interface(),
        }
    }

    /// Returns the MAC address that the host must use. `None` if the host can choose it.
    #[must_use]
    pub const fn mac(&self) -> Option<[u8; 6]> {
        match self {
            Self::Tap(_) => None,
            Self::Packet(link) => Some(link.mac()),
            Self::Xdp(link) => Some(link.mac()),
        }
    }

    /// Describes how frames enter and leave the program, for printing.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        match self {
            Self::Tap(_) => "a TAP device",
            Self::Packet(_) => "a packet socket",
            Self::Xdp(link) if link.is_zero_copy() => "AF_XDP with zero-copy",
            Self::Xdp(_) => "AF_XDP with copies",
        }
    }
}

/// Opens the existing TAP device `name`, and keeps its MTU.
fn existing_tap(name: &str, offloads: bool) -> Result<Tap, OpenError> {
    let state = KernelInterface::named(name).and_then(|interface| interface.state());
    let state = state.map_err(|source| OpenError::NoTap { name: name.to_owned(), source })?;
    let mtu = usize::try_from(state.mtu.count()).unwrap_or(usize::MAX);
    let config = TapConfig { name: name.to_owned(), mtu, offloads, ..TapConfig::default() };
    Ok(Tap::open(&config)?)
}

/// The reason why an interface cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The TAP device does not exist.
    #[error(
        "{source}: make it with `ip tuntap add mode tap name {name}` and `ip link set {name} up`"
    )]
    NoTap {
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
    /// The host of an AF_XDP queue has an IPv6 address, which its program does not select.
    #[error(
        "AF_XDP selects frames by IPv4 address, and {0} is none: give an IPv4 address, or use \
         packet:NAME"
    )]
    XdpAddress(IpAddr),
    /// The AF_XDP queue cannot be opened.
    #[error(transparent)]
    Xdp(#[from] XdpError),
}

/// Evaluates an expression for the link of any variant.
macro_rules! each {
    ($any:expr, $link:ident => $call:expr) => {
        match $any {
            AnyLink::Tap($link) => $call,
            AnyLink::Packet($link) => $call,
            AnyLink::Xdp($link) => $call,
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
        for text in ["tap:lr0", "packet:eth0", "xdp:eth0:1"] {
            assert_eq!(text.parse::<LinkSpec>().unwrap().to_string(), text);
        }
        assert_eq!("xdp:eth0".parse(), Ok(LinkSpec::Xdp("eth0".to_owned(), 0)), "the first queue");
    }

    #[test]
    fn malformed_links_are_refused() {
        for text in ["", "tap", "tap:", "packet:", "xdp:", "eth0", "slip:eth0"] {
            assert_eq!(text.parse::<LinkSpec>(), Err(ParseLinkError::NoLink), "{text}");
        }
        for text in ["xdp:eth0:", "xdp:eth0:first", "xdp:eth0:-1"] {
            assert!(matches!(text.parse::<LinkSpec>(), Err(ParseLinkError::NoQueue(_))), "{text}");
        }
    }

    #[test]
    fn a_missing_device_is_explained() {
        let spec = LinkSpec::Tap("no-such-device".to_owned());
        let error = AnyLink::open(&spec, [10, 0, 0, 1], true).unwrap_err();
        assert!(
            error.to_string().contains("ip tuntap add mode tap name no-such-device"),
            "{error}"
        );
    }
}
