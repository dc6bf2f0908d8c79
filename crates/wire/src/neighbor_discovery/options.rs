//! The options of Neighbour Discovery messages (RFC 4861 §4.6).

use crate::layout::{octets, word};
use crate::{MacAddress, Malformed};
use core::net::Ipv6Addr;

/// An option of a Neighbour Discovery message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NdOption<'a> {
    /// The MAC address of the sender.
    SourceMac(MacAddress),
    /// The MAC address of the target.
    TargetMac(MacAddress),
    /// A prefix of the link.
    Prefix(PrefixInformation),
    /// The beginning of the packet that caused a redirect.
    RedirectedHeader(&'a [u8]),
    /// The MTU of the link in bytes.
    Mtu(u32),
    /// An option that receivers ignore, because its type is unknown or its length is wrong for its
    /// type.
    Other {
        /// The type of the option.
        kind: u8,
        /// The bytes of the option after type and length.
        data: &'a [u8],
    },
}

/// The option that describes a prefix of the link (RFC 4861 §4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    /// The prefix. Receivers must ignore the bits after `length`.
    pub prefix: Ipv6Addr,
    /// The length of the prefix in bits, at most 128.
    pub length: u8,
    /// L: hosts with an address of this prefix are on the link.
    pub is_on_link: bool,
    /// A: hosts may form addresses from this prefix (RFC 4862).
    pub is_autonomous: bool,
    /// The time in seconds for which the prefix is valid, or [`PrefixInformation::INFINITE`].
    pub valid_lifetime: u32,
    /// The time in seconds for which addresses with this prefix are preferred. After it, hosts
    /// prefer their other addresses for new connections.
    pub preferred_lifetime: u32,
}

impl PrefixInformation {
    /// The value of a lifetime that does not end.
    pub const INFINITE: u32 = u32::MAX;

    const ON_LINK: u8 = 0x80;
    const AUTONOMOUS: u8 = 0x40;

    /// Parses an option of 32 bytes. Returns `None` if the prefix length exceeds 128.
    fn read(option: &[u8; 32]) -> Option<Self> {
        (option[2] <= 128).then(|| Self {
            prefix: octets::<16, _>(option, 16).into(),
            length: option[2],
            is_on_link: option[3] & Self::ON_LINK != 0,
            is_autonomous: option[3] & Self::AUTONOMOUS != 0,
            valid_lifetime: word(option, 4),
            preferred_lifetime: word(option, 8),
        })
    }

    fn write(&self, bytes: &mut [u8]) {
        let on_link = if self.is_on_link { Self::ON_LINK } else { 0 };
        let autonomous = if self.is_autonomous { Self::AUTONOMOUS } else { 0 };
        bytes[2..4].copy_from_slice(&[self.length, on_link | autonomous]);
        bytes[4..8].copy_from_slice(&self.valid_lifetime.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.preferred_lifetime.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.prefix.octets());
    }
}

pub(super) const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;
const PREFIX: u8 = 3;
const REDIRECTED_HEADER: u8 = 4;
const MTU: u8 = 5;

impl<'a> NdOption<'a> {
    /// Returns the number of bytes that [`NdOption::emit`] writes: a multiple of eight.
    #[must_use]
    pub const fn length(&self) -> usize {
        let length = match self {
            Self::SourceMac(_) | Self::TargetMac(_) | Self::Mtu(_) => 8,
            Self::Prefix(_) => 32,
            Self::RedirectedHeader(packet) => 8 + packet.len(),
            Self::Other { data, .. } => 2 + data.len(),
        };
        length.next_multiple_of(8)
    }

    /// Writes the option to the start of `bytes`, padded with zeros, and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`NdOption::length`], or the option is longer than 2,040 bytes.
    pub fn emit(&self, bytes: &mut [u8]) -> usize {
        let length = self.length();
        let Ok(units) = u8::try_from(length / 8) else {
            panic!("an option of {length} bytes exceeds 2,040");
        };
        let option = &mut bytes[..length];
        option.fill(0);
        let kind = match *self {
            Self::SourceMac(mac) => {
                option[2..8].copy_from_slice(&mac.octets());
                SOURCE_MAC
            }
            Self::TargetMac(mac) => {
                option[2..8].copy_from_slice(&mac.octets());
                TARGET_MAC
            }
            Self::Prefix(prefix) => {
                prefix.write(option);
                PREFIX
            }
            Self::RedirectedHeader(packet) => {
                option[8..8 + packet.len()].copy_from_slice(packet);
                REDIRECTED_HEADER
            }
            Self::Mtu(mtu) => {
                option[4..8].copy_from_slice(&mtu.to_be_bytes());
                MTU
            }
            Self::Other { kind, data } => {
                option[2..2 + data.len()].copy_from_slice(data);
                kind
            }
        };
        option[..2].copy_from_slice(&[kind, units]);
        length
    }

    /// Parses a whole option of at least eight bytes.
    fn read(option: &'a [u8]) -> Self {
        let kind = option[0];
        let known = match (kind, option) {
            (SOURCE_MAC, &[_, _, a, b, c, d, e, f]) => {
                Some(Self::SourceMac(MacAddress::new([a, b, c, d, e, f])))
            }
            (TARGET_MAC, &[_, _, a, b, c, d, e, f]) => {
                Some(Self::TargetMac(MacAddress::new([a, b, c, d, e, f])))
            }
            (MTU, &[_, _, _, _, a, b, c, d]) => Some(Self::Mtu(u32::from_be_bytes([a, b, c, d]))),
            (REDIRECTED_HEADER, [_, _, _, _, _, _, _, _, packet @ ..]) => {
                Some(Self::RedirectedHeader(packet))
            }
            (PREFIX, option) => {
                option.try_into().ok().and_then(PrefixInformation::read).map(Self::Prefix)
            }
            _ => None,
        };
        known.unwrap_or_else(|| Self::Other { kind, data: &option[2..] })
    }
}

