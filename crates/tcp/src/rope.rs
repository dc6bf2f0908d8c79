//! Bytes in order: those that were copied lie in a ring, and those that were handed over whole stay in the
//! memory that they came in.
//!
//! Positions are told from the first byte on. Whole pieces are only ever put behind everything else, so the
//! ring is addressed as if they were not there.

use crate::MemoryGrant;
use crate::receive::saturated;
use crate::rest::pack::packed;
use crate::ring::{Following, Ring};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::hint::cold_path;
use core::ops::Range;
use linerate_units::Instant;
use linerate_wire::checksum::{Sum, copy_and_sum};

/// Fewer bytes than these are copied: what has to be kept of a piece then never comes to a tenth of it.
pub(crate) const LEAST_PIECE: usize = 4 << 10;

/// A ring, and whole pieces between its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rope {
    ring: Ring,
    pieces: Option<Box<Pieces>>,
    /// Bytes in all pieces, from the first byte of the rope on: zero is what every segment asks for.
    in_pieces: u32,
    /// Bytes of memory that they keep.
    beside: u32,
}

packed!(Rope { ring } known { pieces: |_config| None, in_pieces: |_config| 0, beside: |_config| 0 });

/// The whole pieces, in order.
///
/// Invariant: there is at least one, and none lies before the first byte.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pieces {
    list: VecDeque<Piece>,
    /// The first byte's number. Numbers go on as bytes leave, and bytes of the ring have numbers of their own.
    head: usize,
    ring_head: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    bytes: Bytes,
    /// Bytes of the memory that it keeps.
    memory: usize,
    /// Numbers of its first byte, and of the byte of the ring that follows it.
    start: usize,
    ring: usize,
}

impl Piece {
    fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}

/// Where a byte is.
enum Place<'a> {
    /// In a piece, of which this is the rest.
    Piece(&'a [u8]),
    /// At this place of the ring, and so many bytes before the next piece.
    Ring(usize, usize),
}

impl Rope {
    /// Without memory.
    pub(crate) fn new() -> Self {
        Self { ring: Ring::new(), pieces: None, in_pieces: 0, beside: 0 }
    }

    /// Bytes of memory that it holds.
    pub(crate) const fn memory(&self) -> usize {
        self.ring.memory() + self.beside as usize
    }

    /// Bytes in whole pieces.
    #[inline]
    pub(crate) const fn in_pieces(&self) -> usize {
        self.in_pieces as usize
    }

    /// Bytes that can be in it with the memory that it holds.
    pub(crate) fn holds(&self) -> usize {
        self.in_pieces() + self.ring.memory()
    }

    /// Bytes that could be in it with a grant.
    pub(crate) fn reach(&self, grant: &MemoryGrant) -> usize {
        self.in_pieces() + self.ring.reach(grant)
    }

    /// As [`Ring::make_room`].
    #[inline]
    pub(crate) fn make_room(
        &mut self,
        needed: usize,
        capacity: usize,
        grant: &MemoryGrant,
    ) -> bool {
        self.ring.make_room(needed - self.in_pieces(), capacity, grant)
    }

    /// As [`Ring::start_over`], if there are no pieces, since each of them knows its place between the bytes.
    #[inline(always)]
    pub(crate) const fn start_over(&mut self) {
        if self.pieces.is_none() {
            self.ring.start_over();
        }
    }

    /// As [`Ring::exchange`], of an empty one.
    pub(crate) fn exchange(&mut self, memory: &mut Box<[u8]>) -> bool {
        self.pieces.is_none() && self.ring.exchange(memory)
    }

    /// As [`Ring::note_use`].
    #[inline]
    pub(crate) fn note_use(&mut self, bytes: u32) {
        self.ring.note_use(bytes - self.in_pieces);
    }

    /// As [`Ring::give_back_unused`]; pieces stay until they are done with.
    pub(crate) fn give_back_unused(&mut self, now: Instant, needed: usize) {
        self.ring.give_back_unused(now, needed - self.in_pieces());
    }

