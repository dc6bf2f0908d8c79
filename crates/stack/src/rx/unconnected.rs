//! Segments that belong to no connection. A limited number is handled in each turn, and the others
//! wait.
//!
//! A flood of such segments must not delay connections: the answer to a SYN costs as much as
//! several data segments, and on a TAP device a system call. A turn therefore handles at most
//! [`A_TURN`] of them before the segments of connections. Further ones wait until the segments of
//! connections have been handled. If too many wait, each new one replaces a random one. An honest
//! SYN is then as likely to be answered as any other, whereas dropping the newest or the oldest
//! would let a flood exclude it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of segments without a connection that a turn handles, if it also has segments of
/// connections.
const A_TURN: usize = 16;

/// Maximum number of waiting segments.
const WAITING: usize = 128;

/// Maximum size of a packet that waits, in bytes. Longer ones are dropped.
const LARGEST: usize = 1_536;

/// The queue of segments that belong to no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// Number of segments handled since the waiting ones last had their turn. Invariant: at most
    /// [`A_TURN`].
    handled: usize,
    /// Number of segments without a connection that have arrived.
    arrived: u64,
    /// Number of segments of connections that had arrived when the waiting segments last had their
    /// turn.
    connected: u64,
    /// The packets of waiting segments, each with the number of the interface on which it arrived.
    /// Invariant: at most [`WAITING`].
    waiting: VecDeque<(u16, Vec<u8>)>,
    /// Free buffers, for reuse. Invariant: at most [`WAITING`], together with those in `waiting`.
    spare: Vec<Vec<u8>>,
    /// State of the random number generator (64-bit xorshift). Invariant: not zero.
    random: u64,
}

impl Unconnected {
    /// Creates an empty queue. `seed` determines which segments are dropped.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            handled: 0,
            arrived: 0,
            connected: 0,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            random: seed | 1,
        }
    }

    /// Counts a segment without a connection. Returns whether to handle it now, instead of queueing
    /// it.
    #[inline]
    pub(crate) const fn admit(&mut self) -> bool {
        self.arrived += 1;
        let may = self.handled < A_TURN;
        self.handled += may as usize;
        may
    }

    /// Returns whether no more segments may be handled until [`begin_turn`](Self::begin_turn).
    #[inline]
    pub(crate) const fn is_spent(&self) -> bool {
        self.handled == A_TURN
    }

    /// Queues the segment in `packet`, which has arrived on `interface`. Returns false if a segment
    /// is dropped: the new segment if it is too long, or a random waiting segment if the queue is
    /// full.
    pub(crate) fn push(&mut self, interface: u16, packet: &[u8]) -> bool {
        if packet.len() > LARGEST {
            return false;
        }
        let has_room = self.waiting.len() < WAITING;
        if has_room {
            let packet = copy(packet, self.spare.pop().unwrap_or_default());
            self.waiting.push_back((interface, packet));
        } else {
            let place = self.draw(WAITING);
            let lost = &mut self.waiting[place];
            *lost = (interface, copy(packet, core::mem::take(&mut lost.1)));
        }
        has_room
    }

    /// Begins to handle the waiting segments, after the segments of connections. `segments` is the
    /// number of all segments that have arrived so far. Returns how many waiting segments may be
    /// handled now: all of them, if no segment of a connection has arrived since the previous call.
    pub(crate) fn begin_turn(&mut self, segments: u64) -> usize {
        let connected = segments.wrapping_sub(self.arrived);
        let is_busy = core::mem::replace(&mut self.connected, connected) != connected;
        let most = if is_busy { A_TURN } else { WAITING };
        let count = self.waiting.len().min(most);
        self.handled = count.min(A_TURN);
        count
    }

    /// Removes and returns the packet that has waited longest, with the interface on which it
    /// arrived. The caller should return its buffer by [`give_back`](Self::give_back).
    pub(crate) fn pop(&mut self) -> Option<(u16, Vec<u8>)> {
        self.waiting.pop_front()
    }

    /// Puts the buffer of a packet on the free list, for reuse.
    pub(crate) fn give_back(&mut self, packet: Vec<u8>) {
        if self.spare.len() + self.waiting.len() < WAITING {
            self.spare.push(packet);
        }
    }

    /// Returns whether no segment is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Panics if an invariant is violated.
    pub(crate) fn check(&self) {
        assert!(self.handled <= A_TURN, "a turn handles a limited number of segments");
        assert!(self.waiting.len() + self.spare.len() <= WAITING, "waiting segments are limited");
        assert!(
            self.waiting.iter().all(|(_, packet)| packet.len() <= LARGEST),
            "and so is their size"
        );
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

/// Returns a copy of `packet` in `memory`, a buffer to be reused.
fn copy(packet: &[u8], mut memory: Vec<u8>) -> Vec<u8> {
    memory.clear();
    memory.extend_from_slice(packet);
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues a packet that contains `number`.
    fn push(queue: &mut Unconnected, number: usize) -> bool {
        queue.push(1, &number.to_be_bytes())
    }

    fn waiting(queue: &mut Unconnected) -> Vec<usize> {
        let packets = core::iter::from_fn(|| queue.pop());
        packets.map(|(_, packet)| usize::from_be_bytes(packet.try_into().unwrap())).collect()
    }

    #[test]
    fn a_turn_handles_a_limited_number_and_the_others_wait_in_order() {
        let mut queue = Unconnected::new(1);
        assert_eq!((0..100).filter(|_| queue.admit()).count(), A_TURN);
        assert!(queue.is_spent());
        assert!((0..40).all(|number| push(&mut queue, number)));
        // 101 segments, of which 100 belong to no connection: one segment of a connection has
        // arrived.
        assert_eq!(queue.begin_turn(101), A_TURN);
        assert!(queue.is_spent(), "those that waited were handled in place of newer ones");
        // The number of segments of connections is unchanged.
        assert_eq!(queue.begin_turn(101), 40);
        assert_eq!(waiting(&mut queue), (0..40).collect::<Vec<_>>());
        assert_eq!(queue.begin_turn(101), 0);
        assert!(queue.admit());
        queue.check();
    }

    #[test]
    fn a_full_queue_replaces_random_segments() {
        let lasting = |seed| {
            let mut queue = Unconnected::new(seed);
            let kept = (0..4 * WAITING).filter(|&number| push(&mut queue, number)).count();
            queue.check();
            assert_eq!(kept, WAITING);
            waiting(&mut queue)
        };
        let lasting_by_one = lasting(1);
        let early = lasting_by_one.iter().filter(|&&number| number < 2 * WAITING).count();
        // If always the oldest or always the newest were dropped, this would be none or all.
        assert!((5..60).contains(&early), "{early} of the first half are left");
        assert_eq!(lasting_by_one, lasting(1), "the same seed, the same segments");
        assert_ne!(lasting_by_one, lasting(3));
    }

    #[test]
    fn a_too_long_packet_is_dropped_and_buffers_are_reused() {
        let mut queue = Unconnected::new(1);
        assert!(!queue.push(1, &[0; LARGEST + 1]) && queue.is_empty());
        assert!(queue.push(1, &[1; LARGEST]));
        let (_, packet) = queue.pop().unwrap();
        let memory = packet.as_ptr();
        queue.give_back(packet);
        assert!(push(&mut queue, 7));
        let (_, packet) = queue.pop().unwrap();
        assert_eq!(packet.as_ptr(), memory);
    }
}
