//! The socket buffers without copies: lent to the application, or made of memory that it shares.

use crate::{Connection, Error};
use bytes::Bytes;
use linerate_units::Instant;

impl Connection {
    /// Has `fill` write into the place from which the data is sent, and returns how much that was: what
    /// [`Connection::write`] copies is made where it belongs.
    ///
    /// `fill` is lent room for at most `wanted` bytes, for which memory is taken now. It may be lent fewer, if
    /// there is no room for more or if more do not lie together, but at least one; what is in them is
    /// arbitrary. It says how many it has written, from the first on; one that claims more than it was lent has
    /// written all of that. Nothing written sends nothing. If there is no room at all `fill` is not called,
    /// and `Ok(0)` means: come back after [`crate::Event::Writable`].
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

    /// Shows received bytes to `take` where they lie, and takes as many as it says, which is returned.
    ///
    /// `take` is lent the first bytes that there are to read, as many as lie together, which may be fewer than
    /// all; none at the end of the stream, as `std::io::BufRead::fill_buf` says it, and only there. One that
    /// claims more than it was lent has taken all of that. Nothing taken changes nothing.
    ///
    /// # Errors
    /// As [`Connection::read`]; `take` is not called then.
    pub fn read_with(
        &mut self,
        now: Instant,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() {
            self.why_nothing_to_read()?;
            take(&[]);
            return Ok(0);
        }
        let count = self.receiver.buffer.take(take);
        if count > 0 {
            self.follow_read(now, count);
        }
        Ok(count)
    }

    /// Adds as much of `data` as there is room for to what is to be sent, takes that off its front, and returns
    /// how much it was. Nothing is copied: the memory of `data` is kept until the peer has acknowledged it, and
    /// what leaves is read from there, also when it leaves again.
    ///
    /// Each piece counts with its length as what the send buffer holds. Pieces of less than 4 KiB are copied,
    /// since that is cheaper than to remember them, and so is everything while others wait for memory.
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

    /// Takes up to `most` received bytes, which may be fewer than there are; none only at the end of the stream,
    /// or if none are wanted. Where they have come in memory that the link let go of
    /// ([`Connection::handle_segment_with`]) nothing is copied: they are a part of that memory, which is all kept
    /// for as long as they are. Else they are a copy.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn read_shared(&mut self, now: Instant, most: usize) -> Result<Bytes, Error> {
        if most == 0 {
            return Ok(Bytes::new());
        }
        if self.receiver.buffer.is_empty() {
            return self.why_nothing_to_read().map(|_| Bytes::new());
        }
        let taken = self.receiver.buffer.take_shared(most);
        self.follow_read(now, taken.len());
        Ok(taken)
    }
}
