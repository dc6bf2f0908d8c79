//! The options in a Hop-by-Hop or Destination Options header (RFC 8200 §4.2).

use super::extensions::Ipv6Extension;
use super::field;
use crate::Malformed;

const PAD1: u8 = 0;
const PADN: u8 = 1;

/// An option of an extension header, other than padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Option<'a> {
    /// The type of the option.
    pub kind: u8,
    /// The offset of the option in the packet, in bytes.
    pub at: usize,
    /// The data of the option.
    pub data: &'a [u8],
}

/// The action of a host that does not implement an option. The highest two bits of the option's
/// type encode the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6OptionAction {
    /// Skip the option.
    Skip,
    /// Discard the packet.
    Discard,
    /// Discard the packet, and report this to the source by ICMPv6.
    Report,
    /// Discard the packet, and report this by ICMPv6 unless the destination was a multicast group.
    ReportIfUnicast,
}

impl Ipv6Option<'_> {
    /// Returns the action of a host that does not implement the option.
    #[must_use]
    pub const fn action(&self) -> Ipv6OptionAction {
        match self.kind >> 6 {
            0 => Ipv6OptionAction::Skip,
            1 => Ipv6OptionAction::Discard,
            2 => Ipv6OptionAction::Report,
            _ => Ipv6OptionAction::ReportIfUnicast,
        }
    }
}

/// An iterator over the options of an extension header, without padding. After a malformed option,
/// it returns an error and ends.
#[derive(Clone, Debug)]
pub struct Ipv6Options<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Ipv6Options<'a> {
    /// Creates an iterator over the options of a Hop-by-Hop or Destination Options header.
    #[must_use]
    pub fn of(header: &Ipv6Extension<'a>) -> Self {
        Self { rest: header.bytes.get(2..).unwrap_or_default(), at: header.at + 2 }
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
        self.at += length;
    }
}

impl<'a> Iterator for Ipv6Options<'a> {
    type Item = Result<Ipv6Option<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&kind, after) = self.rest.split_first()?;
            if kind == PAD1 {
                self.skip(1);
                continue;
            }
            let data = after.split_first().and_then(|(&length, data)| data.get(..length.into()));
            let Some(data) = data else {
                self.rest = &[];
                return Some(Err(field("length of an option", kind.into())));
            };
            let at = self.at;
            self.skip(2 + data.len());
            if kind != PADN {
                return Some(Ok(Ipv6Option { kind, at, data }));
            }
        }
    }
}
