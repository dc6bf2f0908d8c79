//! Access to the socket buffers of a connection without a copy: in place, or by reference to shared
//! memory.

use crate::error::Error;
use crate::handle::TcpHandle;
use crate::stack::Stack;
use bytes::Bytes;
use core::cell::Cell;
use linerate_units::Instant;

/// # Application calls: TCP without copies
impl Stack {
    /// Calls `fill` to write up to `wanted` bytes directly into the send buffer, and returns the
    /// number of bytes written. This saves the copy of [`Stack::tcp_write`] if the application
    /// generates its data, or reads the data from a source that fills a slice.
    ///
    /// `fill` gets a slice of at least one byte with arbitrary content, and returns how many bytes
    /// it has written. The slice may be shorter than `wanted`. A result greater than the length of
    /// the slice counts as that length. If the send buffer has no room, `fill` is not called, and
    /// the result is `Ok(0)`; [`linerate_tcp::Event::Writable`] follows.
    ///
    /// ```
    /// # use linerate_stack::{Error, Stack, TcpHandle};
    /// # use linerate_units::Instant;
    /// fn count_up(stack: &mut Stack, now: Instant, stream: TcpHandle) -> Result<usize, Error> {
    ///     stack.tcp_write_with(now, stream, 1_000, |room| {
    ///         for (byte, number) in room.iter_mut().zip((0..=u8::MAX).cycle()) {
    ///             *byte = number;
    ///         }
    ///         room.len()
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stack::tcp_write`].
    pub fn tcp_write_with(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        wanted: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        let had_room = Cell::new(wanted == 0);
        let fill = |room: &mut [u8]| {
            had_room.set(true);
            fill(room)
        };
        self.write_by(
            now,
            handle,
            |_| !had_room.get(),
            |connection| connection.write_with(now, wanted, fill),
        )
    }

    /// Calls `take` with a slice of received data in the receive buffer, removes as many bytes as
    /// `take` returns, and returns this number. This saves the copy of [`Stack::tcp_read`] if the
    /// application parses the data, or passes it on.
    ///
    /// `take` gets the first contiguous bytes, which may be fewer than all received bytes. The
    /// slice is empty only at the end of the stream. A result greater than the length of the slice
    /// counts as that length. Bytes that `take` did not consume are passed again in the next call.
    ///
    /// ```
    /// # use linerate_stack::{Error, Stack, TcpHandle};
    /// # use linerate_units::Instant;
    /// fn count_lines(stack: &mut Stack, now: Instant, stream: TcpHandle) -> Result<usize, Error> {
    ///     let mut lines = 0;
    ///     stack.tcp_read_with(now, stream, |bytes| {
    ///         lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    ///         bytes.len()
    ///     })?;
    ///     Ok(lines)
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stack::tcp_read`]. In case of an error, `take` is not called.
    pub fn tcp_read_with(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        self.read_by(now, handle, true, |connection| connection.read_with(now, take))
    }

    /// Adds `data` to the send buffer without a copy, as far as it fits, and removes the added part
    /// from `data`. Returns the number of bytes added. The buffer keeps a reference to the memory
    /// until the peer has acknowledged the data. Data of less than 4 KiB is copied, and so is all
    /// data while memory is short.
    ///
    /// ```
    /// # use bytes::Bytes;
    /// # use linerate_stack::{Error, Stack, TcpHandle};
    /// # use linerate_units::Instant;
    /// /// Sends one page in memory to many readers.
    /// fn serve(
    ///     stack: &mut Stack, now: Instant, readers: &[TcpHandle], page: &Bytes,
    /// ) -> Result<(), Error> {
    ///     for &reader in readers {
    ///         let mut rest = page.clone();
    ///         stack.tcp_write_shared(now, reader, &mut rest)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stack::tcp_write`].
    pub fn tcp_write_shared(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        data: &mut Bytes,
    ) -> Result<usize, Error> {
        let has_data = !data.is_empty();
        let is_refused = |taken| taken == 0 && has_data;
        self.write_by(now, handle, is_refused, |connection| connection.write_shared(now, data))
    }

    /// Removes and returns up to `most` bytes of received data. The result is empty only at the end
    /// of the stream, or if `most` is 0. On a link that shares its receive buffers, such as TAP
    /// with offloads, the data is not copied. The result then keeps whole frames in memory, which
    /// take up to twice as many bytes as the result. On other links, the result is a copy.
    ///
    /// # Errors
    /// The errors of [`Stack::tcp_read`].
    pub fn tcp_read_shared(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        most: usize,
    ) -> Result<Bytes, Error> {
        self.read_by(now, handle, most > 0, |connection| connection.read_shared(now, most))
    }
}
