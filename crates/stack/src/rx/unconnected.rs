//! Segments that belong to no connection: a limited number is handled in each turn, and others
//! wait.
//!
//! A flood of such segments must not delay connections: the answer to a SYN costs as much as
//! several segments of data, and on a TAP device a system call. So a turn handles at most
//! [`A_TURN`] of them before the segments of connections. Further ones wait until the segments of
//! connections have been handled. If too many wait, each new one replaces a random one. A flood
//! therefore cannot exclude an honest peer, as it could if the newest or the oldest was dropped: an
//! honest SYN is as likely to be answered as any other.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of segments without a connection that are handled at once, in a turn that also
/// has segments of connections.
const A_TURN: usize = 16;

/// Maximum number of waiting segments.
const WAITING: usize = 128;

/// Maximum size of a packet that can wait, in bytes.
const LARGEST: usize = 1_536;

/// Segments that belong to no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// Number of segments handled at once since the last turn of the waiting ones. Invariant: at
    /// most [`A_TURN`].
    handled: usize,
    /// Number of segments without a connection that have arrived.
    come: u64,
    /// Number of segments of connections that had arrived at the last turn of the waiting ones.
    connected: u64,
    /// The packets of waiting segments. Invariant: at most [`WAITING`].
    waiting: VecDeque<Vec<u8>>,
    /// Buffers for further packets. Invariant: together with `waiting` at most [`WAITING`].
    spare: Vec<Vec<u8>>,
    /// State of the random numbers (xorshift, 64 bits). Invariant: not zero.
    random: u64,
}

impl Unconnected {
    /// Creates an empty queue. `seed` selects the segments that are dropped.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            handled: 0,
            come: 0,
            connected: 0,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            random: seed | 1,
        }
    }

    /// Counts a segment that has arrived. Returns whether it is handled at once.
    #[inline]
    pub(crate) const fn admit(&mut self) -> bool {
        self.come += 1;
        let may = self.handled < A_TURN;
        self.handled += may as usize;
        may
    }

    /// Have so many segments been handled at once that others must wait for
    /// [`begin_turn`](Self::begin_turn)?
    #[inline]
    pub(crate) const fn is_spent(&self) -> bool {
        self.handled == A_TURN
    }

    /// Queues the segment in `packet`. Returns false if a segment is dropped: this one if it is too
    /// long, or a random waiting one if the queue is full.
    pub(crate) fn push(&mut self, packet: &[u8]) -> bool {
        if packet.len() > LARGEST {
            return false;
        }
        let has_room = self.waiting.len() < WAITING;
        if has_room {
            let packet = copy(packet, self.spare.pop().unwrap_or_default());
            self.waiting.push_back(packet);
        } else {
            let place = self.draw(WAITING);
            let lost = &mut self.waiting[place];
            *lost = copy(packet, core::mem::take(lost));
        }
        has_room
    }

    /// Begins the turn of the waiting segments, after the segments of connections. `segments` is
    /// the number of all segments that have arrived so far. Returns how many of the waiting ones
    /// may be handled: all of them, if no segment of a connection has arrived since the last turn.
    pub(crate) fn begin_turn(&mut self, segments: u64) -> usize {
        let connected = segments.wrapping_sub(self.come);
        let is_busy = core::mem::replace(&mut self.connected, connected) != connected;
        let most = if is_busy { A_TURN } else { WAITING };
        let count = self.waiting.len().min(most);
        self.handled = count.min(A_TURN);
        count
    }

    /// Removes and returns the packet that has waited longest. Return its buffer by
    /// [`give_back`](Self::give_back).
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.waiting.pop_front()
    }

    /// Puts the buffer of a packet on the free list.
    pub(crate) fn give_back(&mut self, packet: Vec<u8>) {
        if self.spare.len() + self.waiting.len() < WAITING {
            self.spare.push(packet);
        }
    }

    /// Is no segment waiting?
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        assert!(self.handled <= A_TURN, "a turn handles a limited number of segments");
        assert!(self.waiting.len() + self.spare.len() <= WAITING, "waiting segments are limited");
        assert!(self.waiting.iter().all(|packet| packet.len() <= LARGEST), "and so is their size");
    }

    /// Returns a random number below `end`.
    fn draw(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        #[allow(clippy::cast_possible_truncation, reason = "any bits will do")]
        let bits = (self.random >> 32) as usize;
        bits % end
    }
}

/// Returns a copy of `packet`, in the reused buffer `memory`.
fn copy(packet: &[u8], mut memory: Vec<u8>) -> Vec<u8> {
    memory.clear();
    memory.extend_from_slice(packet);
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues the SYN with this number.
    fn push(queue: &mut Unconnected, number: usize) -> bool {
        queue.push(&number.to_be_bytes())
    }

    fn waiting(queue: &mut Unconnected) -> Vec<usize> {
        let packets = core::iter::from_fn(|| queue.pop());
        packets.map(|packet| usize::from_be_bytes(packet.try_into().unwrap())).collect()
    }

    #[test]
    fn a_turn_handles_so_many_and_lets_the_others_wait_in_order() {
        let mut queue = Unconnected::new(1);
        assert_eq!((0..100).filter(|_| queue.admit()).count(), A_TURN);
        assert!(queue.is_spent());
        assert!((0..40).all(|number| push(&mut queue, number)));
        // One segment of a connection has arrived in between.
        assert_eq!(queue.begin_turn(101), A_TURN);
        assert!(queue.is_spent(), "those that waited were handled in place of newer ones");
        // No segment of a connection has arrived in between.
        assert_eq!(queue.begin_turn(101), 40);
        assert_eq!(waiting(&mut queue), (0..40).collect::<Vec<_>>());
        assert_eq!(queue.begin_turn(101), 0);
        assert!(queue.admit());
        queue.check();
    }

    #[test]
    fn too_many_take_the_places_of_random_ones() {
        let lasting = |seed| {
            let mut queue = Unconnected::new(seed);
            let kept = (0..4 * WAITING).filter(|&number| push(&mut queue, number)).count();
            queue.check();
            assert_eq!(kept, WAITING);
            waiting(&mut queue)
        };
        let lasting_by_one = lasting(1);
        let early = lasting_by_one.iter().filter(|&&number| number < 2 * WAITING).count();
        // If the oldest or the newest was dropped, the result would be none or all.
        assert!((5..60).contains(&early), "{early} of the first half are left");
        assert_eq!(lasting_by_one, lasting(1), "the same seed, the same segments");
        assert_ne!(lasting_by_one, lasting(3));
    }

    #[test]
    fn what_is_too_long_is_lost_and_memory_is_used_again() {
        let mut queue = Unconnected::new(1);
        assert!(!queue.push(&[0; LARGEST + 1]) && queue.is_empty());
        assert!(queue.push(&[1; LARGEST]));
        let packet = queue.pop().unwrap();
        let memory = packet.as_ptr();
        queue.give_back(packet);
        assert!(push(&mut queue, 7));
        let packet = queue.pop().unwrap();
        assert_eq!(packet.as_ptr(), memory);
    }
}