    /// As [`Ring::give_back`].
    pub(crate) fn give_back(&mut self, needed: usize) {
        self.ring.give_back(needed - self.in_pieces());
    }

    /// Writes `bytes` at `offset`, behind all whole pieces.
    #[inline(always)]
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.ring.write(offset - self.in_pieces(), bytes);
    }

    /// As [`Ring::place_of_next`], if there are no pieces.
    #[inline(always)]
    pub(crate) fn place_of_next(&mut self, offset: usize, length: usize) -> Option<&mut [u8]> {
        if self.pieces.is_some() { None } else { self.ring.place_of_next(offset, length) }
    }

    /// Is there memory for `length` bytes, and are there no pieces?
    #[inline(always)]
    pub(crate) fn has_place(&self, length: usize) -> bool {
        self.pieces.is_none() && length <= self.ring.memory()
    }

    /// Writes the last of `length` bytes, where there are no pieces.
    #[inline(always)]
    pub(crate) fn write_last(&mut self, length: usize, bytes: &[u8]) {
        self.ring.write(length - bytes.len(), bytes);
    }

    /// As [`Ring::following`], where there are no pieces.
    #[inline(always)]
    pub(crate) fn following(&self, offset: usize, length: usize) -> Following {
        self.ring.following(offset, length)
    }

    /// What there is room for behind `offset` bytes, as [`following`](Self::following) no bytes, if there are no pieces.
    #[inline(always)]
    pub(crate) fn next(&self, offset: usize) -> Option<Following> {
        self.pieces.is_none().then(|| self.ring.following(offset, 0))
    }

    /// As [`Ring::place_of_following`].
    #[inline(always)]
    pub(crate) fn place_of_following(&mut self, following: Following) -> &mut [u8] {
        self.ring.place_of_following(following)
    }

    /// The place of the bytes at `offset`, behind all whole pieces: of `length` as many as lie together.
    pub(crate) fn place(&mut self, offset: usize, length: usize) -> &mut [u8] {
        self.ring.place(offset - self.in_pieces(), length)
    }

    /// Puts `bytes`, which keep `memory` bytes of memory, behind all others, of which there are `length`.
    pub(crate) fn push(&mut self, length: usize, bytes: Bytes, memory: usize) {
        let in_ring = length - self.in_pieces();
        let pieces = self.pieces.get_or_insert_default();
        let (start, ring) = (pieces.head + length, pieces.ring_head + in_ring);
        self.in_pieces += saturated(bytes.len());
        self.beside += saturated(memory);
        pieces.list.push_back(Piece { bytes, memory, start, ring });
    }

    /// The bytes at `offset`, of `length` as many as lie together.
    pub(crate) fn part(&self, offset: usize, length: usize) -> &[u8] {
        let Some(pieces) = &self.pieces else { return self.ring.front(offset, length) };
        match pieces.find(offset) {
            Place::Piece(rest) => &rest[..rest.len().min(length)],
            Place::Ring(at, run) => self.ring.front(at, run.min(length)),
        }
    }

    /// The `length` bytes at `offset`, part by part.
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

    /// The `length` bytes at `offset`, if they lie in no more than two parts.
    pub(crate) fn two_parts(&self, offset: usize, length: usize) -> Option<[&[u8]; 2]> {
        let mut parts = self.parts(offset, length);
        let both = [parts.next().unwrap_or_default(), parts.next().unwrap_or_default()];
        parts.next().is_none().then_some(both)
    }

    /// Copies the bytes at `offset` out.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        if self.in_pieces == 0 {
            return self.ring.read(offset, into);
        }
        cold_path();
        let mut at = 0;
        for part in self.parts(offset, into.len()) {
            into[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    /// Copies the bytes at `offset` out and sums them on the way.
    #[inline]
    pub(crate) fn read_and_sum(&self, offset: usize, into: &mut [u8]) -> Sum {
        if self.in_pieces == 0 {
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

    /// Up to `most` of the first bytes, of which there are `length`, as a piece of their own: without a copy if
    /// they lie in a whole piece. They stay until [`Rope::advance`] lets go of them.
    pub(crate) fn share(&self, length: usize, most: usize) -> Bytes {
        match self.pieces.as_ref().and_then(|pieces| pieces.share(most)) {
            Some(shared) => shared,
            None => Bytes::copy_from_slice(self.part(0, length.min(most))),
        }
    }

    /// Lets go of the first `count` bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        if self.in_pieces > 0 {
            cold_path();
            return self.advance_past_pieces(count);
        }
        self.ring.advance(count);
    }

    #[inline(never)]
    fn advance_past_pieces(&mut self, count: usize) {
        let Some(pieces) = &mut self.pieces else { return };
        let (gone, memory) = pieces.advance(count);
        self.in_pieces -= saturated(gone);
        self.beside -= saturated(memory);
        self.ring.advance(count - gone);
        if pieces.list.is_empty() {
            self.pieces = None;
        }
    }

    /// The ring's memory has what that of `other` has, except for the bytes at `kept`.
    pub(crate) fn take_leftovers_of<'a>(
        &mut self,
        other: &Self,
        kept: impl IntoIterator<Item = &'a Range<usize>>,
    ) {
        let before = self.in_pieces();
        let kept = kept.into_iter().map(|range| range.start - before..range.end - before);
        self.ring.take_leftovers_of(&other.ring, kept);
    }

    /// Checks what must hold with `length` bytes in it, and `beyond` bytes in place behind them.
    pub(crate) fn check(&self, length: usize, beyond: usize) {
        let in_ring = length - self.in_pieces() + beyond;
        assert!(
            in_ring <= self.ring.memory(),
            "{in_ring} bytes in a memory of {}",
            self.ring.memory()
        );
        if let Some(pieces) = &self.pieces {
            let of_pieces = pieces.check(length);
            assert_eq!(
                (self.in_pieces(), self.beside as usize),
                of_pieces,
                "what pieces hold is counted"
            );
        }
    }
}

