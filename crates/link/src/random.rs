//! Random bytes of the operating system.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Returns `N` unpredictable bytes, for the seed of a host or for a token.
///
/// # Errors
/// An error of the operating system, if it has no random numbers.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut drawn = 0;
    while drawn < N {
        drawn += getrandom(&mut bytes[drawn..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
