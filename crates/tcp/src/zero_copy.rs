//! Zero-copy access to the socket buffers: borrowed by the application, or made of shared memory.

use crate::{Connection, Error};
use bytes::Bytes;
use linerate_units::Instant;

/// # Application calls: data without copies
impl Connection {
    /// Lets `fill` write into the send buffer itself, and returns the number of bytes written.
    /// [`Connection::write`] copies instead.
    ///
    /// `fill` gets at most `wanted` bytes, for which memory is allocated now. It gets fewer if
    /// there is no room for more or more is not contiguous, but at least one; their content is
    /// arbitrary. It returns how many it has written, from the first on; a larger number counts as
    /// all. Writing nothing sends nothing. Without any room `fill` is not called and the result is
    /// `Ok(0)`: try again after [`crate::Event::Writable`].
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn write_with(
        &mut self,
        now: Instant,
        wanted: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        self.add(now, wanted, |buffer, memory| buffer.fill(wanted, memory, fill))
    }

    /// Shows received bytes to `take` in place, and removes as many as it returns.
    ///
    /// `take` gets the first contiguous readable bytes, which may be fewer than all. It gets none
    /// at the end of the stream and only there, as in `std::io::BufRead::fill_buf`. A number larger
    /// than their length counts as all. Taking nothing changes nothing.
    ///
    /// # Errors
    /// As [`Connection::read`]; `take` is not called then.
    pub fn read_with(
        &mut self,
        now: Instant,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() {
            self.error_of_empty_read()?;
            take(&[]);
            return Ok(0);
        }
        let count = self.receiver.buffer.take(take);
        if count > 0 {
            self.on_bytes_read(now, count);
        }
        Ok(count)
    }

    /// Appends as much of `data` as there is room for to the send queue, removes it from `data`,
    /// and returns its length. Nothing is copied: the memory of `data` is kept until the peer has
    /// acknowledged it, and segments and retransmissions are read from there.
    ///
    /// Each piece counts with its length in the send buffer. Pieces of less than 4 KiB are copied,
    /// which is cheaper than a record of them; so is everything while other connections wait for
    /// memory.
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn write_shared(&mut self, now: Instant, data: &mut Bytes) -> Result<usize, Error> {
        let wanted = data.len();
        self.add(now, wanted, |buffer, memory| {
            let taken = buffer.append_shared(data, memory);
            (taken, taken == wanted)
        })
    }

    /// Takes up to `most` received bytes, which may be fewer than there are; none only at the end
    /// of the stream, or if none are wanted. Data whose memory the link has passed on
    /// ([`crate::Driver::handle_segment_with`]) is not copied: it is a part of that memory, which
    /// stays allocated with it. Other data is copied.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn read_shared(&mut self, now: Instant, most: usize) -> Result<Bytes, Error> {
        if most == 0 {
            return Ok(Bytes::new());
        }
        if self.receiver.buffer.is_empty() {
            return self.error_of_empty_read().map(|_| Bytes::new());
        }
        let taken = self.receiver.buffer.take_shared(most);
        self.on_bytes_read(now, taken.len());
        Ok(taken)
    }
}
