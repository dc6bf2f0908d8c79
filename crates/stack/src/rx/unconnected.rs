//! Segments that belong to no connection: how many are handled in a turn, and those that wait.
//!
//! A flood of them must not take the time of connections: the answer to a SYN costs as much as
//! several segments of data, on a TAP device a system call. So a turn handles [`A_TURN`] of these
//! segments at once. Others wait until the segments of connections have been handled. When too many
//! wait, each new one takes the place of a random one. A flood then cannot shut an honest peer out,
//! as it could if the newest or the oldest was dropped: an honest SYN is as likely to be answered
//! as any other.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of these segments in a turn in which connections have segments, too.
const A_TURN: usize = 16;

/// Maximum number of waiting segments.
const WAITING: usize = 128;

/// Maximum size of a waiting packet, in bytes.
const LARGEST: usize = 1_536;

/// Segments that belong to no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// Segments handled since the last turn of the waiting ones. Invariant: at most [`A_TURN`].
    handled: usize,
    /// Number of segments received.
    come: u64,
    /// Segments of connections received until the last turn of the waiting ones.
    connected: u64,
    /// Packets of segments. Invariant: at most [`WAITING`].
    waiting: VecDeque<Vec<u8>>,
    /// Memory for packets to come. Invariant: with `waiting` at most [`WAITING`].
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

    /// A segment has come. Returns whether it is handled at once.
    #[inline]
    pub(crate) const fn admit(&mut self) -> bool {
        self.come += 1;
        let may = self.handled < A_TURN;
        self.handled += may as usize;
        may
    }

    /// Has the turn handled all that it may? Then [`begin_turn`](Self::begin_turn) is due.
    #[inline]
    pub(crate) const fn is_spent(&self) -> bool {
        self.handled == A_TURN
    }

    /// Lets the segment in `packet` wait. Returns false if a segment is lost: this one, because it
    /// is too long, or a random one of those that wait.
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

    /// The segments of connections have been handled, of which `segments` of any kind have come
    /// until now. Returns how many of those that wait may be handled: all, if there were none of
    /// connections.
    pub(crate) fn begin_turn(&mut self, segments: u64) -> usize {
        let connected = segments.wrapping_sub(self.come);
        let is_busy = core::mem::replace(&mut self.connected, connected) != connected;
        let most = if is_busy { A_TURN } else { WAITING };
        let count = self.waiting.len().min(most);
        self.handled = count.min(A_TURN);
        count
    }

    /// The packet that has waited longest. [`give_back`](Self::give_back) its memory.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.waiting.pop_front()
    }

    /// Takes back the memory of a packet.
    pub(crate) fn give_back(&mut self, packet: Vec<u8>) {
        if self.spare.len() + self.waiting.len() < WAITING {
            self.spare.push(packet);
        }
    }

    /// Does none wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Panics if an invariant is broken.
    pub(crate) fn check(&self) {
        assert!(self.handled <= A_TURN, "a turn handles a limited number of segments");
        assert!(self.waiting.len() + self.spare.len() <= WAITING, "waiting segments are limited");
        assert!(self.waiting.iter().all(|packet| packet.len() <= LARGEST), "and so is their size");
    }

    /// Draws a number below `end`.
    fn draw(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        #[allow(clippy::cast_possible_truncation, reason = "any bits will do")]
        let bits = (self.random >> 32) as usize;
        bits % end
    }
}

/// A copy of `packet` in `memory`.
fn copy(packet: &[u8], mut memory: Vec<u8>) -> Vec<u8> {
    memory.clear();
    memory.extend_from_slice(packet);
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `number`th SYN.
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
        // One segment of a connection.
        assert_eq!(queue.begin_turn(101), A_TURN);
        assert!(queue.is_spent(), "those that waited were handled in place of newer ones");
        // And none.
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
        // With the oldest or the newest dropped it would be none, or all.
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
