//! A buffer of bytes from two sources. Copied bytes lie in a ring. Shared bytes stay in memory that
//! belongs to the application or the link; each range of shared bytes is a piece.
//!
//! Offsets count from the first byte of the buffer. Shared pieces are appended only at the end of
//! the data. All bytes behind the last piece lie in the ring. Their offsets in the ring are smaller
//! than those in the buffer by the number of bytes in pieces.

use crate::MemoryGrant;
use crate::compact::pack::packed;
use crate::receive::saturated;
use crate::ring::{Following, Ring};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::hint::cold_path;
use core::ops::Range;
use linerate_units::Instant;
use linerate_wire::checksum::{Sum, copy_and_sum};

/// The minimum size of a shared piece in bytes. Shorter data is copied, because the record of a
/// piece would take more than a tenth of its size.
pub(crate) const LEAST_PIECE: usize = 4 << 10;

/// A buffer of copied bytes, which lie in a ring. Shared pieces can lie between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SegmentedBuffer {
    ring: Ring,
    pieces: Option<Box<Pieces>>,
    /// The number of bytes in all pieces. It is stored, and not computed, because it is read for
    /// every segment. In most buffers it is zero, because they have no pieces.
    piece_bytes: u32,
    /// The number of bytes of memory that the pieces keep allocated.
    piece_memory: u32,
}

packed!(SegmentedBuffer {
    ring
} known {
    pieces: |_config| None,
    piece_bytes: |_config| 0,
    piece_memory: |_config| 0
});

/// The shared pieces, in the order of the buffer.
///
/// Invariant: there is at least one piece, and no piece lies before the first byte of the buffer.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pieces {
    list: VecDeque<Piece>,
    /// The index of the buffer's first byte. Indices count all bytes since the buffer was created,
    /// including those in pieces.
    head: usize,
    /// The index of the first byte in the ring. These indices count only the bytes in the ring
    /// since the buffer was created.
    ring_head: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    bytes: Bytes,
    /// The number of bytes of memory that stay allocated for the piece.
    memory: usize,
    /// The index of the piece's first byte, in the count of [`Pieces::head`].
    start: usize,
    /// The index of the first ring byte after the piece, in the count of [`Pieces::ring_head`].
    ring: usize,
}

impl Piece {
    fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}

/// The location of a byte in the buffer.
enum Place<'a> {
    /// The byte is in a piece. Contains the bytes from this byte to the end of the piece.
    Piece(&'a [u8]),
    /// The byte is in the ring. Contains its offset from the ring's head, and the number of bytes
    /// from this byte to the next piece (`usize::MAX` if there is none).
    Ring(usize, usize),
}

impl SegmentedBuffer {
    /// Creates a buffer without memory.
    pub(crate) fn new() -> Self {
        Self { ring: Ring::new(), pieces: None, piece_bytes: 0, piece_memory: 0 }
    }

    /// Returns the number of bytes of memory that the buffer uses, including the memory of pieces.
    pub(crate) const fn memory(&self) -> usize {
        self.ring.memory() + self.piece_memory as usize
    }

    /// Returns the number of bytes in shared pieces.
    #[inline]
    pub(crate) const fn piece_bytes(&self) -> usize {
        self.piece_bytes as usize
    }

    /// Returns the total number of bytes for which the buffer has memory: the bytes in pieces, and
    /// the size of the ring.
    pub(crate) fn holds(&self) -> usize {
        self.piece_bytes() + self.ring.memory()
    }

    /// Returns the total number of bytes for which the buffer has memory once it has allocated as
    /// much as `grant` allows.
    pub(crate) fn reach(&self, grant: &MemoryGrant) -> usize {
        self.piece_bytes() + self.ring.reach(grant)
    }

