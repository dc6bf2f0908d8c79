//! The cookie of TCP Fast Open (RFC 7413 §4.1.1): bytes that a server gives a client, which brings them
//! back with the data on its next SYN. What they mean, only that server knows.

use core::fmt;

/// A cookie: 4 to 16 bytes, an even number of them; or none, which asks for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FastOpenCookie {
    /// Invariant: zero beyond `length`.
    bytes: [u8; Self::MOST],
    length: u8,
}

impl FastOpenCookie {
    /// The empty cookie, with which a client asks for one.
    pub const REQUEST: Self = Self { bytes: [0; Self::MOST], length: 0 };

    const LEAST: usize = 4;
    const MOST: usize = 16;

    /// A cookie of these bytes; `None` if no cookie has so many.
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

    /// What the server gave.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Does it ask for a cookie?
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.length == 0
    }

    /// NOPs in front of the option that bring it to a multiple of four bytes.
    pub(crate) const fn padding(self) -> usize {
        (self.length as usize + 2) % 4
    }

    /// Bytes of the option and its padding.
    pub(crate) const fn option_length(self) -> usize {
        self.padding() + 2 + self.length as usize
    }
}

/// In hexadecimal; a wish for one as nothing.
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
