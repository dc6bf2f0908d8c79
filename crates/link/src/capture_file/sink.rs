//! The destination of a capture.

use std::fs::File;
use std::io::{self, Write};

/// A destination to which a capture can be written.
pub trait Sink: Write {
    /// Truncates the destination to its first `length` bytes. The writer calls this after a failed
    /// write, because the failed write may have left an incomplete packet behind these bytes.
    ///
    /// # Errors
    /// Any error of the operating system. The writer ignores it, because it already has an error to
    /// report.
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
