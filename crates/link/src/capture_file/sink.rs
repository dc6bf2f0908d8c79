//! The destination of a capture.

use std::fs::File;
use std::io::{self, Write};

/// The destination of a capture.
pub trait Sink: Write {
    /// Truncates the destination to its first `length` bytes after a failed write. If that is
    /// impossible, the capture ends within a packet.
    ///
    /// # Errors
    /// Any error of the system. It is ignored.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

impl Sink for Vec<u8> {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        (**self).cut(length)
    }
}
