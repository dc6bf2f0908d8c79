//! The options of an IPv4 header (RFC 791 §3.1).

use crate::{Ipv4Header, Malformed};

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

/// An option of an IPv4 header, other than padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Option<'a> {
    /// The offset of the option in the header, in bytes.
    pub at: usize,
    /// The whole option: type, length and data, at least two bytes.
    pub bytes: &'a [u8],
}

impl Ipv4Option<'_> {
    /// Returns the type of the option.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.bytes[0]
    }

    /// Must every fragment of the packet contain this option? Other options are in the first
    /// fragment only.
    #[must_use]
    pub const fn is_copied(&self) -> bool {
        self.kind() & 0x80 != 0
    }

    /// Is this option a source route that has not reached its end? If so, the packet must be
    /// forwarded to another host.
    #[must_use]
    pub fn directs_to_others(&self) -> bool {
        let pointer = self.bytes.get(2).map_or(0, |&pointer| usize::from(pointer));
        matches!(self.kind(), LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE)
            && pointer <= self.bytes.len()
    }
}

/// An iterator over the options of an IPv4 header, without padding. After a malformed option, it
/// returns an error and ends.
#[derive(Clone, Debug)]
pub struct Ipv4Options<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Ipv4Options<'a> {
    /// Creates an iterator over `options`, which are those of an
    /// [`Ipv4Packet`](crate::Ipv4Packet::options).
    #[must_use]
    pub const fn of(options: &'a [u8]) -> Self {
        Self { rest: options, at: Ipv4Header::LENGTH }
    }

    /// Returns the offset of the next option in the header, in bytes. After an error, this is the
    /// offset of the malformed option.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Writes to `into` the options that every fragment of the packet must contain, padded to a
    /// multiple of four bytes. Returns the padded length in bytes. Stops at a malformed option.
    #[must_use]
    pub fn copied(self, into: &mut [u8; 40]) -> usize {
        let mut length = 0;
        for option in self.map_while(Result::ok).filter(Ipv4Option::is_copied) {
            into[length..length + option.bytes.len()].copy_from_slice(option.bytes);
            length += option.bytes.len();
        }
        let padded = length.next_multiple_of(4);
        into[length..padded].fill(END);
        padded
    }
}

impl<'a> Iterator for Ipv4Options<'a> {
    type Item = Result<Ipv4Option<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.at;
            match *self.rest {
                [] | [END, ..] => return None,
                [NO_OPERATION, ref rest @ ..] => {
                    self.rest = rest;
                    self.at += 1;
                }
                [kind, ref after @ ..] => {
                    let length = after.first().map_or(0, |&length| usize::from(length));
                    let Some((bytes, rest)) =
                        self.rest.split_at_checked(length).filter(|_| length >= 2)
                    else {
                        self.rest = &[];
                        return Some(Err(Malformed::Field {
                            what: "IPv4 options",
                            field: "length of an option",
                            value: kind.into(),
                        }));
                    };
                    self.rest = rest;
                    self.at += length;
                    return Some(Ok(Ipv4Option { at, bytes }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn options_are_found_between_padding() {
        let options = [1, 0x94, 4, 0, 0, 131, 3, 4, 7, 3, 4, 137, 7, 4, 10, 0, 0, 1, 0, 0];
        let found: Vec<_> = Ipv4Options::of(&options).map(Result::unwrap).collect();
        let facts: Vec<_> = found
            .iter()
            .map(|option| {
                (option.kind(), option.at, option.is_copied(), option.directs_to_others())
            })
            .collect();
        assert_eq!(
            facts,
            [
                (0x94, 21, true, false),
                (131, 25, true, false),
                (7, 28, false, false),
                (137, 31, true, true)
            ]
        );
        let mut copied = [9; 40];
        assert_eq!(Ipv4Options::of(&options).copied(&mut copied), 16);
        assert_eq!(copied[..7], [0x94, 4, 0, 0, 131, 3, 4]);
        assert_eq!(copied[7..16], [137, 7, 4, 10, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn options_beyond_the_end_of_the_header_are_malformed() {
        for options in [&[7, 1, 0, 0][..], &[7, 5, 0, 0], &[1, 1, 1, 7], &[7, 0, 0, 0]] {
            assert!(Ipv4Options::of(options).any(|option| option.is_err()), "{options:?}");
        }
        assert_eq!(Ipv4Options::of(&[0, 7, 9, 9]).count(), 0, "the list has ended");
    }
}
