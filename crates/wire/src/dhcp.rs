//! Messages of the Dynamic Host Configuration Protocol (RFC 2131) and their options (RFC 2132). An
//! option may be split into several parts (RFC 3396). Options may continue in the fields `sname`
//! and `file`.

use crate::layout::{half, octets, room, split_fixed, word};
use crate::{MacAddress, Malformed};
use core::net::Ipv4Addr;

/// The UDP port of DHCP servers.
pub const SERVER_PORT: u16 = 67;
/// The UDP port of DHCP clients.
pub const CLIENT_PORT: u16 = 68;
/// The length of a message without options, in bytes: the fields of BOOTP and the magic cookie.
pub const FIXED_LENGTH: usize = 240;
/// The minimum length of a message to send, in bytes. Shorter messages are padded, because relay
/// agents of BOOTP would drop them (RFC 1542 §2.1).
pub const MIN_LENGTH: usize = 300;

const COOKIE: [u8; 4] = [99, 130, 83, 99];
const ETHERNET: u8 = 1;
const BROADCAST_FLAG: u16 = 0x8000;
/// The byte ranges of the fields `sname` and `file` in a message. If the overload option says so,
/// these fields contain options.
const SERVER_NAME: core::ops::Range<usize> = 44..108;
const FILE: core::ops::Range<usize> = 108..236;

/// The codes of DHCP options.
pub mod option {
    /// Code of the padding between options, which is a single byte.
    pub const PAD: u8 = 0;
    /// Code of the option with the network mask (RFC 2132 §3.3).
    pub const SUBNET_MASK: u8 = 1;
    /// Code of the option with the routers of the network, the preferred router first.
    pub const ROUTER: u8 = 3;
    /// Code of the option with the addresses of DNS servers.
    pub const DNS: u8 = 6;
    /// Code of the option with the host name of the client.
    pub const HOST_NAME: u8 = 12;
    /// Code of the option with the domain in which the client resolves names.
    pub const DOMAIN_NAME: u8 = 15;
    /// Code of the option with the MTU of the interface.
    pub const INTERFACE_MTU: u8 = 26;
    /// Code of the option with the address that the client requests.
    pub const REQUESTED_ADDRESS: u8 = 50;
    /// Code of the option with the duration of the lease in seconds.
    pub const LEASE_TIME: u8 = 51;
    /// Code of the option which says that other fields contain options, too. Its bit mask is 1 for
    /// `file`, and 2 for `sname`.
    pub const OVERLOAD: u8 = 52;
    /// Code of the option with the type of the message: see
    /// [`DhcpMessageType`](super::DhcpMessageType).
    pub const MESSAGE_TYPE: u8 = 53;
    /// Code of the option with the server's address, which identifies the server.
    pub const SERVER_ID: u8 = 54;
    /// Code of the option that lists the codes of the options which the client requests.
    pub const PARAMETER_LIST: u8 = 55;
    /// Code of the option with the length of the longest message that the client accepts, in bytes.
    pub const MAX_MESSAGE_SIZE: u8 = 57;
    /// Code of the option with the time from the grant of the lease until the client renews it, in
    /// seconds (T1).
    pub const RENEWAL_TIME: u8 = 58;
    /// Code of the option with the time from the grant of the lease until the client requests an
    /// extension from any server, in seconds (T2).
    pub const REBINDING_TIME: u8 = 59;
    /// Code of the option with a unique identifier of the client.
    pub const CLIENT_ID: u8 = 61;
    /// Code of the marker after the last option in a field.
    pub const END: u8 = 255;
}

/// The type of a DHCP message. The discriminants are the values on the wire (RFC 2132 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DhcpMessageType {
    /// A client looks for servers.
    Discover = 1,
    /// A server offers an address.
    Offer = 2,
    /// A client requests an address, or an extension of its lease.
    Request = 3,
    /// A client declines an offered address, because another host uses it.
    Decline = 4,
    /// A server grants the request.
    Ack = 5,
    /// A server refuses the request.
    Nak = 6,
    /// A client gives its address back before the lease ends.
    Release = 7,
    /// A client that already has an address requests other parameters.
    Inform = 8,
}

impl DhcpMessageType {
    const ALL: [Self; 8] = [
        Self::Discover,
        Self::Offer,
        Self::Request,
        Self::Decline,
        Self::Ack,
        Self::Nak,
        Self::Release,
        Self::Inform,
    ];
}

