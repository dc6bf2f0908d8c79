//! Requests to the kernel's routing socket (rtnetlink), one at a time.
//!
//! The layout is that of `linux/netlink.h` and `linux/rtnetlink.h`. A message consists of a 16-byte
//! header, a fixed part that depends on its type, and attributes. An attribute has a length, a type
//! and a value, and is padded to four bytes. Numbers are in native byte order.

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The type of a netlink message, such as `RTM_NEWLINK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    NewLink = 16,
    DeleteLink = 17,
    GetLink = 18,
    SetLink = 19,
    NewAddress = 20,
    NewRoute = 24,
    GetQueue = 38,
}

const HEADER: usize = 16;
/// Message type `NLMSG_ERROR`. With error number 0 it is an acknowledgement.
const ERROR: u16 = 2;
/// Message type `NLMSG_DONE`, the end of a dump.
const DONE: u16 = 3;
/// Header flags `NLM_F_REQUEST | NLM_F_DUMP`: return all objects of a type.
const DUMP: u16 = 1 | 0x300;
/// Header flags `NLM_F_REQUEST | NLM_F_ACK`: acknowledge the request.
const ACKNOWLEDGED: u16 = 1 | 4;
/// Header flags `NLM_F_CREATE | NLM_F_EXCL`: create an object that must not exist.
const CREATE: u16 = 0x400 | 0x200;
/// Attribute flag `NLA_F_NESTED`: the value consists of attributes.
const NESTED: u16 = 0x8000;

/// A netlink request under construction.
#[derive(Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Creates a request of type `kind`, whose fixed part is `fixed`. If the request creates an
    /// object that already exists, the kernel is to report an error.
    pub(super) fn new(kind: Kind, fixed: &[u8]) -> Self {
        let makes = matches!(kind, Kind::NewLink | Kind::NewAddress | Kind::NewRoute);
        let flags = if makes { ACKNOWLEDGED | CREATE } else { ACKNOWLEDGED };
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self { bytes }
    }

    /// Appends an attribute.
    pub(super) fn attribute(self, kind: u16, value: &[u8]) -> Self {
        self.enclose(kind, |mut request| {
            request.bytes.extend_from_slice(value);
            request
        })
    }

    /// Appends an attribute whose value is a zero-terminated name.
    pub(super) fn name(self, kind: u16, name: &str) -> Self {
        self.enclose(kind, |mut request| {
            request.bytes.extend_from_slice(name.as_bytes());
            request.bytes.push(0);
            request
        })
    }

    /// Appends an attribute of type `kind`. Its value consists of the fixed part `fixed`, followed
    /// by the attributes that `inside` appends.
    pub(super) fn nested(self, kind: u16, fixed: &[u8], inside: impl FnOnce(Self) -> Self) -> Self {
        self.enclose(kind | NESTED, |mut request| {
            request.bytes.extend_from_slice(fixed);
            inside(request)
        })
    }

    /// Appends an attribute of type `kind`, whose value is what `inside` appends. Values are only
    /// names and addresses, so their lengths fit the length field of 16 bits.
    fn enclose(mut self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut request = inside(self);
        let length = u16::try_from(request.bytes.len() - start).unwrap_or(u16::MAX);
        request.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        request.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        request.bytes.resize(request.bytes.len().next_multiple_of(4), 0);
        request
    }

    /// Sends the request to the kernel, in the network namespace of the calling thread. Returns the
    /// socket on which the reply arrives.
    fn send(mut self) -> Result<OwnedFd, Errno> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        let socket = open()?;
        send(&socket, &self.bytes, SendFlags::empty())?;
        Ok(socket)
    }

    /// Requests all objects of a type. Returns, for each object, the bytes of its fixed part and of
    /// its attributes.
    pub(super) fn dump(mut self) -> Result<Vec<Vec<u8>>, Errno> {
        self.bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
        let socket = self.send()?;
        let mut replies = Vec::new();
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (_, received) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            for message in messages(buffer.get(..received).unwrap_or_default()) {
                match message.error() {
                    _ if message.kind == DONE => return Ok(replies),
                    None => replies.push(message.body.to_vec()),
                    Some(0) => return Ok(replies),
                    Some(errno) => return Err(Errno::from_raw_os_error(errno)),
                }
            }
        }
    }

    /// Sends the request, and waits for the acknowledgement. Returns the bytes of the fixed part
    /// and of the attributes of the reply, or an empty vector if the acknowledgement is the only
    /// reply.
    pub(super) fn perform(self) -> Result<Vec<u8>, Errno> {
        let socket = self.send()?;
        let mut reply = Vec::new();
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (_, received) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            for message in messages(buffer.get(..received).unwrap_or_default()) {
                match message.error() {
                    None => reply = message.body.to_vec(),
                    Some(0) => return Ok(reply),
                    Some(errno) => return Err(Errno::from_raw_os_error(errno)),
                }
            }
        }
    }
}

/// The kernel's announcements of new IPv6 routes.
#[derive(Debug)]
pub(super) struct RouteAnnouncements(OwnedFd);

impl RouteAnnouncements {
    /// Bit of the multicast group `RTNLGRP_IPV6_ROUTE`, which announces IPv6 routes.
    const GROUP: u32 = 1 << 10;
    /// The maximum wait for one announcement, after which the call fails. An announcement usually
    /// arrives within milliseconds.
    const TIMEOUT: Duration = Duration::from_secs(10);

    /// Subscribes to all announcements that the kernel makes after this call.
    pub(super) fn subscribe() -> Result<Self, Errno> {
        let socket = open()?;
        bind(&socket, &SocketAddrNetlink::new(0, Self::GROUP))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(Self::TIMEOUT))?;
        Ok(Self(socket))
    }

    /// Waits until the kernel announces a new route for which `is_wanted` returns true. The
    /// argument of `is_wanted` contains the fixed part and the attributes of the route.
    pub(super) fn wait_for(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Result<(), Errno> {
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let (_, received) = recv(&self.0, buffer.as_mut_slice(), RecvFlags::empty())?;
            let mut announced = messages(buffer.get(..received).unwrap_or_default());
            if announced.any(|it| it.kind == Kind::NewRoute as u16 && is_wanted(it.body)) {
                return Ok(());
            }
        }
    }
}

/// Opens a routing socket. The argument `None` selects protocol 0, which is `NETLINK_ROUTE`.
fn open() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
}

/// A netlink message from the kernel.
struct Message<'a> {
    kind: u16,
    body: &'a [u8],
}

impl Message<'_> {
    /// Returns the error number if this message is an acknowledgement, with 0 for success. Returns
    /// `None` for any other message.
    fn error(&self) -> Option<i32> {
        (self.kind == ERROR).then(|| -number(self.body).map_or(0, u32::cast_signed))
    }
}

/// Returns the messages in a datagram. A malformed message ends the list.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = number(bytes)? as usize;
        let body = bytes.get(HEADER..length)?;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, body })
    })
}

/// Returns type and value of the attributes in a reply, after its fixed part of `fixed` bytes. A
/// malformed attribute ends the list.
pub(super) fn attributes(reply: &[u8], fixed: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut bytes = reply.get(fixed..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

/// Returns the 32-bit number at the start of `bytes`.
pub(super) fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested_ones_include_their_contents() {
        let request = Request::new(Kind::SetLink, &[9; 4])
            .name(3, "lo")
            .nested(18, &[], |link| link.attribute(1, b"veth").attribute(2, &[]));
        let body = &request.bytes[HEADER..];
        let found: Vec<_> = attributes(body, 4).collect();
        assert_eq!(found[0], (3, &b"lo\0"[..]));
        assert_eq!(found[1].0, 18);
        let inside: Vec<_> = attributes(found[1].1, 0).collect();
        assert_eq!(inside, [(1, &b"veth"[..]), (2, &b""[..])]);
    }

    #[test]
    fn malformed_messages_and_attributes_end_the_list() {
        for bytes in [&[][..], &[1], &[3, 0, 0, 0], &[200, 0, 1, 0, 1, 2, 3, 4], &[0; 40]] {
            assert_eq!(attributes(bytes, 0).count(), 0, "{bytes:?}");
            assert_eq!(messages(bytes).count(), 0, "{bytes:?}");
        }
    }
}
