//! The socket buffers of a connection without copies: lent to its application, or made of memory that it
//! shares.

use crate::error::Error;
use crate::handle::TcpHandle;
use crate::stack::Stack;
use bytes::Bytes;
use core::cell::Cell;
use linerate_units::Instant;

impl Stack {
    /// Has `fill` write up to `wanted` bytes straight into the send buffer, and returns how many it has
    /// written: an application that makes its data, or gets them from something that fills a slice, saves the
    /// copy of [`Stack::tcp_write`].
    ///
    /// `fill` may be lent fewer bytes, but at least one, with anything in them; what it claims to have written
    /// beyond what it was lent it has not. Without any room it is not called, and `Ok(0)` means: come back
    /// after [`linerate_tcp::Event::Writable`].
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
    /// As [`Stack::tcp_write`].
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

    /// Shows received bytes to `take` where they lie, and takes as many as it says, which is returned: an
    /// application that looks at its data, or hands them on, saves the copy of [`Stack::tcp_read`].
    ///
    /// `take` is lent the first bytes that there are, which may be fewer than all, and none only at the end of
    /// the stream; what it claims to have taken beyond them it has not. What it does not take it is lent again.
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
    /// As [`Stack::tcp_read`]; `take` is not called then.
    pub fn tcp_read_with(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        self.read_by(now, handle, true, |connection| connection.read_with(now, take))
    }

    /// Adds as much of `data` as there is room for to what the connection sends, and takes that off its front;
    /// how much. Nothing is copied: `data` are kept, and read where they are whenever they leave, until the peer
    /// has acknowledged them. Only pieces of less than 4 KiB are copied, and all while memory is short.
    ///
    /// ```
    /// # use bytes::Bytes;
    /// # use linerate_stack::{Error, Stack, TcpHandle};
    /// # use linerate_units::Instant;
    /// /// Many can be sent the same page, which is in memory once.
    /// fn serve(stack: &mut Stack, now: Instant, readers: &[TcpHandle], page: &Bytes) -> Result<(), Error> {
    ///     for &reader in readers {
    ///         let mut rest = page.clone();
    ///         stack.tcp_write_shared(now, reader, &mut rest)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Stack::tcp_write`].
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

    /// Takes up to `most` received bytes; none only at the end of the stream, or if none are wanted. A link that
    /// lets go of its memory, as TAP with offloads does, has them arrive without a copy, and then this makes none
    /// either: who holds them holds the memory of the whole frame that they came in, up to twice as much.
    /// Else they are a copy.
    ///
    /// # Errors
    /// As [`Stack::tcp_read`].
    pub fn tcp_read_shared(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        most: usize,
    ) -> Result<Bytes, Error> {
        self.read_by(now, handle, most > 0, |connection| connection.read_shared(now, most))
    }
}