/// The fixed fields of a DHCP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpHeader {
    /// Did a server send the message (BOOTREPLY)? Otherwise a client sent it (BOOTREQUEST).
    pub is_reply: bool,
    /// The transaction ID: a client chooses it, and servers repeat it in their replies.
    pub xid: u32,
    /// The time since the client began to request an address, in seconds.
    pub secs: u16,
    /// Should the server broadcast its reply, because the client cannot receive unicasts yet?
    pub broadcast: bool,
    /// The address that the client already uses (`ciaddr`).
    pub client: Ipv4Addr,
    /// The address that the server gives to the client (`yiaddr`).
    pub yours: Ipv4Addr,
    /// The MAC address of the client.
    pub mac: MacAddress,
}

/// A received DHCP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpMessage<'a> {
    /// The fixed fields of the message.
    pub header: DhcpHeader,
    /// The type of the message.
    pub message_type: DhcpMessageType,
    /// The options of the message.
    pub options: DhcpOptions<'a>,
}

impl<'a> DhcpMessage<'a> {
    /// Parses the message that fills `bytes`: the data of a UDP datagram.
    ///
    /// # Errors
    /// [`Malformed`] if the message is truncated, is not for Ethernet, is a BOOTP message without
    /// DHCP options, or an option extends beyond its field.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = split_fixed::<FIXED_LENGTH>("DHCP message", bytes)?;
        let is_reply = match fixed[0] {
            1 => false,
            2 => true,
            other => return Err(field("op", other.into())),
        };
        if fixed[1] != ETHERNET || fixed[2] != 6 {
            return Err(field("htype and hlen", half(fixed, 1).into()));
        }
        if fixed[236..] != COOKIE {
            return Err(field("magic cookie", word(fixed, 236)));
        }
        let options = DhcpOptions::parse(rest, &bytes[FILE], &bytes[SERVER_NAME])?;
        let mut kind = [0];
        let kind = options.get(option::MESSAGE_TYPE, &mut kind).map_or(0, |kind| kind[0]);
        let known = DhcpMessageType::ALL.into_iter().find(|&known| known as u8 == kind);
        let header = DhcpHeader {
            is_reply,
            xid: word(fixed, 4),
            secs: half(fixed, 8),
            broadcast: half(fixed, 10) & BROADCAST_FLAG != 0,
            client: Ipv4Addr::from_octets(octets(fixed, 12)),
            yours: Ipv4Addr::from_octets(octets(fixed, 16)),
            mac: MacAddress::new(octets(fixed, 28)),
        };
        let message_type = known.ok_or_else(|| field("message type", kind.into()))?;
        Ok(Self { header, message_type, options })
    }
}

/// The options of a received message. They are read in the order of RFC 2131 §4.1: first the field
/// `options`, then `file`, then `sname`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpOptions<'a> {
    /// The bytes of the fields `options`, `file` and `sname`, in this order. A field is empty if it
    /// contains no options. Invariant: no option extends beyond its field.
    fields: [&'a [u8]; 3],
}

impl<'a> DhcpOptions<'a> {
    fn parse(options: &'a [u8], file: &'a [u8], name: &'a [u8]) -> Result<Self, Malformed> {
        check(options)?;
        let alone = Self { fields: [options, &[], &[]] };
        let mut overload = [0];
        let overload = alone.get(option::OVERLOAD, &mut overload).map_or(0, |value| value[0]);
        if overload > 3 {
            return Err(field("option overload", overload.into()));
        }
        // The fields `file` and `sname` must not contain an overload option, so only the `options`
        // field is searched for it.
        let file = if overload & 1 != 0 { file } else { &[] };
        let name = if overload & 2 != 0 { name } else { &[] };
        check(file)?;
        check(name)?;
        Ok(Self { fields: [options, file, name] })
    }

    /// Returns the data of each option with this code, in their order. If an option was too long
    /// and had to be split, these are its parts (RFC 3396).
    pub fn parts(&self, code: u8) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.fields.into_iter().flat_map(|bytes| Options { bytes });
        fields.filter(move |&(found, _)| found == code).map(|(_, data)| data)
    }

    /// Copies the data of an option to `into`, joining its parts (RFC 3396), and returns the copy.
    /// Returns `None` if the option is missing or empty. Data that exceeds `into` is cut off.
    pub fn get<'b>(&self, code: u8, into: &'b mut [u8]) -> Option<&'b [u8]> {
        let mut length = None;
        for part in self.parts(code) {
            let at = length.unwrap_or(0);
            let end = into.len().min(at + part.len());
            into[at..end].copy_from_slice(&part[..end - at]);
            length = Some(end);
        }
        // An option that is present, but has no data, counts as missing.
        length.filter(|&length| length > 0).map(|length| &into[..length])
    }

    /// Returns the first four bytes of an option as a number. Returns `None` if the option is
    /// missing or shorter than four bytes.
    #[must_use]
    pub fn word(&self, code: u8) -> Option<u32> {
        let mut bytes = [0; 4];
        let bytes = self.get(code, &mut bytes)?;
        bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Returns the first address in an option. Returns `None` if the option is missing or shorter
    /// than four bytes.
    #[must_use]
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        self.word(code).map(Ipv4Addr::from_bits)
    }
}