    /// Ensures that there is memory for `needed` bytes; see [`Ring::make_room`].
    #[inline]
    pub(crate) fn make_room(
        &mut self,
        needed: usize,
        capacity: usize,
        grant: &MemoryGrant,
    ) -> bool {
        self.ring.make_room(needed - self.piece_bytes(), capacity, grant)
    }

    /// Moves the head of an empty buffer to the start of its memory; see [`Ring::start_over`]. Does
    /// nothing if there are pieces, whose stored positions in the ring would become invalid.
    #[inline(always)]
    pub(crate) const fn start_over(&mut self) {
        if self.pieces.is_none() {
            self.ring.start_over();
        }
    }

    /// Swaps the memory of an empty buffer with `memory`; see [`Ring::exchange`].
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.pieces.is_none() && self.ring.exchange(memory)
    }

    /// Records that `bytes` bytes are in use; see [`Ring::note_use`].
    #[inline]
    pub(crate) fn note_use(&mut self, bytes: u32) {
        self.ring.note_use(bytes - self.piece_bytes);
    }

    /// Frees memory of the ring that was not used recently; see [`Ring::give_back_unused`].
    pub(crate) fn give_back_unused(&mut self, now: Instant, needed: usize) {
        self.ring.give_back_unused(now, needed - self.piece_bytes());
    }

    /// Frees memory of the ring that is not needed if the whole buffer, including its pieces,
    /// holds `needed` bytes; see [`Ring::give_back`].
    pub(crate) fn give_back(&mut self, needed: usize) {
        self.ring.give_back(needed - self.piece_bytes());
    }

    /// Writes `bytes` at `offset`, which must be after all pieces.
    #[inline(always)]
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.ring.write(offset - self.piece_bytes(), bytes);
    }

    /// Returns room for `length` bytes at `offset`; see [`Ring::place_of_next`]. `None` if there
    /// are pieces, or if the room in the ring is not contiguous.
    #[inline(always)]
    pub(crate) fn place_of_next(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        if self.pieces.is_some() { None } else { self.ring.place_of_next(offset, length) }
    }

    /// Whether the ring has memory for `length` bytes and there are no shared pieces.
    #[inline(always)]
    pub(crate) fn has_place(&self, length: usize) -> bool {
        self.pieces.is_none() && length <= self.ring.memory()
    }

    /// Writes `bytes` over the final bytes of a buffer with `length` bytes. There must be no shared
    /// pieces.
    #[inline(always)]
    pub(crate) fn write_last(&mut self, length: usize, bytes: &[u8]) {
        self.ring.write(length - bytes.len(), bytes);
    }

    /// Returns the contiguous room behind `length` bytes at `offset`; see [`Ring::following`].
    /// There must be no shared pieces.
    #[inline(always)]
    pub(crate) fn following(&self, offset: usize, length: usize) -> Following {
        self.ring.following(offset, length)
    }

    /// Returns the contiguous free memory of the ring from `offset` on. `None` if there are shared
    /// pieces.
    #[inline(always)]
    pub(crate) fn next(&self, offset: usize) -> Option<Following> {
        self.pieces.is_none().then(|| self.ring.following(offset, 0))
    }

    /// Returns the memory that `following` describes; see [`Ring::place_of_following`].
    #[inline(always)]
    pub(crate) fn place_of_following(&mut self, following: Following) -> &mut [u8] {
        self.ring.place_of_following(following)
    }

    /// Returns room in the ring for writing, at `offset`, which must be after all pieces: up to
    /// `length` bytes, as far as they are contiguous.
    pub(crate) fn place(&mut self, offset: usize, length: usize) -> &mut [u8] {
        self.ring.place(offset - self.piece_bytes(), length)
    }

    /// Appends the shared `bytes` to a buffer of `length` bytes. They keep `memory` bytes of memory
    /// allocated until they are removed.
    pub(crate) fn push(&mut self, length: usize, bytes: Bytes, memory: usize) {
        let in_ring = length - self.piece_bytes();
        let pieces = self.pieces.get_or_insert_default();
        let (start, ring) = (pieces.head + length, pieces.ring_head + in_ring);
        self.piece_bytes += saturated(bytes.len());
        self.piece_memory += saturated(memory);
        pieces.list.push_back(Piece { bytes, memory, start, ring });
    }

    /// Returns the bytes at `offset`: up to `length` bytes, as far as they are contiguous.
    pub(crate) fn part(&self, offset: usize, length: usize) -> &[u8] {
        let Some(pieces) = &self.pieces else { return self.ring.front(offset, length) };
        match pieces.find(offset) {
            Place::Piece(rest) => &rest[..rest.len().min(length)],
            Place::Ring(at, run) => self.ring.front(at, run.min(length)),
        }
    }

    /// Iterates over the contiguous parts of the `length` bytes at `offset`.
    fn parts(&self, mut offset: usize, mut length: usize) -> impl Iterator<Item = &[u8]> {
        core::iter::from_fn(move || {
            if length == 0 {
                return None;
            }
            let part = self.part(offset, length);
            offset += part.len();
            length -= part.len();
            Some(part)
        })
    }

    /// Returns the `length` bytes at `offset` as two slices. `None` if they have more than two
    /// contiguous parts.
    pub(crate) fn two_parts(&self, offset: usize, length: usize) -> Option<[&[u8]; 2]> {
        let mut parts = self.parts(offset, length);
        let both = [parts.next().unwrap_or_default(), parts.next().unwrap_or_default()];
        parts.next().is_none().then_some(both)
    }

    /// Copies as many bytes as `into` has, from `offset` on, to `into`.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        if self.piece_bytes == 0 {
            return self.ring.read(offset, into);
        }
        cold_path();
        let mut at = 0;
        for part in self.parts(offset, into.len()) {
            into[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    /// Copies the bytes at `offset` to `into`, and returns their partial checksum; see
    /// [`Ring::read_and_sum`].
    #[inline]
    pub(crate) fn read_and_sum(&self, offset: usize, into: &mut [u8]) -> Sum {
        if self.piece_bytes == 0 {
            self.ring.read_and_sum(offset, into)
        } else {
            self.read_and_sum_parts(offset, into)
        }
    }

    #[inline(never)]
    fn read_and_sum_parts(&self, offset: usize, into: &mut [u8]) -> Sum {
        let (mut at, mut sum) = (0, Sum::default());
        for part in self.parts(offset, into.len()) {
            let end = at + part.len();
            sum = sum.append(copy_and_sum(part, &mut into[at..end]), at);
            at = end;
        }
        sum
    }

    /// Returns up to `most` of the first bytes of a buffer with `length` bytes. Bytes that lie in a
    /// shared piece are not copied. The bytes are not removed from the buffer;
    /// [`SegmentedBuffer::advance`] removes them.
    pub(crate) fn share(&self, length: usize, most: usize) -> Bytes {
        match self.pieces.as_ref().and_then(|pieces| pieces.share(most)) {
            Some(shared) => shared,
            None => Bytes::copy_from_slice(self.part(0, length.min(most))),
        }
    }

    /// Removes the first `count` bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        if self.piece_bytes > 0 {
            cold_path();
            return self.advance_past_pieces(count);
        }
        self.ring.advance(count);
    }

    #[inline(never)]
    fn advance_past_pieces(&mut self, count: usize) {
        let Some(pieces) = &mut self.pieces else { return };
        let (gone, memory) = pieces.advance(count);
        self.piece_bytes -= saturated(gone);
        self.piece_memory -= saturated(memory);
        self.ring.advance(count - gone);
        if pieces.list.is_empty() {
            self.pieces = None;
        }
    }

    /// Copies the memory of the ring from `other`, except for the ranges `kept`, which contain
    /// data. Tests use it to make memory without data equal before a comparison.
    pub(crate) fn copy_unused_memory<'a>(
        &mut self,
        other: &Self,
        kept: impl IntoIterator<Item = &'a Range<usize>>,
    ) {
        let before = self.piece_bytes();
        let kept = kept.into_iter().map(|range| range.start - before..range.end - before);
        self.ring.copy_unused_memory(&other.ring, kept);
    }

    /// Checks the invariants of a buffer with `length` bytes, and `beyond` bytes that were stored
    /// after them out of order.
    pub(crate) fn check(&self, length: usize, beyond: usize) {
        let in_ring = length - self.piece_bytes() + beyond;
        assert!(
            in_ring <= self.ring.memory(),
            "{in_ring} bytes in a memory of {}",
            self.ring.memory()
        );
        if let Some(pieces) = &self.pieces {
            let of_pieces = pieces.check(length);
            assert_eq!(
                (self.piece_bytes(), self.piece_memory as usize),
                of_pieces,
                "bytes and memory of pieces"
            );
        }
    }
}