/// The options of a Neighbour Discovery message as bytes. Invariant: every option is complete, and
/// none has a length of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NdOptions<'a>(&'a [u8]);

impl<'a> NdOptions<'a> {
    /// The empty list of options.
    pub const NONE: NdOptions<'static> = NdOptions(&[]);

    /// The maximum number of options in a message. RFC 4861 sets no maximum. This one limits the
    /// time that a hostile message can take, and is enough for real ones: 1,500 bytes have room for
    /// only 46 prefixes.
    pub const MOST: u32 = 64;

    /// Parses the options that fill `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] if an option has a length of zero (RFC 4861 §4.6) or extends beyond `bytes`,
    /// or there are more than [`NdOptions::MOST`] options.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "Neighbour Discovery option";
        let (mut rest, mut count) = (bytes, 0_u32);
        while !rest.is_empty() {
            if count == Self::MOST {
                return Err(Malformed::Field {
                    what: "Neighbour Discovery message",
                    field: "number of options",
                    value: count + 1,
                });
            }
            count += 1;
            let had = rest.len();
            let needed = rest.get(1).map_or(2, |&units| usize::from(units) * 8);
            if needed == 0 {
                return Err(Malformed::Field { what: WHAT, field: "length", value: 0 });
            }
            rest = rest.get(needed..).ok_or(Malformed::Truncated { what: WHAT, needed, had })?;
        }
        Ok(Self(bytes))
    }

    /// Returns the options as bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Iterates over the options in the order of the message.
    pub fn iter(&self) -> impl Iterator<Item = NdOption<'a>> + use<'a> {
        self.whole().map(NdOption::read)
    }

    /// Returns the sender's MAC address, from the first option that contains it.
    #[must_use]
    pub fn source_mac(&self) -> Option<MacAddress> {
        self.iter().find_map(|option| match option {
            NdOption::SourceMac(mac) => Some(mac),
            _ => None,
        })
    }

    /// Returns the target's MAC address, from the first option that contains it.
    #[must_use]
    pub fn target_mac(&self) -> Option<MacAddress> {
        self.iter().find_map(|option| match option {
            NdOption::TargetMac(mac) => Some(mac),
            _ => None,
        })
    }

    /// Is there an option of this type? Options whose length is wrong for the type also count.
    pub(super) fn has(&self, kind: u8) -> bool {
        self.whole().any(|option| option[0] == kind)
    }

    /// Iterates over the options, each as its bytes with type and length.
    fn whole(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let units = *rest.get(1)?;
            let (option, after) = rest.split_at_checked(usize::from(units) * 8)?;
            rest = after;
            Some(option)
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_prefix_has_the_layout_of_rfc_4861() {
        let prefix = PrefixInformation {
            prefix: "2001:db8::".parse().unwrap(),
            length: 64,
            is_on_link: true,
            is_autonomous: true,
            valid_lifetime: 0x0001_0203,
            preferred_lifetime: PrefixInformation::INFINITE,
        };
        let mut bytes = [0xee; 40];
        assert_eq!(NdOption::Prefix(prefix).emit(&mut bytes), 32);
        assert_eq!(bytes[..8], [3, 4, 64, 0xc0, 0, 1, 2, 3]);
        assert_eq!(bytes[8..20], [255, 255, 255, 255, 0, 0, 0, 0, 0x20, 1, 0x0d, 0xb8]);
        let options = NdOptions::parse(&bytes[..32]).unwrap();
        assert_eq!(options.iter().collect::<Vec<_>>(), [NdOption::Prefix(prefix)]);
        bytes[2] = 129;
        let options = NdOptions::parse(&bytes[..32]).unwrap();
        assert!(matches!(options.iter().next(), Some(NdOption::Other { kind: 3, .. })));
    }

    #[test]
    fn addresses_and_mtu_have_the_layout_of_rfc_4861() {
        let mut bytes = [0; 24];
        let mut at = NdOption::SourceMac(MAC).emit(&mut bytes);
        at += NdOption::TargetMac(MAC).emit(&mut bytes[at..]);
        at += NdOption::Mtu(1_500).emit(&mut bytes[at..]);
        let expected = [1, 1, 2, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 1, 5, 1, 0, 0, 0, 0, 5, 0xdc];
        assert_eq!((at, bytes), (24, expected));
        let options = NdOptions::parse(&bytes).unwrap();
        assert_eq!((options.source_mac(), options.target_mac()), (Some(MAC), Some(MAC)));
    }

    #[test]
    fn lengths_of_zero_and_beyond_the_message_are_refused() {
        assert!(NdOptions::parse(&[]).is_ok());
        assert!(NdOptions::parse(&[1, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(NdOptions::parse(&[1, 2, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(NdOptions::parse(&[1]).is_err());
        assert!(NdOptions::parse(&[9, 1, 0, 0, 0, 0, 0, 0, 9]).is_err());
    }

    #[test]
    fn the_number_of_options_is_limited() {
        let option = [200, 1, 0, 0, 0, 0, 0, 0];
        assert!(NdOptions::parse(&option.repeat(64)).is_ok());
        assert!(NdOptions::parse(&option.repeat(65)).is_err());
    }

    #[test]
    fn an_address_of_another_length_is_an_unknown_option() {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&[1, 2]);
        let options = NdOptions::parse(&bytes).unwrap();
        assert_eq!(options.source_mac(), None);
        assert!(options.has(SOURCE_MAC));
    }
}