/// Checks that no option extends beyond `bytes`, the field that contains it.
fn check(bytes: &[u8]) -> Result<(), Malformed> {
    let mut options = Options { bytes };
    while options.next().is_some() {}
    match options.bytes {
        [] => Ok(()),
        rest => {
            let needed = rest.get(1).map_or(2, |&length| usize::from(length) + 2);
            Err(Malformed::Truncated { what: "DHCP option", needed, had: rest.len() })
        }
    }
}

/// An iterator over the options in a field. If an option extends beyond the field, the iterator
/// ends before this option.
#[derive(Clone, Debug)]
struct Options<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while let [option::PAD, rest @ ..] = self.bytes {
            self.bytes = rest;
        }
        match *self.bytes {
            [option::END, ..] => {
                self.bytes = &[];
                None
            }
            [code, length, ref rest @ ..] => {
                let (data, rest) = rest.split_at_checked(length.into())?;
                self.bytes = rest;
                Some((code, data))
            }
            _ => None,
        }
    }
}

/// A writer for a DHCP message.
#[derive(Debug)]
pub struct DhcpWriter<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> DhcpWriter<'a> {
    /// Writes the fixed fields and the type of a message to `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`MIN_LENGTH`].
    #[must_use]
    pub fn new(header: &DhcpHeader, kind: DhcpMessageType, bytes: &'a mut [u8]) -> Self {
        assert!(bytes.len() >= MIN_LENGTH, "room for the shortest message");
        bytes.fill(0);
        let fixed = room::<FIXED_LENGTH>(bytes);
        fixed[..3].copy_from_slice(&[if header.is_reply { 2 } else { 1 }, ETHERNET, 6]);
        fixed[4..8].copy_from_slice(&header.xid.to_be_bytes());
        fixed[8..10].copy_from_slice(&header.secs.to_be_bytes());
        let flags = if header.broadcast { BROADCAST_FLAG } else { 0 };
        fixed[10..12].copy_from_slice(&flags.to_be_bytes());
        fixed[12..16].copy_from_slice(&header.client.octets());
        fixed[16..20].copy_from_slice(&header.yours.octets());
        fixed[28..34].copy_from_slice(&header.mac.octets());
        fixed[236..].copy_from_slice(&COOKIE);
        let mut writer = Self { bytes, length: FIXED_LENGTH };
        writer.option(option::MESSAGE_TYPE, &[kind as u8]);
        writer
    }

    /// Appends an option. Data of more than 255 bytes is split into several parts (RFC 3396).
    ///
    /// # Panics
    /// If the buffer has no room for the option and the end marker.
    pub fn option(&mut self, code: u8, data: &[u8]) {
        for part in data.chunks(255) {
            #[allow(clippy::cast_possible_truncation, reason = "at most 255")]
            let length = part.len() as u8;
            self.append(&[code, length]);
            self.append(part);
        }
    }

    fn append(&mut self, part: &[u8]) {
        let end = self.length + part.len();
        self.bytes[self.length..end].copy_from_slice(part);
        self.length = end;
    }

    /// Appends the end marker, and returns the length of the message in bytes. The message is
    /// padded to [`MIN_LENGTH`].
    #[must_use]
    pub fn finish(mut self) -> usize {
        self.append(&[option::END]);
        self.length.max(MIN_LENGTH)
    }
}