impl Pieces {
    /// Returns the location of the byte at `offset`.
    fn find(&self, offset: usize) -> Place<'_> {
        let number = self.head + offset;
        let next = self.list.partition_point(|piece| piece.end() <= number);
        let Some(piece) = self.list.get(next) else {
            // No piece contains the byte or lies behind it. So the byte is in the ring, behind the
            // bytes of the final piece.
            let (end, ring) = self
                .list
                .back()
                .map_or((self.head, self.ring_head), |last| (last.end(), last.ring));
            return Place::Ring(ring + (number - end) - self.ring_head, usize::MAX);
        };
        match number.checked_sub(piece.start) {
            Some(at) => Place::Piece(&piece.bytes[at..]),
            None => {
                let run = piece.start - number;
                Place::Ring(piece.ring - run - self.ring_head, run)
            }
        }
    }

    /// Returns up to `most` bytes of the piece that contains the buffer's first byte. `None` if the
    /// first byte lies in the ring.
    fn share(&self, most: usize) -> Option<Bytes> {
        let first = self.list.front()?;
        let at = self.head.checked_sub(first.start)?;
        Some(first.bytes.slice(at..first.bytes.len().min(at.saturating_add(most))))
    }

    /// Removes the first `count` bytes. Returns how many of them were in pieces, and how many bytes
    /// of memory the removed pieces have kept allocated.
    fn advance(&mut self, count: usize) -> (usize, usize) {
        let head = self.head + count;
        let (mut gone, mut memory) = (0, 0);
        while let Some(first) = self.list.front().filter(|first| first.start < head) {
            gone += head.min(first.end()) - self.head.max(first.start);
            if first.end() > head {
                break;
            }
            memory += first.memory;
            self.list.pop_front();
        }
        self.head = head;
        self.ring_head += count - gone;
        (gone, memory)
    }

    /// Checks the list of pieces. Returns the number of bytes in pieces, and the number of bytes of
    /// memory that they keep allocated. Both are computed from the list, for comparison with the
    /// stored values.
    fn check(&self, length: usize) -> (usize, usize) {
        assert!(!self.list.is_empty(), "an empty list of pieces is not kept");
        let (mut number, mut ring, mut bytes, mut memory) = (self.head, self.ring_head, 0, 0);
        for piece in &self.list {
            let begins = number.max(piece.start);
            assert!(piece.end() > begins, "a piece whose bytes are all removed is still there");
            ring += begins - number;
            assert_eq!(piece.ring, ring, "bytes of the ring before a piece");
            bytes += piece.end() - begins;
            memory += piece.memory;
            number = piece.end();
        }
        assert!(number - self.head <= length, "pieces extend beyond the buffer");
        (bytes, memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// A segmented buffer, and a vector with the bytes that it should contain.
    struct Model {
        buffer: SegmentedBuffer,
        plain: Vec<u8>,
    }

    impl Model {
        fn new() -> Self {
            Self { buffer: SegmentedBuffer::new(), plain: Vec::new() }
        }

        fn copy(&mut self, bytes: &[u8]) {
            let length = self.plain.len();
            assert!(self.buffer.make_room(length + bytes.len(), 1 << 20, &MemoryGrant::UNLIMITED));
            self.buffer.write(length, bytes);
            self.plain.extend_from_slice(bytes);
        }

        fn push(&mut self, bytes: &[u8]) {
            self.buffer.push(self.plain.len(), Bytes::copy_from_slice(bytes), bytes.len());
            self.plain.extend_from_slice(bytes);
        }

        fn advance(&mut self, count: usize) {
            self.buffer.advance(count);
            self.plain.drain(..count);
        }

        fn compare(&self) {
            self.buffer.check(self.plain.len(), 0);
            for offset in 0..=self.plain.len() {
                for length in
                    [1, 3, 7, usize::MAX].map(|length| length.min(self.plain.len() - offset))
                {
                    let expected = &self.plain[offset..offset + length];
                    let mut into = vec![0; length];
                    self.buffer.read(offset, &mut into);
                    assert_eq!(into, expected);
                    into.fill(0);
                    let sum = self.buffer.read_and_sum(offset, &mut into);
                    assert_eq!((sum.finish(), &into[..]), (Sum::of(expected).finish(), expected));
                    if let Some(parts) = self.buffer.two_parts(offset, length) {
                        assert_eq!(parts.concat(), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn copied_and_shared_bytes_are_read_in_order() {
        let mut model = Model::new();
        let steps: [fn(&mut Model); 12] = [
            |model| model.push(b"abcde"),
            |model| model.copy(b"fgh"),
            |model| model.push(b"ijklm"),
            |model| model.push(b"no"),
            |model| model.advance(2),
            |model| model.copy(b"pqrs"),
            |model| model.advance(4),
            |model| model.push(b"tuv"),
            |model| model.advance(9),
            |model| model.copy(b"wxyz"),
            |model| model.advance(1),
            |model| model.advance(10),
        ];
        for step in steps {
            step(&mut model);
            model.compare();
        }
        assert_eq!((model.plain.len(), model.buffer.pieces.is_none()), (0, true));
    }

    #[test]
    fn a_piece_holds_its_memory_until_its_last_byte_is_removed() {
        let mut buffer = SegmentedBuffer::new();
        buffer.push(0, Bytes::from_static(b"abc"), 64);
        assert_eq!((buffer.memory(), buffer.holds()), (64, 3));
        buffer.advance(2);
        assert_eq!((buffer.memory(), buffer.holds()), (64, 1));
        buffer.advance(1);
        assert_eq!((buffer.memory(), buffer.holds()), (0, 0));
    }

    #[test]
    fn bytes_in_a_piece_are_shared_and_bytes_in_the_ring_copied() {
        let mut model = Model::new();
        let whole = Bytes::from_static(b"whole");
        model.buffer.push(0, whole.clone(), 5);
        model.plain.extend_from_slice(&whole);
        model.copy(b"ring");
        model.advance(1);
        let shared = model.buffer.share(model.plain.len(), 3);
        assert_eq!((&shared[..], shared.as_ptr()), (&b"hol"[..], whole[1..].as_ptr()));
        model.advance(4);
        assert_eq!(model.buffer.share(model.plain.len(), 100), b"ring"[..]);
    }

    #[test]
    fn two_parts_refuses_three_parts() {
        let mut model = Model::new();
        for piece in [b"ab", b"cd", b"ef"] {
            model.push(piece);
        }
        assert_eq!(model.buffer.two_parts(1, 3), Some([&b"b"[..], b"cd"]));
        assert_eq!(model.buffer.two_parts(2, 2), Some([&b"cd"[..], b""]));
        assert_eq!(model.buffer.two_parts(1, 4), None);
    }
}