impl Pieces {
    /// Where the byte at `offset` is.
    fn find(&self, offset: usize) -> Place<'_> {
        let number = self.head + offset;
        let next = self.list.partition_point(|piece| piece.end() <= number);
        let Some(piece) = self.list.get(next) else {
            // Behind the last piece.
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

    /// Up to `most` bytes of the piece that the first byte is in, if it is in one.
    fn share(&self, most: usize) -> Option<Bytes> {
        let first = self.list.front()?;
        let at = self.head.checked_sub(first.start)?;
        Some(first.bytes.slice(at..first.bytes.len().min(at.saturating_add(most))))
    }

    /// Lets go of the first `count` bytes; how many of them are in pieces, and how much memory those kept that
    /// are gone.
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

    /// Bytes in pieces, and the memory that they keep, reckoned anew.
    fn check(&self, length: usize) -> (usize, usize) {
        assert!(!self.list.is_empty(), "no pieces are none");
        let (mut number, mut ring, mut bytes, mut memory) = (self.head, self.ring_head, 0, 0);
        for piece in &self.list {
            let begins = number.max(piece.start);
            assert!(piece.end() > begins, "a piece is done with, and still there");
            ring += begins - number;
            assert_eq!(piece.ring, ring, "bytes of the ring before a piece");
            bytes += piece.end() - begins;
            memory += piece.memory;
            number = piece.end();
        }
        assert!(number - self.head <= length, "pieces are a part of what there is");
        (bytes, memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// A rope beside the plain bytes that it should hold.
    struct Twin {
        rope: Rope,
        plain: Vec<u8>,
    }

    impl Twin {
        fn new() -> Self {
            Self { rope: Rope::new(), plain: Vec::new() }
        }

        fn copy(&mut self, bytes: &[u8]) {
            let length = self.plain.len();
            assert!(self.rope.make_room(length + bytes.len(), 1 << 20, &MemoryGrant::UNLIMITED));
            self.rope.write(length, bytes);
            self.plain.extend_from_slice(bytes);
        }

        fn push(&mut self, bytes: &[u8]) {
            self.rope.push(self.plain.len(), Bytes::copy_from_slice(bytes), bytes.len());
            self.plain.extend_from_slice(bytes);
        }

        fn advance(&mut self, count: usize) {
            self.rope.advance(count);
            self.plain.drain(..count);
        }

        fn compare(&self) {
            self.rope.check(self.plain.len(), 0);
            for offset in 0..=self.plain.len() {
                for length in
                    [1, 3, 7, usize::MAX].map(|length| length.min(self.plain.len() - offset))
                {
                    let expected = &self.plain[offset..offset + length];
                    let mut into = vec![0; length];
                    self.rope.read(offset, &mut into);
                    assert_eq!(into, expected);
                    into.fill(0);
                    let sum = self.rope.read_and_sum(offset, &mut into);
                    assert_eq!((sum.finish(), &into[..]), (Sum::of(expected).finish(), expected));
                    if let Some(parts) = self.rope.two_parts(offset, length) {
                        assert_eq!(parts.concat(), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn whatever_was_copied_and_whatever_was_handed_over_is_read_in_order() {
        let mut twin = Twin::new();
        let steps: [fn(&mut Twin); 12] = [
            |twin| twin.push(b"abcde"),
            |twin| twin.copy(b"fgh"),
            |twin| twin.push(b"ijklm"),
            |twin| twin.push(b"no"),
            |twin| twin.advance(2),
            |twin| twin.copy(b"pqrs"),
            |twin| twin.advance(4),
            |twin| twin.push(b"tuv"),
            |twin| twin.advance(9),
            |twin| twin.copy(b"wxyz"),
            |twin| twin.advance(1),
            |twin| twin.advance(10),
        ];
        for step in steps {
            step(&mut twin);
            twin.compare();
        }
        assert_eq!((twin.plain.len(), twin.rope.pieces.is_none()), (0, true));
    }

    #[test]
    fn a_piece_holds_its_memory_until_its_last_byte_is_gone() {
        let mut rope = Rope::new();
        rope.push(0, Bytes::from_static(b"abc"), 64);
        assert_eq!((rope.memory(), rope.holds()), (64, 3));
        rope.advance(2);
        assert_eq!((rope.memory(), rope.holds()), (64, 1));
        rope.advance(1);
        assert_eq!((rope.memory(), rope.holds()), (0, 0));
    }

    #[test]
    fn what_lies_in_a_piece_is_shared_and_what_lies_in_the_ring_is_copied() {
        let mut twin = Twin::new();
        let whole = Bytes::from_static(b"whole");
        twin.rope.push(0, whole.clone(), 5);
        twin.plain.extend_from_slice(&whole);
        twin.copy(b"ring");
        twin.advance(1);
        let shared = twin.rope.share(twin.plain.len(), 3);
        assert_eq!((&shared[..], shared.as_ptr()), (&b"hol"[..], whole[1..].as_ptr()));
        twin.advance(4);
        assert_eq!(twin.rope.share(twin.plain.len(), 100), b"ring"[..]);
    }

    #[test]
    fn three_parts_are_not_two() {
        let mut twin = Twin::new();
        for piece in [b"ab", b"cd", b"ef"] {
            twin.push(piece);
        }
        assert_eq!(twin.rope.two_parts(1, 3), Some([&b"b"[..], b"cd"]));
        assert_eq!(twin.rope.two_parts(2, 2), Some([&b"cd"[..], b""]));
        assert_eq!(twin.rope.two_parts(1, 4), None);
    }
}