const fn field(field: &'static str, value: u32) -> Malformed {
    Malformed::Field { what: "DHCP message", field, value }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    fn header() -> DhcpHeader {
        DhcpHeader {
            is_reply: true,
            xid: 0x1234_5678,
            secs: 7,
            broadcast: true,
            client: Ipv4Addr::UNSPECIFIED,
            yours: Ipv4Addr::new(192, 0, 2, 9),
            mac: MacAddress::new([2, 0, 0, 0, 0, 1]),
        }
    }

    /// Returns a message of a server in which the three fields that can contain options have these
    /// bytes.
    fn message(options: &[u8], file: &[u8], name: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; MIN_LENGTH];
        let _ = DhcpWriter::new(&header(), DhcpMessageType::Offer, &mut bytes).finish();
        bytes.truncate(FIXED_LENGTH);
        bytes.extend([option::MESSAGE_TYPE, 1, 2]);
        bytes.extend_from_slice(options);
        bytes[FILE][..file.len()].copy_from_slice(file);
        bytes[SERVER_NAME][..name.len()].copy_from_slice(name);
        bytes
    }

    #[test]
    fn a_message_is_parsed_as_it_was_written() {
        let mut bytes = [0; 600];
        let mut writer = DhcpWriter::new(&header(), DhcpMessageType::Ack, &mut bytes);
        writer.option(option::LEASE_TIME, &3_600_u32.to_be_bytes());
        let long: Vec<u8> = (0..=255).collect();
        writer.option(option::DNS, &long);
        let length = writer.finish();
        let message = DhcpMessage::parse(&bytes[..length]).unwrap();
        assert_eq!((message.header, message.message_type), (header(), DhcpMessageType::Ack));
        assert_eq!(message.options.word(option::LEASE_TIME), Some(3_600));
        assert_eq!(message.options.parts(option::DNS).count(), 2);
        let mut joined = [0; 300];
        assert_eq!(message.options.get(option::DNS, &mut joined), Some(&long[..]));
        assert_eq!(message.options.address(option::ROUTER), None);
    }

    /// RFC 2131 §2 and table 5: in a request, a client sets reserved flags and unused fields to
    /// zero. The buffer is filled with 0xee before the request is written. A field that is left out
    /// would thus not be zero.
    #[test]
    fn reserved_fields_of_a_request_are_zero() {
        let mut bytes = [0xee; 400];
        let mac = header().mac;
        let request = DhcpHeader { is_reply: false, yours: Ipv4Addr::UNSPECIFIED, ..header() };
        let length = DhcpWriter::new(&request, DhcpMessageType::Request, &mut bytes).finish();
        assert!(length >= MIN_LENGTH);
        assert_eq!(bytes[..4], [1, 1, 6, 0], "op, htype, hlen and hops");
        assert_eq!(bytes[10..12], [0x80, 0], "only BROADCAST of the flags may be set");
        assert_eq!(bytes[12..28], [0; 16], "ciaddr, yiaddr, siaddr and giaddr");
        assert_eq!(bytes[28..34], mac.octets());
        assert!(bytes[34..236].iter().all(|&byte| byte == 0), "chaddr, sname and file");
    }

    #[test]
    fn options_continue_in_the_overloaded_fields_the_file_first() {
        let (file, name) = ([6, 1, 2, 255], [6, 1, 3, 255]);
        let get = |overload: u8| {
            let bytes = message(&[52, 1, overload, 6, 1, 1, 255], &file, &name);
            let message = DhcpMessage::parse(&bytes).unwrap();
            let mut joined = [0; 8];
            message.options.get(option::DNS, &mut joined).unwrap().to_vec()
        };
        assert_eq!(
            [get(0), get(1), get(2), get(3)],
            [vec![1], vec![1, 2], vec![1, 3], vec![1, 2, 3]]
        );
    }

    #[test]
    fn an_overload_inside_an_overloaded_field_has_no_effect() {
        let bytes = message(&[52, 1, 1, 255], &[52, 1, 3, 6, 1, 2, 255], &[6, 1, 3, 255]);
        let message = DhcpMessage::parse(&bytes).unwrap();
        let mut joined = [0; 8];
        assert_eq!(message.options.get(option::DNS, &mut joined), Some(&[2][..]));
        assert!(DhcpMessage::parse(&self::message(&[52, 1, 4, 255], &[], &[])).is_err());
    }

    #[test]
    fn messages_that_are_not_of_dhcp_are_refused() {
        let good = message(&[255], &[], &[]);
        assert!(DhcpMessage::parse(&good).is_ok());
        for (at, value) in [(0, 3), (1, 6), (2, 16), (236, 0), (242, 9)] {
            let mut wrong = good.clone();
            wrong[at] = value;
            assert!(DhcpMessage::parse(&wrong).is_err(), "byte {at}");
        }
        assert!(
            DhcpMessage::parse(&good[..FIXED_LENGTH]).is_err(),
            "a message without a message type"
        );
        for options in [&[6][..], &[6, 4, 1, 2, 3], &[52, 1, 1, 255]] {
            let file = [6, 200];
            assert!(DhcpMessage::parse(&message(options, &file, &[])).is_err(), "{options:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_options_do_not_panic(
            options in prop::collection::vec(
                prop::sample::select(vec![0_u8, 1, 3, 6, 52, 53, 255]),
                0..80,
            ),
            file in prop::collection::vec(any::<u8>(), 0..128),
        ) {
            if let Ok(parsed) = DhcpMessage::parse(&message(&options, &file, &[])) {
                let mut into = [0; 5];
                for code in 0..=255 {
                    let _ = parsed.options.get(code, &mut into);
                }
            }
        }
    }
}
