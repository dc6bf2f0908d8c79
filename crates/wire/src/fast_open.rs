//! TCP Fast Open cookies (RFC 7413 §4.1.1). A server gives a client a cookie. The client sends it
//! back with the data on its next SYN to this server. For other hosts, a cookie has no meaning.
//!
//! Before the option was assigned kind 34, it was sent as an experimental option (RFC 6994): kind
//! 254, with data that begins with 0xF989. Some peers still send the experimental option, so a
//! cookie stores which of the two options carries it.

use core::fmt;

const NOP: u8 = 1;
const FAST_OPEN: u8 = 34;
/// The option kind that is reserved for experiments (RFC 4727).
const EXPERIMENT: u8 = 254;
/// The experiment identifier of Fast Open (RFC 7413 appendix B).
const MAGIC: [u8; 2] = [0xf9, 0x89];

/// A Fast Open cookie: an even number of bytes from 4 to 16. An empty cookie requests a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FastOpenCookie {
    /// The bytes of the cookie, followed by padding. Invariant: the padding, from index `length`
    /// on, is zero.
    bytes: [u8; Self::MOST],
    length: u8,
    /// Is the cookie carried by the experimental option?
    experimental: bool,
}

impl FastOpenCookie {
    /// The empty cookie, with which a client requests a cookie.
    pub const REQUEST: Self = Self { bytes: [0; Self::MOST], length: 0, experimental: false };

    const LEAST: usize = 4;
    const MOST: usize = 16;
    const LONGEST_OPTION: usize = Self::MOST + 4;

    /// Creates a cookie of these bytes. Without bytes, it is a request for a cookie. Returns `None`
    /// if their number is odd, 2, or more than 16.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len();
        if length != 0 && !(Self::LEAST..=Self::MOST).contains(&length) || !length.is_multiple_of(2)
        {
            return None;
        }
        let mut cookie = Self { length: u8::try_from(length).ok()?, ..Self::REQUEST };
        cookie.bytes[..length].copy_from_slice(bytes);
        Some(cookie)
    }

    /// Returns the bytes that the server chose.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Is this the request for a cookie?
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.length == 0
    }

    /// Returns this cookie for another option: for the experimental option if `experimental` is
    /// set, otherwise for the option of RFC 7413.
    #[must_use]
    pub const fn carried(self, experimental: bool) -> Self {
        Self { experimental, ..self }
    }

    /// Is the cookie carried by the experimental option?
    #[must_use]
    pub const fn is_experimental(&self) -> bool {
        self.experimental
    }

    /// Returns the length of the option in bytes, without padding.
    const fn length(self) -> usize {
        self.length as usize + if self.experimental { 4 } else { 2 }
    }

    /// Returns the number of NOPs that precede the option, so that its end is at a multiple of four
    /// bytes.
    const fn padding(self) -> usize {
        self.length() % 4
    }

    /// Returns the length of the option and its padding in bytes.
    pub(crate) const fn option_length(self) -> usize {
        self.padding() + self.length()
    }

    /// Returns an array that begins with the padding and the option. Their length is
    /// [`Self::option_length`]; the rest of the array is not sent.
    pub(crate) fn emit(self) -> [u8; Self::LONGEST_OPTION] {
        let mut field = [NOP; Self::LONGEST_OPTION];
        let at = self.padding();
        #[allow(clippy::cast_possible_truncation, reason = "an option has at most 20 bytes")]
        let length = self.length() as u8;
        let head: &[u8] = if self.experimental {
            &[EXPERIMENT, length, MAGIC[0], MAGIC[1]]
        } else {
            &[FAST_OPEN, length]
        };
        field[at..at + head.len()].copy_from_slice(head);
        let at = at + head.len();
        field[at..at + usize::from(self.length)].copy_from_slice(self.as_bytes());
        field
    }

    /// Parses the data of an option of this `kind`. Returns `None` if it is not a Fast Open option,
    /// or if its cookie has an invalid length.
    pub(crate) fn parse(kind: u8, data: &[u8]) -> Option<Self> {
        match (kind, data) {
            (FAST_OPEN, data) => Self::new(data),
            (EXPERIMENT, [first, second, data @ ..]) if [*first, *second] == MAGIC => {
                Self::new(data).map(|cookie| cookie.carried(true))
            }
            _ => None,
        }
    }
}

/// Formats the cookie in hexadecimal; a request is the empty string.
impl fmt::Display for FastOpenCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for FastOpenCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FastOpenCookie({self})")
    }
}
