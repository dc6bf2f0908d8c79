//! The queue of received segments that belong to no connection, such as SYNs. Each turn handles
//! only a limited number of these segments, and the other segments wait.
//!
//! A flood of segments without a connection must not delay existing connections: the answer to a
//! SYN costs as much as several data segments, and on a TAP device a system call. Therefore a turn
//! handles at most [`A_TURN`] of these segments when they arrive. The others wait in the queue
//! until the turn has handled all segments of connections. If the queue is full, each new segment
//! replaces a random waiting segment. A SYN of an honest client is then as likely to be answered as
//! any SYN of the flood. If the newest or the oldest segment were dropped, a flood could exclude
//! honest clients.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of segments without a connection that a turn handles as they arrive. If the turn
/// has received segments of connections, it then also handles up to this number of waiting
/// segments. These count towards the limit of the next turn.
const A_TURN: usize = 16;

/// Maximum number of waiting segments.
const WAITING: usize = 128;

/// Maximum size of a waiting packet in bytes. Longer packets are dropped.
const LARGEST: usize = 1_536;

/// The queue of segments that belong to no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    /// Number of segments without a connection that count towards the limit [`A_TURN`]: the waiting
    /// segments that the most recent call of [`begin_turn`](Self::begin_turn) admitted, and the
    /// segments that were handled at their arrival since that call. Invariant: at most [`A_TURN`].
    handled: usize,
    /// Number of segments without a connection that have arrived.
    arrived: u64,
    /// Number of segments of connections that had arrived until the most recent call of
    /// [`begin_turn`](Self::begin_turn). The next call thus finds out whether more have arrived
    /// since.
    connected: u64,
    /// The packets of waiting segments, each with the number of the interface on which the packet
    /// arrived. Invariant: at most [`WAITING`] packets.
    waiting: VecDeque<(u16, Vec<u8>)>,
    /// A free list of packet buffers. Invariant: `spare` and `waiting` together contain at most
    /// [`WAITING`] buffers.
    spare: Vec<Vec<u8>>,
    /// State of the random number generator (64-bit xorshift). Invariant: not zero.
    random: u64,
}

impl Unconnected {
    /// Creates an empty queue. `seed` determines which segments a full queue drops.
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

    /// Counts a received segment without a connection. Returns true if the limit of this turn
    /// permits the caller to handle the segment now, and false if the segment must be queued.
    #[inline]
    pub(crate) const fn admit(&mut self) -> bool {
        self.arrived += 1;
        let may = self.handled < A_TURN;
        self.handled += may as usize;
        may
    }

    /// Returns whether no further segment may be handled until the next call of
    /// [`begin_turn`](Self::begin_turn).
    #[inline]
    pub(crate) const fn is_spent(&self) -> bool {
        self.handled == A_TURN
    }

    /// Queues the segment in `packet`, which has arrived on `interface`. Returns false if a segment
    /// is dropped: the new segment if its packet is too long, or a random waiting segment if the
    /// queue is full.
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

    /// Begins to handle waiting segments, after the segments of connections. `segments` is the
    /// number of all segments that the host has received, with and without a connection. Returns
    /// the number of waiting segments that the caller may handle now. If no segment of a connection
    /// has arrived since the previous call, these are all waiting segments. Otherwise, they are at
    /// most [`A_TURN`].
    pub(crate) fn begin_turn(&mut self, segments: u64) -> usize {
        let connected = segments.wrapping_sub(self.arrived);
        let is_busy = core::mem::replace(&mut self.connected, connected) != connected;
        let most = if is_busy { A_TURN } else { WAITING };
        let count = self.waiting.len().min(most);
        self.handled = count.min(A_TURN);
        count
    }

    /// Removes and returns the packet that has waited longest, with the number of the interface on
    /// which the packet arrived. The caller should return the buffer by
    /// [`give_back`](Self::give_back).
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

/// Copies `packet` into `memory`, a buffer to be reused, and returns this buffer.
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
        // The host has received 101 segments, of which 100 belong to no connection. So one segment
        // of a connection has arrived, and the turn may handle only `A_TURN` of the waiting
        // segments.
        assert_eq!(queue.begin_turn(101), A_TURN);
        assert!(queue.is_spent(), "those that waited were handled in place of newer ones");
        // The host has still received only 101 segments, so none of a connection has arrived since
        // the previous call. Therefore the turn may handle all 40 waiting segments.
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
        // `early` counts the segments in the queue that were among the first half of all pushed
        // segments. It would be 0 if a full queue always dropped its oldest segment. If it always
        // dropped the new segment, all segments in the queue would be early.
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
